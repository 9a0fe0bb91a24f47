//! The try pops beside the blocked pop: when they are sent, and for how many payloads.

use super::*;

#[test]
fn a_blocked_pop_that_ends_does_not_complete_a_try_pop() {
    let mut steps = Steps::new();
    let mut patient = steps.join(0, &["a"], Wait::Endless);
    assert_eq!(steps.actions(), [block(&["a"], false)]);
    let mut poll = steps.join(1, &["a"], Wait::None);
    assert_eq!(steps.actions(), [try_pop("a", 1, 2)]);
    steps.popped("a", "1");
    assert_eq!(steps.actions(), []);
    steps.try_popped("a", 1, &["2"]);
    assert_eq!(steps.actions(), []);
    assert_eq!((got(&mut patient).as_deref(), got(&mut poll).as_deref()), (Some("1"), Some("2")));
    assert!(steps.dispatcher.is_idle());
}

#[test]
fn a_try_pop_without_a_taker_is_waited_for() {
    let mut steps = Steps::new();
    let _poll = steps.join(0, &["a"], Wait::None);
    assert_eq!(steps.actions(), [try_pop("a", 1, 1)]);
    steps.dispatcher.leave(0);
    assert_eq!(steps.actions(), []);
    assert!(steps.dispatcher.is_try_popping(&Keys::new("a")) && !steps.dispatcher.is_idle());
    steps.try_popped("a", 1, &[]);
    assert!(!steps.dispatcher.is_try_popping(&Keys::new("a")));
    assert_eq!(steps.actions(), []);
    assert!(steps.dispatcher.is_idle());
}

#[test]
fn a_move_of_one_payload_is_a_full_reply() {
    let mut steps = Steps::new();
    steps.dispatcher = Dispatcher::moving();
    let mut polls = [0, 1].map(|id| steps.join(id, &["a"], Wait::None));
    assert_eq!(steps.actions(), [try_pop("a", 1, 2)]);
    steps.try_popped("a", 1, &["1"]);
    assert_eq!(steps.actions(), [try_pop("a", 1, 2)]);
    steps.try_popped("a", 1, &["2"]);
    assert_eq!(polls.each_mut().map(got), [Some("1".into()), Some("2".into())]);
}

#[test]
fn no_pop_stays_blocked_for_polls() {
    let mut steps = Steps::new();
    let mut patient = steps.join(0, &["a"], Wait::Endless);
    assert_eq!(steps.actions(), [block(&["a"], false)]);
    let _poll = steps.join(1, &["a"], Wait::None);
    assert_eq!(steps.actions(), [try_pop("a", 1, 2)]);
    // The try pop of the poll serves the patient taker that the blocked pop was sent for.
    steps.try_popped("a", 1, &["1"]);
    assert_eq!(got(&mut patient).as_deref(), Some("1"));
    assert_eq!(steps.actions(), [try_pop("a", 1, 2), Action::Interrupt(Tier::Hot)]);
}

/// A review of all of them for each new one would take minutes.
#[test]
fn ten_thousand_takers_of_one_list() {
    const TAKERS: WaiterId = 10_000;
    let mut steps = Steps::new();
    let mut takers: Vec<_> = Vec::new();
    let mut try_pops = Vec::new();
    for id in 0..TAKERS {
        takers.push(steps.join(id, &["a"], Wait::Endless));
        try_pops.extend(steps.actions());
    }
    assert_eq!(try_pops, [block(&["a"], false)]);
    steps.popped("a", "1");
    for _ in 0..TAKERS / TRY_POP_LIMIT as WaiterId {
        let actions = steps.actions();
        let [Action::TryPop { try_pop, .. }] = actions[..] else { panic!("{actions:?}") };
        steps.try_popped("a", try_pop.count, &vec!["1"; try_pop.count]);
    }
    assert!(takers.iter_mut().all(|taker| got(taker).as_deref() == Some("1")));
    assert_eq!(steps.actions(), []);
    assert!(steps.dispatcher.is_idle());
}

