#!/bin/sh
# Checks the dependencies against deny.toml. Advisories need the database at github.com, which not every network reaches:
# then the script says so, also in the file $SUMMARY, and fails if $CI is set.
set -eu
cd "$(dirname -- "$0")/.."

deny=$(scripts/cargo-tool.sh cargo-deny 0.20.2)
# Of redelay with the codecs, of the command line, and of the test kit. Not all of them need all exceptions.
for package in . crates/redelay-cli crates/redelay-testing; do
    "$deny" --manifest-path $package/Cargo.toml --exclude-dev check --allow license-exception-not-encountered \
        --allow unmatched-skip --allow unnecessary-skip bans licenses
done
"$deny" --workspace check sources
if timeout 20 git ls-remote --quiet https://github.com/RustSec/advisory-db HEAD >/dev/null 2>&1; then
    for package in . crates/redelay-cli crates/redelay-testing; do
        "$deny" --manifest-path $package/Cargo.toml --exclude-dev check advisories
    done
else
    echo "SKIPPED: deny.sh cannot reach the database of advisories, so they are not checked" |
        tee -a "${SUMMARY:-/dev/null}" >&2
    [ -z "${CI:-}" ]
fi
