"""`scrapy reindex --rebuild`: a new index beside the one that is searched, a switch once it is equal, and the way back."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from crawlspace.urls import document_id
from tests.conftest import MakeProject
from tests.integration.stored import collection, folder, opened, shared
from tests.integration.test_audit import Crawled
from tests.integration.test_sinks import DOWN, LOCAL, sinks, there, three_pages
from tests.search_server import INDEX, search_server, sink_of
from tests.sites import page, serve

FIRST, SECOND, THIRD = (f"{INDEX}-00000{number}" for number in (1, 2, 3))


class Rebuilding(Crawled):
    def aliases(self) -> dict[str, str]:
        """Where the aliases lead to."""
        found = self.search.ask("GET", "/_alias")
        return {alias: index for index, one in found.items() if index.startswith(INDEX) for alias in one["aliases"]}

    def begin(self) -> None:
        """Begin to build an index, as a call that is killed then."""
        with closing(sink_of(self.demo.data, self.search.options())) as sink:
            sink.begin_next()

    def settings(self, more: str = "", **options: object) -> None:
        self.demo.write({"demo/settings.py": sinks(local=LOCAL, search={**self.search.options(), **options}) + more})

    def rebuild(self, option: str = "--rebuild", *more: str) -> tuple[int, str]:
        done = self.demo.scrapy("reindex", "demo", option, *more)
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, done.stdout.strip() or done.stderr.strip()


@pytest.fixture(params=["file", "redis"])
def crawled(project: MakeProject, request: pytest.FixtureRequest) -> Iterator[Rebuilding]:
    with ExitStack() as stack:
        search = stack.enter_context(search_server())
        server = stack.enter_context(serve(three_pages()))
        demo = project(collection(server.url("/"), settings=sinks(local=LOCAL, search=search.options())))
        if request.param == "redis":
            shared(demo)
        demo.crawl("demo").succeeded()
        server.forget()
        yield Rebuilding(demo, search, server)


def test_a_new_index_takes_the_place_of_the_present_one(crawled: Rebuilding) -> None:
    before = crawled.search.documents()
    status, said = crawled.rebuild()
    assert (status, said) == (
        0,
        f"demo: the sink search is searched in {SECOND} now, with 4 documents; `scrapy reindex demo --sink search --rollback` goes back",
    )
    assert crawled.aliases() == {INDEX: SECOND, f"{INDEX}.previous": FIRST}
    after = crawled.search.documents()
    for one in (*before.values(), *after.values()):
        del one["pushed_at"]
    assert after == before
    assert crawled.server.paths() == []
    assert "no difference" in crawled.demo.scrapy("audit", "demo", "--sink", "search").succeeded().stdout


def test_with_documents_that_are_made_again(crawled: Rebuilding) -> None:
    before = crawled.version("/a")
    status, said = crawled.rebuild("--rebuild", "--extract", "--processes", "1")
    assert (status, said.splitlines()[0]) == (0, "demo: 4 documents were sent again")
    assert crawled.aliases()[INDEX] == SECOND
    assert there(crawled.search) == {"/", "/a", "/b", "/c"}
    assert crawled.version("/a") > before


def test_what_comes_afterwards_goes_to_the_new_one_alone(crawled: Rebuilding) -> None:
    crawled.rebuild()
    crawled.demo.scrapy("forget", "demo", crawled.server.url("/a")).succeeded()
    assert there(crawled.search) == {"/", "/b", "/c"}
    assert len(crawled.search.documents(FIRST)) == 4


def test_back_to_the_previous_one_with_all_that_has_changed_since(crawled: Rebuilding) -> None:
    crawled.rebuild()
    crawled.demo.scrapy("forget", "demo", crawled.server.url("/a")).succeeded()
    status, said = crawled.rebuild("--rollback")
    assert (status, said) == (0, f"demo: the sink search is searched in {FIRST} now, with 3 documents")
    assert crawled.aliases() == {INDEX: FIRST, f"{INDEX}.previous": SECOND}
    assert there(crawled.search) == {"/", "/b", "/c"}


@pytest.mark.full
def test_the_mark_of_the_last_batch_comes_along(crawled: Rebuilding) -> None:
    """Else each crawl would take the index for an older copy."""

    def crawl(text: str) -> None:
        crawled.server.site["/b"] = page("Page b", text=text)
        crawled.demo.scrapy("recrawl", "demo", crawled.server.url("/b")).succeeded()
        assert "the index is older" not in crawled.demo.crawl("demo").succeeded().stderr
        with closing(sink_of(crawled.demo.data, crawled.search.options())) as sink, opened(crawled.demo) as store:
            mark = sink.mark()
            assert mark is not None
            assert store.get_meta("sent:search") == mark.written()

    crawl("one")
    assert crawled.rebuild()[0] == 0
    crawl("two")
    crawled.begin()
    crawl("three")
    assert crawled.rebuild()[0] == 0
    crawl("four")
    assert crawled.rebuild("--rollback")[0] == 0
    crawl("five")


def test_older_ones_are_deleted(crawled: Rebuilding) -> None:
    crawled.rebuild()
    crawled.rebuild()
    assert crawled.aliases() == {INDEX: THIRD, f"{INDEX}.previous": SECOND}
    assert FIRST not in crawled.search.ask("GET", "/_alias")


@pytest.mark.full
def test_while_it_is_built_all_goes_to_both(crawled: Rebuilding) -> None:
    crawled.begin()
    crawled.server.site["/b"] = page("Page b", text="it has changed")
    del crawled.server.site["/c"]
    crawled.demo.scrapy("recrawl", "demo", crawled.server.url("/b"), crawled.server.url("/c")).succeeded()
    crawled.demo.crawl("demo").succeeded()
    assert there(crawled.search) == {"/", "/a", "/b"}
    assert {url.rpartition("/")[2] for url in crawled.search.documents(SECOND)} == {"b"}
    assert crawled.rebuild()[0] == 0
    assert crawled.aliases()[INDEX] == SECOND
    assert there(crawled.search) == {"/", "/a", "/b"}


def test_what_has_no_record_is_copied(crawled: Rebuilding) -> None:
    shutil.rmtree(folder(crawled.demo))
    assert crawled.rebuild()[0] == 0
    assert there(crawled.search) == {"/", "/a", "/b", "/c"}
    assert crawled.server.paths() == []


@pytest.mark.full
def test_documents_of_other_collections_are_carried_over(crawled: Rebuilding) -> None:
    url = "http://other.example/"
    place = f"/{INDEX}/_doc/{document_id(url)}?version=7&version_type=external&refresh=true"
    crawled.search.ask("PUT", place, {"id": document_id(url), "url": url, "collection": "other", "title": {"en": "Other"}})
    status, said = crawled.rebuild()
    assert (status, "with 4 documents, and 1 of other collections;" in said) == (0, True)
    found = crawled.search.documents()[url]
    assert (found["collection"], found["title"], found["_version"]) == ("other", {"en": "Other"}, 7)


def test_what_the_former_index_has_refused_is_sent_to_the_new_one(crawled: Rebuilding) -> None:
    mappings = {"dynamic": "strict", "properties": {name: {"type": "keyword"} for name in ("id", "url", "collection")}}
    crawled.search.ask("PUT", f"/{SECOND}", {"aliases": {f"{INDEX}.next": {}}, "mappings": mappings})
    assert crawled.rebuild("--rebuild", "--approve")[0] == 0
    crawled.server.site["/b"] = page("Page b", text="it has changed")
    crawled.demo.scrapy("recrawl", "demo", crawled.server.url("/b")).succeeded()
    crawled.demo.crawl("demo").succeeded()
    assert crawled.demo.scrapy("sinks", "demo", "--parked", "search").succeeded().stdout.count("push ") == 1
    status, said = crawled.rebuild()
    assert (status, said.splitlines()[1:]) == (0, ["search: 1 order sent again, 1 taken, 0 refused"])
    assert crawled.demo.scrapy("sinks", "demo", "--parked", "search").succeeded().stdout == ""
    assert there(crawled.search) == {"/", "/a", "/b", "/c"}
    assert "no difference" in crawled.demo.scrapy("audit", "demo", "--sink", "search").succeeded().stdout


def test_no_switch_to_an_index_that_refuses_documents(crawled: Rebuilding) -> None:
    properties = {name: {"type": "keyword"} for name in ("id", "url", "collection", "key")}
    mappings = {"dynamic": "strict", "properties": properties}
    crawled.search.ask("PUT", f"/{SECOND}", {"aliases": {f"{INDEX}.next": {}}, "mappings": mappings})
    status, said = crawled.rebuild()
    assert status == 1
    assert "is refused by the new index" in said
    assert "there was no switch, because the new index refuses 4 documents" in said
    assert crawled.aliases() == {INDEX: FIRST, f"{INDEX}.next": SECOND}
    assert crawled.rebuild("--discard") == (0, f"{SECOND} is given up")
    assert crawled.aliases() == {INDEX: FIRST}
    assert crawled.rebuild("--discard") == (0, "no index is being built for the sink search")


def test_a_much_smaller_one_is_to_be_approved(crawled: Rebuilding) -> None:
    crawled.settings("CRAWLSPACE_MAX_DELETIONS = 1\n")
    for number in range(5):  # that should not be there
        url = f"http://127.0.0.1/extra{number}"
        place = f"/{INDEX}/_doc/{document_id(url)}?version=7&version_type=external&refresh=true"
        crawled.search.ask("PUT", place, {"id": document_id(url), "url": url, "collection": "demo"})
    status, said = crawled.rebuild()
    assert (status, "the new index has 4 documents, and the present one 9" in said) == (1, True)
    assert crawled.aliases()[INDEX] == FIRST
    assert crawled.rebuild("--rebuild", "--approve")[0] == 0
    assert crawled.aliases()[INDEX] == SECOND
    assert there(crawled.search) == {"/", "/a", "/b", "/c"}


@pytest.mark.parametrize(
    ("options", "status", "sentence"),
    [
        (("--rollback",), 1, "there is no previous index of intranet"),
        (
            ("--rebuild", "--sink", "embedded"),
            2,
            "CRAWLSPACE_SINKS has no server 'embedded' whose index could be rebuilt: it has search",
        ),
        (("--rollback", "--extract"), 2, "--extract goes with --rebuild: --rollback and --discard make no document"),
        (("--rebuild", "--parked"), 2, "not allowed with"),
        (("--rebuild", "--rollback"), 2, "not allowed with"),
    ],
)
def test_wrong_use(crawled: Rebuilding, options: tuple[str, ...], status: int, sentence: str) -> None:
    assert crawled.rebuild(*options)[0] == status
    assert sentence in crawled.rebuild(*options)[1]


def test_a_server_that_is_down(crawled: Rebuilding) -> None:
    crawled.settings(url=DOWN)
    status, said = crawled.rebuild()
    assert status == 1
    assert "cannot be reached" in said
    assert "`scrapy reindex demo --sink search --rebuild` continues it" in said
