#!/bin/sh
# Builds the compatibility peer: compat/java/target/<version>/classes, the same as peer.jar, and its dependencies in
# compat/java/target/<version>/lib.
#
#   build.sh [version...]        default: 4.7.0 3.50.0 3.21.0 (the profiles of pom.xml)
#
# Prints nothing unless it fails, and does nothing if target/<version> is newer than the sources. Needs a JDK 17 and Maven.
# Parallel builds (of parallel tests) wait for each other where flock exists.
#
# Run the peer from the root of the repository. The flags only make it start faster:
#   java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto \
#        -cp 'compat/java/target/4.7.0/classes:compat/java/target/4.7.0/lib/*' Peer redis://127.0.0.1:6379 string
set -eu

cd "$(dirname "$0")"
mkdir -p target

if command -v flock >/dev/null 2>&1; then
    exec 9>target/.lock
    flock 9
fi

[ $# -gt 0 ] || set -- 4.7.0 3.50.0 3.21.0

for version in "$@"; do
    stamp=target/$version/.built
    if [ -e "$stamp" ] && [ -z "$(find pom.xml build.sh src -newer "$stamp" -print -quit)" ]; then
        continue
    fi

    # A clean build: a jar or class of an older pom or source would still be on the class path.
    rm -rf "target/$version"
    log=target/$version.log
    if ! mvn -q -B -Dredisson.version="$version" process-classes >"$log" 2>&1; then
        cat "$log" >&2
        echo "build.sh: the peer for Redisson $version does not build, see above" >&2
        exit 1
    fi
    rm -f "$log"
    # An archive of classes, which scripts/java.sh makes, needs them in jars.
    jar --create --file "target/$version/peer.jar" -C "target/$version/classes" .
    touch "$stamp"
done
