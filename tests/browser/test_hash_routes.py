"""Programs that have their addresses behind #, crawled with a real browser: each route is a page of its own where that is wanted."""

from __future__ import annotations

import json

import pytest

from tests.browser.pages import PLAIN_TEXT
from tests.browser.test_rendering import ALWAYS, AUTO, TIMEOUT, texts
from tests.conftest import MakeProject, assert_same
from tests.integration.stored import indexed, make_due, states, statuses
from tests.sites import Answer, Site, html, page, redirect, serve, text

FOLLOWED = "CRAWLSPACE_HASH_ROUTES = True\n"
LINKS = {
    "": ["about", "news", "private"],
    "about": ["team?sort=name", "#top"],
    "news": ["/plain", "about", "same"],
    "private": ["hidden"],
    "team?sort=name": [],
    "same": [],
    "hidden": [],
    "old": [],
}
"""By route: where it leads to; a name is another route."""
SHOWN = {"same": "news"}
"""Routes that show what another one does."""
ROUTER = """
const pages = %s, shown = %s, before = %s;
const show = () => {
  const route = location.hash.slice(before.length), same = shown[route] || route, links = pages[same] || [];
  const words = 'the words of route ' + (same || 'home') + ' are brought by the program alone';
  const href = (to) => /^[/#]/.test(to) ? to : before + to;
  if (route === 'private') document.head.insertAdjacentHTML('beforeend', '<meta name=robots content="noindex">');
  document.getElementById('app').innerHTML = `<p>${words}</p>` + links.map((to) => `<a href="${href(to)}">${to}</a>`).join(' ');
};
addEventListener('hashchange', show);
show();
"""


def program(before: str) -> Answer:
    """A page whose program finds its routes behind `before`. It names itself as the canonical page, whatever the route."""
    script = ROUTER % (json.dumps(LINKS), json.dumps(SHOWN), json.dumps(before))
    head = "<title>The program</title><link rel=canonical href='/app'>"
    markup = f"<!doctype html><html><head>{head}</head><body><div id=app></div><script>{script}</script></body></html>"
    return html(markup, headers={"ETag": '"program"'})


def site_of(before: str) -> Site:
    links = ["/app", f"/moved{before}old"]
    return Site(
        {
            "/robots.txt": text(""),
            "/": page("Home", text=PLAIN_TEXT, links=links),
            "/app": program(before),
            "/moved": redirect("/app"),
            "/plain": page("Plain", text=f"A page without any program. {PLAIN_TEXT}"),
        }
    )


def paths(before: str, *routes: str) -> list[str]:
    return ["/", "/app", "/plain", *(f"/app{before}{route}" for route in routes)]


@pytest.mark.parametrize("before", ["#/", "#!", "#!/"])
@pytest.mark.parametrize("settings", [ALWAYS, AUTO], ids=["always", "auto"])
def test_each_route_is_a_page_with_its_own_text(project: MakeProject, settings: str, before: str) -> None:
    with serve(site_of(before)) as server:
        demo = project({"demo/start_urls.txt": f"{server.url('/')}\n", "demo/settings.py": settings + FOLLOWED})
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        found = texts(demo)
        assert_same(list(found), paths(before, "about", "news", "team?sort=name", "hidden", "old"))
        for path, shown in found.items():
            route = path.partition(before)[2] if before in path else "home"
            assert path in ("/", "/plain") or f"the words of route {route} are" in shown
        known = statuses(demo)
        assert known[f"/app{before}private"] == 2004, "noindex, and its links are followed"
        assert known[f"/moved{before}old"] == 302, "its target has the route"
        assert states(demo)[f"/app{before}same"].duplicate_of is not None
        asked = [request.path for request in server.requests]
        assert not [path for path in asked if "#" in path]
        assert asked.count("/app") == 8, "once for each route"
        make_due(demo)
        server.forget()
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        conditional = [request for request in server.requests if request.path == "/app" and "if-none-match" in request.headers]
        assert conditional == []
        assert texts(demo) == found


