//! What the server is asked: which questions there are beside the parked pop, how often, and for how many.

use super::*;

#[test]
fn a_question_is_not_forgotten_over_the_parked_pop() {
    let mut steps = Steps::new();
    let mut patient = steps.join(0, &["a"], Patience::Endless);
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    let mut poll = steps.join(1, &["a"], Patience::None);
    assert_eq!(steps.actions(), [ask("a", 1)]);
    steps.parked("a", "1");
    assert_eq!(steps.actions(), []);
    steps.asked("a", 1, &["2"]);
    assert_eq!(steps.actions(), []);
    assert_eq!((got(&mut patient).as_deref(), got(&mut poll).as_deref()), (Some("1"), Some("2")));
    assert!(steps.lane.is_idle());
}

#[test]
fn a_move_that_brings_one_is_a_full_answer() {
    let mut steps = Steps::new();
    steps.lane = Lane::moving();
    let mut polls = [0, 1].map(|id| steps.join(id, &["a"], Patience::None));
    assert_eq!(steps.actions(), [ask("a", 1)]);
    steps.asked("a", 1, &["1"]);
    assert_eq!(steps.actions(), [ask("a", 1)]);
    steps.asked("a", 1, &["2"]);
    assert_eq!(polls.each_mut().map(got), [Some("1".into()), Some("2".into())]);
}

#[test]
fn no_pop_stays_parked_for_polls() {
    let mut steps = Steps::new();
    let mut patient = steps.join(0, &["a"], Patience::Endless);
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    let _poll = steps.join(1, &["a"], Patience::None);
    assert_eq!(steps.actions(), [ask("a", 1)]);
    // Its question brings what the patient one had the pop parked for.
    steps.asked("a", 1, &["1"]);
    assert_eq!(got(&mut patient).as_deref(), Some("1"));
    assert_eq!(steps.actions(), [ask("a", 1), Action::Interrupt(Place::Hot)]);
}

/// One look at each of them whenever one comes would take minutes.
#[test]
fn ten_thousand_takers_of_one_list() {
    const TAKERS: WaiterId = 10_000;
    let mut steps = Steps::new();
    let mut takers: Vec<_> = Vec::new();
    let mut questions = Vec::new();
    for id in 0..TAKERS {
        takers.push(steps.join(id, &["a"], Patience::Endless));
        questions.extend(steps.actions());
    }
    assert_eq!(questions, [park(&["a"], false)]);
    steps.parked("a", "1");
    for _ in 0..TAKERS / ASK as WaiterId {
        let actions = steps.actions();
        let [Action::Ask { count, .. }] = actions[..] else { panic!("{actions:?}") };
        steps.asked("a", count, &vec!["1"; count]);
    }
    assert!(takers.iter_mut().all(|taker| got(taker).as_deref() == Some("1")));
    assert_eq!(steps.actions(), []);
    assert!(steps.lane.is_idle());
}
