//! Tests that measure their process.

use std::env;
use std::process::Command;

const VARIABLE: &str = "REDELAY_TEST_ALONE";

/// Whether the test with this name has its own process. If not, this call runs it in one, and the caller has
/// nothing left to do.
///
/// # Panics
/// Panics with the output of the test if it fails there.
#[must_use]
pub fn alone(test: &str) -> bool {
    alone_with(test, &[])
}

/// As [`alone`], with these environment variables in the other process.
///
/// # Panics
/// As [`alone`].
#[must_use]
pub fn alone_with(test: &str, variables: &[(&str, &str)]) -> bool {
    if env::var_os(VARIABLE).is_some_and(|alone| alone == test) {
        return true;
    }
    let executable = env::current_exe().expect("the executable of a test has a path");
    let run = Command::new(executable)
        .args(["--exact", test, "--nocapture"])
        .env(VARIABLE, test)
        .envs(variables.iter().copied())
        .output()
        .expect("the executable of a test can be executed");
    let output = String::from_utf8_lossy(&run.stdout);
    print!("{output}");
    eprint!("{}", String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success() && output.contains("1 passed"), "{test} failed in a process of its own");
    false
}
