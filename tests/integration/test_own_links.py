"""Links in attributes of the user's own, and start URLs in several files: real crawls, one after the other."""

from __future__ import annotations

import json

from tests.conftest import MakeProject, assert_same
from tests.integration.stored import FAST, collection, make_due, states
from tests.sites import Site, binary, html, page, serve

BODY = "<base href=/deep/><a href=/plain>plain</a><div data-href='../card?a=1&amp;b=2'>card</div><p data-href=no>text"
OWN = "CRAWLSPACE_LINK_TAGS = ['a', 'div@data-href']\n"
PLAIN, CARD = page("Plain", text="a page"), page("Card", text="another page")


def test_pages_that_did_not_change_are_read_for_new_links(project: MakeProject) -> None:
    site = Site({"/": html(BODY, headers={"ETag": '"1"'}), "/plain": PLAIN, "/card?a=1&b=2": CARD})
    with serve(site) as server:
        demo = project(collection(server.url(), settings=FAST))

        def asked() -> list[str | None]:
            found = [request.headers.get("if-none-match") for request in server.requests if request.path == "/"]
            server.forget()
            return found

        demo.crawl("demo").succeeded()
        assert_same(list(states(demo)), ["/", "/plain"])
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert asked() == [None, '"1"']
        demo.write({"demo/settings.py": FAST + OWN})
        assert json.loads(demo.scrapy("plan", "demo", "--json").stdout)["content_changed"] is True
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert asked() == [None]
        assert_same(list(states(demo)), ["/", "/plain", "/card?a=1&b=2"])
        assert json.loads(demo.scrapy("plan", "demo", "--json").stdout)["content_changed"] is False
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert asked() == ['"1"']


def test_links_of_archived_pages_are_those_of_fetched_ones(project: MakeProject) -> None:
    site = Site({"/": page("Home", links=["/cards"]), "/cards": html(BODY), "/plain": PLAIN, "/card?a=1&b=2": CARD})
    settings = FAST.replace("CRAWLSPACE_ARCHIVE = False\n", "") + OWN
    with serve(site) as server:
        demo = project(collection(server.url(), settings=settings, rules=f"forbid prefix {server.url('/card?')}\n"))
        demo.crawl("demo").succeeded()
        assert states(demo)["/cards"].refused == "p1"
        server.forget()
        demo.write({"demo/crawl.rules": ""})
        ended = demo.crawl("demo").succeeded()
        assert "the links of 1 page were judged again from the archive, without a request: 1 URL found" in ended.stderr
        assert_same(server.paths(), ["/", "/card?a=1&b=2"])
        assert "/card?a=1&b=2" in demo.scrapy("add", "demo", server.url("/cards"), "--list").succeeded().stdout


def test_links_of_a_page_in_another_encoding(project: MakeProject) -> None:
    """Queries are sent in it; it is declared late, or not at all."""
    words = "Новости и объявления, расписание занятий, контакты и адрес"
    late = f"<!--{'-' * 2_000}--><meta charset=windows-1251><a href='/s?q=слово'>{words}</a><a href='/none'>x</a>".encode(
        "cp1251"
    )
    none = f"<p>{words}</p><a href='/t?q=слово'>{words}</a>".encode("koi8-r")
    site = Site({
        "/": binary(late, "text/html"),
        "/none": binary(none, "text/html"),
        "/s?q=%F1%EB%EE%E2%EE": page("First"),
        "/t?q=%D3%CC%CF%D7%CF": page("Second"),
    })  # fmt: skip
    with serve(site) as server:
        demo = project(collection(server.url(), settings=FAST))
        demo.crawl("demo").succeeded()
        assert_same(list(states(demo)), ["/", "/none", "/s?q=%F1%EB%EE%E2%EE", "/t?q=%D3%CC%CF%D7%CF"])
        assert {state.status for state in states(demo).values()} == {200}
        assert "2 hits" in demo.scrapy("search", "demo", "расписание").succeeded().stdout


def test_start_urls_in_several_files(project: MakeProject) -> None:
    site = Site({path: page(path, text=path) for path in ("/", "/a", "/b", "/c")})
    with serve(site) as server:
        demo = project(
            {
                **collection(server.url(), settings=f"{FAST}CRAWLSPACE_START_URL_FILES = ['lists/*.txt']\n"),
                "demo/lists/b.txt": f"{server.url('/b')}\n{server.url('/a')}\n{server.url('/no')}\n",
                "demo/lists/a.txt": f"# a\n{server.url('/a')}\n",
                "demo/crawl.rules": f"forbid prefix {server.url('/no')}\n",
            }
        )
        ended = demo.crawl("demo").succeeded()
        assert f"lists/b.txt:3: {server.url('/no')} is refused" in ended.stderr
        assert_same(list(states(demo)), ["/", "/a", "/b"])
        demo.write({"demo/lists/c.txt": server.url("/c")})
        demo.crawl("demo").succeeded()
        assert "/c" in states(demo)


def test_a_file_of_start_urls_that_is_not_there(project: MakeProject) -> None:
    demo = project(collection("http://127.0.0.1:9/", settings="\nCRAWLSPACE_START_URL_FILES = ['no.txt']\n"))
    for command in ("crawl", "plan", "lint", "explain"):
        ended = demo.scrapy(command, "demo", *(["http://127.0.0.1:9/"] if command == "explain" else []))
        printed = ended.stdout + ended.stderr
        assert ended.returncode == 1, command
        assert "CRAWLSPACE_START_URL_FILES has 'no.txt', and there is no such file in" in printed, command
        assert "settings.py:2" in printed, command
        assert "Traceback" not in printed, command
