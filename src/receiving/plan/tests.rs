use super::*;

const LEASE: Duration = Duration::from_secs(30);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn plan(now: Instant) -> Plan {
    Plan::new(LEASE, now, 1)
}

/// A plan whose first call was answered.
fn answered(now: Instant, news: News) -> Plan {
    let mut plan = plan(now);
    let scope = call(&mut plan, now, one_each(1), REST);
    plan.on_answered(now, scope, news, true);
    plan
}

/// Receives of one message each, which wait.
fn one_each(messages: usize) -> ReceiveDemand {
    ReceiveDemand { messages, one_each: true, at_once: false, before: 9 }
}

/// One receive that does not wait.
const AT_ONCE: ReceiveDemand = ReceiveDemand { messages: 1, one_each: true, at_once: true, before: 9 };
const NOBODY: ReceiveDemand = ReceiveDemand { messages: 0, one_each: true, at_once: false, before: 9 };

const REST: View = View { calls: 0, claiming: 0, most: 1000, settles: false, blocked: Blocked::No };
const SETTLES: View = View { settles: true, ..REST };
const BLOCKED: View = View { blocked: Blocked::Waits, ..REST };
const ENDING: View = View { blocked: Blocked::Ending, ..REST };

fn claiming(claiming: usize) -> View {
    View { calls: 1, claiming, ..REST }
}

const NOTHING: News = News {
    clock: 1_000_000,
    lease_ends_in: None,
    retry_in: None,
    claimed: 0,
    left: false,
    disagree: false,
    hold: None,
    refused: false,
};
const LEFT: News = News { claimed: 1, left: true, ..NOTHING };

fn call(plan: &mut Plan, now: Instant, demand: ReceiveDemand, view: View) -> Scope {
    match plan.next(now, demand, view) {
        Step::Call(scope) => scope,
        other => panic!("no call, but {other:?}"),
    }
}

fn sleep(plan: &mut Plan, now: Instant, demand: ReceiveDemand, view: View) -> Instant {
    match plan.next(now, demand, view) {
        Step::Sleep(at) => at,
        other => panic!("no sleep, but {other:?}"),
    }
}

#[test]
fn the_first_call_sweeps_and_claims_what_is_wanted() {
    let now = Instant::now();
    let mut plan = plan(now);
    let scope = call(&mut plan, now, one_each(3), REST);
    assert_eq!(scope, Scope { most: 3, sweep: true, retries_first: false, empty_inbox: false });
    assert_eq!(plan.next(now, one_each(3), claiming(3)), Step::Idle);
}

#[test]
fn the_first_call_of_a_receiver_that_nobody_waits_for_puts_the_inbox_back() {
    let now = Instant::now();
    let scope = call(&mut plan(now), now, NOBODY, REST);
    assert_eq!(scope, Scope { most: 0, sweep: true, retries_first: false, empty_inbox: true });
}

#[test]
fn an_idle_receiver_gives_signs_of_life_and_sweeps_less_often() {
    for (lease, every) in [(LEASE, secs(6)), (secs(600), secs(6)), (secs(10), secs(2))] {
        let begun = Instant::now();
        let mut plan = Plan::new(lease, begun, 1);
        let (mut now, mut swept) = (begun, begun);
        for n in 0..20 {
            let scope = call(&mut plan, now, NOBODY, REST);
            assert!(scope.empty_inbox && scope.most == 0, "{scope:?}");
            assert_eq!(scope.sweep, n == 0 || now >= swept + SWEEP);
            if scope.sweep {
                swept = now;
            }
            plan.on_answered(now, scope, NOTHING, true);
            assert_eq!(sleep(&mut plan, now, NOBODY, REST), now + every);
            now += every;
        }
    }
}

#[test]
fn while_nothing_is_ready_a_pop_waits_beside_the_signs_of_life() {
    let now = Instant::now();
    let mut plan = answered(now, NOTHING);
    assert_eq!(plan.next(now, one_each(1), REST), Step::Block);
    assert_eq!(sleep(&mut plan, now, one_each(1), BLOCKED), now + SIGN_OF_LIFE);
    let scope = call(&mut plan, now + SIGN_OF_LIFE, one_each(1), BLOCKED);
    assert_eq!((scope.most, scope.empty_inbox), (1, false));
}

#[test]
fn nobody_blocks_for_nobody() {
    let now = Instant::now();
    let mut plan = answered(now, NOTHING);
    assert_eq!(sleep(&mut plan, now, NOBODY, REST), now + SIGN_OF_LIFE);
    assert_eq!(plan.next(now, one_each(1), REST), Step::Block);
}

