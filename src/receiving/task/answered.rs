//! Hands out what a call has brought, and notes what its reply says.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Task;
use crate::conn::{OpError, Unconfirmed};
use crate::receiving::Claim;
use crate::receiving::call::{Outcome, Settled, Settlement, Turn};
use crate::receiving::in_flight::{Answered, NoAnswer};
use crate::receiving::plan::Demand;
use crate::telemetry::{Delivered, events};
use crate::wire::message::{Member, Record};

/// Where settlements are answered, and how.
type Answers = Vec<(oneshot::Sender<Result<Settled, OpError>>, Result<Settled, OpError>)>;

impl Task {
    /// A call has ended. Returns whether the server answers calls.
    pub(super) fn on_ended(&mut self, answered: Answered) -> bool {
        if let (Some(round_trip), Ok(_)) = (answered.round_trip(), &answered.result)
            && self.plan.on_round_trip(round_trip)
        {
            events::receiver_far(&self.keys, round_trip);
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
        let Outcome { news, settled, claims, unsent, refused, .. } = outcome;
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
        let are_old = self.plan.are_old(now, sent, repeated);
        let unwanted = if are_old { claims } else { self.waiting.hand_out(claims, &self.outbox) };
        if !unwanted.is_empty() {
            drop(self.outbox.hold(unwanted));
        }
        let consequences = self.plan.on_answered(now, turn.look, news, self.in_flight.is_empty());
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
        if consequences.agree {
            self.agree();
        }
        if let Some(why) = refused {
            self.on_refused(OpError::Server(why), demand);
            return;
        }
        if consequences.recovered {
            events::receives_recovered(&self.keys);
        }
        if consequences.answer {
            self.waiting.answer(demand.before, false, || Ok(()));
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
        if self.plan.on_refused(Instant::now()) {
            self.conn.counters().failed(format!("receive from `{}`", events::name(&self.keys)), &error);
            events::receives_failing(&self.keys, &error);
        }
        self.waiting.answer(demand.before, true, || Err(error.clone()));
        self.refusal = Some(error);
    }
}
