//! A plan of one run: its clients, their work, and the faults. It is pure data, made from a seed.

use std::collections::HashSet;
use std::time::Duration;

use fastrand::Rng;
use redelay_support::{MINUTE, Part};

use crate::consumers::{Consumer, How};
use crate::workload::{COMMAND_TIMEOUT, Crew, Member, Producer, Taker};

/// One run. The same seed makes the same plan, but the timing differs from run to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Whether the server keeps an append-only file.
    pub(crate) is_durable: bool,
    pub(crate) crew: Crew,
    pub(crate) steps: Vec<Step>,
    /// Whether the server's clock is set after the last fault, so that everything is due.
    pub(crate) catches_up: bool,
    /// Whether pause and limits of the receivers change all the time.
    pub(crate) changes_limits: bool,
}

/// One fault, and the pause between the end of the previous one and its start.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) after: Duration,
    pub(crate) fault: Fault,
    pub(crate) lasts: Duration,
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The server ends connections of this kind, again and again.
    Kill(Kind),
    /// The network ends all connections, once.
    Cut,
    /// ... and accepts no new ones for a while.
    Refuse,
    /// Nothing passes for a while, then everything does.
    BlackHole,
    /// The open connections fall silent for ever. New ones work.
    Strand,
    /// The same, but the clients see an end.
    HangUp,
    /// Connections that are idle for a moment are dropped, and neither side learns of it.
    ForgetIdle,
    /// No reply comes on a connection any more on which the text of a script was sent.
    SwallowBehind,
    /// Commands arrive, their replies do not, and then the connections end.
    LoseReplies,
    /// Each connection ends after this number of reply bytes.
    Truncate(usize),
    Delay(Duration),
    /// `kill -9`, and a start after a while.
    KillServer,
    /// An orderly shutdown, and a start after a while.
    StopServer,
    /// SIGSTOP, and SIGCONT.
    Freeze,
    /// The server forgets the scripts, again and again.
    ScriptFlush,
    /// CLIENT PAUSE.
    Pause,
    /// The server has no memory for writes.
    OutOfMemory,
    /// The server becomes a replica of a server that does not exist, and then a master again.
    Demote,
    /// A key holds a value of another type.
    WrongType(Key),
    /// Each connection gets bytes that the server has not sent, again and again.
    Inject(Injected),
    /// Unreadable entries, of each length with this remainder modulo four.
    Poison(usize),
    /// The clients' user lacks permissions. It gets them back one after the other.
    Forbid(Commands),
    /// The clients' user may not announce.
    Silence(Silence),
    /// The server's clock is set so that it is this number of seconds ahead.
    SetClock(i64),
    /// Somebody deletes a key; if it is needed after a lost reply, while replies are lost.
    Delete(Key),
    /// All connections are replaced, and the server does not know this command.
    Lack(&'static str),
}

/// One to four commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Commands([Option<&'static str>; 4]);

impl Commands {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().copied().flatten()
    }
}

/// What the clients' user may not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// Use PUBLISH.
    Publish,
    /// Use any channel. The server ends the connections of subscribers.
    Channels,
    /// Use the channel of new heads.
    Heads,
    /// Use the channel of transfers.
    Transfers,
}

