"""The client of a server, as a crawl uses it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from crawlspace.document import Document, IndexOrder, Op
from crawlspace.errors import IndexUnavailable
from crawlspace.index.json_client import Client, Connection
from tests.certificates import authority
from tests.contract.sinks import OrderReceiver
from tests.fault_proxy import FaultProxy, answers
from tests.search_server import sink_of
from tests.unit.index.faulty import push


def test_it_is_closed_where_a_loop_runs(tmp_path: Path) -> None:
    """A crawl sends on other threads, and closes its sinks on that of its loop."""

    async def crawl() -> None:
        order = IndexOrder(1, Op.PUSH, "http://a.example/", Document("http://a.example/"), version=1)
        await asyncio.to_thread(sink.send, [order])
        sink.close()

    with closing(OrderReceiver()) as receiver:
        sink = sink_of(tmp_path, {"type": "http", "url": receiver.url})
        asyncio.run(crawl())
        assert receiver.orders.get("http://a.example/") is not None


def test_a_large_body_is_sent_in_parts() -> None:
    """aiohttp warns of one that is sent as a whole, and warnings are errors here."""
    body = {"query": "word " * 1_000_000}
    with closing(OrderReceiver()) as receiver, closing(Client(Connection(receiver.url, {}, 60))) as client:
        receiver.answers = [(202, "{}")]
        assert client.run(client.request("POST", "", body=body)).status == 202
        ((headers, received),) = receiver.requests
    assert json.loads(received) == body
    assert headers["Content-Length"] == str(len(received))


# Whether the server speaks TLS; what its URL is changed to; options; what is reported.
CONNECTIONS: list[tuple[bool, tuple[str, str], Mapping[str, object], str]] = [
    (True, ("", ""), {}, 'URL shows a certificate that is not trusted: unable to get local issuer certificate; if it is yours, name the authority, as in "ca_file": "/etc/ssl/our-ca.pem"'),
    (True, ("127.0.0.1", "localhost"), {"ca_file": "CA"}, "URL shows a certificate of another host: Hostname mismatch, certificate is not valid for 'localhost'; name it in its URL as its certificate does"),
    (False, ("http:", "https:"), {}, "URL does not speak TLS as it should (WRONG_VERSION_NUMBER): is it http:// there?"),
    (True, ("https:", "http:"), {}, "URL cannot be reached: it closed the connection without an answer; if it accepts https only, use https:// in its URL"),
]  # fmt: skip


@pytest.mark.parametrize(("has_tls", "change", "options", "reported"), CONNECTIONS)
def test_what_is_wrong_with_a_connection(
    tmp_path: Path, change: tuple[str, str], options: Mapping[str, object], reported: str, *, has_tls: bool
) -> None:
    ca_file, certificate = authority(tmp_path)
    with closing(FaultProxy("http://127.0.0.1:9", certificate=certificate if has_tls else None)) as proxy:
        proxy.beside = answers(200, {"version": {"number": "2.19.1", "distribution": "opensearch"}})
        url = proxy.url.replace(*change)
        own = {name: str(ca_file) for name in options}
        with (
            closing(sink_of(tmp_path, {"type": "opensearch", "url": url, "index": "x", **own})) as sink,
            pytest.raises(IndexUnavailable) as raised,
        ):
            sink.send([push("a", 1)])
    assert str(raised.value).startswith(reported.replace("URL", url, 1))
    assert "_ssl.c" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "reported"), [("http://127.0.0.1:9", "Connection refused"), ("http://no.invalid", "its name cannot be resolved (")]
)
def test_what_is_wrong_with_an_address(tmp_path: Path, url: str, reported: str) -> None:
    with (
        closing(sink_of(tmp_path, {"type": "opensearch", "url": url, "index": "x"})) as sink,
        pytest.raises(IndexUnavailable) as raised,
    ):
        sink.send([push("a", 1)])
    assert str(raised.value).startswith(f"{url} cannot be reached: {reported}")
