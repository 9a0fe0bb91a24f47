//! What a receiver does next. Pure: events, the time, and what the task has in hand go in; the next step
//! comes out.
//!
//! `plan` decides, `task` carries out, `call` speaks.
//!
//! A call needs a reason: something to settle, a receive for which there may be messages, a payload in the
//! inbox, or the time. What comes up during a call shares the next one. While nothing is ready, a blocked pop
//! waits for the next payload.
//!
//! ```text
//! What is ready   (`backlog`)
//!
//!   +---------+  none is left              +-------+
//!   | Unknown | -------------------------> | Empty |  a receive that waits: a blocked pop
//!   |         | <------------------------- |       |
//!   +---------+  refused, held back,       +-------+
//!     |     ^    inbox put back,             |   ^
//!     |     |    on_woken, close             |   |
//!     |     |                   some are     |   |  none is left
//!     |     |  the same         left         v   |
//!     |     |                              +-------+
//!     |     +----------------------------- | Left  |  many receives: two calls at a time
//!     +----------------------------------> |       |
//!                some are left             +-------+
//!
//! The blocked pop   (`View::blocked`)
//!
//!   +----+  Step::Block: Empty, and a receive waits   +-------+
//!   | No | -----------------------------------------> | Waits |
//!   +----+                                            +-------+
//!    ^  ^           on_woken                           |    |
//!    |  +----------------------------------------------+    | Step::Unblock: nobody waits for
//!    |                                                      | a while, held back, or closed
//!    |              on_woken                   +--------+   |
//!    +---------------------------------------- | Ending | <-+
//!                                              +--------+
//!
//! Claiming   (`pause_until`, `hold`)
//!
//!   +------+  on_refused: until the pause is over              +--------+
//!   | free | ------------------------------------------------> | paused |
//!   +------+  on_answered, held back: until the time it says   +--------+
//!    ^   ^                                                       |
//!    |   | the time is over; if it is held back, also            |
//!    |   | earlier, when something is settled or announced       |
//!    |   +-------------------------------------------------------+
//! ```

mod terms;

use std::time::Duration;

use tokio::time::Instant;

pub(crate) use terms::{Blocked, Consequences, News, ReceiveDemand, Scope, Step, View, Wake};

use crate::pacing::{jittered_with, pause_after_with};

/// The most calls at a time.
const MOST_CALLS: usize = 2;
/// A call is worth making beside another one if it can claim this many messages.
const WORTH_A_CALL: usize = 16;
/// An idle receiver makes a call this often, and at least every fifth of its lease: a silence of a quarter of
/// a lease means that receivers may be cut off (`recover.lua`).
const SIGN_OF_LIFE: Duration = Duration::from_secs(6);
/// How often a receiver sweeps.
const SWEEP: Duration = Duration::from_secs(10);
/// How often keys that do not agree are looked at, at most: what somebody else wrote there never agrees.
const AGREE: Duration = Duration::from_secs(60);
/// Receivers of other processes do not look at an ended lease at the same time.
const JITTER: Duration = Duration::from_millis(20);
/// After this number of misses, the jitter grows no more.
const MOST_MISSES: u32 = 6;
/// The server tells times in whole milliseconds, so what is due is due for certain this much later.
const ROUNDING: Duration = Duration::from_millis(1);
/// After this time without a receive, the blocked pop is ended. A loop of receives with a timeout keeps it.
const LINGER: Duration = Duration::from_secs(1);
/// How long a receiver asks instead of waiting, after the server has refused to let it wait.
const ASK: Duration = Duration::from_secs(1);
/// What takes longer than this is no round trip, but an outage.
pub(crate) const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(1);
/// After this number of slow calls in a row, the server is far away.
const FAR: u32 = 3;

/// What is known of the payloads that are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backlog {
    /// There may be some.
    Unknown,
    /// There were more than the last call has claimed.
    Left,
    /// There were none; a blocked pop finds the next one.
    Empty,
}

