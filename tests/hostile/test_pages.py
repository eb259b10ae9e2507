"""Pages of hostile servers, all in one crawl."""

from __future__ import annotations

import gzip
from contextlib import ExitStack

import pytest

from crawlspace.model import State
from tests.conftest import Project, assert_same
from tests.hostile.replies import MEGABYTE, OK, Raw, bomb, chunked, encoded, folded, headers, without_length
from tests.http import Reply
from tests.integration.stored import collection, indexed, opened, states
from tests.sites import Server, Site, binary, html, page, redirect, serve, text

LONG = b"a" * 200_000
XML_BOMB = b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY l0 "lol">%s]><a>&l9;</a>' % b"".join(
    b'<!ENTITY l%d "%s">' % (level, b"&l%d;" % (level - 1) * 10) for level in range(1, 10)
)
DONE, GONE, FAILED, EXCLUDED, REDIRECTED = State.DONE, State.GONE, State.FAILED, State.EXCLUDED, State.REDIRECTED

TABLE: list[tuple[str, Reply, State, int, bool]] = [
    # path, what the server does, state, status, indexed
    # --- headers
    ("/headers-endless",      Raw(OK, b"X-A: a\r\n" * 100),                                             GONE,       615, False),
    ("/headers-folded",       Raw(OK + b"X-A: a\r\n", b" a\r\n" * 100),                                 GONE,       615, False),
    ("/header-endless",       Raw(OK + b"X-A: ", b"a" * 65_536),                                        GONE,       615, False),
    ("/status-line-endless",  Raw(b"HTTP/1.1 200 ", b"a" * 65_536),                                     GONE,       615, False),
    ("/interim-endless",      Raw(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),                         GONE,       615, False),
    ("/interim-once",         Raw(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + headers(b"X: y", body=b"<p>after hints").start), DONE, 200, True),
    ("/trailers-endless",     chunked(b"3\r\nabc\r\n0\r\n", endless=b"X-A: a\r\n" * 100),               GONE,       615, False),
    ("/many-headers",         headers(*[b"X-%d: a" % n for n in range(900)], body=b"<p>many headers"),  DONE,       200, True),
    ("/no-colon",             headers(LONG, b"\xff\xfe\x00", body=b"<p>no colon"),                      GONE,       615, False),
    ("/etag-huge",            headers(folded(b"ETag", 200_000), body=b"<p>etag huge"),                  GONE,       615, False),
    ("/etag-nul",             headers(b'ETag: "a\x00\x1b[2Jb"', b"Last-Modified: \x1b]0;x\x07", body=b"<p>etag nul"), GONE, 611, False),
    ("/location-huge",        Raw(b"HTTP/1.1 302 Found\r\nLocation: /" + LONG + b"\r\nContent-Length: 0\r\n\r\n"), GONE, 615, False),
    ("/location-nul",         Raw(b"HTTP/1.1 302 Found\r\nLocation: http://\x00\x1b[2J/\r\nContent-Length: 0\r\n\r\n"), GONE, 611, False),
    ("/type-huge",            headers(b"Content-Type: text/" + LONG, body=b"<!doctype html><p>type huge"), GONE,    615, False),
    ("/charset-huge",         headers(b"Content-Type: text/html; charset=" + LONG, body=b"<p>charset huge"), GONE,  615, False),
    ("/charset-odd",          headers(b"Content-Type: text/html; charset=unicode_escape", body=b"<p>charset odd \\x41"), DONE, 200, True),
    ("/robots-tags",          headers(*[b"X-Robots-Tag: bot%d: noindex, unavailable_after: x" % n for n in range(900)], body=b"<p>robots tags"), DONE, 200, True),
    ("/links",                headers(b"Link: " + b"<a>; rel=x, " * 16_000, body=b"<p>links"),          GONE,       615, False),
    ("/cookies",              headers(*[b"Set-Cookie: a%d=%s; Domain=127.0.0.1" % (n, b"b" * 200) for n in range(900)], body=b"<p>cookies"), DONE, 200, True),
    ("/date-endless",         headers(b"Last-Modified: " + b"Wed, " * 20_000, body=b"<p>date"),         DONE,       200, True),
    # --- status lines
    ("/not-http",             Raw(b"SSH-2.0-OpenSSH_9.6\r\n", stays_open=True),                         GONE,       611, False),
    ("/http-0.9",             Raw(b"<html><p>words"),                                                   GONE,     611, False),
    ("/status-huge",          Raw(b"HTTP/1.1 " + b"9" * 4_000 + b" OK\r\nContent-Length: 0\r\n\r\n"),   GONE,       500, False),
    ("/status-negative",      Raw(b"HTTP/1.1 -200 OK\r\nContent-Length: 0\r\n\r\n"),                    GONE,       611, False),
    ("/version",              Raw(b"HTTP/99999999999.9 200 OK\r\nContent-Length: 0\r\n\r\n"),           GONE,       611, False),
    # --- lengths
    ("/length-short",         without_length(b"Content-Length: 12", body=b"<p>too short, and more"),    DONE,       200, True),
    ("/length-long",          without_length(b"Content-Length: 1000", body=b"<p>too long"),             GONE,       615, False),
    ("/length-huge",          without_length(b"Content-Length: 1000000000000", body=b"<p>huge"),        GONE,       615, False),
    ("/length-negative",      without_length(b"Content-Length: -1", body=b"<p>negative"),               GONE,       611, False),
    ("/length-no-number",     without_length(b"Content-Length: many", body=b"<p>many"),                 GONE,       611, False),
    ("/length-digits",        without_length(b"Content-Length: " + b"9" * 100_000, body=b"<p>digits"),  DONE,       200, True),
    ("/two-lengths",          without_length(b"Content-Length: 5", b"Content-Length: 9", body=b"<p>two"), GONE,     611, False),
    ("/unknown-transfer",     without_length(b"Transfer-Encoding: gzip", body=b"<p>gzip"),              GONE,       611, False),
    # --- bodies
    ("/body-endless",         Raw(OK + b"Content-Type: text/html\r\n\r\n", b"a" * 65_536),              GONE,       615, False),
    ("/chunks-endless",       chunked(b"", endless=b"3e8\r\n" + b"a" * 1_000 + b"\r\n"),               GONE,       615, False),
    ("/chunk-huge",           chunked(b"FFFFFFFFFFFFFFFF\r\n", endless=b"a" * 65_536),                  GONE,       615, False),
    ("/chunk-no-number",      chunked(b"xyz\r\nabc\r\n0\r\n\r\n"),                                      GONE,       615, False),
    ("/chunk-negative",       chunked(b"-1\r\nabc\r\n0\r\n\r\n"),                                       GONE,       615, False),
    ("/chunk-too-long",       chunked(b"3\r\nabcdef\r\n0\r\n\r\n"),                                     GONE,       615, False),
    ("/chunk-extension",      chunked(b"3;a=", endless=b"b" * 65_536),                                  GONE,       615, False),
    ("/chunks-without-end",   chunked(b"3\r\nabc\r\n"),                                                 GONE,       615, False),
    # --- bombs
    ("/bomb-gzip",            bomb("gzip"),                                                            GONE,       615, False),
    ("/bomb-deflate",         bomb("deflate"),                                                         GONE,       615, False),
    ("/bomb-br",              bomb("br"),                                                              GONE,       615, False),
    ("/bomb-zstd",            bomb("zstd"),                                                            GONE,       615, False),
    ("/bomb-in-bomb",         encoded(gzip.compress(gzip.compress(b" " * 24 * MEGABYTE)), "gzip", "gzip"), GONE,    615, False),
    ("/encodings",            encoded(gzip.compress(b"<p>x"), *["gzip"] * 20_000),                     GONE,       615, False),
    ("/gzip-cut",             encoded(gzip.compress(b"<p>cut" * 1_000)[:-20], "gzip"),                 DONE,       200, True),
    ("/gzip-none",            encoded(b"<p>no gzip at all", "gzip"),                                   GONE,       611, False),
    ("/br-none",              encoded(b"<p>no brotli at all", "br"),                                   GONE,       611, False),
    ("/zstd-none",            encoded(b"<p>no zstd at all", "zstd"),                                   GONE,       611, False),
    ("/encoding-odd",         headers(b"Content-Encoding: \xff\xfe\x1b[2J" + LONG, body=b"<p>encoding odd"), GONE,  615, False),
    ("/encoding-unknown",     encoded(b"<p>encoding unknown", "rot13"),                                DONE,       200, True),
    # --- markup
    ("/million-links",        encoded(gzip.compress(b"<a href=?>" * 1_000_000), "gzip"),                                    DONE,       200, True),
    ("/nested",               html("<div>" * 300_000 + "nested" + "</div>" * 300_000),                 DONE,       200, True),
    ("/xml-bomb",             binary(XML_BOMB, "text/xml"),                                            DONE,       200, True),
    ("/xhtml-bomb",           binary(XML_BOMB.replace(b"lol", b"lulz"), "application/xhtml+xml"),      DONE,       200, True),
    ("/xml-file",             binary(b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x; file</a>', "text/xml"), DONE, 200, True),
    ("/title-huge",           html("<title>" + "\x1b[2J\u202e " * 500_000 + "</title>huge title"),     DONE,       200, True),
    # --- redirects
    ("/loop-to-itself",       redirect("/loop-to-itself"),                                             FAILED, 691, False),
]  # fmt: skip
SETTINGS = """
DOWNLOAD_DELAY = 0
CONCURRENT_REQUESTS = 64
CONCURRENT_REQUESTS_PER_DOMAIN = 32
DOWNLOAD_TIMEOUT = 3600
DOWNLOAD_MAXSIZE = 11_000_000
RETRY_TIMES = 0
CRAWLSPACE_BACKOFF_MAX = 0
CRAWLSPACE_MAX_SITE_FAILURES = 1000
CRAWLSPACE_FOLLOW_QUERY_STRINGS = False
REDIRECT_MAX_TIMES = 5
COOKIES_ENABLED = True
MEMUSAGE_LIMIT_MB = 600
MEMUSAGE_CHECK_INTERVAL_SECONDS = 0.2
"""
"""The limit of memory is only just above what a crawl takes anyway: DOWNLOAD_MAXSIZE for some pages at once. Without bounds it would be
as much as there is."""


pytestmark = pytest.mark.full
"""One crawl, which waits for time-outs."""


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Server, str]:
    site = Site({path: answer for path, answer, *_ in TABLE})
    site["/robots.txt"] = text("")
    with ExitStack() as stack:
        other = stack.enter_context(serve(Site({"/robots.txt": text("")}), host="127.0.0.2"))
        trap = stack.enter_context(serve(Site({"/robots.txt": text("")}, otherwise=deeper), host="127.0.0.3"))
        server = stack.enter_context(serve(site))
        other.site["/back"] = redirect(server.url("/loop-across"))
        server.site["/loop-across"] = redirect(other.url("/back"))
        other.site.otherwise = lambda request: redirect(server.url(f"{request.path}0"))
        server.site.otherwise = lambda request: redirect(other.url(f"{request.path}0"))
        links = [*(path for path, *_ in TABLE), "/loop-across", "/hop/", trap.url("/")]
        site["/"] = page("Home", text="Start here", links=links)
        own = f'CRAWLSPACE_SITES = {{"{trap.netloc}": {{"max_urls_per_host": 30}}}}\n'
        files = collection(server.url("/"), rules="allow address 127.0.0.0/8\n", settings=SETTINGS + own)
        project = Project(tmp_path_factory.mktemp("hostile"), files)
        run = project.crawl("demo")
        assert run.returncode == 0, run.stderr[-5_000:]
        return project, server, run.stderr


def deeper(request: object) -> Reply:
    """A page of a calendar without end: its links lead further, by their names and into folders below themselves."""
    path = getattr(request, "path", "")
    return page(path, text=path, links=[f"{path}{hash(path) % 1_000_003}", f"{path.rstrip('/')}/a/", f"{path}-next", "x/"])


def test_every_fetch_ends_in_its_outcome(crawled: tuple[Project, Server, str]) -> None:
    known = states(crawled[0])
    found = {(path, known[path].state, known[path].status) for path, *_ in TABLE if path in known}
    assert_same(found, {(path, state, code) for path, _, state, code, _ in TABLE})


def test_a_page_that_was_cut_short_is_no_document(crawled: tuple[Project, Server, str]) -> None:
    paths = {path for path, *_ in TABLE}
    assert_same(paths & set(indexed(crawled[0])), [path for path, _, _, _, wanted in TABLE if wanted])


def test_validators_that_could_poison_are_not_kept(crawled: tuple[Project, Server, str]) -> None:
    known = states(crawled[0])
    assert [(known[path].etag, known[path].last_modified) for path in ("/etag-huge", "/etag-nul", "/date-endless")] == [
        (None, None)
    ] * 3


def test_redirects_across_hosts_end(crawled: tuple[Project, Server, str]) -> None:
    asked = crawled[1].paths()
    assert asked.count("/loop-across") == 1
    assert len([path for path in asked if path.startswith("/hop/")]) == 3


def test_a_trap_ends_where_the_limits_are(crawled: tuple[Project, Server, str]) -> None:
    with opened(crawled[0]) as store:
        assert store.host_count("127.0.0.3") == 30


def test_memory_is_bounded(crawled: tuple[Project, Server, str]) -> None:
    assert "Memory usage exceeded" not in crawled[2]


def test_messages_are_short_and_printable(crawled: tuple[Project, Server, str]) -> None:
    lines = crawled[2].splitlines()
    assert [line[:300] for line in lines if len(line) > 1_000] == []
    assert [line for line in lines if "\x1b" in line or "\x00" in line] == []
    assert "Traceback" not in crawled[2]
