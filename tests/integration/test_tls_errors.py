"""Certificates and handshakes that are not accepted: what an administrator reads of each, and where."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.certificates import DAY, Authority, certificate
from tests.conftest import MakeProject
from tests.integration.stored import FAST, collection
from tests.sites import Site, page, serve

ROOT, UNKNOWN = Authority("The root"), Authority("Nobody knows me")
BETWEEN = Authority("Between", issuer=ROOT)


def with_key(file: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


def old(folder: Path) -> ssl.SSLContext:
    context = with_key(ROOT.issue(folder / "old.pem"))
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    return context


def asking(folder: Path) -> ssl.SSLContext:
    context = with_key(ROOT.issue(folder / "asking.pem"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificate(folder / "trusted.pem"))
    return context


@contextmanager
def handshakes(tls: ssl.SSLContext | None) -> Iterator[str]:
    """Serve the handshake alone, with its alerts: asyncio closes the connection without sending them. Yields host and port.

    Without a context connections are closed.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, suppress(OSError):
                    if tls is not None:
                        tls.wrap_socket(connection, server_side=True)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(60)


def from_now(date: datetime) -> timedelta:
    return date - datetime.now(UTC)


PAST, FUTURE = datetime(2020, 2, 1, 12, 30, tzinfo=UTC), datetime(2090, 2, 1, 12, 30, tzinfo=UTC)
Served = Callable[[Path], "ssl.SSLContext | None"]
# what is served -> parts of what is told of it
TABLE: list[tuple[str, Served, tuple[str, ...]]] = [
    (
        "expired",
        lambda folder: with_key(ROOT.issue(folder / "1.pem", begins=from_now(PAST) - DAY, ends=from_now(PAST))),
        ("the certificate expired on 2020-02-01 12:", "(for 127.0.0.1, issued by The root): the site must renew it"),
    ),
    (
        "not yet valid",
        lambda folder: with_key(ROOT.issue(folder / "2.pem", begins=from_now(FUTURE), ends=from_now(FUTURE) + DAY)),
        ("the certificate is not valid yet, but from 2090-02-01 12:", "or the clock of this machine is wrong"),
    ),
    (
        "self-signed",
        lambda folder: with_key(certificate(folder / "3.pem")),
        ("the certificate is self-signed: 'ca_file' in CRAWLSPACE_SITES can trust it",),
    ),
    (
        "unknown issuer",
        lambda folder: with_key(UNKNOWN.issue(folder / "4.pem")),
        ("the certificate is of an unknown issuer (for 127.0.0.1, issued by Nobody knows me)",),
    ),
    (
        "without its intermediate certificate",
        lambda folder: with_key(BETWEEN.issue(folder / "5.pem")),
        ("issued by Between): 'ca_file' in CRAWLSPACE_SITES can trust it, or the server does not send its intermediate",),
    ),
    (
        "for another name",
        lambda folder: with_key(ROOT.issue(folder / "6.pem", name="www.other.example")),
        ("the certificate is for www.other.example, not for 127.0.0.1",),
    ),
    ("an old version of TLS", old, ("the server speaks only an old version of TLS", "DOWNLOAD_TLS_MIN_VERSION can allow it")),
    ("no TLS", lambda _: None, ("the server does not speak TLS at this port", "the URL may be one of http")),
    ("a certificate of the client wanted", asking, ("the server asks for a certificate of the client",)),
]


def test_each_fault_of_tls_has_its_own_words(project: MakeProject, tmp_path: Path) -> None:
    trusted = tmp_path / "root.pem"
    trusted.write_bytes(ROOT.pem())
    with ExitStack() as stack:
        served: dict[str, str] = {}
        for what, make, _ in [*TABLE, ("good", lambda folder: with_key(ROOT.issue(folder / "good.pem")), ())]:
            tls = make(tmp_path)
            if tls is not None and make in (old, asking):
                served[what] = stack.enter_context(handshakes(tls))
            else:
                served[what] = stack.enter_context(serve(Site({"/": page("Home")}), tls=tls)).netloc
        urls = {what: f"https://{netloc}/" for what, netloc in served.items()}
        sites = {netloc: {"ca_file": str(trusted)} for netloc in served.values()}
        demo = project(
            {
                "demo/start_urls.txt": "\n".join(urls.values()),
                "demo/crawl.rules": "allow address 127.0.0.0/8",
                "demo/settings.py": f"{FAST}RETRY_TIMES = 0\nROBOTSTXT_OBEY = False\nCRAWLSPACE_SITES = {sites!r}\n",
            }
        )
        run = demo.crawl("demo").succeeded()
    listed = [json.loads(line) for line in demo.scrapy("urls", "demo", "--format", "jsonl").succeeded().stdout.splitlines()]
    found = {one["url"]: (one["status"], one["detail"]) for one in listed}
    status = demo.scrapy("status", "demo").succeeded().stdout
    for what, _, parts in TABLE:
        code, detail = found[urls[what]]
        assert code == 614, (what, code, detail)
        assert all(part in detail for part in parts), (what, detail)
        assert len(detail) <= 300, what
        explained = demo.scrapy("explain", "demo", urls[what]).stdout if what in ("expired", "for another name") else ""
        for text_of in (run.stderr, *([" ".join(explained.split())] if explained else [])):
            assert parts[0] in text_of, (what, text_of)
    assert found[urls["good"]] == (200, None)
    assert "the certificate expired on" in " ".join(status.split()), "examples of what fails"
    csv = demo.scrapy("urls", "demo", "--format", "csv", "--status", "614").succeeded().stdout
    assert csv.splitlines()[0].split(",")[-1] == "detail"
    assert "is self-signed" in csv


@pytest.mark.parametrize("obeys_robots", [False, True])
def test_a_server_that_closes_in_the_handshake_may_not_speak_tls(project: MakeProject, obeys_robots: bool) -> None:
    with handshakes(None) as netloc:
        settings = f"{FAST}RETRY_TIMES = 0\nROBOTSTXT_OBEY = {obeys_robots}\n"
        demo = project(collection(f"https://{netloc}/", settings=settings))
        run = demo.crawl("demo")
    told = "the server closed the connection without answering the TLS handshake: it may not speak TLS at this port"
    assert f"no start site could be reached: {netloc} ({told}" in run.stderr
