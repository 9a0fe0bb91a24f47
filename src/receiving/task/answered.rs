//! Hands out what a call has brought, and notes what its reply says.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Content, JITTER, Task};
use crate::conn::{OpError, Unconfirmed};
use crate::pacing::backoff;
use crate::receiving::Claim;
use crate::receiving::call::{Outcome, Settled, Settlement, Turn};
use crate::receiving::in_flight::{Answered, NoAnswer};
use crate::receiving::waiting::Demand;
use crate::telemetry::{Delivered, events};
use crate::wire::message::{Member, Record};

/// Where settlements are answered, and how.
type Answers = Vec<(oneshot::Sender<Result<Settled, OpError>>, Result<Settled, OpError>)>;

impl Task {
    /// A call has ended. Returns whether the server answers calls.
    pub(super) fn on_ended(&mut self, answered: Answered) -> bool {
        if let (Some(round_trip), Ok(_)) = (answered.round_trip(), &answered.result) {
            self.notice_distance(round_trip);
        }
        let Answered { mut turn, demand, sent, repeated, unconfirmed, result, .. } = answered;
        match result {
            Ok(outcome) => {
                self.forwarding.start(&self.conn, &self.keys, outcome.to_send);
                self.on_answered(turn, demand, outcome, sent, repeated, unconfirmed);
            }
            Err(NoAnswer { error, lost, closed }) => {
                turn.answer_all(&if lost { error.clone().after_a_lost_try() } else { error.clone() });
                if closed {
                    return false;
                }
                turn.extend.iter().for_each(|member| self.leases.on_refused(member));
                self.on_refused(error, demand);
            }
        }
        true
    }

    /// Hands out what a call that was sent at `sent` has brought.
    fn on_answered(
        &mut self,
        turn: Turn,
        demand: Demand,
        outcome: Outcome,
        sent: Instant,
        repeated: bool,
        unconfirmed: Option<Unconfirmed>,
    ) {
        let now = Instant::now();
        let mut answers = Answers::default();
        let Outcome { settled, claims, unsent, refused, .. } = outcome;
        let mut settled = settled.into_iter();
        for (to_settle, result) in turn.acknowledge.into_iter().zip(&mut settled) {
            self.count(&to_settle.settlement, &result);
            answers.push((to_settle.answer, result));
        }
        for (member, result) in turn.extend.into_iter().zip(&mut settled) {
            match result {
                Ok(settled) => self.leases.on_extended(&member, sent, settled == Settled::Done),
                Err(_) => self.leases.on_refused(&member),
            }
        }
        for (to_settle, result) in turn.settle.into_iter().zip(&mut settled) {
            match (&to_settle.settlement, &result) {
                (Settlement::Extend { by_ms }, Ok(Settled::Done)) => {
                    let safe_until = sent + Duration::from_millis(*by_ms);
                    self.leases.on_extended_by_hand(&to_settle.member, safe_until);
                }
                (Settlement::Extend { .. }, Ok(_)) => {
                    self.leases.on_extended(&to_settle.member, sent, false);
                }
                _ => {}
            }
            self.count(&to_settle.settlement, &result);
            answers.push((to_settle.answer, result));
        }
        self.answered = self.answered.max(answers.len()).max(claims.len());
        self.answer(answers, unconfirmed);
        self.counters.delivered(Delivered::Received, (claims.len() + unsent.len()) as u64);
        self.unsent.extend(unsent);
        self.counters.delivered(Delivered::Recovered, outcome.recovered);
        self.counters.delivered(Delivered::Died, outcome.died);
        let leases = &mut self.leases;
        let claim = |(member, record): (Member, Record)| Claim {
            lease: leases.add(member, sent),
            member,
            failed: record.failed,
            lost: record.lost,
            first: record.first,
            payload: record.payload,
        };
        let claims: Vec<Claim> = claims.into_iter().map(claim).collect();
        // A call claims a megabyte or so, and no more than it was told to.
        let is_all = claims.is_empty() || !outcome.left && outcome.retry_in != Some(Duration::ZERO);
        let has_claimed = !claims.is_empty();
        if has_claimed {
            self.misses = 0;
        }
        // The first try may have claimed them long ago: then their leases are nearly over. Or this process
        // stood still.
        let are_old = repeated && sent.elapsed() > self.lease / 2 || sent + self.lease <= now;
        let unwanted = if are_old { claims } else { self.waiting.hand_out(claims, &self.outbox) };
        if !unwanted.is_empty() {
            drop(self.outbox.hold(unwanted));
        }
        self.clock = Some((outcome.clock, now));
        let after = |wait: Duration| now + wait;
        self.retry_at = outcome.retry_in.map(|wait| after(wait + Duration::from_millis(1)));
        if let Some(ends) = outcome.lease_ends_in {
            let looks = after(ends) + Duration::from_millis(1) + JITTER.mul_f64(fastrand::f64());
            self.next_call = self.next_call.min(looks);
        }
        if outcome.recovered > 0 {
            events::leases_ended(&self.keys, outcome.recovered);
        }
        if outcome.trimmed > 0 {
            events::dead_letters_removed(&self.keys, outcome.trimmed);
        }
        if outcome.died > 0 {
            events::dead_letters(&self.keys, outcome.died);
        }
        if outcome.gone > 0 {
            self.counters.delivered(Delivered::Vanished, outcome.gone);
            events::keys_disagreed(&self.keys, "messages", outcome.gone, 0);
        }
        if outcome.disagree {
            self.agree();
        }
        if let Some(why) = refused {
            self.on_refused(OpError::Server(why), demand);
            return;
        }
        if turn.most > 0 {
            // A call on an empty queue may not have used what was refused. A sweep looks at all keys.
            if self.is_failing && (has_claimed || turn.sweep) {
                self.is_failing = false;
                events::receives_recovered(&self.keys);
            }
            self.refusals = 0;
            self.refusal = None;
            self.hold = outcome.hold.is_some();
            // Receivers of other processes do not look at the same time.
            self.pause_until = outcome.hold.map(|hold| now + hold.mul_f64(1.0 + fastrand::f64() / 50.0));
            self.content = match (self.hold, outcome.left) {
                (true, _) => Content::Unknown,
                (false, true) => Content::Left,
                (false, false) => Content::Empty,
            };
            if let (true, Some(parked)) = (self.hold, &mut self.parked) {
                parked.expire();
                self.place = None;
            }
            // They have seen what there is. If there is more, the next call is for them. Another call may bring them some.
            if (is_all || self.hold) && self.in_flight.is_empty() {
                self.waiting.answer(demand.before, false, || Ok(()));
            }
        } else if turn.empty_inbox {
            self.content = Content::Unknown;
        }
    }

