"""Each index that can be searched, with documents: the embedded one, OpenSearch or its emulator, and Solr where a real one was started."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from crawlspace.document import NO_SNIPPET, Document, IndexOrder, Op, packed
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.marks import BatchMark
from tests import search_server, solr_server
from tests.search_server import sink_of

SERVERS = ["opensearch", *(["solr"] if solr_server.REAL is not None else [])]
KINDS = ["embedded", *SERVERS]

DOCUMENTS = (
    Document(
        "http://a.test/handbook/leave",
        "Annual leave",
        language="en",
        text="Requests for annual leave go here.",
        modified="2026-02-01",
        fields={"author": packed(["Ann", "Bo"]), "published": "2026-01-15", "keywords": packed(["leave", "forms"])},
    ),
    Document(
        "http://a.test/handbook/old/leave",
        "Annual leave",
        language="en-GB",
        text="Annual leaves of 2024.",
        modified="2024-02-01T10:00:00Z",
        fields={"author": "Ann", "published": "2024", "keywords": packed(["leave"]), "image": "http://a.test/i.png"},
    ),
    Document(
        "http://b.test:8080/urlaub",
        "Urlaubsanträge",
        language="de",
        text="Alle Anträge auf Urlaub.",
        content_type="application/pdf; a=b",
        fields={"published": "2026-01-31T23:30:00Z", "type": "Article", "team": "a b"},
    ),
    Document(
        "http://b.test/B%C3%BCcher",
        "Liste",
        language="de-AT",
        text="Die Firma 1 mit der Nummer 4711 und 2021",
        content_type="text/html",
        fields={NO_SNIPPET: packed(["1", "Nummer 4711"])},
    ),
    Document("http://ja.test/", "休暇", language="ja", text="年次休暇の申請", content_type="text/html", modified="2026-01-31"),
    Document(
        "http://x.test/k", "", language="tlh", text="jatlh the e-mail", fields={"color": "red"}, duplicates=["http://x.test/l"]
    ),
)
DELETED = Document("http://a.test/gone", "Annual leave", language="en", text="annual leave test demo mark")


class Searched:
    """An index that can be searched. `of` makes a sink of another collection that sends there."""

    def __init__(self, sink: Any, refresh: Callable[[], object], of: Callable[[str], Any], *, is_emulated: bool = False) -> None:
        self.sink, self._refresh, self.of, self.is_emulated = sink, refresh, of, is_emulated

    def fill(self, documents: Sequence[Document], *, sink: Any = None) -> None:
        """Send documents."""
        self._send([IndexOrder(number, Op.PUSH, one.url, one, number) for number, one in enumerate(documents, 1)], sink)

    def delete(self, document: Document) -> None:
        """Send a document, and then its deletion."""
        self._send([IndexOrder(8, Op.PUSH, document.url, document, 8)], None)
        self._send([IndexOrder(9, Op.DELETE, document.url, version=9)], None)

    def _send(self, orders: Sequence[IndexOrder], sink: Any) -> None:
        sent = (sink or self.sink).send(orders, BatchMark("demo", orders[0].version))
        assert (list(sent.refused), list(sent.later)) == ([], [])
        self._refresh()

    def found(self, words: str, **options: Any) -> list[str]:
        """Return the URLs of the documents that have all words."""
        return [hit.url for hit in self.sink.search(words, **options).hits if hit.has_all_words]


@contextmanager
def searched(kind: str, folder: Path) -> Iterator[Searched]:
    """An empty index of a kind."""
    with ExitStack() as stack:

        def opened(collection: str = "demo") -> Any:
            return stack.enter_context(closing(sink_of(folder, options, collection=collection)))

        options: dict[str, object]
        if kind == "embedded":
            embedded = stack.enter_context(closing(EmbeddedIndex(folder / "index.db", owner="demo")))
            yield Searched(embedded, lambda: None, opened)
        elif kind == "solr":
            solr = stack.enter_context(solr_server.solr_server())
            options = solr.options()
            yield Searched(opened(), partial(solr.ask, f"/{solr.index}/update", {"commit": {}}), opened)
        else:
            server = stack.enter_context(search_server.search_server())
            options = server.options()
            refresh = partial(server.ask, "POST", f"/{search_server.INDEX}/_refresh")
            yield Searched(opened(), refresh, opened, is_emulated=search_server.REAL is None)
