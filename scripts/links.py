#!/usr/bin/env python3
"""Finds dead links in the pages of the rendered documentation, also those to a heading.

    scripts/links.py [FOLDER]    default: target/doc, as cargo doc makes it

Pages are guides, modules and crates. Those of types also show what other crates write of their traits; rustdoc
checks the links that we write there. Links to other sites are not followed.
"""

import functools
import pathlib
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlparse


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = set(), set()
        self.feed(path.read_text(errors="replace"))

    def handle_starttag(self, _, attributes):
        given = dict(attributes)
        self.links.update(given[name] for name in ("href", "src") if given.get(name))
        self.anchors.update(given[name] for name in ("id", "name") if given.get(name))


def dead_links(path, known):
    for link in sorted(known(path).links):
        parts = urlparse(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.exists():
            yield link
        # In a page of sources a script makes the anchors.
        elif parts.fragment and target.suffix == ".html" and "/src/" not in parts.path:
            if not {parts.fragment, unquote(parts.fragment)} & known(target).anchors:
                yield link


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "target/doc").resolve()
    pages = sorted(folder.rglob("index.html"))
    paths = [path for path in pages if "src" not in path.relative_to(folder).parts]
    known = functools.cache(Page)
    dead = [(path, link) for path in paths for link in dead_links(path, known)]
    for path, link in dead:
        print(f"{path.relative_to(folder)}: dead link {link}")
    print(f"{len(paths)} pages, {len(dead)} dead links")
    return 1 if dead or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
