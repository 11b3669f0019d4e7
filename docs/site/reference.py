# SPDX-License-Identifier: Apache-2.0
"""The pages of the reference: one Markdown page for each public header, from Doxygen's XML."""

import dataclasses
import html
import pathlib
import re
import xml.etree.ElementTree as xml


@dataclasses.dataclass
class Entity:
    """A name that a header declares: a type, a concept, or all overloads of a function."""

    name: str  # without `stepwell::`
    header: str  # such as stepwell/hooks/stop_hooks.hpp
    declarations: list  # elements of the XML
    line: int

    @property
    def anchor(self):
        return anchor_of(self.name)


def anchor_of(name):
    return re.sub(r"\W+", "-", name).strip("-")


def public_headers(root):
    """Returns the public headers by folder: the lowest layer first, then the adapters, then the headers that include all others."""
    layers = [line.split() for line in (root / "tests/hygiene/layers.txt").read_text().splitlines() if line and line[0] != "#"]
    order = {folder: int(number) for number, *folders in layers for folder in folders}
    folders = {}
    for path in sorted((root / "src/stepwell").rglob("*.hpp")):
        header = path.relative_to(root / "src").as_posix()
        if "/detail/" not in header:
            folders.setdefault("/".join(header.split("/")[1:-1]), []).append(header)
    return dict(sorted(folders.items(), key=lambda each: order.get(each[0].split("/")[0], len(order))))


def purpose_of(root, header):
    """Returns the comment at the top of the header."""
    lines = []
    for line in (root / "src" / header).read_text().splitlines():
        if not line.startswith("//"):
            break
        if "SPDX" not in line and not line.startswith("// @"):
            lines.append(line[2:].removeprefix(" "))
    return "\n".join(lines).strip()


