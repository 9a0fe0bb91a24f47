#!/bin/sh
# Compiles the crates for Windows, with all features that need no C compiler for it: `tls` does. Nothing is linked.
#
# The target is installed through rustup if it is missing. Where it cannot be fetched, the script says so, also in the file
# $SUMMARY, which .ci/run prints at the end.
set -eu
cd "$(dirname -- "$0")/.."

target=x86_64-pc-windows-gnu
if ! rustup target add "$target"; then
    echo "SKIPPED: windows.sh cannot fetch the target $target" | tee -a "${SUMMARY:-/dev/null}" >&2
    exit 0
fi
# A warning there is one that nobody sees here.
RUSTFLAGS="-D warnings" cargo check --locked --target "$target" \
    --package redisson-codec --package redelay --features java,classes,compression,cron,detect,msgpack,tower
