"""Sites with each kind of log-in, crawled with a secret of its own for each, through failures; and all that is left of that."""

from __future__ import annotations

import json
import os
import re
import secrets as random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from redis import Redis

from tests.conftest import Project
from tests.contract.sinks import OrderReceiver
from tests.http import Reply, Request
from tests.notifications import wait_until
from tests.planted.search import Found, count, files, forms
from tests.servers import Server as RedisServer
from tests.sites import Route, Server, Site, hang, html, page, redirect, serve, status, text

KINDS = (
    "basic",
    "digest",
    "bearer",
    "header",
    "form",
    "oauth2",
    "token",
    "cookie",
    "session",
    "key",
    "redis",
    "sink",
    "hmac",
    "link",
)
ALLOWED = frozenset({("data folder", "link"), ("commands", "link")})
"""What may be found: a page with a secret in a link is in the archive as it was fetched, and `scrapy content` prints it."""
SENT = frozenset(KINDS) - {"digest", "hmac", "key", "redis", "link"}
"""Those that sites or servers get as they are; of the others there is only a proof, or they are sent to no server that listens here."""
COMMANDS = (
    ("status",), ("status", "--json"), ("lint",), ("sinks",), ("sinks", "--json"), ("urls",), ("refused",), ("refused", "--json"),
    ("deletions",), ("export",), ("audit", "--sink", "embedded", "--json"), ("plan",), ("search", "home"), ("archive",), ("crawl", "-s", "CRAWLSPACE_SESSION_KEY=env:NOT_THERE"),
)  # fmt: skip


