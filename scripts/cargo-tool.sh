#!/bin/sh
# Prints the path of a cargo subcommand; builds it into target/tools if it is not on PATH.
#
#   scripts/cargo-tool.sh cargo-deny 0.20.2
set -eu

tools=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)/target/tools

if command -v "$1"; then
    exit
fi
if [ ! -x "$tools/bin/$1" ]; then
    echo "building $1 $2, once; this takes minutes, up to half an hour on two cores" >&2
    # Not optimized: it builds in half the time, and each of these runs for seconds.
    cargo install --quiet --locked --debug --root "$tools" --target-dir "$tools/build" "$1" --version "$2" >&2
    rm -rf "$tools/build"
fi
echo "$tools/bin/$1"
