//! What the command line may say.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use redelay::codec::detect::Format;
use redelay::inspector::Cursor;

/// Looks into delayed queues on Redis: those of Java Redisson and those of redelay.
///
/// All but pump send plain commands that only read, write nothing, and run no scripts. A user who may only
/// read is enough.
#[derive(Debug, Parser)]
#[command(name = "redelay", version, propagate_version = true, infer_subcommands = false)]
#[command(
    after_help = "Exit codes: 0 done; 1 the answer is negative; 2 wrong usage; 3 no connection; 4 login \
    refused, or a permission is missing; 5 the server or this machine refuses it for another reason; 130 \
    interrupted."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// Prints JSON: a thing is one line, a list one line an item
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which server.
#[derive(Args, Debug)]
pub(crate) struct Connection {
    /// The server: redis://host:port/db, rediss://, redis-cluster://, redis-sentinel://, redis+unix://
    ///
    /// Without it: the profile, the variable REDELAY_URL or REDIS_URL, the profile `default`, or
    /// redis://localhost:6379. A password is refused here, because `ps` shows it. With it, the profile still
    /// says the codecs, the prefix of names, and what is masked.
    #[arg(long, global = true, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: Option<String>,
    /// A profile of $XDG_CONFIG_HOME/redelay/config.toml
    #[arg(long, global = true, value_name = "NAME", env = "REDELAY_PROFILE")]
    pub(crate) profile: Option<String>,
    /// How long to wait for the connection, and for each answer
    #[arg(long, global = true, value_name = "TIME", default_value = "2s", value_parser = time)]
    pub(crate) timeout: Duration,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Lists the queues of a server, the worst first
    ///
    /// A queue is found if something is pending, if redelay keeps something of it, or if a client has it
    /// open.
    Ls {
        /// Which queues: * is anything, ? one byte, [ab] one of these, \ takes the next one as it is
        #[arg(default_value = "*", value_name = "PATTERN")]
        pattern: OsString,
    },
    /// Shows what is in a queue, in numbers
    Show {
        /// The name of the queue, as ls prints it
        #[arg(value_name = "QUEUE")]
        queue: OsString,
    },
    /// Lists what is in a queue, with the payloads
    ///
    /// The last line says how to go on.
    List {
        /// The name of the queue, as ls prints it
        #[arg(value_name = "QUEUE")]
        queue: OsString,
        /// What of it
        #[arg(default_value = "pending", value_name = "WHAT")]
        what: What,
        /// How many
        #[arg(long, short = 'n', default_value_t = 20, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        /// Goes on behind this cursor, as the page before ends
        #[arg(long, value_name = "CURSOR", value_parser = cursor, allow_hyphen_values = true)]
        after: Option<Cursor>,
        #[command(flatten)]
        decoder: Decoding,
        #[command(flatten)]
        classes: Described,
    },
    /// Counts how many entries become due when
    Due {
        /// The name of the queue, as ls prints it
        #[arg(value_name = "QUEUE")]
        queue: OsString,
        /// The length of a step
        #[arg(long, default_value = "10m", value_name = "TIME", value_parser = time)]
        step: Duration,
        /// How many steps
        #[arg(long, default_value_t = 12, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1_000))]
        count: u16,
    },
    /// Prints announcements and transfers as they happen, without payloads
    ///
    /// Redisson publishes no transfers.
    Watch {
        /// Which queues, as ls has it
        #[arg(default_value = "*", value_name = "PATTERN")]
        pattern: OsString,
    },
    /// Says what is wrong with queues and with the server, and what to do about it
    ///
    /// It looks once, and up to twice more within 6 s at what may be so for a moment only. It ends with 1 if
    /// there is an error or a warning, and with 2 if there is no queue of a name that is given.
    Doctor {
        /// Which queues: names, and patterns as ls has them
        #[arg(default_value = "*", value_name = "PATTERN")]
        patterns: Vec<OsString>,
    },
    /// Shows the queues of a server again and again, on the whole terminal
    ///
    /// Keys: arrows move, Enter opens a queue and Esc leaves it, / filters, s sorts, r reverses, Space
    /// pauses, v shows the payloads of an open queue, q quits. It looks for new queues every 30 s, or less
    /// often where that takes long.
    #[cfg(feature = "top")]
    Top {
        /// Which queues, as ls has it
        #[arg(default_value = "*", value_name = "PATTERN")]
        pattern: OsString,
        /// How often
        #[arg(long, default_value = "2s", value_name = "TIME", value_parser = interval)]
        interval: Duration,
        #[command(flatten)]
        classes: Described,
    },
    /// Moves due entries to their ready lists, beside Redisson
    ///
    /// It moves what is due by the server's clock, and changes no payload. Entries that cannot be read go to
    /// the quarantine. Several of them work together.
    Pump(Pumping),
    /// Answers Prometheus with what is in the queues, in numbers
    #[cfg(feature = "exporter")]
    Exporter(Exporting),
    /// Says which codec wrote a payload, and prints it; no server is asked
    Inspect {
        /// The bytes of a payload or of a whole entry in hexadecimal digits; without it, the bytes on stdin
        #[arg(value_name = "HEX")]
        hex: Option<String>,
        /// Reads hexadecimal digits on stdin, too
        #[arg(long, conflicts_with = "hex")]
        digits: bool,
        /// Reads it with this codec
        #[arg(long, value_name = "CODEC", value_parser = format)]
        codec: Option<Format>,
        #[command(flatten)]
        decoder: Decoding,
        #[command(flatten)]
        classes: Described,
    },
    /// Prints the Rust types of a Java class, for the codecs of Redisson
    ///
    /// They are those of the class, of the classes below it, and of what their fields need.
    JavaStruct {
        /// The class, with its package if another one has the same name: com.acme.Order, com.acme.Order$Line
        #[arg(value_name = "CLASS")]
        class: String,
        #[command(flatten)]
        classes: Described,
    },
    /// Prints the completions of a shell
    Completions {
        /// For which shell
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Prints the manual page, or writes a page for each command
    Man {
        /// The folder into which the pages are written
        #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
        into: Option<PathBuf>,
    },
}

/// What to pump, and how.
#[derive(Args, Debug)]
pub(crate) struct Pumping {
    /// Which queues: names, and patterns as ls has them
    #[arg(default_value = "*", value_name = "PATTERN")]
    pub(crate) patterns: Vec<OsString>,
    /// Moves what is due now, and ends
    #[arg(long)]
    pub(crate) once: bool,
    /// Answers requests for /health at this address, such as 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS", conflicts_with = "once")]
    pub(crate) health: Option<SocketAddr>,
    /// How often to search all keys for queues whose announcements were missed
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = time)]
    pub(crate) search: Duration,
    /// The most queues; others are left out
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) most: u32,
}

