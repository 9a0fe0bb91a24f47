#!/bin/sh
# Builds the command `redelay` as one file that runs on any Linux of this processor, with its completions and manual
# pages, in target/static. Prints the path of the program.
#
#   scripts/static-cli.sh
#
# The C of ring needs no compiler for musl: it includes no headers of a C library.
set -eu
cd "$(dirname -- "$0")/.."

machine=$(uname -m)
triple=$machine-unknown-linux-musl
target=${CARGO_TARGET_DIR:-target}
into=target/static

rustup target list --installed | grep -qx "$triple" || rustup target add "$triple" >&2
export "CC_${machine}_unknown_linux_musl=${CC:-gcc}"
# Only of the program: as a setting of the profile, it would build the dependencies once more.
cargo rustc --release --locked --package redelay-cli --features exporter --bin redelay --target "$triple" -- -C strip=symbols >&2

rm -rf "$into"
mkdir -p "$into/completions"
cp "$target/$triple/release/redelay" "$into/redelay"
"$into/redelay" man --into "$into/man"
"$into/redelay" completions bash >"$into/completions/redelay"
"$into/redelay" completions zsh >"$into/completions/_redelay"
"$into/redelay" completions fish >"$into/completions/redelay.fish"
echo "$PWD/$into/redelay"
