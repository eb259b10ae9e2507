"""An archive in a folder of the test's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from crawlspace.archive.files import place_of
from crawlspace.archive.reader import ArchiveReader
from crawlspace.archive.writer import ArchiveWriter, Ticket
from crawlspace.clock import FakeClock
from crawlspace.document import Document
from crawlspace.outcome import BodyFile, Exchange


class Archive:
    """A writer and a reader of one folder; each file has a number as soon as something of it is placed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reader = ArchiveReader(folder, {})

    def writer(self, *, rotated_bytes: int = 1 << 30) -> ArchiveWriter:
        return ArchiveWriter(
            self.folder, collection="demo", clock=FakeClock(1_750_000_000), originals=self.reader, rotated_bytes=rotated_bytes
        )

    def place(self, ticket: Ticket) -> int:
        assert ticket.location is not None
        numbers = {name: number for number, name in self.reader.files.items()}
        number = numbers.setdefault(ticket.location.file, len(numbers) + 1)
        self.reader.files[number] = ticket.location.file
        return place_of(number, ticket.location.offset)

    def write(self, *tickets: Ticket, rotated_bytes: int = 1 << 30) -> list[int]:
        """Write fetches to a file of their own, and return their places."""
        with closing(self.writer(rotated_bytes=rotated_bytes)) as writer:
            for ticket in tickets:
                writer.add(ticket)
            writer.wait(tickets)
            return [self.place(ticket) for ticket in tickets if ticket.location is not None]

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    made = Archive(tmp_path / "archive")
    yield made
    made.reader.close()


def fetched(
    path: str,
    body: bytes | BodyFile = b"<title>A</title>",
    *,
    status: int = 200,
    title: str = "",
    dom: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    **fields: object,
) -> Ticket:
    """A fetch of a page of a.example; with a title there is a document, and with a DOM it was rendered. `headers` come with the usual ones."""
    url = f"http://a.example{path}"
    sent = [(b"User-Agent", [b"us"]), (b"Cookie", [b"secret"])]
    got = [(b"Content-Type", [b"text/html"]), (b"Set-Cookie", [b"secret"]), (b"X-Two", [b"1", b"2"])]
    changed = {name.encode(): [value.encode()] for name, value in (headers or {}).items()}
    got = list({**dict(got), **changed}.items())
    exchange = Exchange(url, "GET", sent, status, got, body, 1_750_000_000.5, address="127.0.0.1", dom=dom)
    return Ticket(exchange, Document(url, title=title) if title else None, **fields)  # type: ignore[arg-type]