#[test]
fn what_is_left_is_claimed_at_once() {
    let now = Instant::now();
    let mut plan = answered(now, LEFT);
    for _ in 0..5 {
        let scope = call(&mut plan, now, one_each(1), REST);
        assert_eq!((scope.most, scope.sweep), (1, false));
        plan.on_answered(now, scope, LEFT, true);
    }
    let scope = call(&mut plan, now, one_each(1), REST);
    plan.on_answered(now, scope, NOTHING, true);
    assert_eq!(plan.next(now, one_each(1), REST), Step::Block);
}

#[test]
fn retries_and_new_messages_take_turns() {
    let now = Instant::now();
    let mut plan = answered(now, LEFT);
    let mut first = Vec::new();
    for n in 0..4 {
        // A call that only settles is no turn.
        let scope = call(&mut plan, now, NOBODY, SETTLES);
        assert_eq!((scope.most, scope.retries_first), (0, n % 2 == 0));
        let scope = call(&mut plan, now, one_each(1), REST);
        first.push(scope.retries_first);
        plan.on_answered(now, scope, LEFT, true);
    }
    assert_eq!(first, [true, false, true, false]);
}

#[test]
fn two_calls_share_a_backlog() {
    let now = Instant::now();
    for (messages, most) in [(1, 1), (31, 31), (32, 16), (33, 17), (100, 50), (1999, 1000), (5000, 1000)] {
        let mut plan = answered(now, LEFT);
        assert_eq!(call(&mut plan, now, one_each(messages), REST).most, most, "of {messages}");
        let rest = messages - most;
        let next = plan.next(now, one_each(messages), claiming(most));
        match rest {
            0..WORTH_A_CALL => assert_eq!(next, Step::Idle, "of {messages}"),
            _ => assert!(matches!(next, Step::Call(scope) if scope.most == rest.min(most)), "{next:?}"),
        }
        let both = View { calls: 2, claiming: most, ..REST };
        assert_eq!(plan.next(now, one_each(messages), both), Step::Idle);
    }
}

#[test]
fn on_a_slow_link_a_call_claims_less() {
    let now = Instant::now();
    let mut plan = answered(now, LEFT);
    assert_eq!(call(&mut plan, now, one_each(100), View { most: 7, ..REST }).most, 7);
    assert_eq!(call(&mut plan, now, one_each(100), View { most: 7, ..claiming(7) }).most, 7);
}

#[test]
fn a_second_call_needs_a_backlog_and_many_receives_of_one() {
    let now = Instant::now();
    let of_many = ReceiveDemand { one_each: false, ..one_each(100) };
    let mut plan = answered(now, LEFT);
    assert!(plan.follows_receives(0) && plan.follows_receives(1) && !plan.follows_receives(2));
    assert_eq!(call(&mut plan, now, of_many, REST).most, 100);
    assert_eq!(plan.next(now, of_many, claiming(50)), Step::Idle);
    assert_eq!(plan.next(now, one_each(65), claiming(50)), Step::Idle);
    assert!(plan.may_call(one_each(66), claiming(50)));
    for news in [NOTHING, News { hold: Some(secs(1)), ..LEFT }] {
        let mut plan = answered(now, news);
        assert_eq!(plan.next(now, one_each(100), claiming(1)), Step::Idle, "{news:?}");
        assert!(plan.follows_receives(0) && !plan.follows_receives(1));
    }
    plan.on_refused(now);
    assert!(!plan.may_call(one_each(100), claiming(50)));
}

#[test]
fn what_is_to_be_settled_is_settled_in_any_case() {
    let now = Instant::now();
    let empty = |now| answered(now, NOTHING);
    assert_eq!(
        call(&mut empty(now), now, one_each(1), SETTLES),
        Scope { retries_first: true, ..Scope::default() }
    );
    // It was taken, and then the receives have left.
    let view = View { settles: true, ..claiming(0) };
    assert_eq!(call(&mut empty(now), now, NOBODY, view).most, 0);
    let mut refused = empty(now);
    refused.on_refused(now);
    assert_eq!(call(&mut refused, now, one_each(1), SETTLES).most, 0);
    assert_eq!(refused.next(now, AT_ONCE, SETTLES), Step::Answer { refused: true });
    assert_eq!(call(&mut refused, now, ReceiveDemand { at_once: false, ..AT_ONCE }, SETTLES).most, 0);
}

