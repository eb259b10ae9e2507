"""What is fuzzed: for each target a function that does with any bytes what a crawl or a command does with them.

The exceptions that a function of ours documents are caught here, as its callers do. Any other one is a finding. Where a target needs
more than one text, the first line of the input is the first of them.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from crawlspace.admin.pending.lines import PendingFileError, checked, read_lines
from crawlspace.clock import FakeClock
from crawlspace.config.extraction import ExtractionScope, parse_extraction_rules
from crawlspace.config.files import read_rules, read_start_urls
from crawlspace.content.boilerplate import blocks_in
from crawlspace.content.charset import charset_parameter
from crawlspace.content.documents.contents import FileLimits
from crawlspace.content.documents.page import page_of
from crawlspace.content.documents.readers import read_file
from crawlspace.content.extraction import RuledPage, extracted
from crawlspace.content.extraction_rules import NO_RULES, ExtractionRules, FieldRule, PartRule, TextRule
from crawlspace.content.fingerprint import checksum
from crawlspace.content.headers import read_headers
from crawlspace.content.html import extract
from crawlspace.content.links import NO_OTHERS, LinkAttributes
from crawlspace.content.mime import sniff
from crawlspace.content.sitemaps import MAX_HREF, SitemapKind, SitemapLimits, is_sitemap, read_sitemap
from crawlspace.content.text import extract_text_document
from crawlspace.content.tree import page_tree
from crawlspace.document import STANDARD_FIELDS, essence, values_of
from crawlspace.errors import ConfigError, RuleFileError
from crawlspace.frontier.robots import Robots, RobotsVerdict, product_token
from crawlspace.lint.crawl_rules import lint_rules
from crawlspace.lint.expressions import lint_expressions
from crawlspace.lint.rules_xml import lint_action_rules, lint_values
from crawlspace.rules.limits import DEFAULT_MAX_URL_LENGTH, Limits, extension, path_depth, repeats_segments
from crawlspace.rules.patterns import NO_MATCH, Budget, PatternIndex
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.model import RegexSyntax
from crawlspace.rules.xml.parser import parse_rules_xml
from crawlspace.runtime.http.retry_after import retry_after_s
from crawlspace.state.views import RobotsEntry
from crawlspace.urls import MalformedUrl, document_id, join, parse

PAGE = "http://www.example.com/docs/index.html?page=2"
URLS = tuple(
    map(
        parse,
        (
            PAGE,
            "https://Intranet.example:8443/a/b/c/Report.PDF;v=1?id=7&x=%C3%A4",
            "http://[2001:db8::1]/%7Euser/",
            "http://10.1.2.3/",
            f"http://a.example/{'x/' * 500}",
        ),
    )
)
"""What rules are asked about."""


OTHERS = LinkAttributes([("*", "data-url"), ("a", "class"), ("script", "src")])
"""Attributes that hold links, besides those of HTML."""
SMALL = FileLimits(max_text=100_000, max_inflated_bytes=1 << 20, max_members=1_000, max_pages=100)
"""What may be read of a file of so few bytes."""


class Target(NamedTuple):
    run: Callable[[bytes], object]
    words: tuple[str, ...] = ()
    """What means something in such an input; the fuzzer puts them together."""


def crawl_rules(data: bytes) -> None:
    """Read a crawl.rules, check it, and decide by it."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "crawl.rules").write_bytes(data)
        try:
            rules, _ = read_rules(Path(folder))
        except ConfigError as error:
            str(error)
            return
    for finding in lint_rules(rules, Limits()):
        str(finding)
    space = CrawlSpace(rules, Limits(), [])
    for url in URLS:
        space.decide_url(url)
        space.at_connect(url.host, url.port, "10.1.2.3")


