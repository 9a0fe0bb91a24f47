#!/usr/bin/env python3
"""Makes a book of the guides in docs/, with mdBook, and checks its links.

    scripts/book.py FOLDER      e.g. target/book: the pages are in its folder `html`

The table of contents follows the one in the README, so the tour is first. What links to a file that is no page of the book
leads to the repository, or becomes text while there is none.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = {
    "Use": ["tour", "recipes", "testing", "patterns", "guarantees"],
    "Run": ["deployment", "scaling", "operate", "observability", "troubleshooting"],
    "Java": ["deprecated", "from-redisson", "migrating", "codecs", "java-classes"],
    "Inside": ["keys", "benchmarks/README", "benchmarks/notes", "benchmarks/failover", "benchmarks/size"],
}
# In the root, behind the design.
PROJECT = ["RELEASING.md", "SECURITY.md", "CHANGELOG.md"]
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)


def title(text):
    return re.search(r"^# (.*)$", text, re.MULTILINE)[1].replace("`", "")


def place(page):
    """Where a file is in the book: mdBook calls the page of a README index.html, and does not follow links to it."""
    return page.removeprefix("docs/").replace("README.md", "index.md")


def main():
    book = pathlib.Path(sys.argv[1]).resolve()
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    source = book / "src"
    shutil.rmtree(book, ignore_errors=True)
    source.mkdir(parents=True)
    design = sorted(path.stem for path in (ROOT / "docs/design").glob("*.md"))
    pages = {f"docs/{page}.md" for part in PARTS.values() for page in part}
    missing = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} - pages
    if missing:
        sys.exit(f"book.py: {', '.join(sorted(missing))} has no place in the book")
    pages |= {f"docs/design/{topic}.md" for topic in design} | {"DESIGN.md", *PROJECT}

    def rewritten(page, prose):
        def link(found):
            picture, text, to = found.groups()
            path, _, heading = to.partition("#")
            if not path or "://" in to:
                return found[0]
            target = (ROOT / page).parent.joinpath(path).resolve().relative_to(ROOT)
            if picture or target.as_posix() in pages:
                # The files at the root are beside the guides in the book.
                up = "../" * (len(pathlib.PurePosixPath(page.removeprefix("docs/")).parts) - 1)
                name = place(target.as_posix())
                return f"{picture}[{text}]({up}{name}{'#' if heading else ''}{heading})"
            if workspace["repository"]:
                return f"[{text}]({workspace['repository']}/blob/v{workspace['version']}/{target})"
            return text

        return LINK.sub(link, prose)

    def add(page):
        text = (ROOT / page).read_text()
        parts = FENCE.split(text)
        parts[::2] = [rewritten(page, prose) for prose in parts[::2]]
        into = source / place(page)
        into.parent.mkdir(parents=True, exist_ok=True)
        into.write_text("".join(parts))
        return f"[{title(text)}]({place(page)})"

    summary = "# Summary\n"
    for part, names in PARTS.items():
        summary += f"\n# {part}\n\n" + "".join(f"- {add(f'docs/{name}.md')}\n" for name in names)
    summary += f"\n# Project\n\n- {add('DESIGN.md')}\n"
    summary += "".join(f"  - {add(f'docs/design/{topic}.md')}\n" for topic in design)
    summary += "".join(f"- {add(page)}\n" for page in PROJECT)
    (source / "SUMMARY.md").write_text(summary)
    for picture in (ROOT / "docs/benchmarks").glob("*.svg"):
        shutil.copy(picture, source / "benchmarks")
    repository = f'git-repository-url = "{workspace["repository"]}"\n' if workspace["repository"] else ""
    (book / "book.toml").write_text(
        '[book]\ntitle = "redelay"\nlanguage = "en"\n\n[build]\nbuild-dir = "html"\n\n'
        f'[output.html]\npreferred-dark-theme = "navy"\n{repository}\n[output.html.print]\nenable = false\n'
    )
    tool = subprocess.run(
        [ROOT / "scripts/cargo-tool.sh", "mdbook", "0.5.4"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    subprocess.run([tool, "build", book], check=True)
    sys.exit(subprocess.run([ROOT / "scripts/doc-links.py", book / "html"]).returncode)


main()
