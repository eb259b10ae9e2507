"""The embedded index: hits and their order, damaged files, and documents that another collection has overwritten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import apsw
import pytest

from crawlspace.document import Document, IndexOrder, Op, Part
from crawlspace.errors import CrawlspaceError, IndexUnavailable, StoreDamaged, StoreError, StoreVersionError, UsageError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.embedded_schema import DEVELOPMENT_ID, VERSION
from crawlspace.index.ideographs import separated

FILLER = " ".join(["filler"] * 30)
DOCUMENTS = (
    Document(
        "http://e.example/title",
        title="Holiday request",
        headings=["Holiday request"],
        text="how to ask " + FILLER,
        language="en",
    ),
    Document("http://e.example/heading", title="Forms", headings=["Holiday", "Other"], text=FILLER),
    Document("http://e.example/text", title="Minutes", text="the holiday was discussed, the request was not " + FILLER),
    Document("http://e.example/u/holiday.html", title="Page", text=FILLER),
    Document(
        "http://e.example/cafe",
        title="Menü",
        text="Café crème in the file_name of net-income " + FILLER,
        fields={"department": "kitchen"},
        duplicates=["http://e.example/x"],
    ),
)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[EmbeddedIndex]:
    made = EmbeddedIndex(tmp_path / "index.db")
    assert not made.send([push(document) for document in DOCUMENTS]).refused
    yield made
    made.close()


SEARCHES: tuple[tuple[str, list[str]], ...] = (
    ("holiday", ["title", "heading", "u/holiday.html", "text"]),
    ("HOLIDAY", ["title", "heading", "u/holiday.html", "text"]),
    ("holiday request", ["title", "text"]),
    ('"holiday request"', ["title"]),
    ("holid*", ["title", "heading", "u/holiday.html", "text"]),
    ("holid", []),
    ("holiday -request", ["heading", "u/holiday.html"]),
    ('holiday -"the request"', ["title", "heading", "u/holiday.html"]),
    ("cafe menu", ["cafe"]),
    ("CRÈME", ["cafe"]),
    ("income", ["cafe"]),
    ("net-income", ["cafe"]),
    ("name", ["cafe"]),
)


@pytest.mark.parametrize(("words", "expected"), SEARCHES)
def test_search(index: EmbeddedIndex, words: str, expected: list[str]) -> None:
    found = index.search(words)
    hits = [hit for hit in found.hits if hit.has_all_words]
    assert [hit.url.removeprefix("http://e.example/") for hit in hits] == expected
    assert found.total == len(expected)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


SOME_WORDS: tuple[tuple[str, list[str], list[str]], ...] = (
    ("holiday request", ["title", "text"], ["heading", "u/holiday.html"]),
    ("menu zebra", [], ["cafe"]),
    ('menu "zebra crossing"', [], []),
    ("menu zebra -creme", [], []),
    ("holiday", ["title", "heading", "u/holiday.html", "text"], []),
)


@pytest.mark.parametrize(("words", "all_words", "some_words"), SOME_WORDS)
def test_where_few_have_all_words_those_with_some_follow(
    index: EmbeddedIndex, words: str, all_words: list[str], some_words: list[str]
) -> None:
    found = index.search(words)
    assert [hit.url.removeprefix("http://e.example/") for hit in found.hits] == all_words + some_words
    assert [hit.has_all_words for hit in found.hits] == [True] * len(all_words) + [False] * len(some_words)
    assert found.total == len(all_words)
    assert len(index.search(words, limit=1).hits) == min(1, len(all_words + some_words))


def test_a_hit_shows_the_words_in_their_context(index: EmbeddedIndex) -> None:
    (hit,) = index.search("creme").hits
    assert (hit.title, hit.language, hit.fields) == ("Menü", "", {"department": "kitchen"})
    assert hit.duplicates == ("http://e.example/x",)
    assert hit.snippet.startswith("Café [crème] in the file_name")
    assert index.search("creme", marks=("<b>", "</b>")).hits[0].snippet.startswith("Café <b>crème</b> in")


def test_results_come_in_pages(index: EmbeddedIndex) -> None:
    whole = index.search("holiday").hits
    assert [*index.search("holiday", limit=2).hits, *index.search("holiday", limit=2, offset=2).hits] == list(whole)
    assert index.search("holiday", limit=2, offset=9).total == 4
    assert index.search("holiday", limit=10**30, offset=10**30).hits == ()


def test_an_empty_query_is_wrong_use(index: EmbeddedIndex) -> None:
    with pytest.raises(UsageError):
        index.search(" ")


def test_count_and_urls(index: EmbeddedIndex) -> None:
    assert index.count() == 5
    assert list(index.urls()) == sorted(document.url for document in DOCUMENTS)
    assert index.get("http://e.example/none") is None


def test_what_is_replaced_or_deleted_is_not_found_any_more(index: EmbeddedIndex) -> None:
    index.send([push(Document("http://e.example/title", title="New")), IndexOrder(9, Op.DELETE, "http://e.example/text")])
    assert [hit.url for hit in index.search("request").hits] == []
    assert [hit.url for hit in index.search("new").hits] == ["http://e.example/title"]


REFUSED = (
    (Document("http://e.example/title", text="\ud800"), "UTF-8"),
    (Document("http://e.example/title", headings=["\udfff"]), "UTF-8"),
    (Document("http://e.example/title", text="x" * 2000), "up to 1,000"),
    (None, "without a document"),
)


@pytest.mark.parametrize(("document", "reason"), REFUSED)
def test_a_document_it_cannot_hold_is_refused_and_the_old_one_stays(
    tmp_path: Path, document: Document | None, reason: str
) -> None:
    index = EmbeddedIndex(tmp_path / "index.db", max_document_bytes=1000)
    old = Document("http://e.example/title", title="Old")
    (refusal,) = index.send([push(old), IndexOrder(2, Op.PUSH, old.url, document), push(Document("http://e.example/b"))]).refused
    assert reason in refusal.reason
    assert index.get(old.url) == old
    assert index.count() == 2
    index.close()


def test_a_zero_byte_does_not_hide_what_follows(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "index.db")
    assert not index.send([push(Document("http://e.example/", text="before\0after"))]).refused
    assert index.search("after").total == 1
    index.close()


def test_two_processes_share_one_file(index: EmbeddedIndex) -> None:
    other = EmbeddedIndex(index.path)
    other.send([push(Document("http://e.example/new", title="Neu"))])
    index.send([push(Document("http://e.example/newer", title="Neuer"))])
    assert other.count() == index.count() == 7
    reader = EmbeddedIndex(index.path, read_only=True)
    assert reader.search("neu*").total == 2
    for opened in (reader, other):
        opened.close()


def test_a_locked_index_takes_nothing_and_raises(index: EmbeddedIndex) -> None:
    holder = apsw.Connection(str(index.path))
    holder.execute("BEGIN IMMEDIATE")
    other = EmbeddedIndex(index.path, busy_timeout_s=0)
    with pytest.raises(IndexUnavailable, match="locked by another process"):
        other.send([push(Document("http://e.example/new"))])
    holder.execute("ROLLBACK")
    assert not other.send([push(Document("http://e.example/new"))]).refused
    other.close()
    holder.close()


def test_a_full_disk_takes_nothing_and_raises(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "index.db")
    index.send([push(DOCUMENTS[0])])
    database = index._db  # the only way to a full disk without one
    database.execute(f"PRAGMA max_page_count = {database.execute('PRAGMA page_count').get}")
    big = [push(Document(f"http://e.example/{number}", text="words " * 500)) for number in range(50)]
    with pytest.raises(IndexUnavailable, match="is full"):
        index.send(big)
    assert index.count() == 1
    database.execute("PRAGMA max_page_count = 100000")
    assert not index.send(big).refused
    assert index.count() == 51
    index.close()


def write_other_database(path: Path) -> None:
    database = apsw.Connection(str(path))
    database.execute("CREATE TABLE documents (x)")
    database.close()


def write_newer_index(path: Path) -> None:
    EmbeddedIndex(path).close()
    database = apsw.Connection(str(path))
    database.execute("PRAGMA user_version = 99")
    database.close()


def write_development_index(path: Path) -> None:
    EmbeddedIndex(path).close()
    database = apsw.Connection(str(path))
    database.execute(f"PRAGMA application_id = {DEVELOPMENT_ID}")
    database.close()


OLD_TEXTS = ("Zusammen\xadarbeit", "บริษัทก่อตั้งขึ้น", "管理者の設定", "plain words")


def write_first_version(path: Path) -> None:
    """An index as version 1 made it: with words as they are written, and Chinese characters apart."""
    index = EmbeddedIndex(path)
    index.send([push(Document(f"http://e.example/{number}", text="old")) for number in range(len(OLD_TEXTS))])
    index.close()
    database = apsw.Connection(str(path))
    for number, text in enumerate(OLD_TEXTS, 1):
        stored = "".join(f"\x1f{one}\x1f" if one > "\u3000" else one for one in text)
        database.execute("UPDATE words SET text = ? WHERE rowid = ?", (stored, number))
    database.execute("DROP TABLE more")
    database.execute("PRAGMA user_version = 1")
    database.close()


def test_an_index_of_the_first_version_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    write_first_version(path)
    index = EmbeddedIndex(path, read_only=True)
    assert index.search("管理者").total == 1
    assert [document.text for document in index.documents("")] == list(OLD_TEXTS)
    index.close()


@pytest.mark.parametrize("killed_after", [0, 1, 3])
def test_an_index_of_the_first_version_is_brought_up_to_date(tmp_path: Path, killed_after: int) -> None:
    path = tmp_path / "index.db"
    write_first_version(path)
    database = apsw.Connection(str(path))
    for number in range(killed_after):  # what was done before a kill
        database.execute("UPDATE words SET text = ? WHERE rowid = ?", (separated(OLD_TEXTS[number]), number + 1))
    database.close()
    index = EmbeddedIndex(path)
    assert [index.search(words).total for words in ("zusammenarbeit", "ก่อตั้ง", "管理者", "plain")] == [1, 1, 1, 1]
    assert [document.text for document in index.documents("")] == list(OLD_TEXTS)
    index.close()
    database = apsw.Connection(str(path))
    assert database.execute("PRAGMA user_version").get == VERSION
    database.close()


PAGE = "http://e.example/manual"
PARTS = [
    Part("top", text="What this manual is about."),
    Part("install", "Install", ["Manual", "Install"], "Run make to install the crawler.", "install"),
    Part("use", "Use", ["Manual", "Use"], "Begin with a collection.", "a b", {"level": "1"}),
]


def manual(parts: list[Part]) -> Document:
    return Document(PAGE, "Manual", text="\n".join(part.text for part in parts), markdown="# Manual\n", parts=parts)


def test_parts_come_and_go_with_their_page(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    index = EmbeddedIndex(path)
    index.send([push(manual(PARTS)), push(Document("http://e.example/other", text="make", parts=[Part("x", text="other")]))])
    assert index.get(PAGE) == manual(PARTS)
    index.send([push(manual(PARTS[:1]))])
    assert list(index.documents("")) == [manual(PARTS[:1]), index.get("http://e.example/other")]
    index.send([push(Document(PAGE, "Manual"))])
    assert index.get(PAGE) == Document(PAGE, "Manual")
    index.send([push(manual(PARTS)), IndexOrder(9, Op.DELETE, PAGE)])
    index.close()
    database = apsw.Connection(str(path))
    assert database.execute("SELECT count(*) FROM more").get == 1
    database.close()


def test_a_hit_has_its_best_parts(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "index.db")
    index.send([push(manual(PARTS))])
    (hit,) = index.search("installing crawlers").hits
    assert [(part.key, part.url, part.headings, part.snippet) for part in hit.parts] == [
        ("install", f"{PAGE}#install", ["Manual", "Install"], "Run make to [install] the [crawler]."),
    ]
    (hit,) = index.search("collection make").hits
    assert [part.key for part in hit.parts] == ["use", "install"], "no part has both words"
    assert [part.url for part in hit.parts] == [f"{PAGE}#a%20b", f"{PAGE}#install"]
    assert not index.search("manual about").hits[0].parts[0].url.count("#")
    index.close()


def test_an_index_of_the_version_without_parts_gets_them(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    index = EmbeddedIndex(path)
    index.send([push(Document(PAGE, "Manual", text="make"))])
    index.close()
    database = apsw.Connection(str(path))
    database.execute("DROP TABLE more; PRAGMA user_version = 2")
    database.close()
    reader = EmbeddedIndex(path, read_only=True)
    assert reader.search("make").hits[0].parts == ()
    assert reader.get(PAGE) == Document(PAGE, "Manual", text="make")
    reader.close()
    index = EmbeddedIndex(path)
    index.send([push(manual(PARTS))])
    assert index.get(PAGE) == manual(PARTS)
    index.close()


def write_text(path: Path) -> None:
    path.write_bytes(b"this is not a database, and long enough to show it" * 20)


FILES: tuple[tuple[Callable[[Path], None], type[CrawlspaceError], str], ...] = (
    (write_text, StoreDamaged, "damaged"),
    (write_other_database, StoreDamaged, "not an index of crawlspace"),
    (write_newer_index, StoreVersionError, "version 99"),
    (write_development_index, StoreVersionError, f"version {VERSION} of development, this one reads {VERSION}"),
    (Path.mkdir, StoreError, "cannot be opened"),
)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(("write", "error", "sentence"), FILES)
def test_a_file_that_is_no_index_is_left_as_it_was(
    tmp_path: Path, write: Callable[[Path], None], error: type[CrawlspaceError], sentence: str, *, read_only: bool
) -> None:
    path = tmp_path / "index.db"
    write(path)
    before = content(path)
    with pytest.raises(error, match=sentence):
        EmbeddedIndex(path, read_only=read_only)
    assert content(path) == before


def test_reading_what_was_never_written(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no index"):
        EmbeddedIndex(tmp_path / "index.db", read_only=True)
    assert not list(tmp_path.iterdir())
    with pytest.raises(StoreError, match="cannot be opened"):
        EmbeddedIndex(tmp_path / "no" / "index.db")


def content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def push(document: Document) -> IndexOrder:
    return IndexOrder(1, Op.PUSH, document.url, document)


def test_what_another_owner_has_taken_over_is_not_deleted(tmp_path: Path) -> None:
    mine, theirs = (EmbeddedIndex(tmp_path / "shared.db", owner=owner) for owner in ("mine", "theirs"))
    ours, kept = DOCUMENTS[:2]
    mine.send([push(ours), push(kept)])
    theirs.send([push(kept)])
    mine.send([IndexOrder(9, Op.DELETE, document.url) for document in (ours, kept)])
    assert list(mine.urls()) == [kept.url]
    mine.send([push(kept)])
    mine.send([IndexOrder(9, Op.DELETE, kept.url)])
    assert list(mine.urls()) == []
    mine.close()
    theirs.close()


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
