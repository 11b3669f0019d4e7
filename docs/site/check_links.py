# SPDX-License-Identifier: Apache-2.0
"""check_links.py SITE: checks the links of a finished site, and exits with code 1 if one of them is wrong.

Every link to the site has an existing page and an existing anchor. A page loads nothing from elsewhere. Every page can be reached from
the start page, and every page of the documentation is in the navigation."""

import html.parser
import json
import pathlib
import posixpath
import re
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.anchors, self.twice = [], [], {"", "__top"}, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        for name in ("id", "name"):
            value = attributes.get(name)
            if value and (name == "id" or tag == "a"):
                if name == "id" and value in self.anchors:
                    self.twice.append(value)
                self.anchors.add(value)
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        elif tag == "link" and attributes.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(attributes.get("href"))
        elif attributes.get("src"):
            self.loads.append(attributes["src"])


def main(site):
    pages = {p.relative_to(site).as_posix(): Page(p.read_text()) for p in sorted(site.rglob("*.html"))}
    mistakes, reached, linked = [], {"index.html", "404.html"}, {}
    for path, page in pages.items():
        linked[path] = set()
        if path == "404.html":  # a server shows this page at any address, so its links begin with a slash
            continue
        mistakes += [f"{path}: the anchor #{anchor} exists twice" for anchor in page.twice]
        for load in page.loads:
            if urllib.parse.urlsplit(load).scheme not in ("", "data"):
                mistakes.append(f"{path}: loads {load}")
        for link in page.links + page.loads:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), urllib.parse.unquote(parts.path))) if parts.path else path
            if target.startswith("..") or not (site / target).exists():
                mistakes.append(f"{path}: links to {link}, which is not there")
            elif target in pages:
                linked[path].add(target)
                if urllib.parse.unquote(parts.fragment) not in pages[target].anchors:
                    mistakes.append(f"{path}: links to {link}, which has no such anchor")
            elif not (site / target).is_file():
                mistakes.append(f"{path}: links to {link}, which is a folder")
    frontier = ["index.html"]
    while frontier:
        for target in linked[frontier.pop()] - reached:
            reached.add(target)
            frontier.append(target)
    mistakes += [f"{path}: no page links to it" for path in pages if path not in reached]
    # A page that the navigation lists is marked there as the active one.
    for path in pages:
        if not path.startswith(("source/", "404")) and not re.search(r"md-nav__link--active|md-tabs__item--active", (site / path).read_text()):
            mistakes.append(f"{path}: is in no navigation; the README of its folder does not list it")
    # A block of code would fill the list of results.
    for entry in json.loads((site / "search/search_index.json").read_text())["docs"]:
        if "<pre" in entry["text"]:
            mistakes.append(f"{entry['location']}: a block of code is in the index of the search")
    print("\n".join(sorted(set(mistakes)) or [f"{len(pages)} pages, no broken link"]))
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
