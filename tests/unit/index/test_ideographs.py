"""Characters of languages without spaces as words of the index; `|` stands for a separator and `#` for a mark."""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import normalize

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.index.embedded_search import tokenizer_of
from crawlspace.index.ideographs import MARK, SEPARATOR, is_ideograph, joined, separated
from crawlspace.index.words import Tokenize
from tests.growth import is_linear
from tests.quick import some

TEXTS = (
    ("", ""),
    ("annual leave", "annual leave"),
    ("Größe – Überblick", "Größe – Überblick"),
    ("管理者", "|管|理|者|"),
    ("apt命令x", "apt|命|令|x"),
    ("管理 者", "|管|理| |者|"),
    ("ファイル", "|フ|ァ|イ|ル|"),
    ("ファイル・名", "|フ|ァ|イ|ル|・|名|"),
    ("文件、系统", "|文|件|、|#|系|统|"),
    ("文件 (系统)", "|文|件| (|#|系|统|)"),
    ("웹서버 설정", "|#|웹|서|버| |#|설|정|"),
    ("한국 (漢字)", "|#|한|국| (|#|漢|字|)"),
    ("𠀀", "|𠀀|"),
    ("日\u3000本", "|日|\u3000|本|"),
)


@pytest.mark.parametrize(("text", "stored"), TEXTS)
def test_separated(text: str, stored: str) -> None:
    assert separated(text) == stored.replace("|", SEPARATOR).replace("#", MARK)
    assert joined(separated(text)) == text


WORDS = (
    # soft hyphens, zero-width characters
    ("Zusammen\xadarbeit", ["zusammenarbeit"]),
    ("un\u200bbe\u2060lie\u200d\u200cvable\ufeff x\u2067y", ["unbelievable", "xy"]),
    ("\xada\xad \xad", ["a"]),
    ("Größe\xadn\u0301x", ["großenx"]),
    ("می\u200cخواهم", ["می", "خواهم"]),
    ("क्\u200dष", ["क", "ष"]),
    ("日\u200b本\xad語", ["日", "本", "語"]),
    ("葛\U000e0100城", ["葛", "城"]),
    # ligatures, widths, forms
    ("oﬀiﬃce ﬁﬂ", ["offiffice", "fifl"]),
    ("Ĳsselmeer ĳs", ["ijsselmeer", "ijs"]),
    ("ＡＢＣ－１２３ＡB", ["abc", "123ab"]),
    ("ｶﾞｲﾄﾞﾌﾞｯｸ", ["ガ", "イ", "ド", "ブ", "ッ", "ク"]),
    ("か\u3099か\u3099", ["が", "が"]),
    ("\u1112\u1161\u11ab국", [MARK, "한", "국"]),
    ("㈱日立", [MARK, "株", MARK, "日", "立"]),
    ("\uf9d0\u2f1d", ["類", "口"]),
    ("m² H₂O Ⅲ ① 5㎏ nº 𝐀𝑏", ["m2", "h2o", "iii", "1", "5kg", "no", "ab"]),
    ("ﻣﺮﺣﺒﺎ", ["مرحبا"]),
    ("a" * 192 + "ﬁ", ["a" * 192 + "ﬁ"]),
    ("a" * 180 + "ﬁ", ["a" * 180 + "fi"]),
    # what is not folded
    ("Windows™ 2½ №5 ok…", ["windows", "2½", "5", "ok"]),
    # what a page may have of our own
    ("\U000e0001x\U000e007f", ["x"]),
)


@pytest.fixture(scope="module")
def tokens() -> Iterator[Tokenize]:
    db = apsw.Connection(":memory:")
    yield tokenizer_of(db)
    db.close()


@pytest.mark.parametrize(("text", "words"), WORDS)
def test_words_are_indexed_as_they_are_typed(tokens: Tokenize, text: str, words: list[str]) -> None:
    stored = separated(text)
    assert [normalize("NFC", word) for word in tokens(stored)] == [normalize("NFC", word) for word in words]
    assert joined(stored) == text


SIGNS = (
    ("บริษัทก่อตั้งขึ้นในปี 1998 และ", "บ ริ ษั ท ก่ อ ตั้ ง ขึ้ น ใน ปี 1998 # และ"),
    ("การศึกษา", "กา ร ศึ ก ษา"),
    ("ຂ້ອຍຮັກເຈົ້າ", "ຂ້ ອ ຍ ຮັ ກ ເຈົ້າ"),
    ("ខ្ញុំ\u200bស្រឡាញ់", "ខ្ញុំ ស្រ ឡា ញ់"),
    ("ကျွန်တော် အင်္ဂလိပ်", "ကျွ န် တော် # အ င်္ဂ လိ ပ်"),
    ("ERPระบบ (ไทย)", "erp ระ บ บ # ไท ย"),
)


@pytest.mark.parametrize(("text", "words"), SIGNS)
def test_letters_with_their_signs_are_words(tokens: Tokenize, text: str, words: str) -> None:
    stored = separated(text)
    assert [joined(word) or "#" for word in tokens(stored)] == words.split(" ")
    assert joined(stored) == text


@pytest.mark.parametrize(
    "piece",
    some(
        ["a", "ﬁ", "\xad", "aﬁ ", "ｶﾞ", "ก", "กี่", "\u200c", "می\u200c", "日", "\U000e0100", "\U000e0001", "A\u0301", "\u17d2"], 2
    ),
)
def test_a_text_of_one_piece_takes_no_more_than_its_length(piece: str) -> None:
    assert is_linear(lambda size: joined(separated("é" + piece * (size // len(piece)))), 100_000)


SPECIAL = "aé1 -、管설\xad\u200b\u200c\u200dﬁｶﾞＡ１㈱กี่เเขຂ្ញក်\u0301\u3099\ufe0f\U000e0100\U000e0001\U000e007f…"


@given(st.text(alphabet=st.one_of(st.sampled_from(SPECIAL), st.characters(exclude_categories=["Cs"]))))
def test_a_text_is_read_as_it_was(text: str) -> None:
    without = joined(text)
    assert joined(separated(without)) == without


@pytest.mark.parametrize(
    ("word", "expected"),
    [("管", True), ("ー", True), ("설", True), ("ก", True), ("ก\U000ff048", True), ("a", False), (MARK, False), ("ä", False)],
)
def test_is_ideograph(word: str, *, expected: bool) -> None:
    assert is_ideograph(word) is expected
