"""The JSON interface of the console: its answers are those of the commands, and those that its OpenAPI document has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote

import pytest

from crawlspace.console.api import reading
from crawlspace.console.api.parameters import UrlsQuery
from crawlspace.console.routes import Asked, alone
from crawlspace.console.users import Role, User, Users
from crawlspace.urls import document_id
from tests.conftest import MakeProject, Project
from tests.consoles import Browser, Got, served
from tests.described_api import hold
from tests.integration.stored import collection
from tests.sites import Site, page, serve, status

BASE = "/api/v1"
DEMO = f"{BASE}/collections/{{name}}"


@dataclass(frozen=True)
class Api:
    """A program with a token, at the console of a project that was crawled."""

    browser: Browser
    project: Project
    start: str

    def get(self, path: str, declared: str = "") -> object:
        """The answer of an address of the collection demo, which the document declares."""
        got = self.browser.get(f"{BASE}/collections/demo{path}")
        return hold(got, DEMO + (declared or path.partition("?")[0]))

    def command(self, *args: str) -> object:
        """What a command prints with --json."""
        return json.loads(self.project.scrapy(*args, "--json").stdout)


def token_of(project: Project, role: Role) -> dict[str, str]:
    return {"Authorization": f"Bearer {Users(project.data / 'console-users').add_token(role.label, role)}"}


@contextmanager
def crawled(project: MakeProject, *, role: Role = Role.VIEWER) -> Iterator[Api]:
    site = Site(
        {
            "/": page("Home of <b>all</b>", links=["/a", "/gone", "/no/x"]),
            "/a": page("Leave", text="Annual leave is asked for in the portal."),
            "/robots.txt": status(404),
        }
    )
    with serve(site) as server:
        demo = project(collection(server.url("/"), rules=f"forbid prefix {server.url('/no')}"))
        demo.crawl("demo").succeeded()
        with served(demo) as browser:
            browser.headers.update(token_of(demo, role))
            yield Api(browser, demo, server.url("/"))


def test_answers_are_those_of_the_commands(project: MakeProject) -> None:
    with crawled(project) as api:
        leave = f"{api.start}a"
        shown, printed = api.get("/status"), api.command("status", "demo")
        assert isinstance(shown, dict)
        assert isinstance(printed, dict)
        assert shown.pop("disk").keys() == printed.pop("disk").keys(), "what is free changes at any time"
        assert shown == printed
        assert api.get(f"/explain?url={quote(leave)}") == api.command("explain", "demo", leave)
        assert api.get("/sinks") == {"sinks": api.command("sinks", "demo")}
        listed = api.project.scrapy("urls", "demo", "--json").stdout
        assert api.get("/urls?sorted=true") == [json.loads(line) for line in listed.splitlines()]
        found = api.get("/search?q=annual+leave&facet=language")
        assert isinstance(found, dict)
        ids = [hit.pop("id") for hit in found["hits"]]
        assert found == api.command("search", "demo", "annual", "leave", "--facet", "language")
        assert ids == [document_id(leave)]


def test_collections(project: MakeProject) -> None:
    with crawled(project) as api:
        api.project.write({"broken/start_urls.txt": "x", "broken/settings.py": "1/0\n"})
        rows = hold(api.browser.get(f"{BASE}/collections"), f"{BASE}/collections")
        assert isinstance(rows, dict)
        broken, demo = rows["collections"]
        assert "division by zero" in broken["error"]
        assert (demo["name"], demo["crawled"], demo["urls"], demo["documents"]) == ("demo", True, 3, 2)


def test_urls_are_filtered_and_come_in_pages(project: MakeProject) -> None:
    with crawled(project) as api:
        cases = [
            ("state=gone", ["gone"]),
            ("status=4xx", ["gone"]),
            ("status=200", ["", "a"]),
            ("limit=1", [""]),
            (f"limit=1&after={api.start}", ["a"]),
            (f"after={api.start}gone", []),
            ("host=other.test", []),
            ("held=true", []),
            ("orphaned=1", []),
            ("not_archived=true&state=done", ["", "a"]),
        ]
        for query, expected in cases:
            rows = api.get(f"/urls?{query}")
            assert isinstance(rows, list)
            assert [row["url"].removeprefix(api.start) for row in rows] == expected, query
        rows = api.get("/urls?state=gone&with_referrers=true")
        assert isinstance(rows, list)
        assert rows[0]["referrers"] == [api.start]


def test_one_request_at_a_time_reads_all_links(project: MakeProject) -> None:
    with crawled(project) as api:
        console, path = api.browser.console, f"{BASE}/collections/demo/urls?with_referrers=true"
        assert console is not None
        with console.passes:
            code, error = failure(api.browser.get(path), f"{DEMO}/urls")
            shown = api.browser.get(f"/c/demo/url?show=in&url={quote(api.start)}")
            assert len(api.browser.get(path.partition("?")[0]).text.splitlines()) == 3, "which reads no links"
        sentence = "the links of all pages are being read for somebody else, one at a time: try again in a moment"
        assert (code, error) == (409, sentence)
        assert (shown.status, sentence in shown.words) == (409, True)
        assert api.browser.get(path).status == 200
        assert api.browser.get(path).status == 200, "it is free again"
        asked = Asked(console, User("anna", Role.VIEWER), path, name="demo")
        lines = reading.urls(asked, UrlsQuery(with_referrers=True)).lines
        next(lines)
        with alone(console.passes, "a client that reads slowly"):
            assert len(list(lines)) == 2, "of one pass, which is over"


def test_documents_as_json_and_markdown(project: MakeProject) -> None:
    with crawled(project) as api:
        leave = f"{api.start}a"
        by_id = f"/documents/{document_id(leave)}"
        found = api.get(by_id, "/documents/{id}")
        assert found == api.get(f"/documents?url={quote(leave)}")
        assert isinstance(found, dict)
        assert (found["title"], "Annual leave" in found["text"]) == ("Leave", True)
        exported = api.project.folder / "exported"
        api.project.scrapy("export", "demo", "--markdown", str(exported)).succeeded()
        (file,) = exported.glob("*/a.md")
        manifest = (exported / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
        digests = {row["url"]: row["digest"] for row in map(json.loads, manifest)}
        address = f"{BASE}/collections/demo{by_id}"
        for got in (api.browser.get(f"{address}?format=markdown"), api.browser.get(address, headers={"Accept": "text/markdown"})):
            assert hold(got, f"{DEMO}/documents/{{id}}") == file.read_text(encoding="utf-8")
            assert got.headers["ETag"] == f'"{digests[leave]}"'
        again = api.browser.get(f"{address}?format=markdown", headers={"If-None-Match": got.headers["ETag"]})
        assert (again.status, again.text) == (304, "")


def failure(got: Got, path: str, method: str = "get") -> tuple[int, str]:
    value = hold(got, path, method)
    assert isinstance(value, dict)
    return got.status, value["error"]


@pytest.mark.parametrize(
    ("path", "declared", "code", "sentence"),
    [
        ("nope/status", "status", 404, "there is no collection 'nope'"),
        ("%2e%2e%2fdemo/status", "status", 404, "there is no collection '../demo'"),
        ("demo/status?x=1", "status", 400, "there is no parameter x: this address has none"),
        ("demo/urls?limit=0", "urls", 400, "limit is wrong: send a whole number >= 1"),
        ("demo/urls?limit=1&limit=2", "urls", 400, "limit is given 2 times: give it once"),
        ("demo/urls?limit=x", "urls", 400, "limit is a text: send a whole number"),
        ("demo/urls?held=perhaps", "urls", 400, "held is a text: send true or false"),
        ("demo/urls?status=x", "urls", 400, "status is wrong: send a status code or a class, as in 404 or 4xx"),
        ("demo/urls?state=lost", "urls", 400, "state is 'lost': send one of done, excluded, failed, gone, leased, pending, redirected, or leave it out"),
        ("demo/urls?after=http://x.test/", "urls", 400, "after is 'http://x.test/', which is not known: send another URL of the page before"),
        ("demo/urls?after=http://x.test/&sorted=true", "urls", 400, "after is for URLs in the order of their discovery: leave out sorted"),
        ("demo/explain", "explain", 400, "the parameter url is missing: send it"),
        ("demo/explain?url=http://a.test/&address=x", "explain", 400, "'x' is not an IP address"),
        ("demo/search?q=-", "search", 400, "there is nothing to search for"),
        ("demo/search?q=a&filter=x", "search", 400, "the filter 'x' is none"),
        ("demo/search?q=a&sink=x", "search", 400, "demo has no sink 'x': it has embedded"),
        ("demo/documents/x", "documents/{id}", 404, "demo has no document 'x' in the index"),
        ("demo/documents?url=x", "documents", 400, "'x' is not a valid URL"),
        ("demo/sinks/x/parked", "sinks/{sink}/parked", 404, "demo has no sink 'x'"),
    ],
)  # fmt: skip
def test_errors_are_sentences(shared_api: Api, path: str, declared: str, code: int, sentence: str) -> None:
    status_code, error = failure(shared_api.browser.get(f"{BASE}/collections/{path}"), f"{DEMO}/{declared}")
    assert status_code == code
    assert sentence in error


@pytest.fixture(scope="module")
def shared_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    made: list[Project] = []

    def project(files: Mapping[str, str]) -> Project:
        made.append(Project(tmp_path_factory.mktemp("api"), files))
        return made[-1]

    with crawled(project, role=Role.OPERATOR) as api:
        yield api


def test_several_urls_are_explained(shared_api: Api) -> None:
    urls = [shared_api.start, f"{shared_api.start}no/x", "x y"]
    got = post(shared_api.browser, "/collections/demo/explain", {"urls": urls})
    found = hold(got, f"{DEMO}/explain", "post")
    assert isinstance(found, dict)
    assert [one["reason"] for one in found["explanations"]] == ["admitted", "prefix", "malformed"]


def post(browser: Browser, path: str, body: object) -> Got:
    return browser.post_json(BASE + path, body)


def test_what_is_no_json_is_refused(shared_api: Api) -> None:
    cases = [
        (b"{", "application/json", "the request cannot be read as JSON"),
        (b"\xff", "application/json", "the request cannot be read as JSON"),
        (b"[" * 100_000, "application/json", "the request cannot be read as JSON"),
        (b"[]", "application/json", "the request is a list: send a JSON object"),
        (b"{}", "text/plain", "send JSON"),
        (b"", "application/json", "the parameter urls is missing: send it"),
        (b'{"urls": []}', "application/json", "urls is wrong"),
        (b'{"urls": ["a"], "x": 1}', "application/json", "there is no parameter x: there are urls"),
    ]
    for body, content_type, sentence in cases:
        got = shared_api.browser.post_body(f"{BASE}/collections/demo/explain", body, content_type)
        code, error = failure(got, f"{DEMO}/explain", "post")
        assert (code, sentence in error) == (400, True), error


def test_a_large_request_is_refused(shared_api: Api) -> None:
    got = shared_api.browser.post_body(f"{BASE}/collections/demo/explain", b" " * 5_000_000, "application/json")
    assert failure(got, f"{DEMO}/explain", "post")[0] == 413


def test_who_may_ask(shared_api: Api) -> None:
    Users(shared_api.project.data / "console-users").set_password("anna", "correct horse battery", Role.OPERATOR)
    path = f"{BASE}/collections/demo/status"
    nobody = Browser(shared_api.browser.base)
    assert failure(nobody.get(path), f"{DEMO}/status")[0] == 401
    assert failure(nobody.get(path, headers={"Authorization": "Bearer x"}), f"{DEMO}/status")[0] == 401
    nobody.log_in("anna", "correct horse battery")
    assert nobody.get(path).status == 200, "a session of a browser may read"
    code, error = failure(post(nobody, "/collections/demo/explain", {"urls": ["x"]}), f"{DEMO}/explain", "post")
    assert (code, "A change needs a token" in error) == (403, True)
    assert shared_api.browser.get(path, headers={"Host": "evil.test"}).json() == {
        "error": "This is not the host that was asked for. `scrapy console --host NAME` adds a name."
    }


def test_a_collection_that_was_never_crawled(project: MakeProject) -> None:
    demo = project(collection("http://127.0.0.1:9/"))
    with served(demo) as browser:
        browser.headers.update(token_of(demo, Role.VIEWER))
        api = Api(browser, demo, "http://127.0.0.1:9/")
        assert api.get("/urls") == []
        assert api.get("/sinks") == {"sinks": []}
        assert api.get("/search?q=x") == {"total": 0, "hits": [], "facets": {}}
        explained = api.get("/explain?url=http://127.0.0.1:9/")
        assert isinstance(explained, dict)
        assert (explained["state"], explained["source"]) == (None, "user")
        got = browser.get(f"{BASE}/collections/demo/documents?url=http://127.0.0.1:9/")
        assert failure(got, f"{DEMO}/documents")[0] == 404
    assert not (demo.data / "demo").exists(), "nothing is made by looking"
