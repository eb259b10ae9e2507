"""Hostile robots.txt files, each on a site of its own, all in one crawl: none holds it up, and what can't be read allows nothing."""

from __future__ import annotations

import gzip
from contextlib import ExitStack

import pytest

from tests.conftest import MakeProject
from tests.hostile.replies import OK, Raw, bomb, chunked, headers
from tests.http import Reply
from tests.integration.stored import opened
from tests.sites import Server, Site, binary, page, redirect, serve, status, text

PLAIN = b"Content-Type: text/plain\r\n"
ALLOWED, FORBIDDEN, UNREADABLE = "allowed", "forbidden", "unreadable"
PATH = "/" + "ab" * 1_000

ROWS: list[tuple[str, Reply, str]] = [
    # what, the answer for robots.txt, what becomes of the one page of its site
    ("500 MB",                   Raw(OK + PLAIN + b"Content-Length: 500000000\r\n\r\n", b"Disallow: /\n" * 5_000), UNREADABLE),
    ("endless",                  Raw(OK + PLAIN + b"\r\n", b"Disallow: /\n" * 5_000),                    UNREADABLE),
    ("endless headers",          Raw(OK, b"X-A: a\r\n" * 100),                                           UNREADABLE),
    ("endless folded headers",   Raw(OK + b"X-A: a\r\n", b" a\r\n" * 100),                               UNREADABLE),
    ("endless trailers",         chunked(b"1\r\na\r\n0\r\n", endless=b"X-A: a\r\n" * 100),               UNREADABLE),
    ("a bomb",                   bomb("gzip"),                                                          UNREADABLE),
    ("no gzip",                  binary(b"User-agent: *", "text/plain", headers={"Content-Encoding": "gzip"}), UNREADABLE),
    ("cut short",                Raw(OK + PLAIN + b"Content-Length: 1000\r\n\r\nUser-agent: *"),         UNREADABLE),
    ("Retry-After of 10^12",     status(429, headers={"Retry-After": "1" + "0" * 12}),                  UNREADABLE),
    ("a redirect to itself",     redirect("/robots.txt"),                                               ALLOWED),
    ("a huge Location",          redirect("/" + "a" * 200_000),                                         UNREADABLE),
    ("NULs and no text",         binary(bytes(range(256)) * 1_000, "text/plain"),                       ALLOWED),
    ("UTF-16",                   binary("User-agent: *\nDisallow: /".encode("utf-16"), "text/plain"),   ALLOWED),
    ("one line of 400 KB",       text("User-agent: *\nDisallow: /" + "x" * 400_000),                    ALLOWED),
    ("many stars",               text("User-agent: *\nDisallow: /" + "*a" * 10_000 + "*c"),              ALLOWED),
    ("many patterns",            text("User-agent: *\n" + "Disallow: /*a*b*a*b*c$\n" * 20_000),         ALLOWED),
    ("many rules, one counts",   text("User-agent: *\n" + "Allow: /x\n" * 40_000 + "Disallow: /ab"),    FORBIDDEN),
    ("many agents",              text("User-agent: x\n" * 30_000 + "User-agent: *\nDisallow: /"),       FORBIDDEN),
    ("percent signs",            text("User-agent: *\nDisallow: /" + "%" * 200_000),                    ALLOWED),
    ("Crawl-delay of 10^12",     text("User-agent: *\nCrawl-delay: 1" + "0" * 12),                      ALLOWED),
    ("Crawl-delay of 10^300000", text("User-agent: *\nCrawl-delay: 1" + "0" * 300_000),                 ALLOWED),
    ("Crawl-delay of a month",   text("User-agent: *\nCrawl-delay: 2592000"),                           ALLOWED),
    ("Crawl-delay that is none", text("User-agent: *\nCrawl-delay: nan\nCrawl-delay: inf\nCrawl-delay: -1"), ALLOWED),
    ("Request-rate of 1/10^12",  text("User-agent: *\nRequest-rate: 1/1" + "0" * 12),                   ALLOWED),
    ("Request-rate of 0/0",      text("User-agent: *\nRequest-rate: 0/0"),                              ALLOWED),
    ("compressed rules",         binary(gzip.compress(b"User-agent: *\nDisallow: /"), "text/plain", headers={"Content-Encoding": "gzip"}), FORBIDDEN),
    ("many headers",             headers(*[b"X-%d: a" % n for n in range(900)], b"Content-Type: text/plain", body=b"User-agent: *\nDisallow: /"), FORBIDDEN),
]  # fmt: skip
SETTINGS = """
DOWNLOAD_DELAY = 0
CONCURRENT_REQUESTS = 64
DOWNLOAD_TIMEOUT = 3600
DOWNLOAD_MAXSIZE = 5_000_000
RETRY_TIMES = 0
CRAWLSPACE_ROBOTS_DELAY_MAX = 0.2
MEMUSAGE_LIMIT_MB = 400
MEMUSAGE_CHECK_INTERVAL_SECONDS = 0.2
"""


@pytest.mark.full
def test_robots_files(project: MakeProject) -> None:
    with ExitStack() as stack:
        servers: dict[str, Server] = {}
        for what, answer, _ in ROWS:
            site = Site({"/robots.txt": answer, PATH: page(what, text=what)})
            servers[what] = stack.enter_context(serve(site))
        files = collection_of(servers)
        made = project(files)
        run = made.crawl("demo")
        became = {what: outcome(server, run.stderr) for what, server in servers.items()}
        with opened(made) as store:
            documents = store.counts().indexed
    assert became == {what: expected for what, _, expected in ROWS}
    assert documents == [expected for *_, expected in ROWS].count(ALLOWED)
    assert "Memory usage exceeded" not in run.stderr
    assert max(map(len, run.stderr.splitlines())) < 1_000
    assert "Traceback" not in run.stderr


def collection_of(servers: dict[str, Server]) -> dict[str, str]:
    starts = "".join(f"{server.url(PATH)}\n" for server in servers.values())
    return {"demo/start_urls.txt": starts, "demo/crawl.rules": "allow address 127.0.0.0/8\n", "demo/settings.py": SETTINGS}


def outcome(server: Server, logged: str) -> str:
    """What became of the page, told by what was asked for, and by the site being named as one that can't be crawled."""
    assert server.paths()[0] == "/robots.txt"
    if PATH in server.paths():
        return ALLOWED
    return UNREADABLE if server.netloc in logged else FORBIDDEN
