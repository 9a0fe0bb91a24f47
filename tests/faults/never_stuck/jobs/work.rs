//! Clients that offer, change and take jobs continuously, whatever happens, and record each answer.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use fastrand::Rng;
use redelay::ErrorKind;
use redelay::delayed_queue::Offered;
use redelay::worker::Backoff;
use redelay_support::{HOUR, ms};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::history::{Call, Event, explain};
use crate::ledger;
use crate::workload::random_pause;

type Queues = redelay_support::Queues<i64>;

/// Each of them must have happened in a run of many plans.
pub(super) const DEEDS: [&str; 15] = [
    "jobs stored",
    "jobs kept",
    "jobs replaced",
    "jobs throttled",
    "jobs cancelled",
    "jobs rescheduled",
    "jobs not found",
    "jobs read",
    "plain payloads offered",
    "calls refused",
    "outcomes unknown",
    "futures dropped",
    "payloads polled",
    "jobs polled before they were due",
    "messages acknowledged",
];

/// The ways in which payloads are taken. None of them loses a payload with its connection, as a blocking pop
/// may.
#[derive(Clone, Copy, Debug)]
pub(super) enum Taker {
    Polls,
    PollsMany,
    PollsPending,
    Receives,
}

/// A call that has begun: its id, and the number of the event.
type Begun = (Vec<u8>, usize);

#[derive(Debug, Default)]
struct Pages {
    /// The calls on each id. A plain payload has an id of its own.
    events: BTreeMap<Vec<u8>, Vec<Event>>,
    /// The id of each number, and when it was offered.
    offers: HashMap<i64, (Vec<u8>, Instant)>,
    /// Who has it: popped, or acknowledged.
    certain: HashMap<i64, usize>,
    seen: HashMap<i64, Instant>,
    /// When somebody has deleted all ids, at the earliest and at the latest.
    forgotten: Vec<(Instant, Instant)>,
    deeds: BTreeMap<&'static str, usize>,
    /// Replies were injected. An error may be that of another call then.
    is_misled: bool,
    /// When the first poll of pending jobs began that has failed.
    lost_poll: Option<Instant>,
    /// The refused calls on each id, and of each kind of taker: when they ended, and why.
    refused: BTreeMap<Vec<u8>, Vec<(Instant, String)>>,
}

/// The record of a run. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Book(Arc<Mutex<Pages>>);

