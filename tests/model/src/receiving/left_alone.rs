//! What happens from a state on if nothing goes wrong any more.

use crate::receiving::client::{Condition, Op, Pop, Settlement};
use crate::receiving::model::{Action, Bounds, SILENT};
use crate::receiving::protocol::{Call, Member, Time};
use crate::receiving::recovery::extra_time;
use crate::receiving::server::Server;
use crate::receiving::state::State;

/// More steps than receivers have a reason for in one unit of time.
const STEPS: usize = 60;

impl Bounds {
    /// Without another fault: whether everything is settled, and within how many units of time. The holder of
    /// a message acknowledges it. If no receiver runs, others take what comes back to the target.
    #[must_use]
    pub fn settles_within(&self, state: &State, most: Time) -> bool {
        let mut state = state.clone();
        // No lease is left that others should have ended.
        let pause = (0..self.receivers).map(|n| self.pace(n).pause).max().unwrap_or(0);
        let limit = |(member, ends): (&Member, &Time)| {
            let lease = state.server.messages.get(&member.id).map_or(0, |record| record.policy.lease);
            (*member, (*ends - state.server.clock).max(0) + extra_time(lease) + pause + 1)
        };
        let limits: Vec<(Member, Time)> = state.server.leases.iter().map(limit).collect();
        for elapsed in 0..most {
            let mut steps = 0;
            while let Some(action) = self.next_of_itself(&state) {
                self.act(&mut state, action);
                self.park(&mut state);
                steps += 1;
                if steps > STEPS {
                    return false;
                }
            }
            let mut running = state.clients.iter().filter(|client| client.condition == Condition::Runs);
            let is_nobody_left = running.clone().next().is_none();
            let waits = running.any(|client| client.wants);
            let Server { target, inbox, messages, leases, .. } = &state.server;
            // What nobody waits for may wait for a retry, or in the target.
            if inbox.is_empty()
                && leases.is_empty()
                && (messages.is_empty() || !waits && !is_nobody_left)
                && (target.is_empty() || !waits)
            {
                return true;
            }
            let is_late = |(member, limit): &(Member, Time)| {
                elapsed > *limit && state.server.leases.contains_key(member)
            };
            if !is_nobody_left && limits.iter().any(is_late) {
                return false;
            }
            self.advance(&mut state, 1);
        }
        false
    }

    fn next_of_itself(&self, state: &State) -> Option<Action> {
        for (n, client) in state.clients.iter().enumerate() {
            if client.pop == Some(Pop::Blocked) && !state.server.target.is_empty() {
                return Some(Action::Move(n));
            }
            if client.condition != Condition::Runs {
                continue;
            }
            let pace = self.pace(n);
            match &client.op {
                Some(op) if op.is_under_way(pace) => continue,
                Some(Op { answer: None, .. }) => return Some(Action::Retry(n)),
                Some(_) => return Some(Action::Receive(n)),
                None => {}
            }
            if let Some(held) = client.held.first() {
                return Some(Action::Settle(n, Settlement::Acknowledge, held.delivery));
            }
            match client.pop {
                Some(Pop::Replied(_)) => return Some(Action::Wake(n)),
                _ if client.needs_call(self.capacity, pace) => return Some(Action::Call(n)),
                _ => {}
            }
        }
        self.is_abandoned(state).then_some(Action::Elsewhere(Call::ReleaseAll(SILENT)))
    }
}
