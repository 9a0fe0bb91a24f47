#!/usr/bin/env bash
# rustc for CI (RUSTC_WORKSPACE_WRAPPER). It is Clippy, which compiles, too: what is built here need not be checked once more.
# Warnings are errors.
#
# It optimises the two libraries a little when they are built for others: their tests spend more time in them than that takes.
# What tests them is built as always. A profile of Cargo makes no such difference between a library and the tests in its
# package. Not in sh: dash drops the variables of Cargo whose names have a hyphen.
#
#   rustc-for-tests.sh RUSTC ARGUMENTS...
set -euo pipefail

# Of the same toolchain. Cargo's Clippy calls it in this way.
clippy=$(dirname "$(command -v "$1")")/clippy-driver
set -- "$clippy" "$@" -D warnings

case " $* " in
    *" --test "*) ;;
    *" --crate-name redelay --edition="*" --crate-type lib "* | *" --crate-name redisson_codec --edition="*" --crate-type lib "*)
        set -- "$@" -C opt-level=1
        ;;
esac
exec "$@"
