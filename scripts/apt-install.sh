#!/bin/sh
# Installs Debian or Ubuntu packages without letting them start a service.
#
#   scripts/apt-install.sh PACKAGE...
#
# Why: `apt-get install redis-server` starts a server on port 6379 and enables it at boot. The tests own
# every server they use, so none may run beside them. Called by servers.sh, java.sh and with-server.sh.
#
# With AVOID set to a way that needs no installation, it first says what it installs and, on a terminal, asks
# (confirm-install.sh).
set -eu

if [ -n "${AVOID:-}" ]; then
    "$(dirname -- "$0")/confirm-install.sh" "$AVOID" "$@"
fi

if ! command -v apt-get >/dev/null; then
    echo "apt-install.sh: no apt-get here; install these by hand and run again: $*" >&2
    exit 1
fi

packages=$*

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "apt-install.sh: neither root nor sudo; as root, run: apt-get install $packages" >&2
        exit 1
    fi
}

policy=/usr/sbin/policy-rc.d
own_policy=no
log=$(mktemp)

clean_up() {
    rm -f "$log"
    if [ "$own_policy" = yes ]; then
        as_root rm -f "$policy"
    fi
}
trap clean_up EXIT
trap 'exit 1' INT TERM

# Exit status 101 means "not allowed" to invoke-rc.d. Someone's own policy is left as it is.
if [ ! -e "$policy" ]; then
    own_policy=yes
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
fi

quietly() {
    if ! "$@" >"$log" 2>&1; then
        cat "$log" >&2
        echo "apt-install.sh: failed: $*" >&2
        exit 1
    fi
}

quietly as_root apt-get -qq update
quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@"

# The package was not here before, so a unit it has enabled for the next boot is its own doing.
if command -v systemctl >/dev/null; then
    for package in "$@"; do
        if systemctl is-enabled "$package.service" >/dev/null 2>&1; then
            as_root systemctl disable --now "$package.service" >/dev/null 2>&1 || true
        fi
    done
fi
