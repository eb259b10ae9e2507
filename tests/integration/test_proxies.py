"""Crawls through a forward proxy: everything of a site goes through it, its log-in goes to nobody else, and its failures delete nothing."""

from __future__ import annotations

import base64
import json
import ssl
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.certificates import authority
from tests.conftest import MakeProject, Project, assert_same
from tests.door import PASSWORD as DOOR_PASSWORD
from tests.door import Door
from tests.forward_proxy import CUT, ForwardProxy, forward_proxy, refusal
from tests.integration.stored import FAST, indexed, make_due, shared, statuses
from tests.quick import some
from tests.sites import Server, Site, page, redirect, serve, text

LOGIN = "crawler:s3cret of the proxy"
AUTHORIZATION = f"Basic {base64.b64encode(LOGIN.encode()).decode()}"
SECRETS = ("s3cret", AUTHORIZATION.split()[1])
SETTINGS = FAST + "ROBOTSTXT_OBEY = True\nCRAWLSPACE_ARCHIVE = True\nRETRY_TIMES = 0\n"
RULES = "allow domain wiki.invalid\nallow domain other.invalid\nallow domain 127.0.0.*\nforbid domain *\n"


def demo(project: MakeProject, start: str, settings: str, *, rules: str = RULES) -> Project:
    return project({"demo/start_urls.txt": start, "demo/crawl.rules": rules, "demo/settings.py": SETTINGS + settings})


def proxy_setting(proxy: ForwardProxy) -> str:
    return json.dumps({"url": proxy.url, "user": "crawler", "password": "env:PROXY_PASSWORD"})


def assert_no_secret(made: Project, *texts: str) -> None:
    """Look for the log-in of the proxy in what was printed, and in all files of the project but its settings."""
    for text_shown in texts:
        assert not any(secret in text_shown for secret in SECRETS)
    for file in made.data.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert not any(secret.encode() in content for secret in SECRETS), file


def assert_kept_from(server: Server) -> None:
    for request in server.requests:
        assert "proxy-authorization" not in request.headers, request
        assert not any(secret in value for value in request.headers.values() for secret in SECRETS)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXY_PASSWORD", LOGIN.partition(":")[2])
    monkeypatch.setenv("WIKI_PASSWORD", DOOR_PASSWORD)


@pytest.mark.parametrize("on_redis", [False, True])
def test_a_site_is_crawled_through_the_proxy_of_its_collection_but_not_another_one(
    project: MakeProject, *, on_redis: bool
) -> None:
    pages = {"/robots.txt": text(""), "/a": page("A"), "/moved": redirect("http://other.invalid/target")}
    with ExitStack() as stack:
        direct = stack.enter_context(serve(Site({"/d": page("Direct")}), host="127.0.0.2"))
        wiki = stack.enter_context(serve(Site({"/": page("Home", links=["/a", "/moved", direct.url("/d")]), **pages})))
        other = stack.enter_context(serve(Site({"/target": page("Target")}), host="127.0.0.3"))
        hosts = {"wiki.invalid:80": wiki.netloc, "other.invalid:80": other.netloc}
        proxy = stack.enter_context(forward_proxy(hosts, login=LOGIN))
        second = stack.enter_context(forward_proxy(hosts))
        made = demo(
            project,
            "http://wiki.invalid/",
            f"CRAWLSPACE_PROXY = {proxy_setting(proxy)}\nCRAWLSPACE_NO_PROXY = '127.0.0.2'\n"
            f"CRAWLSPACE_SITES = {{'other.invalid': {{'proxy': {second.url!r}}}}}\nLOG_LEVEL = 'DEBUG'\n",
        )
        if on_redis:
            shared(made)
        run = made.crawl("demo").succeeded()
        shown = [made.scrapy("explain", "demo", f"http://{host}/") for host in ("wiki.invalid", "other.invalid", direct.netloc)]
        shown += [made.scrapy(*command) for command in (("status", "demo", "--json"), ("lint", "demo"), ("urls", "demo"))]
    assert_same(proxy.targets(), [f"http://wiki.invalid/{path}" for path in ("robots.txt", "", "a", "moved")])
    assert_same(second.targets(), ["http://other.invalid/robots.txt", "http://other.invalid/target"])
    assert_same(direct.paths(), ["/robots.txt", "/d"])
    assert {asked.headers.get("proxy-authorization") for asked in proxy.asked} == {AUTHORIZATION}
    assert {asked.headers.get("proxy-authorization") for asked in second.asked} == {None}
    for server in (wiki, other, direct):
        assert_kept_from(server)
    lines = [" ".join(one.stdout.split()) for one in shown[:3]]
    assert f"proxy {proxy.url} (CRAWLSPACE_PROXY)" in lines[0]
    assert f"proxy {second.url} (CRAWLSPACE_SITES['other.invalid']['proxy'])" in lines[1]
    assert "proxy" not in lines[2]
    assert_no_secret(made, run.stdout, run.stderr, *(one.stdout + one.stderr for one in shown))


