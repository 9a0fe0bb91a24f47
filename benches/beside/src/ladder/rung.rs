//! A client that does less than redelay: this program, which starts itself again. One call is in flight.

use std::io::{Write, stdin};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use fred::prelude::{Builder, Client, ClientLike, Config, ReconnectPolicy};
use fred::types::{ClusterHash, CustomCommand, Value};
use redis::aio::MultiplexedConnection;
use tokio::runtime::Runtime;

use crate::job::{Job, NOT_SOON, Offer, Receive, Reply, now, payload};
use crate::redelay::answer;
use crate::scripts;

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

/// The digests of the scripts.
#[derive(Clone)]
struct Digests {
    offer: String,
    receive: String,
}

/// Runs jobs until the input ends: offers and receives with the scripts of redelay, and takes with `BLPOP`.
pub(crate) fn work(rung: Rung, url: &str) {
    let mut server = Socket::connect(url);
    let digests = Digests { offer: server.load("OFFER"), receive: server.load("RECEIVE") };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    match rung {
        Rung::Socket => answer_jobs(&runtime, Socket::connect(url), &digests),
        Rung::RedisRs => {
            let client = redis::Client::open(url).expect("a URL");
            let connection = runtime.block_on(client.get_multiplexed_async_connection());
            answer_jobs(&runtime, connection.expect("a connection"), &digests);
        }
        Rung::Fred => {
            let config = Config::from_url(url).expect("a URL");
            let client = Builder::from_config(config)
                .with_connection_config(|config| config.internal_command_timeout = Duration::from_secs(60))
                .set_policy(ReconnectPolicy::new_constant(0, 100))
                .build()
                .expect("a client");
            runtime.block_on(client.init()).expect("a connection");
            answer_jobs(&runtime, client, &digests);
        }
    }
}

fn answer_jobs<C: Calls>(runtime: &Runtime, mut calls: C, digests: &Digests) {
    answer(&Reply::default());
    for line in stdin().lines() {
        let job = serde_json::from_str(&line.expect("a readable line")).expect("a job");
        let digests = digests.clone();
        // On the threads of the runtime, as the work of a service.
        let run = runtime.spawn(async move { (run(&mut calls, job, &digests).await, calls) });
        let (reply, same) = runtime.block_on(run).expect("a job that does not panic");
        calls = same;
        answer(&reply);
    }
}

async fn run(calls: &mut impl Calls, job: Job, digests: &Digests) -> Reply {
    let begun = Instant::now();
    let mut count = 0;
    match job {
        Job::Offer(Offer { queue, size, millis, .. }) => {
            while begun.elapsed() < Duration::from_millis(millis) {
                calls.call(offer(&digests.offer, &queue, size, NOT_SOON)).await;
                count += 1;
            }
        }
        Job::Take { queue, takers: 1, count: wanted } => {
            while count < wanted {
                calls.call(pop(&queue)).await;
                count += 1;
            }
        }
        Job::Receive(Receive { queue, by_hand, concurrency: 1, count: wanted }) => {
            let mut done: Option<Vec<u8>> = None;
            // Above that of any call before.
            let mut token = (now() as u128) << 32;
            let mut claim = async |acks: &[Vec<u8>], most| {
                token += 1 << 32;
                let reply = calls.call(scripts::receive(&digests.receive, &queue, token, acks, most)).await;
                claimed(reply)
            };
            while count < wanted {
                let acks = done.take();
                let member = claim(acks.as_slice(), 1).await.expect("a message");
                match by_hand {
                    true => _ = claim(&[member], 0).await,
                    false => done = Some(member),
                }
                count += 1;
            }
            if let Some(last) = done {
                claim(&[last], 0).await;
            }
        }
        Job::Close => {}
        job => return Reply { error: Some(format!("cannot do {job:?}")), ..Reply::default() },
    }
    Reply { count, seconds: begun.elapsed().as_secs_f64(), ..Reply::default() }
}