def rules_xml(data: bytes) -> None:
    """Read a rules.xml in both readings of its values, check it, and ask it."""
    for syntax in RegexSyntax:
        try:
            rules = parse_rules_xml(data, file="rules.xml", syntax=syntax)
        except RuleFileError as error:
            str(error)
            continue
        for finding in [*lint_action_rules(rules), *lint_values(rules), *lint_expressions(rules)]:
            str(finding)
        actions = CompiledActions(rules, accept=True, index=True, follow=True)
        for url in URLS:
            actions.evaluate(url)


def extract_toml(data: bytes) -> None:
    """Read extraction rules."""
    try:
        rules = parse_extraction_rules(data.decode("utf-8", "replace"), file="extract.toml")
    except RuleFileError as error:
        str(error)
        return
    ExtractionScope(rules).of(PAGE)


def extraction(data: bytes) -> None:
    """Take fields, text, Markdown and parts from a page, without blocks of it."""
    html = data.decode("utf-8", "replace")
    blocks = {block.number for block in list(blocks_in(page_tree(html)))[::2]}
    page = RuledPage(html, url=PAGE, headers=[("X-Team", "sales")], boilerplate=blocks)
    found = extracted(EXTRACTION, page, markdown=True, part_chars=300)
    assert all(len(value) <= 10_000 for value in found.fields.values())
    sections = extracted(NO_RULES, RuledPage(html, url=PAGE), is_main=True, part_chars=300).parts
    for parts in (found.parts, sections):
        assert len({part.key for part in parts}) == len(parts)


EXTRACTION = ExtractionRules(
    (
        FieldRule("a", "css", "p", type="number"),
        FieldRule("b", "css", "p > b::text"),
        FieldRule("c", "xpath", "//a[contains(@href, 'x')]", type="url"),
        FieldRule("d", "jsonld", "offers.price", type="number"),
        FieldRule("e", "meta", "author", type="date"),
        FieldRule("f", "css", "*", type="bool"),
    ),
    (TextRule(("p",), ("b",)), TextRule(drop=("nav",))),
    (PartRule("li", "@id", "b"), PartRule("td", "a")),
)


def html(data: bytes) -> None:
    """Read a page; the first line is its Content-Type."""
    declared, body = _first_line(data)
    content_type = declared.decode("latin-1")
    kind = sniff(content_type, body)
    page = extract(
        body,
        url=PAGE,
        charset=charset_parameter(content_type),
        agent_names=("crawlspace",),
        xhtml=kind == "application/xhtml+xml",
    )
    checksum(page.text, title=page.title)
    assert page.fields.keys() <= STANDARD_FIELDS
    assert all(0 < len(value) < 100_000 and values_of(value) for value in page.fields.values())
    usual, others = (extract(body, url=PAGE, max_links=len(body), link_attributes=some) for some in (NO_OTHERS, OTHERS))
    assert set(usual.hrefs) <= set(others.hrefs)
    for href in page.followed:
        _joined(page.base, href)


def files(data: bytes) -> None:
    """Read a file, of whatever type it is; the first line is its Content-Type."""
    declared, body = _first_line(data)
    contents = read_file(io.BytesIO(body), declared.decode("latin-1"), SMALL)
    page_of(contents, url=PAGE, disposition=contents.title)


def sitemaps(data: bytes) -> None:
    """Read a sitemap or feed of any format."""
    contents = read_sitemap(io.BytesIO(data), SitemapLimits(max_entries=100, max_bytes=100_000), may_be_text=True)
    assert len(contents.entries) <= 100
    assert contents.kind is not None or not (contents.entries or contents.fault)
    assert contents.kind is not None or not is_sitemap(data)
    assert is_sitemap(data) or contents.kind in (None, SitemapKind.TEXT) or data.startswith(b"\x1f\x8b")  # with a long header
    for entry in contents.entries:
        assert 0 < len(entry.href) <= MAX_HREF
        _joined(PAGE, entry.href)


def text(data: bytes) -> None:
    """Read a document that is text; the first line is its Content-Type."""
    declared, body = _first_line(data)
    content_type = declared.decode("latin-1")
    sniff(content_type, body)
    extract_text_document(body, url=PAGE, content_type=content_type, charset=charset_parameter(content_type))


