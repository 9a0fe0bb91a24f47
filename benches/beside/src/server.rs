//! The server of the run, which no other program uses, and its counters.

use redelay_fixture::redis::{Connection, Pipeline, cmd, pipe};
use redelay_fixture::{Proxy, Server as Process};
use std::time::Duration;

use crate::process::memory;
use crate::system::System;

/// Entries for one command of a pipeline.
const CHUNK: usize = 1_000;

pub(crate) struct Server {
    process: Process,
    connection: Connection,
    /// Delays the replies to redelay, in a check of the harness itself.
    slow: Option<Proxy>,
}

/// A pending entry.
pub(crate) struct Entry {
    /// Epoch ms.
    pub(crate) due: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Counters at one moment. The difference of two is the work between them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// Including those that scripts run.
    pub(crate) commands: f64,
    pub(crate) scripts: f64,
    /// Blocking pops, one for each time that a client begins to wait.
    pub(crate) blocking: f64,
    pub(crate) cpu_seconds: f64,
}

impl Counters {
    /// Those of the server behind this connection.
    pub(crate) fn read(connection: &mut Connection) -> Self {
        let info = info(connection, "all");
        let calls = |name: &str| {
            let calls = field(&info, &format!("cmdstat_{name}:calls=")).unwrap_or("0");
            calls.split(',').next().and_then(|calls| calls.parse::<f64>().ok()).expect("a number")
        };
        Self {
            commands: number(&info, "total_commands_processed:"),
            scripts: ["evalsha", "eval", "evalsha_ro", "eval_ro"].iter().map(|name| calls(name)).sum(),
            blocking: ["blpop", "blmove", "bzpopmin", "brpoplpush"].iter().map(|name| calls(name)).sum(),
            cpu_seconds: number(&info, "used_cpu_user:") + number(&info, "used_cpu_sys:"),
        }
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            // The `INFO` of the first look is counted only now.
            commands: self.commands - before.commands - 1.0,
            scripts: self.scripts - before.scripts,
            blocking: self.blocking - before.blocking,
            cpu_seconds: self.cpu_seconds - before.cpu_seconds,
        }
    }

    /// Together with the work of another server.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            commands: self.commands + other.commands,
            scripts: self.scripts + other.scripts,
            blocking: self.blocking + other.blocking,
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
        }
    }

    /// Without the cost of something else in that time.
    pub(crate) fn without(self, other: Self) -> Self {
        Self {
            commands: self.commands - other.commands,
            scripts: self.scripts - other.scripts,
            blocking: self.blocking - other.blocking,
            cpu_seconds: self.cpu_seconds - other.cpu_seconds,
        }
    }

    pub(crate) fn divided_by(self, number: f64) -> Self {
        Self {
            commands: self.commands / number,
            scripts: self.scripts / number,
            blocking: self.blocking / number,
            cpu_seconds: self.cpu_seconds / number,
        }
    }
}

impl Server {
    /// `slowed` delays each reply to redelay.
    pub(crate) fn start(slowed: Option<Duration>) -> Self {
        let process = Process::builder()
            // Logs every call that may delay others: 0.1 ms or longer.
            .config("slowlog-log-slower-than 100")
            .config("slowlog-max-len 100000")
            .start();
        let slow = slowed.map(|delay| {
            let proxy = Proxy::start(process.port());
            proxy.delay(delay);
            proxy
        });
        let connection = process.redis();
        connection.set_read_timeout(None).expect("a socket");
        Self { process, connection, slow }
    }

