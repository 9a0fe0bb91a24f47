#!/bin/sh
# Every test: what needs no server of the matrix once, each integration test with every server, and those against Java
# Redisson. Prints how long each program took. `make test` installs what is needed, and then runs this.
#
#   tests/run.sh [redis-6.2 valkey-9.1 ...]    the servers beside the one on PATH
#
# Goes on after a failure, and fails at the end.
set -u
cd "$(dirname -- "$0")/.."

# Most tests wait most of the time.
threads=${RUST_TEST_THREADS:-$((4 * $(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)))}
summary=
failures=

# step NAME COMMAND...: runs it, says how long it took, and remembers both.
step() {
    name=$1
    shift
    echo "::: $name: $*"
    begun=$(date +%s)
    if "$@"; then result=; else result=' FAILED' failures="$failures $name,"; fi
    took=$(($(date +%s) - begun))
    echo "::: $name took $took s$result"
    summary="$summary$(printf '%5d s  %s%s' "$took" "$name" "$result")
"
}

others=
parts=1
for server in "$@"; do
    if [ -d "target/servers/$server" ]; then
        others="$others $server"
        parts=$((parts + 1))
    else
        echo "skipped: there is no $server for this machine"
    fi
done

# Always with all packages, or their dependencies would be built once more with other features.
all='--workspace --all-features'
# name FILE...: the options of cargo for these programs.
name() {
    for main in "$@"; do
        case $main in
        *'*'*) ;;
        */main.rs) echo "--test $(basename "$(dirname "$main")")" ;;
        *) echo "--test $(basename "$main" .rs)" ;;
        esac
    done
}

step build cargo test $all --no-run
if [ -n "$failures" ]; then
    exit 1
fi
export RUST_TEST_THREADS="$threads"
step 'unit tests' cargo test $all --lib --bins
step 'documentation' cargo test $all --doc
step 'other packages' cargo test $all $(name tests/fixture/tests/*.rs crates/*/tests/*.rs crates/*/tests/*/main.rs \
    benches/*/tests/*.rs)
step 'patterns' cargo test $all --test patterns
step 'model' cargo test $all --test checked -- --nocapture

# The same on a cluster of one server. What more servers change is in tests of their own.
REDELAY_CLUSTER=1 step 'cluster queues' cargo test $all --test queues
REDELAY_CLUSTER=1 step 'cluster bad data' cargo test $all --test bad_data
REDELAY_CLUSTER=1 step 'cluster patterns' cargo test $all --test patterns

# Each server has a part of what is repeated: seeded plans, and counts of the same thing.
part=1
for server in '' $others; do
    export REDELAY_PART="$part/$parts"
    [ -z "$server" ] || export REDELAY_SERVER="$server"
    for main in tests/*.rs tests/*/main.rs tests/model/tests/scripts/main.rs; do
        case $main in
        # It talks to Java, and runs once.
        tests/compat/main.rs | *'*'*) ;;
        *) step "${server:-PATH} $(basename "${main%/main.rs}" .rs)" cargo test $all $(name "$main") ;;
        esac
    done
    part=$((part + 1))
done
unset REDELAY_PART REDELAY_SERVER

# Six processes for each of these, half of them in Java; one test that takes long comes late.
export RUST_TEST_THREADS="$(((threads + 1) / 2))"
step compat cargo test $all --test compat

printf '%s' "$summary"
if [ -n "$failures" ]; then
    echo "failed:${failures%,}"
    exit 1
fi