class Scene:
    """`secrets` are those that were planted, by kind; `places` what is left."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.secrets = {kind: f"{kind}-{random.token_hex(9)}+/{random.token_hex(3)}" for kind in KINDS}
        self.secrets["cookie"] = f"cookie-{random.token_hex(14)}"
        self.places: dict[str, list[bytes]] = {}
        self.used: set[str] = set()
        """Secrets that sites, sinks or servers were sent: else nothing would be proved."""
        self.sites: dict[str, Server] = {}
        self.other: Server

    def add(self, place: str, *contents: bytes | str) -> None:
        self.places.setdefault(place, []).extend(one.encode() if isinstance(one, str) else one for one in contents)

    def found(self) -> Found:
        return count(self.places, self.secrets)

    def unwanted(self) -> dict[tuple[str, str], int]:
        return {place: number for place, number in sorted(self.found().items()) if place not in ALLOWED}

    def pages(self, kind: str) -> Site:
        """Pages that are shown to who has the log-in, with links that lead elsewhere, and failures."""
        secret, other = self.secrets[kind], self.other
        link = f"http://user:{self.secrets['link'].replace('/', '%2F')}@{other.netloc}/userinfo"
        links: list[str | tuple[str, str]] = [
            "/a",
            "/500",
            "/moved",
            "/logout",
            "/boom",
            other.url(f"/linked-{kind}"),
            *([(link, "a link")] if kind == "header" else []),
        ]

        def behind(reply: Reply) -> Route:
            def answer(request: Request) -> Reply:
                shown = " ".join(f"{name}: {value}" for name, value in request.headers.items())
                token, session = self.secrets["token"], self.secrets["session"]
                wanted = {"form": f"sid={session}", "oauth2": f"Bearer {token}", "cookie": secret, "digest": "Digest username"}
                if kind in wanted and wanted[kind] not in shown:
                    challenge = 'Digest realm="r", nonce="n", qop="auth", algorithm=SHA-256'
                    return redirect("/login") if kind == "form" else status(401, headers={"WWW-Authenticate": challenge})
                return reply

            return answer

        def login(request: Request) -> Reply:
            if request.method == "POST":
                return status(302, headers={"Location": "/", "Set-Cookie": f"sid={self.secrets['session']}; Path=/"})
            return html("<title>Log in</title><form method=post><input name=user><input type=password name=password></form>")

        token = json.dumps({"access_token": self.secrets["token"], "token_type": "Bearer", "expires_in": 3600})
        replies = {
            "/": page(
                "home", text=f"home of {kind}", links=links, headers={"Set-Cookie": f"sid={self.secrets['session']}; Path=/"}
            ),
            "/a": page("a", text=f"a of {kind}"),
            "/boom": page("boom", text="a page on which code fails"),
            "/500": status(500),
            "/moved": redirect(other.url(f"/moved-{kind}")),
            "/logout": redirect("/login"),
        }
        routes: dict[str, Route] = {path: behind(reply) for path, reply in replies.items()}
        return Site(
            {
                "/robots.txt": text(""),
                **routes,
                "/login": login,
                "/token": text(token, headers={"Content-Type": "application/json"}),
            }
        )

    def login(self, kind: str, server: Server) -> dict[str, object]:
        reference = f"env:PLANTED_{kind.upper()}"
        logins: Mapping[str, dict[str, object]] = {
            "basic": {"type": "basic", "user": "crawler", "password": reference},
            "digest": {"type": "digest", "user": "crawler", "password": reference},
            "bearer": {"type": "bearer", "token": reference},
            "form": {"type": "form", "url": server.url("/login"), "fields": {"user": "crawler", "password": reference}},
            "oauth2": {"type": "oauth2", "url": server.url("/token"), "client_id": "crawler", "client_secret": reference},
            "cookie": {
                "type": "cookies",
                "file": str(self.project.folder / "cookies.txt"),
                "logged_out": {"status": [401], "text": "Log in"},
            },
        }
        entry: dict[str, object] = {"headers": {"X-Api-Key": reference}} if kind == "header" else {"login": logins[kind]}
        return {**entry, "allow_plain_http": True}

    def run(self, *args: str, place: str) -> None:
        ran = self.project.scrapy(*args)
        self.add(place, ran.stdout, ran.stderr)


@contextmanager
def planted(project: Project, *, shares: bool, is_brief: bool = False) -> Iterator[Scene]:
    """Plant secrets, crawl, have failures, and collect what is left; `is_brief`: with few commands and no crash."""
    scene = Scene(project)
    with ExitStack() as stack:
        project.env.update({f"PLANTED_{kind.upper()}": secret for kind, secret in scene.secrets.items()})
        other = Site({}, otherwise=page("Other", text="another host"))
        scene.other = stack.enter_context(serve(other, host="127.0.0.30"))
        for number, kind in enumerate(("basic", "digest", "bearer", "header", "form", "oauth2", "cookie"), 31):
            scene.sites[kind] = stack.enter_context(serve(scene.pages(kind), host=f"127.0.0.{number}"))
        (project.folder / "cookies.txt").write_text(f"127.0.0.37\tFALSE\t/\tFALSE\t0\tsid\t{scene.secrets['cookie']}\n")
        receiver = OrderReceiver()
        stack.callback(receiver.close)
        sinks = {
            "local": {"type": "sqlite"},
            "push": {
                "type": "http",
                "url": receiver.url,
                "secret": "env:PLANTED_HMAC",
                "headers": {"Authorization": "env:PLANTED_SINK"},
            },
            "down": {
                "type": "opensearch",
                "url": "http://127.0.0.1:9",
                "index": "i",
                "user": "u",
                "password": "env:PLANTED_SINK",
            },
        }
        sites = {server.netloc: scene.login(kind, server) for kind, server in scene.sites.items()}
        project.write(
            {
                "demo/start_urls.txt": "".join(f"{server.url('/')}\n" for server in scene.sites.values()),
                "demo/crawl.rules": "allow address 127.0.0.0/8\n",
                "demo/settings.py": f"DOWNLOAD_DELAY = 0\nCRAWLSPACE_RETRY_WAIT = 0.1\nCRAWLSPACE_BACKOFF_MAX = 0.2\nLOG_LEVEL = 'DEBUG'\n"
                f"COOKIES_DEBUG = True\nCRAWLSPACE_SESSION_KEY = 'env:PLANTED_KEY'\nCRAWLSPACE_SITES = {sites!r}\nCRAWLSPACE_SINKS = {sinks!r}\n"
                "ITEM_PIPELINES = {'tests.planted.code.FailingPipeline': 300}\n",
            }
        )
        redis = None
        if shares:
            redis = RedisServer(project.folder / "redis")
            stack.callback(redis.kill)
            with closing(redis.client()) as client:
                client.config_set("requirepass", scene.secrets["redis"])
            url = f"redis://:{quote(scene.secrets['redis'], safe='')}@127.0.0.1:{redis.port}/0"
            with (project.collections / "demo" / "settings.py").open("a") as file:
                file.write(f"CRAWLSPACE_STORE_URL = {url!r}\n")
        scene.run("crawl", "demo", place="log")
        scene.run("crawl", "demo", "-s", "LOG_FILE=" + str(project.data / "log.txt"), place="log")
        for name, *rest in COMMANDS[:3] if is_brief else COMMANDS:
            scene.run(name, "demo", *rest, place="commands")
        for server in () if is_brief else scene.sites.values():
            for command in ("explain", "links", "content"):
                scene.run(command, "demo", server.url("/"), place="commands")
            scene.run("login", "demo", server.netloc, place="commands")
        if not is_brief:
            _crash(scene)
        scene.add("requests to another host", *(repr((one.path, dict(one.headers), one.body)) for one in scene.other.requests))
        for kind, server in scene.sites.items():
            written = [repr((one.path, dict(one.headers), one.body)) for one in server.requests]
            scene.used.update({name for _, name in count({kind: [one.encode() for one in written]}, scene.secrets)})
            theirs = {kind, "session", *(("token",) if kind == "oauth2" else ())}
            own = re.compile(b"|".join(re.escape(form) for name in theirs for form in forms(scene.secrets[name])))
            scene.add("requests to a site, of others", *(own.sub(b"its own", one.encode()) for one in written))
        headers = [json.dumps(given).encode() for given, _ in receiver.requests]
        scene.used |= {name for _, name in count({"": headers}, scene.secrets)}
        scene.add("sinks", *(body for _, body in receiver.requests))
        scene.add("data folder", *files(project.data))
        if redis is not None:
            scene.add("redis", *_keys(redis, scene.secrets["redis"]))
        yield scene


def _crash(scene: Scene) -> None:
    """Have a crawl crash while it waits for a page, and look at its process before."""
    server = scene.sites["basic"]
    server.site["/"] = hang()
    scene.run("recrawl", "demo", server.url("/"), place="commands")
    server.forget()
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1", **scene.project.env}
    output = scene.project.folder / "crash.txt"
    with output.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "scrapy", "crawl", "demo"],
            stdout=out,
            stderr=out,
            env=environment,
            start_new_session=True,
        )
    try:
        wait_until(lambda: "/" in server.paths() or process.poll() is not None)
        family = [process.pid, *_children(process.pid)]
        for pid in family:
            scene.add("command lines", Path(f"/proc/{pid}/cmdline").read_bytes())
        for pid in family[1:]:
            scene.add("environment of child processes", Path(f"/proc/{pid}/environ").read_bytes())
        process.send_signal(signal.SIGSEGV)
    finally:
        process.wait()
    scene.add("crash", output.read_bytes())


def _children(pid: int) -> list[int]:
    found = [int(one) for path in Path(f"/proc/{pid}/task").glob("*/children") for one in path.read_text().split()]
    return [each for child in found for each in (child, *_children(child))]


def _keys(server: RedisServer, password: str) -> Iterator[bytes]:
    """Yield all keys and values."""
    with Redis(port=server.port, password=password) as client:
        for key in client.scan_iter():
            yield key
            kind = client.type(key)
            if kind == b"string":
                yield client.get(key) or b""
            elif kind == b"hash":
                for pair in client.hgetall(key).items():
                    yield from pair
            elif kind == b"list":
                yield from client.lrange(key, 0, -1)
            elif kind == b"set":
                yield from client.smembers(key)
            elif kind == b"zset":
                yield from client.zrange(key, 0, -1)
            else:
                raise AssertionError(f"{key!r} is a {kind!r}")
    yield server.log().encode()
