"""The same searches in the embedded index and on a real server: the best hit is the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from crawlspace.document import Document
from crawlspace.errors import UsageError
from crawlspace.index.search import read_filter
from tests import solr_server
from tests.contract.searching import Searched, searched

LONG_WORD = "".join(map(chr, range(0x4E00, 0x4E00 + 600)))
"""A word of 599 pairs of characters."""
SITE = "http://www.example.com"


def english(path: str, title: str, text: str, *headings: str, modified: str = "") -> Document:
    return Document(
        f"{SITE}{path}", title, language="en", text=text, headings=list(headings), modified=modified, content_type="text/html"
    )


def german(path: str, title: str, text: str, *headings: str) -> Document:
    return Document(f"{SITE}/de{path}", title, language="de", text=text, headings=list(headings), content_type="text/html")


DOCUMENTS = (
    english("/", "Example Ltd", "Welcome. News about holidays, travel, the canteen and the staff handbook.", "News"),
    english("/handbook/leave", "Annual leave", "Ask your manager. Everybody has thirty days a year.", "How to request", "Carrying days over"),
    english("/handbook/sick", "Sick leave", "Call before nine. A note is needed after three days of leave.", "Notes of a doctor"),
    english("/handbook/travel", "Travel expenses", "Requests for travel are made in the portal. Receipts within thirty days.", "Trains", "Hotels"),
    english("/news/2024", "News of 2024", "Annual leave: the public holidays of 2024 have been published. Annual reports follow.", modified="2024-01-05"),
    english("/news/2026", "News of 2026", "Public holidays of 2026; the canteen has a new menu.", modified="2026-01-05"),
    english("/it/printers", "Printers - IT - Example Ltd", "Installing a printer on the third floor. Restart it if it fails.", "Installation", "Errors"),
    english("/it/vpn", "VPN - IT - Example Ltd", "The client is installed by the help desk; ask for an e-mail with the key.", "Setting it up"),
    english("/canteen", "Canteen", "Menus of the week. Open from eleven to two.", "Prices"),
    german("/urlaub", "Urlaub", "Anträge auf Urlaub gehen an die Abteilung. Dreißig Tage im Jahr.", "Antrag stellen"),
    german("/reisen", "Reisekosten", "Belege für Reisen werden mit dem Antrag eingereicht.", "Züge", "Hotels"),
    german("/drucker", "Drucker einrichten", "Die Einstellungen der Drucker im dritten Stock. Häuser A und B."),
    Document("http://ja.example.com/", "年次休暇", language="ja", text="年次休暇の申請は管理者へ。"),
    Document("http://ja.example.com/net", "ネットワーク設定", language="ja", text="ネットワークカードと暗号化の設定。"),
    Document("http://files.example.com/price-list.pdf", "", text="price list of the canteen 4711", content_type="application/pdf"),
)  # fmt: skip

# A search, filters, and the URL of the best hit.
SEARCHES: tuple[tuple[str, list[str], str], ...] = (
    ("annual leave", [], "/handbook/leave"),
    ("leaves", ["host=www.example.com"], "/handbook/leave"),
    ("sick", [], "/handbook/sick"),
    ("requesting", [], "/handbook/leave"),
    ("travel requests", [], "/handbook/travel"),
    ('"public holidays" canteen', [], "/news/2026"),
    ("annual leave 2024", [], "/news/2024"),
    ("holi* -canteen", [], "/news/2024"),
    ("holidays", ["modified=2026-01-01.."], "/news/2026"),
    ("install printer", [], "/it/printers"),
    ("printers", [], "/it/printers"),
    ("e-mail key", [], "/it/vpn"),
    ("canteen", [], "/canteen"),
    ("canteen", ["type=pdf"], "price-list.pdf"),
    ("price list", [], "price-list.pdf"),
    ("4711", [], "price-list.pdf"),
    ("antrag", ["language=de"], "/de/urlaub"),
    ("Drucker Einstellung", [], "/de/drucker"),
    ("urlaub zebra", [], "/de/urlaub"),
    ("年次休暇", [], "ja.example.com/"),
    ("設定 ネットワーク", [], "ja.example.com/net"),
    ("vpn handbook hotels", [], "/it/vpn"),
)


@dataclass
class Both:
    embedded: Searched
    server: Searched
    counts_words: bool
    """It refuses a search of very many words."""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    is_solr = solr_server.REAL is not None
    with (
        searched("embedded", tmp_path_factory.mktemp("embedded")) as embedded,
        searched("solr" if is_solr else "opensearch", tmp_path_factory.mktemp("server")) as server,
    ):
        for one in (embedded, server):
            one.fill(DOCUMENTS)
        found = server.sink.server
        yield Both(embedded, server, not found.product.startswith("Elasticsearch"))


@pytest.mark.parametrize(("words", "filters", "best"), SEARCHES)
def test_the_best_hit_is_the_same(both: Both, words: str, filters: list[str], best: str) -> None:
    read = list(map(read_filter, filters))
    found = [one.search(words, filters=read, facets=["host"]) for one in (both.embedded.sink, both.server.sink)]
    assert [result.hits[0].url.endswith(best) for result in found] == [True, True], [result.hits[0].url for result in found]
    assert found[0].total == found[1].total
    assert found[0].facets == found[1].facets
    assert found[0].hits[0].has_all_words == found[1].hits[0].has_all_words


def test_a_text_too_long_for_highlighting_has_a_snippet(both: Both) -> None:
    """Servers refuse to highlight a text of more than a million characters."""
    long = Document(f"{SITE}/long", "Long", language="en", text=f"{'filler ' * 200_000}a needle and more")
    both.server.fill([long])
    (hit,) = both.server.sink.search("needles").hits
    assert hit.snippet.endswith("a [needle] and more")


def test_more_words_than_the_server_takes(both: Both) -> None:
    words = " ".join(f"word{number}" for number in range(1_000))
    if both.counts_words:
        with pytest.raises(UsageError, match="the search has more words than the server accepts: leave some out"):
            both.server.sink.search(words)
    else:  # Elasticsearch 7 counts the clauses of each part for itself
        assert both.server.sink.search(words).total == 0


def test_a_word_of_many_parts_is_searched_as_a_whole(both: Both) -> None:
    """A server that counts the parts of all languages would refuse it."""
    found = both.server.sink.search(LONG_WORD)
    assert (found.total, found.hits) == (0, ())