@pytest.mark.parametrize("of_proxy", ["http", "https"])
def test_tls_through_the_proxy(project: MakeProject, tmp_path: Path, *, of_proxy: str) -> None:
    """The certificate of a proxy that speaks TLS itself is checked, as that of the site below it is."""
    authority_file, server_file = authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server_file)
    site = Site({"/robots.txt": text(""), "/": page("Home", links=["/a", "http://wiki.invalid/"]), "/a": page("A")})
    with ExitStack() as stack:
        secure = stack.enter_context(serve(site, tls=context))
        plain = stack.enter_context(serve(Site({"/": page("Plain")})))
        tls = context if of_proxy == "https" else None
        proxy = stack.enter_context(forward_proxy({"wiki.invalid:80": plain.netloc}, login=LOGIN, tls=tls))
        sites = {"127.0.0.1": {"ca_file": str(authority_file)}}
        made = demo(project, secure.url(), f"CRAWLSPACE_PROXY = {proxy_setting(proxy)}\nCRAWLSPACE_SITES = {sites}\n")
        run = made.crawl("demo").succeeded()
        assert_same(secure.paths(), ["/robots.txt", "/", "/a"])
        found = statuses(made)
        made.write({"demo/settings.py": (made.collections / "demo/settings.py").read_text() + "CRAWLSPACE_SITES = {}\n"})
        untrusted = made.crawl("demo", "-s", "CRAWLSPACE_REFRESH_MIN=1s", "-s", "CRAWLSPACE_REFRESH_MAX=1s")
    assert found == {"/": 200, "/a": 200, "http://wiki.invalid/": 200}
    assert {asked.target for asked in proxy.asked if asked.method == "CONNECT"} == {secure.netloc}
    assert {asked.headers.get("proxy-authorization") for asked in proxy.asked} == {AUTHORIZATION}
    for server in (secure, plain):
        assert_kept_from(server)
    assert_no_secret(made, run.stderr, untrusted.stderr)


OWN = """\
from scrapy import Request
from spiders.collection import CollectionSpider


class Demo(CollectionSpider):
    name = "demo"

    def parse(self, response):
        yield Request(response.urljoin("/moved-data"), callback=self.data, meta=response.meta)
        yield Request("http://wiki.invalid/own", callback=self.data, meta={"proxy": %r})
        yield Request(%r, callback=self.data, meta={"proxy": None})

    def data(self, response):
        yield {"data": response.text}
"""


def test_a_log_in_over_tls_in_tls(project: MakeProject, tmp_path: Path) -> None:
    """To a site and to a proxy that both speak TLS, with certificates of one authority."""
    authority_file, server_file = authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(server_file)
    with serve(Door({"/": page("Home")}).site, tls=context) as wiki, forward_proxy(login=LOGIN, tls=context) as proxy:
        log_in = {"type": "form", "url": wiki.url("/login"), "fields": {"user": "crawler", "password": "env:WIKI_PASSWORD"}}
        site = {"login": log_in, "ca_file": str(authority_file)}
        made = demo(
            project, wiki.url(), f"CRAWLSPACE_PROXY = {proxy_setting(proxy)}\nCRAWLSPACE_SITES = {{'127.0.0.1': {site}}}\n"
        )
        tried = made.scrapy("login", "demo", wiki.url()).succeeded()
        run = made.crawl("demo").succeeded()
        assert statuses(made) == {"/": 200}
        assert {(asked.method, asked.target) for asked in proxy.asked} == {("CONNECT", wiki.netloc)}
        assert_kept_from(wiki)
        proxy.login = "crawler:another"
        refused = made.scrapy("login", "demo", wiki.url())
    assert (
        f"the proxy {proxy.url} asks for a log-in (407): set or correct the user and password of CRAWLSPACE_PROXY"
        in refused.stdout
    )
    assert_no_secret(made, tried.stdout + tried.stderr, run.stderr, refused.stdout + refused.stderr)


