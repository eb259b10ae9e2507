"""What a search of the embedded index finds: languages without spaces, other forms of words, filters, facets, pages of hits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import Stemmer

from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.closeness import REORDERED
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.search import read_filter
from crawlspace.index.words import ALGORITHMS
from tests.conftest import assert_same

FILLER = " ".join(["filler"] * 30)


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedIndex]:
    made = EmbeddedIndex(tmp_path_factory.mktemp("manual") / "index.db")
    documents = (
        (
            "http://a.test/ja.html",
            "ja",
            "管理者パスワードの設定。ネットワーク\u3000カード、暗号 化",
            "text/html",
            "Wed, 21 Oct 2015 07:28:00 GMT",
        ),
        ("http://a.test/zh.html", "zh-CN", "配置文件、系统和网络设置", "text/html", "2026-01-01"),
        ("http://a.test/ko.html", "ko", "웹서버를 설정합니다. 서버 전체", "text/html", "2026-01-31T10:00:00Z"),
        ("http://b.test:8080/x.pdf", "", "network settings", "application/pdf; a=b", "soon"),
        ("http://b.test:8080/%E8%A8%AD%E5%AE%9A", "de-AT", "", "application/pdf", ""),
        ("http://b.test:8080/de", "de", "Netzwerk", "text/html", "2026-02-01"),
    )
    made.send(
        [
            push(Document(url, text=text, language=language, content_type=kind, modified=day))
            for url, language, text, kind, day in documents
        ]
    )
    yield made
    made.close()


FOLDED = (
    # what is written, what is typed, what is shown
    ("die Zusammen\xadarbeit im Ver\xadein", "zusammenarbeit", "die [Zusammen\xadarbeit] im Ver\xadein"),
    ("die Zusammen\xadarbeit im Ver\xadein", '"arbeit im verein"', None),
    ("die Zusammen\xadarbeit im Ver\xadein", '"zusammenarbeit im verein"', "die [Zusammen\xadarbeit im Ver\xadein]"),
    ("die Zusammenarbeit", "Zusammen\xadarbeit", "die [Zusammenarbeit]"),
    ("a very long\u200bword\u2060s here", "longwords", "a very [long\u200bword\u2060s] here"),
    ("the oﬃce is open", "office", "the [oﬃce] is open"),
    ("the offices are open", "oﬃce", "the [offices] are open"),
    ("型番ＡＢＣ－１２３の説明", "abc-123", "型番[ＡＢＣ－１２３]の説明"),
    ("型番ABC-123の説明", "ＡＢＣ－１２３", "型番[ABC-123]の説明"),
    ("ｶﾞｲﾄﾞﾌﾞｯｸの一覧", "ガイドブック", "[ｶﾞｲﾄﾞﾌﾞｯｸ]の一覧"),
    ("ｶﾞｲﾄﾞﾌﾞｯｸの一覧", "ドブ", "ｶﾞｲ[ﾄﾞﾌﾞ]ｯｸの一覧"),
    ("ガイドの一覧", "ｶﾞｲﾄﾞ", "[ガイド]の一覧"),
    ("می\u200cخواهم", "می خواهم", "[می]\u200c[خواهم]"),
    # within a sentence
    ("บริษัทก่อตั้งขึ้นในปี 1998", "ก่อตั้ง", "บริษัท[ก่อตั้ง]ขึ้นในปี 1998"),
    ("บริษัทก่อตั้งขึ้นในปี 1998", "บริษัท", "[บริษัท]ก่อตั้งขึ้นในปี 1998"),
    ("บริษัทก่อตั้งขึ้นในปี 1998", "ก่อตง", None),
    ("ไทย แลนด์", "ไทยแลนด์", None),
    ("ຂ້ອຍຮັກເຈົ້າ", "ຮັກ", "ຂ້ອຍ[ຮັກ]ເຈົ້າ"),
    ("ខ្ញុំស្រឡាញ់អ្នក", "ស្រឡាញ់", "ខ្ញុំ[ស្រឡាញ់]អ្នក"),
    ("ខ្ញុំ\u200bស្រឡាញ់\u200bអ្នក", "ស្រឡាញ់អ្នក", "ខ្ញុំ\u200b[ស្រឡាញ់\u200bអ្នក]"),
    ("ကျွန်တော်မြန်မာစာသင်တယ်", "မြန်မာ", "ကျွန်တော်[မြန်မာ]စာသင်တယ်"),
)


@pytest.mark.parametrize(("written", "typed", "shown"), FOLDED)
def test_words_are_found_as_they_are_typed_and_shown_as_they_are_written(
    tmp_path: Path, written: str, typed: str, shown: str | None
) -> None:
    index = EmbeddedIndex(tmp_path / "index.db")
    document = Document("http://a.test/", title=written, headings=[written], description=written, text=written)
    index.send([push(document)])
    hits = [hit for hit in index.search(typed).hits if hit.has_all_words]
    assert [(hit.title, hit.snippet) for hit in hits] == ([] if shown is None else [(written, shown)])
    assert index.get("http://a.test/") == document
    index.close()


def test_a_snippet_of_a_long_text(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "index.db")
    filler = "ver\xadein ﬁl " * 60
    index.send([push(Document("http://a.test/", text=f"{filler} oﬃce {filler}"))])
    snippet = index.search("office").hits[0].snippet
    assert "[oﬃce]" in snippet
    assert set(snippet.replace("[", "").replace("]", "").split()) <= {"ver\xadein", "verein", "ﬁl", "fil", "oﬃce", "…"}
    index.close()


WITHOUT_SPACES: tuple[tuple[str, list[str]], ...] = (
    ("管理者", ["ja.html"]),
    ("管理", ["ja.html"]),
    ("理者", ["ja.html"]),
    ("者", ["ja.html"]),
    ("パスワード 管理", ["ja.html"]),
    ("者管", []),
    ("ネットワークカード", ["ja.html"]),
    ("暗号化", ["ja.html"]),
    ("設定", ["ja.html", "%E8%A8%AD%E5%AE%9A"]),
    ("网络", ["zh.html"]),
    ("网*", ["zh.html"]),
    ("文件系统", []),
    ("文件 系统", ["zh.html"]),
    ("文件 -系统", []),
    ("서버", ["ko.html"]),
    ("웹서버", ["ko.html"]),
    ("버전", []),
)


@pytest.mark.parametrize(("words", "expected"), WITHOUT_SPACES)
def test_words_of_languages_without_spaces(manual: EmbeddedIndex, words: str, expected: list[str]) -> None:
    hits = [hit for hit in manual.search(words).hits if hit.has_all_words]
    assert_same((hit.url.rpartition("/")[2] for hit in hits), expected)


def test_a_snippet_and_a_document_have_the_text_as_it_was(manual: EmbeddedIndex) -> None:
    (hit,) = manual.search("管理者").hits
    assert hit.snippet == "[管理者]パスワードの設定。ネットワーク\u3000カード、暗号 化"
    document = manual.get(hit.url)
    assert document is not None
    assert document.text == "管理者パスワードの設定。ネットワーク\u3000カード、暗号 化"


FILTERED: tuple[tuple[list[str], list[str]], ...] = (
    (["language=de"], ["de", "%E8%A8%AD%E5%AE%9A"]),
    (["language=DE-at"], ["%E8%A8%AD%E5%AE%9A"]),
    (["language=d"], []),
    (["language=ja", "language=zh"], ["ja.html", "zh.html"]),
    (["host=A.test"], ["ja.html", "zh.html", "ko.html"]),
    (["host=b.test:8080", "language=de"], ["de", "%E8%A8%AD%E5%AE%9A"]),
    (["host=b.test"], []),
    (["type=pdf"], ["x.pdf", "%E8%A8%AD%E5%AE%9A"]),
    (["type=application/pdf"], ["x.pdf", "%E8%A8%AD%E5%AE%9A"]),
    (["type=text/%"], []),
    (["modified=2026-01-01.."], ["zh.html", "ko.html", "de"]),
    (["modified=2026-01-01..2026-01-31"], ["zh.html", "ko.html"]),
    (["modified=..2026-01-01"], ["ja.html", "zh.html"]),
    (["modified=2015-10-21"], ["ja.html"]),
)


@pytest.mark.parametrize(("filters", "expected"), FILTERED)
def test_filters(manual: EmbeddedIndex, filters: list[str], expected: list[str]) -> None:
    found = manual.search("test", filters=[read_filter(written) for written in filters])
    assert_same((hit.url.rpartition("/")[2] for hit in found.hits), expected)
    assert found.total == len(expected)


def test_facets_count_what_is_found_and_not_filtered(manual: EmbeddedIndex) -> None:
    assert manual.search("test", facets=["host", "language"], limit=1).facets == {
        "host": [("a.test", 3), ("b.test:8080", 3)],
        "language": [("de", 1), ("de-AT", 1), ("ja", 1), ("ko", 1), ("zh-CN", 1)],
    }
    html = [read_filter("type=html")]
    assert manual.search("test", filters=html, facets=["type", "host"]).facets == {
        "type": [("text/html", 4)],
        "host": [("a.test", 3), ("b.test:8080", 1)],
    }


def test_more_than_are_put_in_order_come_in_pages_too(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "index.db")
    number = REORDERED + 30
    index.send([push(Document(f"http://e.example/{at}", title="Word", text="filler " * at)) for at in range(number)])
    whole = [hit.url for hit in index.search("word", limit=number).hits]
    assert sorted(whole) == sorted(index.urls())
    paged = [hit.url for offset in range(0, number, 20) for hit in index.search("word", limit=20, offset=offset).hits]
    assert paged == whole
    index.close()


FORMS: tuple[tuple[str, str, list[str]], ...] = (
    ("installation", "", ["installing", "installs"]),
    ("installs", "", ["installs", "installing"]),
    ("Einstellung", "", ["Einstellungen"]),
    ("Häuser", "", ["Haus"]),
    ("happy", "", ["happiness"]),
    ("Einstellung", "en", []),
    ("installation", "de", []),
    ('"installation"', "", []),
    ("-installation installing", "", ["installing", "installs"]),
    ("installing printers", "", ["installing"]),
    ("run", "", []),
)


@pytest.mark.parametrize(("words", "language", "expected"), FORMS)
def test_words_are_found_in_other_forms_of_the_languages_of_the_documents(
    forms: EmbeddedIndex, words: str, language: str, expected: list[str]
) -> None:
    filters = [read_filter(f"language={language}")] if language else []
    hits = [hit for hit in forms.search(words, filters=filters).hits if hit.has_all_words]
    assert [hit.title for hit in hits] == expected


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedIndex]:
    made = EmbeddedIndex(tmp_path_factory.mktemp("forms") / "index.db")
    documents = (
        ("installing", "en", "installing a printer " + FILLER),
        ("installs", "en-GB", "who installs " + FILLER * 2),
        ("happiness", "", "rundown " + FILLER),
        ("Einstellungen", "de", FILLER),
        ("Haus", "de", FILLER),
    )
    made.send(
        [
            push(Document(f"http://e.example/{at}", title=title, language=language, text=text))
            for at, (title, language, text) in enumerate(documents)
        ]
    )
    yield made
    made.close()


def test_english_where_no_document_says_its_language(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "index.db")
    index.send([push(Document("http://e.example/", title="Installing"))])
    assert index.search("installed").total == 1
    index.close()


def test_the_languages_of_all_documents_count(tmp_path: Path) -> None:
    index = EmbeddedIndex(tmp_path / "index.db")
    languages = [*(f"en-{region}" for region in ("AU", "GB", "US")), *(f"x{letter}" for letter in "abcdefgh"), "pt-BR"]
    documents = [Document(f"http://e.example/{language}", title="Casas", language=language) for language in languages]
    index.send(list(map(push, documents)))
    assert index.search("casa").total == len(languages)
    index.close()


def test_every_language_has_its_stemmer() -> None:
    assert set(ALGORITHMS.values()) <= set(Stemmer.algorithms())


def push(document: Document) -> IndexOrder:
    return IndexOrder(1, Op.PUSH, document.url, document)
