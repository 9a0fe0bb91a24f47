//! What a caller sees when a server refuses a command for now, or sends it to another server, and how often
//! the command is executed.
//!
//! A [`Gate`] in front of a real server refuses chosen commands, as a server in such a state would. So the
//! servers of all versions say the same, at the right moment.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use redelay::{Client, Error, ErrorKind, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::resp::{name, split};
use redelay_support::{HOUR, MINUTE, ms, soon};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// Two addresses of one server. It says of itself that it is at one of them.
struct Gate {
    server: Server,
    ports: [u16; 2],
    shared: Arc<Shared>,
    accepting: Vec<AbortHandle>,
}

struct Shared {
    server_port: u16,
    /// Where the server says that it is.
    announced: AtomicU16,
    refusal: Mutex<Refusal>,
}

/// Which commands are refused, and what became of them.
#[derive(Default)]
struct Refusal {
    /// All commands that contain this.
    marks: Vec<Vec<u8>>,
    error: String,
    /// How many are refused.
    times: usize,
    refused: usize,
    /// The number of commands of this kind that the server got.
    executed: usize,
    /// Where the server says that it is from the first refusal on.
    announces: Option<u16>,
}

impl Shared {
    /// The error that answers a command, unless the server is to execute it.
    fn refuse(&self, command: &[u8]) -> Option<String> {
        let refusal = &mut *self.refusal.lock().unwrap();
        let has = |mark: &Vec<u8>| command.windows(mark.len()).any(|part| part == mark);
        if refusal.marks.is_empty() || !refusal.marks.iter().all(has) {
            return None;
        }
        if refusal.refused == refusal.times {
            refusal.executed += 1;
            return None;
        }
        refusal.refused += 1;
        if let Some(port) = refusal.announces {
            self.announced.store(port, Ordering::SeqCst);
        }
        Some(format!("-{}\r\n", refusal.error))
    }

    /// A reply in which the server names itself.
    fn announce(&self, reply: &[u8]) -> Vec<u8> {
        let from = format!(":{}", self.server_port);
        let to = format!(":{}", self.announced.load(Ordering::SeqCst));
        assert_eq!(from.len(), to.len(), "or the lengths in the reply would be wrong");
        let text = String::from_utf8(reply.to_vec()).expect("a text");
        text.replace(&from, &to).into_bytes()
    }
}

impl Gate {
    async fn start(is_cluster: bool) -> Self {
        let server = tokio::task::block_in_place(|| match is_cluster {
            true => Server::builder().cluster().start(),
            false => Server::builder().config("cluster-enabled no").unix_socket().start(),
        });
        let listen = async || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let listeners = [listen().await, listen().await];
        let ports = listeners.each_ref().map(|listener| listener.local_addr().expect("an address").port());
        let shared = Arc::new(Shared {
            server_port: server.port(),
            announced: AtomicU16::new(ports[0]),
            refusal: Mutex::default(),
        });
        let accept = |listener: TcpListener| {
            let shared = shared.clone();
            let accepting = async move {
                while let Ok((client, _)) = listener.accept().await {
                    tokio::spawn(relay(client, shared.clone()));
                }
            };
            tokio::spawn(accepting).abort_handle()
        };
        let accepting = listeners.into_iter().map(accept).collect();
        Self { server, ports, shared, accepting }
    }

    fn url(&self) -> String {
        let scheme = if self.server.is_cluster() { "redis-cluster" } else { "redis" };
        format!("{scheme}://127.0.0.1:{}", self.ports[0])
    }

    /// Refuses the next `times` commands that contain all of the marks.
    fn refuse(&self, marks: &[&[u8]], error: &str, times: usize) {
        let other = self.ports.into_iter().find(|port| *port != self.shared.announced.load(Ordering::SeqCst));
        let slot = match (self.server.is_cluster(), error.contains("{slot}")) {
            (true, true) => self.server.get([b"CLUSTER".as_slice(), b"KEYSLOT", marks[0]]),
            _ => 7,
        };
        let (slot, port) = (slot.to_string(), other.expect("another port").to_string());
        *self.shared.refusal.lock().unwrap() = Refusal {
            marks: marks.iter().map(|mark| mark.to_vec()).collect(),
            error: error.replace("{slot}", &slot).replace("{server}", &format!("127.0.0.1:{port}")),
            times,
            announces: error.starts_with("MOVED").then_some(other).flatten(),
            ..Refusal::default()
        };
    }

