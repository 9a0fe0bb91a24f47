#!/bin/sh
# Packs the crates as they would be published, and unpacks them into a folder outside of the workspace. There, each is
# built with the other packages, as users do. Prints the folder of redelay; the others are beside it.
#
#   scripts/pack.sh FOLDER
set -eu

folder=$1
cd "$(dirname -- "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
made=${CARGO_TARGET_DIR:-target}/package
cargo package --quiet --no-verify --allow-dirty --package redisson-codec --package redelay --package redelay-testing >&2
mkdir -p "$folder/.cargo"
for crate in redisson-codec redelay redelay-testing; do
    rm -rf "$folder/$crate"
    tar -xzf "$made/$crate-$version.crate" -C "$folder"
    mv "$folder/$crate-$version" "$folder/$crate"
done
printf '[patch.crates-io]\nredisson-codec = { path = "%s/redisson-codec" }\n' "$folder" >"$folder/.cargo/config.toml"
# Where nothing uses it, a patch is a warning.
mkdir "$folder/redelay-testing/.cargo"
printf '[patch.crates-io]\nredelay = { path = "%s/redelay" }\n' "$folder" >"$folder/redelay-testing/.cargo/config.toml"
echo "$folder/redelay"
