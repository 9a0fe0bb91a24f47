#!/bin/sh
# Runs a command with REDIS_URL set to a server.
#
#   scripts/with-server.sh COMMAND [ARGUMENT...]
#
# A REDIS_URL that is set already is kept, and nothing is started. Otherwise the command gets a server of its own, empty
# and in memory, on a free port of this machine; it ends when the command has ended, also by Ctrl-C. The binary is the
# redis-server on PATH, else the valkey-server; if neither is there, the distribution's redis-server is installed, on a
# terminal after a question (scripts/confirm-install.sh).
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

if [ $# -eq 0 ]; then
    echo "usage: scripts/with-server.sh COMMAND [ARGUMENT...]" >&2
    exit 2
fi
if [ -n "${REDIS_URL:-}" ]; then
    exec "$@"
fi

find_server() {
    command -v redis-server || command -v valkey-server
}

if ! server=$(find_server); then
    echo "neither redis-server nor valkey-server is on PATH, and REDIS_URL is not set" >&2
    AVOID="set REDIS_URL to a server of yours, as in: REDIS_URL=redis://localhost make demo
  (one in a container: docker run --rm -p 6379:6379 redis)" "$here/apt-install.sh" redis-server
    if ! server=$(find_server); then
        echo "with-server.sh: redis-server was installed, but is not on PATH" >&2
        exit 1
    fi
fi

dir=$(mktemp -d)
pid=
clean_up() {
    if [ -n "$pid" ]; then
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    fi
    rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

# In a session of its own: Ctrl-C is for the command, which may still want to tidy up on the server.
session=
if command -v setsid >/dev/null; then
    session=setsid
fi

# Whether the server is there; it says so itself, so that nobody else's server on that port is taken for it.
start() {
    : >"$dir/log"
    $session "$server" --bind 127.0.0.1 --port "$1" --save "" --appendonly no --dir "$dir" >"$dir/log" 2>&1 </dev/null &
    pid=$!
    while ! grep -q "Ready to accept connections" "$dir/log"; do
        if ! kill -0 "$pid" 2>/dev/null; then
            wait "$pid" 2>/dev/null || true
            pid=
            return 1
        fi
        sleep 0.05
    done
}

tries=0
while :; do
    # Below the ports of redelay-testing, which keeps those of servers that are down. Two that choose the same: one is refused.
    random=$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')
    port=$((10000 + random % 10000))
    if start "$port"; then
        break
    fi
    tries=$((tries + 1))
    if [ "$tries" -ge 20 ] || ! grep -q "Address already in use" "$dir/log"; then
        cat "$dir/log" >&2
        echo "with-server.sh: $server does not start" >&2
        exit 1
    fi
done

REDIS_URL=redis://127.0.0.1:$port "$@"