def test_no_route_is_followed_unless_the_setting_says_so_and_those_known_leave_when_it_does_not_any_more(
    project: MakeProject,
) -> None:
    with serve(site_of("#/")) as server:
        about = f"{server.url('/app')}#/about"
        demo = project({"demo/start_urls.txt": f"{server.url('/')}\n", "demo/settings.py": AUTO})
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert_same(indexed(demo), ["/", "/app"])
        assert f"4 links such as {server.url('/')}" in " ".join(demo.scrapy("status", "demo").stdout.split())
        assert "its route is left off: CRAWLSPACE_HASH_ROUTES" in demo.scrapy("explain", "demo", about).stdout

        demo.write({"demo/settings.py": AUTO + FOLLOWED})
        make_due(demo)
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        routes = paths("#/", "about", "news", "team?sort=name", "hidden", "old")
        assert_same(indexed(demo), routes)
        assert "Routes behind # that are not fetched" not in demo.scrapy("status", "demo").stdout
        explained = demo.scrapy("explain", "demo", about).succeeded().stdout
        assert f"{about}\n" in explained
        assert "each time, as a route behind # (CRAWLSPACE_HASH_ROUTES)" in explained
        assert "1 URL is due now" in demo.scrapy("recrawl", "demo", about).succeeded().stdout
        demo.scrapy("forget", "demo", f"{server.url('/app')}#/old").succeeded()
        routes.remove("/app#/old")
        assert_same(indexed(demo), routes)

        demo.write({"demo/settings.py": AUTO})
        assert "7 folded into 2" in " ".join(demo.scrapy("plan", "demo").stdout.split())
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert_same(indexed(demo), ["/", "/app", "/plain"])
        assert not [path for path in statuses(demo) if path.startswith("/app#")]


def test_where_nothing_is_rendered_the_setting_has_no_effect_and_a_start_says_so(project: MakeProject) -> None:
    with serve(site_of("#/")) as server:
        settings = AUTO.replace('"auto"', '"never"') + FOLLOWED
        demo = project({"demo/start_urls.txt": f"{server.url('/app#/about')}\n", "demo/settings.py": settings})
        run = demo.crawl("demo", timeout=TIMEOUT)
        assert "CRAWLSPACE_HASH_ROUTES has no effect: routes are followed on rendered pages only" in run.stderr
        assert list(statuses(demo)) == ["/app"]
        assert "CRAWLSPACE_HASH_ROUTES has no effect" in demo.scrapy("lint", "demo").stdout


def test_a_route_is_kept_in_the_archive_and_can_be_a_start_url(project: MakeProject) -> None:
    with serve(site_of("#/")) as server:
        settings = AUTO.replace("CRAWLSPACE_ARCHIVE = False\n", "") + FOLLOWED
        about = f"{server.url('/app')}#/about"
        demo = project({"demo/start_urls.txt": f"{about}\n", "demo/settings.py": settings})
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert_same(indexed(demo), [path for path in paths("#/", "about", "news", "team?sort=name", "hidden") if path != "/"])
        assert "the words of route about" in demo.scrapy("content", "demo", about).succeeded().stdout
        demo.scrapy("archive", "demo", "--verify").succeeded()
        before = texts(demo)
        server.forget()
        demo.scrapy("reindex", "demo", "--extract").succeeded()
        assert (texts(demo), server.paths()) == (before, [])


def test_a_spider_of_ones_own_sees_the_route(project: MakeProject) -> None:
    with serve(site_of("#/")) as server:
        about = f"{server.url('/app')}#/about"
        asking = project({"asking/start_urls.txt": f"{about}\n", "asking/settings.py": ALWAYS + FOLLOWED})
        asking.crawl("asking", "-s", "SPIDER_MODULES=tests.integration.changed_spiders", timeout=TIMEOUT).succeeded()
        exported = asking.folder / "all.jsonl"
        asking.scrapy("export", "asking", "-O", str(exported)).succeeded()
        seen = {one["url"]: one["text"] for one in map(json.loads, exported.read_text(encoding="utf-8").splitlines())}
        assert about in seen
        assert seen == {url: url for url in seen}