    /// Answers those that have settled, when replicas have it, if they are to confirm it. Receives do not wait for that.
    fn answer(&self, answers: Answers, unconfirmed: Option<Unconfirmed>) {
        // The others have written nothing that could be confirmed.
        let waits = |result: &Result<_, _>| {
            unconfirmed.is_some() && matches!(result, Ok(Settled::Done | Settled::Dead))
        };
        let (written, others): (Answers, Answers) =
            answers.into_iter().partition(|(_, result)| waits(result));
        for (answer, result) in others {
            let _ = answer.send(result);
        }
        if written.is_empty() {
            return;
        }
        let conn = self.conn.clone();
        let deadline = Instant::now() + conn.command_timeout();
        let confirm = async move {
            let confirmed = conn.confirm(unconfirmed, deadline).await;
            for (answer, result) in written {
                let _ = answer.send(result.and_then(|settled| confirmed.clone().map(|()| settled)));
            }
        };
        self.confirming.spawn_on(confirm, self.conn.runtime());
    }

    fn count(&self, settlement: &Settlement, result: &Result<Settled, OpError>) {
        let what = match (result, settlement) {
            (Ok(Settled::Gone), _) => Delivered::Lost,
            (Err(_), _) | (_, Settlement::Extend { .. }) => return,
            (_, Settlement::Acknowledge) => Delivered::Acknowledged,
            (_, Settlement::Retry { .. }) => Delivered::Failed,
            (_, Settlement::Snooze { .. } | Settlement::Unread) => Delivered::Released,
            (_, Settlement::Reject { .. }) => Delivered::Rejected,
        };
        self.counters.delivered(what, 1);
    }

    /// The server refuses to claim.
    pub(super) fn on_refused(&mut self, error: OpError, demand: Demand) {
        if !std::mem::replace(&mut self.is_failing, true) {
            self.conn.counters().failed(format!("receive from `{}`", events::name(&self.keys)), &error);
            events::receives_failing(&self.keys, &error);
        }
        self.next_sweep = Instant::now();
        let until = Instant::now() + backoff(self.refusals);
        self.pause_until = Some(until);
        // What was refused may be to take messages back.
        self.next_call = self.next_call.max(until);
        self.refusals = self.refusals.saturating_add(1);
        self.content = Content::Unknown;
        self.waiting.answer(demand.before, true, || Err(error.clone()));
        self.refusal = Some(error);
    }
}
