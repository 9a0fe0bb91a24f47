//! What the server is asked: which questions there are beside the parked pop, how often, and for how many.

use super::*;

#[test]
fn a_question_is_not_forgotten_over_the_parked_pop() {
    let mut steps = Steps::new();
    let mut patient = steps.join(0, &["a"], Patience::Endless);
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    let mut poll = steps.join(1, &["a"], Patience::None);
    assert_eq!(steps.actions(), [ask("a", 1, 2)]);
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
    assert_eq!(steps.actions(), [ask("a", 1, 2)]);
    steps.asked("a", 1, &["1"]);
    assert_eq!(steps.actions(), [ask("a", 1, 2)]);
    steps.asked("a", 1, &["2"]);
    assert_eq!(polls.each_mut().map(got), [Some("1".into()), Some("2".into())]);
}

#[test]
fn no_pop_stays_parked_for_polls() {
    let mut steps = Steps::new();
    let mut patient = steps.join(0, &["a"], Patience::Endless);
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    let _poll = steps.join(1, &["a"], Patience::None);
    assert_eq!(steps.actions(), [ask("a", 1, 2)]);
    // Its question brings what the patient one had the pop parked for.
    steps.asked("a", 1, &["1"]);
    assert_eq!(got(&mut patient).as_deref(), Some("1"));
    assert_eq!(steps.actions(), [ask("a", 1, 2), Action::Interrupt(Place::Hot)]);
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
        let [Action::Ask { question, .. }] = actions[..] else { panic!("{actions:?}") };
        steps.asked("a", question.count, &vec!["1"; question.count]);
    }
    assert!(takers.iter_mut().all(|taker| got(taker).as_deref() == Some("1")));
    assert_eq!(steps.actions(), []);
    assert!(steps.lane.is_idle());
}

/// Those who come while others are being asked for do not wait for their answer: there is more, as far as is known.
#[test]
fn a_second_question_is_for_those_who_came_since() {
    let mut steps = Steps::new();
    let mut takers: Vec<_> = [0, 1].map(|id| steps.join(id, &["a"], Patience::Endless)).into();
    assert_eq!(steps.actions(), [ask("a", 2, 2)]);
    takers.push(steps.join(2, &["a"], Patience::Endless));
    assert_eq!(steps.actions(), [], "nothing is known of it yet");
    steps.asked("a", 2, &["1", "2"]);
    assert_eq!(steps.actions(), [ask("a", 1, 3)]);
    takers.extend([3, 4].map(|id| steps.join(id, &["a"], Patience::Endless)));
    assert_eq!(steps.actions(), [ask("a", 2, 5)]);
    takers.push(steps.join(5, &["a"], Patience::Endless));
    assert_eq!(steps.actions(), [], "two at a time are enough");
    steps.asked("a", 1, &["3"]);
    assert_eq!(steps.actions(), [ask("a", 1, 6)]);
    // The second one says that there is no more, so the third is not followed by another, whatever it brings.
    steps.asked("a", 2, &["4"]);
    takers.push(steps.join(6, &["a"], Patience::Endless));
    assert_eq!(steps.actions(), []);
    steps.asked("a", 1, &[]);
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    let all: Vec<_> = takers.iter_mut().filter_map(got).collect();
    assert_eq!(all, ["1", "2", "3", "4"]);
}

/// A poll wants to know what there is; the answer to a question that was asked before it came does not say.
#[test]
fn a_poll_is_not_in_a_second_question() {
    let mut steps = Steps::new();
    let _takers = [0, 1].map(|id| steps.join(id, &["a"], Patience::Endless));
    steps.actions();
    let _third = steps.join(2, &["a"], Patience::Endless);
    steps.asked("a", 2, &["1", "2"]);
    assert_eq!(steps.actions(), [ask("a", 1, 3)]);
    let mut poll = steps.join(3, &["a"], Patience::None);
    assert_eq!(steps.actions(), []);
    steps.asked("a", 1, &["3"]);
    assert_eq!(steps.actions(), [ask("a", 1, 4)]);
    steps.asked("a", 1, &[]);
    assert_eq!(got(&mut poll).as_deref(), Some(""));
}

/// A parked pop brings one payload for all of its lists. Where many are busy, each of them is asked.
#[test]
fn a_taker_that_comes_again_beside_others_is_asked_for() {
    let mut steps = Steps::new();
    let _other = steps.join(0, &["b"], Patience::Endless);
    assert_eq!(steps.actions(), [park(&["b"], false)]);
    let _taker = steps.join(1, &["a"], Patience::Endless);
    assert_eq!(steps.actions(), [ask("a", 1, 2)]);
    steps.asked("a", 1, &[]);
    assert_eq!(steps.actions(), [Action::Interrupt(Place::Hot)]);
    steps.lane.parked(Place::Hot, Parked::NotSent);
    assert!(matches!(&steps.actions()[..], [Action::Park { keys, .. }] if keys.len() == 2));
    // The pop ends, and its taker comes again before anything else is done.
    steps.parked("a", "1");
    let _again = steps.join(2, &["a"], Patience::Endless);
    assert_eq!(steps.actions(), [ask("a", 1, 3), park(&["b"], false)]);
}
