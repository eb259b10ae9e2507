"""`scrapy add`: URLs, links and folders that a person names, before and after a crawl."""

from __future__ import annotations

import pytest

from crawlspace.model import Source, State
from tests.conftest import MakeProject, Project
from tests.integration.conftest import Run
from tests.integration.stored import shared, states
from tests.sites import Site, page, serve

FILES = {
    "demo/start_urls.txt": "http://a.example/\n",
    "demo/crawl.rules": "forbid prefix http://a.example/private/\n",
}


@pytest.fixture(params=["file", "server"])
def demo(project: MakeProject, request: pytest.FixtureRequest) -> Project:
    return shared(project(FILES)) if request.param == "server" else project(FILES)


# arguments -> a part of the sentence
WRONG = [
    (("add", "demo"), "name a collection and URLs, as in: scrapy add demo http"),
    (("add", "dmeo", "http://a.example/"), "no collection 'dmeo'"),
    (("add", "demo", "a.example/x"), "is not a valid URL"),
    (("add", "demo", "http://a.example/", "--links", "--site"), "--links or --site, not both"),
]


@pytest.mark.parametrize(("arguments", "sentence"), WRONG, ids=[" ".join(row[0]) for row in WRONG])
def test_wrong_use(demo: Project, run: Run, arguments: tuple[str, ...], sentence: str) -> None:
    ended = run(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert sentence in ended.stderr


def test_a_url_is_entered_before_the_first_crawl(demo: Project, run: Run) -> None:
    ended = run("add", "demo", "http://a.example/x", "http://a.example/private/")
    assert (ended.returncode, ended.stdout) == (1, "1 URL is due now, 1 of them new: the next crawl fetches it\n")
    assert "http://a.example/private/ is refused: a prefix rule forbids the URL (crawl.rules:1:" in ended.stderr
    state = states(demo)["/x"]
    assert (state.state, state.source, state.depth) == (State.PENDING, Source.USER, 0)


def test_an_imported_error_is_added_again(demo: Project, run: Run) -> None:
    file = demo.data / "pending.txt"
    file.write_text("http://a.example/x R 2\n")
    run("import-pending", "demo", str(file)).succeeded()
    assert run("add", "demo", "http://a.example/x").succeeded().stdout == "1 URL is due now: the next crawl fetches it\n"
    assert states(demo)["/x"].asked


def test_links_and_folders(project: MakeProject) -> None:
    site = Site(
        {
            "/": page("Home", links=["/docs/a", "/docs/b/c", "/other"]),
            "/docs/a": page("A"),
            "/docs/b/c": page("C"),
            "/other": page("Other"),
        }
    )
    with serve(site) as server:
        demo = project({"demo/start_urls.txt": server.url("/"), "demo/settings.py": "DOWNLOAD_DELAY = 0\n"})
        demo.crawl("demo").succeeded()
        server.forget()
        assert demo.scrapy("add", "demo", "--links", server.url("/")).succeeded().stdout.startswith("3 URLs are due now")
        demo.crawl("demo").succeeded()
        assert asked(server.paths()) == ["/docs/a", "/docs/b/c", "/other"]
        server.forget()
        assert (
            demo.scrapy("add", "demo", "--site", server.url("/docs/a?x=1/2"))
            .succeeded()
            .stdout.startswith("3 URLs are due now, 1")
        )
        demo.crawl("demo").succeeded()
        assert asked(server.paths()) == ["/docs/a", "/docs/a", "/docs/b/c"]
        ended = demo.scrapy("add", "demo", "--links", server.url("/new"))
        assert ended.returncode == 1
        assert "has not been fetched: add it" in ended.stderr


def asked(paths: list[str]) -> list[str]:
    return sorted(path.partition("?")[0] for path in paths if path != "/robots.txt")
