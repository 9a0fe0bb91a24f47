//! Which list comes first, who is served first, and how payloads keep their order.

use super::*;

#[test]
fn lists_are_looked_at_in_the_order_in_which_they_were_named() {
    // Whatever comes first by chance: with the next taker's lists, too.
    for _ in 0..20 {
        let mut steps = Steps::new();
        let _takers = [
            steps.join(0, &["b", "a"], Patience::Endless),
            steps.join(1, &["c", "a"], Patience::Endless),
            steps.join(2, &["a", "b"], Patience::Endless),
        ];
        let actions = steps.actions();
        let [Action::Park { keys, .. }] = &actions[..] else { panic!("{actions:?}") };
        let place = |name| keys.iter().position(|keys| *keys == Keys::new(name)).unwrap();
        assert!(place("b") < place("a"), "{keys:?}");
    }
}

#[test]
fn the_list_served_longest_ago_comes_first() {
    let mut steps = Steps::new();
    let names = ["a", "b", "c"];
    let mut takers: Vec<_> =
        (0..30).map(|id| steps.join(id, &[names[id as usize % 3]], Patience::Endless)).collect();
    for action in steps.actions() {
        let Action::Ask { keys, question } = action else { panic!("{action:?}") };
        steps.lane.asked(&keys, question, Ok(Vec::new()));
    }
    // All three are always full; after each payload the others of its list are asked for, and find nothing.
    let mut served = Vec::new();
    for _ in 0..9 {
        for action in steps.actions() {
            match action {
                Action::Park { keys, .. } => {
                    served.push(String::from_utf8(keys[0].target().to_vec()).unwrap());
                    steps.lane.parked(Place::Hot, Parked::Payload(keys[0].clone(), "1".into()));
                }
                Action::Ask { keys, question } => steps.lane.asked(&keys, question, Ok(Vec::new())),
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
fn who_is_gone_is_passed_over_and_nothing_changes_its_order() {
    let mut steps = Steps::new();
    let mut takers: Vec<_> = (0..4).map(|id| steps.join(id, &["a"], Patience::Endless)).collect();
    assert_eq!(steps.actions(), [ask("a", 4, 4)]);
    drop(takers.remove(1));
    drop(takers.remove(2));
    steps.asked("a", 4, &["1", "2", "3", "4"]);
    assert_eq!(got(&mut takers[0]).as_deref(), Some("1"));
    let back = |payloads: &[&'static str]| Action::GiveBack {
        keys: Keys::new("a"),
        payloads: payloads.iter().map(|payload| (*payload).into()).collect(),
    };
    assert_eq!(steps.actions(), [back(&["3", "4"])]);
    steps.lane.returned(&Keys::new("a"));
    // Handed over, not read.
    drop(takers);
    let popped = steps.returned.try_recv().unwrap();
    steps.lane.given_back(popped);
    assert_eq!(steps.actions(), [back(&["2"])]);
    steps.lane.returned(&Keys::new("a"));
    assert_eq!(steps.actions(), []);
    assert!(steps.lane.is_idle());
}

#[test]
fn what_a_drain_leaves_keeps_its_order() {
    let mut steps = Steps::new();
    let gone = steps.join_for(3, 0, &["a"], Patience::None);
    assert_eq!(steps.actions(), [ask("a", 3, 1)]);
    let mut drains = [1, 2].map(|id| steps.join_for(2, id, &["a"], Patience::None));
    drop(gone);
    steps.asked("a", 3, &["1", "2", "3"]);
    assert_eq!(steps.actions(), [ask("a", 1, 3)]);
    steps.asked("a", 1, &[]);
    assert_eq!(drains.each_mut().map(got), [Some("12".into()), Some("3".into())]);
}

/// Who wants many at once gets all there are, together, although some came back from a taker that is gone.
#[test]
fn a_drain_is_not_content_with_what_somebody_left() {
    let mut steps = Steps::new();
    let gone = steps.join(0, &["a"], Patience::Endless);
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    let mut drain = steps.join_for(5, 1, &["a"], Patience::None);
    assert_eq!(steps.actions(), [ask("a", 5, 2)]);
    steps.parked("a", "1");
    drop(gone);
    let batch = steps.returned.try_recv().unwrap();
    steps.lane.given_back(batch);
    assert_eq!((steps.actions(), got(&mut drain)), (vec![], None));
    steps.asked("a", 5, &["2", "3"]);
    assert_eq!(got(&mut drain).as_deref(), Some("123"));
    // What lies there is not asked for again.
    let gone = steps.join(2, &["a"], Patience::Endless);
    steps.actions();
    steps.parked("a", "4");
    drop(gone);
    let batch = steps.returned.try_recv().unwrap();
    let mut drain = steps.join_for(3, 3, &["a"], Patience::None);
    assert_eq!(steps.actions(), [ask("a", 3, 4)]);
    steps.lane.given_back(batch);
    steps.asked("a", 3, &["5"]);
    assert_eq!(got(&mut drain).as_deref(), Some("45"));
    assert_eq!(steps.actions(), []);
    assert!(steps.lane.is_idle());
}