def test_requests_of_a_spiders_own(project: MakeProject, tmp_path: Path) -> None:
    """The proxy that a request names goes first; one that was redirected, or made of another, goes through that of its own site."""
    with ExitStack() as stack:
        direct = stack.enter_context(serve(Site({"/data": text("direct")}), host="127.0.0.2"))
        site = Site(
            {"/": page("Home"), "/moved-data": redirect(direct.url("/data")), "/own": text("own"), "/robots.txt": text("")}
        )
        wiki = stack.enter_context(serve(site))
        proxy = stack.enter_context(forward_proxy({"wiki.invalid:80": wiki.netloc}, login=LOGIN))
        own = stack.enter_context(forward_proxy({"wiki.invalid:80": wiki.netloc}))
        settings = f"CRAWLSPACE_PROXY = {proxy_setting(proxy)}\nCRAWLSPACE_NO_PROXY = ['127.0.0.2']\nSPIDER_MODULES = ['own_of_proxies']\n"
        made = demo(project, "http://wiki.invalid/", settings)
        (tmp_path / "own_of_proxies.py").write_text(OWN % (own.url, wiki.url("/own")))
        made.env["PYTHONPATH"] = str(tmp_path)
        made.scrapy("crawl", "demo", "-s", "SPIDER_MODULES=own_of_proxies").succeeded()
    through = [f"http://wiki.invalid/{path}" for path in ("robots.txt", "", "moved-data")]
    assert_same(proxy.targets(), [*through, wiki.url("/robots.txt")])  # which the spider's code does not ask for
    assert_same(own.targets(), ["http://wiki.invalid/own"])
    assert direct.paths().count("/data") == 1
    assert wiki.paths().count("/own") == 2
    for server in (wiki, direct):
        assert_kept_from(server)
    assert {asked.headers.get("proxy-authorization") for asked in own.asked} == {None}


def test_a_log_in_goes_through_the_proxy(project: MakeProject) -> None:
    door = Door({"/": page("Home", links=["/a"]), "/a": page("A")})
    log_in = {
        "type": "form",
        "url": "http://wiki.invalid/login",
        "fields": {"user": "crawler", "password": "env:WIKI_PASSWORD"},
        "logged_out": {"redirect": "http://wiki.invalid/login", "text": "Please log in"},
    }
    with ExitStack() as stack:
        wiki = stack.enter_context(serve(door.site))
        proxy = stack.enter_context(forward_proxy({"wiki.invalid:80": wiki.netloc}, login=LOGIN))
        site = {
            "login": log_in,
            "allow_plain_http": True,
            "proxy": {"url": proxy.url, "user": "crawler", "password": "env:PROXY_PASSWORD"},
        }
        made = demo(project, "http://wiki.invalid/", f"CRAWLSPACE_SITES = {{'wiki.invalid': {site}}}\n")
        tried = made.scrapy("login", "demo", "wiki.invalid").succeeded()
        run = made.crawl("demo").succeeded()
        assert statuses(made) == {"/": 200, "/a": 200}
        assert len(proxy.asked) == len(wiki.requests)
        assert_kept_from(wiki)
        assert {asked.headers.get("proxy-authorization") for asked in proxy.asked} == {AUTHORIZATION}
        proxy.login = "crawler:another"
        refused = made.scrapy("login", "demo", "wiki.invalid")
        proxy.hosts = {"wiki.invalid:80": "127.0.0.1:1"}
        proxy.login = LOGIN
        without = made.scrapy("login", "demo", "wiki.invalid")
    assert refused.returncode == without.returncode == 1
    where = "CRAWLSPACE_SITES['wiki.invalid']['proxy']"
    assert f"the proxy {proxy.url} asks for a log-in (407): set or correct the user and password of {where}" in refused.stdout
    assert f"the proxy {proxy.url} ({where}) does not reach wiki.invalid (502)" in without.stdout
    assert_no_secret(made, tried.stdout, run.stderr, refused.stdout + refused.stderr, without.stdout + without.stderr)


