//! The answer of a taker that gets no payload, because its time is over or a pop failed.

use super::*;

#[test]
fn a_slow_reply_is_waited_for() {
    let mut steps = Steps::new();
    let mut taker = steps.join(0, &["a"], Wait::Endless);
    assert_eq!(steps.actions(), [block(&["a"], false)]);
    steps.dispatcher.expire(0, |_| false, None);
    assert_eq!(steps.actions(), [Action::Interrupt(Tier::Hot)]);
    assert_eq!(got(&mut taker), None);
    steps.popped("a", "1");
    assert_eq!(got(&mut taker).as_deref(), Some("1"));
}

#[test]
fn a_pop_that_blocks_for_long_has_looked() {
    let mut steps = Steps::new();
    let _other = steps.join(0, &["a"], Wait::Endless);
    let mut taker = steps.join(1, &["a"], Wait::Endless);
    assert_eq!(steps.actions(), [try_pop("a", 2, 2)]);
    steps.try_popped("a", 2, &[]);
    assert_eq!(steps.actions(), [block(&["a"], false)]);
    steps.dispatcher.expire(1, |_| true, None);
    assert_eq!(got(&mut taker).as_deref(), Some(""));
    assert_eq!(steps.actions(), []);
}

/// When a try pop is answered the next poll has begun, so there is always a try pop in flight.
#[test]
fn polls_without_a_gap_keep_no_taker_waiting() {
    let mut steps = Steps::new();
    let mut polls = vec![steps.join(0, &["a"], Wait::None)];
    assert_eq!(steps.actions(), [try_pop("a", 1, 1)]);
    let mut taker = steps.join(1, &["a", "b"], Wait::Expired);
    for id in 2..10 {
        polls.push(steps.join(id, &["a"], Wait::None));
        for action in steps.actions() {
            if let Action::Block { interrupt_at_once: true, .. } = action {
                steps.dispatcher.on_pop_ended(Tier::Hot, PopOutcome::Empty);
            }
        }
        steps.try_popped("a", steps.oldest_try_pop("a").count, &[]);
    }
    assert_eq!(got(&mut taker).as_deref(), Some(""));
}

#[test]
fn an_empty_pop_says_nothing_about_lists_it_did_not_cover() {
    let mut steps = Steps::new();
    let _poll = steps.join(0, &["b"], Wait::None);
    assert_eq!(steps.actions(), [try_pop("b", 1, 1)]);
    steps.dispatcher.leave(0);
    let mut taker = steps.join(1, &["a", "b"], Wait::Expired);
    // The payload of the try pop goes to the taker, so no more of that list is requested.
    assert_eq!(steps.actions(), [block(&["a"], false)]);
    let mut late = steps.join(2, &["a", "b"], Wait::Endless);
    steps.dispatcher.expire(2, |_| true, None);
    assert_eq!(steps.actions(), [Action::Interrupt(Tier::Hot)]);
    steps.dispatcher.on_pop_ended(Tier::Hot, PopOutcome::Empty);
    assert_eq!(got(&mut taker), None);
    // With the second taker, two payloads are wanted.
    assert!(
        matches!(&steps.actions()[..], [Action::Block { keys, interrupt_at_once: true, .. }] if keys.len() == 2)
    );
    // This one begins when the end of that pop may be on its way already.
    let mut last = steps.join(3, &["a", "b"], Wait::Expired);
    steps.dispatcher.on_pop_ended(Tier::Hot, PopOutcome::Empty);
    assert_eq!([&mut taker, &mut late, &mut last].map(got), [Some("".into()), Some("".into()), None]);
}

#[test]
fn only_a_poll_gets_the_error_of_a_lost_connection() {
    let mut steps = Steps::new();
    let mut patient = steps.join(0, &["a"], Wait::Endless);
    let mut poll = steps.join(1, &["a"], Wait::None);
    assert_eq!(steps.actions(), [try_pop("a", 2, 2)]);
    let error = OpError::Unknown("the connection broke".into());
    steps.answered("a", 2, Err(error.clone()));
    assert_eq!(poll.try_recv().unwrap().unwrap_err(), error);
    assert_eq!(steps.actions(), [block(&["a"], false)]);
    steps.dispatcher.on_pop_ended(Tier::Hot, PopOutcome::Failed(error.clone()));
    assert_eq!(steps.actions(), [block(&["a"], false)]);
    // Unless the time of the taker is over.
    steps.dispatcher.expire(0, |_| false, None);
    assert_eq!(steps.actions(), [Action::Interrupt(Tier::Hot)]);
    steps.dispatcher.on_pop_ended(Tier::Hot, PopOutcome::Failed(error.clone()));
    assert_eq!(patient.try_recv().unwrap().unwrap_err(), error);
}