def urls(data: bytes) -> None:
    """Follow a link, the second line, on a page, the first."""
    base, href = (part.decode("utf-8", "surrogateescape") for part in _first_line(data))
    _joined(base, href)
    _joined(PAGE, href)
    _joined(href, "")


def headers(data: bytes) -> None:
    """Read the headers of an answer, `Name: value` a line."""
    found: dict[str, list[str]] = {}
    for line in data.decode("latin-1").split("\n", 1_000)[:1_000]:  # more are refused before
        name, _, value = line.partition(":")
        found.setdefault(name.strip().lower(), []).append(value.strip())
    reported = read_headers(lambda name: found.get(name.lower(), []), url=PAGE, agent_names=("crawlspace",))
    essence(reported.content_type)
    charset_parameter(reported.content_type)
    sniff(reported.content_type, b"\x00%PDF-")
    for value in found.get("retry-after", []):
        seconds = retry_after_s(value, now=1_750_000_000.0)
        assert seconds is None or seconds >= 0
    for value in found.get("location", []):
        _joined(PAGE, value)


def robots(data: bytes) -> None:
    """Keep a robots.txt and ask it; the first line is a user agent."""
    agent, body = (part.decode("utf-8", "replace") for part in _first_line(data))
    product_token(agent)
    for name in ("crawlspace/1.0", agent):
        asked = Robots(_OneSite(), clock=FakeClock(), user_agent=name, ttl_s=3600)
        asked.save("www.example.com:80", "http", status=200, body=body)
        for path in ("/", "/docs/index.html?page=2", f"/{'x/' * 500}", "/%7euser/a;b?c=*$"):
            assert asked.check(f"http://www.example.com{path}", site="www.example.com:80") is not RobotsVerdict.UNKNOWN
        assert 0 <= asked.delay_of("www.example.com:80", "http") <= 60


def start_urls(data: bytes) -> None:
    """Read a start_urls.txt."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "start_urls.txt").write_bytes(data)
        try:
            found = read_start_urls(Path(folder), {})
        except ConfigError as error:
            str(error)
            return
    CrawlSpace(_NO_RULES, Limits(), [one.url for one in found])


def pending(data: bytes) -> None:
    """Check a pending file, and read the lines of one without faults again."""
    now = 1_750_000_000
    try:
        number = checked(io.BytesIO(data), "p", now=now)
    except PendingFileError as error:
        str(error)
        return
    lines = list(read_lines(io.BytesIO(data), "p", now=now, fault=_never))
    assert [line.line for line in lines] == list(range(1, number + 1))
    raw = data.decode().split("\n")
    assert all(raw[line.line - 1].startswith(f"{line.url} {line.realm} ") for line in lines)


def _never(sentence: str) -> None:
    raise AssertionError(sentence)


def patterns(data: bytes) -> None:
    """Look for a text, the first line, with patterns, the others."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    searched, written = lines[0][:DEFAULT_MAX_URL_LENGTH], lines[1:]
    for open_end in (False, True):
        index = PatternIndex(written, open_end=open_end)
        found = index.first(searched)
        assert index.covering(searched, Budget(1_000)) >= found
        if len(data) < 200:
            expected = (n for n, one in enumerate(written) if _matches(f"{one}*" if open_end else one, searched))
            assert found == next(expected, NO_MATCH)


