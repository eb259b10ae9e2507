"""Where a page in the browser cannot get: to no address that the rules refuse, by no way that a browser has."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.browser.pages import PLAIN_TEXT, SHELL, app, data, script, scripted
from tests.browser.test_rendering import ALWAYS, TIMEOUT, texts
from tests.command_line import start_scrapy
from tests.conftest import MakeProject
from tests.http import Connection, Request
from tests.integration.stored import collection
from tests.sites import Site, html, page, redirect, serve, text

FORBIDDEN = "127.0.0.9"


@contextmanager
def listening(host: str = FORBIDDEN) -> Iterator[tuple[int, list[str]]]:
    """A socket that notes each connection; yields its port and what connected."""
    seen: list[str] = []
    with socket.create_server((host, 0)) as server:
        server.settimeout(None)

        def accept() -> None:
            while True:
                try:
                    connection, peer = server.accept()
                except OSError:
                    return
                seen.append(repr((peer, connection.recv(200))))
                connection.close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1], seen
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


WAYS = {
    "script": ("<script src={url}></script>", ""),
    "style": ("<link rel=stylesheet href={url}><style>@import '{url}'</style>", ""),
    "image": ("<img src={url}><picture><source srcset={url}></picture><svg><image href={url} /></svg>", ""),
    "media": ("<video src={url} autoplay></video><audio src={url} autoplay></audio><track src={url}>", ""),
    "objects": ("<object data={url}></object><embed src={url}><applet code={url}></applet>", ""),
    "frames": ("<iframe src={url}></iframe><frameset><frame src={url}></frameset>", ""),
    "hints": (
        (
            "<link rel=prefetch href={url}><link rel=preload as=script href={url}><link rel=preconnect href={url}>"
            "<link rel=dns-prefetch href={url}><link rel=modulepreload href={url}><link rel=prerender href={url}><link rel=icon href={url}>"
            '<script type=speculationrules>{{"prerender": [{{"source": "list", "urls": ["{url}"]}}],'
            ' "prefetch": [{{"source": "list", "urls": ["{url}"]}}]}}</script>'
        ),
        "",
    ),
    "refresh": ('<meta http-equiv=refresh content="0; url={url}">', ""),
    "fetch": (
        "",
        "fetch('{url}'); fetch('{url}', {{mode: 'no-cors'}}); fetch('{url}', {{method: 'POST', body: 'x', keepalive: true}})",
    ),
    "xhr": ("", "const x = new XMLHttpRequest(); x.open('GET', '{url}'); x.send()"),
    "beacon": ("", "navigator.sendBeacon('{url}', 'x')"),
    "events": ("", "new EventSource('{url}')"),
    "socket": ("", "new WebSocket('{url}'.replace('http', 'ws'))"),
    "transport": ("", "new WebTransport('{url}'.replace('http', 'https')).ready.catch(() => 0)"),
    "webrtc": (
        "",
        (
            "const p = new RTCPeerConnection({{iceServers: [{{urls: 'stun:{host}'}}, {{urls: 'turn:{host}?transport=tcp', username: 'a',"
            " credential: 'b'}}]}}); p.createDataChannel('x'); p.createOffer().then((o) => p.setLocalDescription(o))"
        ),
    ),
    "worker": ("", "new Worker(URL.createObjectURL(new Blob([`fetch('{url}'); importScripts('{url}')`])))"),
    "shared worker": ("", "new SharedWorker(URL.createObjectURL(new Blob([`fetch('{url}'); importScripts('{url}')`])))"),
    "socket of a worker": ("", "new Worker(URL.createObjectURL(new Blob([`new WebSocket('{url}'.replace('http', 'ws'))`])))"),
    "service worker": ("", "navigator.serviceWorker && navigator.serviceWorker.register('/service.js')"),
    "module": ("", "import('{url}')"),
    "form": (
        "<form id=f action={url} method=post></form><form id=g action={url} target=_blank></form>",
        "g.submit(); f.submit()",
    ),
    "navigation": ("", "location.href = '{url}'"),
    "window": ("", "window.open('{url}')"),
    "anchor": ("<a id=a href={url} ping={url} target=_blank>x</a><a id=b href={url} download>y</a>", "a.click(); b.click()"),
    "font": ("<style>@font-face {{font-family: F; src: url({url})}} p {{font-family: F}}</style><p>words</p>", ""),
    "redirected script": ("<script src=/away></script>", ""),
    "redirected fetch": ("", "fetch('/away'); fetch('/away', {{redirect: 'manual'}})"),
    "redirected frame": ("<iframe src=/away></iframe>", ""),
    "frame with a script": ("<iframe srcdoc=\"<script>fetch('{url}')</script>\"></iframe>", ""),
    "reports": (
        "<script>document.write('<meta http-equiv=Content-Security-Policy content=\"img-src none; report-uri {url}\"><img src=x>')</script>",
        "",
    ),
}


@pytest.mark.parametrize("spelling", [FORBIDDEN, "[::ffff:127.0.0.9]", "0x7f000009", "2130706441", "127.9"])
def test_no_way_leads_to_an_address_that_is_refused(project: MakeProject, spelling: str) -> None:
    with listening() as (port, seen):
        url, host = f"http://{spelling}:{port}/x", f"{spelling}:{port}"
        site = Site(
            {
                "/robots.txt": text(""),
                "/": page("Home", text=PLAIN_TEXT, links=[f"/{number}" for number in range(len(WAYS))]),
                "/away": redirect(url),
                "/service.js": script(f"fetch('{url}')"),
            }
        )
        for number, (body, code) in enumerate(WAYS.values()):
            site[f"/{number}"] = scripted(
                f"document.body.append('there'); {code.format(url=url, host=host)}",
                body=f"<p>{PLAIN_TEXT}</p>{body.format(url=url)}",
            )
        with serve(site) as server:
            demo = project(collection(server.url("/"), settings=f'{ALWAYS}CRAWLSPACE_BROWSER_TIMEOUT = "30s"\n'))
            demo.crawl("demo", timeout=TIMEOUT).succeeded()
            asked = {path for path in server.paths() if path.lstrip("/").isdigit() or path == "/"}
        assert len(asked) == len(WAYS) + 1
        assert seen == []


def test_they_lead_there_where_the_rules_allow_it(project: MakeProject) -> None:
    with listening() as (port, seen):
        url = f"http://{FORBIDDEN}:{port}/x"
        leading = ("script", "frames", "fetch", "xhr", "socket", "worker", "module", "redirected script")
        site = Site({"/robots.txt": text(""), "/away": redirect(url)})
        for name in leading:
            body, code = WAYS[name]
            path = f"/{name.replace(' ', '-')}"
            site[path] = scripted(code.format(url=f"{url}?{name}"), body=f"<p>{PLAIN_TEXT}</p>{body.format(url=url)}")
        site["/"] = page("Home", text=PLAIN_TEXT, links=[path for path in site if path not in {"/robots.txt", "/away"}])
        with serve(site) as server:
            settings = f'{ALWAYS}CRAWLSPACE_BROWSER_TIMEOUT = "30s"\nROBOTSTXT_OBEY = False\n'
            demo = project(collection(server.url("/"), rules=f"allow address {FORBIDDEN}\n", settings=settings))
            demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert len(seen) >= len(leading)
        assert any("Upgrade: websocket" in one for one in seen)


def test_a_name_that_changes_its_address_leads_nowhere_else(project: MakeProject, tmp_path: Path) -> None:
    with listening() as (port, seen):
        code = (
            f"let n = 0; const again = () => fetch('http://changes.test:{port}/x?' + n).catch(() => 0).then(() => {{"
            f" new WebSocket('ws://changes.test:{port}/'); if (++n < 8) setTimeout(again, 50); else document.body.append('tried') }})"
        )
        site = Site({"/robots.txt": text(""), "/": scripted(f"{code}; again()", body=f"<p>{PLAIN_TEXT}</p>")})
        with serve(site) as server:
            rules = "allow domain changes.test\nforbid address 127.0.0.9\n"
            demo = project(collection(server.url("/"), rules=rules, settings=ALWAYS + "DNSCACHE_ENABLED = False\n"))
            crawl = start_scrapy(["crawl", "demo"], output=tmp_path / "output.txt", env=demo.env, first=changing_names)
            crawl.wait()
            assert "tried" in texts(demo)["/"]
        assert seen == []


def changing_names() -> None:
    """Have a name look harmless each other time."""
    real, times = socket.getaddrinfo, iter(range(1 << 30))

    def getaddrinfo(host: str, *rest: object, **named: object) -> object:
        if host == "changes.test":
            host = "127.0.0.8" if next(times) % 2 == 0 else FORBIDDEN
        return real(host, *rest, **named)  # type: ignore[arg-type]

    socket.getaddrinfo = getaddrinfo  # type: ignore[assignment]


def test_the_browser_connects_to_nothing_but_its_way_out(project: MakeProject) -> None:
    """Whatever it does by itself, as looking for updates, ends there too."""
    with serve(app(40)) as server:
        demo = project(collection(server.url("/"), rules="allow domain *\n", settings=ALWAYS))
        crawl = demo.start("crawl", "demo")
        targets: set[str] = set()

        def look() -> bool:
            for process in psutil.Process(crawl.pid).children(recursive=True) if crawl.poll() is None else ():
                try:
                    targets.update(f"{one.raddr.ip}:{one.raddr.port}" for one in process.net_connections("inet") if one.raddr)
                except psutil.Error:
                    continue
            return crawl.poll() is not None

        demo.until(lambda: look() or len(server.paths()) > 60)
        crawl.wait()
        ours = {port for port in targets if port.startswith("127.0.0.1:")}
        assert targets == ours
        assert server.netloc not in targets


class Socket:
    """A WebSocket (RFC 6455) that says one thing."""

    def __init__(self, words: str) -> None:
        self._words = words.encode()

    async def send(self, request: Request, connection: Connection) -> None:
        key = request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        head = f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        await connection.write(head.encode() + bytes([0x81, len(self._words)]) + self._words)
        await asyncio.wait_for(connection.reader.read(), TIMEOUT)
        raise ConnectionAbortedError


def test_a_web_socket_to_a_place_that_is_admitted_is_connected(project: MakeProject) -> None:
    code = "const s = new WebSocket('ws://' + location.host + '/socket'); s.onmessage = (m) => { document.body.append(m.data); s.close() }"
    settings = f'{ALWAYS}CRAWLSPACE_RENDER_WAIT_FOR = "#never"\nCRAWLSPACE_BROWSER_TIMEOUT = "20s"\n'
    site = Site(
        {"/robots.txt": text(""), "/": scripted(code, body=f"<p>{PLAIN_TEXT}</p>"), "/socket": Socket("words of a socket")}
    )
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=settings))
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert "words of a socket" in texts(demo)["/"]


def test_robots_txt_holds_for_what_pages_load(project: MakeProject) -> None:
    site = Site(
        {
            "/robots.txt": text("User-agent: *\nDisallow: /data/p/1"),
            "/app.js": app(1)["/app.js"],
            "/": page("Home", text=PLAIN_TEXT, links=["/p/1", "/p/2"]),
            "/p/1": SHELL,
            "/p/2": SHELL,
            "/data/p/1.json": data({"title": "One", "text": "words of one", "links": []}),
            "/data/p/2.json": data({"title": "Two", "text": "words of two", "links": []}),
        }
    )
    with serve(site) as server:
        demo = project(collection(server.url("/"), settings=ALWAYS))
        demo.crawl("demo", timeout=TIMEOUT).succeeded()
        assert server.counts()["/data/p/1.json"] == 0
        assert "words of two" in texts(demo)["/p/2"]


def test_a_page_of_another_site_asks_for_nothing_with_our_log_in(project: MakeProject) -> None:
    with serve(Site({"/robots.txt": text(""), "/secret": text("x"), "/": html(PLAIN_TEXT)}), host="127.0.0.2") as wiki:
        code = f"fetch('{wiki.url('/secret')}', {{mode: 'no-cors', credentials: 'include'}}); fetch('/own')"
        site = Site({"/robots.txt": text(""), "/": scripted(code, body=f"<p>{PLAIN_TEXT}</p>"), "/own": text("x")})
        with serve(site) as server:
            entry = {"login": {"type": "basic", "user": "u", "password": "env:WIKI"}, "allow_plain_http": True}
            settings = f"{ALWAYS}CRAWLSPACE_SITES = {{'127.0.0.2': {entry!r}}}\n"
            files = collection(server.url("/"), settings=settings)
            files["demo/start_urls.txt"] += wiki.url("/") + "\n"
            demo = project(files)
            demo.env["WIKI"] = "password"
            demo.crawl("demo", timeout=TIMEOUT).succeeded()
            carried = {request.path: "authorization" in request.headers for request in wiki.requests}
    assert carried["/"]
    assert not carried["/secret"]