class Reference:
    """All public names, found by name or by Doxygen's identifiers."""

    def __init__(self, root, directory):
        self.root = root
        self.folders = public_headers(root)
        self.headers = [header for folder in self.folders.values() for header in folder]
        self.compounds = {}  # by identifier
        self.entities = {}  # by name
        self.members = {}  # name of a member, with that of its type -> Entity
        self.by_id = {}  # identifier -> (Entity, anchor)
        self.used_by = {}  # name of an entity -> paths of pages
        for path in sorted(pathlib.Path(directory).glob("*.xml")):
            for compound in xml.parse(path).getroot().iter("compounddef"):
                self.compounds[compound.get("id")] = compound
        for compound in self.compounds.values():
            self._add_compound(compound)
        self.by_last_name = {}
        for entity in self.entities.values():
            self.by_last_name.setdefault(entity.name.split("::")[-1], []).append(entity)

    def _add_compound(self, compound):
        kind = compound.get("kind")
        if kind in ("class", "struct", "union", "concept"):
            if compound.get("prot") in ("private", "protected"):
                return
            entity = self._add(compound.findtext("compoundname"), compound)
            if entity is not None:
                self.by_id[compound.get("id")] = (entity, entity.anchor)
                for member in self.public_members(compound):
                    name = f"{entity.name}::{member.findtext('name')}"
                    self.members.setdefault(name, entity)
                    self.by_id[member.get("id")] = (entity, anchor_of(name))
                    for value in member.iter("enumvalue"):
                        self.by_id[value.get("id")] = (entity, anchor_of(name))
        elif kind in ("namespace", "file"):
            for member in compound.iter("memberdef"):
                if kind == "namespace" or member.get("kind") == "define":
                    entity = self._add(member.findtext("qualifiedname") or member.findtext("name"), member)
                    if entity is not None:
                        self.by_id[member.get("id")] = (entity, entity.anchor)
                        for value in member.iter("enumvalue"):
                            self.members[f"{entity.name}::{value.findtext('name')}"] = entity
                            self.by_id[value.get("id")] = (entity, entity.anchor)

    def _add(self, name, declaration):
        place = declaration.find("location")
        header = place.get("declfile") or place.get("file")
        # An alias of a namespace, and names whose declarations in the headers are only an implementation, are no part of the interface.
        if header not in self.headers or "detail::" in name or not (name.startswith("stepwell::") or declaration.get("kind") == "define"):
            return None
        name = re.sub(r"\s*([<>])\s*", r"\1", name.removeprefix("stepwell::"))
        key = name if name not in self.entities or self.entities[name].header == header else f"{name} ({header})"
        line = int(place.get("declline") or place.get("line"))
        entity = self.entities.setdefault(key, Entity(name, header, [], line))
        entity.declarations.append(declaration)
        return entity

    def public_members(self, compound):
        """Returns the public members of a type, with those of its public base classes in `detail`, in their order."""
        found = []
        for base in compound.findall("basecompoundref"):
            if "detail::" in (base.text or "") and base.get("prot") == "public" and base.get("refid") in self.compounds:
                found += [m for m in self.public_members(self.compounds[base.get("refid")]) if m.get("kind") != "function" or not is_special(m)]
        own = [m for section in compound.findall("sectiondef") if section.get("kind").startswith("public") for m in section.findall("memberdef")]
        own += [m for m in compound.iter("memberdef") if m.get("kind") == "friend"]
        return found + sorted((m for m in own if is_shown(m)), key=lambda m: int(m.find("location").get("line")))

    def is_type(self, name):
        """True for the name of a type or of a concept."""
        same = self.by_last_name.get(name.split("::")[-1], [])
        return any(e.declarations[0].get("kind") in ("class", "struct", "union", "concept", "typedef", "enum") for e in same)

    def find(self, text):
        """Returns (header, anchor) of the name that a piece of code such as `sw::stop_at_step(1000)` begins with, or None.

        A single word without `::` and `_`, such as `close`, is a name of many things, and is not looked for."""
        match = re.fullmatch(r"((?:[A-Za-z_]\w*::)*[A-Za-z_]\w*)(?:<.*>)?(?:\(.*\)|\{.*\})?", text.strip(), re.S)
        if not match or not ("_" in match[1] or "::" in match[1]):
            return None
        name = re.sub(r"^(sw|stepwell)::", "", match[1])
        name = re.sub(r"^tf::", "tensorflow::", name)
        if name in self.entities:
            return self.entities[name].header, self.entities[name].anchor
        if name in self.members:
            return self.members[name].header, self._member_anchor(name)
        same = [e for e in self.by_last_name.get(name, []) if "::" not in name]
        return (same[0].header, same[0].anchor) if len(same) == 1 else None

    def _member_anchor(self, name):
        entity = self.members[name]
        return entity.anchor if entity.declarations[0].get("kind") == "enum" else anchor_of(name)

    def page(self, header):
        """Returns the page of a header as Markdown. Links to other headers are relative paths of their pages."""
        return Page(self, header).text()


def is_documented(element):
    return bool(text_of(element.find("briefdescription")).strip() or text_of(element.find("detaileddescription")).strip())


def is_shown(member):
    """False for members without a comment that say nothing: default constructors, deleted functions, friends."""
    if is_documented(member):
        return True
    says_nothing = re.search(r"=\s*(default|delete)|\(\)( noexcept)?$", member.findtext("argsstring") or "")
    return member.get("kind") != "friend" and not (is_special(member) and says_nothing)


def is_special(member):
    """True for constructors, destructors and assignments."""
    name = member.findtext("name")
    return not member.findtext("type") or name.startswith("~") or name == "operator="


def text_of(element):
    return "".join(element.itertext()) if element is not None else ""


def code(text):
    """Returns text as an inline code span."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}" if fence == "`" else f"{fence} {text} {fence}"


def escaped(text):
    return re.sub(r"([\\`*_\[\]{}#|~])", r"\\\1", re.sub(r"\s+", " ", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def tidy(text):
    """Removes the blanks that Doxygen puts into types, and the names that it has found."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"< (?!=)", "<", text)
    text = re.sub(r" >(?!=)", ">", text)
    text = re.sub(r" ([&*]+)(?=[\w.])(?!&& )", r"\1 ", text)
    return re.sub(r" ([&*]+)(?=[,)>]|$)", r"\1", text)


