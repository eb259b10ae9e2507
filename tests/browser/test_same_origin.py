"""What a page in the browser can read and send across hosts: what it could in a person's browser, with no log-in but that of its own host."""

from __future__ import annotations

import json
import re
import socket
import ssl
from pathlib import Path

from tests.browser.pages import PLAIN_TEXT, scripted
from tests.browser.test_rendering import ALWAYS, TIMEOUT, texts
from tests.browser.test_ways_out import Socket
from tests.certificates import authority
from tests.command_line import start_scrapy
from tests.conftest import MakeProject, assert_same
from tests.http import Reply, Request
from tests.integration.stored import collection, statuses
from tests.sites import Answer, Server, Site, html, page, redirect, serve, text

SECRET = "the secret of another host"
SENDS = "const tell = (name, what) => fetch('/told?' + name, {method: 'POST', body: String(what)});\n"
CORS = {"Access-Control-Allow-Origin": "*"}

READS = {
    "fetch": "fetch('{victim}/secret').then((r) => r.text()).then((t) => tell('fetch', t))",
    "with credentials": (
        "fetch('{victim}/open', {credentials: 'include'}).then((r) => r.text()).then((t) => tell('with credentials', t))"
    ),
    "opaque": "fetch('{victim}/secret', {mode: 'no-cors'}).then((r) => r.text()).then((t) => tell('opaque', t))",
    "xhr": "const x = new XMLHttpRequest(); x.onload = () => tell('xhr', x.responseText); x.open('GET', '{victim}/secret'); x.send()",
    "redirect": "fetch('/away').then((r) => r.text()).then((t) => tell('redirect', t))",
    "redirect and back": "fetch('/away-and-back').then((r) => r.text()).then((t) => tell('redirect and back', t))",
    "for another": "fetch('{victim}/for-another').then((r) => r.text()).then((t) => tell('for another', t))",
    "frame": (
        "const f = document.createElement('iframe'); f.onload = () => tell('frame', f.contentDocument.body.innerText);"
        " f.src = '{victim}/secret'; document.body.append(f)"
    ),
    "redirected frame": (
        "const f = document.createElement('iframe'); f.onload = () => tell('redirected frame', f.contentDocument.body.innerText);"
        " f.src = '/away'; document.body.append(f)"
    ),
    "worker": (
        "const w = new Worker(URL.createObjectURL(new Blob([`fetch('{victim}/secret').then((r) => r.text()).then((t) => postMessage(t))`])));"
        " w.onmessage = (e) => tell('worker', e.data)"
    ),
    "sandbox": (
        "const f = document.createElement('iframe'); f.sandbox = 'allow-scripts';"
        " f.srcdoc = `<script>fetch('{victim}/secret').then((r) => r.text()).then((t) => parent.postMessage(t, '*'))</scr` + 'ipt>';"
        " onmessage = (e) => tell('sandbox', e.data); document.body.append(f)"
    ),
    "style": (
        "const l = document.createElement('link'); l.rel = 'stylesheet'; l.href = '{victim}/style';"
        " l.onload = () => tell('style', document.styleSheets[0].cssRules[0].cssText); document.head.append(l)"
    ),
    "forbidden by a prefix rule": (
        "fetch('{victim}/forbidden/').then((r) => r.text()).then((t) => tell('forbidden by a prefix rule', t))"
    ),
}

SENT = [
    # method, headers, body: what comes to the other host
    ("GET", {}, None, ["GET"]),
    ("HEAD", {}, None, ["HEAD"]),
    ("GET", {"X-Own": "1"}, None, ["OPTIONS", "GET"]),
    ("GET", {"Authorization": "Basic forged"}, None, ["OPTIONS"]),
    ("POST", {"Content-Type": "text/plain"}, "x", ["POST"]),
    ("POST", {"Content-Type": "application/x-www-form-urlencoded"}, "x=y", ["POST"]),
    ("POST", {"Content-Type": "application/json"}, "{}", []),
    ("POST", {"X-Own": "1"}, "x", []),
    ("PUT", {}, "x", []),
    ("PATCH", {}, "x", []),
    ("DELETE", {"Content-Type": "application/json", "Authorization": "Basic forged"}, "{}", []),
]


