"""Requests of a spider's own: sent as they are, within rules and politeness; their items belong to the page they came from."""

from __future__ import annotations

import json
from itertools import count, pairwise

import pytest

from crawlspace.model import State
from tests.conftest import MakeProject, Project, assert_same
from tests.http import Reply, Request
from tests.integration.stored import FAST, indexed, make_due, shared, states
from tests.sites import Server, Site, binary, drop, hang, held, html, page, redirect, sequence, serve, slow, status, text

OWN = ("-s", "SPIDER_MODULES=tests.integration.own_spiders", "-s", "STATS_DUMP=True", "-L", "INFO")
PRICE = binary(b'{"price": 7}', "application/json")


def priced(*paths: str, title: str = "Lamp") -> Reply:
    return html(f"<title>{title}</title><p>words{''.join(f'<i data-price={path}></i>' for path in paths)}")


def files(server: Server, name: str, *, rules: str = "", settings: str = "", path: str = "/") -> dict[str, str]:
    return {
        f"{name}/start_urls.txt": server.url(path),
        f"{name}/crawl.rules": rules,
        f"{name}/settings.py": FAST + "RETRY_TIMES = 1\n" + settings,
    }


def crawled(made: Project, name: str, *options: str) -> str:
    return made.crawl(name, *OWN, *options).stderr


def hit(made: Project, name: str, words: str = "words") -> dict[str, str]:
    """Title and other fields of the one document that has all words."""
    hits = json.loads(made.scrapy("search", name, words, "--json").stdout)["hits"]
    (found,) = [one for one in hits if one["has_all_words"]]
    return {"title": found["title"], **found["fields"]}


def test_an_item_that_another_request_completes(project: MakeProject) -> None:
    with serve(Site({"/": priced("/api/price?id=1"), "/api/price": PRICE})) as server:
        made = project(files(server, "details", settings="CRAWLSPACE_FOLLOW_QUERY_STRINGS = False\n"))
        items = made.folder / "items.jsonl"
        logged = crawled(made, "details", "-O", str(items))
        assert server.paths() == ["/robots.txt", "/", "/api/price?id=1"]
    assert hit(made, "details") == {"title": "Lamp", "price": "7"}
    assert list(states(made, "details")) == ["/"], "the request is not remembered as a URL"
    assert [json.loads(line)["price"] for line in items.read_text(encoding="utf-8").splitlines()] == [7]
    assert "'crawlspace/own_requests/yielded': 1" in logged
    assert "\n  1 request of the spider's own\n" in logged


ANSWERS = [
    # answer to the request                          requests  page without it    with an item of its own
    (status(404),                                     1,       (State.FAILED, 699), "HttpError"),
    (status(503),                                     2,       (State.FAILED, 699), "HttpError"),
    (drop(),                                          2,       (State.FAILED, 699), "AnswerFailed"),
    (sequence([status(503), PRICE]),                  2,       (State.DONE, 200),   ""),
    (redirect("/moved"),                              1,       (State.DONE, 200),   ""),
    (redirect("http://other.example/"),               1,       (State.EXCLUDED, 2004), "IgnoreRequest"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "requests", "outcome", "error"), ANSWERS, ids=range(len(ANSWERS)))
def test_a_request_that_fails(project: MakeProject, answer: Reply, requests: int, outcome: tuple[State, int], error: str) -> None:
    for name in ("details", "kept"):
        with serve(Site({"/": priced("/price"), "/price": answer, "/moved": PRICE})) as server:
            rules = f"allow domain {server.host}\nforbid domain *\n"
            made = project(files(server, name, rules=rules, settings="CRAWLSPACE_HTTP_ERRORS = {'699': 'KEEP, RETRY:0'}\n"))
            logged = crawled(made, name)
            found = states(made, name)["/"]
            if name == "details":
                assert (found.state, found.status) == outcome
                assert server.counts()["/price"] == requests
            else:
                assert found.status == 200
                assert hit(made, name)["title"] == ("Lamp" if error else "With price")
                assert f"no price: {error}" in logged if error else "no price" not in logged


