#!/usr/bin/env bash
# rustc for CI (RUSTC_WORKSPACE_WRAPPER). It optimises the two libraries a little when they are built for others: their tests
# spend more time in them than that takes. What tests them is built as always. A profile of Cargo makes no such difference
# between a library and the tests in its package. Not in sh: dash drops the variables of Cargo whose names have a hyphen.
#
#   rustc-for-tests.sh RUSTC ARGUMENTS...
set -euo pipefail

case " $* " in
    *" --test "*) ;;
    *" --crate-name redelay --edition="*" --crate-type lib "* | *" --crate-name redisson_codec --edition="*" --crate-type lib "*)
        exec "$@" -C opt-level=1
        ;;
esac
exec "$@"