#[test]
fn a_payload_in_the_inbox_is_claimed_or_put_back() {
    let now = Instant::now();
    let mut plan = answered(now, NOTHING);
    plan.on_woken(now, Wake::Moved(true), false);
    let scope = call(&mut plan, now, one_each(1), REST);
    assert_eq!((scope.most, scope.empty_inbox), (1, false));
    plan.on_answered(now, scope, NOTHING, true);
    assert_eq!(plan.next(now, one_each(1), REST), Step::Block);
    for ending in [false, true] {
        plan.on_woken(now, Wake::Moved(true), ending);
        let scope = call(&mut plan, now, NOBODY, REST);
        assert_eq!((scope.most, scope.empty_inbox), (0, true));
        // It may be ready again.
        plan.on_answered(now, scope, NOTHING, true);
        let scope = call(&mut plan, now, one_each(1), REST);
        plan.on_answered(now, scope, NOTHING, true);
    }
}

#[test]
fn a_pop_that_ends_by_itself_is_a_reason_to_look() {
    let now = Instant::now();
    let mut plan = answered(now, NOTHING);
    plan.on_woken(now, Wake::Moved(false), true);
    assert_eq!(plan.next(now, one_each(1), REST), Step::Block);
    plan.on_woken(now, Wake::Moved(false), false);
    assert_eq!(call(&mut plan, now, one_each(1), REST).most, 1);
}

#[test]
fn a_pop_that_may_have_moved_something_is_followed_by_a_call() {
    let now = Instant::now();
    let mut plan = answered(now, NOTHING);
    plan.on_woken(now, Wake::Unknown, true);
    assert!(call(&mut plan, now, NOBODY, REST).empty_inbox);
}

#[test]
fn a_receiver_that_must_not_wait_asks() {
    let now = Instant::now();
    let mut plan = answered(now, NOTHING);
    plan.on_woken(now, Wake::Refused, false);
    let scope = call(&mut plan, now, one_each(1), REST);
    plan.on_answered(now, scope, NOTHING, true);
    let at = sleep(&mut plan, now, one_each(1), REST);
    assert!((now + ASK * 3 / 4..now + ASK * 5 / 4).contains(&at), "{:?}", at - now);
    assert_eq!(plan.next(at, one_each(1), REST), Step::Block);
}

#[test]
fn a_loop_of_receives_keeps_the_blocked_pop() {
    let mut now = Instant::now();
    let mut plan = answered(now, NOTHING);
    assert_eq!(plan.next(now, one_each(1), REST), Step::Block);
    for _ in 0..5 {
        assert_eq!(sleep(&mut plan, now, NOBODY, BLOCKED), now + LINGER);
        now += ms(900);
        sleep(&mut plan, now, one_each(1), BLOCKED);
    }
    sleep(&mut plan, now, NOBODY, BLOCKED);
    assert_eq!(sleep(&mut plan, now + ms(999), NOBODY, BLOCKED), now + LINGER);
    assert_eq!(plan.next(now + LINGER, NOBODY, BLOCKED), Step::Unblock);
    let next = plan.next_call;
    assert_eq!(sleep(&mut plan, now + LINGER, NOBODY, ENDING), next);
    assert_eq!(sleep(&mut plan, now + LINGER, one_each(1), ENDING), next, "no second pop beside it");
}

#[test]
fn a_queue_that_is_held_back_is_looked_at_when_that_is_over() {
    let now = Instant::now();
    let mut plan = answered(now, News { hold: Some(secs(2)), ..LEFT });
    assert_eq!(plan.next(now, AT_ONCE, REST), Step::Answer { refused: false });
    let at = sleep(&mut plan, now, one_each(1), REST);
    assert!((now + secs(2)..=now + ms(2040)).contains(&at), "{:?}", at - now);
    let scope = call(&mut plan, at, one_each(1), REST);
    plan.on_answered(at, scope, NOTHING, true);
    assert_eq!(plan.next(at, one_each(1), REST), Step::Block);
}

#[test]
fn a_queue_that_is_held_back_is_not_popped_from() {
    let now = Instant::now();
    let mut plan = answered(now, News { hold: Some(secs(2)), ..NOTHING });
    let beside_a_call = View { calls: 1, ..BLOCKED };
    assert_eq!(plan.next(now, one_each(1), BLOCKED), Step::Unblock);
    assert_eq!(plan.next(now, one_each(1), beside_a_call), Step::Unblock);
    plan.on_woken(now, Wake::Moved(true), true);
    let scope = call(&mut plan, now, one_each(1), REST);
    assert_eq!((scope.most, scope.empty_inbox), (0, true), "its payload goes back");
    sleep(&mut plan, now, one_each(1), REST);
}

