#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every path that a document names exists: docs_test.py SOURCES. Links are relative to the page; a path in backquotes
beginning with a folder of the sources is relative to those. `{a,b}` and `*` stand for what they do in a shell."""

import re
import sys
import unittest
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(sys.argv.pop(1)).resolve()
FOLDERS = sorted(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "build")))
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(rf"`((?:{'|'.join(map(re.escape, FOLDERS))})/[\w./{{}},*<>-]*)`")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def pages():
    for pattern in ("*.md", "docs/**/*.md", "benchmarks/*.md", "data/*.md", "examples/**/*.md", "python/**/*.md"):
        yield from sorted(ROOT.glob(pattern))


def spread(path):
    """The paths that braces stand for."""
    match = re.search(r"\{([^{}]*)\}", path)
    if not match:
        return [path]
    return [whole for part in match[1].split(",") for whole in spread(
        path[:match.start()] + part.strip() + path[match.end():])]


def exists(path):
    if "<" in path:  # a placeholder
        return True
    return bool(list(ROOT.glob(path))) if "*" in path else (ROOT / path).exists()


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    for heading in HEADING.findall(page.read_text(encoding="utf-8")):
        yield re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


class Docs(unittest.TestCase):
    def test_paths_in_backquotes(self):
        for page in pages():
            for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
                for named in NAMED.findall(line):
                    for path in spread(named):
                        with self.subTest(page=str(page.relative_to(ROOT)), line=number):
                            self.assertTrue(exists(path), f"{path} is not there")

    def test_links(self):
        for page in pages():
            for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
                for link in LINK.findall(line):
                    if re.match(r"[a-z]+:", link):
                        continue
                    path, _, anchor = unquote(link).partition("#")
                    target = (page.parent / path).resolve() if path else page
                    with self.subTest(page=str(page.relative_to(ROOT)), line=number):
                        self.assertTrue(target.exists(), f"{link} leads nowhere")
                        if anchor:
                            self.assertIn(anchor, list(anchors(target)), f"{link}: no such heading")


if __name__ == "__main__":
    unittest.main(verbosity=1)
