"""The fields that pages declare, read without our parser: `python -m benchmarks.declared_fields [--pages FOLDER]`.

It draws the pages of `benchmarks.page_fields` from packages, a fixed number of each by a seed, and writes `content_sets/fields.tsv`: for
each page its generator, package and path, and what is right of its title, language, description, author and dates. Pages are read by
html5lib and times by dateutil, neither of which the product uses, in the order that docs/collections.md documents. `BY_EYE` has what a
person decided after looking at each difference: the language of pages that declare none and are not in that of their package, and values
of meta elements that no standard has.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.main_content import package_folder
from benchmarks.manuals import CACHE
from benchmarks.measure import BenchmarkFailed, Row, finish, say

VALUES = Path(__file__).with_name("content_sets") / "fields.tsv"
FIELDS = ("title", "language", "description", "author", "published", "modified")
AND = " | "
"""Between several authors."""


class Source(NamedTuple):
    """Pages of one generator: how many are drawn, from which folders of a package, and the language of those that declare none."""

    generator: str
    package: str
    pages: int
    language: str = "en"


SOURCES: tuple[Source, ...] = (
    Source("Sphinx", "sphinx-doc", 6),
    Source("Bootstrap, haproxy-dconv", "haproxy-doc", 2),
    Source("Sphinx", "python-django-doc", 6),
    Source("Sphinx", "varnish-doc", 5),
    Source("Sphinx, Furo", "python-structlog-doc", 6),
    Source("Sphinx, PyData", "python-pandas-doc", 6),
    Source("Sphinx", "python-requests-doc", 4),
    Source("Sphinx", "pelican-doc", 3),
    Source("Docutils", "docutils-doc", 12),
    Source("Doxygen", "libsfml-doc", 6),
    Source("Doxygen", "libeigen3-doc", 6),
    Source("Doxygen", "libgtkmm-3.0-doc", 5),
    Source("Doxygen", "lirc-doc", 4),
    Source("Javadoc", "libjsoup-java-doc", 6),
    Source("Javadoc", "libcommons-lang3-java-doc", 6),
    Source("Javadoc", "junit4-doc", 4),
    Source("Groovydoc", "groovy-doc", 4),
    Source("DocBook", "aptitude-doc-fr", 5, "fr"),
    Source("DocBook", "debian-faq-de", 4, "de"),
    Source("DocBook", "debian-faq", 3),
    Source("DocBook", "debian-kernel-handbook", 3),
    Source("DocBook", "debian-reference-ja", 5, "ja"),
    Source("DocBook", "libcairo2-doc", 4),
    Source("DocBook, Publican", "harden-doc", 6),
    Source("DocBook, Publican", "debian-handbook", 8),
    Source("DocBook", "gimp-help-en", 5),
    Source("AsciiDoc", "i3-wm", 4),
    Source("Asciidoctor", "weechat-doc", 10),
    Source("Asciidoctor", "wireshark-doc", 4),
    Source("Asciidoctor", "ntpsec-doc", 4),
    Source("gi-docgen", "libsoup-3.0-doc", 5),
    Source("gi-docgen", "libgtk-4-doc", 5),
    Source("gi-docgen", "libadwaita-1-doc", 5),
    Source("SiSU", "live-manual-html", 14),
    Source("Texinfo", "libgcrypt20-doc", 6),
    Source("Texinfo", "r-doc-html", 2),
    Source("Texinfo", "lilypond-doc-html", 6),
    Source("MkDocs", "mkdocs-doc", 5),
    Source("MkDocs, Material", "mkdocs-literate-nav-doc", 2),
    Source("MediaWiki", "cppreference-doc-en-html", 6),
    Source("LibreOffice's own", "libreoffice-help-en-us", 5),
    Source("mdBook and rustdoc", "rust-doc", 8),
    Source("EDoc and Erlang's own", "erlang-doc", 4),
    Source("Scribble", "racket-doc", 4),
    Source("YARD", "yard-doc", 4),
    Source("Haddock", "libghc-aeson-doc", 4),
    Source("HeVeA", "freefem-doc", 2),
    Source("TeX4ht and fpdoc", "fp-docs-3.2.2", 4),
    Source("Nim's own", "nim-doc", 3),
    Source("Tomcat's own XSLT", "tomcat10-docs", 5),
    Source("By hand", "postfix-doc", 3),
    Source("ikiwiki", "ikiwiki", 4),
    Source("ikiwiki", "git-annex", 4),
    Source("jQuery UI's own", "libjs-jquery-ui-docs", 3),
    Source("GAPDoc", "gap-doc", 2),
    Source("Slurm's own", "slurm-wlm-doc", 2),
    Source("News and portals", "newspaper4k==0.9.6", 27),
)
"""A package of the form NAME==VERSION is one of Python: that one has pages of newspapers as data of its tests."""

_SISU, _NEWS = "live-manual-html", "newspaper4k==0.9.6"
_HARDEN, _HANDBOOK, _GTKMM = "harden-doc", "debian-handbook", "libgtkmm-3.0-doc"
OR_NONE = " or none"
"""A language that a page has only in part, or in names alone: by the documentation a mixed text has none."""
BY_EYE: Mapping[tuple[str, str, str], str] = {
    # translations, many of which are in English for the most part
    (_HARDEN, "de-DE/ch01s05.html", "language"): "de",
    (_HARDEN, "fr-FR/security-update.html", "language"): "fr",
    (_HARDEN, "it-IT/ch05s09.html", "language"): "it",
    (_HARDEN, "pt-BR/ch08s04.html", "language"): "pt",
    (_HARDEN, "zh-CN/ch05s05.html", "language"): "zh",
    (_HANDBOOK, "ar-MA/sect.source-package-structure.html", "language"): "ar" + OR_NONE,
    (_HANDBOOK, "id-ID/sect.ftp-file-server.html", "language"): "id" + OR_NONE,
    (_SISU, "about-project.es.html", "language"): "es",
    (_SISU, "about-project.ro.html", "language"): "ro",
    (_SISU, "coding-style.ja.html", "language"): "ja",
    (_SISU, "customizing-contents.es.html", "language"): "es",
    (_SISU, "customizing-installer.fr.html", "language"): "fr",
    (_SISU, "customizing-package-installation.ca.html", "language"): "ca",
    (_SISU, "git-repositories.it.html", "language"): "it",
    (_SISU, "metadata.ca.html", "language"): "ca",
    (_SISU, "metadata.fr.html", "language"): "fr",
    (_SISU, "toc.es.html", "language"): "es",
    (_NEWS, "chinese_article_001.html", "language"): "zh",
    (_NEWS, "chinese_article_002.html", "language"): "zh",
    # lists of names
    (_GTKMM, "classGtk_1_1CellRendererCombo-members.html", "language"): "en" + OR_NONE,
    (_GTKMM, "classGtk_1_1FileChooserDialog-members.html", "language"): "en" + OR_NONE,
    (_GTKMM, "classGtk_1_1ProgressBar-members.html", "language"): "en" + OR_NONE,
    ("lirc-doc", "globals_func_n.html", "language"): "en" + OR_NONE,
    ("libghc-aeson-doc", "doc-index-M.html", "language"): "en" + OR_NONE,
    ("fp-docs-3.2.2", "zipper/tzipper-5.html", "language"): "",
    # names of meta elements that are no standard, but mean nothing else
    (_NEWS, "cleveland.com1.html", "author"): "National Desk",
    (_NEWS, "cleveland.com1.html", "published"): "2014-12-27T12:06:00Z",
    (_NEWS, "cleveland.com1.html", "modified"): "2014-12-27T12:10:00Z",
    (_NEWS, "japanese_article2.html", "published"): "2018-06-18T10:01:00Z",
}
"""By package, end of the path, and field: the value that is right."""


def main(arguments: list[str] | None = None) -> list[Row]:
    parser = argparse.ArgumentParser(description="Write the fields that pages declare, as html5lib reads them.")
    parser.add_argument("--pages", type=Path, default=CACHE, help="folder with a folder for each package")
    options = parser.parse_args(arguments)
    lines = []
    for source in SOURCES:
        for path, body in drawn(source, options.pages):
            values = declared(body)
            values["language"] = values["language"] or source.language
            for field in FIELDS:
                for (package, end, of_field), value in BY_EYE.items():
                    if package == source.package and path.endswith(end) and of_field == field:
                        values[field] = value
            lines.append("\t".join([source.generator, source.package, path, *(values[field] for field in FIELDS)]))
    VALUES.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [Row("page_fields", "pages drawn", str(len(lines)))]


def drawn(source: Source, cache: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the path and body of pages, drawn by a seed from all different ones of a package; links to pages are none."""
    folder = package_folder(source.package, cache)
    bodies: dict[bytes, tuple[str, bytes]] = {}
    for file in sorted(folder.rglob("*")):
        if file.suffix in (".html", ".htm", ".xhtml") and file.is_file() and not file.is_symlink():
            body = file.read_bytes()
            if re.search(rb"<(?:html|head|body)\b", body, re.IGNORECASE):
                bodies.setdefault(sha256(body).digest(), (file.relative_to(folder).as_posix(), body))
    pages = sorted(bodies.values())
    if len(pages) < source.pages:
        say(f"{source.package} has only {len(pages)} pages")
    random.Random(source.package).shuffle(pages)
    yield from sorted(pages[: source.pages])