def test_a_document_stays_while_a_request_for_it_fails(project: MakeProject) -> None:
    with serve(Site({"/": priced("/price"), "/price": PRICE})) as server:
        made = project(files(server, "details"))
        crawled(made, "details")
        assert indexed(made, "details") == ["/"]
        make_due(made, "details")
        server.site["/price"] = status(500)
        logged = crawled(made, "details")
    assert indexed(made, "details") == ["/"]
    assert "no item came of it (699), because a request failed" in logged
    assert "'crawlspace/own_requests/failed'" in logged


def test_what_another_request_brings_is_fresh_although_the_page_is_unchanged(project: MakeProject) -> None:
    markup = "<title>Lamp</title><p>words<i data-price=/price></i>"
    with serve(Site({"/": html(markup, headers={"ETag": '"1"'}), "/price": PRICE})) as server:
        made = project(files(server, "details"))
        crawled(made, "details")
        make_due(made, "details")
        server.site["/price"] = binary(b'{"price": 8}', "application/json")
        crawled(made, "details")
    assert hit(made, "details")["price"] == "8"


REFUSED = [
    # rules                                      robots.txt                         reason
    ("forbid prefix http://{netloc}/price", "", "prefix"),
    ("", "User-agent: *\nDisallow: /price", "robots"),
]


@pytest.mark.parametrize(("rules", "robots", "reason"), REFUSED)
def test_a_request_that_is_refused(project: MakeProject, rules: str, robots: str, reason: str) -> None:
    with serve(Site({"/": priced("/price"), "/price": PRICE, "/robots.txt": text(robots)})) as server:
        made = project(files(server, "kept", rules=rules.format(netloc=server.netloc)))
        logged = crawled(made, "kept")
        assert "/price" not in server.paths()
    assert "no price: IgnoreRequest" in logged
    assert f"'crawlspace/refused/{reason}': 1" in logged
    assert "'crawlspace/own_requests/refused': 1" in logged
    assert "\n  1 request of the spider's own: 1 refused\n" in logged
    assert states(made, "kept")["/"].status == 200


