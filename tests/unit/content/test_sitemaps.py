"""Sitemaps and feeds: what each format names, and what becomes of broken, hostile and large ones."""

from __future__ import annotations

import gzip
from io import BytesIO
from pathlib import Path

import pytest

from crawlspace.content.sitemaps import SitemapContents, SitemapKind, SitemapLimits, is_sitemap, read_sitemap

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
SITEMAP = f"""<?xml version="1.0" encoding="UTF-8"?>
<!-- made by hand -->
<urlset {NS} xmlns:xhtml="http://www.w3.org/1999/xhtml" xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"
 xmlns:news="http://www.google.com/schemas/sitemap-news/0.9">
<url>
  <loc> http://a.example/1 </loc><lastmod>2026-05-01</lastmod><priority>0.5</priority>
  <image:image><image:loc>http://a.example/picture.png</image:loc></image:image>
  <news:news><news:publication_date>2026-01-01</news:publication_date></news:news>
  <xhtml:link rel="alternate" hreflang="en" href="http://a.example/1"/>
  <xhtml:link rel="alternate" hreflang="de" href="http://a.example/de/1"/>
</url>
<url><lastmod>2026-05-01T12:00:00+02:00</lastmod><loc><![CDATA[http://a.example/2?a=1&b=2]]></loc></url>
</urlset>"""
INDEX = f"<sitemapindex {NS}><sitemap><loc>http://a.example/s.xml.gz</loc><lastmod>2026-05-01</lastmod></sitemap></sitemapindex>"
RSS = """<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:media="http://search.yahoo.com/mrss/"><channel>
<link>http://a.example/</link><atom:link rel="self" href="http://a.example/feed"/>
<item><title>One</title><link>http://a.example/1</link><media:link>http://a.example/film</media:link>
  <pubDate>Fri, 01 May 2026 12:00:00 GMT</pubDate></item>
<item><guid>http://a.example/2</guid></item>
<item><guid isPermaLink="false">http://a.example/no</guid></item>
<item><guid>4711</guid></item>
</channel></rss>"""
RSS_1 = """<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><link>http://a.example/</link></channel>
<item><link>http://a.example/1</link><dc:date>2026-05-01</dc:date></item></rdf:RDF>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><link rel="self" href="http://a.example/feed"/><updated>2026-01-01T00:00:00Z</updated>
<entry><link rel="edit" href="http://a.example/edit"/><link href="/1?a=1&amp;b=2"/><link rel="alternate" href="/ignored"/>
  <updated>2026-05-01T12:00:00Z</updated></entry></feed>"""
JSON = """{"version": "https://jsonfeed.org/version/1.1", "title": "A", "items": [
 {"id": "1", "url": "http://a.example/1", "date_modified": "2026-05-01T12:00:00Z"}, {"id": "2", "url": 5},
 {"id": "3", "external_url": "http://b.example/3"}]}"""
NOON = "2026-05-01T12:00:00Z"
ONE = [("http://a.example/1", "2026-05-01")]


def read(body: str | bytes, *, may_be_text: bool = False, entries: int = 50_000, most: int = 10_000_000) -> SitemapContents:
    data = body.encode() if isinstance(body, str) else body
    return read_sitemap(BytesIO(data), SitemapLimits(entries, most), may_be_text=may_be_text)


def entries(contents: SitemapContents) -> list[tuple[str, str]]:
    return [(entry.href, entry.modified) for entry in contents.entries]


