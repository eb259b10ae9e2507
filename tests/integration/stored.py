"""What a crawl left behind: states, index and archive, read from its files as commands and warcio read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from warcio.archiveiterator import ArchiveIterator

from crawlspace.archive.reader import ArchiveReader, StoredResponse
from crawlspace.clock import Clock
from crawlspace.config.sinks import EMBEDDED
from crawlspace.document import Document
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.sink import index_place
from crawlspace.model import UrlState
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import Worker
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.state.store import Store
from tests.conftest import Project
from tests.due_times import make_all_due_by
from tests.servers import another_client, emptied, redis_server

FAST = (
    "DOWNLOAD_DELAY = 0; CRAWLSPACE_SITEMAP_GUESS = False\nCRAWLSPACE_RETRY_WAIT = 0.1\nCRAWLSPACE_BACKOFF_MAX = 0.2\n"
    "DOWNLOAD_TIMEOUT = 300\nCRAWLSPACE_ARCHIVE = False\n"
)
"""Without waits. An answer that a test holds, or that a busy machine gives late, is waited for; a test of a hang sets a time-out itself."""


def collection(start: str, *, rules: str = "", settings: str = FAST) -> dict[str, str]:
    """The files of a collection named demo."""
    return {"demo/start_urls.txt": f"{start}\n", "demo/crawl.rules": rules, "demo/settings.py": settings}


def shared(project: Project) -> Project:
    """The project, its states on a server of the tests' own that holds nothing yet."""
    emptied().close()
    project.store_url = f"redis://127.0.0.1:{redis_server().port}/0"
    return project


def index_at(folder: Path) -> str:
    """The setting by which a worker has its index in that data folder."""
    return f"CRAWLSPACE_SINKS={json.dumps({'local': {'type': 'sqlite', 'file': f'{folder}/demo/index.db'}})}"


@contextmanager
def opened(project: Project, name: str = "demo", *, clock: Clock | None = None) -> Iterator[Store]:
    """The store of a collection, wherever it is, as a command beside a crawl has it."""
    store: Store
    if project.store_url:
        store = RedisStore(another_client(), name, sinks=(EMBEDDED,))
    else:
        store = SqliteStore(project.data / name / "state.db", clock=clock, sinks=(EMBEDDED,))
    try:
        yield store
    finally:
        store.close()


def worker_of(project: Project, name: str = "demo", *, timeout_s: float = 30) -> Worker:
    """One that has begun to crawl a collection on the server, with its index in the project."""
    worker = Worker(RedisStore(another_client(), name, sinks=(EMBEDDED,), crawls=True), timeout_s=timeout_s)
    assert worker.begin("rules", index=(EMBEDDED, index_place(project.data / name / "index.db"))) is None
    worker.ready()
    return worker


def unreachable(project: Project, name: str = "demo") -> dict[str, tuple[int, int]]:
    """The sites that gave no answer, with status and number of runs."""
    with opened(project, name) as store:
        return {row.site: (row.status, row.runs) for row in store.unreachable()}


def states(project: Project, name: str = "demo") -> dict[str, UrlState]:
    """The URL states by path (and query); those of other hosts by whole URL."""
    with opened(project, name) as store:
        found = list(store.urls())
    first = urlsplit(found[0].url).netloc if found else ""
    return {_short(state.url, first): state for state in found}


def statuses(project: Project, name: str = "demo") -> dict[str, int | None]:
    return {path: state.status for path, state in states(project, name).items()}


def indexed(project: Project, name: str = "demo") -> list[str]:
    """The paths of the documents in the index, sorted."""
    index = EmbeddedIndex(project.data / name / "index.db", read_only=True)
    try:
        urls = sorted(index.urls())
    finally:
        index.close()
    return [urlsplit(url)._replace(scheme="", netloc="").geturl() for url in urls]


def make_due(project: Project, name: str = "demo") -> None:
    """Have everything known be due now, as after its interval."""
    with opened(project, name) as store:
        make_all_due_by(store, 0)


def refusals(project: Project, name: str = "demo") -> dict[str, int]:
    with opened(project, name) as store:
        return {reason.value: number for reason, number in store.counts().refused.items()}


def _short(url: str, first: str) -> str:
    parts = urlsplit(url)
    return parts._replace(scheme="", netloc="").geturl() if parts.netloc == first else url


ARCHIVED = FAST.replace("CRAWLSPACE_ARCHIVE = False\n", "")
"""Settings of a test with an archive."""


def folder(project: Project, name: str = "demo") -> Path:
    return project.data / name / "archive"


def files(project: Project, name: str = "demo") -> list[Path]:
    return sorted(folder(project, name).glob("*.warc.gz"))


def records(project: Project, name: str = "demo") -> Iterator[tuple[str, str, bytes]]:
    """Type, URL and content of all records, in their order, as warcio reads them; the digests must hold."""
    for path in files(project, name):
        with path.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                url = record.rec_headers.get_header("WARC-Target-URI")
                yield record.rec_type, url, record.content_stream().read()


def archived(project: Project, path: str, name: str = "demo") -> tuple[StoredResponse | None, Document | None]:
    """The response and the document at the place of a URL."""
    with opened(project, name) as store:
        reader = ArchiveReader(folder(project, name), store.archive_files())
    state = states(project, name)[path]
    try:
        if state.archived is None:
            return None, None
        return reader.response(state.archived, state.url), reader.document(state.archived, state.url)
    finally:
        reader.close()
