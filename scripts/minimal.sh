#!/bin/sh
# Builds the published crates, as they are packed, with the lowest versions of their own dependencies that the manifests
# allow, all features. Cargo chooses such versions only with an unstable option, so only that step runs with it.
set -eu
cd "$(dirname -- "$0")/.."

build=${CARGO_TARGET_DIR:-target}
# The crates are built in another folder.
case $build in /*) ;; *) build=$PWD/$build ;; esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
scripts/pack.sh "$folder" >/dev/null
for crate in redisson-codec redelay redelay-testing; do
    cd "$folder/$crate"
    rm -f Cargo.lock
    # What redelay has chosen is built.
    [ "$crate" != redelay-testing ] || cp ../redelay/Cargo.lock .
    RUSTC_BOOTSTRAP=1 cargo update --quiet --workspace -Z direct-minimal-versions
    cargo check --lib --all-features --target-dir "$build"
done