# --- reading -------------------------------------------------------------------------------------------------------


def declared(body: bytes) -> dict[str, str]:
    """Return the fields that a page declares, in the documented order of their sources."""
    root = _library("html5lib").parse(body, namespaceHTMLElements=False)
    metas = [
        (
            (node.get("property") or node.get("name") or node.get("itemprop") or "").strip().lower(),
            _line(node.get("content") or ""),
        )
        for node in root.iter("meta")
    ]
    nodes = list(_described(root))

    def of_metas(*names: str) -> list[str]:
        return next((found for name in names if (found := [text for of_one, text in metas if of_one == name and text])), [])

    def first(*sources: Iterable[str]) -> list[str]:
        return next((found for source in sources if (found := list(source))), [])

    titles = [_line("".join(node.itertext())) for node in root.iter("title")][:1]
    headings = (_line("".join(node.itertext())) for node in root.iter() if node.tag in ("h1", "h2", "h3"))
    title = next(filter(None, titles), "") or next(filter(None, headings), "") or next(iter(of_metas("og:title")), "")
    authors = first(
        _of_nodes(nodes, "author", "creator"),
        _names(of_metas("article:author")),
        _names(of_metas("author", "authors", "dc.creator", "dcterms.creator", "dc.author", "citation_author")),
    )
    published = first(
        _times(_of_nodes(nodes, "datePublished", "dateCreated", "uploadDate")),
        _times(of_metas("article:published_time")),
        _times(of_metas("dcterms.issued", "dc.date.issued", "dcterms.created", "dc.date.created", "dc.created")),
        _times(
            of_metas("citation_publication_date", "date", "dc.date", "dcterms.date", "pubdate", "publishdate", "sailthru.date")
        ),
        _times(of_metas("datepublished", "parsely-pub-date", "publish-date", "article.published", "created")),
    )
    modified = first(
        _times(_of_nodes(nodes, "dateModified")),
        _times(of_metas("article:modified_time", "og:updated_time")),
        _times(of_metas("dcterms.modified", "dc.date.modified", "dc.modified", "last-modified", "lastmod", "datemodified")),
        _times(of_metas("article.updated", "revised", "modified")),
    )
    pragmas = [
        _line(node.get("content") or "")
        for node in root.iter("meta")
        if (node.get("http-equiv") or "").strip().lower() == "content-language"
    ]
    language = root.get("lang") or root.get("xml:lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang") or ""
    return {
        "title": title,
        "language": language.strip() or next((text for text in pragmas if text and "," not in text), ""),
        "description": next(iter(of_metas("description") or of_metas("og:description")), ""),
        "author": AND.join(dict.fromkeys(authors)),
        "published": next(iter(published), ""),
        "modified": next(iter(modified), ""),
    }