/// Takers that join while a try pop is in flight do not wait for its reply, if there may be more.
#[test]
fn a_second_try_pop_is_for_takers_that_joined_since() {
    let mut steps = Steps::new();
    let mut takers: Vec<_> = [0, 1].map(|id| steps.join(id, &["a"], Wait::Endless)).into();
    assert_eq!(steps.actions(), [try_pop("a", 2, 2)]);
    takers.push(steps.join(2, &["a"], Wait::Endless));
    assert_eq!(steps.actions(), [], "the content is not known yet");
    steps.try_popped("a", 2, &["1", "2"]);
    assert_eq!(steps.actions(), [try_pop("a", 1, 3)]);
    takers.extend([3, 4].map(|id| steps.join(id, &["a"], Wait::Endless)));
    assert_eq!(steps.actions(), [try_pop("a", 2, 5)]);
    takers.push(steps.join(5, &["a"], Wait::Endless));
    assert_eq!(steps.actions(), [], "two at a time are enough");
    steps.try_popped("a", 1, &["3"]);
    assert_eq!(steps.actions(), [try_pop("a", 1, 6)]);
    // The second one shows that there is no more, so none follows the third, whatever it brings.
    steps.try_popped("a", 2, &["4"]);
    takers.push(steps.join(6, &["a"], Wait::Endless));
    assert_eq!(steps.actions(), []);
    steps.try_popped("a", 1, &[]);
    assert_eq!(steps.actions(), [block(&["a"], false)]);
    let all: Vec<_> = takers.iter_mut().filter_map(got).collect();
    assert_eq!(all, ["1", "2", "3", "4"]);
}

/// A poll needs to know what is there now. The reply to a try pop that was sent before does not say that.
#[test]
fn a_poll_is_not_served_by_a_second_try_pop() {
    let mut steps = Steps::new();
    let _takers = [0, 1].map(|id| steps.join(id, &["a"], Wait::Endless));
    steps.actions();
    let _third = steps.join(2, &["a"], Wait::Endless);
    steps.try_popped("a", 2, &["1", "2"]);
    assert_eq!(steps.actions(), [try_pop("a", 1, 3)]);
    let mut poll = steps.join(3, &["a"], Wait::None);
    assert_eq!(steps.actions(), []);
    steps.try_popped("a", 1, &["3"]);
    assert_eq!(steps.actions(), [try_pop("a", 1, 4)]);
    steps.try_popped("a", 1, &[]);
    assert_eq!(got(&mut poll).as_deref(), Some(""));
}

/// A blocked pop brings one payload for all of its lists. When several lists are busy, each of them gets a
/// try pop.
#[test]
fn a_taker_that_begins_again_beside_others_gets_a_try_pop() {
    let mut steps = Steps::new();
    let _other = steps.join(0, &["b"], Wait::Endless);
    assert_eq!(steps.actions(), [block(&["b"], false)]);
    let _taker = steps.join(1, &["a"], Wait::Endless);
    assert_eq!(steps.actions(), [try_pop("a", 1, 2)]);
    steps.try_popped("a", 1, &[]);
    assert_eq!(steps.actions(), [Action::Interrupt(Tier::Hot)]);
    steps.dispatcher.on_pop_ended(Tier::Hot, PopOutcome::NotSent);
    assert!(matches!(&steps.actions()[..], [Action::Block { keys, .. }] if keys.len() == 2));
    // The last try pop found nothing, so the next payload is not followed by one.
    steps.popped("a", "1");
    let _again = steps.join(2, &["a"], Wait::Endless);
    assert!(matches!(&steps.actions()[..], [Action::Block { keys, .. }] if keys.len() == 2));
    // The pop ends, and its taker begins again before anything else happens.
    steps.popped("a", "2");
    let _again = steps.join(3, &["a"], Wait::Endless);
    assert_eq!(steps.actions(), [try_pop("a", 1, 4), block(&["b"], false)]);
}

/// Where payloads arrive one by one, try pops would find nothing.
#[test]
fn try_pops_in_vain_become_rare() {
    let mut steps = Steps::new();
    let _takers: Vec<_> = (0..200).map(|id| steps.join(id, &["a"], Wait::Endless)).collect();
    let mut arrive = |found: &[&'static str]| {
        steps.actions();
        let tries = steps.dispatcher.is_try_popping(&Keys::new("a"));
        if tries {
            let count = steps.oldest_try_pop("a").count;
            steps.try_popped("a", count, found);
            assert_eq!(steps.actions(), [block(&["a"], false)]);
        }
        steps.popped("a", "payload");
        tries
    };
    let tries: Vec<_> = (0..70).filter(|_| arrive(&[])).collect();
    assert_eq!(tries, [0, 2, 5, 10, 19, 36, 53]);
    // Until one finds something.
    let tries: Vec<_> = (70..90).filter(|_| arrive(&["another"])).collect();
    assert_eq!(tries, (70..90).collect::<Vec<_>>());
}
