#!/bin/sh
# Checks the dependencies against deny.toml. Advisories need the database at github.com, which not every network reaches.
set -eu
cd "$(dirname -- "$0")/.."

deny=$(scripts/cargo-tool.sh cargo-deny 0.20.2)
# Of redelay with the codecs, and of the command line. The first one does not use all exceptions.
"$deny" --exclude-dev check --allow license-exception-not-encountered bans licenses
"$deny" --manifest-path crates/redelay-cli/Cargo.toml --exclude-dev check bans licenses
"$deny" --workspace check sources
if timeout 20 git ls-remote --quiet https://github.com/RustSec/advisory-db HEAD >/dev/null 2>&1; then
    "$deny" --exclude-dev check advisories
    "$deny" --manifest-path crates/redelay-cli/Cargo.toml --exclude-dev check advisories
else
    echo "advisories skipped: their database cannot be reached"
fi
