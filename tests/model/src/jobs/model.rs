//! What happens to jobs, within bounds.

use std::collections::BTreeSet;

use stateright::{Model, Property};

use super::offers::{Cancelled, Offer, Offered, Policy};
use super::properties;
use super::protocol::Protocol;
use super::receiving::{Received, Verb};
use super::server::{Field, JobId, Kind, MessageId, Payload, Place, Server, Time};

/// What may happen.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The scripts.
    pub protocol: Protocol,
    /// The ids, and the payloads that each may have.
    pub ids: Vec<Vec<Payload>>,
    /// The offers.
    pub offers: u8,
    /// What the jobs are.
    pub kinds: Vec<Kind>,
    /// What an offer does if the id is taken.
    pub policies: Vec<Policy>,
    /// From the offer on.
    pub delays: Vec<Time>,
    /// None, or when a job expires and whether it is then discarded.
    pub expiries: Vec<Option<(Time, bool)>>,
    /// None, or in which time no other throttled one is accepted.
    pub throttles: Vec<Option<Time>>,
    /// How often somebody changes the due time of a job.
    pub reschedules: u8,
    /// How often the clock moves on.
    pub ticks: Time,
    /// How often Java takes or removes something.
    pub java: u8,
    /// How many payloads Java offers that are ready at once.
    pub strangers: u8,
    /// How often somebody requeues, removes or releases something.
    pub operations: u8,
    /// How often somebody removes what is pending or ready.
    pub removals: u8,
    /// How many messages one call claims.
    pub claims: Vec<usize>,
    /// How receivers settle.
    pub verbs: Vec<Verb>,
}

impl Bounds {
    /// One id, two offers.
    pub fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            ids: vec![vec![0]],
            offers: 2,
            kinds: vec![Kind::Holds],
            throttles: vec![None],
            reschedules: 0,
            policies: vec![Policy::Keep, Policy::Replace],
            delays: vec![0, 1],
            expiries: vec![None],
            ticks: 2,
            java: 0,
            strangers: 0,
            operations: 0,
            removals: 0,
            claims: vec![1],
            verbs: vec![Verb::Ack, Verb::Retry(0), Verb::Reject],
        }
    }
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Somebody offers a job.
    Offer(Offer),
    /// Somebody cancels it.
    Cancel(JobId),
    /// Somebody wants it so much later than now.
    Reschedule(JobId, Time),
    /// Time passes: entries are due, leases end.
    Tick,
    /// redelay moves due entries.
    Transfer,
    /// Java moves them.
    JavaTransfer,
    /// A receiver claims up to this number.
    Claim(usize),
    /// A receiver settles a delivery.
    Settle(MessageId, Verb),
    /// A receiver calls, and takes back what others have lost.
    Recover,
    /// A payload wakes a receiver.
    Wake,
    /// A dead letter is delivered again.
    Requeue(MessageId),
    /// Somebody removes a message, or a dead letter.
    Remove(MessageId),
    /// What receivers have left goes back; all of it if they are gone.
    Release {
        /// For long enough.
        are_gone: bool,
    },
    /// Somebody takes an entry.
    Poll,
    /// Somebody removes an entry.
    RemoveEntry(Payload),
    /// Somebody removes all entries.
    Clear,
    /// Somebody removes a ready payload.
    RemovePayload(Payload),
    /// Somebody removes all that are ready, and that wake nobody.
    ClearReady,
    /// A pass of the sweep.
    Sweep,
    /// Java offers a payload, which is ready at once.
    JavaOffer(Payload),
    /// Java takes a ready payload.
    JavaTake,
    /// Java takes an entry.
    JavaPoll,
    /// Java removes an entry.
    JavaRemove(Payload),
    /// Java removes all entries.
    JavaClear,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The keys.
    pub server: Server,
    /// How many jobs should be somewhere, by the replies.
    pub owed: i8,
    /// How many payloads Java has offered.
    pub strangers: usize,
    /// The deliveries whose cancel was requested: they are never delivered again.
    pub requested: BTreeSet<MessageId>,
    /// What may still happen.
    pub left: Left,
}

/// What may still happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Left {
    /// Offers.
    pub offers: u8,
    /// Changes of due times.
    pub reschedules: u8,
    /// What Java does.
    pub java: u8,
    /// What operators do.
    pub operations: u8,
    /// What is removed.
    pub removals: u8,
}

