"""What the headers of pages decide, on a 200 and on a 304: real crawls, one after the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.conftest import MakeProject, assert_same
from tests.integration.stored import FAST, collection, indexed, make_due, states, statuses
from tests.quick import some
from tests.sites import Answer, Site, binary, html, page, serve, text

ETAG = {"ETag": '"1"'}
HOME = page("Home", links=["/page", "/other"])
OTHER = page("Other", text="another text")
PAGE = page("Page", text="some text", links=["/below"], headers=ETAG)
BELOW = page("Below", text="linked by the page alone")


def also(answer: Answer, **headers: str) -> Answer:
    """The same body under the same ETag, with other headers: what a server's configuration changes."""
    return replace(answer, headers={**answer.headers, **{name.replace("_", "-"): value for name, value in headers.items()}})


NOINDEX = also(PAGE, X_Robots_Tag="noindex")
NOFOLLOW = also(PAGE, X_Robots_Tag="nofollow")
CANONICAL = also(PAGE, Link='</other>; rel="canonical"')
PLAIN = text("<p>one <b>two</b></p>", headers=ETAG)
BOTH = ["/", "/below", "/other", "/page"]

CHANGES = [
    # what the page answers, then, what is indexed then
    ("noindex comes", PAGE, NOINDEX, ["/", "/below", "/other"]),
    ("noindex goes", NOINDEX, PAGE, BOTH),
    ("nofollow goes", NOFOLLOW, PAGE, BOTH),
    ("a canonical page comes", PAGE, CANONICAL, ["/", "/below", "/other"]),
    ("a canonical page goes", CANONICAL, PAGE, BOTH),
    ("its type is not taken any more", PAGE, also(PAGE, Content_Type="image/png"), ["/", "/below", "/other"]),
    ("nothing that matters", PAGE, also(PAGE, X_Robots_Tag="noarchive", Content_Type="text/html"), BOTH),
]


@pytest.mark.parametrize(("what", "before", "after", "expected"), some(CHANGES, 3), ids=[row[0] for row in CHANGES])
def test_headers_that_change_while_the_body_stays(
    project: MakeProject, what: str, before: Answer, after: Answer, expected: list[str]
) -> None:
    site = Site({"/": HOME, "/other": OTHER, "/below": BELOW, "/page": before})
    with serve(site) as server:
        demo = project(collection(server.url(), settings=FAST))
        demo.crawl("demo").succeeded()
        site["/page"] = after
        for _ in range(2):  # the second shows that it stays so
            make_due(demo)
            demo.crawl("demo").succeeded()
            assert_same(indexed(demo), expected)


def test_a_canonical_page_that_only_a_header_names_is_found_like_one_of_a_link_element(project: MakeProject) -> None:
    elsewhere = also(OTHER, Link='<http://elsewhere.example/>; rel="canonical"')
    named = {"/": page("Home", links=["/print", "/other"]), "/print": also(OTHER, Link='</hidden>; rel="canonical"')}
    with serve(Site({**named, "/hidden": page("Hidden", text="another text"), "/other": elsewhere})) as server:
        demo = project(collection(server.url(), rules="allow domain 127.0.0.1\nforbid domain *\n", settings=FAST))
        demo.crawl("demo").succeeded()
        assert "/hidden" in server.paths()
    assert states(demo)["/other"].refused == "d1"
    assert_same(indexed(demo), ["/", "/hidden", "/other"])


def test_a_304_costs_one_request_where_its_headers_change_nothing(project: MakeProject) -> None:
    with serve(Site({"/": PAGE, "/below": BELOW})) as server:
        demo = project(collection(server.url(), settings=FAST))
        demo.crawl("demo").succeeded()
        make_due(demo)
        server.forget()
        demo.crawl("demo").succeeded()
        assert_same(server.paths(), ["/", "/below"])


def test_a_304_brings_the_validators_of_the_next_request(project: MakeProject) -> None:
    answer = PAGE

    class Renewed(Answer):
        """Answers 304 with another ETag than the one it was asked with."""

    site = Site({"/": lambda request: answer if "if-none-match" not in request.headers else Renewed(304, {"ETag": '"2"'})})
    with serve(site) as server:
        demo = project(collection(server.url(), settings=FAST))
        for _ in range(3):
            demo.crawl("demo").succeeded()
            make_due(demo)
        asked = [request.headers.get("if-none-match") for request in server.requests if request.path == "/"]
        assert asked == [None, '"1"', '"2"']