@pytest.mark.parametrize(
    ("body", "kind", "found"),
    [
        (
            SITEMAP,
            SitemapKind.SITEMAP,
            [*ONE, ("http://a.example/2?a=1&b=2", "2026-05-01T10:00:00Z"), ("http://a.example/de/1", "2026-05-01")],
        ),
        (INDEX, SitemapKind.INDEX, [("http://a.example/s.xml.gz", "2026-05-01")]),
        (RSS, SitemapKind.RSS, [("http://a.example/1", NOON), ("http://a.example/2", "")]),
        (RSS_1, SitemapKind.RSS, ONE),
        (ATOM, SitemapKind.ATOM, [("/1?a=1&b=2", NOON)]),
        (JSON, SitemapKind.JSON, [("http://a.example/1", NOON), ("http://b.example/3", "")]),
    ],
    ids=["sitemap", "index", "rss", "rss1", "atom", "json"],
)
def test_formats(body: str, kind: SitemapKind, found: list[tuple[str, str]]) -> None:
    contents = read(body)
    assert (contents.kind, entries(contents), contents.left_out, contents.fault) == (kind, found, 0, "")
    assert is_sitemap(body.encode())
    compressed = gzip.compress(body.encode())
    assert is_sitemap(compressed)
    assert entries(read(compressed)) == found


@pytest.mark.parametrize(
    "body",
    [
        SITEMAP.encode("utf-8-sig"),
        b"\r\n\n" + SITEMAP.encode(),
        SITEMAP.replace("UTF-8", "UTF-16").encode("utf-16"),
        SITEMAP.replace("UTF-8", "ISO-8859-1").encode("latin-1"),
        SITEMAP.replace("<urlset", "<!DOCTYPE urlset><urlset").encode(),
        SITEMAP.replace(NS, "").encode(),
        gzip.compress(SITEMAP[:100].encode()) + gzip.compress(SITEMAP[100:].encode()),
    ],
    ids=["BOM", "space", "UTF-16", "latin-1", "doctype", "no namespace", "two members"],
)
def test_spellings(body: bytes) -> None:
    assert entries(read(body)) == entries(read(SITEMAP))
    assert is_sitemap(body)


@pytest.mark.parametrize(
    ("written", "modified"),
    [
        ("2026-05-01T12:00:00Z", NOON),
        ("2026-05-01T14:00:00+02:00", NOON),
        ("2026-05-01T12:00:00", NOON),
        ("Fri, 01 May 2026 12:00:00 GMT", NOON),
        ("2026-05", "2026-05"),
        ("20000-01-01", ""),
        ("2026-02-30", ""),
        ("2026-02-29", ""),
        ("2024-02-29", "2024-02-29"),
        ("2026-13-01", ""),
        ("yesterday", ""),
        ("", ""),
    ],
)
def test_times(written: str, modified: str) -> None:
    assert entries(read(f"<urlset {NS}><url><loc>http://a/</loc><lastmod>{written}</lastmod></url></urlset>")) == [
        ("http://a/", modified)
    ]


@pytest.mark.parametrize(
    ("body", "found", "fault"),
    [
        (SITEMAP[: SITEMAP.index("</url>") + 6], 2, "Premature end"),
        (f"<urlset {NS}><url><loc>http://a/?x=1&y=2&amp;z=3</loc></url><url><loc>http://a/</loc></url></urlset>", 2, "EntityRef"),
        (f"<urlset {NS}><url><loc>http://a/1</loc></wrong><url><loc>http://a/2</loc></url></urlset>", 2, "mismatch"),
        (RSS.replace("One", "One &nbsp; &bogus;"), 2, "nbsp"),
        (RSS.replace("One", "One \x01 two"), 2, "XML is broken"),
        (gzip.compress(SITEMAP.encode())[:-30], None, "it is compressed, and damaged"),
        (JSON[:-20], 0, "its JSON is broken"),
        ("[" * 100_000, None, ""),
        ('{"version": "https://jsonfeed.org/version/1", "items": ' + "[" * 100_000, 0, "its JSON is broken"),
        (f"<urlset {NS}><url><loc>http://a/</loc></url>" + "<url>" * 100_000, 1, "nested more than 500 deep"),
    ],
    ids=["cut", "ampersand", "mismatch", "entities", "control", "gzip", "json", "no json", "deep json", "deep"],
)
def test_of_what_is_broken_the_rest_is_read(body: str | bytes, found: int | None, fault: str) -> None:
    contents = read(body)
    assert fault in contents.fault
    assert found is None or len(contents.entries) == found


