"""A few random histories through `scrapy crawl` over HTTP, killed with SIGKILL: what the many in tests/histories leave out.

Those drive the engine in one process. Here everything else takes part: Scrapy, the spider that reads pages, headers and validators.
Days pass by making everything due, and by forgetting what robots.txt said.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

import apsw
import pytest

from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import UrlState
from crawlspace.state.sqlite.store import SqliteStore
from tests.conftest import MakeProject, Project
from tests.histories.changes import Changes
from tests.histories.configuration import Configuration, Rule
from tests.histories.documents import Indexed, Past
from tests.histories.drawn import DRAWN
from tests.histories.oracle import Oracle
from tests.histories.settings import reconfigured
from tests.histories.web import HTML, PLAIN, Site, Web
from tests.http import Reply, Request
from tests.integration.stored import make_due
from tests.notifications import notify, wait_until
from tests.quick import some
from tests.sites import Server, drop, html, serve, status
from tests.sites import Site as Served

STEPS = 5
ROUNDS = 3
ROUNDS_AFTER_FAILURES = 7


class OfTwoSites(Changes):
    """Changes that two servers can show."""

    def _new_site(self) -> str:
        return ""


@dataclass
class History:
    """A web that is served, a collection that crawls it, and what happened so far."""

    web: Web
    changes: Changes
    configuration: Configuration
    project: Project
    chance: random.Random
    steps: list[str]

    def write(self) -> None:
        settings = {**self.configuration.settings(), "CRAWLSPACE_RETRY_WAIT": 0, "DOWNLOAD_TIMEOUT": 300}
        nowhere = Rule(False, "domain", "elsewhere.example")
        self.project.write(
            {
                "demo/start_urls.txt": "".join(f"{site.home}\n" for site in self.web.sites.values()),
                "demo/crawl.rules": "".join(f"{rule}\n" for rule in (nowhere, *self.configuration.rules)),
                "demo/settings.py": "".join(f"{name} = {value!r}\n" for name, value in settings.items()),
            }
        )

    def crawl(self, *, kill: bool = False) -> None:
        self.write()
        if not kill:
            done = self.project.crawl("demo")
            if "no start site could be reached" not in done.stderr:
                done.succeeded()
            self.steps.append("crawl")
            return
        process = self.project.start("crawl", "demo")
        served = sum(self.web.requests.values())
        wanted = served + self.chance.randint(1, 25)
        wait_until(lambda: process.poll() is not None or sum(self.web.requests.values()) >= wanted)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.steps.append(f"crawl killed after {sum(self.web.requests.values()) - served} requests")

    def days_pass(self) -> None:
        make_due(self.project)
        with closing(apsw.Connection(str(self.project.data / "demo" / "state.db"))) as database:
            database.execute("DELETE FROM robots")
            database.execute("UPDATE site SET wait_until = NULL")

    def differences(self) -> list[str]:
        with closing(SqliteStore(self.project.data / "demo" / "state.db", read_only=True)) as store:
            states: dict[str, UrlState] = {state.url: state for state in store.urls()}
            assert not store.counts().outbox
        with closing(EmbeddedIndex(self.project.data / "demo" / "index.db", read_only=True)) as index:
            documents = [document for url in index.urls() if (document := index.get(url)) is not None]
        has = {each.url: Indexed(each.title, each.text, frozenset(each.duplicates)) for each in documents}
        memory = {url: (state.state.label, state.status) for url, state in states.items()}
        return list(Oracle(self.web, self.configuration).differences(has, memory, Past()))


@pytest.mark.full
@pytest.mark.parametrize("seed", some([1, 2, 3], 1))
def test_after_real_crawls_the_index_is_as_the_oracle_says(project: MakeProject, seed: int) -> None:
    chance = random.Random(seed)
    with served() as (web, servers):
        changes = OfTwoSites(web, chance, replace(DRAWN, files=False))  # these servers have no files
        changes.begin()
        history = History(web, changes, Configuration(retry_times=1, robots_ttl=60), project({}), chance, [f"seed {seed}"])
        for _ in range(STEPS):
            step(history)
        failed = any(page.failure or page.status >= 500 for page in web.pages.values())
        for site in web.sites.values():
            failed = failed or bool(site.outage)
            site.outage = ""
        for _ in range(ROUNDS_AFTER_FAILURES if failed else ROUNDS):
            history.days_pass()
            history.crawl()
        found = history.differences()
        assert not found, "\n".join([*history.steps, *found])
        assert not any(server.faults for server in servers)


def step(history: History) -> None:
    """Some changes, of the configuration or of a site's health too, and a crawl."""
    chance = history.chance
    history.steps += [history.changes.change() for _ in range(chance.randint(2, 8))]
    for page in history.web.pages.values():
        page.type = HTML if page.type == PLAIN else page.type  # the title of a plain text is its own matter
    if chance.random() < 0.6:
        history.configuration = reconfigured(history.configuration, history.web, chance)
        history.configuration = replace(
            history.configuration, continuous=False, cycle_minutes=0, global_rules=None, retry_times=1
        )
        history.steps.append(f"settings: {history.configuration}")
    if len(history.steps) > 20 and chance.random() < 0.4:
        site = chance.choice(list(history.web.sites.values()))
        site.outage = chance.choice(("", "500", "mostly", "refused"))
        history.steps.append(f"{site.host} fails: {site.outage}")
    if (history.project.data / "demo" / "state.db").exists():
        history.days_pass()
    history.crawl(kill=chance.random() < 0.5)


@contextmanager
def served() -> Iterator[tuple[Web, list[Server]]]:
    """Two sites on hosts of their own."""
    web = Web([], flakiness=random.Random(0))
    routes = Served({}, otherwise=lambda request: _reply(web, request))
    with serve(routes, host="127.0.0.1") as first, serve(routes, host="127.0.0.2") as second:
        for server in (first, second):
            web.sites[server.netloc] = Site(server.netloc)
        yield web, [first, second]


def _reply(web: Web, request: Request) -> Reply:
    answer = web.answer(f"http://{request.headers['host']}{request.path}")
    notify()
    if answer.failure:
        return drop(reset=True)
    if answer.body:
        return status(200, body=answer.body, headers={"Content-Type": "text/plain"})
    if answer.status != 200:
        return status(answer.status, headers={"Location": answer.location} if answer.location else {})
    head = '<meta name="robots" content="noindex">' if answer.noindex else ""
    head += f'<link rel="canonical" href="{answer.canonical}">' if answer.canonical else ""
    links = "".join(f'<a href="{link}"></a>' for link in answer.links)
    headers = {"Content-Type": answer.type}
    headers |= {"ETag": answer.etag} if answer.etag else {}
    headers |= {"Last-Modified": answer.last_modified} if answer.last_modified else {}
    return html(f"<title>{answer.title}</title>{head}<p>{answer.text}</p>{links}", headers=headers)
