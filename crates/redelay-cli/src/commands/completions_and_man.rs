//! `redelay completions` and `redelay man`: what is generated from the command line.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::out::Out;

pub(crate) fn completions(shell: Shell, out: &Out) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "redelay", &mut script);
    out.raw(&script)
}

pub(crate) fn man(into: Option<&Path>, out: &Out) -> Result<(), Failure> {
    let Some(folder) = into else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Arguments::command()).render(&mut page)?;
        return out.raw(&page);
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), folder))
        .map_err(|error| Failure::Other(format!("{} cannot be written: {error}", folder.display())))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use clap::{Arg, ArgAction, Command};

    use super::*;

    const BEGIN: &str = "<!-- made by clap: REDELAY_BLESS=1 cargo test --package redelay-cli --all-features --bin redelay pages -->\n";
    const END: &str = "<!-- the end of what clap has made -->\n";

    /// What is said of a command or an option, as a line.
    fn said(short: Option<&clap::builder::StyledStr>, long: Option<&clap::builder::StyledStr>) -> String {
        let text = long.or(short).map(ToString::to_string).unwrap_or_default();
        let paragraphs =
            text.split("\n\n").map(|text| text.replace('\n', " ").trim().trim_end_matches('.').to_owned());
        let text = paragraphs.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(". ");
        text.replace('|', "\\|").replace('*', "\\*").replace('[', "\\[")
    }

    fn row(out: &mut String, arg: &Arg) {
        let value = arg.get_value_names().unwrap_or_default().join(" ");
        let long = arg.get_long().map(|long| format!("--{long}"));
        let short = arg.get_short().map(|short| format!("-{short}"));
        let flags: Vec<String> = short.into_iter().chain(long).collect();
        let takes_value = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
        let name = match (flags.is_empty(), takes_value) {
            (true, _) => value,
            (false, true) => format!("{} {value}", flags.join(", ")),
            (false, false) => flags.join(", "),
        };
        let mut about = said(arg.get_help(), arg.get_long_help());
        let values: Vec<String> = arg
            .get_possible_values()
            .iter()
            .filter(|value| takes_value && !value.is_hide_set())
            .map(|value| match value.get_help() {
                Some(help) => format!("`{}` ({})", value.get_name(), said(Some(help), None)),
                None => format!("`{}`", value.get_name()),
            })
            .collect();
        if !values.is_empty() {
            write!(about, ": {}", values.join(", ")).unwrap();
        }
        let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        if takes_value && !defaults.is_empty() {
            write!(about, ". Without it: `{}`", defaults.join(" ")).unwrap();
        }
        if let Some(variable) = arg.get_env() {
            write!(about, ". Or the variable `{}`", variable.to_string_lossy()).unwrap();
        }
        writeln!(out, "| `{name}` | {about} |").unwrap();
    }

    /// The rows of what a command takes, without what all take.
    fn rows(out: &mut String, command: &Command, is_global: bool) {
        let args: Vec<_> = command
            .get_arguments()
            .filter(|arg| {
                arg.is_global_set() == is_global && !matches!(arg.get_id().as_str(), "help" | "version")
            })
            .collect();
        if !args.is_empty() {
            out.push_str("\n| argument | means |\n|---|---|\n");
            // What has no name stands in front.
            let (named, placed): (Vec<_>, Vec<_>) = args.into_iter().partition(|arg| !arg.is_positional());
            placed.into_iter().chain(named).for_each(|arg| row(out, arg));
        }
    }

    fn reference() -> String {
        let mut all = Arguments::command();
        all.build();
        let mut out = String::new();
        for command in all.get_subcommands().filter(|command| command.get_name() != "help") {
            let usage = command.clone().render_usage().to_string();
            let usage =
                usage.trim_start_matches("Usage: ").replace("[OPTIONS] ", "").replace("[OPTIONS]", "");
            writeln!(out, "### {}\n", command.get_name()).unwrap();
            writeln!(out, "`{}`: {}.", usage.trim(), said(command.get_about(), command.get_long_about()))
                .unwrap();
            rows(&mut out, command, false);
            out.push('\n');
        }
        out.push_str("### Options of every command\n");
        rows(&mut out, &all, true);
        out
    }

    /// The page has the commands of all features.
    #[test]
    fn the_reference_of_the_documentation_is_that_of_the_command_line() {
        if !cfg!(all(feature = "top", feature = "exporter")) {
            return;
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once(BEGIN).unwrap();
        let (shown, after) = rest.split_once(END).unwrap();
        let reference = reference();
        if std::env::var_os("REDELAY_BLESS").is_some() {
            std::fs::write(path, [before, BEGIN, &reference, END, after].concat()).unwrap();
        } else {
            assert_eq!(shown, reference, "run the test with REDELAY_BLESS=1");
        }
    }
}