class Page:
    def __init__(self, reference, header):
        self.reference = reference
        self.header = header
        self.source = (reference.root / "src" / header).read_text().splitlines()
        self.anchors = set()

    def text(self):
        entities = sorted((e for e in self.reference.entities.values() if e.header == self.header), key=lambda e: (e.line, e.name))
        parts = [f"# {self.header.split('/')[-1].replace('_', chr(92) + '_')}", fenced(f"#include <{self.header}>")]
        component = self.header.split("/")[1]
        if component in ("eigen", "mpi", "tensorflow", "torch", "xtensor"):
            parts.append(f"Component: `stepwell::{component}`")
        parts.append(purpose_of(self.reference.root, self.header))
        for entity in entities:
            parts += self.entity(entity)
        if not entities:
            included = [line for line in self.source if line.startswith("#include \"stepwell/")]
            parts.append("This header includes other headers:")
            parts.append("\n".join(f"* {self.link(code(name), name)}" for name in re.findall(r'"(.*?)"', "\n".join(included))))
        return "\n\n".join(part for part in parts if part) + "\n"

    def link(self, label, header, anchor=""):
        if header not in self.reference.headers:
            return label
        if header == self.header:
            return f"[{label}](#{anchor})" if anchor else label
        up = "../" * (self.header.count("/"))
        return f"[{label}]({up}{header}.md{'#' + anchor if anchor else ''})"

    def entity(self, entity):
        parts = [f"## {escaped(entity.name)} {{ #{entity.anchor} }}"]
        self.anchors.add(entity.anchor)
        for declaration in entity.declarations:
            kind = declaration.get("kind")
            if kind in ("class", "struct", "union"):
                parts += [fenced(self.type_declaration(declaration)), *self.description(declaration), *self.members(entity, declaration)]
            elif kind == "concept":
                parts += [fenced(self.from_source(declaration)), *self.description(declaration)]
            else:
                parts += [fenced(self.signature(declaration)), *self.description(declaration), *self.enum_values(declaration)]
        pages = self.reference.used_by.get(entity.name, [])
        if pages:
            up = "../" * (self.header.count("/") + 1)
            parts.append("Pages: " + ", ".join(f"[{escaped(title)}]({up}{path})" for path, title in pages) + "\n{ .pages }")
        return parts

    def members(self, entity, compound):
        """Returns the members of a type: each documented member with its description, the other ones together."""
        parts, plain = [], []

        def flush():
            if plain:
                body = "\n".join(plain_text for plain_text, _ in plain)
                ids = "".join(f'<a id="{i}"></a>' for _, i in plain if i)
                parts.append(f'<div class="member" markdown="block">\n\n{ids}\n\n{fenced(body)}\n\n</div>')
                plain.clear()

        for member in self.reference.public_members(compound):
            anchor = anchor_of(f"{entity.name}::{member.findtext('name')}")
            anchor = "" if anchor in self.anchors else anchor
            self.anchors.add(anchor)
            if not is_documented(member) and member.get("kind") != "enum":
                plain.append((self.signature(member), anchor))
                continue
            flush()
            inside = "\n\n".join([fenced(self.signature(member)), *self.description(member), *self.enum_values(member)])
            where = f' id="{anchor}"' if anchor else ""
            parts.append(f'<div class="member"{where} markdown="block">\n\n{inside}\n\n</div>')
        flush()
        return parts

    def enum_values(self, member):
        values = [v for v in member.findall("enumvalue") if is_documented(v)]
        if not values:
            return []
        return ["\n".join(f"* {code(v.findtext('name'))}: {' '.join(self.description(v))}" for v in values)]

    # declarations

    def template_line(self, element):
        parameters = element.find("templateparamlist")
        if parameters is None:
            return ""
        shown = []
        for parameter in parameters.findall("param"):
            text = tidy(text_of(parameter.find("type")))
            name = parameter.findtext("declname") or ""
            text += f" {name}" if name and not re.search(rf"\b{name}$", text) else ""
            default = parameter.find("defval")
            shown.append(text + (f" = {tidy(text_of(default))}" if default is not None else ""))
        requires = element.find("requiresclause")
        text = tidy(text_of(requires)) if requires is not None else ""
        return f"template<{', '.join(shown)}>\n" + (f"  requires {text}\n" if text else "")

    def type_declaration(self, compound):
        name = re.sub(r"\s*([<>])\s*", r"\1", compound.findtext("compoundname").split("stepwell::", 1)[-1])
        bases = [b for b in compound.findall("basecompoundref") if b.get("prot") == "public" and "detail::" not in (b.text or "")]
        kind = compound.get("kind")
        after = " : " + ", ".join(("public " if kind == "class" else "") + tidy(b.text).removeprefix("stepwell::") for b in bases) if bases else ""
        return f"{self.template_line(compound)}{kind} {name.split('::')[-1] if '<' not in name else name}{after}"

    def signature(self, member):
        kind, name = member.get("kind"), member.findtext("name")
        type_text = tidy(text_of(member.find("type")))
        start = tidy(text_of(member.find("initializer"))) if member.find("initializer") is not None else ""
        if kind == "define":
            parameters = [p.findtext("defname") or "" for p in member.findall("param")]
            return f"#define {name}" + (f"({', '.join(parameters)})" if parameters else "")
        if kind == "typedef":
            return f"{self.template_line(member)}using {name} = {type_text}"
        if kind == "enum":
            values = ", ".join(v.findtext("name") + (" " + tidy(text_of(v.find("initializer"))) if v.find("initializer") is not None else "")
                               for v in member.findall("enumvalue"))
            return f"enum {'class ' if member.get('strong') == 'yes' else ''}{name} {{ {values} }}"
        if kind == "variable":
            long = len(start) > 100 or "\n" in start
            static = "static " if member.get("static") == "yes" else ""
            return f"{self.template_line(member)}{static}{type_text} {name}{tidy(member.findtext('argsstring') or '')}{' = ...' if long else ' ' + start if start else ''}"
        arguments = tidy(member.findtext("argsstring") or "")
        static = "static " if member.get("static") == "yes" and kind != "friend" else ""
        explicit = "explicit " if member.get("explicit") == "yes" else ""
        head = f"{static}{explicit}{type_text} {name}".replace("  ", " ").strip()
        line = head + arguments
        parameters = member.findall("param")
        if len(line) > 100 and len(parameters) > 1:
            shown = []
            for p in parameters:
                text = tidy(text_of(p.find("type")) + " " + (p.findtext("declname") or ""))
                shown.append(text + (f" = {tidy(text_of(p.find('defval')))}" if p.find("defval") is not None else ""))
            after = arguments[arguments.rindex(")"):]
            line = f"{head}(\n    " + ",\n    ".join(shown) + after
        return self.template_line(member) + line

    def from_source(self, concept):
        """Returns the definition of a concept as the header has it."""
        begin = int(concept.find("location").get("line")) - 1
        end = begin
        while end < len(self.source) - 1 and not self.source[end].rstrip().endswith(";") or self.depth(begin, end):
            end += 1
        while begin > 0 and not self.source[begin].startswith("template"):
            begin -= 1
        return "\n".join(self.source[begin:end + 1])

    def depth(self, begin, end):
        text = "\n".join(self.source[begin:end + 1])
        return text.count("{") - text.count("}")

    # descriptions

    def description(self, element):
        brief, rest = ([block for para in element.findall(f"{part}/para") for block in self.blocks(para)]
                       for part in ("briefdescription", "detaileddescription"))
        if brief and rest and not rest[0].startswith(("*", "```", "1. ", "|")):  # Doxygen has cut off the first sentence
            return [*brief[:-1], f"{brief[-1]} {rest[0]}", *rest[1:]]
        return brief + rest

    def blocks(self, para):
        """Returns the blocks of Markdown in a paragraph of Doxygen, which may contain lists and sections."""
        done, line = [], self.inline_text(para.text)

        def flush():
            nonlocal line
            if line.strip():
                done.append(line.strip())
            line = ""

        for child in para:
            if child.tag in ("simplesect", "itemizedlist", "orderedlist", "programlisting", "verbatim", "table"):
                flush()
                done += getattr(self, child.tag)(child)
            else:
                line += self.inline(child)
            line += self.inline_text(child.tail)
        flush()
        return done

    def simplesect(self, section):
        paragraphs = [block for para in section.findall("para") for block in self.blocks(para)]
        kind = section.get("kind")
        title = section.findtext("title") or {"pre": "Precondition", "return": "Returns", "see": "See", "note": "Note", "warning": "Warning"}.get(kind, kind)
        if kind == "see":
            paragraphs = [self.with_rules(p) for p in paragraphs]
        if paragraphs and not paragraphs[0].startswith(("*", "```")):
            paragraphs[0] = f"**{title}:** {paragraphs[0]}"
        else:
            paragraphs.insert(0, f"**{title}:**")
        return paragraphs

    def with_rules(self, text):
        """Links the numbers of decisions, and the word `contract` to the list of its rules."""
        up = "../" * (self.header.count("/") + 1)

        def decision(match):
            found = sorted((self.reference.root / "docs/decisions").glob(f"d-{int(match[1]):02}-*.md"))
            return f"[{match[0]}]({up}docs/decisions/{found[0].name})" if found else match[0]

        text = re.sub(r"\bD-(\d+)\b", decision, text)
        return re.sub(r"\bcontract\b", f"[contract]({up}docs/design/contract-coverage.md)", text, count=1)

    def itemizedlist(self, items, mark="* "):
        lines = []
        for item in items.findall("listitem"):
            blocks = [block for para in item.findall("para") for block in self.blocks(para)]
            lines.append(mark + "\n\n    ".join(block.replace("\n", "\n    ") for block in blocks))
        return ["\n".join(lines)]

    def orderedlist(self, items):
        return self.itemizedlist(items, "1. ")

    def programlisting(self, listing):
        lines = []
        for line in listing.findall("codeline"):
            for space in line.iter("sp"):
                space.text = " "
            lines.append(text_of(line))
        return [fenced("\n".join(lines))]

    def verbatim(self, element):
        return [fenced(element.text.strip("\n"), "text")]

    def table(self, element):
        rows = [[" ".join(b for para in entry.findall("para") for b in self.blocks(para)) for entry in row.findall("entry")] for row in element.findall("row")]
        rows.insert(1, ["---"] * len(rows[0]))
        return ["\n".join("| " + " | ".join(row) + " |" for row in rows)]

    def inline_text(self, text):
        return escaped(text or "")

    def inline(self, element):
        if element.tag == "computeroutput":
            text = re.sub(r"\s+", " ", text_of(element))
            only = element.find("ref")
            if only is not None and text_of(only) == text:
                return self.reference_link(code(text), only)
            return code(text)
        inside = self.inline_text(element.text) + "".join(self.inline(child) + self.inline_text(child.tail) for child in element)
        if element.tag == "ref":
            return self.reference_link(inside, element)
        if element.tag in ("bold", "emphasis"):
            mark = "**" if element.tag == "bold" else "*"
            return f"{mark}{inside}{mark}"
        if element.tag == "ulink":
            return f"[{inside}]({html.escape(element.get('url'))})"
        return {"sp": " ", "linebreak": "  \n", "ndash": "–", "mdash": "—"}.get(element.tag, inside)

    def reference_link(self, label, element):
        if element.get("refid") not in self.reference.by_id:
            return label
        entity, anchor = self.reference.by_id[element.get("refid")]
        return self.link(label, entity.header, anchor)


def fenced(text, language="cpp"):
    return f"```{language}\n{text}\n```"