def victim_site() -> Site:
    site = Site(
        {
            "/robots.txt": text(""),
            "/": html(PLAIN_TEXT),
            "/secret": text(SECRET),
            "/open": answering(SECRET, CORS),
            "/for-another": answering(SECRET, {"Access-Control-Allow-Origin": "http://other.example"}),
            "/forbidden/": answering(SECRET, CORS),
            "/style": Answer(200, {"Content-Type": "text/css"}, b"p { content: 'the secret of another host' }"),
        }
    )
    for number in range(len(SENT)):
        site[f"/sent/{number}"] = preflighted
    return site


def answering(words: str, headers: dict[str, str]) -> Answer:
    return Answer(200, {"Content-Type": "text/plain", **headers}, words.encode())


def preflighted(request: Request) -> Reply:
    """Allows each method, and one header."""
    allows = {
        "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
        "Access-Control-Allow-Headers": "X-Own, Content-Type",
    }
    return answering("sent", CORS | allows)


def attacking(victim: str, codes: list[str], more: dict[str, Reply]) -> Site:
    """A site with a page for each script."""
    site = Site({"/robots.txt": text(""), "/told": text(""), **more})
    site["/"] = page("Home", text=PLAIN_TEXT, links=[f"/{number}" for number in range(len(codes))])
    for number, code in enumerate(codes):
        site[f"/{number}"] = scripted(SENDS + code.replace("{victim}", victim), body=f"<p>{PLAIN_TEXT}</p>")
    return site


def told(server: Server) -> dict[str, str]:
    """What scripts have sent to their own server, by name."""
    return {
        request.path.partition("?")[2].replace("%20", " "): request.body.decode()
        for request in server.requests
        if request.path.startswith("/told?")
    }


def test_nothing_is_read_of_another_host_unless_its_server_allows_it(project: MakeProject) -> None:
    with serve(victim_site(), host="127.0.0.2") as victim:
        address = f"http://{victim.netloc}"
        codes = [*READS.values(), "fetch('{victim}/open').then((r) => r.text()).then((t) => tell('allowed', t))"]
        more: dict[str, Reply] = {"/away": redirect(f"{address}/secret"), "/away-and-back": redirect(f"{address}/back")}
        with serve(attacking(address, codes, more)) as server:
            victim.site["/back"] = redirect(server.url("/told?back"))
            files = collection(server.url("/"), rules=f"forbid prefix {address}/forbidden/\n", settings=ALWAYS)
            files["demo/start_urls.txt"] += f"{address}/\n"
            demo = project(files)
            demo.crawl("demo", timeout=TIMEOUT).succeeded()
            found = {name: words for name, words in told(server).items() if words and name != "back"}
        assert found == {"allowed": SECRET}
        assert victim.counts()["/forbidden/"] == 0
        assert victim.counts()["/secret"] > 0


def test_what_a_page_sends_to_another_site_is_what_a_form_could_or_what_a_preflight_allows(project: MakeProject) -> None:
    with serve(victim_site(), host="127.0.0.2") as victim:
        codes = [
            f"fetch('{{victim}}/sent/{number}', {json.dumps({'method': method, 'headers': headers, 'body': body})})"
            for number, (method, headers, body, _) in enumerate(SENT)
        ]
        with serve(attacking(f"http://{victim.netloc}", [";\n".join(codes)], {})) as server:
            files = collection(server.url("/"), settings=ALWAYS)
            files["demo/start_urls.txt"] += victim.url("/") + "\n"
            project(files).crawl("demo", timeout=TIMEOUT).succeeded()
        came = {number: [one.method for one in victim.requests if one.path == f"/sent/{number}"] for number in range(len(SENT))}
    assert came == {number: row[3] for number, row in enumerate(SENT)}


