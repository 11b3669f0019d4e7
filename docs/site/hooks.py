# SPDX-License-Identifier: Apache-2.0
"""What MkDocs does differently here: pages from the whole tree, navigation from their lists, links between pages and the reference.

A page keeps its path in the repository as its source path, so that its relative links mean the same as on a Git host. A header has the
page HEADER.md, another file to which a page links has the page FILE.md, which shows it, and a folder has a page that lists its files."""

import html
import pathlib
import posixpath
import re
import sys

from mkdocs.structure.files import File

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from reference import Reference, purpose_of  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".cppm": "cpp", ".py": "python", ".sh": "bash", ".cmake": "cmake", ".yml": "yaml", ".proto": "protobuf", ".json": "json"}
# A page of a section that explains a task answers most searches better than the reference or the history.
BOOST = {"docs/tutorial": 2, "docs/how_to": 2, "docs/how_to/options.md": 0.5, "docs/decisions": 0.5, "CHANGELOG.md": 0.2, "docs/design/contract-coverage.md": 0.2}

reference = None
pages = {}  # path in the repository, of a page or of a file or folder that has a page -> source path of that page
titles = {}  # source path -> title


def on_config(config):
    version = re.search(r"project\(stepwell VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    config.site_name = f"stepwell {version}"
    config.copyright = f"stepwell {version}, Apache-2.0"
    return config


def on_files(files, config):
    global reference
    reference = Reference(ROOT, ROOT / "build/site-xml/xml")
    prose = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    prose = {path.relative_to(ROOT).as_posix(): path.read_text() for path in prose}
    for path, text in prose.items():
        titles[path] = title_of(text)
        pages[path] = path
        add(files, config, path, destination(path), None)
    find_uses(prose)
    for header in reference.headers:
        path = f"src/{header}"
        pages[path] = f"{path}.md"
        titles[pages[path]] = posixpath.basename(path)
        add(files, config, pages[path], f"reference/{header.removeprefix('stepwell/').removesuffix('.hpp')}.html", reference.page(header))
    for path, text in prose.items():
        for target, _ in links_of(text):
            add_target(files, config, posixpath.normpath(posixpath.join(posixpath.dirname(path), target)))
    config.nav = navigation(prose)
    return files


def add(files, config, path, where, content):
    if content is None:
        files.append(File(path, src_dir=str(ROOT), dest_dir=config.site_dir, use_directory_urls=False, dest_uri=where))
    else:
        file = File.generated(config, path, content=content)
        file.dest_uri = where
        files.append(file)


def destination(path):
    if path == "docs/reference/main.md":
        return "reference/index.html"
    return re.sub(r"README\.md$", "index.md", path.removeprefix("docs/"))[: -len(".md")] + ".html"


def title_of(text):
    return re.search(r"^# (.*)", text, re.M)[1].replace("`", "")


def outside_fences(text, change):
    """Applies `change` to the text outside blocks of code."""
    return "".join(part if part.startswith("```") else change(part) for part in re.split(r"(^```.*?^```$)", text, flags=re.M | re.S))


LINK = re.compile(r"\]\((?!@ref)([^)\s#]+)(#[^)\s]*)?\)")


def links_of(text):
    found = []
    outside_fences(text, lambda part: found.extend(LINK.findall(part)) or part)
    return [(target, anchor) for target, anchor in found if "://" not in target and not target.startswith("mailto:")]


def add_target(files, config, path):
    """Adds a page for a file or a folder of the repository."""
    here = ROOT / path
    if path in pages or not here.exists() or path.startswith(".."):
        return
    if here.is_dir():
        inside = [p for p in sorted(here.iterdir()) if p.name not in ("build", "run") and not p.name.startswith(".")]
        pages[path] = f"{path}/index.md"
        names = "\n".join(f"* [`{p.name}{'/' if p.is_dir() else ''}`]({p.name})" for p in inside if p.is_dir() or is_text(p))
        content = f"# `{path}`\n\nA folder of the repository.\n\n{names}\n"
        add(files, config, pages[path], f"source/{path}/index.html", unsearched(content))
        for p in inside:
            add_target(files, config, f"{path}/{p.name}")
    elif is_text(here):
        pages[path] = f"{path}.md"
        language = "cmake" if here.name == "CMakeLists.txt" else LANGUAGES.get(here.suffix, "text" if here.suffix else "bash")
        language = "text" if here.name == "LICENSE" else language
        content = f"# `{path}`\n\nA file of the repository.\n\n````{language}\n{here.read_text()}\n````\n"
        add(files, config, pages[path], f"source/{path}.html", unsearched(content))
    else:
        pages[path] = path
        add(files, config, path, path.removeprefix("docs/"), None)


def is_text(path):
    return path.suffix in (*LANGUAGES, ".txt", ".in", ".toml", "") and b"\0" not in path.read_bytes()[:4096]


def unsearched(content):
    return f"---\nsearch: {{exclude: true}}\n---\n{content}"


def navigation(prose):
    """Returns the navigation in the order in which a person reads."""
    layers = [f for f in reference.folders if f]
    adapters = [f for f in layers if f in ("eigen", "xtensor", "torch", "mpi", "tensorflow")]
    folders = [f for f in reversed(layers) if f not in adapters] + adapters
    headers = [{folder: [f"src/{h}.md" for h in reference.folders[folder]]} for folder in folders]
    umbrella = [f"src/{h}.md" for h in reversed(reference.folders[""])]
    return [
        {"Start": "README.md"},
        *({title: section(prose, f"docs/{folder}")} for title, folder in (("Tutorial", "tutorial"), ("How to", "how_to"))),
        {"Reference": ["docs/reference/main.md", *umbrella, *headers]},
        *({title: section(prose, f"docs/{folder}")} for title, folder in (("Formats", "formats"), ("Design", "design"), ("Decisions", "decisions"))),
        {"About": ["docs/policies.md", "docs/benchmarks.md", "CHANGELOG.md", "CONTRIBUTING.md"]},
    ]


def section(prose, folder):
    """Returns the pages of a folder in the order in which its README links to them, below the README's headings if it has any."""
    entries = [f"{folder}/README.md"]
    seen = set()
    for heading, body in re.findall(r"(?:^## (.*)\n)?((?:(?!^## ).*\n)+)", prose[f"{folder}/README.md"], re.M):
        listed = []
        for target, _ in links_of(body):
            path = posixpath.normpath(f"{folder}/{target}")
            if "/" not in target and path in prose and path not in seen:
                seen.add(path)
                listed.append(path)
        if listed:
            entries += [{heading: listed}] if heading else listed
    return entries


def find_uses(prose):
    """Finds the pages that name each entity of the reference, the most helpful ones first."""
    order = ["docs/how_to", "docs/tutorial", "README.md", "docs/formats", "docs/design", "docs/decisions"]
    counts = {}  # identifier -> {path: count}
    for path, text in prose.items():
        if path.startswith(tuple(order)) and path not in ("docs/how_to/options.md", "docs/design/contract-coverage.md"):
            for word in re.findall(r"\b(?:sw::)?(?:\w+::)*\w+\b", text):
                counts.setdefault(word.removeprefix("sw::") if "_" in word else word, {}).setdefault(path, 0)
                counts[word.removeprefix("sw::") if "_" in word else word][path] += 1
    for entity in reference.entities.values():
        found = {}
        for name in {entity.name, entity.name.split("::")[-1]}:
            if len(reference.by_last_name[entity.name.split("::")[-1]]) > 1 and "::" not in name and "::" in entity.name:
                continue
            for path, count in counts.get(name if "_" in name else f"sw::{name}", {}).items():
                found[path] = found.get(path, 0) + count
        rank = lambda path: (next(i for i, o in enumerate(order) if path.startswith(o)) > 2, -found[path], path)  # noqa: E731
        reference.used_by[entity.name] = [(path, titles[path]) for path in sorted(found, key=rank)[:5]]


def on_page_markdown(markdown, page, config, files):
    path = page.file.src_uri
    boosts = [boost for prefix, boost in BOOST.items() if path.startswith(prefix)]
    if boosts and "search" not in page.meta:
        page.meta["search"] = {"boost": boosts[-1]}
    if path == "docs/reference/main.md":
        markdown += header_list()
    here = posixpath.dirname(path)

    def moved(match):
        target = posixpath.normpath(posixpath.join(here, match[1]))
        if target not in pages or "://" in match[1]:
            return match[0]
        return f"]({posixpath.relpath(pages[target], here or '.')}{match[2] or ''})"

    def named(match):
        found = reference.find(match[1])
        if found is None:
            raise ValueError(f"{path}: @ref {match[1]} is not in the reference")
        return f"]({posixpath.relpath(f'src/{found[0]}.md', here or '.')}#{found[1]})"

    return outside_fences(markdown, lambda part: LINK.sub(moved, re.sub(r"\]\(@ref ([\w:]+)\)", named, part)))


def header_list():
    """Returns the end of the main page of the reference: all headers, by folder."""
    parts = ["\n## All headers\n\nMost programs include `<stepwell/stepwell.hpp>`, or `<stepwell/async.hpp>`. The folders are listed from the lowest layer to the highest.\n"]
    for folder, headers in reference.folders.items():
        if folder:
            rows = "".join(f"| [`{h.split('/')[-1]}`](../../src/{h}) | {purpose(h)} |\n" for h in headers)
            parts.append(f"### {folder}\n\n| header | content |\n|---|---|\n{rows}")
    return "\n".join(parts)


def purpose(header):
    return re.split(r"(?<=\.)\s", purpose_of(ROOT, header).replace("\n", " "))[0].replace("|", "\\|")


def on_page_content(content, page, config, files):
    """Links the names of the library in code to the reference."""
    path = page.file.src_uri

    def link(label, name):
        found = reference.find(name)
        if found is None:
            return None
        header, anchor = found
        target = files.get_file_from_path(f"src/{header}.md")
        return f'<a href="{html.escape(target.url_relative_to(page.file))}#{anchor}">{label}</a>'

    def inline(match):
        if match[1]:  # a link or a block of code
            return match[0]
        return link(match[0], html.unescape(re.sub(r"<.*?>", "", match[2]))) or match[0]

    content = re.sub(r"(<a [^>]*>.*?</a>|<pre.*?</pre>|<h\d.*?</h\d>)|<code>(.*?)</code>", inline, content, flags=re.S)

    part = r'<span class="\w+">(?:[A-Za-z]\w*)</span>'
    scope = r'<span class="o">::</span>'
    qualified = re.compile(rf"(?:{part}{scope})*{part}")

    def in_code(text, declared):
        name = re.sub(r"<.*?>", "", text)
        if name.startswith(("sw::", "stepwell::")):
            return link(text, name) or text
        if path.startswith("src/stepwell/") and name != declared and reference.is_type(name):
            return link(text, name) or text
        return text

    def in_block(block, declared):
        return qualified.sub(lambda m: in_code(m[0], declared), block)

    parts = re.split(r'(<h2 id="[^"]*"|<pre.*?</pre>)', content, flags=re.S)
    declared = ""  # on a page of the reference: the name that the current section declares
    for i, text in enumerate(parts):
        if text.startswith("<h2 "):
            declared = text.split('"')[1]
        elif text.startswith("<pre"):
            parts[i] = in_block(text, declared)
    # The search finds no text in blocks of code: one of them would fill the list of results.
    return "".join(parts).replace("<pre>", "<pre data-search-exclude>")
