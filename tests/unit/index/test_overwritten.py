"""Two collections and one index: who has lost a document of which it does not know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.embedded import EmbeddedIndex

URL = "http://example.com/a"

# Orders as `a+` (collection a pushes) or `a-` (it deletes), who has the document after them, and who has lost it.
CASES: tuple[tuple[str, str, str], ...] = (
    ("", "", ""),
    ("a+", "a", ""),
    ("a+ a-", "", ""),
    # overwritten and still there: nothing is lost, whoever deletes what it does not own
    ("a+ b+", "b", ""),
    ("a+ b+ a-", "b", ""),
    # the owner deletes it: the other one has lost it, until it pushes or deletes it itself
    ("a+ b+ b-", "", "a"),
    ("a+ b+ b- b-", "", "a"),
    ("a+ b+ b- a+", "a", ""),
    ("a+ b+ b- a-", "", ""),
    ("a+ b+ b- a+ b-", "a", ""),
    # it is there again, whoever pushed it
    ("a+ b+ b- b+", "b", ""),
    ("a+ b+ b- c+", "c", ""),
    ("a+ b+ b- c+ c-", "", "a"),
    # a deletion before, and one of two
    ("a+ b+ a- b-", "", ""),
    ("a+ b+ a+ a-", "", "b"),
    ("a+ b+ a+ b- a-", "", ""),
    ("a+ b+ c+ c-", "", "ab"),
    ("a+ b+ c+ a- c-", "", "b"),
    ("a+ b+ c+ c- b+", "b", ""),
    ("a+ b+ c+ c- b+ b-", "", "a"),
    # the same collection twice
    ("a+ a+ a-", "", ""),
)


@pytest.fixture
def indexes(tmp_path: Path) -> Iterator[dict[str, EmbeddedIndex]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(closing(EmbeddedIndex(tmp_path / "index.db", owner=name))) for name in "abc"}


@pytest.mark.parametrize(("orders", "owner", "losers"), CASES)
@pytest.mark.parametrize("times", [1, 2])
def test_who_has_lost_a_document(indexes: dict[str, EmbeddedIndex], orders: str, owner: str, losers: str, times: int) -> None:
    """A batch that is sent twice, as after a kill, changes nothing more."""
    for order in orders.split():
        for _ in range(times):
            assert not indexes[order[0]].send([_order(order[1])]).refused
    assert [name for name in "abc" if indexes[name].count(of=name)] == list(owner)
    for name, index in indexes.items():
        has_lost = name in losers
        assert (index.lost(limit=9), index.count_lost(), index.is_lost(URL)) == ([URL] * has_lost, int(has_lost), has_lost)


def test_lost_documents_are_read_in_batches_and_given_up(indexes: dict[str, EmbeddedIndex]) -> None:
    urls = [f"{URL}{number}" for number in range(5)]
    indexes["a"].send([_order("+", url) for url in urls])
    indexes["b"].send([_order("+", url) for url in urls])
    indexes["b"].send([_order("-", url) for url in urls])
    assert indexes["a"].lost(limit=2) == urls[:2]
    assert indexes["a"].lost(after=urls[1], limit=9) == urls[2:]
    indexes["a"].give_up_lost(urls[1:4])
    assert indexes["a"].lost(limit=9) == [urls[0], urls[4]]


def test_a_refused_push_takes_nothing_over(tmp_path: Path) -> None:
    with (
        closing(EmbeddedIndex(tmp_path / "index.db", owner="a")) as a,
        closing(EmbeddedIndex(tmp_path / "index.db", owner="b", max_document_bytes=10)) as b,
    ):
        a.send([_order("+")])
        assert b.send([_order("+")]).refused
        b.send([_order("-")])
        assert (list(a.urls()), a.lost(limit=9)) == ([URL], [])


def _order(kind: str, url: str = URL) -> IndexOrder:
    return IndexOrder(1, Op.DELETE, url) if kind == "-" else IndexOrder(1, Op.PUSH, url, Document(url, text="some text"))