def names_on_loopback() -> None:
    """Have names below corp.test, and evil.test, lead to 127.0.0.1."""
    real = socket.getaddrinfo

    def getaddrinfo(host: str, *rest: object, **named: object) -> object:
        return real("127.0.0.1" if str(host).endswith(".test") else host, *rest, **named)  # type: ignore[arg-type]

    socket.getaddrinfo = getaddrinfo  # type: ignore[assignment]


ASKS = [
    # who asks, for what: whether the request carries the log-in of the hosts of the entry
    ("a page", "a.corp.test", "", "a.corp.test", True),
    ("a page", "a.corp.test", "", "b.corp.test", False),
    ("a frame of its own", "a.corp.test", "a.corp.test", "a.corp.test", True),
    ("a frame of another host", "a.corp.test", "evil.test", "a.corp.test", False),
    ("a frame of another host of the entry", "a.corp.test", "b.corp.test", "a.corp.test", False),
    ("a page of another site", "evil.test", "", "a.corp.test", False),
    ("a frame in a page of another site", "evil.test", "a.corp.test", "a.corp.test", False),
]


RULES = "allow domain *.corp.test\nallow domain evil.test\nforbid prefix http://*/frame/\n"


def test_only_documents_of_the_very_host_ask_with_its_log_in(project: MakeProject, tmp_path: Path) -> None:
    """Over plain http, where browsers say less of who asks."""
    site = Site({"/robots.txt": text("")})
    with serve(site) as server:
        port = server.netloc.rpartition(":")[2]
        pages = []
        for number, (_, of, framed, target, _) in enumerate(ASKS):
            asks = f"fetch('http://{target}:{port}/asked/{number}', {{mode: 'no-cors', credentials: 'include'}})"
            site[f"/asked/{number}"] = text("x")
            site[f"/frame/{number}"] = scripted(asks)
            frame = f"<iframe src=http://{framed}:{port}/frame/{number}></iframe>" if framed else ""
            site[f"/{number}"] = scripted("" if framed else asks, body=f"<p>{PLAIN_TEXT}</p>{frame}")
            pages.append(f"http://{of}:{port}/{number}\n")
        entry = {"login": {"type": "basic", "user": "u", "password": "env:WIKI"}, "allow_plain_http": True}
        settings = f"{ALWAYS}CRAWLSPACE_SITES = {{'*.corp.test': {entry!r}}}\n"
        files = collection(server.url("/"), rules=RULES, settings=settings)
        demo = project(files | {"demo/start_urls.txt": "".join(pages)})
        crawl = start_scrapy(
            ["crawl", "demo"], output=tmp_path / "output.txt", env=demo.env | {"WIKI": "password"}, first=names_on_loopback
        )
        crawl.wait()
        carried = {one.path: "authorization" in one.headers for one in server.requests if one.path.startswith("/asked/")}
    assert carried == {f"/asked/{number}": row[4] for number, row in enumerate(ASKS)}


def test_cookies_in_the_browser_are_those_of_their_server(project: MakeProject) -> None:
    def sets(request: Request) -> Reply:
        code = (
            "tell('script', document.cookie); fetch('/own');"
            " fetch('/deep/own'); document.body.append(Object.assign(document.createElement('iframe'), {src: '{victim}/frame'}))"
        ).replace("{victim}", f"http://{other.netloc}")
        made = scripted(SENDS + code, body=f"<p>{PLAIN_TEXT}</p>")
        names = ("Set-Cookie", "set-cookie", "SET-COOKIE", "Set-cookie", "set-Cookie")
        cookies = ["strict=1; SameSite=Strict; HttpOnly", "lax=1; HttpOnly", "none=1; SameSite=None; Secure; HttpOnly", "seen=1"]
        return html(made.body.decode(), headers=dict(zip(names, [*cookies, "deep=1; Path=/deep; HttpOnly"], strict=True)))

    with serve(Site({"/robots.txt": text("")}), host="127.0.0.2") as other:
        site = Site(
            {
                "/robots.txt": text(""),
                "/": sets,
                "/told": text(""),
                "/own": text("x"),
                "/deep/own": text("x"),
                "/of-frame": text("x"),
            }
        )
        with serve(site) as server:
            other.site["/frame"] = scripted(f"fetch('{server.url('/of-frame')}', {{mode: 'no-cors', credentials: 'include'}})")
            login = {"type": "cookies", "cookies": {"sid": "session"}, "logged_out": {"text": "Please log in"}}
            settings = f"{ALWAYS}CRAWLSPACE_SITES = {{{server.netloc!r}: {{'login': {login!r}, 'allow_plain_http': True}}}}\n"
            demo = project(collection(server.url("/"), rules="allow domain 127.0.0.2\n", settings=settings))
            demo.crawl("demo", timeout=TIMEOUT).succeeded()
            found = {
                one.path: {pair.partition("=")[0] for pair in one.headers.get("cookie", "").split("; ") if pair}
                for one in server.requests
            }
            assert told(server) == {"script": "seen=1"}
    assert found["/own"] - {"none"} == {"sid", "strict", "lax", "seen"}
    assert found["/deep/own"] - {"none"} == {"sid", "strict", "lax", "seen", "deep"}
    assert found["/of-frame"] == set()