def test_comments_of_what_is_broken() -> None:
    body = f"<?xml version='1.0'?><!-- <b>made</b> by hand --><urlset {NS}><url><loc>http://a/?a=1&b=2</loc></url></urlset>"
    assert entries(read(body)) == [("http://a/?a=1&b=2", "")]


def test_many_members_take_linear_time() -> None:
    """Each of a gzip file that has a member for each byte."""
    body = f"<urlset {NS}><url><loc>http://a/</loc></url>".encode()
    members = b"".join(gzip.compress(body[at : at + 1]) for at in range(len(body)))
    assert entries(read(members + gzip.compress(b"") * 200_000)) == [("http://a/", "")]


def test_an_ampersand_of_a_url_is_not_lost() -> None:
    text = "".join(f"<url><loc>http://a/?n={number}&page=2&amp;x</loc></url>" for number in range(5_000))
    contents = read(f"<urlset {NS}>{text}</urlset>")
    assert [entry.href for entry in contents.entries] == [f"http://a/?n={number}&page=2&x" for number in range(5_000)]


def test_recovery_takes_linear_time() -> None:
    """In libxml2 that of so many tags that do not end is quadratic."""
    contents = read(f'<?xml version="1.0"?><urlset {NS}><url><loc>http://a/</loc><x:link\n' + "<?" * 500_000 + "></url></urlset>")
    assert [entry.href for entry in contents.entries] == ["http://a/"]


def test_limits() -> None:
    many = f"<urlset {NS}>" + "".join(f"<url><loc>http://a/{number}</loc></url>" for number in range(1_000)) + "</urlset>"
    contents = read(many, entries=300)
    assert (len(contents.entries), contents.left_out, contents.fault) == (300, 700, "")
    cut = read(many, most=10_000)
    assert 0 < len(cut.entries) < 1_000
    assert cut.fault == "it has more than 10,000 bytes, and the rest was not read"
    long = f"<urlset {NS}><url><loc>http://a/{'x' * 9_000}</loc></url><url><loc>http://a/1</loc></url></urlset>"
    assert entries(read(long)) == [("http://a/1", "")]


def test_a_bomb_ends_at_its_limit() -> None:
    bomb = gzip.compress(f"<urlset {NS}>".encode() + b" " * 50_000_000)
    contents = read(bomb, most=1_000_000)
    assert (contents.entries, contents.fault) == ([], "it has more than 1,000,000 bytes, and the rest was not read")


def test_xml_that_declares_entities_is_no_sitemap() -> None:
    """They could only be declared before its root: so none is ever expanded."""
    declared = '<!DOCTYPE urlset [<!ENTITY a "http://a/"><!ENTITY x SYSTEM "file:///etc/hostname">]>'
    body = f"{declared}<urlset {NS}><url><loc>&a;</loc></url><url><loc>&x;</loc></url></urlset>"
    assert not is_sitemap(body.encode())
    assert read(body) == SitemapContents(None)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("http://a/1\r\nhttp://a/2\n\n", ["http://a/1", "http://a/2"]),
        ("\ufeffhttps://a/1", ["https://a/1"]),
        ("http://a/1\nwords\n", None),
        ("words", None),
        ("", None),
        ("x" * 1_000_000, None),
    ],
)
def test_lists_of_urls(body: str, found: list[str] | None) -> None:
    assert read(body).kind is None
    contents = read(body, may_be_text=True)
    assert contents.kind is (None if found is None else SitemapKind.TEXT)
    assert [entry.href for entry in contents.entries] == (found or [])


@pytest.mark.parametrize(
    "body",
    [
        "<!doctype html><html><urlset>",
        "<html>",
        '<?xml version="1.0"?><feed xmlns="http://other.example/">',
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><item/></rdf:RDF>',
        '{"version": "1.0", "items": []}',
        "<urlsets>",
        "plain words",
        "",
    ],
)
def test_what_is_no_sitemap(body: str) -> None:
    assert not is_sitemap(body.encode())
    assert read(body) == SitemapContents(None)