/// What to export, and how.
#[cfg(feature = "exporter")]
#[derive(Args, Debug)]
pub(crate) struct Exporting {
    /// Which queues: names, and patterns as ls has them
    #[arg(default_value = "*", value_name = "PATTERN")]
    pub(crate) patterns: Vec<OsString>,
    /// Where to answer requests for /metrics
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9733")]
    pub(crate) listen: SocketAddr,
    /// How old an answer may be: it looks at the queues once in this time, however many ask
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub(crate) interval: Duration,
    /// How often to search all keys for queues
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = time)]
    pub(crate) search: Duration,
    /// The most queues; others are left out
    #[arg(long, value_name = "COUNT", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) most: u32,
}

/// A cursor in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    /// Entries that are not due yet, or not transferred, in the order in which they are due
    Pending,
    /// Payloads that takers can take
    Ready,
    /// Messages that receivers have
    InFlight,
    /// Messages that wait for a retry
    Waiting,
    /// Dead letters
    Dead,
    /// Entries that cannot be read
    Quarantine,
    /// Schedules
    Schedules,
    /// What processes had popped when they died, and what is being popped now
    Pops,
}

/// A program that reads payloads.
#[derive(Args, Debug)]
pub(crate) struct Decoding {
    /// Reads payloads with a program of yours: a line for sh, which gets the bytes on stdin and prints text
    ///
    /// It runs once for each payload, for at most 10 s, and may print 1 MiB. If it prints JSON, that is the
    /// value. If it fails, the row says so, and the payload is shown as without it. A profile that masks
    /// values does not allow it, because what it prints cannot be masked.
    #[arg(long, value_name = "COMMAND", value_hint = ValueHint::CommandString)]
    pub(crate) decoder: Option<String>,
}

/// The Java classes of payloads.
#[derive(Args, Debug)]
pub(crate) struct Described {
    /// Java classes: a .class file, a .jar, or a text such as `class com.acme.Order { long id; }`
    ///
    /// With it, objects of these classes in Kryo 5 are printed with the names of their fields. It may be
    /// there several times. For list and top, the profile may have more.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) classes: Vec<PathBuf>,
}

fn time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time.as_millis() > 0 => Ok(time),
        _ => Err("expected a time of at least 1 ms, such as 10m, 90s or 1h".into()),
    }
}

/// The time between two looks.
#[cfg(feature = "top")]
fn interval(text: &str) -> Result<Duration, String> {
    let least = Duration::from_millis(500);
    time(text).ok().filter(|time| *time >= least).ok_or_else(|| "expected a time of at least 500ms".into())
}

fn cursor(text: &str) -> Result<Cursor, String> {
    text.parse().map_err(|_| "expected a cursor that redelay list has printed".into())
}

fn format(text: &str) -> Result<Format, String> {
    text.parse().map_err(|error| format!("{error}"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    /// Its user has no home, and so no profile.
    #[test]
    fn the_systemd_unit_needs_no_profile() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate.md");
        let page = std::fs::read_to_string(path).expect("the page");
        let unit = page.split("```ini\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the unit");
        let value = |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        let words = value("ExecStart").expect("a command").split(' ');
        let arguments = Arguments::try_parse_from(words).expect("a command line");
        assert!(matches!(arguments.command, Command::Pump(_)) && arguments.connection.profile.is_none());
        assert!(value("EnvironmentFile").is_some() && value("WantedBy").is_some(), "{unit}");
    }
}