DROPPED = [
    # collection, data of its page                 status, requests
    ("details", priced("/price"),                  2004,   []),
    ("kept",    priced("/price"),                  200,    []),
    ("kept",    priced("/price", "/sent"),         200,    ["/sent"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "markup", "code", "sent"), DROPPED, ids=range(len(DROPPED)))
def test_a_page_does_not_wait_for_requests_that_a_spider_middleware_drops(
    project: MakeProject, name: str, markup: Reply, code: int, sent: list[str]
) -> None:
    settings = (
        "SPIDER_MIDDLEWARES = {'tests.integration.scrapy_habits.components.DropsRequests': 543}\nCRAWLSPACE_LEASE_S = 3600\n"
    )
    with serve(Site({"/": markup, "/price": PRICE, "/sent": PRICE})) as server:
        made = project(files(server, name, settings=settings))
        crawled(made, name)
        assert server.paths() == ["/robots.txt", "/", *sent]
    assert states(made, name)["/"].status == code


def test_an_api_is_asked_with_body_and_headers(project: MakeProject) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Reply:
        asked.append(request)
        return binary(b'{"answer": "of the API"}', "application/json")

    with serve(Site({"/": page("Home", text="words"), "/api/first": binary(b"{}", "application/json")})) as server:
        server.site["/api/"] = answer
        made = project(files(server, "api"))
        crawled(made, "api")
        assert server.paths() == ["/robots.txt", "/", "/api/first", "/api/"], "by priority, and once each"
    assert [(one.method, one.headers["x-key"]) for one in asked] == [("POST", "k")]
    assert hit(made, "api") == {"title": "of the API"}


def test_items_of_a_page_are_exported_and_the_first_is_its_document(project: MakeProject) -> None:
    def quotes(number: int, following: str) -> Reply:
        listed = "".join(f"<li class=quote data-author=A{number}{n}>quote {n} of {number}</li>" for n in range(3))
        return html(f"<title>Page {number}</title><ul>{listed}</ul><a class=next href={following}>next</a>")

    with serve(Site({"/": quotes(1, "/2"), "/2": quotes(2, "/3"), "/3": page("Empty")})) as server:
        made = project(files(server, "quotes"))
        items = made.folder / "items.jsonl"
        logged = crawled(made, "quotes", "-O", str(items))
    authors = [json.loads(line)["author"] for line in items.read_text(encoding="utf-8").splitlines()]
    assert_same(authors, [f"A{page}{n}" for page in (1, 2) for n in range(3)])
    assert indexed(made, "quotes") == ["/", "/2"]
    assert hit(made, "quotes", "quote 0 of 2")["author"] == "A20"
    assert states(made, "quotes")["/3"].status == 2004, "a page that gives no item is read for its links"
    assert logged.count("gives more than one item") == 1
    assert "'crawlspace/items/not_indexed': 4" in logged


def test_a_log_in_comes_before_the_pages(project: MakeProject) -> None:
    form = html("<form method=post action=/session><input name=token value=t><input name=user></form>")

    def private(request: Request) -> Reply:
        return page("Private", text="secrets") if "session=s" in request.headers.get("cookie", "") else status(403)

    def session(request: Request) -> Reply:
        assert request.method == "POST"
        return status(302, headers={"Location": "/welcome", "Set-Cookie": "session=s"})

    with serve(
        Site({"/": private, "/extra": private, "/welcome": page("Welcome"), "/login": form, "/session": session})
    ) as server:
        made = project(files(server, "login", settings="COOKIES_ENABLED = True\n"))
        logged = crawled(made, "login", "-s", f"LOGIN_URL={server.url('/login')}")
        assert server.paths()[:4] == ["/robots.txt", "/login", "/session", "/welcome"]
    assert indexed(made, "login") == ["/", "/extra"] or indexed(made, "login") == ["/"]
    assert states(made, "login")["/extra"].status == 200
    assert "an item of start() or its callbacks belongs to no page" in logged


@pytest.mark.full
def test_delay_and_number_of_requests_hold_for_pages_and_requests_together(project: MakeProject) -> None:
    site = Site({"/price": slow(PRICE, 0.05)})
    with serve(site) as server:
        site["/"] = html("<a href=/a>a</a><a href=/b>b</a><i data-price=/price?0></i>")
        site["/a"], site["/b"] = priced("/price?1", "/price?2", title="A"), priced("/price?3", title="B")
        made = project({**files(server, "details"), "details/settings.py": FAST + "DOWNLOAD_DELAY = 0.3\n"})
        crawled(made, "details")
        times = [request.at for request in server.requests if request.path != "/robots.txt"]
        assert len(times) == 7
        assert min(after - before for before, after in pairwise(times)) > 0.28
        assert server.most_at_once == 1


def test_requests_of_a_page_to_its_site_use_its_place(project: MakeProject) -> None:
    first = held(PRICE)  # until another request comes
    numbers = count()

    def price(_: Request) -> Reply:
        number = next(numbers)
        if number == 1:
            first.release()
        return PRICE if number else first

    with serve(Site({"/price": price})) as server:
        pages = {f"/{n}": priced(*(f"/price?{n}.{m}" for m in range(3)), title=f"Lamp {n}") for n in range(6)}
        server.site |= {"/": page("Home", links=list(pages)), **pages}
        made = project(files(server, "details", settings="CONCURRENT_REQUESTS_PER_DOMAIN = 3\n"))
        crawled(made, "details")
        assert server.counts()["/price?5.2"] == 1
        assert 1 < server.most_at_once <= 3


def test_a_site_without_pages_has_its_robots_txt_and_its_turns(project: MakeProject) -> None:
    robots = text("User-agent: *\nDisallow: /price?2\n")
    with serve(Site({"/robots.txt": robots, "/price": PRICE}), host="127.0.0.2") as api, serve(Site({})) as server:
        server.site["/"] = priced(*(api.url(f"/price?{n}") for n in range(4)))
        rules = f"allow domain {api.host}\n"
        sites = f"CRAWLSPACE_SITES = {{'{api.host}': {{'delay': 0.2}}}}\n"
        made = project(files(server, "details", rules=rules, settings=sites))
        crawled(made, "details")
        assert_same(api.paths(), ["/robots.txt", "/price?0", "/price?1", "/price?3"])
        times = [request.at for request in api.requests][1:]
        assert min(after - before for before, after in pairwise(times)) > 0.18
        assert api.most_at_once == 1


def test_a_page_has_a_limited_number_of_requests(project: MakeProject) -> None:
    with serve(Site({"/": page("Home")}, otherwise=PRICE)) as server:
        server.site["/robots.txt"] = status(404)
        made = project(files(server, "many"))
        logged = crawled(made, "many")
        assert len(server.requests) == 2 + 100
    assert "more than 100 requests of its own: the others are left out" in logged
    assert "'crawlspace/own_requests/left_out': 1" in logged
    assert indexed(made, "many") == ["/"]


@pytest.mark.full
def test_a_page_is_recorded_when_its_lease_ends(project: MakeProject) -> None:
    settings = "CRAWLSPACE_LEASE_S = 10\nDOWNLOAD_TIMEOUT = 12\nRETRY_TIMES = 0\n"
    with serve(Site({"/": priced("/price"), "/price": hang()})) as server:
        made = project(files(server, "kept", settings=settings))
        run = made.scrapy("crawl", "kept", *OWN)
    assert "not answered when the lease ended" in run.stderr
    assert states(made, "kept")["/"].status == 200


def test_after_a_kill_the_page_is_fetched_again_whole(project: MakeProject) -> None:
    with serve(Site({"/": priced("/price"), "/price": hang()})) as server:
        made = project(files(server, "details"))
        running = made.start("crawl", "details", *OWN)
        made.until(lambda: "/price" in server.paths())
        running.kill()
        running.wait()
        server.forget()
        server.site["/price"] = PRICE
        crawled(made, "details")
        assert [path for path in server.paths() if path != "/robots.txt"] == ["/", "/price"]
    assert hit(made, "details")["price"] == "7"


def test_with_a_shared_store(project: MakeProject) -> None:
    with serve(Site({"/": priced("/price"), "/price": slow(PRICE, 0.5)})) as server:
        made = shared(project(files(server, "details")))
        crawled(made, "details")
        assert states(made, "details")["/"].status == 200
    assert hit(made, "details")["price"] == "7"


def test_a_callback_that_fails(project: MakeProject) -> None:
    with serve(Site({"/": page("Home"), "/data": PRICE})) as server:
        made = project(files(server, "mistaken"))
        logged = crawled(made, "mistaken")
    assert states(made, "mistaken")["/"].status == 699
    assert "ValueError: a mistake in a callback" in logged
    assert "every page that was parsed ended in an unexpected error (699)" in logged


def test_what_a_request_for_a_page_loses_is_named(project: MakeProject) -> None:
    with serve(Site({"/": page("Home", text="home"), "/next": page("Next", text="next")})) as server:
        made = project(files(server, "lost"))
        logged = crawled(made, "lost")
    assert indexed(made, "lost") == ["/", "/next"]
    assert logged.count("the cb_kwargs, headers of") == 1
    assert "give it a callback of its own" in logged


def test_close_spider(project: MakeProject) -> None:
    with serve(Site({"/": page("Home", text="home")})) as server:
        made = project(files(server, "closing"))
        logged = crawled(made, "closing")
    assert "'finish_reason': 'enough'" in logged
    assert states(made, "closing")["/"].state is State.PENDING


def test_parse_is_called_for_pages_only(project: MakeProject) -> None:
    site = Site(
        {"/": page("Home", text="home", links=["/gone", "/moved", "/image"]), "/gone": status(404), "/moved": redirect("/")}
    )
    site["/image"] = binary(b"\x89PNG\r\n\x1a\n", "image/png")
    with serve(site) as server:
        made = project(files(server, "lost"))
        crawled(made, "lost")
    found = {path: state.status for path, state in states(made, "lost").items()}
    assert found == {"/": 200, "/gone": 404, "/moved": 302, "/image": 780, "/next": 404}