impl State {
    /// Before anything has happened.
    pub fn new(bounds: &Bounds) -> Self {
        Self {
            server: Server::default(),
            owed: 0,
            strangers: 0,
            requested: BTreeSet::new(),
            left: Left {
                offers: bounds.offers,
                reschedules: bounds.reschedules,
                java: bounds.java,
                operations: bounds.operations,
                removals: bounds.removals,
            },
        }
    }

    /// Deliveries that end otherwise than with an acknowledgement. Those that somebody has cancelled are
    /// removed.
    fn end_requested(&mut self, ids: impl IntoIterator<Item = MessageId>) {
        for id in ids {
            self.owed -= i8::from(self.requested.remove(&id));
        }
    }

    /// Does what happens.
    pub fn apply(&mut self, protocol: &Protocol, event: &Event) -> Outcome {
        match event {
            Event::Offer(offer) => {
                self.left.offers = self.left.offers.saturating_sub(1);
                let offered = self.server.offer(protocol, offer);
                self.owed += i8::from(offered == Offered::Stored);
                Outcome::Offered(offered)
            }
            Event::Cancel(id) => {
                let field = self.server.jobs.get(id).copied();
                let cancelled = self.server.cancel(protocol, *id);
                match (cancelled, field) {
                    (Cancelled::Removed, _) => self.owed -= 1,
                    (Cancelled::Requested, Some(Field::Message { id, .. })) => {
                        self.requested.insert(id);
                    }
                    _ => {}
                }
                Outcome::Cancelled(cancelled)
            }
            Event::Reschedule(id, delay) => {
                self.left.reschedules = self.left.reschedules.saturating_sub(1);
                Outcome::Count(u8::from(self.server.reschedule(*id, *delay)))
            }
            Event::Tick => {
                self.server.tick();
                Outcome::Nothing
            }
            Event::Transfer => Outcome::Count(self.server.transfer(protocol)),
            Event::JavaTransfer => Outcome::Count(self.server.java_transfer()),
            Event::Claim(most) => self.receive(protocol, None, *most),
            Event::Recover => self.receive(protocol, None, 0),
            Event::Settle(id, verb) => self.receive(protocol, Some((*id, *verb)), 0),
            Event::Wake => Outcome::Count(u8::from(self.server.wake())),
            Event::Requeue(id) => {
                self.spend();
                Outcome::Count(u8::from(self.server.requeue(*id)))
            }
            Event::Remove(id) => {
                self.spend();
                let is_there = self.server.remove(*id);
                self.requested.remove(id);
                self.owed -= i8::from(is_there);
                Outcome::Count(u8::from(is_there))
            }
            Event::Release { are_gone } => {
                self.spend();
                let ended = if *are_gone { self.server.ended() } else { Vec::new() };
                let released = self.server.release(protocol, *are_gone);
                self.end_requested(ended);
                Outcome::Count(released)
            }
            Event::Poll => self.removal(|server| u8::from(server.poll(protocol))),
            Event::RemoveEntry(payload) => {
                self.removal(|server| u8::from(server.remove_entry(protocol, *payload)))
            }
            Event::Clear => self.removal(|server| server.clear(protocol)),
            Event::RemovePayload(payload) => {
                self.removal(|server| u8::from(server.remove_payload(protocol, *payload)))
            }
            Event::ClearReady => self.removal(|server| server.clear_ready(protocol)),
            Event::Sweep => Outcome::Count(self.server.sweep(protocol)),
            Event::JavaOffer(payload) => {
                self.server.target.push(*payload);
                self.owed += 1;
                self.strangers += 1;
                Outcome::Nothing
            }
            Event::JavaTake => self.java(|server| u8::from(server.java_take())),
            Event::JavaPoll => self.java(|server| u8::from(server.java_poll())),
            Event::JavaRemove(payload) => self.java(|server| u8::from(server.java_remove(*payload))),
            Event::JavaClear => self.java(|server| {
                server.list.clear();
                std::mem::take(&mut server.pending).len() as u8
            }),
        }
    }

    fn spend(&mut self) {
        self.left.operations = self.left.operations.saturating_sub(1);
    }

    fn removal(&mut self, act: impl FnOnce(&mut Server) -> u8) -> Outcome {
        self.left.removals = self.left.removals.saturating_sub(1);
        self.taken(act)
    }

    fn java(&mut self, act: impl FnOnce(&mut Server) -> u8) -> Outcome {
        self.left.java = self.left.java.saturating_sub(1);
        self.taken(act)
    }

    fn taken(&mut self, act: impl FnOnce(&mut Server) -> u8) -> Outcome {
        let count = act(&mut self.server);
        self.owed -= count as i8;
        Outcome::Count(count)
    }