/// Every command that the clients of a plan use, in scripts and elsewhere.
const COMMANDS: [&str; 35] = [
    "blpop",
    "client",
    "del",
    "eval",
    "evalsha",
    "get",
    "hdel",
    "hget",
    "hset",
    "info",
    "llen",
    "lpush",
    "lrange",
    "lrem",
    "lset",
    "ltrim",
    "pexpire",
    "ping",
    "pttl",
    "publish",
    "rpush",
    "set",
    "subscribe",
    "time",
    "type",
    "unsubscribe",
    "zadd",
    "zcard",
    "zcount",
    "zrange",
    "zrem",
    "zremrangebyrank",
    "zscore",
    // Categories, with which many are missing at once.
    "@write",
    "@pubsub",
];
/// Those that receivers use.
const MESSAGE_COMMANDS: [&str; 22] = [
    "blmove",
    "client",
    "eval",
    "evalsha",
    "hdel",
    "hget",
    "hmget",
    "hscan",
    "hset",
    "lpush",
    "lrange",
    "ltrim",
    "rpoplpush",
    "time",
    "zadd",
    "zmscore",
    "zrange",
    "zrangebyscore",
    "zrem",
    "zscore",
    "@hash",
    "@sortedset",
];
/// Those that the clients send outside scripts, and subcommands.
const LACKED: [&str; 18] = [
    "BLPOP",
    "CLIENT",
    "ID",
    "SETNAME",
    "KILL",
    "UNBLOCK",
    "DEL",
    "EVAL",
    "EVALSHA",
    "HDEL",
    "INFO",
    "LLEN",
    "PING",
    "PUBLISH",
    "ROLE",
    "RPUSH",
    "SUBSCRIBE",
    "UNSUBSCRIBE",
];
/// Clocks are set by no more than this number of seconds.
pub(crate) const FARTHEST: i64 = 7200;

