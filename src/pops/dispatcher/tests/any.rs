//! The try pops for takers of several lists.

use super::*;

impl Steps {
    fn any_popped(&mut self, action: &Action, popped: &[&[&'static str]]) {
        let payloads =
            |payloads: &&[&'static str]| payloads.iter().map(|payload| (*payload).into()).collect();
        self.any_answered(action, Some(popped.iter().map(payloads).collect()));
    }

    fn any_answered(&mut self, action: &Action, popped: Option<Vec<Vec<Bytes>>>) {
        let Action::TryPopAny { lists, try_pop } = action else { panic!("{action:?}") };
        self.dispatcher.on_any_popped(lists, *try_pop, popped);
    }
}

fn any(names: &[&str], count: usize, before: WaiterId) -> Action {
    Action::TryPopAny { lists: keys(names), try_pop: TryPop { before, count } }
}

#[test]
fn takers_that_name_the_same_lists_share_a_try_pop() {
    let mut steps = Steps::new();
    let mut takers: Vec<_> = (0..4).map(|id| steps.join(id, &["a", "b"], Wait::Endless)).collect();
    let actions = steps.actions();
    assert_eq!(actions, [any(&["a", "b"], 4, 4)]);
    // In full: the next one follows, even for one taker.
    steps.any_popped(&actions[0], &[&["1", "2"], &["3", "4"]]);
    assert_eq!(takers.iter_mut().filter_map(got).collect::<Vec<_>>(), ["1", "2", "3", "4"]);
    let mut taker = steps.join(4, &["a", "b"], Wait::Endless);
    let actions = steps.actions();
    assert_eq!(actions, [any(&["a", "b"], 1, 5)]);
    let mut second = steps.join(5, &["a", "b"], Wait::Endless);
    assert_eq!(steps.actions(), [], "one is in flight");
    steps.any_popped(&actions[0], &[&["5"], &[]]);
    let actions = steps.actions();
    assert_eq!((actions.as_slice(), got(&mut taker).as_deref()), (&[any(&["a", "b"], 1, 6)][..], Some("5")));
    // Not in full: the lists are empty.
    steps.any_popped(&actions[0], &[&[], &[]]);
    assert_eq!((steps.actions(), got(&mut second)), (vec![block(&["a", "b"], false)], None));
}

/// It would get a payload of the list that it names last.
#[test]
fn a_taker_of_another_order_ends_the_group() {
    let mut steps = Steps::new();
    let _takers = [
        steps.join(0, &["a", "b"], Wait::Endless),
        steps.join(1, &["a", "b"], Wait::Endless),
        steps.join(2, &["b", "a"], Wait::Endless),
        steps.join(3, &["a", "b"], Wait::Endless),
        steps.join(4, &["c", "d"], Wait::Endless),
        steps.join(5, &["c", "d"], Wait::Endless),
    ];
    assert_eq!(steps.actions(), [any(&["a", "b"], 2, 6), any(&["c", "d"], 2, 6)]);
}

#[test]
fn takers_whose_time_is_over_need_no_blocked_pop() {
    let mut steps = Steps::new();
    let mut takers: Vec<_> = (0..3).map(|id| steps.join(id, &["a", "b"], Wait::Expired)).collect();
    let actions = steps.actions();
    assert_eq!(actions, [any(&["a", "b"], 3, 3)]);
    steps.any_popped(&actions[0], &[&[], &["1"]]);
    assert_eq!(takers.iter_mut().filter_map(got).collect::<Vec<_>>(), ["1", "", ""]);
    assert_eq!(steps.actions(), []);
    assert!(steps.dispatcher.is_idle());
}

/// One of the lists may be none, which the blocked pop finds out.
#[test]
fn a_try_pop_that_fails_is_followed_by_a_blocked_pop() {
    let mut steps = Steps::new();
    let mut takers: Vec<_> = (0..2).map(|id| steps.join(id, &["a", "b"], Wait::Endless)).collect();
    let actions = steps.actions();
    steps.any_answered(&actions[0], None);
    assert_eq!(steps.actions(), [block(&["a", "b"], false)]);
    assert_eq!(takers.iter_mut().filter_map(got).count(), 0);
}

/// A review of all of them for each new one would take minutes.
#[test]
fn ten_thousand_takers_of_two_lists() {
    const TAKERS: WaiterId = 10_000;
    let mut steps = Steps::new();
    let mut takers: Vec<_> = Vec::new();
    for id in 0..TAKERS {
        takers.push(steps.join(id, &["a", "b"], Wait::Endless));
        assert_eq!(steps.actions(), if id == 0 { vec![block(&["a", "b"], false)] } else { vec![] });
    }
    steps.popped("b", "1");
    let mut pops = 0;
    while let Some(action) = steps.actions().pop() {
        let Action::TryPopAny { try_pop, .. } = &action else { panic!("{action:?}") };
        steps.any_popped(&action, &[&[], &vec!["1"; try_pop.count]]);
        pops += 1;
    }
    assert!(takers.iter_mut().all(|taker| got(taker).as_deref() == Some("1")));
    assert_eq!(pops, TAKERS.div_ceil(TRY_POP_LIMIT as WaiterId));
    assert!(steps.dispatcher.is_idle());
}