KEEPS = {
    "window.name": ("window.name = 'kept'", "window.name"),
    "history": ("history.pushState({}, '', '/1?pushed')", "history.length > 2 ? 'kept' : ''"),
    "sessionStorage": ("sessionStorage.setItem('x', 'kept')", "sessionStorage.getItem('x') || ''"),
    "localStorage": ("localStorage.setItem('x', 'kept')", "localStorage.getItem('x') || ''"),
    "cookie": ("document.cookie = 'x=kept; max-age=1000'", "document.cookie"),
    "cache": ("await (await caches.open('x')).put('/told', new Response('kept'))", "(await caches.keys()).join()"),
    "database": (
        "await new Promise((ok) => { indexedDB.open('kept').onsuccess = ok })",
        "(await indexedDB.databases()).map((one) => one.name).join()",
    ),
    "service worker": (
        "await navigator.serviceWorker.register('/worker.js').catch(() => 0)",
        "(await navigator.serviceWorker.getRegistrations()).length || ''",
    ),
}


def test_no_page_finds_what_an_earlier_one_has_left(project: MakeProject) -> None:
    first = "".join(f"try {{ {code} }} catch (e) {{}};\n" for code, _ in KEEPS.values())
    second = "".join(f"tell({name!r}, await (async () => {code})());\n" for name, (_, code) in KEEPS.items())
    site = Site(
        {
            "/robots.txt": text(""),
            "/told": text(""),
            "/worker.js": Answer(200, {"Content-Type": "text/javascript"}, b""),
            "/": scripted(
                f"{SENDS} (async () => {{ {first} tell('left', 'all') }})()", body=f"<p>{PLAIN_TEXT}</p><a href=/2>2</a>"
            ),
            "/2": scripted(f"{SENDS} (async () => {{ {second} }})()", body=f"<p>{PLAIN_TEXT}</p>"),
        }
    )
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=f"{ALWAYS}CRAWLSPACE_BROWSER_PAGES = 1\n"))
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        found = told(server)
    assert found == {"left": "all", **dict.fromkeys(KEEPS, "")}


