//! Generated objects of several classes: Redisson reads what redelay writes, and what Redisson makes of it is
//! the same again.

use std::fmt::Debug;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use redelay::codec::{Kryo5, java};
use redelay_compat_values::class_trees::{batches, config, jobs, moves, payments, shapes, tasks};

use crate::places::Both;
use crate::report;

fn next<T: Debug>(trees: &impl Strategy<Value = T>, runner: &mut TestRunner) -> T {
    trees.new_tree(runner).expect("a tree").current()
}

/// Of one seed; `make soak` takes random ones.
fn redisson_reads_trees(redisson: &str, cases: u32) {
    let config = config(cases);
    let cases = config.cases;
    let mut runner = TestRunner::new(config);
    let mut both = Both::new(redisson);
    for _ in 0..cases {
        let job = next(&jobs(), &mut runner);
        both.each(&job);
        if let Some(tasks) = job.tasks {
            both.each(&tasks);
        }
        both.each(&next(&tasks(), &mut runner));
        both.each(&next(&payments(), &mut runner));
        both.each(&next(&shapes(), &mut runner));
        both.each(&next(&moves(), &mut runner));
        // Nothing names the class of a record, or of an array, that Jackson writes as a whole payload.
        both.one("kryo5", &Kryo5, &next(&batches(), &mut runner));
        both.one("kryo5", &Kryo5, &java::array::Of(vec![next(&tasks(), &mut runner)]));
    }
    let Both { compared, refused, .. } = both;
    report(&format!("Redisson {redisson}: {compared} trees came back, {refused} were refused here"));
    assert_eq!(refused, 0);
}

#[test]
fn redisson_4_7_reads_trees_of_classes() {
    redisson_reads_trees("4.7.0", 60);
}

#[test]
fn redisson_3_50_reads_trees_of_classes() {
    redisson_reads_trees("3.50.0", 60);
}