/// Decides for one receiver.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The length of its leases.
    lease: Duration,
    backlog: Backlog,
    /// A payload may be in the inbox that was moved there for this receiver.
    woken: bool,
    /// The next call looks at retries first, if it claims only one message.
    retries_first: bool,
    /// The time of the next call, if there is no other reason for one.
    next_call: Instant,
    /// When the first retry is due.
    retry_at: Option<Instant>,
    /// The server's clock, epoch ms, and when the last reply has told it.
    clock: Option<(u64, Instant)>,
    next_sweep: Instant,
    may_agree_at: Instant,
    /// The server has refused to claim, or receivers are held back: no attempt before then.
    pause_until: Option<Instant>,
    /// The queue is paused, or one of its limits is reached.
    hold: bool,
    /// Refusals since the last call that claimed.
    refusals: u32,
    /// A refusal was reported, and no call has done since what was refused.
    is_failing: bool,
    /// The server has refused to let it wait: no blocked pop before then.
    may_block_at: Instant,
    /// When the last receive ended.
    idle_since: Option<Instant>,
    /// Announcements in a row that have led to nothing, because others were quicker.
    misses: u32,
    /// Calls in a row that took too long.
    slow: u32,
    /// There are no more receives.
    closed: bool,
    random: fastrand::Rng,
}

