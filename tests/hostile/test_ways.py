"""The same over TLS and through proxies, and what is asked to wait for thirty thousand years."""

from __future__ import annotations

import ssl
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from crawlspace.model import State
from tests.certificates import certificate
from tests.conftest import MakeProject
from tests.hostile.replies import OK, Raw, chunked
from tests.http import Reply
from tests.integration.stored import opened
from tests.sites import Site, page, serve, status

ENDLESS = Raw(OK, b"X-A: a\r\n" * 100)
FOLDED = Raw(OK + b"X-A: a\r\n", b" a\r\n" * 100)
WAY_ROWS: list[tuple[str, Reply, State, int]] = [
    # URL, as a proxy is asked for it or below the TLS server, what the server or the proxy does, state, status
    ("/page",                        page("Page"),                                                                  State.DONE,   200),
    ("/headers-endless",             ENDLESS,                                                                       State.GONE,   615),
    ("/headers-folded",              FOLDED,                                                                        State.GONE,   615),
    ("/trailers-endless",            chunked(b"1\r\na\r\n0\r\n", endless=b"X-A: a\r\n" * 100),                      State.GONE,   615),
    ("http://plain.invalid/",        page("Through the proxy"),                                                     State.DONE,   200),
    ("http://endless.invalid/",      ENDLESS,                                                                       State.GONE,   615),
    ("https://endless.invalid/",     ENDLESS,                                                                       State.GONE,   615),
    ("https://folded.invalid/",      FOLDED,                                                                        State.FAILED, 618),
    ("https://one-line.invalid/",    Raw(OK + b"X-A: ", b"a" * 65_536),                                             State.FAILED, 618),
    ("https://refused.invalid/",     status(403, body="no"),                                                        State.FAILED, 618),
    ("https://no-http.invalid/",     Raw(b"SSH-2.0-OpenSSH\r\n\r\n"),                                               State.FAILED, 618),
]  # fmt: skip
SETTINGS = """
DOWNLOAD_DELAY = 0
DOWNLOAD_TIMEOUT = 3600
DOWNLOAD_VERIFY_CERTIFICATES = False
ROBOTSTXT_OBEY = False
RETRY_TIMES = 0
MEMUSAGE_LIMIT_MB = 300
MEMUSAGE_CHECK_INTERVAL_SECONDS = 0.2
"""


@pytest.mark.full
def test_over_tls_and_through_proxies(project: MakeProject, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path / "certificate.pem"))
    with ExitStack() as stack:
        secure = stack.enter_context(serve(Site({}), tls=context))
        proxy = stack.enter_context(serve(Site({})))
        urls = {}
        for url, answer, *_ in WAY_ROWS:
            if url.startswith("/"):
                secure.site[url] = answer
                urls[url] = secure.url(url)
            else:
                proxy.site[url if url.startswith("http:") else f"{url.split('/')[2]}:443"] = answer
                urls[url] = url
        starts = {"demo/start_urls.txt": "\n".join(urls.values()), "demo/settings.py": SETTINGS}
        made = project(starts | {"demo/crawl.rules": "allow address 127.0.0.0/8\n"})
        address = f"http://{proxy.netloc}"
        made.env.update({"http_proxy": address, "https_proxy": address, "no_proxy": "127.0.0.1"})
        run = made.crawl("demo").succeeded()
        with opened(made) as store:
            known = {state.url: (state.state, state.status) for state in store.urls()}
    assert {url: known[urls[url]] for url in urls} == {url: (state, code) for url, _, state, code in WAY_ROWS}
    assert "Memory usage exceeded" not in run.stderr
    assert "Traceback" not in run.stderr


WAITS = [
    # status and its Retry-After, which a crawl heeds for an hour at most; state
    (503, "1" + "0" * 12,                        State.FAILED),
    (429, "9" * 100_000,                         State.FAILED),
    (503, "Fri, 31 Dec 9999 23:59:59 GMT",       State.FAILED),
    (503, "Fri, 31 Dec 99999999999 23:59:59 GMT", State.GONE),
    (429, "1e12",                                State.FAILED),
]  # fmt: skip


def test_a_wait_has_bounds(project: MakeProject) -> None:
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serve(Site({"/": status(code, headers={"Retry-After": wait})}))) for code, wait, _ in WAITS
        ]
        starts = "\n".join(server.url("/") for server in servers)
        made = project({"demo/start_urls.txt": starts, "demo/settings.py": "DOWNLOAD_DELAY = 0\nRETRY_TIMES = 0\n"})
        made.crawl("demo")
    with opened(made) as store:
        found = {state.url: (state.status, state.state) for state in store.urls()}
        waits = [site.wait_until for site in store.sites() if site.wait_until]
    assert [found[server.url("/")] for server in servers] == [(code, state) for code, _, state in WAITS]
    assert waits
    assert max(waits) <= time.time() + 3_600 + 1  # rounded up
