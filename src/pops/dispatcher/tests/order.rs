//! The order of lists, of takers and of payloads.

use super::*;

#[test]
fn lists_are_popped_from_in_the_order_in_which_they_were_named() {
    // Repeated, because the hash order differs each time; the other takers' lists are in the pop, too.
    for _ in 0..20 {
        let mut steps = Steps::new();
        let _takers = [
            steps.join(0, &["b", "a"], Wait::Endless),
            steps.join(1, &["c", "a"], Wait::Endless),
            steps.join(2, &["a", "b"], Wait::Endless),
        ];
        let actions = steps.actions();
        let [Action::Block { keys, .. }] = &actions[..] else { panic!("{actions:?}") };
        let place = |name| keys.iter().position(|keys| *keys == Keys::new(name)).unwrap();
        assert!(place("b") < place("a"), "{keys:?}");
    }
}

#[test]
fn the_least_recently_served_list_comes_first() {
    let mut steps = Steps::new();
    let names = ["a", "b", "c"];
    let mut takers: Vec<_> =
        (0..30).map(|id| steps.join(id, &[names[id as usize % 3]], Wait::Endless)).collect();
    for action in steps.actions() {
        let Action::TryPop { keys, try_pop } = action else { panic!("{action:?}") };
        steps.dispatcher.on_try_popped(&keys, try_pop, Ok(Vec::new()));
    }
    // All three always have payloads. After each payload a try pop for the other takers of its list finds
    // nothing.
    let mut served = Vec::new();
    for _ in 0..9 {
        for action in steps.actions() {
            match action {
                Action::Block { keys, .. } => {
                    served.push(String::from_utf8(keys[0].target().to_vec()).unwrap());
                    steps
                        .dispatcher
                        .on_pop_ended(Tier::Hot, PopOutcome::Payload(keys[0].clone(), "1".into()));
                }
                Action::TryPop { keys, try_pop } => {
                    steps.dispatcher.on_try_popped(&keys, try_pop, Ok(Vec::new()))
                }
                action => panic!("{action:?}"),
            }
        }
    }
    assert!(
        served.len() > 3 && served.iter().zip(&served[3..]).all(|(list, again)| list == again),
        "{served:?}"
    );
    takers.iter_mut().for_each(oneshot::Receiver::close);
}

#[test]
fn dropped_takers_are_passed_over_and_payloads_keep_their_order() {
    let mut steps = Steps::new();
    let mut takers: Vec<_> = (0..4).map(|id| steps.join(id, &["a"], Wait::Endless)).collect();
    assert_eq!(steps.actions(), [try_pop("a", 4, 4)]);
    drop(takers.remove(1));
    drop(takers.remove(2));
    steps.try_popped("a", 4, &["1", "2", "3", "4"]);
    assert_eq!(got(&mut takers[0]).as_deref(), Some("1"));
    let back = |payloads: &[&'static str]| Action::ReturnToList {
        keys: Keys::new("a"),
        payloads: payloads.iter().map(|payload| (*payload).into()).collect(),
    };
    assert_eq!(steps.actions(), [back(&["3", "4"])]);
    steps.dispatcher.on_returned(&Keys::new("a"));
    // Handed over, not read.
    drop(takers);
    let popped = steps.returned.try_recv().unwrap();
    steps.dispatcher.on_unread(popped);
    assert_eq!(steps.actions(), [back(&["2"])]);
    steps.dispatcher.on_returned(&Keys::new("a"));
    assert_eq!(steps.actions(), []);
    assert!(steps.dispatcher.is_idle());
}

#[test]
fn what_a_poll_of_many_leaves_keeps_its_order() {
    let mut steps = Steps::new();
    let gone = steps.join_for(3, 0, &["a"], Wait::None);
    assert_eq!(steps.actions(), [try_pop("a", 3, 1)]);
    let mut polls = [1, 2].map(|id| steps.join_for(2, id, &["a"], Wait::None));
    drop(gone);
    steps.try_popped("a", 3, &["1", "2", "3"]);
    assert_eq!(steps.actions(), [try_pop("a", 1, 3)]);
    steps.try_popped("a", 1, &[]);
    assert_eq!(polls.each_mut().map(got), [Some("12".into()), Some("3".into())]);
}

/// A taker that wants many at once gets all of them together, although one came back from a dropped taker.
#[test]
fn a_poll_of_many_gets_more_than_a_returned_payload() {
    let mut steps = Steps::new();
    let gone = steps.join(0, &["a"], Wait::Endless);
    assert_eq!(steps.actions(), [block(&["a"], false)]);
    let mut poll = steps.join_for(5, 1, &["a"], Wait::None);
    assert_eq!(steps.actions(), [try_pop("a", 5, 2)]);
    steps.popped("a", "1");
    drop(gone);
    let batch = steps.returned.try_recv().unwrap();
    steps.dispatcher.on_unread(batch);
    assert_eq!((steps.actions(), got(&mut poll)), (vec![], None));
    steps.try_popped("a", 5, &["2", "3"]);
    assert_eq!(got(&mut poll).as_deref(), Some("123"));
    // Unclaimed payloads are not requested again.
    let gone = steps.join(2, &["a"], Wait::Endless);
    steps.actions();
    steps.popped("a", "4");
    drop(gone);
    let batch = steps.returned.try_recv().unwrap();
    let mut poll = steps.join_for(3, 3, &["a"], Wait::None);
    assert_eq!(steps.actions(), [try_pop("a", 3, 4)]);
    steps.dispatcher.on_unread(batch);
    steps.try_popped("a", 3, &["5"]);
    assert_eq!(got(&mut poll).as_deref(), Some("45"));
    assert_eq!(steps.actions(), []);
    assert!(steps.dispatcher.is_idle());
}
