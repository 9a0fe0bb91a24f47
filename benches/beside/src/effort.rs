//! How much a run measures.

/// The sizes of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    pub(crate) name: &'static str,
    /// Turns of each system for each row of a table.
    pub(crate) rounds: usize,
    /// For measurements that start new processes in every turn, which takes most of the time.
    pub(crate) rounds_afresh: usize,
    /// The length of a measurement that runs for a time, ms.
    pub(crate) millis: u64,
    /// The time before anything is counted, ms: a Java virtual machine has to compile the code that it runs.
    pub(crate) warm_up: u64,
    /// Turns of the ladder. They are short: with one call in flight, everything else on the machine counts.
    pub(crate) slices: usize,
    /// The length of each, ms, or what it takes.
    pub(crate) slice_millis: u64,
    pub(crate) slice_takes: u64,
    /// Sizes of Redisson's pool to try, in addition to its default.
    pub(crate) pools: &'static [usize],
    /// Offers in flight.
    pub(crate) concurrency: &'static [usize],
    /// Bytes of a payload.
    pub(crate) sizes: &'static [usize],
    /// The number of processes that share a queue whose lateness is measured, and whether there are other
    /// offers at the same time.
    pub(crate) late_cases: &'static [(usize, bool)],
    /// Entries of a round of lateness.
    pub(crate) late_entries: u64,
    /// The range of their delays, ms.
    pub(crate) late_delays: (u64, u64),
    /// Rounds of lateness: Redisson draws the tick of its timer once for each client.
    pub(crate) late_rounds: usize,
    /// Pending entries to drain.
    pub(crate) drains: &'static [Drain],
    pub(crate) takers: &'static [usize],
    /// Messages that are received and not yet acknowledged.
    pub(crate) in_flight: &'static [usize],
    /// Messages in flight whose memory is measured.
    pub(crate) held: u64,
    /// Leases of killed processes, ms.
    pub(crate) leases: &'static [u64],
    /// Whether the peers recover from a kill, too: that takes minutes.
    pub(crate) peers_recover: bool,
    /// Payloads to take, for each system and round.
    pub(crate) taken: u64,
    /// Messages a second from end to end.
    pub(crate) per_second: f64,
    /// The rates at which the cost of a message is measured, messages a second.
    pub(crate) rates: &'static [f64],
    /// The least messages of such a measurement: few do not show what a process does every few seconds by
    /// itself.
    pub(crate) counted: u64,
    pub(crate) growth: Growth,
    /// Tasks that offer at the same time.
    pub(crate) many_tasks: usize,
    /// Lists that get a payload at the same time.
    pub(crate) many_lists: usize,
    pub(crate) idle_queues: &'static [usize],
    pub(crate) idle_millis: u64,
    /// Messages for idle workers, one after the other: several for each process.
    pub(crate) idle_messages: u64,
    /// Messages a second, and messages of a turn.
    pub(crate) alternatives: &'static [(f64, u64)],
    /// Jobs that are pending.
    pub(crate) jobs: &'static [u64],
    /// Processes that share a queue, or are idle.
    pub(crate) processes: &'static [usize],
    /// Payloads to take from a cluster, for each system and round: enough to measure the CPU time of a native
    /// client.
    pub(crate) spread: u64,
    /// Numbers of partitions. One stands for an ordinary queue.
    pub(crate) partitions: &'static [usize],
}

/// How long the cost of a message is measured, and what grows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    pub(crate) millis: u64,
    /// The least messages.
    pub(crate) least: u64,
    /// Messages a second. Zero stands for as many as possible.
    pub(crate) rates: &'static [f64],
    pub(crate) queues: &'static [usize],
    /// Entries that are not due.
    pub(crate) pending: &'static [u64],
    /// Bytes of a payload. It begins with its due time, which has 17.
    pub(crate) sizes: &'static [usize],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Drain {
    pub(crate) pending: u64,
    pub(crate) rounds: usize,
    /// The time after which a drain is cut off, seconds.
    pub(crate) limit: f64,
}

const fn drain(pending: u64, rounds: usize, limit: f64) -> Drain {
    Drain { pending, rounds, limit }
}

