//! A client that does less than redelay: this program, which starts itself again. One call is in flight.

use std::io::{Write, stdin};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use fred::prelude::{Builder, Client, ClientLike, Config, ReconnectPolicy};
use fred::types::{ClusterHash, CustomCommand, Value};
use redis::aio::MultiplexedConnection;
use tokio::runtime::Runtime;

use crate::job::{Job, NOT_SOON, Offer, Reply, now, payload};
use crate::offer_script;
use crate::redelay::answer;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rung {
    /// Two system calls, and nothing else.
    Socket,
    RedisRs,
    Fred,
}

impl Rung {
    pub(crate) const ALL: [Self; 3] = [Self::Socket, Self::RedisRs, Self::Fred];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Socket => "blocking socket",
            Self::RedisRs => "redis-rs",
            Self::Fred => "fred",
        }
    }

    /// The name that the command line has for it.
    pub(crate) fn argument(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::RedisRs => "redis-rs",
            Self::Fred => "fred",
        }
    }

    pub(crate) fn of_argument(argument: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rung| rung.argument() == argument)
    }
}

/// Runs jobs until the input ends: offers with the script of redelay, and takes with `BLPOP`.
pub(crate) fn work(rung: Rung, url: &str) {
    let mut server = redis::Client::open(url).and_then(|client| client.get_connection()).expect("a server");
    let load = redis::cmd("SCRIPT").arg("LOAD").arg(offer_script::text()).query(&mut server);
    let digest: String = load.expect("SCRIPT LOAD");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    match rung {
        Rung::Socket => answer_jobs(&runtime, Socket::connect(url), &digest),
        Rung::RedisRs => {
            let client = redis::Client::open(url).expect("a URL");
            let connection = runtime.block_on(client.get_multiplexed_async_connection());
            answer_jobs(&runtime, connection.expect("a connection"), &digest);
        }
        Rung::Fred => {
            let config = Config::from_url(url).expect("a URL");
            let client = Builder::from_config(config)
                .with_connection_config(|config| config.internal_command_timeout = Duration::from_secs(60))
                .set_policy(ReconnectPolicy::new_constant(0, 100))
                .build()
                .expect("a client");
            runtime.block_on(client.init()).expect("a connection");
            answer_jobs(&runtime, client, &digest);
        }
    }
}

fn answer_jobs<C: Calls>(runtime: &Runtime, mut calls: C, digest: &str) {
    answer(&Reply::default());
    for line in stdin().lines() {
        let job = serde_json::from_str(&line.expect("a readable line")).expect("a job");
        let digest = digest.to_owned();
        // On the threads of the runtime, as the work of a service.
        let run = runtime.spawn(async move { (run(&mut calls, job, &digest).await, calls) });
        let (reply, same) = runtime.block_on(run).expect("a job that does not panic");
        calls = same;
        answer(&reply);
    }
}

async fn run(calls: &mut impl Calls, job: Job, digest: &str) -> Reply {
    let begun = Instant::now();
    let mut count = 0;
    match job {
        Job::Offer(Offer { queue, size, millis, .. }) => {
            while begun.elapsed() < Duration::from_millis(millis) {
                let id: [u8; 16] = fastrand::u128(..).to_le_bytes();
                let text = payload(now() + NOT_SOON as i64 * 1_000, size);
                let mut entry = Vec::with_capacity(25 + size);
                entry.push(id.len() as u8);
                entry.extend(id);
                entry.extend((size as u64).to_le_bytes());
                entry.extend(text.as_bytes());
                let receipt = format!("{:032x}", u128::from_le_bytes(id));
                calls.call(offer_script::call(digest, &queue, &receipt, &entry)).await;
                count += 1;
            }
        }
        Job::Take { queue, takers: 1, count: wanted } => {
            while count < wanted {
                calls.call(["BLPOP", &queue, "0"].map(|word| word.as_bytes().to_vec()).into()).await;
                count += 1;
            }
        }
        Job::Close => {}
        job => return Reply { error: Some(format!("cannot do {job:?}")), ..Reply::default() },
    }
    Reply { count, seconds: begun.elapsed().as_secs_f64(), ..Reply::default() }
}

trait Calls: Send + 'static {
    /// Sends a command and reads its reply.
    ///
    /// # Panics
    /// If there is none, or it is an error.
    fn call(&mut self, words: Vec<Vec<u8>>) -> impl Future<Output = ()> + Send;
}

struct Socket {
    stream: TcpStream,
    parser: redis::Parser,
}

impl Socket {
    fn connect(url: &str) -> Self {
        let address = url.trim_start_matches("redis://").trim_end_matches('/');
        let stream = TcpStream::connect(address).expect("a server");
        stream.set_nodelay(true).expect("a socket");
        Self { stream, parser: redis::Parser::new() }
    }
}

impl Calls for Socket {
    async fn call(&mut self, words: Vec<Vec<u8>>) {
        let mut frame = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            frame.extend(format!("${}\r\n", word.len()).as_bytes());
            frame.extend(word);
            frame.extend(b"\r\n");
        }
        self.stream.write_all(&frame).expect("a connection");
        let reply = self.parser.parse_value(&mut self.stream).expect("a reply");
        reply.extract_error().expect("no error");
    }
}

impl Calls for MultiplexedConnection {
    async fn call(&mut self, words: Vec<Vec<u8>>) {
        let mut command = redis::Cmd::new();
        words.iter().for_each(|word| _ = command.arg(word));
        command.exec_async(self).await.expect("a reply");
    }
}

impl Calls for Client {
    async fn call(&mut self, words: Vec<Vec<u8>>) {
        let mut words = words.into_iter();
        let name = words.next().expect("a name");
        let name = str::from_utf8(&name).expect("a text").to_owned();
        let is_blocking = name == "BLPOP";
        let command = CustomCommand::new(name, ClusterHash::FirstKey, is_blocking);
        let arguments: Vec<Value> = words.map(|word| Value::Bytes(word.into())).collect();
        let _: Value = self.custom(command, arguments).await.expect("a reply");
    }
}
