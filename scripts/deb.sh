#!/bin/sh
# Packs target/static, which scripts/static-cli.sh has made, as a Debian package. Prints its path.
set -eu
cd "$(dirname -- "$0")/.."

deb=$(scripts/cargo-tool.sh cargo-deb 3.8.0)
# It is started as cargo starts it.
"$deb" deb --quiet --no-build --no-strip --package redelay-cli --target "$(uname -m)-unknown-linux-musl" \
    --output "$PWD/target/static/redelay.deb" >&2
echo "$PWD/target/static/redelay.deb"