def test_pages_over_https_load_what_they_need_and_connect(project: MakeProject, tmp_path: Path) -> None:
    """The browser's connections end at the crawl, which verifies the certificate of the server."""
    code = (
        "fetch('/words').then((r) => r.text()).then((t) => document.body.append(t));"
        " const s = new WebSocket('wss://' + location.host + '/socket'); s.onmessage = (m) => { document.body.append(m.data); s.close() }"
    )
    site = Site(
        {
            "/robots.txt": text(""),
            "/": scripted(code, body=f"<p>{PLAIN_TEXT}</p>"),
            "/words": text("words over https "),
            "/socket": Socket("words of a socket"),
        }
    )
    ca_file, own = authority(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(own)
    with serve(site, tls=tls) as server:
        settings = (
            f'{ALWAYS}CRAWLSPACE_RENDER_WAIT_FOR = "#never"\nCRAWLSPACE_BROWSER_TIMEOUT = "20s"\n'
            f"CRAWLSPACE_SITES = {{'127.0.0.1': {{'ca_file': {str(ca_file)!r}}}}}\n"
        )
        demo = project(collection(server.url("/"), settings=settings))
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        found = texts(demo)["/"]
    assert "words over https" in found
    assert "words of a socket" in found


LOOPS = {
    "fetch": "const again = () => fetch('/x?' + Math.random()).then(again, again); for (let n = 0; n < 50; n++) again()",
    "all at once": "for (let n = 0; n < 5000; n++) fetch('/x?' + n)",
}


def test_a_page_that_asks_without_end_is_ended_with_one_line(project: MakeProject) -> None:
    site = Site({"/robots.txt": text(""), "/x": text("x")})
    site["/"] = page("Home", text=PLAIN_TEXT, links=[f"/{number}" for number in range(len(LOOPS))])
    for number, code in enumerate(LOOPS.values()):
        site[f"/{number}"] = scripted(code, body=f"<p>{PLAIN_TEXT}</p>")
    with serve(site) as server:
        settings = f'{ALWAYS}CRAWLSPACE_BROWSER_TIMEOUT = "120s"\nCRAWLSPACE_BROWSER_PAGES = 1\n'
        demo = project(collection(server.url("/"), settings=settings))
        crawled = demo.crawl("demo", timeout=TIMEOUT)
        ended = [line for line in crawled.stderr.splitlines() if "is ended, because it makes more than 500 requests" in line]
        assert_same(
            [f"/{line.partition(server.netloc)[2].split()[0].strip('/')}" for line in ended], [f"/{n}" for n in range(len(LOOPS))]
        )
        assert "Traceback" not in crawled.stderr
        assert len(crawled.stderr) < 10_000


def test_the_memory_of_all_processes_of_the_browser_stays_within_its_limit(project: MakeProject) -> None:
    takes = "const all = []; setInterval(() => all.push(new Uint8Array(1e8).fill(1)), 1)"
    code = f"for (let n = 0; n < 8; n++) new Worker(URL.createObjectURL(new Blob([`{takes}`]))); {takes}"
    site = Site({"/robots.txt": text(""), "/": page("Home", text=PLAIN_TEXT, links=["/takes"]), "/takes": scripted(code)})
    limit = 1 << 30
    with serve(site) as server:
        settings = f"{ALWAYS}CRAWLSPACE_BROWSER_MEMORY = {limit}\nCRAWLSPACE_BROWSER_TIMEOUT = '60s'\nRETRY_TIMES = 0\n"
        demo = project(collection(server.url("/"), settings=f"{settings}STATS_DUMP = True\nLOG_LEVEL = 'INFO'\n"))
        crawled = demo.crawl("demo", timeout=TIMEOUT)
        most = re.search(r"'crawlspace/browser/memory_max': (\d+)", crawled.stderr)
    assert most is not None
    assert int(most[1]) < 1.5 * limit
    assert statuses(demo)["/takes"] == 617
    assert "Traceback" not in crawled.stderr


def test_what_pages_load_takes_a_share_of_the_delay_of_its_site(project: MakeProject) -> None:
    code = "Promise.all([...Array(10).keys()].map((n) => fetch('/x?' + n))).then(() => document.body.append('all is there'))"
    with serve(Site({"/robots.txt": text(""), "/": scripted(code, body=f"<p>{PLAIN_TEXT}</p>"), "/x": text("x")})) as server:
        settings = ALWAYS.replace("DOWNLOAD_DELAY = 0", "DOWNLOAD_DELAY = 4") + 'CRAWLSPACE_BROWSER_TIMEOUT = "120s"\n'
        demo = project(collection(server.url("/"), settings=settings))
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert "all is there" in texts(demo)["/"]
        times = [request.at for request in server.requests if request.path.startswith("/x?")]
    assert times[-1] - times[0] > 9 * 0.4 * 0.9
