"""Where the documents of orders are, and which are sent without their text."""

from __future__ import annotations

import pytest

from crawlspace.archive.places import place_of
from crawlspace.config.content_references import ReferenceSettings
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.sinks.references import ArchiveReferences, references_of
from crawlspace.model import Document, IndexOrder, Op
from crawlspace.urls import document_id

URL = "http://a.example/"
SETTINGS = ReferenceSettings(is_archived=True, max_bytes=1_000, url="http://c.example/{id}")
SMALL, LARGE = Document(URL, "title", text="a" * 1_000), Document(URL, "title", text="a" * 1_001)
CONTENT = ("two.warc.gz:4711", f"http://c.example/{document_id(URL)}")
NONE = ("", "")
PLACE, UNKNOWN = place_of(2, 4711), place_of(3, 0)


class Files:
    def __init__(self) -> None:
        self.names = {1: "one.warc.gz", 2: "two.warc.gz"}

    def archive_files(self) -> dict[int, str]:
        return dict(self.names)


# a document and its place; where it is then, and whether it is without its text
ORDERS = [
    (SMALL, PLACE, CONTENT, False),
    (LARGE, PLACE, CONTENT, True),
    (LARGE, None, NONE, False),
    (LARGE, UNKNOWN, NONE, False),
    (None, PLACE, NONE, False),
]


@pytest.mark.parametrize(("document", "place", "content", "is_by_reference"), ORDERS)
def test_orders(document: Document | None, place: int | None, content: tuple[str, str], *, is_by_reference: bool) -> None:
    order = IndexOrder(1, Op.PUSH if document else Op.DELETE, URL, document, 7, archived=place)
    (found,) = ArchiveReferences(Files(), SETTINGS).of([order])
    assert ((found.content_place, found.content_url), found.is_by_reference) == (content, is_by_reference)
    assert found.document == (Document(URL, "title") if is_by_reference else document)
    assert (found.sequence, found.version, found.url) == (1, 7, URL)


def test_a_file_that_was_begun_meanwhile_is_found() -> None:
    files = Files()
    references = ArchiveReferences(files, SETTINGS)
    order = IndexOrder(1, Op.PUSH, URL, SMALL, archived=UNKNOWN)
    assert references.of([order])[0].content_place == ""
    files.names[3] = "three.warc.gz"
    (found,) = references.of([order])
    assert found.content_place == "three.warc.gz:0"


def test_the_embedded_index_has_all_texts_and_nothing_is_referred_to_without_an_archive() -> None:
    assert references_of(Files(), EMBEDDED, SETTINGS) is None
    assert references_of(Files(), "search", ReferenceSettings(max_bytes=1_000)) is None
    assert references_of(Files(), "search", SETTINGS) is not None
