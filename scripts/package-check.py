#!/usr/bin/env python3
"""Checks the packages that `cargo package` has made: which files are in them, and that their links lead somewhere.

    scripts/package-check.py target/package [--publish]

A link in a Markdown file must name a file of the same package, and a heading if it has a fragment. Addresses of other
places are not visited. The README has no links into the package at all, because crates.io drops them. With --publish, a
repository is demanded, too.
"""

import pathlib
import re
import subprocess
import sys
import tarfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMON = ["Cargo.toml", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"]
# Folder of each package, and the committed files that its users must get in addition to those above.
PACKAGES = {
    "redisson-codec": ("crates/redisson-codec", []),
    "redelay": (".", ["CONTRIBUTING.md", "DESIGN.md", "RELEASING.md", "SECURITY.md", "docs/*.md", "docs/schemas.json", "docs/design/*.md"]),
    "redelay-testing": ("crates/redelay-testing", []),
}
# What only the project's own tests and benchmarks need.
UNWANTED = re.compile(r"^(tests|benches|compat|scripts|fuzz|crates|target|docs/benchmarks|\.ci)/|\.(class|jar|svg)$")
# Folders of the repository that documents link to, and that are in no package.
ELSEWHERE = ("docs/benchmarks/", "examples/demo/")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)")
DEFINITION = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)", re.MULTILINE)
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
FENCE = re.compile(r"^ {0,3}(```+|~~~+).*?^ {0,3}\1[`~]*\s*$", re.MULTILINE | re.DOTALL)


def anchors(text):
    """The fragments of a file's headings, as GitHub makes them."""
    found = {}
    for heading in HEADING.findall(FENCE.sub("", text)):
        heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
    return {slug if i == 0 else f"{slug}-{i}" for slug, last in found.items() for i in range(last + 1)}


def dead_links(files):
    for name, content in files.items():
        if not name.endswith(".md"):
            continue
        text = content.decode()
        prose = re.sub(r"`[^`\n]*`", "``", FENCE.sub("", text))
        for link in LINK.findall(prose) + DEFINITION.findall(prose):
            if re.match(r"[a-z][a-z0-9+.-]*:", link):
                continue
            path, _, fragment = link.partition("#")
            # `..` at the front must not lead out of the package.
            parts = [] if not path else list(pathlib.PurePosixPath(name).parent.parts)
            for part in pathlib.PurePosixPath(path).parts:
                if part != "..":
                    parts.append(part)
                elif parts:
                    parts.pop()
                else:
                    parts.append("out of the package")
            target = "/".join(parts) if path else name
            if target.startswith(ELSEWHERE):
                if not (ROOT / target).exists():
                    yield f"{name}: {link} is not in the repository"
                continue
            if target not in files and not any(file.startswith(target.rstrip("/") + "/") for file in files):
                yield f"{name}: {link} is not in the package"
            elif fragment and target.endswith(".md") and fragment not in anchors(files[target].decode()):
                yield f"{name}: {link}: {target} has no such heading"


def committed(folder, patterns):
    command = ["git", "-C", str(ROOT / folder), "ls-files", "--"] + [f":(glob){pattern}" for pattern in patterns]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def check(name, version, folder, patterns, made, publish):
    top = f"{name}-{version}"
    with tarfile.open(made / f"{top}.crate") as crate:
        files = {
            member.name.removeprefix(f"{top}/"): crate.extractfile(member).read()
            for member in crate.getmembers()
            if member.isfile()
        }
    wanted = COMMON + (committed(folder, patterns) if patterns else [])
    yield from (f"{file} is missing" for file in wanted if file not in files)
    yield from (f"{file} does not belong into it" for file in files if UNWANTED.search(file))
    manifest = files["Cargo.toml"].decode()
    yield from (
        f"Cargo.toml has no {key}"
        for key in ("description", "license", "readme", "rust-version", "keywords", "categories")
        + (("repository",) if publish else ())
        if not re.search(f'^{key} = (?!"")', manifest, re.MULTILINE)
    )
    readme = re.search(r'^readme = "(.*)"$', manifest, re.MULTILINE)[1]
    prose = FENCE.sub("", files[readme].decode())
    yield from (
        f"{readme}: crates.io drops the link {link}" for link in LINK.findall(prose) if not re.match(r"https://|#", link)
    )
    yield from dead_links(files)
    size = sum(map(len, files.values()))
    documents = sum(file.endswith(".md") for file in files)
    print(f"{top}: {len(files)} files, {size / 1024:.0f} KiB; checked the links of {documents} Markdown files")


def main():
    made, publish = pathlib.Path(sys.argv[1]), "--publish" in sys.argv[2:]
    version = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    problems = [
        f"{name}: {problem}"
        for name, (folder, patterns) in PACKAGES.items()
        for problem in check(name, version, folder, patterns, made, publish)
    ]
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    sys.exit(bool(problems))


main()
