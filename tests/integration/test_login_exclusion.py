"""A sink that leaves out documents of pages behind a log-in never has one: whatever is sent to it, whenever its option or a log-in changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.conftest import MakeProject, Project, assert_same
from tests.contract.sinks import ReadOrders
from tests.integration.stored import collection, indexed, shared
from tests.integration.test_logins import BASIC, PASSWORD, behind
from tests.integration.test_sinks import LOCAL, PACE
from tests.search_server import SearchServer, search_server
from tests.sites import Server, Site, page, serve, text

LOGIN = {"type": "basic", "user": "crawler", "password": "env:WIKI_PASSWORD"}
PUBLIC = ("/", "/a", "/same")
PRIVATE = ("/", "/b", "/twin")
EXCLUDE = {"requires_login": "exclude"}


def public_site() -> Site:
    """Its page /same has the text of a page behind the log-in."""
    return Site(
        {"/": page("Home", links=["/a", "/same"]), "/a": page("A", text="the page a"), "/same": page("Twin", text="twin")}
    )


def private_pages() -> Site:
    return Site(
        {"/": page("Wiki", links=["/b", "/twin"]), "/b": page("B", text="the page b"), "/twin": page("Twin", text="twin")}
    )


class Scene:
    """A public site and one behind a log-in, crawled into the embedded index, a search server, and a file."""

    def __init__(self, search: SearchServer, public: Server, private: Server) -> None:
        self.search = search
        self.public = public
        self.private = private
        self.project: Project

    def settings(self, *, excludes: bool = True, logins: tuple[Server, ...]) -> str:
        more = EXCLUDE if excludes else {}
        sites = {server.netloc: {"login": LOGIN, "allow_plain_http": True} for server in logins}
        given = {"local": LOCAL, "search": self.search.options(**more), "log": {"type": "file", **more}}
        return f"{PACE}CRAWLSPACE_SITES = {sites!r}\nCRAWLSPACE_SINKS = {given!r}\n"

    def have(self, *, excludes: bool = True, logins: tuple[Server, ...] | None = None) -> None:
        logins = (self.private,) if logins is None else logins
        self.project.write({"demo/settings.py": self.settings(excludes=excludes, logins=logins)})

    def there(self) -> set[str]:
        """What the search server has, which the file has too."""
        found = set(self.search.documents())
        orders = ReadOrders()
        orders.read((self.project.data / "demo" / "log.jsonl").read_bytes())
        assert {url for url in self.everything() if orders.get(url) is not None} == found
        return found

    def of(self, server: Server, *paths: str) -> set[str]:
        return {server.url(path) for path in paths}

    def everything(self) -> set[str]:
        return self.of(self.public, *PUBLIC) | self.of(self.private, *PRIVATE)

    def audit(self, *options: str, status: int = 0) -> dict[str, int]:
        ran = self.project.scrapy("audit", "demo", "--sink", "search", "--json", *options)
        assert ran.returncode == status, ran.stdout + ran.stderr
        (one,) = json.loads(ran.stdout)
        return {kind: one[kind] for kind in ("documents", "missing", "extra", "left_out")}


@contextmanager
def scene(project: MakeProject, place: str) -> Iterator[Scene]:
    private = Site({"/robots.txt": text(""), **{path: behind(BASIC, reply) for path, reply in private_pages().items()}})  # type: ignore[arg-type]
    with search_server() as search, serve(public_site()) as public, serve(private, host="127.0.0.2") as wiki:
        made = Scene(search, public, wiki)
        start = f"{wiki.url('/')}\n{public.url('/')}"  # the page behind the log-in is first
        settings = made.settings(logins=(wiki,))
        made.project = project(collection(start, rules="allow address 127.0.0.0/8\n", settings=settings))
        if place == "redis":
            shared(made.project)
        yield made


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)


PLACES = pytest.mark.parametrize("place", ["file", "redis"])
EQUAL = {"documents": 3, "missing": 0, "extra": 0, "left_out": 3}


@pytest.mark.full
@PLACES
def test_a_crawl_and_all_that_sends_again_leave_them_out(project: MakeProject, place: str) -> None:
    with scene(project, place) as made:
        demo, public = made.project, made.of(made.public, *PUBLIC)
        demo.crawl("demo").succeeded()
        assert_same(indexed(demo), [*PUBLIC, *PRIVATE])
        assert made.there() == public
        assert made.audit() == EQUAL
        status = demo.scrapy("status", "demo").succeeded().stdout
        assert status.count("3 documents of pages behind a log-in are left out of it") == 2
        numbers = json.loads(demo.scrapy("status", "demo", "--json").succeeded().stdout)["sinks"]
        assert {one["name"]: one["left_out"] for one in numbers} == {"embedded": 0, "search": 3, "log": 3}
        for command in (
            ("reindex", "demo"),
            ("reindex", "demo", "--sink", "search", "--rebuild"),
            ("reindex", "demo", "--extract", "--processes", "1"),
        ):
            demo.scrapy(*command).succeeded()
            assert made.there() == public, command
        demo.scrapy("sinks", "demo", "--fill", "search").succeeded()
        demo.crawl("demo").succeeded()
        assert made.there() == public
        assert made.audit("--repair") == EQUAL
        made.search.remove(made.public.url("/a"))
        assert made.audit(status=1) == EQUAL | {"missing": 1}
        made.audit("--repair")
        assert made.there() == public


@PLACES
def test_they_come_and_leave_with_the_option(project: MakeProject, place: str) -> None:
    with scene(project, place) as made:
        demo, public = made.project, made.of(made.public, *PUBLIC)
        made.have(excludes=False)
        demo.crawl("demo").succeeded()
        assert made.there() == made.everything()
        made.have()
        assert made.audit(status=1) == EQUAL | {"extra": 3}
        made.audit("--repair")
        assert set(made.search.documents()) == public
        assert made.audit() == EQUAL
        made.have(excludes=False)
        for server in (made.public, made.private):
            server.forget()
        assert "gets all documents" not in demo.crawl("demo").succeeded().stderr, "no crawl has left any out"
        demo.scrapy("reindex", "demo", "--sink", "search").succeeded()
        assert made.there() == made.everything()
        for excludes, expected in ((True, public), (False, made.everything())):
            made.have(excludes=excludes)
            assert demo.crawl("demo").succeeded().stderr.count("gets all documents") == 2
            assert made.there() == expected
            assert "gets all documents" not in demo.crawl("demo").succeeded().stderr
        assert not made.private.paths(), "all comes from the archive"


@PLACES
def test_they_come_and_leave_with_a_log_in(project: MakeProject, place: str) -> None:
    """The first crawl after a change sends from the archive, and the second one fetches what was fetched in another way before."""
    with scene(project, place) as made:
        demo = made.project
        demo.crawl("demo").succeeded()
        made.have(logins=(made.private, made.public))
        demo.crawl("demo").succeeded()
        assert made.there() == set(), "before anything is fetched"
        demo.crawl("demo").succeeded()
        assert made.there() == set()
        made.have(logins=(made.public,))
        made.private.site.update(private_pages())
        made.private.forget()
        demo.crawl("demo").succeeded()
        assert made.there() == set(), "what was fetched with the log-in"
        demo.crawl("demo").succeeded()
        assert made.there() == made.of(made.private, *PRIVATE)
        assert set(made.private.paths()) >= set(PRIVATE)
        made.have(logins=())
        demo.crawl("demo").succeeded()
        demo.crawl("demo").succeeded()
        assert made.there() == made.everything() - made.of(made.public, "/same"), "equal public pages are one document"
        assert made.audit() == {"documents": 5, "missing": 0, "extra": 0, "left_out": 0}


@pytest.mark.full
@PLACES
def test_what_was_fetched_with_a_log_in_stays_out_when_the_log_in_is_gone(project: MakeProject, place: str) -> None:
    with scene(project, place) as made:
        demo, public = made.project, made.of(made.public, *PUBLIC)
        demo.crawl("demo").succeeded()
        made.have(logins=())
        assert made.audit() == EQUAL
        for command in (("audit", "demo", "--repair"), ("reindex", "demo"), ("reindex", "demo", "--sink", "search", "--rebuild")):
            demo.scrapy(*command).succeeded()
            assert made.there() == public, command
        demo.scrapy("reindex", "demo", "--extract", "--processes", "1")
        assert made.there() == public, "rebuilt from the response that was had with the log-in"


def test_the_option_is_read(project: MakeProject) -> None:
    for sinks, message in (
        ({"log": {"type": "file", "requires_login": "leave out"}}, "it must be one of include, exclude"),
        ({"local": {"type": "sqlite", **EXCLUDE}}, "an unknown option 'requires_login'"),
    ):
        demo = project(collection("http://www.example.com/", settings=f"CRAWLSPACE_SINKS = {sinks!r}\n"))
        assert message in demo.scrapy("status", "demo").stderr
