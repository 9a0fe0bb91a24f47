#!/bin/sh
# Runs today's redelay beside that of an older commit, on one queue under faults: tests/compat/two_versions.rs.
#
#   scripts/two-versions.sh [COMMIT]
#
# Where the commit cannot be had, because there is no history of git, the script says so, also in the file $SUMMARY, which
# .ci/run prints at the end.
set -eu
cd "$(dirname -- "$0")/.."

# The last one before a format on the server changed: jobs that hold their ids came with the next one.
commit=${1:-8f285b47832deb9ee84b1d155aada5cbf11b4288}
target=${CARGO_TARGET_DIR:-target}/two-versions
case $target in /*) ;; *) target=$PWD/$target ;; esac
if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
    echo "SKIPPED: two-versions.sh has no commit $commit here, so nothing runs beside an older version" |
        tee -a "${SUMMARY:-/dev/null}" >&2
    exit 0
fi
# The source belongs to no workspace but its own.
source=$target/$commit
if [ ! -d "$source" ]; then
    mkdir -p "$source.part"
    git archive "$commit" | tar -x -C "$source.part"
    mv "$source.part" "$source"
fi
(cd "$source" && cargo build --locked --package redelay-peer --target-dir "$target/build")
REDELAY_OLD_PEER=$target/build/debug/redelay-peer \
    cargo test --workspace --all-features --test compat -- --ignored --nocapture two_versions
