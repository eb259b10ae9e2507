"""Pages that are made by scripts, crawled with a real browser."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.browser.pages import PLAIN_TEXT, app, data, paths, script, scripted, words_of
from tests.conftest import MakeProject, Project, assert_same
from tests.http import Reply, Request
from tests.integration.stored import FAST, collection, indexed, make_due, statuses
from tests.sites import Server, Site, held, html, page, redirect, serve, status, text

TIMEOUT = 300
ALWAYS = f'{FAST}CRAWLSPACE_RENDER = "always"\n'
AUTO = f'{FAST}CRAWLSPACE_RENDER = "auto"\n'


def texts(project: Project) -> Mapping[str, str]:
    """The texts of the documents in the index, by path."""
    exported = project.folder / "all.jsonl"
    project.scrapy("export", "demo", "-O", str(exported)).succeeded()
    lines = map(json.loads, exported.read_text(encoding="utf-8").splitlines())
    return {"/" + line["url"].split("/", 3)[3]: line["text"] for line in lines}


@pytest.mark.parametrize("settings", [ALWAYS, AUTO])
def test_pages_that_scripts_make_are_indexed_with_their_text_and_their_links_are_found(
    project: MakeProject, settings: str
) -> None:
    with serve(app(20)) as server:
        demo = project(collection(server.url("/"), settings=settings))
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert_same(indexed(demo), paths(20))
        assert {path: words_of(path) in text for path, text in texts(demo).items()} == dict.fromkeys(paths(20), True)
        counts = server.counts()
    assert counts["/app.js"] == 1
    assert {path: counts[path] for path in paths(20)} == dict.fromkeys(paths(20), 1)
    assert {path: counts[f"/data{path}.json"] for path in paths(20)} == dict.fromkeys(paths(20), 1)


def test_auto_renders_what_needs_it_and_asks_for_that_whole_every_time(project: MakeProject) -> None:
    site = app(20, every=4)
    tagged = {path: site[path] for path in paths(20)}
    for path, reply in tagged.items():
        site[path] = html(reply.body.decode(), headers={"ETag": f'"{path}"'})  # type: ignore[union-attr]
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=AUTO))
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        rendered = {path for path in paths(20) if server.counts()[f"/data{path}.json"]}
        assert rendered == {f"/p/{n}" for n in (3, 7, 11, 15, 19)}
        make_due(demo)
        server.forget()
        site["/data/p/3.json"] = data({"title": "Page 3", "text": "other words by now", "links": []})
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        asked_whole = {
            request.path for request in server.requests if request.path in tagged and "if-none-match" not in request.headers
        }
    assert rendered <= asked_whole
    assert "other words by now" in texts(demo)["/p/3"]


def test_rules_say_which_pages_are_rendered(project: MakeProject) -> None:
    with serve(app(10)) as server:
        files = collection(server.url("/p/1"), settings=FAST) | {
            "demo/rules.xml": '<Rules><Rule><Path value="/p/1"/><Render/></Rule></Rules>'
        }
        demo = project(files)
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert words_of("/p/1") in texts(demo)["/p/1"]
        assert server.counts()["/data/p/7.json"] == 0


def test_scripts_of_a_host_that_the_rules_refuse_are_named_by_explain_and_loaded_where_the_settings_name_it(
    project: MakeProject,
) -> None:
    with serve(
        Site({"/lib.js": script("document.body.innerHTML = 'words from a library of another host'")}), host="127.0.0.2"
    ) as cdn:
        site = Site({"/": html(f"<body><script src={cdn.url('/lib.js')}></script></body>"), "/robots.txt": text("")})
        with serve(site) as server:
            demo = project(collection(server.url("/"), rules="forbid domain 127.0.0.2\n", settings=ALWAYS))
            demo.crawl("demo", timeout=TIMEOUT).succeeded()
            assert cdn.counts()["/lib.js"] == 0
            explained = demo.scrapy("explain", "demo", server.url("/")).stdout
            assert "127.0.0.2" in explained
            assert "render_hosts" in explained
            demo.write(
                {
                    "demo/settings.py": f'{ALWAYS}CRAWLSPACE_SITES = {{"127.0.0.1": {{"render_hosts": ["127.0.0.2"]}}}}\n',
                    "demo/crawl.rules": "forbid domain 127.0.0.2\nallow address 127.0.0.2\n",
                }
            )
            make_due(demo)
            demo.crawl("demo", timeout=TIMEOUT).succeeded()
            assert "words from a library" in texts(demo)["/"]


ODD = {
    "dialogs": ("alert(1); confirm(2); prompt(3); document.body.append('after the dialogs')", "after the dialogs"),
    "pop-up": ("window.open('/other'); document.body.append('after the pop-up')", "after the pop-up"),
    "download": (
        "const a = document.createElement('a'); a.href = 'data:text/plain,x'; a.download = 'x'; a.click(); document.body.append('after it')",
        "after it",
    ),
    "printing": ("window.print(); document.body.append('after printing')", "after printing"),
    "reload": ("document.body.append('before it is loaded again'); location.reload()", "before it is loaded again"),
    "error": ("document.body.append('before the error'); throw new Error('x')", "before the error"),
    "late": ("setTimeout(() => document.body.append('a moment later'), 300)", "a moment later"),
    "post": (
        (
            "fetch('/echo', {method: 'POST', body: 'posted words', headers: {'X-Own': 'own header'}})"
            ".then((r) => r.text()).then((t) => document.body.append(t))"
        ),
        "POST posted words own header",
    ),
    "worker": (
        "const w = new Worker('/worker.js'); w.onmessage = (e) => document.body.append(e.data)",
        "words of a worker",
    ),
    "busy worker": (
        "const w = new Worker('/busy.js'); w.onmessage = (e) => document.body.append('at last ' + e.data)",
        "at last words of a worker",
    ),
    "late worker": (
        "setTimeout(() => { new Worker('/worker.js').onmessage = (e) => document.body.append('later ' + e.data) }, 350)",
        "later words of a worker",
    ),
    "module": ("import('/module.js').then((m) => document.body.append(m.words))", "words of a module"),
    "redirected data": ("fetch('/moved').then((r) => r.text()).then((t) => document.body.append(t))", "words behind a redirect"),
    "shadow": (
        (
            "const host = document.createElement('x-y'); host.attachShadow({mode: 'open'}).innerHTML = '<p>in a shadow</p>';"
            " document.body.append(host)"
        ),
        "in a shadow",
    ),
    "cookie": ("fetch('/cookie').then((r) => r.text()).then((t) => document.body.append(t))", "cookie first=1"),
    "pushed": (
        "history.pushState({}, '', '/deep/er/page'); document.body.innerHTML = '<p>pushed</p><a href=linked>link</a>'",
        "pushed",
    ),
}


def echo(request: Request) -> Reply:
    return text(f"{request.method} {request.body.decode()} {request.headers.get('x-own')}")


def test_odd_pages(project: MakeProject) -> None:
    names = list(ODD)
    site = Site(
        {
            "/robots.txt": text(""),
            "/": page("Home", text=PLAIN_TEXT, links=[f"/{number}" for number in range(len(names))]),
            "/echo": echo,
            "/worker.js": script("fetch('/words').then((r) => r.text()).then((t) => postMessage(t))"),
            "/busy.js": script(
                "const end = Date.now() + 4000; while (Date.now() < end); fetch('/words').then((r) => r.text()).then((t) => postMessage(t))"
            ),
            "/words": text("words of a worker"),
            "/module.js": script("export const words = 'words of a module'"),
            "/moved": redirect("/target"),
            "/target": text("words behind a redirect"),
            "/cookie": lambda request: text(f"cookie {request.headers.get('cookie')}"),
            "/deep/er/linked": page("Linked", text=PLAIN_TEXT),
            **{f"/{number}": scripted(ODD[name][0]) for number, name in enumerate(names)},
        }
    )
    cookie = names.index("cookie")
    site[f"/{cookie}"] = html(f"<body><script>{ODD['cookie'][0]}</script></body>", headers={"Set-Cookie": "first=1; Path=/"})
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=ALWAYS))
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        found = texts(demo)
    missing = {
        name: found.get(f"/{number}") for number, name in enumerate(names) if ODD[name][1] not in found.get(f"/{number}", "")
    }
    assert missing == {}
    assert "/deep/er/linked" in found
    assert "/other" not in statuses(demo)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("while (true) {}", 617),
        ("const all = []; for (;;) all.push(new Array(1e6).fill(Math.random()))", 617),
        ("fetch('/broken')", 617),
        ("location.href = '/target'", 3020),
        ("location.replace('/target')", 3020),
    ],
)
def test_what_becomes_of_pages_that_show_nothing(project: MakeProject, code: str, expected: int) -> None:
    site = Site(
        {
            "/robots.txt": text(""),
            "/": page("Home", text=PLAIN_TEXT, links=["/odd", "/good"]),
            "/odd": scripted(code),
            "/good": scripted("document.body.append('the words of a good page, which another one does not harm')"),
            "/broken": status(503),
            "/target": page("Target", text=PLAIN_TEXT),
        }
    )
    settings = f'{AUTO}CRAWLSPACE_BROWSER_TIMEOUT = "30s"\nRETRY_TIMES = 0\n'
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=settings))
        demo.crawl("demo", timeout=TIMEOUT)
        found = statuses(demo)
        assert {path: found[path] for path in ("/", "/odd", "/good")} == {"/": 200, "/odd": expected, "/good": 200}
        assert_same(indexed(demo), ["/", "/good", *(["/target"] if expected == 3020 else [])])


def test_a_page_that_is_never_idle_is_taken_as_it_is_when_its_time_is_over(project: MakeProject) -> None:
    code = (
        "document.body.append('words that were there from the first second'); setInterval(() => fetch('/x?' + Math.random()), 20)"
    )
    with serve(Site({"/robots.txt": text(""), "/": scripted(code), "/x": text("")})) as server:
        demo = project(collection(server.url("/"), settings=f'{ALWAYS}CRAWLSPACE_BROWSER_TIMEOUT = "20s"\n'))
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert "words that were there" in texts(demo)["/"]
        assert server.counts()["/x"] <= 500


def test_a_site_has_its_user_agent_in_the_browser_and_for_what_its_pages_load(project: MakeProject) -> None:
    agent = "partnerbot/2.0 (+https://www.example.com/)"
    shown = "<p id=x></p><script>document.getElementById('x').textContent = navigator.userAgent; fetch('/data')</script>"
    with serve(Site({"/": html(f"<title>Agent</title>{shown}"), "/data": text("loaded")})) as server:
        own = f"CRAWLSPACE_SITES = {{'127.0.0.1': {{'user_agent': {agent!r}}}}}\n"
        demo = project(collection(server.url("/"), settings=ALWAYS + own))
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert {request.headers["user-agent"] for request in server.requests} == {agent}
        assert "/data" in server.paths()
    assert agent in texts(demo)["/"]


def test_a_selector_is_waited_for(project: MakeProject) -> None:
    code = "setTimeout(() => { document.getElementById('app').innerHTML = '<p id=late>late words</p>' }, 1500)"
    with serve(Site({"/robots.txt": text(""), "/": scripted(code)})) as server:
        demo = project(collection(server.url("/"), settings=f'{ALWAYS}CRAWLSPACE_RENDER_WAIT_FOR = "#late"\n'))
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert "late words" in texts(demo)["/"]


def test_nothing_is_loaded_that_shows_no_text(project: MakeProject) -> None:
    body = (
        "<img src=/i.png><video src=/v.mp4 autoplay></video><link rel=icon href=/icon.png><link rel=prefetch href=/p.html>"
        "<style>@font-face {font-family: F; src: url(/f.woff)} body {font-family: F; background: url(/b.png)}</style><p>words</p>"
    )
    with serve(Site({"/robots.txt": text(""), "/": scripted("document.body.append('more words')", body=body)})) as server:
        demo = project(collection(server.url("/"), settings=ALWAYS))
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert_same(server.paths(), ["/robots.txt", "/"])


def test_a_site_gets_no_more_requests_at_a_time_than_it_may(project: MakeProject) -> None:
    code = "Promise.all([...Array(12).keys()].map((n) => fetch('/held?' + n))).then(() => document.body.append('all is there'))"
    gate = held(text("x"))
    with serve(Site({"/robots.txt": text(""), "/": scripted(code), "/held": gate})) as server:
        settings = f'{ALWAYS}CRAWLSPACE_SITES = {{"127.0.0.1": {{"concurrency": 3}}}}\nDOWNLOAD_TIMEOUT = 120\nCRAWLSPACE_BROWSER_TIMEOUT = "120s"\n'
        demo = project(collection(server.url("/"), settings=settings))
        demo.start("crawl", "demo")
        demo.until(lambda: held_at(server) >= 3)
        assert held_at(server) == 3
        gate.release()
        demo.until(lambda: held_at(server) == 12)
        demo.started[-1].wait()
        assert "all is there" in texts(demo)["/"]


def held_at(server: Server) -> int:
    return sum(path.startswith("/held") for path in server.paths())


def test_without_a_browser_pages_that_need_one_wait_and_the_others_are_crawled(project: MakeProject) -> None:
    with serve(app(12, every=4)) as server:
        files = collection(server.url("/"), settings=AUTO)
        demo = project(files)
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        before = indexed(demo)
        demo.write({"demo/settings.py": f'{AUTO}CRAWLSPACE_BROWSER = "no-such-browser"\nRETRY_TIMES = 0\n'})
        make_due(demo)
        crawled = demo.crawl("demo", timeout=TIMEOUT)
        found = statuses(demo)
    assert "CRAWLSPACE_BROWSER is 'no-such-browser'" in crawled.stderr
    assert {path: found[path] for path in ("/", "/p/3", "/p/7", "/p/8")} == {"/": 200, "/p/3": 617, "/p/7": 617, "/p/8": 200}
    assert_same(indexed(demo), before)


def test_what_the_browser_gets_is_archived_as_it_was_sent(project: MakeProject) -> None:
    with serve(app(2)) as server:
        demo = project(collection(server.url("/"), settings=ALWAYS.replace("CRAWLSPACE_ARCHIVE = False\n", "")))
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        shown = demo.scrapy("content", "demo", server.url("/p/1")).succeeded().stdout
        sent = demo.scrapy("content", "demo", server.url("/p/1"), "--as-sent").succeeded().stdout
    assert words_of("/p/1") in shown
    assert words_of("/p/1") not in sent
    assert "app.js" in sent