FAULTS: list[tuple[str, bytes, str]] = [
    # scheme of the site, what the proxy answers, what is told
    ("http",  refusal(407, {}),                                         "asks for a log-in (407): set or correct the user and password of CRAWLSPACE_PROXY"),
    ("http",  refusal(403, {"X-Squid-Error": "ERR_ACCESS_DENIED 0"}),   "(CRAWLSPACE_PROXY) refuses requests to {site} (403): have it allow the site"),
    ("http",  refusal(404, {"Proxy-Status": "p; error=destination_not_found"}), "(CRAWLSPACE_PROXY) refuses requests to {site} (404)"),
    ("http",  refusal(502, {}),                                         "(CRAWLSPACE_PROXY) does not reach {site} (502)"),
    ("http",  CUT,                                                      "(CRAWLSPACE_PROXY) has cut the connection"),
    ("http",  b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n<p>",      "(CRAWLSPACE_PROXY) has cut the connection"),
    ("https", refusal(407, {}),                                         "asks for a log-in (407): set or correct the user and password of CRAWLSPACE_PROXY"),
    ("https", refusal(403, {}),                                         "(CRAWLSPACE_PROXY) refuses requests to {site} (403): have it allow the site"),
    ("https", refusal(503, {}),                                         "(CRAWLSPACE_PROXY) does not reach {site} (503)"),
    ("https", b"SSH-2.0-OpenSSH\r\n\r\n",                               "does not answer as one: correct CRAWLSPACE_PROXY"),
    ("https", CUT,                                                      "cannot be reached (the connection was lost): start it, or correct CRAWLSPACE_PROXY"),
]  # fmt: skip
AGAIN = ("-s", "CRAWLSPACE_REFRESH_MIN=1s", "-s", "CRAWLSPACE_REFRESH_MAX=1s", "-s", "CRAWLSPACE_START_REFRESH=1s")


@pytest.mark.parametrize(("scheme", "fault", "sentence"), some(FAULTS, 1))
def test_a_proxy_that_fails_deletes_nothing(
    project: MakeProject, tmp_path: Path, scheme: str, fault: bytes, sentence: str
) -> None:
    """Neither where it fails for all, nor where it fails for one page only, run by run, while the others come."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority(tmp_path)[1])
    links = [f"/{number}" for number in range(4)]
    site = Site({"/": page("Home", links=links), **{link: page(f"Page {link}", text=link) for link in links}})
    with serve(site, tls=context if scheme == "https" else None) as server, forward_proxy() as proxy:
        settings = (
            f"CRAWLSPACE_PROXY = {proxy.url!r}\nDOWNLOAD_VERIFY_CERTIFICATES = False\nCRAWLSPACE_MAX_TEMPORARY_ERRORS = 1\n"
        )
        made = demo(project, server.url(), settings)
        made.crawl("demo").succeeded()
        assert len(indexed(made)) == 5
        if scheme == "http":
            proxy.fault = lambda asked: fault if asked.target.endswith("/2") else None
            for _ in range(3):
                make_due(made)
                made.crawl("demo", *AGAIN)
            assert statuses(made)["/2"] == 618
            assert statuses(made)["/1"] == 200
            assert len(indexed(made)) == 5
        proxy.fault = lambda asked: fault
        make_due(made)
        made.crawl("demo", *AGAIN)
        make_due(made)
        run = made.crawl("demo", *AGAIN)
        assert len(indexed(made)) == 5
        told = sentence.replace("{site}", server.netloc)
        assert f"the proxy {proxy.url} {told}" in run.stderr, run.stderr
        shown = json.loads(made.scrapy("status", "demo", "--json").stdout)
        assert not any(site["held"] for site in shown["unreachable"])
        proxy.fault = lambda asked: None
        make_due(made)
        made.crawl("demo", *AGAIN).succeeded()
        assert set(statuses(made).values()) == {200}
    assert "Traceback" not in run.stderr


def test_a_proxy_that_is_not_there(project: MakeProject) -> None:
    with serve(Site({"/": page("Home")})) as server, forward_proxy() as proxy:
        pass
    made = demo(project, "http://wiki.invalid/", f"CRAWLSPACE_PROXY = {proxy.url!r}\n")
    run = made.crawl("demo")
    assert run.returncode == 1
    assert f"the proxy {proxy.url} cannot be reached (connection refused): start it, or correct CRAWLSPACE_PROXY" in run.stderr
    made.write({"demo/settings.py": SETTINGS + "CRAWLSPACE_PROXY = 'http://no-such-proxy.invalid:3128'\n"})
    run = made.crawl("demo")
    assert "the proxy http://no-such-proxy.invalid:3128 cannot be reached (its name cannot be looked up)" in run.stderr
    made.write({"demo/settings.py": SETTINGS + "CRAWLSPACE_PROXY = 'env:NO_SUCH_VARIABLE'\n"})
    run = made.crawl("demo")
    assert run.returncode == 1
    assert "CRAWLSPACE_PROXY is env:NO_SUCH_VARIABLE, and the environment has no variable NO_SUCH_VARIABLE; set it" in run.stderr
    assert "Traceback" not in run.stderr
    assert server.requests == []
