//! Work of worker processes before anything is counted.

use std::thread::available_parallelism;
use std::time::Duration;

use crate::job::{Collect, Fill, Job, Offer, Receive};
use crate::repeat::Outcome;
use crate::system::System;
use crate::worker::{Worker, ask_all, wait_for};

/// Offers and takes for this time, ms, in each worker, as the measurements do. A native program only has to
/// make its connections. A virtual machine is slow until it has compiled the code that it runs, for which it
/// needs a core. When sixteen of them warm up together on two cores, commands wait for longer than Redisson's
/// timeouts; so no more of them do at a time than there are cores.
pub(crate) fn warm_up(workers: &mut [Worker], millis: u64) -> Outcome<()> {
    let Some(system) = workers.first().map(Worker::system) else { return Ok(()) };
    let (group, millis) = match system {
        System::Redelay => (workers.len(), millis.min(500)),
        System::Redisson => (available_parallelism().map_or(1, usize::from), millis),
        System::BullMq | System::Asynq | System::Apalis => return Ok(()),
    };
    workers.chunks_mut(group).try_for_each(|group| warm_up_together(group, millis))
}

fn warm_up_together(workers: &mut [Worker], millis: u64) -> Outcome<()> {
    // Of all processes together as many as of one, if that is enough to keep the connections of each busy.
    let concurrency = (64 / workers.len()).max(16);
    for batch in [1, 16] {
        let job = Offer { concurrency, batch, millis: millis / 4, ..Offer::new("warm-up") }.job();
        ask_all(workers, &job)?;
    }
    ask_all(workers, &Collect::new("warm-up-due", 1).job())?;
    let concurrency = concurrency.div_ceil(4);
    let due = Offer { delay: (0, 50), concurrency, millis: millis / 2, ..Offer::new("warm-up-due") };
    let offered = ask_all(workers, &due.job())?.iter().map(|reply| reply.count).sum();
    wait_for(workers, offered, Duration::from_secs(5))?;
    ask_all(workers, &Job::Stop)?;
    ask_all(workers, &Job::Close)?;
    Ok(())
}

/// Makes the connections, loads the scripts, and lets a virtual machine compile what it runs.
pub(crate) fn warm_up_receiving(worker: &mut Worker, queue: &str, count: u64) -> Outcome<()> {
    for _ in 0..2 {
        receive(worker, queue, 64, count / 4)?;
    }
    Ok(())
}

/// Puts messages that are ready, and receives and acknowledges them.
pub(crate) fn receive(worker: &mut Worker, queue: &str, concurrency: usize, count: u64) -> Outcome<()> {
    worker.ask(&Fill::new(queue, count).job())?;
    let receive = Receive { queue: queue.into(), by_hand: false, concurrency, count };
    worker.ask(&Job::Receive(receive)).map(drop)
}
