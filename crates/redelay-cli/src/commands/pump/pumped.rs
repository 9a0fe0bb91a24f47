//! The queues that are transferred for.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use redelay::Client;
use redelay::admin::Pump;
use redelay::inspector::Overview;
use redelay::stats::LastError;

use super::event::Event;
use super::health::Report;
use super::twins::{BATCH, look, unclear};
use crate::connect::Session;
use crate::escape;
use crate::failure::{Failure, missing_permission};
use crate::human;
use crate::out::Out;
use crate::queue::Name;
use crate::state::is_unanswered;
use crate::wanted::{Owner, Wanted, has_traces, twin};

/// For how long nothing must have been pending in a queue until it is left. The next announcement brings it
/// back.
const IDLE: Duration = Duration::from_secs(3600);

pub(crate) struct Pumped<'a> {
    session: &'a Session,
    client: Client,
    wanted: &'a Wanted,
    most: usize,
    out: &'a Out,
    queues: HashMap<Bytes, OfQueue>,
    /// Found since the last search, and left out: each is looked at once a search, however often announced.
    left_out: HashSet<Bytes>,
    /// Those that were in use when the other one with the same pending keys was, too. Takers of Java leave no
    /// trace, so it stays unclear which is meant.
    unclear: HashSet<Bytes>,
    /// How many were left out in the last search.
    left_out_before: usize,
    /// Why the last search has failed.
    not_searched: Option<String>,
    /// The last note about a schedule that does not run.
    of_schedules: Option<String>,
    /// All keys were searched once.
    has_searched: bool,
}

struct OfQueue {
    pump: Pump,
    idle: Idle,
    is_failing: bool,
    quarantined: u64,
}

impl<'a> Pumped<'a> {
    pub(crate) fn new(
        session: &'a Session,
        client: Client,
        wanted: &'a Wanted,
        most: usize,
        out: &'a Out,
    ) -> Self {
        let new = Self {
            session,
            client,
            wanted,
            most,
            out,
            queues: HashMap::new(),
            left_out: HashSet::new(),
            unclear: HashSet::new(),
            left_out_before: 0,
            not_searched: None,
            of_schedules: None,
            has_searched: false,
        };
        let named = wanted.names.iter().map(|name| (name.clone(), OfQueue::new(&new.client, name)));
        Self { queues: named.collect(), ..new }
    }

    /// Transfers for those of these queues that need it.
    pub(crate) async fn found(&mut self, mut names: Vec<Bytes>, are_announced: bool) -> Result<(), Failure> {
        let has = |name: &Bytes| self.queues.contains_key(name);
        names.retain(|name| {
            // An announcement does not say which of the two it is of.
            let is_pumped = has(name) || are_announced && twin(name).as_ref().is_some_and(has);
            !is_pumped && !self.left_out.contains(name) && !self.unclear.contains(name)
        });
        if names.is_empty() {
            return Ok(());
        }
        let looks = match look(&self.session.inspector, &names).await {
            Ok(looks) => looks,
            // The next search finds them again.
            Err(error) => return Failure::passes(error).map(drop),
        };
        for (queue, twin) in looks {
            let pumps_twin = twin.as_ref().is_some_and(|twin| self.queues.contains_key(&twin.name));
            // The next search finds again what is not answered now, and the next announcement what is empty.
            if is_unanswered(&queue) || needs_nothing(&queue) && !pumps_twin {
                continue;
            }
            let owner = match twin.as_ref().map_or(Owner::This, |twin| self.wanted.owner(&queue, twin)) {
                Owner::This if pumps_twin && has_traces(&queue) => Owner::Unclear,
                Owner::This if pumps_twin => Owner::Twin,
                owner => owner,
            };
            match owner {
                Owner::This => self.open(queue.name)?,
                Owner::Twin => {
                    // An announcement names the likelier one.
                    let name = twin.map(|twin| twin.name).unwrap_or_default();
                    if self.wanted.matches(&name) && !self.queues.contains_key(&name) {
                        self.open(name)?;
                    }
                }
                Owner::Unclear => {
                    let twin = twin.map(|twin| twin.name).unwrap_or_default();
                    if self.queues.remove(&twin).is_some() {
                        self.say(&twin, |name| Event::Leaves { name }, "no longer pumped")?;
                    }
                    if self.unclear.insert(queue.name.clone()) {
                        self.out.note(&unclear(self.session, &queue.name));
                    }
                    self.unclear.insert(twin);
                }
            }
        }
        Ok(())
    }

    fn open(&mut self, name: Bytes) -> Result<(), Failure> {
        if self.queues.len() >= self.most {
            self.left_out.insert(name);
            return Ok(());
        }
        self.say(&name, |name| Event::Pumps { name }, "pumped")?;
        let queue = OfQueue::new(&self.client, &name);
        self.queues.insert(name, queue);
        Ok(())
    }

    fn say(&self, name: &Bytes, event: impl Fn(Name) -> Event, text: &str) -> Result<(), Failure> {
        let name = self.session.own_name(name);
        if self.out.is_json {
            return self.out.json(&event(Name::new(name)));
        }
        self.out.line(&format!("{}: {text}", escape::bytes(name)))
    }

