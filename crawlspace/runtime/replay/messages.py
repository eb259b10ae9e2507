"""What a process that makes documents anew is asked, and what it answers (`framing`)."""

from __future__ import annotations

from msgspec import Struct, msgpack

from crawlspace.crawl.replay import Remade
from crawlspace.model import UrlState


class ReplayStart(Struct, frozen=True):
    """Whose pages they are: the first message to a process."""

    collection: str
    options: dict[str, str]
    """Settings of the command line."""
    archive_files: dict[int, str]
    """The names of the files of the archive, by number."""


class Pages(Struct, frozen=True):
    """Pages that documents are to be made of."""

    states: list[UrlState]


class Fault(Struct, frozen=True, tag="fault"):
    """Why nothing can be made of any page."""

    sentence: str


class PageAnswer(Struct, frozen=True, tag="page"):
    """What was made of one page."""

    remade: Remade


_starts = msgpack.Decoder(ReplayStart)
_pages = msgpack.Decoder(Pages)
_answers: msgpack.Decoder[PageAnswer | Fault] = msgpack.Decoder(PageAnswer | Fault)


def start_of(body: bytes) -> ReplayStart:
    return _starts.decode(body)


def pages_of(body: bytes) -> Pages:
    return _pages.decode(body)


def answer_of(body: bytes) -> PageAnswer | Fault:
    return _answers.decode(body)