impl Book {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().expect("nobody panics meanwhile")
    }

    fn did(&self, deed: &'static str) {
        assert!(DEEDS.contains(&deed), "{deed} is not in the list");
        *self.pages().deeds.entry(deed).or_default() += 1;
    }

    pub(super) fn deeds(&self) -> BTreeMap<&'static str, usize> {
        self.pages().deeds.clone()
    }

    /// A new payload for this id.
    fn number(&self, id: &[u8]) -> i64 {
        self.number_for(|_| id.to_vec())
    }

    fn number_for(&self, id: impl Fn(i64) -> Vec<u8>) -> i64 {
        let mut pages = self.pages();
        let number = pages.offers.len() as i64;
        pages.offers.insert(number, (id(number), Instant::now()));
        number
    }

    /// A call begins. Until it ends, its outcome is unknown.
    fn begin(&self, id: &[u8], call: Call) -> Begun {
        let mut pages = self.pages();
        let events = pages.events.entry(id.to_vec()).or_default();
        events.push(Event { begun: Instant::now(), ended: None, call });
        (id.to_vec(), events.len() - 1)
    }

    fn end(&self, (id, event): &Begun, call: Call) {
        let mut pages = self.pages();
        let event = &mut pages.events.get_mut(id).expect("it has begun")[*event];
        (event.ended, event.call) = (Some(Instant::now()), call);
    }

    /// Ends calls with what their answer says, or leaves them as they are if that is unknown.
    fn answered<T>(&self, begun: &[Begun], answer: &redelay::Result<T>, call: impl Fn(usize, &T) -> Call) {
        match (answer, ledger::outcome(answer)) {
            (Ok(answer), _) => begun.iter().enumerate().for_each(|(at, one)| self.end(one, call(at, answer))),
            (_, ledger::Offered::Unknown) => self.did("outcomes unknown"),
            (Err(error), _) if self.pages().is_misled => self.was_refused(&begun[0].0, error),
            (Err(error), _) => {
                self.did("calls refused");
                for one in begun {
                    self.end(one, Call::Nothing);
                    self.was_refused(&one.0, error);
                }
            }
        }
    }

    fn was_refused(&self, id: &[u8], error: &redelay::Error) {
        let refused = (Instant::now(), error.to_string());
        self.pages().refused.entry(id.to_vec()).or_default().push(refused);
    }

    /// The calls that were refused, and how long ago.
    pub(super) fn refusals(&self) -> String {
        let pages = self.pages();
        let lines = pages.refused.iter().flat_map(|(id, refused)| {
            refused
                .iter()
                .map(move |(at, why)| format!("{} {:?} ago: {why}", id.escape_ascii(), at.elapsed()))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn offered(&self, number: i64, offered: Offered) -> Call {
        let (deed, call) = match offered {
            Offered::Stored(_) => ("jobs stored", Call::Stored(number)),
            Offered::Replaced(_) => ("jobs replaced", Call::Replaced(number)),
            Offered::Kept(_) => ("jobs kept", Call::Found(true)),
            Offered::Throttled(_) => ("jobs throttled", Call::Nothing),
            other => panic!("{other:?}"),
        };
        self.did(deed);
        call
    }

    fn found(&self, is_found: bool) -> Call {
        self.did(if is_found { "jobs rescheduled" } else { "jobs not found" });
        Call::Found(is_found)
    }

    fn saw(&self, number: i64) {
        self.pages().seen.entry(number).or_insert_with(Instant::now);
    }

    pub(super) fn has(&self, numbers: impl IntoIterator<Item = i64>) {
        for number in numbers {
            self.saw(number);
            *self.pages().certain.entry(number).or_default() += 1;
        }
    }

    pub(super) fn has_seen(&self, number: i64) -> bool {
        self.pages().seen.contains_key(&number)
    }

    /// From now on, a call that was refused may have been executed.
    pub(super) fn mislead(&self) {
        self.pages().is_misled = true;
    }

    /// Whether a call that was refused may have been executed, so that what it popped never arrives.
    pub(super) fn is_misled(&self) -> bool {
        self.pages().is_misled
    }

    /// Somebody has deleted all ids since then.
    pub(super) fn forgets_ids(&self, begun: Instant) {
        self.pages().forgotten.push((begun, Instant::now()));
    }

    pub(super) fn has_forgotten_ids(&self) -> bool {
        !self.pages().forgotten.is_empty()
    }

    /// # Errors
    /// Fails with what nothing explains.
    pub(super) fn judge(&self) -> Result<(), String> {
        let pages = self.pages();
        let mut events = pages.events.clone();
        for (number, ended) in &pages.seen {
            let Some((id, begun)) = pages.offers.get(number) else {
                return Err(format!("{number} was delivered, and never offered"));
            };
            let may_have_no_id = pages.forgotten.iter().any(|(from, to)| begun <= to && ended >= from);
            let call =
                if may_have_no_id { Call::MovedPerhapsWithoutId(*number) } else { Call::Moved(*number) };
            let moved = Event { begun: *begun, ended: Some(*ended), call };
            events.entry(id.clone()).or_default().push(moved);
        }
        for (from, to) in &pages.forgotten {
            let forgotten = Event { begun: *from, ended: Some(*to), call: Call::Forgotten };
            events.values_mut().for_each(|events| events.push(forgotten));
        }
        let twice: Vec<_> = pages.certain.iter().filter(|(_, times)| **times > 1).collect();
        if !twice.is_empty() {
            return Err(format!("delivered more than once: {twice:?}"));
        }
        let count = |is: fn(Call) -> bool| events.values().flatten().filter(|event| is(event.call)).count();
        // Each unknown outcome is one job more or less.
        let stored = count(|call| matches!(call, Call::Stored(_)));
        let cancelled = count(|call| call == Call::Cancelled(true));
        let more = count(|call| matches!(call, Call::MayStore(_) | Call::MayReplace(_)));
        let less = count(|call| call == Call::MayCancel);
        let delivered = pages.seen.len();
        if delivered + cancelled > stored + more || delivered + cancelled + less < stored {
            return Err(format!(
                "{stored} jobs were stored, and perhaps {more} more; {cancelled} were cancelled, and perhaps {less} more; \
                 and {delivered} were delivered"
            ));
        }
        for (id, events) in events {
            let lost_poll = pages.lost_poll.map(|begun| Event { begun, ended: None, call: Call::MayPoll });
            let events = events.into_iter().chain(lost_poll).collect();
            explain(events).map_err(|why| format!("the id {}: {why}", id.escape_ascii()))?;
        }
        Ok(())
    }
}

/// What to do while an id is taken.
#[derive(Clone, Copy, Debug)]
enum Policy {
    Keep,
    Replace,
    KeepEarliest,
    Debounce,
    Throttle,
}

impl Policy {
    fn any(random: &mut Rng) -> Self {
        use Policy::{Debounce, Keep, KeepEarliest, Replace, Throttle};
        [Keep, Keep, Keep, Replace, Replace, KeepEarliest, Debounce, Throttle][random.usize(0..8)]
    }

    fn unknown(self, number: i64) -> Call {
        match self {
            Self::Keep | Self::Throttle => Call::MayStore(number),
            Self::Replace | Self::KeepEarliest | Self::Debounce => Call::MayReplace(number),
        }
    }

    fn of<R>(self, offer: redelay::delayed_queue::JobOffer<R>) -> redelay::delayed_queue::JobOffer<R> {
        match self {
            Self::Keep => offer.keep(),
            Self::Replace => offer.replace(),
            Self::KeepEarliest => offer.keep_earliest(),
            Self::Debounce => offer.debounce(HOUR + HOUR),
            Self::Throttle => offer.throttle(ms(300)),
        }
    }
}

/// A client at work on these ids.
#[derive(Clone)]
pub(super) struct Work {
    pub(super) queues: Queues,
    pub(super) book: Book,
    pub(super) ids: Vec<Vec<u8>>,
}

impl Work {
    /// Until it is stopped.
    pub(super) async fn go_on(self, stop: CancellationToken, mut random: Rng) {
        while !stop.is_cancelled() {
            let pause = random_pause(&mut random);
            let is_dropped = random.u8(0..12) == 0;
            let call = self.something(&mut random);
            if !is_dropped {
                call.await;
            } else if timeout(pause, call).await.is_err() {
                self.book.did("futures dropped");
            }
            sleep(ms(random.u64(1..8))).await;
        }
    }

    async fn something(&self, random: &mut Rng) {
        let id = &self.ids[random.usize(0..self.ids.len())];
        // Some are due only after they have been rescheduled.
        let delay = if random.u8(0..6) == 0 { HOUR } else { ms(random.u64(0..60)) };
        match random.u8(0..100) {
            0..45 => self.offer(id, delay, Policy::any(random)).await,
            45..53 => self.cancel(id).await,
            53..59 => self.reschedule(id, delay).await,
            59..66 => self.run_now(id).await,
            66..72 => self.read(id).await,
            72..78 => self.offer_many(random, delay).await,
            78..86 => self.cancel_many(random).await,
            _ => self.offer_plain(ms(random.u64(0..60))).await,
        }
    }

    async fn offer(&self, id: &[u8], delay: Duration, policy: Policy) {
        let number = self.book.number(id);
        let begun = [self.book.begin(id, policy.unknown(number))];
        let offered = policy.of(self.queues.delayed.offer(&number, delay).id(id)).await;
        self.book.answered(&begun, &offered, |_, offered| self.book.offered(number, offered.clone()));
    }

    /// In one call, or in several if more than 16 may replace others.
    async fn offer_many(&self, random: &mut Rng, delay: Duration) {
        let policy = Policy::any(random);
        let ids = self.some_ids(random, 20);
        let numbers: Vec<_> = ids.iter().map(|id| self.book.number(id)).collect();
        let begin = |(id, number): (&Vec<u8>, &i64)| self.book.begin(id, policy.unknown(*number));
        let begun: Vec<_> = ids.iter().zip(&numbers).map(begin).collect();
        let jobs = ids.iter().zip(&numbers).map(|(id, number)| (id, number, delay));
        let offered = policy.of(self.queues.delayed.offer_jobs(jobs)).await;
        self.book
            .answered(&begun, &offered, |at, offered| self.book.offered(numbers[at], offered[at].clone()));
    }

    /// Without an id.
    async fn offer_plain(&self, delay: Duration) {
        let own_id = |number: i64| format!("plain {number}").into_bytes();
        let number = self.book.number_for(own_id);
        let begun = [self.book.begin(&own_id(number), Call::MayStore(number))];
        let offered = self.queues.delayed.offer(&number, delay).await;
        self.book.answered(&begun, &offered, |_, _| {
            self.book.did("plain payloads offered");
            Call::Stored(number)
        });
    }

    async fn cancel(&self, id: &[u8]) {
        let begun = [self.book.begin(id, Call::MayCancel)];
        let cancelled = self.queues.delayed.job(id).cancel().await;
        self.book.answered(&begun, &cancelled, |_, cancelled| self.cancelled(cancelled.is_removed()));
    }

    fn cancelled(&self, is_cancelled: bool) -> Call {
        self.book.did(if is_cancelled { "jobs cancelled" } else { "jobs not found" });
        Call::Cancelled(is_cancelled)
    }

    /// More than 32 are looked for in a pass through the ordered list.
    async fn cancel_many(&self, random: &mut Rng) {
        let ids = self.some_ids(random, 40);
        let begun: Vec<_> = ids.iter().map(|id| self.book.begin(id, Call::MayCancel)).collect();
        let cancelled = self.queues.delayed.cancel_all(&ids).await;
        self.book.answered(&begun, &cancelled, |at, answers| self.cancelled(answers[at].is_removed()));
    }

    /// A few of the usual ids, or sometimes `many`.
    fn some_ids(&self, random: &mut Rng, many: usize) -> Vec<Vec<u8>> {
        let mut ids = self.ids.clone();
        random.shuffle(&mut ids);
        ids.truncate(random.usize(1..=3));
        if random.u8(0..4) == 0 {
            ids.extend((ids.len()..many).map(|number| format!("many {number}").into_bytes()));
            random.shuffle(&mut ids);
        }
        ids
    }

    async fn reschedule(&self, id: &[u8], delay: Duration) {
        let begun = [self.book.begin(id, Call::Nothing)];
        let found = self.queues.delayed.job(id).reschedule(delay).await;
        self.book.answered(&begun, &found, |_, is_found| self.book.found(*is_found));
    }

    async fn run_now(&self, id: &[u8]) {
        let begun = [self.book.begin(id, Call::Nothing)];
        let found = self.queues.delayed.job(id).run_now().await;
        self.book.answered(&begun, &found, |_, is_found| self.book.found(*is_found));
    }

    async fn read(&self, id: &[u8]) {
        let begun = [self.book.begin(id, Call::Nothing)];
        let job = self.queues.delayed.job(id).get().await;
        self.book.answered(&begun, &job, |_, job| match job {
            Some(job) => {
                self.book.did("jobs read");
                Call::Read(job.value)
            }
            None => self.book.found(false),
        });
    }

    /// Every id is free: a job is stored, and cancelled.
    pub(super) async fn use_each_id(&self) {
        let ids: Vec<_> = self.book.pages().events.keys().cloned().collect();
        for id in ids.iter().filter(|id| !id.starts_with(b"plain")) {
            self.offer(id, HOUR, Policy::Keep).await;
            self.cancel(id).await;
        }
    }

    /// Makes all jobs due that are pending.
    pub(super) async fn run_all_now(&self) {
        let mut ids = self.ids.clone();
        ids.extend((0..40).map(|number| format!("many {number}").into_bytes()));
        for id in ids {
            self.run_now(&id).await;
        }
    }

    /// Until the client is shut down.
    pub(super) async fn take(self, taker: Taker, mut random: Rng) {
        let Queues { ready, delayed, .. } = &self.queues;
        let receiver = ready.receiver().lease(ms(3000)).max_attempts(60_000).backoff(Backoff::fixed(ms(5)));
        loop {
            let begun = Instant::now();
            let taken = match taker {
                Taker::Polls => pausing(&mut random, ready.poll()).await.map(Vec::from_iter),
                Taker::PollsMany => {
                    let most = random.usize(1..30);
                    let polled = pausing(&mut random, ready.poll_many(most)).await;
                    polled.map(|many| many.into_iter().map(|one| one.expect("a number")).collect())
                }
                Taker::PollsPending => {
                    sleep(ms(20)).await;
                    pausing(&mut random, delayed.poll()).await.map(Vec::from_iter)
                }
                Taker::Receives => self.receive(receiver.receive()).await.map(|()| Vec::new()),
            };
            match taken {
                Ok(numbers) => {
                    let deed = match taker {
                        Taker::PollsPending => "jobs polled before they were due",
                        _ => "payloads polled",
                    };
                    numbers.iter().for_each(|_| self.book.did(deed));
                    self.book.has(numbers);
                }
                Err(error) if error.is_closed() => return,
                Err(error) => {
                    self.book.was_refused(format!("{taker:?}").as_bytes(), &error);
                    if matches!(taker, Taker::PollsPending) {
                        self.book.pages().lost_poll.get_or_insert(begun);
                    }
                    ledger::outcome(&Err::<(), _>(error));
                    sleep(ms(2)).await;
                }
            }
        }
    }

    async fn receive(
        &self,
        receive: impl Future<Output = redelay::Result<redelay::Delivery<i64>>>,
    ) -> redelay::Result<()> {
        let delivery = receive.await?;
        let number = *delivery.value();
        self.book.saw(number);
        match delivery.ack().await {
            Ok(()) => {
                self.book.did("messages acknowledged");
                self.book.has([number]);
            }
            Err(error) => match error.kind() {
                ErrorKind::OutcomeUnknown
                | ErrorKind::Refused
                | ErrorKind::LeaseLost
                | ErrorKind::Unavailable
                | ErrorKind::Closed => {}
                _ => panic!("{error}"),
            },
        }
        Ok(())
    }
}

/// Pauses before a call that does not wait by itself.
async fn pausing<T>(random: &mut Rng, call: impl Future<Output = T>) -> T {
    sleep(random_pause(random)).await;
    call.await
}