    /// All keys were searched: leaves the queues in which nothing has been pending for long.
    pub(crate) async fn searched(&mut self) -> Result<(), Failure> {
        (self.not_searched, self.has_searched) = (None, true);
        let left_out = std::mem::take(&mut self.left_out).len() + self.unclear.len();
        if left_out != self.left_out_before && left_out > 0 {
            let queues = human::counted(left_out as u64, "queue is", "queues are");
            self.out.note(&format!("{queues} left out: --most is {}, or a name is not clear", self.most));
        }
        self.left_out_before = left_out;
        let names: Vec<Bytes> = self.queues.keys().cloned().collect();
        for names in names.chunks(BATCH) {
            let overviews = match self.session.inspector.overview(names).await {
                Ok(overviews) => overviews,
                Err(error) => return Failure::passes(error).map(drop),
            };
            for queue in overviews {
                let is_empty = needs_nothing(&queue) && queue.list_len == Some(0);
                let Some(pumped) = self.queues.get_mut(&queue.name) else { continue };
                let transferred = pumped.pump.stats().transferred;
                if pumped.idle.is_long(is_empty, transferred, Instant::now())
                    && !self.wanted.names.contains(&queue.name)
                {
                    self.queues.remove(&queue.name);
                    let text = format!("no longer pumped: nothing was pending for {}", human::span(IDLE));
                    self.say(&queue.name, |name| Event::Leaves { name }, &text)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn not_searched(&mut self, why: String) {
        if self.not_searched.is_none() {
            self.out.note(&format!("{why}; it goes on"));
        }
        self.not_searched = Some(why);
    }

    /// Says which transfers fail, which schedules do not run, and which entries could not be read.
    ///
    /// # Errors
    /// A permission without which no queue can be transferred for.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        if let Some(LastError { message, .. }) = self.client.stats().last_error {
            if message.starts_with("SUBSCRIBE")
                && let Some(right) = missing_permission(&message)
            {
                return Err(Failure::Refused(format!("{message}; the missing permission: {right}")));
            }
            if message.starts_with("schedules of ") && self.of_schedules.as_ref() != Some(&message) {
                self.out.note(&message);
                self.of_schedules = Some(message);
            }
        }
        let mut notes = BTreeMap::new();
        for (name, queue) in &mut self.queues {
            let stats = queue.pump.stats();
            let is_failing = stats.failure.is_some();
            if let Some(failure) = stats.failure
                && !queue.is_failing
            {
                let message = failure.message;
                match missing_permission(&message) {
                    // One of a command, and not of a key.
                    Some(right) if right.starts_with('+') => {
                        return Err(Failure::Refused(format!("{message}; the missing permission: {right}")));
                    }
                    _ => notes.insert(name.clone(), message),
                };
            } else if queue.is_failing && !is_failing {
                let name = escape::bytes(self.session.own_name(name));
                self.out.note(&format!("the transfer of queue `{name}` works again"));
            }
            queue.is_failing = is_failing;
            let quarantined =
                stats.quarantined - std::mem::replace(&mut queue.quarantined, stats.quarantined);
            if quarantined > 0 {
                let name = self.session.own_name(name);
                let (shown, argument) = (escape::bytes(name), escape::argument(name));
                let entries = human::counted(quarantined, "entry", "entries");
                let list = format!("redelay list {argument} quarantine");
                self.out.note(&format!("{entries} of `{shown}` cannot be read: {list}"));
            }
        }
        notes.into_values().for_each(|note| self.out.note(&note));
        Ok(())
    }

    pub(crate) fn report(&self) -> Report {
        let stats = self.client.stats();
        let failing = self.queues.values().filter(|queue| queue.is_failing).count();
        let searched = self.has_searched && self.not_searched.is_none();
        Report {
            ok: stats.connected && searched && failing == 0,
            connected: stats.connected,
            searched,
            queues: self.queues.len(),
            failing,
            left_out: self.left_out_before.max(self.left_out.len() + self.unclear.len()),
            transferred: stats.transferred,
            quarantined: stats.quarantined,
        }
    }
}

/// Whether a queue has nothing that a pump moves, stores or returns: no pending entries, no schedules, and no
/// messages of receivers that may be gone.
fn needs_nothing(queue: &Overview) -> bool {
    [queue.pending, queue.schedules, queue.in_flight, queue.waiting].iter().all(|count| *count == Some(0))
}

impl OfQueue {
    fn new(client: &Client, name: &[u8]) -> Self {
        Self { pump: client.pump(name), idle: Idle::default(), is_failing: false, quarantined: 0 }
    }
}

/// Since when nothing has been seen to be pending, and how many entries had been moved then.
#[derive(Default)]
struct Idle(Option<(Instant, u64)>);

impl Idle {
    /// Whether that was long ago. `is_empty` says that nothing is pending now, and `transferred` how many
    /// entries have been moved.
    fn is_long(&mut self, is_empty: bool, transferred: u64, now: Instant) -> bool {
        if !is_empty {
            self.0 = None;
            return false;
        }
        match self.0 {
            Some((since, before)) if before == transferred => now - since >= IDLE,
            _ => {
                self.0 = Some((now, transferred));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_idle_if_nothing_is_pending_and_nothing_moves() {
        let (mut idle, begun) = (Idle::default(), Instant::now());
        let mut is_long =
            |is_empty, transferred, hours| idle.is_long(is_empty, transferred, begun + hours * IDLE);
        assert!(!is_long(true, 0, 0) && is_long(true, 0, 1), "nothing has happened");
        assert!(!is_long(true, 7, 2) && !is_long(true, 8, 4), "something was moved in between");
        assert!(!is_long(false, 8, 6) && !is_long(true, 8, 7), "something was pending");
        assert!(is_long(true, 8, 8));
    }
}