TARGETS = {
    "crawl_rules": Target(
        crawl_rules,
        ("allow ", "forbid ", "domain ", "prefix ", "address ", "http://", "https://", "*.", "10.0.0.0/8", "255.0.255.0", "::/0", "#", "\n"),
    ),
    "rules_xml": Target(
        rules_xml,
        (
            "<Rules>", "</Rules>", "<Rule>", "</Rule>", "<And>", "</And>", "<Or>", "</Or>", "<Not>", "</Not>", "<Atom ", "<Domain ",
            "<Host ", "<Path ", "<Ext ", "<Url ", "<Scheme ", "<Query ", "<InQuery ", "<Length ", "/>", ' val="', ' value="', ' field="url"',
            ' field="path"', ' field="query"', ' kind="inside"', ' kind="prefix"', ' kind="suffix"', ' kind="length"', ' norm="none"',
            ' norm="lower"', ' literal="true"', "<Accept/>", "<Ignore/>", "<Index/>", "<NoIndex/>", "<Follow/>", "<NoFollow/>",
            '<Source name="a"/>', '<AddMeta name="a" value="b"/>', '<Priority shift="2"/>', "\\[", "\\]", "\\(", "\\)", "\\|", "\\.", "\\*",
            "\\+", "\\?", "\\{9\\}", "\\^", "\\$", "&amp;", "&#10;", "[3:9]", "<!--", "-->", "<![CDATA[", "]]>", "<?xml version='1.0'?>",
        ),
    ),
    "extract_toml": Target(
        extract_toml,
        (
            "[[field]]\n", "[[text]]\n", "[[part]]\n", "name = ", "where = ", "css = ", "xpath = ", "meta = ", "jsonld = ", "header = ", "url = ",
            "take = ", "type = ", "only = ", "drop = ", "key = ", "title = ", '"', "'", '"""', "[", "]", "{", "}", ",", "\n", "#", "http://a.example/",
            "::text", "::attr(a)", ":has(", ":not(", "//a[", "(?:", "(a)", "joined", "number",
        ),
    ),
    "extraction": Target(
        extraction,
        (
            "<p>", "</p>", "<b>", "<a href=x>", "<time datetime=", "<meta name=author content=", "<nav>", "<template>", "<script>", "</script>",
            '<script type="application/ld+json">', '{"@graph": [', '"offers": ', '"price": ', '{"@id": "#a"', "1.234,50", "1,234", "2024-05-01",
            "<!--googleoff: all-->", "<!--googleon: all-->", "<noindex>", "<p data-elastic-exclude>", "<p data-pagefind-body>", "&amp;", "<svg>",
        ),
    ),
    "sitemaps": Target(
        sitemaps,
        (
            "<?xml version='1.0'?>", "<urlset>", "</urlset>", "<url>", "</url>", "<loc>", "</loc>", "<lastmod>", "</lastmod>", "2026-05-01",
            "<sitemapindex>", "<sitemap>", '<rss version="2.0">', "<item>", "</item>", "<link>", "</link>", "<guid>", "<pubDate>", "<![CDATA[", "]]>",
            '<feed xmlns="http://www.w3.org/2005/Atom">', "<entry>", '<link href="', '" hreflang="de"/>', "<updated>", "&amp;", "&nbsp;", "&#1;",
            '{"version": "https://jsonfeed.org/version/1", "items": [', '{"url": "', '"}]}', "http://a.example/", "\n", "\x1f\x8b\x08", "<!--", "-->",
            "<!DOCTYPE urlset>", "\ufeff",
        ),
    ),
    "html": Target(
        html,
        (
            "text/html\n", "application/xhtml+xml\n", "text/html; charset=", "<a href=", "<base href=", "<meta name=robots content=",
            "<meta charset=", '<meta http-equiv="refresh" content="0;url=', "<link rel=canonical href=", "<title>", "</title>", "<script>",
            "</script>", "<style>", "</style>", "<!--", "-->", "<![CDATA[", "]]>", "<template>", "</template>", "<noscript>", "</noscript>",
            "<svg>", "</svg>", "<math>", "<h1>", "</h1>", "<iframe src=", "<plaintext>", "<textarea>", "<p>", "<b>", "&amp;", "&#x41;",
            "&notit;", '"', "'", "<", ">", "<!DOCTYPE html>", "<html lang=en>", "<meta name=author content=", "<meta property=og:image content=",
            '<script type="application/ld+json">', '{"@type": "Article", "author": ', '{"@graph": [', '{"@id": "#a"', '"mainEntity": ', '"keywords": ',
        ),
    ),
    "files": Target(
        files,
        (
            "application/pdf\n", "text/csv\n", "application/rtf\n", "\n", "PK\x03\x04", "word/document.xml", "<w:t>", "</w:t>", "%PDF-1.4\n",
            "1 0 obj", "endobj", "stream\n", "endstream", "/Kids [", "/Parent 2 0 R", "{\\rtf1 ", "\\u8364?", "\\'e9", "{\\footnote ", "\\par", "}",
            "{\\*\\fldinst HYPERLINK ", '"', ";", "<!DOCTYPE x [<!ENTITY a ", "&a;",
        ),
    ),
    "text": Target(text, ("text/plain\n", "text/xml\n", "application/rss+xml; charset=utf-16\n", "<a>", "</a>", "<![CDATA[", "]]>", "<!--", "&amp;")),
    "urls": Target(
        urls,
        ("http://", "https://", "//", "/", "..", "%2e", "%25", "%41", "?", "#", "@", ":80", "[::1]", "xn--", "0x7f.1", "\\", "\t", "data:", "javascript:"),
    ),
    "headers": Target(
        headers,
        (
            "Content-Type: ", "X-Robots-Tag: ", "Link: ", "Retry-After: ", "ETag: ", "Last-Modified: ", "Location: ", "text/html", "; charset=",
            "noindex", "nofollow", "none", "unavailable_after: ", "crawlspace: ", "<http://a.example/>", '; rel="canonical"', "\\", '"',
            "Wed, 21 Oct 2015 07:28:00 GMT", "-0000", "120",
        ),
    ),
    "robots": Target(
        robots,
        (
            "User-agent: *\n", "User-agent: crawlspace\n", "Allow: /", "Disallow: /", "Crawl-delay: ", "Request-rate: 1/", "Visit-time: ",
            "Sitemap: ", "*", "$", "%2F", "#", "/index.html", "\r", "\x1c", "0600-0845", "1e9",
        ),
    ),
    "start_urls": Target(start_urls, ("http://", "https://", "shift=2", "shift=-2", "#", "@", "[::1]", "%", "\n", "\ufeff", "xn--")),
    "pending": Target(pending, ("http://a.example/", " R 0\n", " My%20Site 2\n", " 1700000000\n", "\r\n", "\ufeff", "%", "\0", "99999999")),
    "patterns": Target(patterns, ("*", "**", "\n", "a", "ab", "http://")),
}  # fmt: skip


