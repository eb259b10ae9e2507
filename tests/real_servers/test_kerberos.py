"""Log-ins by Kerberos at a real key server, and an Apache that checks the tickets (mod_auth_gssapi)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.certificates import authority
from tests.conftest import MakeProject, Project, assert_same
from tests.integration.stored import FAST, collection, indexed, statuses
from tests.real_servers.kerberos import PASSWORD, REALM, Apache, Realm, apache, expire, free_port, realm, set_clock
from tests.sites import Site, page, serve, status, text

RULES = "allow address 127.0.0.0/8\n"
TLS, PLAIN, FORGOTTEN, REKEYED, OTHER, PUBLIC = (f"127.0.0.{number}" for number in range(1, 7))
"""Hosts. The first four are Apache's; the last one is not known to the key server."""
PAGES = ["/", *(f"/{number}.html" for number in range(20))]
CRAWLER, GUEST = f"crawler@{REALM}", f"guest@{REALM}"
WRONG_KEY = f"AS_REQ PREAUTH_FAILED krbtgt/{REALM}"
DELEGATES = """\
import pycurl, sys
curl = pycurl.Curl()
for name, value in (("URL", sys.argv[1]), ("HTTPAUTH", pycurl.HTTPAUTH_NEGOTIATE), ("USERPWD", ":"), ("WRITEFUNCTION", len)):
    curl.setopt(getattr(pycurl, name), value)
curl.setopt(pycurl.GSSAPI_DELEGATION, pycurl.GSSAPI_DELEGATION_FLAG)
curl.perform()
"""


@dataclass(frozen=True)
class Wiki:
    """An Apache in a realm, whose pages lead to two servers that a test starts: at another host, and at another port."""

    realm: Realm
    apache: Apache
    ca_file: Path
    other: int
    """The port on OTHER."""
    beside: int
    """The other port on TLS."""


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wiki]:
    ca_file, certificate = authority(tmp_path_factory.mktemp("certificates"))
    other, beside = free_port(OTHER), free_port(TLS)
    pages = {path: _page(path, [*PAGES, "/private.html"]) for path in [*PAGES, "/private.html"]}
    away = ["/moved", "/across", f"http://{OTHER}:{other}/linked", f"http://{TLS}:{beside}/"]
    pages |= {"/away.html": _page("/away.html", away), "/robots.txt": "User-agent: *\nDisallow: /private\n"}
    redirects = f'Redirect 302 "/moved" "http://{OTHER}:{other}/"\nRedirect 302 "/across" "http://{TLS}:{beside}/across"'
    hosts = [PLAIN, FORGOTTEN, REKEYED]
    with realm() as made:
        for name in ("crawler", "guest"):
            made.user(name)
        for host in (TLS, *hosts, OTHER):
            made.service(host)
        with apache(made, pages, hosts=hosts, certificate=certificate, redirects=redirects) as server:
            yield Wiki(made, server, ca_file, other, beside)


def _page(title: str, links: list[str]) -> str:
    return f"<title>{title}</title><p>the text of {title}</p>" + "".join(f"<a href='{link}'>{link}</a>" for link in links)


@dataclass
class Person:
    """A ticket cache and a keytab in files that may not be there."""

    realm: Realm
    cache: Path
    keytab: Path

    def fetch(self, name: str) -> None:
        """Have a fresh ticket."""
        self.realm.ticket(name, self.cache)


@pytest.fixture
def person(wiki: Wiki, tmp_path: Path) -> Person:
    wiki.realm.requests()
    wiki.apache.answers()
    return Person(wiki.realm, tmp_path / "tickets", tmp_path / "crawler.keytab")


def settings(wiki: Wiki, url: str, **login: str) -> str:
    place = url.partition("://")[2].partition("/")[0]
    of_scheme = {"ca_file": str(wiki.ca_file)} if url.startswith("https:") else {"allow_plain_http": True}
    entry = {"login": {"type": "negotiate", **login}, **of_scheme}
    return f"{FAST}DOWNLOAD_VERIFY_CERTIFICATES = True\nCRAWLSPACE_SITES = {{{place!r}: {entry!r}}}\n"


