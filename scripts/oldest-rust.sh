#!/bin/sh
# Installs the oldest Rust that Cargo.toml promises (`rust-version`) through rustup, and prints its name. Fails if a dependency of
# the published crates declares that it needs a newer one, or if a README promises another.
#
# Where it cannot be fetched, the script prints no name. It says so, also in the file $SUMMARY, which .ci/run prints at the end.
set -eu
cd "$(dirname -- "$0")/.."

minor=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
toolchain=$minor.0

for readme in README.md crates/redisson-codec/README.md crates/redelay-testing/README.md; do
    grep -q "Rust $minor or later" "$readme" || {
        echo "oldest-rust.sh: $readme does not say \"Rust $minor or later\", as Cargo.toml does" >&2
        exit 1
    }
done

cargo metadata --locked --format-version 1 --filter-platform "$(rustc -vV | sed -n 's/^host: //p')" | python3 -c '
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
' "$minor" >&2

if rustup run "$toolchain" rustc --version >&2 2>/dev/null ||
    rustup toolchain install "$toolchain" --profile minimal --no-self-update >&2; then
    echo "$toolchain"
else
    echo "SKIPPED: Rust $toolchain cannot be fetched, so nothing is built with it; only declared versions are compared" |
        tee -a "${SUMMARY:-/dev/null}" >&2
fi
