#!/bin/sh
# Mutation testing of the pure modules, by cargo-mutants: .cargo/mutants.toml says which modules, and how.
#
#   scripts/mutants.sh [FILE...]    by default all of them
#
# Fails if a mutant survives. target/mutants.out has the lists, and the diff and the log of each mutant.
set -eu
cd "$(dirname -- "$0")/.."

mutants=$(scripts/cargo-tool.sh cargo-mutants 27.1.0)
# Every run tests the same cases, and does not look for the smallest one that fails.
export PROPTEST_RNG_SEED=1 PROPTEST_MAX_SHRINK_ITERS=0
# A mutant changes one function, so most of the build before is reused.
export CARGO_INCREMENTAL=1
# `--file` would add to the files of the configuration.
for file in "$@"; do
    shift
    set -- "$@" --re "^$file"
done
exec nice "$mutants" mutants --output target --jobs 1 "$@"