def demo(project: MakeProject, wiki: Wiki, url: str, environment: Mapping[str, str], **login: str) -> Project:
    """Return a project with one start URL, its commands in the environment of the realm."""
    made = project(collection(url, rules=RULES, settings=settings(wiki, url, **login)))
    made.env |= {**wiki.realm.environment, **environment}
    return made


@pytest.mark.parametrize(
    ("host", "way"),
    [(TLS, "ticket"), (PLAIN, "ticket"), (TLS, "keytab of the environment"), (TLS, "keytab of the settings")],
)
def test_each_request_carries_a_ticket(project: MakeProject, wiki: Wiki, person: Person, host: str, way: str) -> None:
    """Pages and robots.txt; a keytab of the settings goes before the tickets of who starts the crawl."""
    environment, login = {"KRB5CCNAME": f"FILE:{person.cache}"}, {}
    if way != "keytab of the environment":
        person.fetch("crawler" if way == "ticket" else "guest")
    if way != "ticket":
        person.realm.keytab("crawler", person.keytab)
    if way == "keytab of the settings":
        login = {"keytab": str(person.keytab)}
    if way == "keytab of the environment":
        environment["KRB5_CLIENT_KTNAME"] = f"FILE:{person.keytab}"
    wiki.realm.requests()
    made = demo(project, wiki, wiki.apache.url(host=host), environment, **login)
    made.crawl("demo").succeeded()
    assert_same(indexed(made), PAGES)
    assert statuses(made) == {**dict.fromkeys(PAGES, 200), "/private.html": 740}
    answers = wiki.apache.answers()
    assert {(answer.user, answer.status, answer.address) for answer in answers} == {(CRAWLER, 200, host)}
    assert_same((answer.path for answer in answers), ["/robots.txt", "/index.html", *PAGES[1:]])
    assert any(answer.is_on_kept_connection for answer in answers)
    fetched = [one for one in wiki.realm.requests() if one.startswith("TGS_REQ")]
    assert fetched == [f"TGS_REQ ISSUE HTTP/{host}"], "one ticket for all requests"
    tried = made.scrapy("login", "demo", wiki.apache.url(host=host)).succeeded()
    assert tried.stdout == (
        f"log-in       negotiate log-in (CRAWLSPACE_SITES['{host}:{wiki.apache.url(host=host).split(':')[2].strip('/')}'])\n"
        f"page         {wiki.apache.url(host=host)}\n"
        "answer       status 200, text/html, titled /\n"
    )
    assert [(answer.user, answer.status) for answer in wiki.apache.answers()] == [(CRAWLER, 200)]


def no_key_server(person: Person, made: Project) -> None:
    person.fetch("crawler")
    file = person.cache.with_name("krb5.conf")
    lines = (person.realm.folder / "krb5.conf").read_text().splitlines()
    file.write_text("\n".join("    kdc = 127.0.0.1:1" if "kdc = " in line else line for line in lines))
    made.env["KRB5_CONFIG"] = str(file)


def another_password(person: Person, made: Project) -> None:
    person.realm.keytab("crawler", person.keytab)
    person.realm.administer("change_password -randkey crawler")
    made.env |= {"KRB5_CLIENT_KTNAME": f"FILE:{person.keytab}", "KRB5CCNAME": f"FILE:{person.cache}-none"}


def wrong_clock(person: Person, _: Project) -> None:
    person.fetch("crawler")
    set_clock(person.cache, 3_600)


def forgotten(person: Person, _: Project) -> None:
    person.realm.administer(f"delete_principal -force HTTP/{FORGOTTEN}")
    person.fetch("crawler")


def another_key(person: Person, _: Project) -> None:
    person.realm.administer(f"change_password -randkey HTTP/{REKEYED}")
    person.fetch("crawler")


def as_before(_: Person) -> None:
    """A fresh ticket is all that is needed."""


def password_as_before(person: Person) -> None:
    person.realm.administer(f"change_password -pw {PASSWORD} crawler")


def known_again(person: Person) -> None:
    person.realm.service(FORGOTTEN)


def new_key(person: Person) -> None:
    person.realm.new_key(REKEYED)


