//! The lists of the hot and of the cold pop.

use super::*;

/// The hot pop is on the list that was served last, the cold pop on the two others.
fn tiers() -> (Steps, Vec<oneshot::Receiver<Answer>>) {
    let mut steps = Steps::new();
    steps.dispatcher.hot_limit = 2;
    let mut takers: Vec<_> = ["hot", "hot", "a", "b"]
        .into_iter()
        .zip(0..)
        .map(|(name, id)| steps.join(id, &[name], Wait::Endless))
        .collect();
    assert_eq!(steps.actions().len(), 3);
    steps.try_popped("hot", 2, &["1"]);
    steps.try_popped("a", 1, &[]);
    steps.try_popped("b", 1, &[]);
    assert_eq!(got(&mut takers[0]).as_deref(), Some("1"));
    let actions = steps.actions();
    let [hot, Action::Block { tier: Tier::Cold, keys: cold, interrupt_at_once: false }] = &actions[..] else {
        panic!("{actions:?}")
    };
    assert_eq!(*hot, block(&["hot"], false));
    assert!(cold.len() == 2 && keys(&["a", "b"]).iter().all(|keys| cold.contains(keys)));
    (steps, takers)
}

#[test]
fn the_list_that_was_served_last_stays_hot() {
    tiers();
}

#[test]
fn a_taker_of_one_cold_list_leaves_it_cold() {
    let (mut steps, _takers) = tiers();
    let _another = steps.join(9, &["a"], Wait::Endless);
    assert_eq!(steps.actions(), []);
}

#[test]
fn a_taker_of_several_lists_makes_them_hot() {
    let (mut steps, _takers) = tiers();
    let _another = steps.join(9, &["a", "hot"], Wait::Endless);
    assert_eq!(steps.actions(), [Action::Interrupt(Tier::Cold)]);
}

#[test]
fn lists_become_cold_when_the_hot_pop_is_sent_again() {
    let mut steps = Steps::new();
    steps.dispatcher.hot_limit = 2;
    let _first = steps.join(0, &["hot"], Wait::Endless);
    assert_eq!(steps.actions(), [block(&["hot"], false)]);
    let names = ["a", "b", "c"];
    let _others: Vec<_> =
        names.iter().zip(1..).map(|(name, id)| steps.join(id, &[*name], Wait::Endless)).collect();
    assert_eq!(steps.actions().len(), 3);
    names.iter().for_each(|name| steps.try_popped(name, 1, &[]));
    assert_eq!(steps.actions(), [Action::Interrupt(Tier::Hot)]);
    steps.dispatcher.on_pop_ended(Tier::Hot, PopOutcome::NotSent);
    let lists = |action: &Action| match action {
        Action::Block { tier, keys, .. } => Some((*tier, keys.len())),
        _ => None,
    };
    let blocked: Vec<_> = steps.actions().iter().map(lists).collect();
    assert_eq!(blocked, [Some((Tier::Hot, 1)), Some((Tier::Cold, 3))]);
}

#[test]
fn lists_with_a_try_pop_in_flight_stay_hot() {
    let (mut steps, _takers) = tiers();
    let _others: Vec<_> =
        ["c", "d", "e"].iter().zip(9..).map(|(name, id)| steps.join(id, &[*name], Wait::Endless)).collect();
    steps.dispatcher.on_pop_ended(Tier::Hot, PopOutcome::NotSent);
    let actions = steps.actions();
    assert!(actions.contains(&block(&["hot"], false)), "{actions:?}");
    let try_pops = actions.iter().filter(|action| matches!(action, Action::TryPop { .. })).count();
    assert_eq!((try_pops, actions.len()), (3, 4), "{actions:?}");
}

#[test]
fn lists_that_become_cold_join_the_cold_pop() {
    let (mut steps, _takers) = tiers();
    let _others = [("c", 9), ("d", 10)].map(|(name, id)| steps.join(id, &[name], Wait::Endless));
    assert_eq!(steps.actions().len(), 2);
    ["c", "d"].iter().for_each(|name| steps.try_popped(name, 1, &[]));
    assert_eq!(steps.actions(), [Action::Interrupt(Tier::Hot)]);
    steps.dispatcher.on_pop_ended(Tier::Hot, PopOutcome::NotSent);
    assert_eq!(steps.actions(), [Action::Interrupt(Tier::Cold), block(&["hot"], false)]);
    // Unless something else happens to them before.
    let _poll = steps.join(11, &["c"], Wait::None);
    assert_eq!(steps.actions(), [try_pop("c", 2, 12)]);
    steps.dispatcher.on_pop_ended(Tier::Cold, PopOutcome::NotSent);
    let actions = steps.actions();
    let [Action::Block { tier: Tier::Cold, keys: cold, .. }] = &actions[..] else { panic!("{actions:?}") };
    assert!(cold.len() == 3 && !cold.contains(&Keys::new("c")), "{cold:?}");
}

#[test]
fn a_cold_pop_that_blocks_for_long_has_looked() {
    let (mut steps, mut takers) = tiers();
    steps.dispatcher.expire(3, |tier| tier == Tier::Cold, None);
    assert_eq!(got(&mut takers[3]).as_deref(), Some(""));
}