def _line(text: str) -> str:
    return " ".join(text.split())


def _names(values: Iterable[str]) -> Iterator[str]:
    """Yield those that are no addresses of profiles."""
    return (value for value in values if not re.match("https?://", value, re.IGNORECASE))


def _times(values: Iterable[str]) -> Iterator[str]:
    """Yield times as ISO 8601 in UTC, years and days as such."""
    parse = _library("dateutil.parser").parse
    for value in values:
        if re.fullmatch(r"\d{4}(-\d\d)?", value):
            yield value
            continue
        try:
            one, other = (
                parse(value, default=datetime(2001, 1, 1, tzinfo=UTC)),
                parse(value, default=datetime(2002, 2, 2, 2, 2, 2, tzinfo=UTC)),
            )
        except (ValueError, OverflowError):
            continue
        if one.date() == other.date():
            has_time = one.time() == other.time()
            yield (one.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if has_time else f"{one:%F}")


# --- JSON-LD -------------------------------------------------------------------------------------------------------

_NO_PAGE = re.compile(
    r"BreadcrumbList|.*Organization|.*Business|Person|Place|WebSite|SearchAction|ListItem|ItemList|ImageObject|VideoObject|PostalAddress"
    r"|SiteNavigationElement|WP.*"
)
_PAGE = re.compile(r".*Page")


def _described(root: Any) -> Iterator[dict[str, Any]]:
    """Yield what JSON-LD describes: articles and the like, then the page as such."""
    found: list[dict[str, Any]] = []
    for script in root.iter("script"):
        if (script.get("type") or "").strip().lower() == "application/ld+json":
            try:
                found += _nodes(json.loads("".join(script.itertext()), strict=False))
            except ValueError:
                continue
    by_id = {node["@id"]: node for node in found if isinstance(node.get("@id"), str) and len(node) > 1}
    for is_page in (False, True):
        for node in found:
            types = node.get("@type") or []
            types = [types] if isinstance(types, str) else types
            if types and not any(map(_NO_PAGE.fullmatch, types)) and all(map(_PAGE.fullmatch, types)) == is_page:
                yield {"by_id": by_id} | node


def _nodes(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [node for one in value for node in _nodes(one)]
    if not isinstance(value, dict):
        return []
    return [value, *(node for name in ("@graph", "mainEntity", "mainEntityOfPage") for node in _nodes(value.get(name)))]


def _of_nodes(nodes: Sequence[Mapping[str, Any]], *names: str) -> list[str]:
    """Return the texts of the first property that a node has, of the first node that has one."""
    for node in nodes:
        for name in names:
            values = node.get(name) or []
            texts = []
            for value in values if isinstance(values, list) else [values]:
                one = node["by_id"].get(value.get("@id"), value).get("name") if isinstance(value, dict) else value
                texts += [_line(one)] if isinstance(one, str) and one.strip() else []
            if texts:
                return texts
    return []


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        raise BenchmarkFailed("it needs html5lib and python-dateutil") from missing


if __name__ == "__main__":
    sys.exit(finish(main))
