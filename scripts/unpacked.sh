#!/bin/sh
# What others do with the published packages: users build them, Debian and crater build their tests, and docs.rs their
# documentation, as it does with a nightly compiler. Everything with the newest dependencies, and warnings are errors.
set -eu
cd "$(dirname -- "$0")/.."
root=$PWD

build=$root/${CARGO_TARGET_DIR:-target}/unpacked
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
package=$(scripts/pack.sh "$folder")
for crate in "$folder/redisson-codec" "$package"; do
    cd "$crate"
    rm -f Cargo.lock
    cargo test --no-run --all-features --target-dir "$build" 2>&1 | tee "$folder/log"
    # Cargo's own warnings are no errors.
    if grep '^warning' "$folder/log" >&2; then
        echo "unpacked.sh: $crate is built with warnings" >&2
        exit 1
    fi
    # The last command of a pipe decides about its success.
    grep -q 'Finished' "$folder/log"
done
cd "$package"
# Users run the examples with the default features.
cargo clippy --examples --target-dir "$build" -- -D warnings
RUSTC_BOOTSTRAP=1 RUSTDOCFLAGS="--cfg docsrs -D warnings" cargo doc --all-features --no-deps --package redelay \
    --package redisson-codec --target-dir "$build"
"$root/scripts/doc-links.py" "$build/doc" redelay/guide
