//! Generated objects of the classes in [`tasks`](crate::tasks): trees in which places hold several classes.

use std::env;
use std::fmt::Debug;

use prop::collection::{btree_map, vec};
use prop::option::of;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use redisson_codec::java::{self, BigDecimal};

use crate::tasks::*;
use crate::zoo::Entries;

/// This number of trees, always the same. With `REDELAY_ROUNDS`, there are as many times more, at random;
/// `REDELAY_SEED` sets the seed.
pub fn config(cases: u32) -> ProptestConfig {
    let number = |name| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let rounds = number("REDELAY_ROUNDS").and_then(|rounds| u32::try_from(rounds).ok()).unwrap_or(1);
    let rng_seed = match number("REDELAY_SEED") {
        None if rounds > 1 => RngSeed::Random,
        seed => RngSeed::Fixed(seed.unwrap_or(1)),
    };
    ProptestConfig { cases: cases * rounds, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

fn texts() -> impl Strategy<Value = Option<String>> {
    of("[ -~é🚀]{0,8}")
}

fn amounts() -> impl Strategy<Value = Option<BigDecimal>> {
    of((any::<i32>(), 1..3)
        .prop_map(|(unscaled, scale)| BigDecimal::new(i64::from(unscaled) * 10 + 5, scale)))
}

pub fn tasks() -> impl Strategy<Value = Task> {
    let sms = (texts(), any::<Option<i32>>(), amounts())
        .prop_map(|(id, template, cost)| Task::Sms(Sms { id, template, cost }));
    let letter = (texts(), any::<i64>(), of(vec(".{0,4}", 0..3)))
        .prop_map(|(id, millis, lines)| Task::Slow(Slow::Letter(Letter { id, millis, lines })));
    prop_oneof![sms, letter].prop_recursive(4, 8, 1, |inner| {
        (texts(), texts(), of(inner.prop_map(Box::new)))
            .prop_map(|(id, to, next)| Task::Email(Email { id, to, next }))
    })
}

pub fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        (any::<i64>(), texts()).prop_map(|(millis, why)| Step::Wait(Wait { millis, why })),
        prop_oneof![Just(Stop::Now), Just(Stop::Later)].prop_map(Step::Stop),
        prop_oneof![Just(Retry::Once), Just(Retry::Often)].prop_map(Step::Retry),
        any::<i32>().prop_map(|speed| Step::Go(Go { speed })),
    ]
}

fn map<V: Debug>(value: impl Strategy<Value = V>) -> impl Strategy<Value = Entries<String, V>> {
    btree_map("[a-z]{0,3}", value, 0..2).prop_map(|entries| Entries(entries.into_iter().collect()))
}

pub fn anything() -> impl Strategy<Value = Any> {
    let plain = prop_oneof![
        tasks().prop_map(Any::Task),
        steps().prop_map(Any::Step),
        ".{0,6}".prop_map(Any::Text),
        any::<i32>().prop_map(Any::Integer),
        any::<i64>().prop_map(Any::Long),
        any::<f64>().prop_map(Any::Double),
        any::<bool>().prop_map(Any::Boolean),
        "[a-zé]".prop_map(|text| Any::Character(text.chars().next().expect("one character"))),
        any::<i64>().prop_map(|millis| Any::Date(java::Date::from_millis(millis))),
        amounts().prop_filter_map("a null", |amount| amount.map(Any::Decimal)),
        any::<Vec<u8>>().prop_map(Any::Bytes),
        vec(tasks(), 0..3).prop_map(|tasks| Any::Tasks(tasks.into())),
        vec(any::<i32>(), 0..3).prop_map(|numbers| Any::Integers(numbers.into())),
    ];
    plain.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![vec(inner.clone(), 0..4).prop_map(Any::List), map(inner).prop_map(Any::Map)]
    })
}

pub fn jobs() -> impl Strategy<Value = Job> {
    let tasks = (of(tasks()), of(vec(of(tasks()), 0..4)), of(map(tasks())), of(vec(of(tasks()), 0..3)));
    let steps = (of(steps()), of(vec(of(steps()), 0..5)), of(vec(of(steps()), 0..3)));
    let others = (of(anything()), of(vec(of(anything()), 0..4)), of(map(anything())));
    (tasks, steps, others).prop_map(
        |((task, tasks, by_name, array), (step, steps, step_array), (any, anys, props))| Job {
            task,
            tasks,
            by_name,
            array,
            step,
            steps,
            step_array,
            any,
            anys,
            props,
        },
    )
}

pub fn batches() -> impl Strategy<Value = Batch> {
    (of(vec(of(tasks()), 0..4)), of(map(tasks())), of(vec(tasks(), 0..3)))
        .prop_map(|(tasks, by_name, array)| Batch { tasks, by_name, array })
}

fn payment() -> impl Strategy<Value = Payment> {
    prop_oneof![
        (amounts(), texts()).prop_map(|(amount, number)| Payment::Card(Card { amount, number })),
        (amounts(), any::<Option<i64>>()).prop_map(|(amount, coins)| Payment::Cash(Cash { amount, coins })),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![Just(Shape::Dot(Dot {})), amounts().prop_map(|radius| Shape::Circle(Circle { radius }))]
}

fn r#move() -> impl Strategy<Value = Move> {
    prop_oneof![
        amounts().prop_map(|by| Move::Up(Up { by })),
        of(vec(any::<i64>(), 0..3)).prop_map(|to| Move::Down(Down { to })),
    ]
}

macro_rules! holders {
    ($($function:ident $holder:ident $element:ident)*) => {$(
        pub fn $function() -> impl Strategy<Value = $holder> {
            let (one, open) = (of($element()), of($element()));
            (one, of(vec(of($element()), 0..3)), of(map($element())), of(vec($element(), 0..3)), open)
                .prop_map(|(one, list, map, array, open)| $holder { one, list, map, array, open })
        }
    )*};
}

holders! {
    payments Payments payment
    shapes Shapes shape
    moves Moves r#move
}
