//! Between the clients and the server: it knows which connection has which role, and mutates replies.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use redelay_support::ms;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::mutation::{is_ragged, mutate};
use redelay_support::resp::{name, split};

/// What a connection is for, by the commands on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Role {
    /// Nothing but the handshakes of the client library and of redelay was sent.
    Connect,
    Commands,
    Pops,
    Subscriber,
}

impl Role {
    fn of(command: &[u8]) -> Self {
        match name(command) {
            b"PING" | b"CLIENT" | b"INFO" | b"SELECT" | b"QUIT" => Self::Connect,
            b"BLPOP" | b"BRPOP" | b"BRPOPLPUSH" => Self::Pops,
            b"SUBSCRIBE" | b"UNSUBSCRIBE" => Self::Subscriber,
            _ => Self::Commands,
        }
    }
}

/// Replies that are kept, to be sent where they do not belong.
const KEPT: usize = 200;
/// So many replies that no command has asked for come together, at most.
const EXTRA: usize = 50;
/// Longer ones are not kept.
const LONGEST: usize = 10_000;

pub(crate) struct Relay {
    port: u16,
    shared: Arc<Shared>,
    accepting: AbortHandle,
}

struct Shared {
    role: Role,
    is_on: AtomicBool,
    mutated: AtomicUsize,
    kept: Mutex<VecDeque<Vec<u8>>>,
    /// Of the role.
    own: Mutex<VecDeque<Vec<u8>>>,
}

impl Shared {
    fn keep(&self, in_role: bool, frame: &[u8]) {
        if frame.len() <= LONGEST {
            let mut kept = if in_role { &self.own } else { &self.kept }.lock().unwrap();
            kept.push_back(frame.to_vec());
            if kept.len() > KEPT {
                kept.pop_front();
            }
        }
    }

    fn mutate(&self, random: &mut Rng, frame: &[u8]) -> Vec<u8> {
        self.mutated.fetch_add(1, Ordering::Relaxed);
        let others = if random.bool() { &self.own } else { &self.kept };
        let others = random.choice(others.lock().unwrap().iter()).cloned();
        mutate(random, frame, others.as_slice())
    }

    /// A mutated reply that no command has asked for.
    fn extra(&self, random: &mut Rng) -> Vec<u8> {
        let frame = random.choice(self.own.lock().unwrap().iter()).cloned();
        frame.map_or_else(Vec::new, |frame| self.mutate(random, &frame))
    }
}

impl Relay {
    /// Attacks the connections in this role, when told to.
    pub(crate) async fn start(server_port: u16, role: Role, seed: u64) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared {
            role,
            is_on: AtomicBool::new(false),
            mutated: AtomicUsize::new(0),
            kept: Mutex::default(),
            own: Mutex::default(),
        });
        let accepting = tokio::spawn({
            let shared = shared.clone();
            let mut random = Rng::with_seed(seed);
            async move {
                loop {
                    match listener.accept().await {
                        Ok((client, _)) => {
                            drop(tokio::spawn(relay(client, server_port, shared.clone(), random.fork())))
                        }
                        Err(_) => sleep(ms(10)).await,
                    }
                }
            }
        })
        .abort_handle();
        Self { port, shared, accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn attack(&self, on: bool) {
        self.shared.is_on.store(on, Ordering::SeqCst);
    }

    pub(crate) fn count(&self) -> usize {
        self.shared.mutated.load(Ordering::Relaxed)
    }

    /// Waits until so many replies were mutated.
    pub(crate) async fn mutated(&self, count: usize) {
        let (mut last, mut since) = (0, Instant::now());
        while self.count() < count {
            sleep(ms(20)).await;
            if self.count() > last {
                (last, since) = (self.count(), Instant::now());
            }
            assert!(since.elapsed() < Duration::from_secs(60), "no reply for a minute, after {last}");
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// What both directions of a connection know.
struct Both {
    shared: Arc<Shared>,
    role: AtomicU8,
    /// A blocking pop was sent: it need not wait.
    popped: Notify,
}

impl Both {
    fn is_attacked(&self) -> bool {
        self.role.load(Ordering::Relaxed) == self.shared.role as u8
            && self.shared.is_on.load(Ordering::Relaxed)
    }
}

async fn relay(client: TcpStream, server_port: u16, shared: Arc<Shared>, random: Rng) {
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server_port)).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let both = Both { shared, role: AtomicU8::new(Role::Connect as u8), popped: Notify::new() };
    tokio::select! {
        _ = commands(from_client, to_server, &both) => {}
        _ = replies(from_server, to_client, &both, random) => {}
    }
}

async fn commands(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, both: &Both) -> std::io::Result<()> {
    let (mut bytes, mut buffer) = (vec![0; 16 << 10], Vec::new());
    loop {
        let read = from.read(&mut bytes).await?;
        if read == 0 {
            return Ok(());
        }
        buffer.extend(&bytes[..read]);
        for command in split(&mut buffer) {
            match Role::of(&command) {
                Role::Connect => {}
                role => both.role.store(role as u8, Ordering::Relaxed),
            }
            if Role::of(&command) == Role::Pops {
                both.popped.notify_one();
            }
        }
        to.write_all(&bytes[..read]).await?;
    }
}

async fn replies(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    both: &Both,
    mut random: Rng,
) -> std::io::Result<()> {
    let shared = &both.shared;
    let (mut bytes, mut buffer) = (vec![0; 16 << 10], Vec::new());
    // Set when the client waits for the rest of a frame: usually it need not wait for long.
    let mut cut = None;
    loop {
        let mut out = Vec::new();
        tokio::select! {
            read = from.read(&mut bytes) => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                buffer.extend(&bytes[..read]);
                let frames = split(&mut buffer);
                if frames.is_empty() {
                    continue;
                }
                let attacked = both.is_attacked();
                for frame in frames {
                    shared.keep(both.role.load(Ordering::Relaxed) == shared.role as u8, &frame);
                    match attacked && random.u8(..2) == 0 {
                        true => out.push(shared.mutate(&mut random, &frame)),
                        false => out.push(frame),
                    }
                }
                if attacked && random.u8(..3) == 0 {
                    out.extend((0..random.usize(1..EXTRA)).map(|_| shared.extra(&mut random)));
                }
            }
            () = both.popped.notified(), if both.is_attacked() => {
                let count = if random.u8(..4) == 0 { random.usize(1..EXTRA) } else { 1 };
                out.extend((0..count).map(|_| shared.extra(&mut random)));
            }
            // Messages come whenever they like.
            () = sleep(ms(2)), if shared.role == Role::Subscriber && both.is_attacked() => {
                out.extend((0..random.usize(1..EXTRA)).map(|_| shared.extra(&mut random)));
            }
            () = async { sleep_until(cut.unwrap_or_else(Instant::now)).await }, if cut.is_some() => return Ok(()),
        }
        if both.is_attacked()
            && cut.is_none()
            && out.iter().any(|frame| is_ragged(frame))
            && random.u8(..50) > 0
        {
            cut = Some(Instant::now() + ms(random.u64(1..10)));
        }
        to.write_all(&out.concat()).await?;
    }
}
