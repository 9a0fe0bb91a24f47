#!/bin/sh
# Builds the workers on BullMQ, asynq and apalis-redis: target/peers/bullmq, target/peers/asynq and target/peers/apalis-peer.
#
#   build.sh bullmq|asynq|apalis
#
# Needs node and npm, or go, or cargo. Prints nothing unless it fails, and does nothing if the built one is newer than the sources.
# Parallel builds (of parallel tests) wait for each other where flock exists.
set -eu

name=$1
cd "$(dirname "$0")"
target=$(cd ../../.. && pwd)/target/peers
mkdir -p "$target"

if command -v flock >/dev/null 2>&1; then
    exec 9>"$target/.lock"
    flock 9
fi

stamp=$target/$name.built
if [ -e "$stamp" ] && [ -z "$(find build.sh "$name" -newer "$stamp" -print -quit)" ]; then
    exit 0
fi

log=$target/$name.log
case $name in
bullmq)
    rm -rf "$target/bullmq"
    cp -R bullmq "$target/bullmq"
    # The versions in package.json are exact, and so are those that BullMQ itself asks for.
    set -- npm --prefix "$target/bullmq" install --no-package-lock --no-audit --no-fund --loglevel error
    ;;
asynq)
    set -- go build -C asynq -trimpath -o "$target/asynq" .
    ;;
apalis)
    set -- cargo build --release --locked --manifest-path apalis/Cargo.toml --target-dir "$target/apalis-build"
    ;;
*)
    echo "build.sh: $name is neither bullmq nor asynq nor apalis" >&2
    exit 2
    ;;
esac
if ! "$@" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
if [ "$name" = apalis ]; then
    cp "$target/apalis-build/release/apalis-peer" "$target/apalis-peer"
fi
rm -f "$log"
touch "$stamp"