#[test]
fn what_is_settled_or_announced_may_end_the_holding_back() {
    let now = Instant::now();
    let held_back = || answered(now, News { hold: Some(secs(100)), ..NOTHING });
    assert_eq!(call(&mut held_back(), now, one_each(2), SETTLES).most, 2);
    assert_eq!(call(&mut held_back(), now, AT_ONCE, SETTLES).most, 1);
    let mut plan = held_back();
    for _ in 0..10 {
        // None of them was for others.
        plan.on_announced(now, 0.0);
    }
    let at = sleep(&mut plan, now, one_each(1), REST);
    assert!(at <= now + ROUNDING + JITTER, "{:?}", at - now);
    assert_eq!(call(&mut plan, at, one_each(1), REST).most, 1);
}

#[test]
fn refusals_back_off_and_are_reported_once() {
    let mut now = Instant::now();
    let mut plan = answered(now, NOTHING);
    for (n, longest) in [10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000].into_iter().enumerate() {
        assert_eq!(plan.on_refused(now), n == 0);
        assert_eq!(plan.next(now, AT_ONCE, REST), Step::Answer { refused: true });
        // A retry does not shorten the pause.
        plan.on_announced(now, 0.0);
        let at = sleep(&mut plan, now, one_each(1), REST);
        assert!(at >= now + ms(longest / 2) && at <= now + ms(longest), "{:?}", at - now);
        assert!(sleep(&mut plan, now, NOBODY, REST) >= at, "nor does a sign of life");
        now = at;
        let scope = call(&mut plan, now, one_each(1), REST);
        assert!(scope.most == 1 && scope.sweep);
        plan.on_answered(now, scope, News { refused: true, ..NOTHING }, true);
    }
}

#[test]
fn a_refusal_is_over_when_something_was_claimed_or_a_sweep_has_looked() {
    let now = Instant::now();
    let (claims, sweeps) = (Scope { most: 1, ..Scope::default() }, Scope { sweep: true, ..Scope::default() });
    let both = Scope { sweep: true, ..claims };
    for (scope, news, is_over) in
        [(claims, NOTHING, false), (sweeps, NOTHING, false), (claims, LEFT, true), (both, NOTHING, true)]
    {
        let mut plan = answered(now, NOTHING);
        plan.on_refused(now);
        assert_eq!(plan.on_answered(now, scope, news, true).recovered, is_over, "{scope:?} {news:?}");
        assert_eq!(plan.on_refused(now), is_over, "a new one is reported");
    }
}

#[test]
fn a_retry_is_claimed_when_it_is_due_if_somebody_waits() {
    let now = Instant::now();
    let news = News { retry_in: Some(secs(2)), ..NOTHING };
    let mut plan = answered(now, news);
    assert_eq!(plan.next(now, one_each(1), REST), Step::Block);
    let at = sleep(&mut plan, now, one_each(1), BLOCKED);
    assert_eq!(at, now + secs(2) + ROUNDING);
    assert_eq!(sleep(&mut plan, now, NOBODY, ENDING), now + SIGN_OF_LIFE);
    assert_eq!(call(&mut plan, at, one_each(1), BLOCKED).most, 1);
}

#[test]
fn an_announced_retry_is_due_by_the_servers_clock() {
    let now = Instant::now();
    let mut plan = answered(now, NOTHING);
    plan.on_announced(now + secs(1), NOTHING.clock as f64 + 3000.0);
    let due = now + secs(3) + ROUNDING;
    let at = sleep(&mut plan, now, one_each(1), BLOCKED);
    assert!((due..=due + JITTER).contains(&at), "{:?}", at - now);
    // A later one changes nothing, nor does one that never comes.
    plan.on_announced(now, NOTHING.clock as f64 + 3500.0);
    plan.on_announced(now, f64::INFINITY);
    assert_eq!(sleep(&mut plan, now, one_each(1), BLOCKED), at);
}

#[test]
fn before_the_first_reply_an_announced_retry_is_due_now() {
    let now = Instant::now();
    let mut plan = plan(now);
    plan.on_announced(now, 9e15);
    assert!(plan.retry_at.is_some_and(|at| at <= now + ROUNDING + JITTER));
}

#[test]
fn who_is_always_too_late_leaves_retries_to_others() {
    let now = Instant::now();
    let mut plan = answered(now, NOTHING);
    let mut latest = Duration::ZERO;
    for misses in 0..100 {
        plan.retry_at = None;
        plan.on_announced(now, 0.0);
        let after = plan.retry_at.expect("an announced one") - now - ROUNDING;
        assert!(after <= JITTER * (1 << misses.min(MOST_MISSES)), "{after:?} after {misses}");
        latest = latest.max(after);
    }
    assert!(latest > JITTER * 32, "{latest:?}");
    plan.on_answered(now, Scope::default(), LEFT, true);
    plan.retry_at = None;
    plan.on_announced(now, 0.0);
    assert!(plan.retry_at.is_some_and(|at| at <= now + ROUNDING + JITTER));
}

