#!/usr/bin/env python3
"""Checks the links of HTML pages that are made here: each leads to a page that exists, and to a place in it.

    scripts/doc-links.py FOLDER [PART...]     e.g. target/doc redelay/guide; target/book

rustdoc checks only links to items. Addresses of other places are not visited.
"""

import html.parser
import pathlib
import re
import sys
import urllib.parse

# Lines of a source: a script makes these places.
SCRIPTED = re.compile(r"\d+(-\d+)?$")


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids.update(attributes[key] for key in ("id", "name") if attributes.get(key))
        self.links += [attributes[key] for key in ("href", "src", "srcset") if attributes.get(key)]


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages, checked, dead = {}, 0, []

    def page(path):
        if path not in pages:
            pages[path] = Page(path)
        return pages[path]

    for part in sys.argv[2:] or ["."]:
        for path in sorted((root / part).rglob("*.html")):
            for link in page(path).links:
                url = urllib.parse.urlsplit(link)
                if url.scheme or url.netloc or link.startswith("/"):
                    continue
                checked += 1
                target = path if not url.path else (path.parent / urllib.parse.unquote(url.path)).resolve()
                target = target / "index.html" if target.is_dir() else target
                fragment = urllib.parse.unquote(url.fragment)
                if not target.exists():
                    dead.append(f"{path.relative_to(root)}: {link} does not exist")
                elif fragment and not SCRIPTED.match(fragment) and fragment not in page(target).ids:
                    dead.append(f"{path.relative_to(root)}: {link} has no such place")
    print(f"{root.name}: {checked} links")
    print("\n".join(dead), file=sys.stderr, end="\n" if dead else "")
    sys.exit(bool(dead) or not checked)


main()
