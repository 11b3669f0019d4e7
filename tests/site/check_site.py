# SPDX-License-Identifier: Apache-2.0
"""check_site.py SITE [--screenshots DIRECTORY PAGE...]: looks at a finished site in Chromium.

Every page is opened as a file: no page may report an error, load anything from elsewhere, or be wider than a phone. The search must find
the pages that answer some questions, in pages that are opened as files and in pages of a server. With --screenshots, instead writes
pictures of the pages at three widths, light and dark."""

import functools
import http.server
import pathlib
import sys
import threading
import urllib.parse

from browser import Browser

# Question -> pages of which the search must show one first.
QUESTIONS = {
    "how do I save my random engine": ["how_to/faq.html", "how_to/optimizer-state.html"],
    "early stopping": ["how_to/best-and-evaluation.html"],
    "kill and resume": ["tutorial/05_checkpoint_and_resume.html", "how_to/resume-exactly.html", "tutorial/digits.html"],
    "early_stopping_hook": ["reference/hooks/early_stopping_hook.html", "how_to/best-and-evaluation.html"],
}
WIDTHS = (390, 820, 1440)


def mistakes_of(browser, where, allowed):
    """Returns the mistakes that the browser has recorded since the last call."""
    found = [f"{where}: {error}" for error in browser.errors]
    found += [f"{where}: requests {url}" for url in browser.requests if not url.startswith((*allowed, "data:", "blob:", "about:"))]
    browser.errors.clear()
    browser.requests.clear()
    return found


def search(browser, question):
    """Returns the links of the results of a search, the best one first."""
    browser.evaluate("document.querySelector('input.md-search__input').focus()")
    browser.send("Input.insertText", text=question)
    browser.wait_for("document.querySelector('.md-search-result__link')")
    links = "[...document.querySelectorAll('.md-search-result__item > .md-search-result__link')].map(link => link.href)"
    return [urllib.parse.urldefrag(link)[0] for link in browser.evaluate(links)]


def check_search(browser, start, allowed):
    found = []
    for question, wanted in QUESTIONS.items():
        browser.open(start + "index.html")
        results = [link.removeprefix(start).split("?")[0] for link in search(browser, question)]
        print(f"{question!r}: {', '.join(results[:3])}")
        if not results or results[0] not in wanted:
            found.append(f"search for {question!r}: finds {results[:3]} first, not one of {wanted}")
        found += mistakes_of(browser, f"search for {question!r}", allowed)
    return found


def check_pages(browser, site, start):
    found = []
    # To index all pages takes the longest time of opening a page. The checks of the search have done it.
    browser.send("Page.addScriptToEvaluateOnNewDocument",
                 source="Object.defineProperty(window, 'Worker', {value: class extends EventTarget { postMessage() {} }})")
    browser.resize(WIDTHS[0], 844)
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        if name == "404.html":
            continue
        browser.open(start + name)
        found += mistakes_of(browser, name, [start])
        width = browser.evaluate("document.scrollingElement.scrollWidth")
        if width > WIDTHS[0]:
            found.append(f"{name}: is {width} pixels wide on a screen of {WIDTHS[0]}")
    return found


def take_screenshots(browser, start, directory, names):
    for name in names:
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                browser.resize(width, 1400)
                browser.prefer(scheme)
                browser.open(start + name)
                browser.screenshot(f"{directory}/{name.replace('/', '-').removesuffix('.html')}-{width}-{scheme}.png")


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def main(arguments):
    site = pathlib.Path(arguments[0]).resolve()
    files = site.as_uri() + "/"
    browser = Browser()
    try:
        if arguments[1:2] == ["--screenshots"]:
            take_screenshots(browser, files, arguments[2], arguments[3:])
            return 0
        mistakes = check_search(browser, files, [files])
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=site))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        mistakes += check_search(browser, address, [address])
        mistakes += check_pages(browser, site, files)
    finally:
        browser.close()
    print("\n".join(mistakes) or "no page reports an error, loads anything from elsewhere, or is too wide")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