/// What the server has not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Injected {
    /// One of [`REPLIES`].
    Reply(&'static str),
    /// An announcement of this head.
    Head(&'static str),
    /// The message of a transfer that nobody has made.
    Transfer(&'static str),
}

/// Replies that a client can tell from its own. It cannot tell an error that answers an offer, a payload of
/// the right list, and a nil for a pop that it has just interrupted.
const REPLIES: [&str; 12] = [
    // No reply at all.
    "HTTP/1.1 400 Bad Request\r\n\r\n",
    // Those that no command has.
    "#t\r\n",
    ">2\r\n+message\r\n+a\r\n",
    "*3\r\n+message\r\n*0\r\n*0\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    "*2\r\n$5\r\nother\r\n$1\r\nx\r\n",
    "*3\r\n+unsubscribe\r\n$-1\r\n:0\r\n",
    // Those that some commands have.
    ":1\r\n",
    "+OK\r\n",
    "*0\r\n",
    // The beginnings of replies that do not end. Only the watchdogs notice them.
    "$536870912\r\n",
    "*1000000\r\n",
];
/// Heads that are long past, far, and no times.
const HEADS: [&str; 6] = ["0", "1795249257299", "999999999999999", "inf", "-1e308", "x"];
/// Messages with clocks and heads of that kind.
const TRANSFERS: [&str; 5] =
    ["x 1 2", "x 9007199254740992 9223372036854775807", "x 9007199254740992 ", "x 1 inf", "x"];
/// How often clients look for what nobody has announced, in a plan that keeps announcements from them.
/// Usually they do it once a minute, which is longer than a plan may take.
pub(crate) const SOON: Duration = Duration::from_secs(4);

/// The kind of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Commands,
    Blocking,
    Subscribers,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Target,
    TimeoutSet,
    OrderedList,
    Quarantine,
    Inbox,
    Messages,
    Leases,
    Retries,
    Receipts,
    Dead,
    DeadMessages,
    Control,
    Jobs,
    Popped,
    /// All of this kind, as the two below.
    Offered,
    Returned,
    Throttles,
}

/// Side keys of everybody.
const SIDE_KEYS: [Key; 3] = [Key::Popped, Key::Offered, Key::Returned];
const KEYS: [Key; 4] = [Key::Target, Key::TimeoutSet, Key::OrderedList, Key::Quarantine];
/// Those of receivers.
const MESSAGE_KEYS: [Key; 8] = [
    Key::Inbox,
    Key::Messages,
    Key::Leases,
    Key::Retries,
    Key::Receipts,
    Key::Dead,
    Key::DeadMessages,
    Key::Control,
];

/// A single receiver holds some messages for a second: it is too slow for a backlog.
const QUICK: Consumer =
    Consumer { how: How::Works(8), lease: Duration::from_secs(3), attempts: 10, extends: true };

/// What receivers of different processes have at the same time, in ms. What is left of the longest is in the
/// bound of a plan.
const LEASES: [u64; 7] = [300, 1_000, 3_000, 500, 2_000, 4_000, 6_000];

/// Unreadable entries are shorter than this.
pub(crate) const LONGEST_POISON: usize = 300;

impl Plan {
    pub(crate) fn of_seed(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let clients = members(&mut random);
        let steps = (0..random.usize(1..=4)).map(|number| step(&mut random, number)).collect();
        let is_durable = random.u8(0..4) > 0;
        let most = if is_slow(&clients) { 300 } else { 1_500 };
        let backlog = if random.u8(0..4) == 0 { random.usize(100..most) } else { 0 };
        let mut plan = Self {
            is_durable,
            crew: Crew { seed, backlog, distant: Vec::new(), clients, others: 0 },
            steps,
            catches_up: random.bool(),
            changes_limits: false,
        };
        if plan.sets_clock() {
            let delay = |_| Duration::from_secs(random.u64(300..FARTHEST as u64));
            plan.crew.distant = (0..100).map(delay).collect();
        }
        if plan.misses_announcements() {
            plan.crew.clients.iter_mut().for_each(|member| member.sweep_interval = SOON);
        }
        if random.bool() {
            plan.receives(&mut random);
        }
        // Nobody else returns much.
        if plan.deletes(Key::Returned)
            && let Some(member) = plan.crew.clients.iter_mut().find(|member| !member.takers.is_empty())
        {
            member.takers.extend([Taker::Drops; 2]);
        }
        // A client that does everything is woken by its own calls.
        if random.u8(0..3) == 0 {
            plan.crew.divide();
        }
        plan
    }

    /// The same clients without faults.
    pub(crate) fn without_faults(mut self) -> Self {
        self.steps.clear();
        self.crew.distant.clear();
        // On a busy machine, a shorter timeout is a fault: the reply counts as lost.
        for member in &mut self.crew.clients {
            member.command_timeout = Duration::from_secs(10);
        }
        // There, a shorter lease may end, also that of a claim which no program has read.
        for consumer in self.crew.clients.iter_mut().flat_map(|member| &mut member.consumers) {
            consumer.lease = consumer.lease.max(Duration::from_secs(10));
        }
        self
    }

    /// The same plan with a backlog for which the list is rebuilt (`transfer/rebuild.lua`). `None` if the
    /// clients are too slow for that.
    pub(super) fn with_large_backlog(mut self) -> Option<Self> {
        let is_slow = is_slow(&self.crew.clients) || self.has_receivers() || self.sets_clock();
        self.crew.backlog = 12_000;
        // A call of a server that shares its processor may have read too little of the list by the usual one.
        self.crew.clients.iter_mut().for_each(|member| member.budget = Duration::from_secs(1));
        (!is_slow).then_some(self)
    }

    /// The same clients with receivers whose limits change. No fault concerns the key or the commands that
    /// keep the limits: without these, there are none.
    pub(super) fn with_limits(mut self) -> Self {
        let mut random = Rng::with_seed(self.crew.seed);
        if !self.has_receivers() {
            self.receives(&mut random);
        }
        for step in &mut self.steps {
            let concerns_limits = match &step.fault {
                Fault::WrongType(key) | Fault::Delete(key) => *key == Key::Control,
                Fault::Forbid(commands) => {
                    commands.iter().any(|command| ["hmget", "@hash"].contains(&command))
                }
                _ => false,
            };
            if concerns_limits {
                step.fault = Fault::LoseReplies;
            }
        }
        // For what has come during a pause.
        self.crew.clients[0].consumers.push(QUICK);
        self.changes_limits = true;
        self
    }

    /// Adds receivers, workers and takers that use another library. Faults may concern the receivers' keys
    /// and commands.
    fn receives(&mut self, random: &mut Rng) {
        let crew = &mut self.crew;
        crew.others = [0, 0, 1, 2][random.usize(0..4)];
        let members = crew.clients.len();
        let first = random.usize(0..members);
        // Without takers, everything is received.
        let takes = random.bool();
        for (number, member) in crew.clients.iter_mut().enumerate() {
            let least = usize::from(number == first);
            member.consumers = (0..random.usize(least..=3)).map(|_| consumer(random)).collect();
            if !takes {
                member.takers.clear();
            }
        }
        if crew.backlog > 0 && crew.clients.iter().map(Member::at_a_time).sum::<usize>() < 4 {
            crew.clients[0].consumers.push(QUICK);
        }
        // They have many keys.
        if random.u8(0..3) == 0 && !matches!(self.steps[0].fault, Fault::SetClock(_)) {
            self.steps[0].fault = Fault::Delete(Key::Messages);
        }
        for step in &mut self.steps {
            match &mut step.fault {
                Fault::WrongType(key) if random.u8(0..4) > 0 => {
                    *key = MESSAGE_KEYS[random.usize(0..MESSAGE_KEYS.len())];
                }
                Fault::Delete(key) => *key = MESSAGE_KEYS[random.usize(0..MESSAGE_KEYS.len())],
                Fault::Forbid(commands) if random.u8(0..4) > 0 => {
                    *commands = some_of(random, &MESSAGE_COMMANDS)
                }
                _ => {}
            }
        }
    }

    pub(crate) fn has_receivers(&self) -> bool {
        self.crew.clients.iter().any(|member| !member.consumers.is_empty())
    }

    /// Whether a server may refuse a command of a script whose other commands it executes.
    pub(crate) fn refuses(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.fault, Fault::WrongType(_) | Fault::Forbid(_)))
    }

    /// Whether an offer may not be announced, or a transfer may be announced that nobody has made. Then a
    /// client that transfers for others finds their entries when it sweeps.
    fn misses_announcements(&self) -> bool {
        self.steps.iter().any(|step| match step.fault {
            Fault::Silence(_) | Fault::Inject(Injected::Transfer(_)) => true,
            Fault::Lack(command) => command.contains("SUB"),
            Fault::Forbid(commands) => {
                commands.iter().any(|command| ["publish", "@pubsub"].contains(&command))
            }
            _ => false,
        })
    }

    fn deletes(&self, key: Key) -> bool {
        self.steps.iter().any(|step| step.fault == Fault::Delete(key))
    }

    /// Whether the server needs a clock that can be set.
    pub(crate) fn sets_clock(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.fault, Fault::SetClock(_)))
    }

    /// Whether everything is due in the end.
    pub(crate) fn ends_empty(&self) -> bool {
        self.catches_up || !self.sets_clock()
    }

    /// Whether the server may lose acknowledged writes.
    pub(crate) fn forgets(&self) -> bool {
        let ends = |step: &Step| matches!(step.fault, Fault::KillServer | Fault::StopServer);
        !self.is_durable && self.steps.iter().any(ends)
    }

    /// How often the server is demoted.
    pub(crate) fn demotions(&self) -> usize {
        self.steps.iter().filter(|step| step.fault == Fault::Demote).count()
    }

    /// The number of entries that end in the quarantine.
    pub(crate) fn poisons(&self) -> usize {
        let rests = self.steps.iter().filter_map(|step| match step.fault {
            Fault::Poison(rest) => Some(rest),
            _ => None,
        });
        rests.map(|rest| poison_lengths(rest).count()).sum()
    }
}

