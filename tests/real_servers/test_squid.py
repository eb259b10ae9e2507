"""A collection that is crawled through a real Squid with a log-in, one of its sites directly; and what comes of its refusals and its end."""

from __future__ import annotations

import json
import ssl
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.certificates import authority
from tests.conftest import MakeProject, Project, assert_same
from tests.integration.stored import FAST, indexed, make_due, statuses
from tests.real_servers.squid import PASSWORD, USER, squid
from tests.sites import Site, page, serve, text

HOSTS = ("wiki.invalid", "secure.invalid", "denied.invalid", "away.invalid")
RULES = "allow domain *.invalid\nallow domain 127.0.0.2\nforbid domain *\n"
AGAIN = ("-s", "CRAWLSPACE_REFRESH_MIN=1s", "-s", "CRAWLSPACE_REFRESH_MAX=1s", "-s", "CRAWLSPACE_START_REFRESH=1s")


def demo(project: MakeProject, starts: list[str], url: str, settings: str = "") -> Project:
    proxy = json.dumps({"url": url, "user": USER, "password": "env:SQUID_PASSWORD"})
    own = (
        f"ROBOTSTXT_OBEY = True\nRETRY_TIMES = 0\nCRAWLSPACE_ARCHIVE = True\nDOWNLOAD_TIMEOUT = 20\nCRAWLSPACE_PROXY = {proxy}\n"
    )
    return project(
        {"demo/start_urls.txt": "\n".join(starts), "demo/crawl.rules": RULES, "demo/settings.py": FAST + own + settings}
    )


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUID_PASSWORD", PASSWORD)


def test_one_collection_through_it_and_one_site_directly(project: MakeProject, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority(tmp_path)[1])
    with ExitStack() as stack:
        direct = stack.enter_context(serve(Site({"/robots.txt": text(""), "/": page("Direct")}), host="127.0.0.2"))
        secure_site = Site({"/robots.txt": text(""), "/": page("Secure", links=["/b"]), "/b": page("B")})
        secure = stack.enter_context(serve(secure_site, tls=context))
        pages = {f"/{number}": page(f"Page {number}", text=str(number)) for number in range(20)}
        site = Site({"/robots.txt": text(""), "/": page("Home", links=[*pages, direct.url()]), **pages})
        wiki = stack.enter_context(serve(site))
        proxy = stack.enter_context(squid(HOSTS))
        starts = [f"http://wiki.invalid:{wiki.port}/", f"https://secure.invalid:{secure.port}/"]
        settings = "CRAWLSPACE_SITES = {'127.0.0.2': {'proxy': 'direct'}}\nDOWNLOAD_VERIFY_CERTIFICATES = False\n"
        made = demo(project, starts, proxy.url, settings)
        run = made.crawl("demo").succeeded()
        log = proxy.log()
    asked = [what for result, what, user in log if user == USER and result.endswith("/200")]
    assert_same([what for what in asked if what.startswith("GET")], [f"GET {starts[0].removesuffix('/')}{path}" for path in site])
    assert {what for what in asked if what.startswith("CONNECT")} == {f"CONNECT secure.invalid:{secure.port}"}
    assert_same(wiki.paths(), list(site))
    assert_same(secure.paths(), list(secure_site))
    assert_same(direct.paths(), ["/robots.txt", "/"])
    assert {"via" in request.headers for request in wiki.requests} == {True}
    assert {"via" in request.headers for request in direct.requests} == {False}
    for server in (wiki, secure, direct):
        assert not any("proxy-authorization" in request.headers for request in server.requests)
    assert wiki.connections < len(wiki.requests), "connections are kept"
    assert PASSWORD not in run.stdout + run.stderr
    assert not any(PASSWORD.encode() in file.read_bytes() for file in made.data.rglob("*") if file.is_file())
    assert set(statuses(made).values()) == {200}


def test_what_it_refuses_deletes_nothing(project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority(tmp_path)[1])
    with ExitStack() as stack:
        wiki = stack.enter_context(serve(Site({"/": page("Home", text="home")})))
        secure = stack.enter_context(serve(Site({"/": page("Secure", text="secure")}), tls=context))
        proxy = stack.enter_context(squid(HOSTS))
        ports = (("http", "denied", wiki.port), ("https", "denied", secure.port), ("http", "away", 1), ("https", "away", 1))
        refused = [f"{scheme}://{name}.invalid:{port}/" for scheme, name, port in ports]
        starts = [f"http://wiki.invalid:{wiki.port}/", f"https://secure.invalid:{secure.port}/", *refused]
        made = demo(project, starts, proxy.url, "DOWNLOAD_VERIFY_CERTIFICATES = False\nROBOTSTXT_OBEY = False\n")
        run = made.crawl("demo")
        found = statuses(made)
        assert [found.get(url, found.get("/")) for url in starts] == [200, 200, 618, 618, 618, 618]
        assert len(indexed(made)) == 2
        named = f"the proxy {proxy.url} (CRAWLSPACE_PROXY)"
        for url, sentence in zip(refused, ["refuses requests to"] * 2 + ["does not reach"] * 2, strict=True):
            assert f"{named} {sentence} {url.split('/')[2]} (" in run.stderr, run.stderr
        monkeypatch.setenv("SQUID_PASSWORD", "wrong")
        make_due(made)
        run = made.crawl("demo", *AGAIN)
        assert (
            f"the proxy {proxy.url} asks for a log-in (407): set or correct the user and password of CRAWLSPACE_PROXY"
            in run.stderr
        )
        assert set(statuses(made).values()) == {618}
        monkeypatch.setenv("SQUID_PASSWORD", PASSWORD)
        proxy.end()
        make_due(made)
        run = made.crawl("demo", *AGAIN)
        assert (
            f"the proxy {proxy.url} cannot be reached (connection refused): start it, or correct CRAWLSPACE_PROXY" in run.stderr
        )
        assert run.returncode == 1
        assert len(indexed(made)) == 2
    assert "Traceback" not in run.stderr
