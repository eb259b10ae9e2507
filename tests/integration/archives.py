"""What a crawl has archived, read by warcio, and as the crawl's own store names it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from warcio.archiveiterator import ArchiveIterator

from crawlspace.archive.reader import ArchiveReader, StoredResponse
from crawlspace.document import Document
from tests.conftest import Project
from tests.integration.stored import FAST, opened, states

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
