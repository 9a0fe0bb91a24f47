#!/bin/sh
# Builds the published crates, as they are packed, with the lowest versions of their own dependencies that the manifests
# allow, all features. Cargo chooses such versions only with an unstable option, so only that step runs with it. What those
# dependencies need has the versions of Cargo.lock: a release of somebody else changes no result here.
#
# The oldest Rust that Cargo.toml promises builds them. CI does without `make msrv`, which differs by the versions of those
# dependencies.
set -eu
cd "$(dirname -- "$0")/.."
# CI's is Clippy, which this toolchain may not have.
unset RUSTC_WORKSPACE_WRAPPER

toolchain=$(scripts/oldest-rust.sh)
build=${CARGO_TARGET_DIR:-target}/msrv
# The crates are built in another folder.
case $build in /*) ;; *) build=$PWD/$build ;; esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
scripts/pack.sh "$folder" >/dev/null
# Cargo keeps what a lock file has, so it must not have them.
python3 - Cargo.lock "$folder"/*/Cargo.toml >"$folder/Cargo.lock" <<'END'
import sys, tomllib

lock, *manifests = (open(path, encoding="utf-8").read() for path in sys.argv[1:])
own = set()
for manifest in map(tomllib.loads, manifests):
    for part in (manifest, *manifest.get("target", {}).values()):
        own |= part.get("dependencies", {}).keys() | part.get("dev-dependencies", {}).keys()
head, *packages = lock.split("[[package]]\n")
print(head, *(package for package in packages if package.split('"')[1] not in own), sep="[[package]]\n", end="")
END

cd "$folder"
rm -r ./*/Cargo.lock .cargo redelay-testing/.cargo
cat >Cargo.toml <<'END'
[workspace]
members = ["redisson-codec", "redelay", "redelay-testing"]
resolver = "3"

[patch.crates-io]
redisson-codec = { path = "redisson-codec" }
redelay = { path = "redelay" }
END
RUSTC_BOOTSTRAP=1 cargo update --quiet --workspace -Z direct-minimal-versions
if [ -n "$toolchain" ]; then
    export RUSTUP_TOOLCHAIN="$toolchain"
fi
cargo check --locked --workspace --lib --all-features --target-dir "$build"