MADE = Path(__file__).parent / "made_sitemaps"
"""Made by Sphinx (sphinx-sitemap), MkDocs (and its RSS plugin), Pelican, Nikola, Hugo, Jekyll, Hexo, VitePress, feed and feedgen."""
BY_GENERATORS = [
    # file, kind, number of URLs, the first one, and when it was changed
    ("feed-atom.xml", SitemapKind.ATOM, 1, "/a?x=1&y=2", NOON),
    ("feed-rss.xml", SitemapKind.RSS, 1, "/a?x=1&y=2", NOON),
    ("feed.json", SitemapKind.JSON, 1, "/a?x=1&y=2", NOON),
    ("feedgen-atom.xml", SitemapKind.ATOM, 1, "/a?x=1&y=2", NOON),
    ("feedgen-rss.xml", SitemapKind.RSS, 1, "/a?x=1&y=2", NOON),
    ("hexo-sitemap.txt", SitemapKind.TEXT, 2, "/2026/11/29/hello-world/", ""),
    ("hexo-sitemap.xml", SitemapKind.SITEMAP, 2, "/2026/11/29/hello-world/", "2026-11-29"),
    ("hugo-index.xml", SitemapKind.INDEX, 2, "/en/sitemap.xml", NOON),
    ("hugo-rss.xml", SitemapKind.RSS, 1, "/post/a/", NOON),
    ("hugo-sitemap.xml", SitemapKind.SITEMAP, 10, "/post/a/", NOON),
    ("jekyll-atom.xml", SitemapKind.ATOM, 1, "/2026/05/01/a.html", "2026-05-01T00:00:00Z"),
    ("jekyll-sitemap.xml", SitemapKind.SITEMAP, 2, "/2026/05/01/a.html", "2026-05-01T00:00:00Z"),
    ("mkdocs-feed.json", SitemapKind.JSON, 2, "/a/", "2026-11-29T11:50:43Z"),
    ("mkdocs-rss.xml", SitemapKind.RSS, 2, "/a/", "2026-11-29T11:50:43Z"),
    ("mkdocs-sitemap.xml", SitemapKind.SITEMAP, 2, "/", "2026-11-29"),
    ("mkdocs-sitemap.xml.gz", SitemapKind.SITEMAP, 2, "/", "2026-11-29"),
    ("nikola-index.xml", SitemapKind.INDEX, 9, "/categories/blog.xml", "2026-11-29T11:50:00Z"),
    ("nikola-sitemap.xml", SitemapKind.SITEMAP, 29, "/", "2026-11-29T11:50:00Z"),
    ("pelican-atom.xml", SitemapKind.ATOM, 2, "/c.html", "2026-05-02T12:00:00Z"),
    ("pelican-rss.xml", SitemapKind.RSS, 2, "/c.html", "2026-05-02T12:00:00Z"),
    ("sphinx-sitemap.xml", SitemapKind.SITEMAP, 4, "/en/a.html", ""),
    ("vitepress-sitemap.xml", SitemapKind.SITEMAP, 2, "/a.html", ""),
]


@pytest.mark.parametrize(("file", "kind", "number", "first", "modified"), BY_GENERATORS, ids=[row[0] for row in BY_GENERATORS])
def test_what_generators_make(file: str, kind: SitemapKind, number: int, first: str, modified: str) -> None:
    contents = read((MADE / file).read_bytes(), may_be_text=True)
    assert (contents.kind, len(contents.entries), contents.fault) == (kind, number, "")
    assert entries(contents)[0] == (f"http://www.example.com{first}", modified)


def test_all_that_generators_made_is_tested() -> None:
    assert {path.name for path in MADE.iterdir()} == {row[0] for row in BY_GENERATORS}