#[test]
fn somebody_looks_when_the_first_lease_may_be_ended() {
    let now = Instant::now();
    let mut plan = answered(now, News { lease_ends_in: Some(secs(2)), ..NOTHING });
    let due = now + secs(2) + ROUNDING;
    let at = sleep(&mut plan, now, NOBODY, REST);
    assert!((due..=due + JITTER).contains(&at), "{:?}", at - now);
    let mut plan = answered(now, News { lease_ends_in: Some(secs(7)), ..NOTHING });
    assert_eq!(sleep(&mut plan, now, NOBODY, REST), now + SIGN_OF_LIFE);
}

#[test]
fn who_does_not_wait_is_answered_when_all_was_seen() {
    let now = Instant::now();
    let scope = Scope { most: 2, ..Scope::default() };
    let answers = |scope, news, rests| plan(now).on_answered(now, scope, news, rests).answer;
    assert!(answers(scope, NOTHING, true));
    assert!(answers(scope, News { claimed: 1, ..NOTHING }, true));
    assert!(answers(scope, News { claimed: 1, retry_in: Some(ms(1)), ..NOTHING }, true));
    assert!(answers(scope, News { hold: Some(ms(1)), ..LEFT }, true));
    assert!(answers(scope, News { left: true, ..NOTHING }, true), "nothing fits");
    assert!(!answers(scope, LEFT, true), "the next call brings more");
    assert!(!answers(scope, News { claimed: 1, retry_in: Some(Duration::ZERO), ..NOTHING }, true));
    assert!(!answers(scope, NOTHING, false), "another call may bring some");
    assert!(!answers(Scope::default(), NOTHING, true), "it has not looked");
    assert!(!answers(scope, News { refused: true, ..NOTHING }, true));
}

#[test]
fn who_does_not_wait_makes_a_call() {
    let now = Instant::now();
    let mut plan = answered(now, NOTHING);
    assert_eq!(call(&mut plan, now, AT_ONCE, BLOCKED).most, 1);
}

#[test]
fn keys_that_never_agree_are_looked_at_once_a_minute() {
    let now = Instant::now();
    let mut plan = plan(now);
    let news = News { disagree: true, ..NOTHING };
    let mut agrees = |at| plan.on_answered(at, Scope::default(), news, true).agree;
    assert!(agrees(now) && !agrees(now) && !agrees(now + ms(59_999)) && agrees(now + AGREE));
    assert!(!answered_agrees(now));
}

fn answered_agrees(now: Instant) -> bool {
    plan(now).on_answered(now, Scope::default(), NOTHING, true).agree
}

#[test]
fn claims_are_old_when_their_leases_are_nearly_over() {
    let sent = Instant::now();
    let plan = plan(sent);
    assert!(!plan.are_old(sent + ms(29_999), sent, false) && plan.are_old(sent + LEASE, sent, false));
    assert!(!plan.are_old(sent + LEASE / 2, sent, true) && plan.are_old(sent + ms(15_001), sent, true));
}

#[test]
fn a_server_is_far_after_three_slow_calls_in_a_row() {
    for (lease, slow) in [(LEASE, ms(1001)), (secs(2), ms(667))] {
        let mut plan = Plan::new(lease, Instant::now(), 1);
        let reports = [slow, slow, ms(666), slow, slow, slow, slow].map(|time| plan.on_round_trip(time));
        assert_eq!(reports, [false, false, false, false, false, true, false]);
    }
}

#[test]
fn there_may_be_more_to_send_on() {
    let now = Instant::now();
    let mut plan = answered(now, NOTHING);
    plan.on_forwarded(now);
    call(&mut plan, now, NOBODY, REST);
}

#[test]
fn a_closed_receiver_puts_the_inbox_back_and_blocks_no_more() {
    let now = Instant::now();
    let mut plan = answered(now, NOTHING);
    plan.close();
    assert!(plan.is_closed());
    let scope = call(&mut plan, now, NOBODY, BLOCKED);
    assert_eq!((scope.most, scope.empty_inbox), (0, true));
    plan.on_answered(now, scope, NOTHING, true);
    assert_eq!(plan.next(now, NOBODY, BLOCKED), Step::Unblock);
    assert_eq!(sleep(&mut plan, now, NOBODY, ENDING), now + SIGN_OF_LIFE);
    plan.set_woken(true);
    plan.set_woken(false);
    sleep(&mut plan, now, NOBODY, REST);
}

mod walk;
