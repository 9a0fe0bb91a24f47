#!/bin/sh
# Builds the Java side of the compatibility tests: installs JDK 17 or later and Maven where they are
# missing, then runs compat/java/build.sh. Java Redisson is the reference redelay is measured against;
# only tests/compat needs it, the other tests do not.
#
#   scripts/java.sh [REDISSON-VERSION...]       default: all that build.sh knows
#
# AVOID: see scripts/apt-install.sh.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(dirname -- "$here")

# The number N of "javac N.x.y"; 0 without a JDK, 1 for Java 8 and older ("1.8").
jdk() {
    version=$(javac -version 2>&1) || version=
    version=${version##*javac }
    version=${version%%[!0-9]*}
    echo "${version:-0}"
}

missing=
if ! command -v java >/dev/null || [ "$(jdk)" -lt 17 ]; then
    missing=default-jdk-headless
fi
if ! command -v mvn >/dev/null; then
    missing="$missing maven"
fi
if [ -n "$missing" ]; then
    # Two words are two packages.
    # shellcheck disable=SC2086
    "$here/apt-install.sh" $missing
fi
if [ "$(jdk)" -lt 17 ]; then
    echo "java.sh: javac $(jdk) is first on PATH, JDK 17 or later is needed" >&2
    exit 1
fi

"$root/compat/java/build.sh" "$@"

# With an archive of its classes, the peer starts with half of the work. It holds what these commands load.
for built in "$root"/compat/java/target/*/peer.jar; do
    folder=$(dirname "$built")
    [ ! -e "$folder/peer.jsa" ] || continue
    for line in 'open	q' 'offer	q	"x"	0' 'drain	q	1' 'readall	q' 'destroy	q' 'quit'; do echo "$line"; done |
        "$here/with-server.sh" sh -c 'exec java "$@" "$REDIS_URL" json-jackson' sh -XX:TieredStopAtLevel=1 -XX:+UseSerialGC \
            -Xlog:disable -XX:ArchiveClassesAtExit="$folder/peer.jsa" -cp "$folder/peer.jar:$folder/lib/*" Peer >/dev/null
done