WHOLE = """<Rules>
  <Rule> <Path val="/rule"/> <ConditionalGet/> </Rule>
  <Rule> <Path val="/rule/usual"/> <ConditionalGet mode="usual"/> </Rule>
</Rules>"""
# settings -> the paths that are requested with their validators
CONDITIONAL = [
    ("", {"/", "/rule/usual"}),
    ("CRAWLSPACE_CONDITIONAL_GET = False", {"/rule/usual"}),
    ("CRAWLSPACE_SITES = {'127.0.0.1': {'conditional_get': False}}", {"/rule/usual"}),
    ("CRAWLSPACE_CONDITIONAL_GET = False\nCRAWLSPACE_SITES = {'127.0.0.1': {'conditional_get': True}}", {"/", "/rule/usual"}),
]


@pytest.mark.parametrize(("settings", "conditional"), some(CONDITIONAL, 2))
def test_a_known_page_may_be_requested_whole(settings: str, conditional: set[str], project: MakeProject) -> None:
    links = ["/rule", "/rule/usual"]
    site = Site({path: page(path, text=path, links=links, headers=ETAG) for path in ("/", *links)})
    with serve(site) as server:
        demo = project({**collection(server.url(), settings=f"{FAST}{settings}\n"), "demo/rules.xml": WHOLE})
        demo.crawl("demo").succeeded()
        make_due(demo)
        server.forget()
        demo.crawl("demo").succeeded()
        asked = {request.path for request in server.requests if "if-none-match" in request.headers}
        assert (asked, len(server.paths())) == (conditional, 3)
    assert set(statuses(demo).values()) == {200}


def test_a_type_that_changes_while_the_body_stays(project: MakeProject) -> None:
    site = Site({"/": PLAIN})
    with serve(site) as server:
        demo = project(collection(server.url(), settings=FAST))
        demo.crawl("demo").succeeded()
        assert "two" in demo.scrapy("search", "demo", "b").stdout
        site["/"] = also(PLAIN, Content_Type="text/html")
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert "two" in demo.scrapy("search", "demo", "two").stdout
        assert "two" not in demo.scrapy("search", "demo", "b").stdout, "a tag is no word of an HTML page"


def test_a_page_that_is_not_indexed_gets_a_type_that_is_not_taken(project: MakeProject) -> None:
    before = html('<meta name="robots" content="noindex"><p>some text', headers=ETAG)
    site = Site({"/": page("Home", links=["/page"]), "/page": before})
    with serve(site) as server:
        demo = project(collection(server.url(), settings=FAST))
        demo.crawl("demo").succeeded()
        assert statuses(demo)["/page"] == 2004
        site["/page"] = also(before, Content_Type="image/png")
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert statuses(demo)["/page"] == 780


TYPES = [
    # Content-Type, status
    ("text/html, text/html", 200),
    ("application/x-unknown", 200),
    ("nonsense", 200),
    ("image/png, text/html", 200),
    ("text/html, image/png", 780),
    ("application/x-unknown, image/png", 780),
]


def test_no_document_is_indexed_without_its_text(project: MakeProject) -> None:
    body = "<title>Page {0}</title><p>word{0} and <a href='/found{0}'>more</a>"
    pages = {f"/{at}": binary(html(body.format(at)).body, declared) for at, (declared, _) in enumerate(TYPES)}
    site = Site({"/": page("Home", links=list(pages)), **pages}, otherwise=page("Found", text="found"))
    with serve(site) as server:
        demo = project(collection(server.url(), settings=FAST))
        demo.crawl("demo").succeeded()
        found = statuses(demo)
        assert {path: found[path] for path in pages} == {f"/{at}": status for at, (_, status) in enumerate(TYPES)}
        assert {path for path in found if path.startswith("/found")} == {
            f"/found{at}" for at, (_, status) in enumerate(TYPES) if status == 200
        }
        for at, (_, status) in enumerate(TYPES):
            assert (f"/{at}" in demo.scrapy("search", "demo", f"word{at}").stdout) is (status == 200)


def test_a_download_that_a_component_stops_is_no_document(project: MakeProject) -> None:
    with serve(Site({"/": page("Home", links=["/page"]), "/page": PAGE})) as server:
        extension = "EXTENSIONS = {'tests.integration.own_spiders.spiders.StopsPage': 0}\n"
        demo = project(collection(server.url(), settings=FAST + extension))
        demo.crawl("demo").succeeded()
        assert statuses(demo) == {"/": 200, "/page": 615}
        assert indexed(demo) == ["/"]
