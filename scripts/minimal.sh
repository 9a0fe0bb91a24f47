#!/bin/sh
# Builds both crates with the lowest versions of their own dependencies that the manifests allow, all features. Cargo chooses
# such versions only with an unstable option, so only that step runs with it.
set -eu
cd "$(dirname -- "$0")/.."

build=$PWD/${CARGO_TARGET_DIR:-target}/minimal
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
package=$(scripts/unpack.sh "$folder")
for crate in "$folder/redisson-codec" "$package"; do
    cd "$crate"
    rm -f Cargo.lock
    RUSTC_BOOTSTRAP=1 cargo generate-lockfile --quiet -Z direct-minimal-versions
    cargo check --lib --all-features --target-dir "$build"
done
