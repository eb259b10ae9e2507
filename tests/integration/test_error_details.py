"""What is known of an error beside its status is kept after the run, and gone once the page answers again; on both stores."""

from __future__ import annotations

import json

import pytest

from tests.conftest import MakeProject
from tests.hostile.replies import HTML, OK, Raw, headers
from tests.http import Reply
from tests.integration.stored import FAST, collection, shared
from tests.sites import Site, cut_short, drop, page, serve, text

LARGE = page("Large", text="word " * 5_000)
# path, answer, status, what is told of it
TABLE: list[tuple[str, Reply, int, str]] = [
    ("/no-http",     Raw(b"SSH-2.0-OpenSSH\r\n\r\n"),                                          611, "what the server sends is not HTTP ("),
    ("/not-gzip",    headers(b"Content-Encoding: gzip", body=b"this is not gzip"),             611, "the body is not encoded as its headers say (BadGzipFile: "),
    ("/reset",       drop(reset=True),                                                         612, "the connection was reset before the answer was complete"),
    ("/closed",      drop(),                                                                   612, "the server closed the connection without an answer"),
    ("/cut",         cut_short(),                                                              615, "the answer was cut short"),
    ("/announced",   LARGE,                                                                    615, "bytes is larger than 4,096 bytes"),
    ("/unannounced", Raw(OK + HTML + b"Connection: close\r\n\r\n" + b"<p>word" * 5_000),       615, "the answer is larger than DOWNLOAD_MAXSIZE"),
    ("/headers",     Raw(OK + b"X-A: a\r\n" * 2_000 + b"\r\n"),                                615, "the headers are over the bounds: more than 1,000 lines, or 256 KiB"),
]  # fmt: skip
LIMITS = f"{FAST}RETRY_TIMES = 0\nDOWNLOAD_MAXSIZE = 4096\n"


@pytest.mark.parametrize("store", ["sqlite", "redis"])
def test_each_error_has_its_detail_until_it_answers_again(project: MakeProject, store: str) -> None:
    site = Site({"/robots.txt": text(""), "/": page("Home", links=[path for path, *_ in TABLE])})
    site.update({path: answer for path, answer, *_ in TABLE})
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=LIMITS))
        if store == "redis":
            shared(demo)
        run = demo.crawl("demo").succeeded()
        listed = [json.loads(line) for line in demo.scrapy("urls", "demo", "--json").succeeded().stdout.splitlines()]
        found = {one["url"]: (one["status"], one["detail"]) for one in listed}
        for path, _, code, told in TABLE:
            status, detail = found[server.url(path)]
            assert (status, told in detail) == (code, True), (path, status, detail)
        assert found[server.url("/")] == (200, None)
        assert f"    615: {server.url('')}" in run.stderr, "an example in the summary"
        explained = " ".join(demo.scrapy("explain", "demo", server.url("/reset")).succeeded().stdout.split())
        assert "the connection was reset before the answer was complete" in explained

        site["/reset"], site["/closed"] = page("Again", text="an answer"), drop(reset=True)
        demo.scrapy("recrawl", "demo", server.url("/reset"), server.url("/closed")).succeeded()
        demo.crawl("demo").succeeded()
        listed = [json.loads(line) for line in demo.scrapy("urls", "demo", "--json").succeeded().stdout.splitlines()]
        now = {one["url"]: (one["status"], one["detail"]) for one in listed}
        assert now[server.url("/reset")] == (200, None)
        assert now[server.url("/closed")] == (612, "the connection was reset before the answer was complete")
        examples = json.loads(demo.scrapy("status", "demo", "--json").succeeded().stdout)["errors"]
        assert {one["status"] for one in examples} == {611, 612, 615}