/// Whether clients transfer or take so little at a time that a busy machine needs long for a large backlog.
fn is_slow(clients: &[Member]) -> bool {
    use Taker::{Drains, Streams, Takes};
    let transfers_little =
        |member: &Member| member.moves && (member.batch < 100 || member.budget < Duration::from_millis(10));
    let mut takers = clients.iter().flat_map(|member| &member.takers);
    clients.iter().any(transfers_little) || !takers.any(|taker| matches!(taker, Takes | Drains | Streams))
}

pub(crate) fn poison_lengths(rest: usize) -> impl Iterator<Item = usize> {
    (rest..LONGEST_POISON).step_by(4)
}

pub(super) fn members(random: &mut Rng) -> Vec<Member> {
    // With a single client, no other client transfers what it misses.
    let count = [1, 1, 2, 2, 3][random.usize(0..5)];
    let mut members: Vec<_> = (0..count)
        .map(|number| {
            // Each client does something. The first two do everything that a run needs.
            let (offers, takes) = match (count, number) {
                (1, _) => (true, true),
                (_, 0) => (true, random.bool()),
                (_, 1) => (random.bool(), true),
                _ => [(true, true), (true, false), (false, true)][random.usize(0..3)],
            };
            Member {
                name: "member",
                command_timeout: COMMAND_TIMEOUT,
                batch: [1, 2, 10, 100, 1000][random.usize(0..5)],
                budget: Duration::from_micros([1, 100, 10_000][random.usize(0..3)]),
                moves: random.u8(0..4) > 0,
                sweep_interval: MINUTE,
                is_legacy: random.u8(0..6) == 0,
                is_replicated: false,
                producers: (0..if offers { random.usize(1..=3) } else { 0 })
                    .map(|_| producer(random))
                    .collect(),
                takers: (0..if takes { random.usize(1..=4) } else { 0 }).map(|_| taker(random)).collect(),
                consumers: Vec::new(),
            }
        })
        .collect();
    if !members.iter().any(|member| member.moves) {
        random.choice(&mut members).expect("one at least").moves = true;
    }
    // At least one client has to take.
    let is_ready = |taker: &Taker| !matches!(taker, Taker::PollsPending);
    if !members.iter().flat_map(|member| &member.takers).any(is_ready) {
        members.iter_mut().find(|member| !member.takers.is_empty()).expect("one takes").takers[0] =
            Taker::Takes;
    }
    members
}

