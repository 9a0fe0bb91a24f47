#!/bin/sh
# Compares the public API of the published crates with that of an earlier commit, by cargo-semver-checks.
#
#   scripts/semver.sh [COMMIT]      by default the last tag
#
# Until a version is tagged there is nothing to be compatible with, so CI does not run it.
set -eu
cd "$(dirname -- "$0")/.."

baseline=${1:-$(git describe --tags --abbrev=0 2>/dev/null || true)}
if [ -z "$baseline" ]; then
    echo "semver.sh: no version is tagged yet; name a commit: make semver BASELINE_REV=<commit>" >&2
    exit 1
fi
git rev-parse --quiet --verify "$baseline^{commit}" >/dev/null || {
    echo "semver.sh: there is no commit $baseline here" >&2
    exit 1
}
checks=$(scripts/cargo-tool.sh cargo-semver-checks 0.51.0)
exec "$checks" semver-checks --package redisson-codec --package redelay --package redelay-testing --all-features --baseline-rev "$baseline"