MOST = 8
"""Requests in flight at a site, by the settings of a new project."""
WRONG: list[tuple[str, Callable[[Person, Project], object], int, str, Callable[[Person], object]]] = [
    # host, what happens, requests that are sent, what is reported, what helps
    (TLS,   lambda person, _: person.cache.unlink(),          1,    "No Kerberos credentials available (default cache: ", as_before),
    (TLS,   lambda person, _: expire(person.cache),           1,    "Ticket expired", as_before),
    (TLS,   wrong_clock,                                      1,    "Clock skew too great", as_before),
    (PLAIN, lambda person, _: set_clock(person.cache, 3_600), 4 * MOST, "Clock skew too great", as_before),
    (TLS,   no_key_server,                                    1,    f"Cannot contact any KDC for realm '{REALM}'", as_before),
    (TLS,   another_password,                                 1,    "Preauthentication failed", password_as_before),
    (FORGOTTEN, forgotten,                                    MOST, f"Server HTTP/{FORGOTTEN}@{REALM} not found", known_again),
    (REKEYED, another_key,                                    MOST, "Key version is not available", new_key),
]  # fmt: skip
"""The fourth: there is a ticket for the site already, so that the site is who sees the clock. A log-in that fails before a request is
sent stops those in flight; one that fails at the site, or that the site may do without, does not."""
REFUSED = {"old keytab", "unknown service", "old key of the site"}
"""The others are tried again, four times in this run, and by the next one."""
NAMES = ["none", "expired", "clock", "clock at the site", "no key server", "old keytab", "unknown service", "old key of the site"]


@pytest.mark.parametrize(
    ("host", "happens", "most", "reported", "helps", "is_refused"),
    [(*row, name in REFUSED) for row, name in zip(WRONG, NAMES, strict=True)],
    ids=NAMES,
)
def test_a_log_in_that_fails_deletes_nothing(
    project: MakeProject,
    wiki: Wiki,
    person: Person,
    host: str,
    happens: Callable[[Person, Project], object],
    most: int,
    reported: str,
    helps: Callable[[Person], object],
    *,
    is_refused: bool,
) -> None:
    """A refused log-in is not tried again until somebody has tried it; what may pass by itself is, by the next run."""
    person.fetch("crawler")
    url = wiki.apache.url(host=host)
    place = url.partition("://")[2].strip("/")
    made = demo(project, wiki, url, {"KRB5CCNAME": f"FILE:{person.cache}"})
    good = dict(made.env)
    made.crawl("demo").succeeded()
    assert_same(indexed(made), PAGES)
    happens(person, made)
    made.scrapy("recrawl", "demo", "--host", host).succeeded()
    wiki.apache.answers()
    wiki.realm.requests()
    crawled = made.crawl("demo")
    assert crawled.returncode == 1
    why = f"the log-in by Kerberos at {place} fails: {reported}"
    if is_refused:
        assert crawled.stderr.count(f"is refused by {place} ({why}") == 1, crawled.stderr
    else:
        assert f"the URLs of its sites wait for the next run: {why}" in crawled.stderr
        assert "is refused by" not in crawled.stderr
    assert f"demo: {place} waits for its log-in" in crawled.stderr
    assert "Traceback" not in crawled.stderr
    answers = wiki.apache.answers()
    assert {(answer.user, answer.status) for answer in answers} == {("-", 401)}
    assert 1 <= len(answers) <= most
    assert wiki.realm.requests().count(WRONG_KEY) == int(happens is another_password), "a few wrong keys lock an account"
    tried = made.scrapy("login", "demo", url)
    assert (tried.returncode, f"answer       none: {why}" in tried.stdout) == (1, True)
    wiki.apache.answers()
    assert made.crawl("demo").returncode == 1
    assert bool(wiki.apache.answers()) is not is_refused
    assert reported in " ".join(made.scrapy("explain", "demo", url).stdout.split())
    assert_same(indexed(made), PAGES)
    assert {path: statuses(made)[path] for path in PAGES} == dict.fromkeys(PAGES, 200)
    helps(person)
    made.env = good
    person.fetch("crawler")
    if is_refused:
        assert "the next crawl continues with the site" in made.scrapy("login", "demo", url).succeeded().stdout
    wiki.apache.answers()
    made.crawl("demo").succeeded()
    assert_same((answer.path for answer in wiki.apache.answers()), ["/index.html", *PAGES[1:]])
    assert_same(indexed(made), PAGES)


