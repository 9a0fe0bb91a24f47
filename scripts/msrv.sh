#!/bin/sh
# Builds the published crates, with every feature, by the oldest Rust that Cargo.toml promises (`rust-version`) and
# with the dependencies of the committed Cargo.lock. Cargo itself refuses a dependency that needs a newer Rust.
#
# The toolchain is installed through rustup if it is missing. Where it cannot be fetched, the script checks only what the
# dependencies declare. It says so, also in the file $SUMMARY, which .ci/run prints at the end.
set -eu
cd "$(dirname -- "$0")/.."
# CI's is Clippy, which this toolchain may not have.
unset RUSTC_WORKSPACE_WRAPPER

minor=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
toolchain=$minor.0
build=${CARGO_TARGET_DIR:-target}/msrv

for readme in README.md crates/redisson-codec/README.md crates/redelay-testing/README.md; do
    grep -q "Rust $minor or later" "$readme" || {
        echo "msrv.sh: $readme does not say \"Rust $minor or later\", as Cargo.toml does" >&2
        exit 1
    }
done

if rustup run "$toolchain" rustc --version 2>/dev/null ||
    rustup toolchain install "$toolchain" --profile minimal --no-self-update; then
    exec rustup run "$toolchain" cargo check --locked --package redisson-codec --package redelay --package redelay-testing --all-features \
        --target-dir "$build"
fi

echo "SKIPPED: msrv.sh cannot fetch Rust $toolchain, so nothing is built with it; only declared versions are compared" |
    tee -a "${SUMMARY:-/dev/null}" >&2
cargo metadata --locked --format-version 1 | python3 -c '
import json, sys

def version(text):
    return tuple(int(part) for part in (text.split(".") + ["0", "0"])[:3])

promised = version(sys.argv[1])
metadata = json.load(sys.stdin)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
# What the published crates bring along: everything but dev-dependencies.
todo = [id for id, package in packages.items() if package["name"] in ("redelay", "redelay-testing", "redisson-codec") and not package["source"]]
seen = set()
while todo:
    id = todo.pop()
    if id not in seen:
        seen.add(id)
        todo += [d["pkg"] for d in nodes[id]["deps"] if any(kind["kind"] != "dev" for kind in d["dep_kinds"])]
newer = [p for p in map(packages.get, seen) if p["rust_version"] and version(p["rust_version"]) > promised]
for package in newer:
    print("{name} {version} needs Rust {rust_version}".format(**package))
print(f"{len(seen)} packages, {len(newer)} of them declare a newer Rust than {sys.argv[1]}")
sys.exit(bool(newer))
' "$minor"