/// The call that offers a payload of this size with this delay, ms.
pub(super) fn offer(digest: &str, queue: &str, size: usize, delay: u64) -> Vec<Vec<u8>> {
    let id: [u8; 16] = fastrand::u128(..).to_le_bytes();
    let text = payload(now() + delay as i64 * 1_000, size);
    let mut entry = Vec::with_capacity(25 + size);
    entry.push(id.len() as u8);
    entry.extend(id);
    entry.extend((size as u64).to_le_bytes());
    entry.extend(text.as_bytes());
    let receipt = format!("{:032x}", u128::from_le_bytes(id));
    scripts::offer(digest, queue, &receipt, delay, &entry)
}

pub(super) fn pop(queue: &str) -> Vec<Vec<u8>> {
    ["BLPOP", queue, "0"].map(|word| word.as_bytes().to_vec()).into()
}

/// The delivery that a reply to `receive` brings. Its first words are numbers, a refusal, and settlements.
fn claimed(reply: redis::Value) -> Option<Vec<u8>> {
    const BEFORE: usize = 3;
    let redis::Value::Array(words) = reply else { panic!("{reply:?} is no reply to `receive`") };
    let [redis::Value::BulkString(id), redis::Value::BulkString(record), ..] = words.get(BEFORE..)? else {
        return None;
    };
    // Behind the version, the record has the number of the delivery.
    Some([id, &record[1..5]].concat())
}

trait Calls: Send + 'static {
    /// Sends a command and reads its reply.
    ///
    /// # Panics
    /// If there is none, or it is an error.
    fn call(&mut self, words: Vec<Vec<u8>>) -> impl Future<Output = redis::Value> + Send;
}

pub(super) struct Socket {
    stream: TcpStream,
    parser: redis::Parser,
}

impl Socket {
    pub(super) fn connect(url: &str) -> Self {
        let address = url.trim_start_matches("redis://").trim_end_matches('/');
        let stream = TcpStream::connect(address).expect("a server");
        stream.set_nodelay(true).expect("a socket");
        Self { stream, parser: redis::Parser::new() }
    }

    /// Loads a script. Returns its digest.
    pub(super) fn load(&mut self, name: &str) -> String {
        let load = ["SCRIPT", "LOAD", &scripts::text(name)].map(|word| word.as_bytes().to_vec());
        redis::from_redis_value(self.call(load.into())).expect("a digest")
    }

    /// As [`Calls::call`], without a runtime.
    pub(super) fn call(&mut self, words: Vec<Vec<u8>>) -> redis::Value {
        let mut frame = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            frame.extend(format!("${}\r\n", word.len()).as_bytes());
            frame.extend(word);
            frame.extend(b"\r\n");
        }
        self.stream.write_all(&frame).expect("a connection");
        let reply = self.parser.parse_value(&mut self.stream).expect("a reply");
        reply.extract_error().expect("no error")
    }
}

impl Calls for Socket {
    async fn call(&mut self, words: Vec<Vec<u8>>) -> redis::Value {
        Socket::call(self, words)
    }
}

impl Calls for MultiplexedConnection {
    async fn call(&mut self, words: Vec<Vec<u8>>) -> redis::Value {
        let mut command = redis::Cmd::new();
        words.iter().for_each(|word| _ = command.arg(word));
        command.query_async(self).await.expect("a reply")
    }
}

impl Calls for Client {
    async fn call(&mut self, words: Vec<Vec<u8>>) -> redis::Value {
        let mut words = words.into_iter();
        let name = words.next().expect("a name");
        let name = str::from_utf8(&name).expect("a text").to_owned();
        let is_blocking = name == "BLPOP";
        let command = CustomCommand::new(name, ClusterHash::FirstKey, is_blocking);
        let arguments: Vec<Value> = words.map(|word| Value::Bytes(word.into())).collect();
        value(self.custom(command, arguments).await.expect("a reply"))
    }
}

/// The same reply as the other clients return it.
fn value(value: Value) -> redis::Value {
    match value {
        Value::Integer(number) => redis::Value::Int(number),
        Value::String(text) => redis::Value::BulkString(text.as_bytes().to_vec()),
        Value::Bytes(bytes) => redis::Value::BulkString(bytes.to_vec()),
        Value::Array(values) => redis::Value::Array(values.into_iter().map(self::value).collect()),
        Value::Null => redis::Value::Nil,
        other => panic!("a reply of another kind: {other:?}"),
    }
}
