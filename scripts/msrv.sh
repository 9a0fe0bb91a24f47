#!/bin/sh
# Builds the published crates, with every feature, by the oldest Rust that Cargo.toml promises and with the dependencies of the
# committed Cargo.lock.
set -eu
cd "$(dirname -- "$0")/.."
# CI's is Clippy, which this toolchain may not have.
unset RUSTC_WORKSPACE_WRAPPER

toolchain=$(scripts/oldest-rust.sh)
[ -n "$toolchain" ] || exit 0
exec rustup run "$toolchain" cargo check --locked --package redisson-codec --package redelay --package redelay-testing --all-features \
    --target-dir "${CARGO_TARGET_DIR:-target}/msrv"
