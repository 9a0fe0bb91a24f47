#!/usr/bin/env python3
"""Checks what is written down for a release: versions, changelogs, the repository, and with --publish that the commit is one
that can be published. `make release-check` runs it, and the builds after it.

    scripts/release-check.py [--publish]
"""

import datetime
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
# In the order of publishing, with the folder of each.
CRATES = {"redisson-codec": "crates/redisson-codec", "redelay": ".", "redelay-testing": "crates/redelay-testing"}
# Those of Keep a Changelog.
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def git(*command):
    return subprocess.run(["git", "-C", ROOT, *command], check=True, capture_output=True, text=True).stdout.strip()


def manifest(folder):
    return tomllib.loads((ROOT / folder / "Cargo.toml").read_text())


def of_manifests(version, publish):
    workspace = manifest(".")["workspace"]["package"]
    if publish and not re.match(r"https://[^/]+/.+", workspace.get("repository", "")):
        yield "Cargo.toml: `repository` of [workspace.package] is not set"
    for name, folder in CRATES.items():
        package = manifest(folder)
        for key in ("version", "edition", "rust-version", "license", "repository"):
            if package["package"].get(key) != {"workspace": True}:
                yield f"{name}: `{key}` is not that of the workspace"
        if package["package"].get("publish") is False:
            yield f"{name}: `publish = false`"
        for dependency, value in package.get("dependencies", {}).items():
            if dependency in CRATES:
                wanted = version.rpartition(".")[0] if version.startswith("0.") else version.partition(".")[0]
                if list(CRATES).index(dependency) > list(CRATES).index(name):
                    yield f"{name} is published before {dependency}, which it needs"
                if value.get("version") != wanted:
                    yield f"{name}: {dependency} must be \"{wanted}\""


def of_changelog(name, folder, version, publish):
    file = ROOT / folder / "CHANGELOG.md"
    text = file.read_text()
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    where = file.relative_to(ROOT)
    if "https://keepachangelog.com/" not in text:
        yield f"{where} does not say that it follows Keep a Changelog"
    if not sections or not sections[0].startswith("[Unreleased]\n"):
        yield f"{where} does not begin with [Unreleased]"
        return
    dates = []
    for section in sections:
        title = section.partition("\n")[0]
        kinds = re.findall(r"^### (.*)$", section, flags=re.MULTILINE)
        if unknown := set(kinds) - KINDS:
            yield f"{where}: {title}: {', '.join(sorted(unknown))} is no kind of change"
        if re.search(r"^\* ", section.partition("\n### ")[0], flags=re.MULTILINE):
            yield f"{where}: {title}: a change has no kind"
        if title != "[Unreleased]":
            dated = re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)", title)
            if not dated:
                yield f"{where}: `{title}` is no version with its date: [1.2.3] - 2026-01-31"
                continue
            dates.append((dated[1], datetime.date.fromisoformat(dated[2])))
    if dates != sorted(dates, key=lambda entry: entry[1], reverse=True):
        yield f"{where}: the versions are not in order"
    if publish and version not in (dated for dated, _ in dates):
        yield f"{where} has no section `[{version}] - {datetime.date.today()}`"
    if publish and re.search(r"^\* ", sections[0], flags=re.MULTILINE):
        yield f"{where}: [Unreleased] is not empty: it belongs to {version}"


def of_commit(version):
    if changes := git("status", "--porcelain"):
        yield f"these changes are not committed:\n{changes}"
    if git("tag", "--list", f"v{version}"):
        yield f"there is a tag v{version} already"


def main():
    publish = "--publish" in sys.argv[1:]
    version = manifest(".")["workspace"]["package"]["version"]
    problems = list(of_manifests(version, publish))
    for name, folder in CRATES.items():
        problems += of_changelog(name, folder, version, publish)
    if publish:
        problems += of_commit(version)
    if problems:
        sys.exit("\n".join(f"release-check: {problem}" for problem in problems))
    print(f"{version}: {', then '.join(CRATES)}")


main()