fn producer(random: &mut Rng) -> Producer {
    use Producer::{Cancels, Drops, Offers, OffersMany};
    [Offers, Offers, OffersMany, Cancels, Drops][random.usize(0..5)]
}

fn taker(random: &mut Rng) -> Taker {
    use Taker::{Drains, Drops, Polls, PollsPending, PollsWithTimeout, Streams, Takes};
    [Takes, Takes, Polls, PollsWithTimeout, Drains, Streams, Drops, PollsPending][random.usize(0..8)]
}

pub(super) fn step(random: &mut Rng, number: usize) -> Step {
    let ms = Duration::from_millis;
    // Mostly short, so that many fit into a minute.
    let lasts = ms(10 + (490.0 * random.f64().powi(3)) as u64);
    Step { after: ms(random.u64(10..100)), fault: fault(random, number), lasts }
}

fn fault(random: &mut Rng, number: usize) -> Fault {
    let kind = [Kind::Commands, Kind::Blocking, Kind::Subscribers, Kind::All][random.usize(0..4)];
    let key = KEYS[random.usize(0..KEYS.len())];
    match random.u32(0..172) {
        0..20 => Fault::Kill(kind),
        20..25 => Fault::Cut,
        25..30 => Fault::Refuse,
        30..35 => Fault::BlackHole,
        // Only the watchdogs notice these faults, so each takes at least ten seconds.
        35..37 => Fault::Strand,
        37..42 => Fault::HangUp,
        42..48 => Fault::LoseReplies,
        48..54 => Fault::Truncate(random.usize(0..400)),
        54..58 => Fault::Delay(Duration::from_millis(random.u64(1..50))),
        58..64 => Fault::KillServer,
        64..67 => Fault::StopServer,
        67..70 => Fault::Freeze,
        70..75 => Fault::ScriptFlush,
        75..78 => Fault::Pause,
        78..84 => Fault::OutOfMemory,
        84..89 => Fault::Demote,
        89..95 => Fault::WrongType(key),
        95..100 => Fault::Poison(number),
        100..110 => Fault::Inject(injected(random)),
        110..126 => Fault::Forbid(some_of(random, &COMMANDS)),
        126..134 => {
            use Silence::{Channels, Heads, Publish, Transfers};
            Fault::Silence([Publish, Channels, Heads, Transfers][random.usize(0..4)])
        }
        // As with `Strand`.
        134..137 => Fault::ForgetIdle,
        137..140 => Fault::SwallowBehind,
        140..150 => Fault::Delete(SIDE_KEYS[random.usize(0..SIDE_KEYS.len())]),
        150..160 => Fault::Lack(LACKED[random.usize(0..LACKED.len())]),
        _ => {
            let near = [-2, -1, 0, 1, 2][random.usize(0..5)];
            let far = random.i64(-FARTHEST..=FARTHEST);
            Fault::SetClock(if random.u8(0..4) == 0 { near } else { far })
        }
    }
}