    pub(crate) fn url(&self, system: System) -> String {
        match &self.slow {
            Some(proxy) if system == System::Redelay => proxy.url(),
            _ => self.process.url(),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.process.port()
    }

    pub(crate) fn version(&self) -> String {
        self.process.version().to_string()
    }

    /// Another connection.
    pub(crate) fn connect(&self) -> Connection {
        self.process.redis()
    }

    pub(crate) fn clear(&mut self) {
        clear(&mut self.connection);
    }

    pub(crate) fn counters(&mut self) -> Counters {
        Counters::read(&mut self.connection)
    }

    fn info(&mut self, section: &str) -> String {
        info(&mut self.connection, section)
    }

    pub(crate) fn memory(&self) -> f64 {
        memory(self.process.pid()).expect("a running server")
    }

    /// The memory that the server has allocated, without the buffers of its clients.
    pub(crate) fn memory_of_data(&mut self) -> f64 {
        let info = self.info("memory");
        number(&info, "used_memory:") - number(&info, "mem_clients_normal:")
    }

    pub(crate) fn blocked_clients(&mut self) -> usize {
        number(&self.info("clients"), "blocked_clients:") as usize
    }

    pub(crate) fn kill_blocked_clients(&mut self) {
        let clients: String = cmd("CLIENT").arg("LIST").query(&mut self.connection).expect("CLIENT LIST");
        let field = |client: &str, name: &str| {
            client.split(' ').find_map(|field| field.strip_prefix(name)).unwrap_or_default().to_owned()
        };
        for client in clients.lines().filter(|client| field(client, "flags=").contains('b')) {
            // It may have ended meanwhile.
            let _ = cmd("CLIENT").arg("KILL").arg("ID").arg(field(client, "id=")).exec(&mut self.connection);
        }
    }

    /// Without the one of the harness.
    pub(crate) fn connections(&mut self) -> f64 {
        number(&self.info("clients"), "connected_clients:") - 1.0
    }

    /// The number of channels with a subscriber.
    pub(crate) fn channels(&mut self) -> usize {
        number(&self.info("stats"), "pubsub_channels:") as usize
    }

    pub(crate) fn pending(&mut self, queue: &str) -> u64 {
        cmd("ZCARD").arg(timeout_set(queue)).query(&mut self.connection).expect("ZCARD")
    }

    /// Puts this number of elements into a list.
    pub(crate) fn fill(&mut self, list: &str, count: u64, payload: &str) {
        fill(&mut self.connection, list, count, payload);
    }

    /// Stores entries in this order, as offers do.
    pub(crate) fn store(&mut self, queue: &str, entries: &[Entry]) {
        let words = |entry: &Entry| [entry.due.to_string().into_bytes(), entry.bytes.clone()];
        let chunks = entries.chunks(CHUNK);
        send(
            &mut self.connection,
            chunks.map(|chunk| ("ZADD", timeout_set(queue), chunk.iter().flat_map(words).collect())),
        );
        let members = |chunk: &[Entry]| chunk.iter().map(|entry| entry.bytes.clone()).collect();
        let chunks = entries.chunks(CHUNK);
        send(&mut self.connection, chunks.map(|chunk| ("RPUSH", ordered_list(queue), members(chunk))));
    }

    /// Copies the pending entries to another queue.
    pub(crate) fn copy(&mut self, from: &str, to: &str) {
        for (from, to) in [(timeout_set(from), timeout_set(to)), (ordered_list(from), ordered_list(to))] {
            cmd("COPY").arg(from).arg(to).arg("REPLACE").exec(&mut self.connection).expect("COPY");
        }
    }

    pub(crate) fn delete(&mut self, queue: &str) {
        let keys = [queue.to_owned(), timeout_set(queue), ordered_list(queue)];
        cmd("DEL").arg(&keys).exec(&mut self.connection).expect("DEL");
    }

    pub(crate) fn reset_slowlog(&mut self) {
        cmd("SLOWLOG").arg("RESET").exec(&mut self.connection).expect("SLOWLOG");
    }

    /// The longest time for which a script has blocked the server since the last reset, seconds.
    pub(crate) fn longest_script(&mut self) -> f64 {
        type Entry = (i64, i64, u64, Vec<Vec<u8>>, String, String);
        let entries: Vec<Entry> =
            cmd("SLOWLOG").arg("GET").arg(-1).query(&mut self.connection).expect("SLOWLOG");
        let scripts = entries.iter().filter(|entry| entry.3[0].to_ascii_lowercase().starts_with(b"eval"));
        scripts.map(|entry| entry.2).max().unwrap_or_default() as f64 / 1e6
    }

    /// Loads a script. Returns its digest.
    pub(crate) fn load(&mut self, script: &str) -> String {
        cmd("SCRIPT").arg("LOAD").arg(script).query(&mut self.connection).expect("SCRIPT LOAD")
    }
}

/// Deletes all keys of the server behind this connection.
pub(crate) fn clear(connection: &mut Connection) {
    cmd("FLUSHALL").arg("SYNC").exec(connection).expect("FLUSHALL");
}

/// Puts this number of elements into a list.
pub(crate) fn fill(connection: &mut Connection, list: &str, count: u64, payload: &str) {
    let payloads = vec![payload; count as usize];
    send(connection, payloads.chunks(CHUNK).map(|chunk| ("RPUSH", list.to_owned(), chunk.to_vec())));
}

fn send<A: AsRef<[u8]>>(
    connection: &mut Connection,
    commands: impl Iterator<Item = (&'static str, String, Vec<A>)>,
) {
    for (name, key, arguments) in commands {
        let mut pipe: Pipeline = pipe();
        pipe.cmd(name).arg(key);
        for argument in arguments {
            pipe.arg(argument.as_ref());
        }
        pipe.exec(connection).expect("a command for the server");
    }
}

fn info(connection: &mut Connection, section: &str) -> String {
    cmd("INFO").arg(section).query(connection).expect("INFO")
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name))
}

fn number(info: &str, name: &str) -> f64 {
    field(info, name).and_then(|number| number.trim().parse().ok()).expect("a number")
}

pub(crate) fn timeout_set(queue: &str) -> String {
    format!("redisson_delay_queue_timeout:{{{queue}}}")
}

pub(crate) fn ordered_list(queue: &str) -> String {
    format!("redisson_delay_queue:{{{queue}}}")
}

pub(crate) fn channel(queue: &str) -> String {
    format!("redisson_delay_queue_channel:{{{queue}}}")
}