    fn receive(&mut self, protocol: &Protocol, settle: Option<(MessageId, Verb)>, most: usize) -> Outcome {
        let ended = self.server.ended();
        let done = self.server.receive(protocol, settle, most);
        if let Some((id, verb)) = settle.filter(|_| done.was_held) {
            if verb == Verb::Ack {
                self.owed -= 1;
                self.requested.remove(&id);
            } else {
                self.end_requested([id]);
            }
        }
        self.end_requested(ended);
        self.owed -= done.discarded as i8;
        Outcome::Received(done)
    }
}

/// The answer to an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Nothing,
    /// A number.
    Count(u8),
    /// Of an offer.
    Offered(Offered),
    /// Of a cancel.
    Cancelled(Cancelled),
    /// Of a receiver's call.
    Received(Received),
}

impl Bounds {
    /// Calls this with each offer.
    fn offers(&self, mut offer: impl FnMut(Offer)) {
        for (id, payloads) in (0..).zip(&self.ids) {
            for payload in payloads.iter().copied() {
                for delay in self.delays.iter().copied() {
                    for policy in self.policies.iter().copied() {
                        for throttle in self.throttles.iter().copied() {
                            for kind in self.kinds.iter().copied() {
                                for expiry in self.expiries.iter().copied() {
                                    let fits = |(after, _)| after > delay && kind != Kind::Plain;
                                    if expiry.is_none_or(fits) {
                                        offer(Offer { id, kind, payload, delay, policy, expiry, throttle });
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// Whether all jobs hold their ids.
    pub fn all_hold(&self) -> bool {
        self.kinds == [Kind::Holds]
    }

    /// What may happen now.
    pub fn events(&self, state: &State) -> Vec<Event> {
        let server = &state.server;
        let mut events = Vec::new();
        if state.left.offers > 0 {
            self.offers(|offer| events.push(Event::Offer(offer)));
        }
        let ids = || (0..self.ids.len()).map(|id| id as JobId);
        events.extend(ids().map(Event::Cancel));
        if state.left.reschedules > 0 {
            let changes = |id| self.delays.iter().map(move |delay| Event::Reschedule(id, *delay));
            events.extend(ids().flat_map(changes));
        }
        if server.clock < self.ticks {
            events.push(Event::Tick);
        }
        events.extend([Event::Transfer, Event::Recover, Event::Wake, Event::Sweep]);
        events.extend(self.claims.iter().map(|most| Event::Claim(*most)));
        for (id, record) in &server.messages {
            if matches!(record.place, Place::InFlight(_)) {
                events.extend(self.verbs.iter().map(|verb| Event::Settle(*id, *verb)));
            }
        }
        if state.left.operations > 0 {
            events.extend(server.dead.keys().map(|id| Event::Requeue(*id)));
            events.extend(server.dead.keys().chain(server.messages.keys()).map(|id| Event::Remove(*id)));
            events.extend([Event::Release { are_gone: false }, Event::Release { are_gone: true }]);
        }
        if state.left.removals > 0 {
            events.extend([Event::Poll, Event::Clear, Event::ClearReady]);
            let payloads: BTreeSet<_> = server.list.iter().map(|entry| entry.1).collect();
            events.extend(payloads.into_iter().map(Event::RemoveEntry));
            let payloads: BTreeSet<_> = server.target.iter().copied().collect();
            events.extend(payloads.into_iter().map(Event::RemovePayload));
        }
        if state.strangers < usize::from(self.strangers) {
            let payloads: BTreeSet<_> = self.ids.iter().flatten().copied().collect();
            events.extend(payloads.into_iter().map(Event::JavaOffer));
        }
        if state.left.java > 0 {
            events.extend([Event::JavaTake, Event::JavaPoll, Event::JavaClear]);
            if self.kinds.contains(&Kind::Plain) {
                // Of others, it does what redelay does.
                events.push(Event::JavaTransfer);
            }
            let payloads: BTreeSet<_> = server.list.iter().map(|entry| entry.1).collect();
            events.extend(payloads.into_iter().map(Event::JavaRemove));
        }
        events
    }
}

impl Model for Bounds {
    type State = State;
    type Action = Event;

    fn init_states(&self) -> Vec<State> {
        vec![State::new(self)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Event>) {
        actions.extend(self.events(state));
    }

    fn next_state(&self, last: &State, event: Event) -> Option<State> {
        let mut next = last.clone();
        next.apply(&self.protocol, &event);
        // What changes nothing but what is left leads nowhere.
        (next.server != last.server || next.owed != last.owed || next.requested != last.requested)
            .then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
