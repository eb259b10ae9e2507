"""What a crawl left behind, read from its files as the commands read them."""

from __future__ import annotations

from urllib.parse import urlsplit

from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import UrlState
from crawlspace.state.sqlite import SqliteStore
from tests.conftest import Project

FAST = "DOWNLOAD_DELAY = 0\nCRAWLSPACE_RETRY_WAIT = 0.1\nCRAWLSPACE_BACKOFF_MAX = 0.2\nDOWNLOAD_TIMEOUT = 2\n"


def collection(start: str, *, rules: str = "", settings: str = FAST) -> dict[str, str]:
    """The files of a collection named demo."""
    return {"demo/start_urls.txt": f"{start}\n", "demo/crawl.rules": rules, "demo/settings.py": settings}


def states(project: Project, name: str = "demo") -> dict[str, UrlState]:
    """The URL states by path (and query); those of other hosts by whole URL."""
    store = SqliteStore(project.data / name / "state.db", read_only=True)
    try:
        found = list(store.urls())
    finally:
        store.close()
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
    store = SqliteStore(project.data / name / "state.db")
    try:
        store.hasten(0)
    finally:
        store.close()


def refusals(project: Project, name: str = "demo") -> dict[str, int]:
    store = SqliteStore(project.data / name / "state.db", read_only=True)
    try:
        return dict(store.refusals())
    finally:
        store.close()


def _short(url: str, first: str) -> str:
    parts = urlsplit(url)
    return parts._replace(scheme="", netloc="").geturl() if parts.netloc == first else url