impl Plan {
    /// For a receiver with leases of this length. `seed` makes the jitter repeatable.
    pub(crate) fn new(lease: Duration, now: Instant, seed: u64) -> Self {
        Self {
            lease,
            backlog: Backlog::Unknown,
            woken: false,
            retries_first: false,
            next_call: now,
            retry_at: None,
            clock: None,
            next_sweep: now,
            may_agree_at: now,
            pause_until: None,
            hold: false,
            refusals: 0,
            is_failing: false,
            may_block_at: now,
            idle_since: None,
            misses: 0,
            slow: 0,
            closed: false,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// What to do now. Each step is returned once, and is carried out before the next one is asked for.
    pub(crate) fn next(&mut self, now: Instant, demand: ReceiveDemand, view: View) -> Step {
        if view.settles || self.may_call(demand, view) {
            self.idle_since = (demand.messages == 0).then(|| self.idle_since.unwrap_or(now));
            if demand.at_once && !self.may_claim(now, view) {
                return Step::Answer { refused: self.refusals > 0 };
            }
            if let Some(scope) = self.scope(now, demand, view) {
                self.begin(now, scope);
                return Step::Call(scope);
            }
        }
        // A payload that is moved for a queue that is paused would wait in the inbox.
        if view.blocked == Blocked::Waits && self.hold {
            return Step::Unblock;
        }
        if view.calls > 0 {
            return Step::Idle;
        }
        match view.blocked {
            Blocked::Waits if self.closed || demand.messages == 0 && !self.lingers(now) => Step::Unblock,
            Blocked::No if self.may_block(now) && demand.messages > 0 => Step::Block,
            _ => Step::Sleep(self.wakes_at(demand, view)),
        }
    }

    /// Whether a call may be made beside those that are on their way: only if there is so much to do that it
    /// saves time. A receive of many ends with what the first call brings, so a second one might claim what
    /// nobody waits for.
    pub(crate) fn may_call(&self, demand: ReceiveDemand, view: View) -> bool {
        let saves_time =
            || self.pause_until.is_none() && demand.one_each && wanted(demand, view) >= WORTH_A_CALL;
        view.calls == 0 || self.follows_receives(view.calls) && saves_time()
    }

    /// Whether another receive may be a reason for a call while this number of calls is on its way.
    pub(crate) fn follows_receives(&self, calls: usize) -> bool {
        calls == 0 || calls < MOST_CALLS && self.backlog == Backlog::Left
    }

    /// Whether messages may be claimed. What is settled makes room for more.
    fn may_claim(&self, now: Instant, view: View) -> bool {
        self.pause_until.is_none_or(|until| until <= now) || self.hold && view.settles
    }

    /// What the next call does, if there is a reason for one.
    fn scope(&self, now: Instant, demand: ReceiveDemand, view: View) -> Option<Scope> {
        let (wanted, may_claim) = (wanted(demand, view), self.may_claim(now, view));
        let is_due = self.next_call <= now;
        let may_find = self.woken
            || demand.at_once
            || is_due
            || self.backlog != Backlog::Empty
            || self.retry_at.is_some_and(|retry| retry <= now);
        let claims = wanted > 0 && may_claim && may_find;
        let empties = self.woken && (demand.messages == 0 || self.hold && !may_claim);
        if !(view.settles || claims || is_due || empties) {
            return None;
        }
        let most = if claims { self.most(demand, wanted, view) } else { 0 };
        Some(Scope {
            most,
            sweep: self.next_sweep <= now,
            retries_first: self.retries_first,
            empty_inbox: empties || is_due && most == 0,
        })
    }

    /// How many of the wanted messages a call claims.
    fn most(&self, demand: ReceiveDemand, wanted: usize, view: View) -> usize {
        let shares = self.backlog == Backlog::Left && demand.one_each;
        // Two calls share a backlog.
        let share = if shares && demand.messages >= MOST_CALLS * WORTH_A_CALL {
            demand.messages.div_ceil(MOST_CALLS)
        } else {
            wanted
        };
        wanted.min(share).min(view.most)
    }

    /// The call is made.
    fn begin(&mut self, now: Instant, scope: Scope) {
        if scope.most > 0 {
            self.retries_first = !self.retries_first;
        }
        if scope.most > 0 || scope.empty_inbox {
            self.woken = false;
        }
        if scope.sweep {
            self.next_sweep = now + SWEEP;
        }
        // Until the reply says more.
        self.next_call = now + SIGN_OF_LIFE.min(self.lease / 5);
    }

    fn may_block(&self, now: Instant) -> bool {
        self.backlog == Backlog::Empty
            && !self.closed
            && now >= self.may_block_at
            && self.pause_until.is_none_or(|until| until <= now)
    }

    /// Whether the last receive ended so short a time ago that the next one may be about to begin.
    fn lingers(&self, now: Instant) -> bool {
        self.idle_since.is_none_or(|since| now < since + LINGER)
    }

    /// The first time that is a reason for a step.
    fn wakes_at(&self, demand: ReceiveDemand, view: View) -> Instant {
        let mut at = self.next_call;
        if demand.messages > 0 {
            // During a pause, neither a retry nor anything else is a reason to look.
            let pause = self.pause_until.unwrap_or(self.may_block_at);
            at = at.min(self.retry_at.map_or(at, |retry| retry.max(self.pause_until.unwrap_or(retry))));
            if view.blocked == Blocked::No && !self.closed {
                at = at.min(pause.max(self.may_block_at));
            } else if self.pause_until.is_some() && self.backlog == Backlog::Unknown {
                at = at.min(pause);
            }
        } else if let (Blocked::Waits, Some(since)) = (view.blocked, self.idle_since) {
            at = at.min(since + LINGER);
        }
        at
    }

    /// Whether claims in the reply to a call whose first try was sent at `sent` are not worth handing out:
    /// that try may have claimed them long ago, so that their leases are nearly over. Or this process stood
    /// still.
    pub(crate) fn are_old(&self, now: Instant, sent: Instant, repeated: bool) -> bool {
        repeated && now.duration_since(sent) > self.lease / 2 || sent + self.lease <= now
    }

    /// A call is answered. `rests` says that no other one is on its way. If the server has refused to claim,
    /// [`Plan::on_refused`] follows.
    pub(crate) fn on_answered(
        &mut self,
        now: Instant,
        scope: Scope,
        news: News,
        rests: bool,
    ) -> Consequences {
        if news.claimed > 0 {
            self.misses = 0;
        }
        self.clock = Some((news.clock, now));
        self.retry_at = news.retry_in.map(|wait| now + wait + ROUNDING);
        if let Some(ends) = news.lease_ends_in {
            let looks = now + ends + ROUNDING + JITTER.mul_f64(self.random.f64());
            self.next_call = self.next_call.min(looks);
        }
        let agree = news.disagree && now >= self.may_agree_at;
        if agree {
            self.may_agree_at = now + AGREE;
        }
        let mut consequences = Consequences { agree, ..Consequences::default() };
        if news.refused {
            return consequences;
        }
        if scope.most == 0 {
            if scope.empty_inbox {
                self.backlog = Backlog::Unknown;
            }
            return consequences;
        }
        self.refusals = 0;
        // A call on an empty queue may not have used what was refused. A sweep looks at all keys.
        if self.is_failing && (news.claimed > 0 || scope.sweep) {
            self.is_failing = false;
            consequences.recovered = true;
        }
        self.hold = news.hold.is_some();
        // Receivers of other processes do not look at the same time.
        self.pause_until = news.hold.map(|hold| now + hold.mul_f64(1.0 + self.random.f64() / 50.0));
        self.backlog = match (self.hold, news.left) {
            (true, _) => Backlog::Unknown,
            (false, true) => Backlog::Left,
            (false, false) => Backlog::Empty,
        };
        // A call claims a megabyte or so, and no more than it was told to. If there is more, the next call is
        // for those that do not wait. Another call may bring them some.
        let is_all = news.claimed == 0 || !news.left && news.retry_in != Some(Duration::ZERO);
        consequences.answer = (is_all || self.hold) && rests;
        consequences
    }

    /// The server refuses calls, or to claim. Returns whether that is to be reported: not of each refusal in
    /// a row.
    pub(crate) fn on_refused(&mut self, now: Instant) -> bool {
        self.next_sweep = now;
        let until = now + pause_after_with(self.refusals, self.random.f64());
        self.pause_until = Some(until);
        // What was refused may be to take messages back.
        self.next_call = self.next_call.max(until);
        self.refusals = self.refusals.saturating_add(1);
        self.backlog = Backlog::Unknown;
        !std::mem::replace(&mut self.is_failing, true)
    }

    /// The blocked pop has ended. `ending` says that it was told to.
    pub(crate) fn on_woken(&mut self, now: Instant, wake: Wake, ending: bool) {
        match wake {
            Wake::Moved(moved) => {
                self.woken |= moved;
                if !ending {
                    self.backlog = Backlog::Unknown;
                }
                self.may_block_at = now;
            }
            // The receiver asks instead.
            Wake::Refused => {
                self.backlog = Backlog::Unknown;
                self.may_block_at = now + jittered_with(ASK, self.random.f64());
            }
            Wake::Unknown => self.woken = true,
        }
    }

    /// Another receiver announces a retry that is due at this time, epoch ms, or that there is room for more
    /// messages. Not all receivers look for it at the same time.
    pub(crate) fn on_announced(&mut self, now: Instant, due: f64) {
        // Before the first reply, the clock is not known, and every time may be now.
        let (clock, read) = self.clock.unwrap_or((u64::MAX, now));
        let wait = Duration::from_millis((due - clock as f64).max(0.0) as u64);
        let Some(due) = read.checked_add(wait) else { return };
        let misses = if self.hold { 0 } else { self.misses.min(MOST_MISSES) };
        let at = due + ROUNDING + JITTER.saturating_mul(1 << misses).mul_f64(self.random.f64());
        self.retry_at = Some(self.retry_at.map_or(at, |known| known.min(at)));
        if self.hold {
            // It may be over.
            self.pause_until = self.pause_until.map(|until| until.min(at));
        } else {
            self.misses = self.misses.saturating_add(1);
        }
    }

    /// There may be more dead letters to send on, of which only a reply tells.
    pub(crate) fn on_forwarded(&mut self, now: Instant) {
        self.next_call = now;
    }

    /// A call took this long. Leases are extended, and silences told from pauses, only if that is short
    /// beside a lease. Returns whether it is to be reported that the server is far away: once.
    pub(crate) fn on_round_trip(&mut self, round_trip: Duration) -> bool {
        if round_trip <= LONGEST_ROUND_TRIP.min(self.lease / 3) {
            self.slow = 0;
            return false;
        }
        self.slow = self.slow.saturating_add(1);
        self.slow == FAR
    }

    /// There are no more receives.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.backlog = Backlog::Unknown;
        // A payload may have been moved for a receive that has ended.
        self.woken = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether the next call is to look for a payload that was moved to the inbox for this receiver.
    pub(crate) fn set_woken(&mut self, woken: bool) {
        self.woken = woken;
    }
}

/// The messages that no call on its way is to claim.
fn wanted(demand: ReceiveDemand, view: View) -> usize {
    demand.messages.saturating_sub(view.claiming)
}

#[cfg(test)]
mod tests;
