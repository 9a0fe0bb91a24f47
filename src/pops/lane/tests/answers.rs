//! What a taker is told that gets nothing: when its time is over, and when something has failed.

use super::*;

#[test]
fn a_slow_reply_is_waited_for() {
    let mut steps = Steps::new();
    let mut taker = steps.join(0, &["a"], Patience::Endless);
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    steps.lane.expire(0, |_| false, None);
    assert_eq!(steps.actions(), [Action::Interrupt(Place::Hot)]);
    assert_eq!(got(&mut taker), None);
    steps.parked("a", "1");
    assert_eq!(got(&mut taker).as_deref(), Some("1"));
}

#[test]
fn a_pop_parked_for_long_has_looked() {
    let mut steps = Steps::new();
    let _other = steps.join(0, &["a"], Patience::Endless);
    let mut taker = steps.join(1, &["a"], Patience::Endless);
    assert_eq!(steps.actions(), [ask("a", 2, 2)]);
    steps.asked("a", 2, &[]);
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    steps.lane.expire(1, |_| true, None);
    assert_eq!(got(&mut taker).as_deref(), Some(""));
    assert_eq!(steps.actions(), []);
}

/// Each question is answered when the next poll is there already, so the list is being asked all the time.
#[test]
fn polls_without_a_gap_keep_nobody_waiting() {
    let mut steps = Steps::new();
    let mut polls = vec![steps.join(0, &["a"], Patience::None)];
    assert_eq!(steps.actions(), [ask("a", 1, 1)]);
    let mut taker = steps.join(1, &["a", "b"], Patience::Over);
    for id in 2..10 {
        polls.push(steps.join(id, &["a"], Patience::None));
        for action in steps.actions() {
            if let Action::Park { hurry: true, .. } = action {
                steps.lane.parked(Place::Hot, Parked::Empty);
            }
        }
        steps.asked("a", steps.question("a").count, &[]);
    }
    assert_eq!(got(&mut taker).as_deref(), Some(""));
}

#[test]
fn an_empty_end_says_nothing_of_what_was_not_looked_at() {
    let mut steps = Steps::new();
    let _poll = steps.join(0, &["b"], Patience::None);
    assert_eq!(steps.actions(), [ask("b", 1, 1)]);
    steps.lane.leave(0);
    let mut taker = steps.join(1, &["a", "b"], Patience::Over);
    // What the question brings is the taker's, so no more of that list is asked for.
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    let mut late = steps.join(2, &["a", "b"], Patience::Endless);
    steps.lane.expire(2, |_| true, None);
    assert_eq!(steps.actions(), [Action::Interrupt(Place::Hot)]);
    steps.lane.parked(Place::Hot, Parked::Empty);
    assert_eq!(got(&mut taker), None);
    // A second taker makes it two that are wanted.
    assert!(matches!(&steps.actions()[..], [Action::Park { keys, hurry: true, .. }] if keys.len() == 2));
    // This one comes when the end of that pop may be on its way already.
    let mut last = steps.join(3, &["a", "b"], Patience::Over);
    steps.lane.parked(Place::Hot, Parked::Empty);
    assert_eq!([&mut taker, &mut late, &mut last].map(got), [Some("".into()), Some("".into()), None]);
}

#[test]
fn a_poll_is_told_of_a_lost_connection_and_nobody_else() {
    let mut steps = Steps::new();
    let mut patient = steps.join(0, &["a"], Patience::Endless);
    let mut poll = steps.join(1, &["a"], Patience::None);
    assert_eq!(steps.actions(), [ask("a", 2, 2)]);
    let error = OpError::Unknown("the connection broke".into());
    steps.answered("a", 2, Err(error.clone()));
    assert_eq!(poll.try_recv().unwrap().unwrap_err(), error);
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    steps.lane.parked(Place::Hot, Parked::Failed(error.clone()));
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    // Unless its time is over.
    steps.lane.expire(0, |_| false, None);
    assert_eq!(steps.actions(), [Action::Interrupt(Place::Hot)]);
    steps.lane.parked(Place::Hot, Parked::Failed(error.clone()));
    assert_eq!(patient.try_recv().unwrap().unwrap_err(), error);
}

#[test]
fn one_wrong_list_spoils_it_for_nobody_else() {
    let mut steps = Steps::new();
    let mut right = steps.join(0, &["a"], Patience::Endless);
    let mut wrong = steps.join(1, &["b", "a"], Patience::Endless);
    assert_eq!(steps.actions(), [ask("a", 1, 2), park(&["b"], false)]);
    steps.asked("a", 1, &[]);
    assert_eq!(steps.actions(), [Action::Interrupt(Place::Hot)]);
    steps.lane.parked(Place::Hot, Parked::NotSent);
    assert!(matches!(&steps.actions()[..], [Action::Park { keys, .. }] if keys.len() == 2));
    steps.lane.parked(Place::Hot, Parked::Failed(wrong_type()));
    assert!(matches!(&steps.actions()[..], [Action::Examine { keys, .. }] if keys.len() == 2));
    // Nothing is parked while they are examined, whoever leaves or comes.
    let mut left = steps.join(2, &["b"], Patience::Endless);
    steps.lane.leave(2);
    let mut late = steps.join(3, &["a", "b"], Patience::Endless);
    assert_eq!(steps.actions(), []);
    steps.lane.examined(Place::Hot, &HashMap::from([(Keys::new("b"), wrong_type())]));
    assert!(matches!(wrong.try_recv(), Ok(Err(OpError::Server(_)))));
    assert!(left.try_recv().is_err());
    // By now it may be a list.
    assert_eq!(steps.actions(), [park(&["a", "b"], false)]);
    assert_eq!([&mut right, &mut late].map(got), [None, None]);
}

#[test]
fn who_has_waited_long_enough_is_in_no_long_pop() {
    let mut steps = Steps::new();
    steps.lane.most_hot = 1;
    let _a = steps.join(0, &["a"], Patience::Endless);
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    let mut b = steps.join(1, &["b"], Patience::Endless);
    assert_eq!(steps.actions(), [ask("b", 1, 2)]);
    steps.asked("b", 1, &[]);
    assert_eq!(steps.actions(), [Action::Interrupt(Place::Hot)]);
    // Its time is over while there are two lists to be parked on, more than the hot pop takes.
    steps.lane.expire(1, |_| false, None);
    assert_eq!(steps.actions(), []);
    steps.lane.parked(Place::Hot, Parked::NotSent);
    let actions = steps.actions();
    let [Action::Park { place: Place::Hot, keys, hurry: true }] = &actions[..] else { panic!("{actions:?}") };
    assert!(keys.contains(&Keys::new("b")));
    steps.lane.parked(Place::Hot, Parked::Empty);
    assert_eq!(got(&mut b).as_deref(), Some(""));
}