fn injected(random: &mut Rng) -> Injected {
    match random.u8(0..6) {
        0 => Injected::Head(HEADS[random.usize(0..HEADS.len())]),
        1 => Injected::Transfer(TRANSFERS[random.usize(0..TRANSFERS.len())]),
        _ => Injected::Reply(REPLIES[random.usize(0..REPLIES.len())]),
    }
}

pub(super) fn some_of(random: &mut Rng, of: &[&'static str]) -> Commands {
    let mut commands = [None; 4];
    let count = [1, 1, 1, 1, 2, 3, 4][random.usize(0..7)];
    commands[..count].fill_with(|| random.choice(of).copied());
    Commands(commands)
}

pub(super) fn consumer(random: &mut Rng) -> Consumer {
    use How::{Drops, Many, Receives, Streams, Tries, WithTimeout, Works};
    // With more than 32, a backlog is received by two calls at a time.
    let many = random.u8(0..4) == 0;
    let workers = Works(if many { 40 } else { random.usize(1..=8) });
    let how =
        [Receives, Tries, WithTimeout, Many, Streams, Drops, workers, workers, workers][random.usize(0..9)];
    // Of several that are settled one after the other, most would lose their leases.
    let extends = matches!(how, Works(_) | Many) || random.u8(0..3) > 0;
    let lease = if extends { LEASES[random.usize(usize::from(many)..LEASES.len())] } else { LEASES[0] };
    let attempts = [2, 5, 10][random.usize(0..3)];
    Consumer { how, lease: Duration::from_millis(lease), attempts, extends }
}

/// The kind of fault of each step.
pub(super) fn kinds(steps: &[Step]) -> Vec<String> {
    let kind = |step: &Step| match step.fault {
        Fault::Delete(key) => format!("Delete({key:?})"),
        other => format!("{:?}", std::mem::discriminant(&other)),
    };
    steps.iter().map(kind).collect()
}

#[test]
fn a_seed_makes_one_plan_and_each_plan_makes_sense() {
    for seed in 0..2_000 {
        let plan = Plan::of_seed(seed);
        assert_eq!(format!("{plan:?}"), format!("{:?}", Plan::of_seed(seed)));
        let all = |what: fn(&Member) -> bool| plan.crew.clients.iter().any(what);
        assert!(all(|member| member.moves) && all(|member| !member.producers.is_empty()), "{plan:?}");
        let takes = |member: &Member| {
            !member.consumers.is_empty()
                || member.takers.iter().any(|taker| !matches!(taker, Taker::PollsPending))
        };
        assert!(plan.crew.clients.iter().any(takes), "{plan:?}");
        assert!((1..=4).contains(&plan.steps.len()));
    }
}

#[test]
fn each_kind_of_fault_is_in_each_of_three_parts() {
    let kinds_of = |seed| kinds(&Plan::of_seed(seed).steps);
    for number in 0..3 {
        let part = Part::new(number, 3);
        let all: Vec<_> = super::SEEDS.filter(|seed| part.has(*seed)).collect();
        let sixth = super::sixth(all.iter().copied(), kinds_of);
        assert!((20..=25).contains(&sixth.len()), "{part:?}: {sixth:?}");
        for (seeds, receiving) in [(all, 40), (sixth, 6)] {
            let has_receivers = |seed: &&u64| Plan::of_seed(**seed).has_receivers();
            assert!(seeds.iter().filter(has_receivers).count() > receiving, "{part:?}");
            // Deletions of eleven keys, and 25 other kinds.
            assert_eq!(seeds.into_iter().flat_map(kinds_of).collect::<HashSet<_>>().len(), 36, "{part:?}");
        }
    }
}