@dataclass(slots=True)
class _OneSite:
    """A store that keeps what is saved."""

    entries: dict[tuple[str, str], RobotsEntry] = field(default_factory=dict)

    def robots(self, site: str, scheme: str) -> RobotsEntry | None:
        return self.entries.get((site, scheme))

    def save_robots(self, entry: RobotsEntry) -> None:
        self.entries[entry.site, entry.scheme] = entry


_NO_RULES, _ = read_rules(Path(__file__).parent)


def _first_line(data: bytes) -> tuple[bytes, bytes]:
    first, _, rest = data.partition(b"\n")
    return first, rest


def _joined(base: str, href: str) -> None:
    """Follow a link; a URL in normal form stays as it is."""
    try:
        url = parse(join(base, href))
    except MalformedUrl as error:
        str(error)
        return
    path_depth(url.path)
    extension(url.path)
    repeats_segments(url.path, 3)
    document_id(url.text)
    assert isinstance(url.key, int)
    again = parse(url.text)
    assert again.text == url.text
    assert (again.host, again.port, again.path, again.query) == (url.host, url.port, url.path, url.query)


def _matches(pattern: str, text: str) -> bool:
    """Whether a pattern matches the whole text: by a table of all beginnings of both."""
    reached = {0}
    for character in pattern:
        if character == "*":
            reached = set(range(min(reached, default=len(text) + 1), len(text) + 1))
        else:
            reached = {at + 1 for at in reached if text[at : at + 1] == character}
    return len(text) in reached
