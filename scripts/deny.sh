#!/bin/sh
# Checks the dependencies against deny.toml. Advisories need the database at github.com, which not every network reaches.
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
    echo "advisories skipped: their database cannot be reached"
fi