#[test]
fn without_a_connection_to_block_on_the_lists_are_looked_at() {
    let mut steps = Steps::new();
    let mut taker = steps.join(0, &["a"], Wait::Endless);
    assert_eq!(steps.actions(), [block(&["a"], false)]);
    let fail = |steps: &mut Steps| {
        steps.dispatcher.on_no_connection(Tier::Hot);
        let error = OpError::NotExecuted("max number of clients reached".into());
        steps.dispatcher.on_pop_ended(Tier::Hot, PopOutcome::Failed(error));
    };
    fail(&mut steps);
    assert_eq!(steps.actions(), [try_pop("a", 1, 1)]);
    steps.try_popped("a", 1, &[]);
    assert_eq!(steps.actions(), [block(&["a"], false)]);
    fail(&mut steps);
    assert_eq!(steps.actions(), [try_pop("a", 1, 1)]);
    steps.try_popped("a", 1, &["x"]);
    assert_eq!(got(&mut taker).as_deref(), Some("x"));
}

#[test]
fn a_refused_list_affects_no_taker_of_other_lists() {
    let mut steps = Steps::new();
    let mut right = steps.join(0, &["a"], Wait::Endless);
    let mut wrong = steps.join(1, &["b", "a"], Wait::Endless);
    assert_eq!(steps.actions(), [try_pop("a", 1, 2), block(&["b"], false)]);
    steps.try_popped("a", 1, &[]);
    assert_eq!(steps.actions(), [Action::Interrupt(Tier::Hot)]);
    steps.dispatcher.on_pop_ended(Tier::Hot, PopOutcome::NotSent);
    assert!(matches!(&steps.actions()[..], [Action::Block { keys, .. }] if keys.len() == 2));
    steps.dispatcher.on_pop_ended(Tier::Hot, PopOutcome::Failed(wrong_type()));
    assert!(matches!(&steps.actions()[..], [Action::Examine { keys, .. }] if keys.len() == 2));
    // No pop is sent during the examination, whichever takers leave or join.
    let mut left = steps.join(2, &["b"], Wait::Endless);
    steps.dispatcher.leave(2);
    let mut late = steps.join(3, &["a", "b"], Wait::Endless);
    assert_eq!(steps.actions(), []);
    steps.dispatcher.on_examined(Tier::Hot, &HashMap::from([(Keys::new("b"), wrong_type())]));
    assert!(matches!(wrong.try_recv(), Ok(Err(OpError::Server(_)))));
    assert!(left.try_recv().is_err());
    // The key may be a list by now.
    assert_eq!(steps.actions(), [block(&["a", "b"], false)]);
    assert_eq!([&mut right, &mut late].map(got), [None, None]);
}

#[test]
fn a_refused_pop_of_one_list_needs_no_examination() {
    let mut steps = Steps::new();
    let mut taker = steps.join(0, &["a"], Wait::Endless);
    assert_eq!(steps.actions(), [block(&["a"], false)]);
    let mut late = steps.join(1, &["a"], Wait::Endless);
    steps.dispatcher.on_pop_ended(Tier::Hot, PopOutcome::Failed(wrong_type()));
    assert_eq!(taker.try_recv().unwrap().unwrap_err(), wrong_type());
    // The key may be a list by now.
    assert_eq!(steps.actions(), [block(&["a"], false)]);
    assert_eq!(got(&mut late), None);
}

#[test]
fn an_expired_taker_is_in_no_long_pop() {
    let mut steps = Steps::new();
    steps.dispatcher.hot_limit = 1;
    let _a = steps.join(0, &["a"], Wait::Endless);
    assert_eq!(steps.actions(), [block(&["a"], false)]);
    let mut b = steps.join(1, &["b"], Wait::Endless);
    assert_eq!(steps.actions(), [try_pop("b", 1, 2)]);
    steps.try_popped("b", 1, &[]);
    assert_eq!(steps.actions(), [Action::Interrupt(Tier::Hot)]);
    // Its time is over while two lists need a blocked pop, more than the hot pop takes.
    steps.dispatcher.expire(1, |_| false, None);
    assert_eq!(steps.actions(), []);
    steps.dispatcher.on_pop_ended(Tier::Hot, PopOutcome::NotSent);
    let actions = steps.actions();
    let [Action::Block { tier: Tier::Hot, keys, interrupt_at_once: true }] = &actions[..] else {
        panic!("{actions:?}")
    };
    assert!(keys.contains(&Keys::new("b")));
    steps.dispatcher.on_pop_ended(Tier::Hot, PopOutcome::Empty);
    assert_eq!(got(&mut b).as_deref(), Some(""));
}
