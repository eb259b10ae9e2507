"""The messages to and from a process that reads pages, files and sitemaps, and applies extraction rules to pages (see `framing`)."""

from __future__ import annotations

from msgspec import Struct, msgpack

from crawlspace.content.documents.contents import FileContents, FileLimits
from crawlspace.content.extraction_rules import Extracted, ExtractionRules
from crawlspace.content.page import Page
from crawlspace.content.page_reader import PageReader
from crawlspace.content.sitemaps import SitemapContents, SitemapLimits

HELLO = b"\1"
"""Sent by a process that is ready."""
MAX_ANSWER = 256 * 1024 * 1024
"""Bytes of an answer; the text alone may have 16 MB."""


class FileJob(Struct, frozen=True, tag="file"):
    """A file to read, by its path or, if it is small, its bytes."""

    declared: str | None
    path: str = ""
    data: bytes = b""
    converter: str = ""
    """A command, or the URL of a Tika server; empty: one of our readers."""
    folder: str = ""
    """An empty folder for the files of a converter, which the crawl removes afterwards."""
    timeout_s: float = 30.0
    limits: FileLimits = FileLimits()


class ExtractionJob(Struct, frozen=True, tag="page"):
    """A page, and the extraction rules that apply to it."""

    body: bytes
    charset: str | None
    """That of the Content-Type header."""
    url: str
    rules: ExtractionRules
    exclusion_marks: tuple[str, ...]
    headers: tuple[tuple[str, str], ...] = ()
    is_main: bool = False
    """The text is that of the main content."""
    is_xhtml: bool = False
    boilerplate: tuple[int, ...] = ()
    """Blocks that are left out."""
    markdown: bool = False
    """The content as Markdown is wanted."""
    part_chars: int = 0
    """Characters of a part made of a section; 0: none are wanted."""
    timeout_s: float = 30.0


class HtmlJob(Struct, frozen=True, tag="html"):
    """A page to read. Jobs are sent without waiting for the answers of those before."""

    body: bytes
    url: str
    mime: str
    charset: str | None
    """That of the Content-Type header."""
    reader: PageReader
    timeout_s: float = 30.0


class HtmlAnswer(Struct, frozen=True):
    """The page of a job; None where there is not enough memory to read it."""

    page: Page | None


class SitemapJob(Struct, frozen=True, tag="sitemap"):
    """A sitemap or feed to read, by its path or its bytes."""

    path: str = ""
    data: bytes = b""
    may_be_text: bool = False
    """Lines that are all URLs count as a sitemap."""
    limits: SitemapLimits = SitemapLimits()
    timeout_s: float = 30.0


Job = FileJob | ExtractionJob | SitemapJob | HtmlJob
_JOBS: msgpack.Decoder[Job] = msgpack.Decoder(Job)
_CONTENTS = msgpack.Decoder(FileContents)
_EXTRACTED = msgpack.Decoder(Extracted)
_PAGE = msgpack.Decoder(HtmlAnswer)
_SITEMAP = msgpack.Decoder(SitemapContents)


def job_of(body: bytes) -> Job:
    """Return the job in a message."""
    return _JOBS.decode(body)


def contents_of(body: bytes) -> FileContents:
    """Return the contents in an answer. Raises msgspec.DecodeError for anything else, as of a process that ran out of memory."""
    return _CONTENTS.decode(body)


def extracted_of(body: bytes) -> Extracted:
    """Return what was extracted, from an answer. Raises msgspec.DecodeError for anything else."""
    return _EXTRACTED.decode(body)


def answered_page(body: bytes | memoryview) -> Page | None:
    """Return the page in an answer; None without one. Raises msgspec.DecodeError for anything else."""
    return _PAGE.decode(body).page


def sitemap_of(body: bytes) -> SitemapContents:
    """Return the entries of a sitemap, from an answer. Raises msgspec.DecodeError for anything else."""
    return _SITEMAP.decode(body)