def test_a_user_whom_the_site_does_not_let_in(project: MakeProject, wiki: Wiki, person: Person) -> None:
    """The log-in succeeds, and the answer is 403."""
    person.fetch("crawler")
    url = wiki.apache.url(host=PLAIN)
    made = demo(project, wiki, url, {"KRB5CCNAME": f"FILE:{person.cache}"})
    made.crawl("demo").succeeded()
    person.fetch("guest")
    made.scrapy("recrawl", "demo", "--host", PLAIN).succeeded()
    wiki.apache.answers()
    crawled = made.crawl("demo")
    assert (crawled.returncode, "× 403" in crawled.stderr, "is refused by" in crawled.stderr) == (1, True, False), crawled.stderr
    assert {(answer.user, answer.status) for answer in wiki.apache.answers()} == {(GUEST, 403)}
    assert_same(indexed(made), PAGES)
    tried = made.scrapy("login", "demo", url)
    assert (tried.returncode, "answer       status 403, text/html, titled 403 Forbidden\n" in tried.stdout) == (1, True)


def test_no_other_host_or_port_gets_a_ticket(project: MakeProject, wiki: Wiki, person: Person) -> None:
    """Neither by a link nor by a redirect, though the key server has tickets for the host, and its answer asks for one."""
    person.fetch("crawler")
    wiki.realm.requests()
    url = wiki.apache.url("/away.html")
    asks = status(401, headers={"WWW-Authenticate": "Negotiate"})
    moved = Site({"/robots.txt": asks, "/": asks, "/linked": asks})
    across = Site({"/robots.txt": text(""), "/": asks, "/across": page("Across")})
    with serve(moved, host=OTHER, port=wiki.other) as other, serve(across, host=TLS, port=wiki.beside) as beside:
        made = demo(project, wiki, url, {"KRB5CCNAME": f"FILE:{person.cache}"})
        made.crawl("demo")
        assert_same(other.paths(), list(moved))
        assert_same(beside.paths(), list(across))
        assert {request.headers.get("authorization") for request in (*other.requests, *beside.requests)} == {None}
    assert wiki.realm.requests() == [f"TGS_REQ ISSUE HTTP/{TLS}"]
    paths = ["/robots.txt", "/away.html", "/moved", "/across"]
    assert_same((answer.path for answer in wiki.apache.answers()), paths)
    found = statuses(made)
    assert [found[path] for path in paths[1:]] == [200, 302, 302]


def test_a_site_is_not_given_the_ticket_of_the_user(project: MakeProject, wiki: Wiki, person: Person) -> None:
    """Though that may be forwarded, and the key server trusts the site: it is delegated only by who asks libcurl for that."""
    person.fetch("crawler")
    url = wiki.apache.url(host=PLAIN)
    environment = {"KRB5CCNAME": f"FILE:{person.cache}"}
    made = demo(project, wiki, url, environment)
    made.crawl("demo").succeeded()
    made.scrapy("login", "demo", url).succeeded()
    assert wiki.apache.delegated() == []
    delegating = {**os.environ, **wiki.realm.environment, **environment}
    subprocess.run([sys.executable, "-c", DELEGATES, url], env=delegating, check=True)
    assert wiki.apache.delegated() == [CRAWLER]


def test_what_everybody_sees_is_not_taken_for_what_we_see(project: MakeProject, wiki: Wiki, person: Person) -> None:
    """Where the log-in fails, the answer is not taken; a site that the key server does not know is crawled without."""
    site = Site({"/robots.txt": text(""), "/": page("Home", links=["/a"]), "/a": page("A")})
    with serve(site, host=PUBLIC) as server:
        made = demo(project, wiki, server.url("/"), {"KRB5CCNAME": f"FILE:{person.cache}"})
        crawled = made.crawl("demo")
        assert (crawled.returncode, "fails: No Kerberos credentials available" in crawled.stderr) == (1, True)
        assert server.paths() == ["/robots.txt"]
        assert indexed(made) == []
        person.fetch("crawler")
        made.crawl("demo").succeeded()
        assert_same(indexed(made), ["/", "/a"])
        assert {request.headers.get("authorization") for request in server.requests} == {None}