/// An hour and a half.
pub(crate) const FULL: Effort = Effort {
    name: "full",
    rounds: 3,
    rounds_afresh: 2,
    millis: 700,
    warm_up: 6_000,
    slices: 30,
    slice_millis: 200,
    slice_takes: 2_000,
    pools: &[4, 8],
    concurrency: &[1, 16, 64, 256],
    sizes: &[100, 4096],
    late_cases: &[(1, false), (1, true), (16, false), (16, true)],
    late_entries: 2_000,
    late_delays: (50, 3_000),
    late_rounds: 4,
    drains: &[
        drain(1_000, 5, 60.0),
        drain(10_000, 3, 60.0),
        drain(100_000, 2, 30.0),
        drain(1_000_000, 3, 15.0),
    ],
    takers: &[1, 8, 64, 1_024],
    in_flight: &[1, 8, 64, 256],
    held: 10_000,
    leases: &[5_000, 30_000],
    peers_recover: true,
    taken: 30_000,
    per_second: 1_000.0,
    rates: &[50.0, 1_000.0],
    counted: 700,
    growth: Growth {
        millis: 2_500,
        least: 100,
        rates: &[10.0, 50.0, 200.0, 1_000.0, 5_000.0, 0.0],
        queues: &[1, 10, 100, 1_000, 10_000],
        pending: &[1_000, 10_000, 100_000, 1_000_000],
        sizes: &[20, 100, 1_000, 10_000, 100_000, 1_000_000],
    },
    many_tasks: 100_000,
    many_lists: 10_000,
    idle_queues: &[1, 10_000],
    idle_millis: 60_000,
    idle_messages: 1_000,
    alternatives: &[(1_000.0, 5_000), (50.0, 1_000)],
    jobs: &[10_000, 100_000, 1_000_000],
    processes: &[1, 4, 16],
    spread: 64_000,
    partitions: &[1, 2, 4, 8, 16, 64],
};

/// Nine minutes.
pub(crate) const QUICK: Effort = Effort {
    name: "quick",
    rounds: 2,
    rounds_afresh: 1,
    millis: 300,
    warm_up: 3_000,
    slices: 8,
    slice_millis: 150,
    slice_takes: 1_000,
    pools: &[8],
    concurrency: &[1, 64],
    sizes: &[100],
    late_cases: &[(1, false), (1, true)],
    late_entries: 1_000,
    late_delays: (50, 1_000),
    late_rounds: 1,
    drains: &[drain(1_000, 2, 5.0), drain(10_000, 2, 5.0)],
    takers: &[1, 64],
    in_flight: &[1, 64],
    held: 5_000,
    leases: &[5_000],
    peers_recover: false,
    taken: 10_000,
    per_second: 1_000.0,
    rates: &[50.0, 1_000.0],
    counted: 300,
    growth: Growth {
        millis: 800,
        least: 50,
        rates: &[50.0, 1_000.0, 0.0],
        queues: &[1, 100],
        pending: &[1_000, 10_000],
        sizes: &[100, 10_000],
    },
    many_tasks: 10_000,
    many_lists: 1_000,
    idle_queues: &[1, 1_000],
    idle_millis: 3_000,
    idle_messages: 200,
    alternatives: &[(1_000.0, 2_000), (50.0, 200)],
    jobs: &[10_000, 100_000],
    processes: &[4],
    spread: 16_000,
    partitions: &[1, 4, 16],
};

/// Seconds. For the tests: it shows whether the harness works at all.
pub(crate) const TINY: Effort = Effort {
    name: "tiny",
    rounds: 1,
    rounds_afresh: 1,
    millis: 50,
    warm_up: 50,
    slices: 1,
    slice_millis: 20,
    slice_takes: 50,
    pools: &[],
    concurrency: &[4],
    sizes: &[100],
    late_cases: &[(1, false), (2, true)],
    late_entries: 50,
    late_delays: (50, 300),
    late_rounds: 1,
    drains: &[drain(200, 1, 5.0)],
    takers: &[4],
    in_flight: &[4],
    held: 200,
    leases: &[1_000],
    peers_recover: false,
    taken: 200,
    per_second: 200.0,
    rates: &[200.0],
    counted: 50,
    growth: Growth { millis: 50, least: 20, rates: &[0.0], queues: &[2], pending: &[100], sizes: &[1_000] },
    many_tasks: 50,
    many_lists: 5,
    idle_queues: &[2],
    idle_millis: 200,
    idle_messages: 3,
    alternatives: &[(200.0, 50)],
    jobs: &[5_000],
    processes: &[2],
    spread: 320,
    partitions: &[1, 2],
};

/// So few in flight that the time of a reply decides.
pub(crate) const SELF_CHECK: Effort = Effort {
    name: "self-check",
    millis: 400,
    warm_up: 2_000,
    concurrency: &[1, 8],
    late_cases: &[(1, false)],
    late_entries: 300,
    ..TINY
};