    fn refuse_nothing(&self) {
        *self.shared.refusal.lock().unwrap() = Refusal::default();
    }

    /// How many of them were refused, and how many the server got.
    fn counts(&self) -> (usize, usize) {
        let refusal = self.shared.refusal.lock().unwrap();
        (refusal.refused, refusal.executed)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.accepting.iter().for_each(AbortHandle::abort);
    }
}

/// One command after the other, each with its reply.
async fn relay(mut client: TcpStream, shared: Arc<Shared>) -> std::io::Result<()> {
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.server_port)).await?;
    let (mut commands, mut replies) = (Vec::new(), Vec::new());
    let mut bytes = vec![0; 64 << 10];
    loop {
        // Some may have arrived while another one waited for its reply.
        let mut ready = split(&mut commands).into_iter();
        if ready.len() == 0 {
            match client.read(&mut bytes).await? {
                0 => return Ok(()),
                read => commands.extend(&bytes[..read]),
            }
            continue;
        }
        while let Some(command) = ready.next() {
            if name(&command) == b"SUBSCRIBE" {
                // Messages come without a command.
                server.write_all(&command).await?;
                server.write_all(&ready.collect::<Vec<_>>().concat()).await?;
                server.write_all(&commands).await?;
                return copy_bidirectional(&mut client, &mut server).await.map(drop);
            }
            if let Some(error) = shared.refuse(&command) {
                client.write_all(error.as_bytes()).await?;
                continue;
            }
            server.write_all(&command).await?;
            let reply = loop {
                if let Some(reply) = split(&mut replies).into_iter().next() {
                    break reply;
                }
                let mut more = [0; 4096];
                tokio::select! {
                    read = server.read(&mut bytes) => match read? {
                        0 => return Ok(()),
                        read => replies.extend(&bytes[..read]),
                    },
                    // A pop that blocks ends with its connection.
                    read = client.read(&mut more) => match read? {
                        0 => return Ok(()),
                        read => commands.extend(&more[..read]),
                    },
                }
            };
            let reply = if name(&command) == b"CLUSTER" { shared.announce(&reply) } else { reply };
            client.write_all(&reply).await?;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// Not executed, and it says so.
    Unavailable,
    /// It may have been executed.
    Unknown,
    /// No retry helps.
    Refused,
}

impl Outcome {
    fn of<T>(result: &Result<T, Error>) -> Self {
        match result.as_ref().map_err(Error::kind) {
            Ok(_) => Self::Done,
            Err(ErrorKind::Unavailable) => Self::Unavailable,
            Err(ErrorKind::OutcomeUnknown) => Self::Unknown,
            Err(ErrorKind::Refused) => Self::Refused,
            Err(kind) => panic!("{kind:?}"),
        }
    }
}

const MOVED: &str = "MOVED {slot} {server}";
const MOVED_IN_SCRIPT: &str = "MOVED {slot} {server} script: 0c1b, on @user_script:3.";
const ASK: &str = "ASK {slot} {server}";
const TRYAGAIN: &str = "TRYAGAIN Multiple keys request during rehashing of slot";
const CLUSTERDOWN: &str = "CLUSTERDOWN The cluster is down";
const LOADING: &str = "LOADING Redis is loading the dataset in memory";
const READONLY: &str = "READONLY You can't write against a read only replica.";
const READONLY_IN_SCRIPT: &str =
    "READONLY You can't write against a read only replica. script: 0c1b, on @user_script:3.";
/// Of Redis 6.2.
const OLD_READONLY_IN_SCRIPT: &str = "ERR Error running script (call to f_0c1b): @user_script:3: @user_script: 3: -READONLY You can't write against a read only replica.";
const MASTERDOWN: &str = "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
const NOREPLICAS: &str = "NOREPLICAS Not enough good replicas to write.";
const UNBLOCKED: &str =
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";

/// Outcomes of `offer`, `put`, `take` and `ack`; `None` if no server answers that.
type Row = (&'static str, [Option<Outcome>; 4]);

/// A single server is at the same address when it is the master again.
const ONE_SERVER: [Row; 8] = {
    use Outcome::{Done, Refused, Unavailable};
    [
        // It belongs to a cluster.
        (MOVED, [Some(Refused); 4]),
        (TRYAGAIN, [Some(Refused), None, None, Some(Refused)]),
        (LOADING, [Some(Done), Some(Unavailable), Some(Done), Some(Done)]),
        (READONLY, [Some(Done), Some(Unavailable), Some(Done), Some(Done)]),
        (READONLY_IN_SCRIPT, [Some(Done), None, None, Some(Done)]),
        (OLD_READONLY_IN_SCRIPT, [Some(Done), None, None, Some(Done)]),
        (MASTERDOWN, [Some(Done), Some(Unavailable), Some(Done), Some(Done)]),
        (NOREPLICAS, [Some(Done), Some(Unavailable), Some(Done), Some(Done)]),
    ]
};

/// In a cluster, what was sent to the wrong server is sent again, whatever it is.
const CLUSTER: [Row; 12] = {
    use Outcome::{Done, Unavailable, Unknown};
    [
        (MOVED, [Some(Done); 4]),
        (MOVED_IN_SCRIPT, [Some(Done), None, None, Some(Done)]),
        (ASK, [Some(Done); 4]),
        (TRYAGAIN, [Some(Done), None, None, Some(Done)]),
        // The client library ends the connection, with all that is in flight.
        (CLUSTERDOWN, [Some(Done), Some(Unknown), Some(Done), Some(Done)]),
        (LOADING, [Some(Done); 4]),
        (READONLY, [Some(Done); 4]),
        (READONLY_IN_SCRIPT, [Some(Done), None, None, Some(Done)]),
        (OLD_READONLY_IN_SCRIPT, [Some(Done), None, None, Some(Done)]),
        (MASTERDOWN, [Some(Done); 4]),
        // No other server would execute it.
        (NOREPLICAS, [Some(Done), Some(Unavailable), Some(Done), Some(Done)]),
        (UNBLOCKED, [None, None, Some(Done), None]),
    ]
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_refuses_once() {
    refuses(false, &ONE_SERVER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_a_cluster_that_refuses_once() {
    refuses(true, &CLUSTER).await;
}

async fn refuses(is_cluster: bool, rows: &[Row]) {
    let gate = Gate::start(is_cluster).await;
    let client = Client::connect(&gate.url()).await.unwrap();
    // From now on the server knows the scripts.
    let warm = client.blocking_queue("warm", codec::Long);
    client.delayed_queue(&warm).offer(&1, ms(1)).await.unwrap();
    soon(warm.receiver().receive()).await.unwrap().ack().await.unwrap();
    let mut wrong = Vec::new();
    for (number, (error, outcomes)) in rows.iter().enumerate() {
        for (call, expected) in ["offer", "put", "take", "ack"].into_iter().zip(outcomes) {
            let Some(expected) = *expected else { continue };
            let expected = (expected, 1, usize::from(expected == Outcome::Done));
            let mut found = expected;
            for attempt in 0..3 {
                // The name is a mark of the commands, too.
                let queue = format!("{call}-{number}-{attempt}-q");
                found = soon(refused_once(&gate, &client, call, &queue, error)).await;
                if found == expected {
                    break;
                }
                // After MOVED, an answer that was on its way may name the old address once more. Then the
                // connection is given up, with all that is in flight.
                tokio::time::sleep(ms(500)).await;
            }
            if found != expected {
                wrong.push(format!("{call}, {error}: {found:?} and not {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "outcome, refused, executed: {wrong:#?}");
    client.shutdown().await;
}

/// Makes a call that the server refuses once. Returns its outcome, how often it was refused, and how often it
/// was executed.
async fn refused_once(
    gate: &Gate,
    client: &Client,
    call: &str,
    name: &str,
    error: &str,
) -> (Outcome, usize, usize) {
    let (server, mark) = (&gate.server, name.as_bytes());
    let ready = client.blocking_queue(name, codec::Long);
    let delayed = client.delayed_queue(&ready);
    let length = |key: String| server.get::<usize, _>(["LLEN", &key]);
    let (outcome, effects) = match call {
        "offer" => {
            delayed.len().await.unwrap();
            gate.refuse(&[mark, b"777777"], error, 1);
            let outcome = Outcome::of(&delayed.offer(&777_777, HOUR).await);
            (outcome, length(format!("redisson_delay_queue:{{{name}}}")))
        }
        "put" => {
            gate.refuse(&[mark, b"RPUSH"], error, 1);
            let outcome = Outcome::of(&ready.put(&777_777).await);
            (outcome, length(name.to_owned()))
        }
        "take" => {
            gate.refuse(&[mark, b"BLPOP"], error, 1);
            let taking = tokio::spawn(async move { ready.take().await });
            until_async("it is refused, or waits", || async {
                taking.is_finished() || server.blocked_clients() == 1
            })
            .await;
            server.cmd(["RPUSH", name, "777777"]);
            let outcome = Outcome::of(&taking.await.unwrap());
            (outcome, 1 - length(name.to_owned()))
        }
        _ => {
            server.cmd(["RPUSH", name, "777777"]);
            let receiver = ready.receiver();
            let delivery = receiver.receive().await.unwrap();
            let id: Vec<Vec<u8>> = server.get(["HKEYS", &format!("redelay:messages:{{{name}}}")]);
            gate.refuse(&[mark, &id[0]], error, 1);
            let outcome = Outcome::of(&delivery.ack().await);
            let left: usize = server.get(["HLEN", &format!("redelay:messages:{{{name}}}")]);
            (outcome, 1 - left)
        }
    };
    let (refused, executed) = gate.counts();
    assert_eq!(
        effects,
        executed.min(1),
        "{call}, {error}: what was executed has an effect, and nothing else has"
    );
    gate.refuse_nothing();
    (outcome, refused, executed)
}

/// A server that refuses until the command timeout is over: the error says whether anything may have been
/// executed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_a_cluster_that_goes_on_refusing() {
    use Outcome::{Unavailable, Unknown};
    let gate = Gate::start(true).await;
    let builder = Client::builder().url(gate.url()).command_timeout(ms(600));
    let client = builder.connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    delayed.offer(&1, HOUR).timeout(MINUTE).await.unwrap();
    let rows = [
        (MOVED, Unavailable),
        (ASK, Unavailable),
        (TRYAGAIN, Unavailable),
        // Whatever the client library says of what was in flight counts, and not what the server says.
        (CLUSTERDOWN, Unknown),
        (LOADING, Unavailable),
        (READONLY, Unavailable),
        (MASTERDOWN, Unavailable),
        (NOREPLICAS, Unavailable),
    ];
    for (error, expected) in rows {
        gate.refuse(&[b"q", b"777777"], error, usize::MAX);
        let is_connected = || async { client.stats().connected };
        // The refusal may end the connection, and a call that has just been written to it is unknown then: on
        // a busy machine, that may be this one.
        for tries in 1.. {
            let offered = Outcome::of(&soon(async { delayed.offer(&777_777, HOUR).await }).await);
            until_async("it is connected", is_connected).await;
            let put = Outcome::of(&soon(ready.put(&777_777)).await);
            let both = [offered, put];
            if both == [expected; 2] {
                break;
            }
            assert!(both.iter().all(|one| [expected, Unknown].contains(one)), "{error}: {both:?}");
            assert!(tries < 10, "{error}: {both:?}");
            until_async("it is connected", is_connected).await;
        }
        assert_eq!(gate.counts().1, 0, "{error}: nothing is executed");
        gate.refuse_nothing();
        until_async("it is connected", is_connected).await;
    }
    let patient = client.with_timeout(MINUTE);
    let ready = patient.blocking_queue("q", codec::Long);
    let delayed = patient.delayed_queue(&ready);
    assert_eq!((delayed.len().await.unwrap(), ready.len().await.unwrap()), (1, 0));
    client.shutdown().await;
}
