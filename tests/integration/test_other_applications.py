"""Log-ins at applications that are not ours: Django's forms, sessions and CSRF tokens, and the OAuth2 server of Authlib."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

from crawlspace.access.sessions import SESSIONS, kept_sessions
from tests.command_line import ROOT
from tests.conftest import MakeProject, Project, assert_same
from tests.integration.stored import FAST, collection, indexed, opened
from tests.notifications import LONGEST_WAIT_S
from tests.quick import some

PASSWORD, SECRET = "Passwort & of the wiki", "client-secret"
PAGES = [f"/pages/{number}" for number in range(1, 12)]
API = ["/api/", *(f"/api/{number}" for number in range(1, 12))]


class Application:
    def __init__(self, url: str) -> None:
        self.url = url

    def happened(self, what: str = "nothing") -> dict[str, int]:
        """Have something be done, and return how often what happened until now."""
        with urllib.request.urlopen(f"{self.url}/of-the-test/{quote(what)}", timeout=LONGEST_WAIT_S) as answer:
            found: dict[str, int] = json.load(answer)
        return found

    def settings(self, login: dict[str, object]) -> str:
        host = self.url.removeprefix("http://")
        return f"{FAST}CRAWLSPACE_SITES = {{{host!r}: {{'login': {login!r}, 'allow_plain_http': True}}}}\n"


@pytest.fixture
def application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Application]:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
    monkeypatch.setenv("CLIENT_SECRET", SECRET)
    environment = {**os.environ, "PEER_PASSWORD": PASSWORD, "PEER_SECRET": SECRET}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.peers.application", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"it ended with {process.wait()}"
        yield Application(json.loads(line))
        process.communicate()


def form(application: Application) -> dict[str, object]:
    fields = {"username": "crawler", "password": "env:WIKI_PASSWORD"}
    return {"type": "form", "url": f"{application.url}/accounts/login/", "fields": fields}


def oauth2(application: Application, **more: object) -> dict[str, object]:
    url = f"{application.url}/oauth/token"
    return {"type": "oauth2", "url": url, "client_id": "crawler-client", "client_secret": "env:CLIENT_SECRET", **more}


def everything(demo: Project) -> str:
    demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
    return demo.crawl("demo").succeeded().stderr


def age(demo: Project) -> None:
    """Have the sessions that are kept be an hour older."""
    with opened(demo) as store:
        kept = {
            entry: msgspec.structs.replace(one, since=one.since - 3_600, expires=(one.expires or 0) - 3_600)
            for entry, one in kept_sessions(store).items()
        }
        store.set_meta(SESSIONS, msgspec.json.encode(kept).decode())


@pytest.mark.full
def test_the_form_of_django(project: MakeProject, application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    demo = project(collection(f"{application.url}/", settings=application.settings(form(application))))
    monkeypatch.setenv("WIKI_PASSWORD", "wrong")
    assert "is refused" in demo.crawl("demo").stderr
    refused = application.happened()
    assert 1 <= refused["refused log-ins"] <= 2
    assert "pages" not in refused
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
    demo.crawl("demo").succeeded()
    assert_same(indexed(demo), ["/", *PAGES])
    assert application.happened()["log-ins"] == 1
    everything(demo)
    assert application.happened("end-sessions")["log-ins"] == 1, "the session is kept"
    everything(demo)
    assert application.happened() == refused | {"log-ins": 2, "pages": 3 * 12 + 2}, "each log-in leads to a page"
    assert_same(indexed(demo), ["/", *PAGES])


# Where the client is named, and its secret: in a header it is encoded as RFC 6749 (2.3.1) wants it, which Authlib does not decode.
CLIENTS = (("header", "client-secret.1"), ("body", "client & secret + 1"))


@pytest.mark.full
@pytest.mark.parametrize(("client_in", "secret"), some(CLIENTS, 1))
def test_the_oauth2_server_of_authlib(
    project: MakeProject, application: Application, monkeypatch: pytest.MonkeyPatch, client_in: str, secret: str
) -> None:
    monkeypatch.setenv("CLIENT_SECRET", secret)
    application.happened(f"secret={secret}")
    login = oauth2(application, scope="read", client_in=client_in)
    demo = project(collection(f"{application.url}/api/", settings=application.settings(login)))
    demo.crawl("demo").succeeded()
    assert_same(indexed(demo), API)
    assert application.happened("revoke") == {"asked for a token": 1, "tokens": 1}
    everything(demo)
    revoked = application.happened()
    assert (revoked["tokens"], revoked["refused"] >= 1) == (2, True)
    age(demo)
    everything(demo)
    assert application.happened() == revoked | {"tokens": 3, "asked for a token": 3}, "none was refused"
    application.happened("lasts=0")
    application.happened("revoke")
    everything(demo)
    assert application.happened()["tokens"] == 4, "no time is told by 0: it is used until it is refused"
    assert_same(indexed(demo), API)


@pytest.mark.full
def test_a_client_that_is_refused(project: MakeProject, application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIENT_SECRET", "wrong")
    demo = project(collection(f"{application.url}/api/", settings=application.settings(oauth2(application))))
    crawled = demo.crawl("demo")
    assert "is refused" in crawled.stderr
    assert 1 <= application.happened()["asked for a token"] <= 2
    assert indexed(demo) == []
