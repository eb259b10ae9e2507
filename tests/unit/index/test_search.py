"""Parts of a search: filters and facets, query words, ideographs, languages, the order of hits, and texts of servers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from unicodedata import normalize

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.errors import UsageError
from crawlspace.index.closeness import Closeness
from crawlspace.index.embedded_schema import TOKENIZER
from crawlspace.index.embedded_search import filter_sql, tokenizer_of
from crawlspace.index.found_texts import FoundDocument, FoundTexts
from crawlspace.index.ideographs import MARK, SEPARATOR, is_ideograph, joined, separated
from crawlspace.index.search import Filter, day_of, read_facets, read_filter
from crawlspace.index.search_server.documents import Languages
from crawlspace.index.words import Tokenize, read_query
from tests.growth import is_linear
from tests.quick import some

WRONG = (
    ("language", "write FIELD=VALUE"),
    ("language=", "write FIELD=VALUE"),
    ("=de", "write FIELD=VALUE"),
    ("colour=red", "one of the fields host, language, type, author, .* or fields.NAME for any further field of documents"),
    ("fields.=red", "one of the fields"),
    ('fields."=red', "one of the fields"),
    ("published=soon", "write a day as 2026-01-31"),
    ("modified=..", "write a day as 2026-01-31"),
    ("modified=2026", "write a day as 2026-01-31"),
    ("modified=2026-02-30", "write a day as 2026-01-31"),
    ("modified=2026-01-01..soon", "write a day as 2026-01-31"),
    ("modified=20260101..", "write a day as 2026-01-31"),
    ("modified=2026-02-01..2026-01-01", "ends before it begins"),
)


@pytest.mark.parametrize(("written", "sentence"), WRONG)
def test_a_wrong_filter_says_how_to_write_it(written: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        read_filter(written)


def test_a_wrong_facet_names_the_others() -> None:
    with pytest.raises(UsageError, match=r"no facet 'colour': there are host, language, type, .* or fields.NAME for any"):
        read_facets(["host", "colour"])


def test_facets_are_counted_once() -> None:
    assert read_facets(["type", "host", "type"]) == ("type", "host")


def test_values_of_one_field_are_alternatives() -> None:
    filters = [
        *map(read_filter, ("host=a.test", "modified=2026-01-01..", "host=B.test")),
        Filter("host", "c.test", is_negated=True),
    ]
    sql, values = filter_sql(filters)
    assert sql == " AND (d.host = ? OR d.host = ?) AND (d.day BETWEEN ? AND ?) AND NOT (d.host = ?)"
    assert values == ("a.test", "b.test", "2026-01-01", "9999-99-99", "c.test")


DAYS = (
    ("Wed, 21 Oct 2015 07:28:00 GMT", "2015-10-21"),
    ("2015-10-21", "2015-10-21"),
    ("2015-10-21T07:28:00Z", "2015-10-21"),
    ("", ""),
    ("yesterday", ""),
    ("Wed, 41 Oct 2015 07:28:00 GMT", ""),
    ("Wednesday, 21-Oct-15 07:28:00 GMT", ""),
    ("21.10.2015", ""),
)


@pytest.mark.parametrize(("modified", "day"), DAYS)
def test_day_of(modified: str, day: str) -> None:
    assert day_of(modified) == day


# --- from a search text to a query ----------------------------------------------------------------------------------


DATABASE = apsw.Connection(":memory:")
DATABASE.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
TOKENS = DATABASE.fts5_tokenizer(TOKENIZER[0], list(TOKENIZER[1:]))


def tokens(text: str) -> Sequence[str]:
    found = TOKENS(text.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False)
    return [str(word) for word in found]


def no_forms(_: str) -> tuple[str, ...]:
    return ()


def with_s(word: str) -> tuple[str, ...]:
    return (f"{word}s",)


QUERIES = (
    ("one", '"one"'),
    ("One TWO", '"one" AND "two"'),
    ('"one two" three', '"one two" AND "three"'),
    ('"one two', '"one two"'),
    ("one* two", '"one" * AND "two"'),
    ('"one tw"*', '"one tw" *'),
    ("one -two", '("one") NOT ("two")'),
    ('one -"two three" -four*', '("one") NOT ("two three" OR "four" *)'),
    ("AND OR NOT NEAR(a b)", '"and" AND "or" AND "not" AND "near a" AND "b"'),
    ("title:x c++ e-mail", '"title x" AND "c" AND "e mail"'),
    ("one + ^ -", '"one"'),
    ("one\0two", '"one" AND "two"'),
    ("Café", '"cafe"'),
    ("管理者", '"管 理 者"'),
    ("apt-get命令 设置", '"apt get 命 令" AND "设 置"'),
    ("「文件、系统」", f'"文 件 {MARK} 系 统"'),
    ("웹서버 설정", '"웹 서 버" AND "설 정"'),
    ("东京*", '"东 京" *'),
)


@pytest.mark.parametrize(("words", "query"), QUERIES)
def test_query(words: str, query: str) -> None:
    assert read_query(words, tokens, no_forms).fts == query


WITH_FORMS = (
    ("one", '("one" OR "ones")'),
    ('one "two" three* e-mail -four', '(("one" OR "ones") AND "two" AND "three" * AND "e mail") NOT ("four")'),
)


@pytest.mark.parametrize(("words", "query"), WITH_FORMS)
def test_plain_words_are_meant_in_all_forms(words: str, query: str) -> None:
    found = read_query(words, tokens, with_s)
    assert found.fts == query
    DATABASE.execute("SELECT * FROM t WHERE t MATCH ?", (query,)).fetchall()


OF_SOME = (
    ("one", ""),
    ('"one two"', ""),
    ("one one", ""),
    ("one two", '("one" OR "two")'),
    ("e-mail", '("e" OR "mail")'),
    ('one "two three" -four', ""),
    ('one two "three four" fi* -six', '("three four" AND "fi" * AND ("one" OR "two")) NOT ("six")'),
    ("管理者", '("管 理" OR "理 者")'),
    ("apt管理", '("apt" OR "管 理")'),
    ("管理", ""),
)


@pytest.mark.parametrize(("words", "query"), OF_SOME)
def test_query_for_some_of_the_words(words: str, query: str) -> None:
    assert read_query(words, tokens, no_forms).fts_of_some == query


@pytest.mark.parametrize("words", ["", "  ", "-one", "*", '""', "+ -", "-管理", MARK, "、"])
def test_nothing_to_search_for(words: str) -> None:
    with pytest.raises(UsageError, match="nothing to search for"):
        read_query(words, tokens, no_forms)


@given(st.text(alphabet=st.one_of(st.sampled_from('"*-+^():{} aAND\0管、서' + MARK), st.characters()), max_size=30))
def test_no_text_is_an_error_of_syntax(words: str) -> None:
    try:
        query = read_query(words, tokens, no_forms)
    except UsageError:
        return
    for match in filter(None, (query.fts, query.fts_of_some)):
        DATABASE.execute("SELECT * FROM t WHERE t MATCH ?", (match,)).fetchall()


def test_a_very_long_text_is_no_error() -> None:
    for words in ("one two " * 2000, "管理者" * 2000, "-one " * 2000 + "two"):
        query = read_query(words, tokens, no_forms)
        for match in filter(None, (query.fts, query.fts_of_some)):
            DATABASE.execute("SELECT * FROM t WHERE t MATCH ?", (match,)).fetchall()


# --- languages without spaces; `|` stands for a separator and `#` for a mark ----------------------------------------


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
def tokens_of() -> Iterator[Tokenize]:
    db = apsw.Connection(":memory:")
    yield tokenizer_of(db)
    db.close()


@pytest.mark.parametrize(("text", "words"), WORDS)
def test_words_are_indexed_as_they_are_typed(tokens_of: Tokenize, text: str, words: list[str]) -> None:
    stored = separated(text)
    assert [normalize("NFC", word) for word in tokens_of(stored)] == [normalize("NFC", word) for word in words]
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
def test_letters_with_their_signs_are_words(tokens_of: Tokenize, text: str, words: str) -> None:
    stored = separated(text)
    assert [joined(word) or "#" for word in tokens_of(stored)] == words.split(" ")
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


# --- fields by language ---------------------------------------------------------------------------------------------


FIELDS = ("de", "en", "other")

# What is written, and the fields of texts that are asked, with the languages of the documents in them.
LANGUAGES: tuple[tuple[list[str], list[str], dict[str, list[str]]], ...] = (
    (["de", "de-AT", "DE", "en"], [], {"de": ["de", "de-AT", "DE"], "en": ["en"], "other": []}),
    (["tlh", "en"], [], {"other": ["tlh"], "en": ["en"]}),
    (["de", "de-AT", "DE", "en"], ["language=de"], {"de": ["de", "de-AT", "DE"], "other": []}),
    (["de", "de-AT", "en"], ["language=DE-at"], {"de": ["de-AT"], "other": []}),
    (["de", "de-AT", "en"], ["language=d"], {"other": []}),
    ([], [], {"other": []}),
)


@pytest.mark.parametrize(("written", "filters", "expected"), LANGUAGES)
def test_languages(written: list[str], filters: list[str], expected: dict[str, list[str]]) -> None:
    assert Languages(written, fields=FIELDS, filters=list(map(read_filter, filters))).by_field == expected


def test_a_template_with_plain_texts_has_no_languages() -> None:
    assert Languages(["de", "en"], fields=None).by_field == {"": []}


# --- which of two documents fits better -----------------------------------------------------------------------------


BETTER = (
    ("leave", ("Leave", "", ""), ("Annual leave", "", "")),
    ("annual leave", ("Annual leave - Intranet", "", ""), ("Annual leave of all staff - Intranet", "", "")),
    ("annual leave", ("Leave", "Annual leave", ""), ("Leave", "Annual report\nSick leave", "")),
    ("annual leave", ("", "", "h.test/annual leave.html"), ("", "", "h.test/annual report.html")),
    ("leave", ("", "", "h.test/staff/leave.html"), ("", "", "leave.test/index.html")),
    ("annual leave", ("Annual leave", "", ""), ("", "", "h.test/annual leave.html")),
    ("leave", ("Leave", "", ""), ("Leaves", "", "")),
    ("leave", ("Leaves", "", ""), ("Leaves of absence", "", "")),
    ("holi*", ("Holidays", "", ""), ("Annual holidays", "", "")),
    ("annual holi*", ("Annual holidays", "", ""), ("Annual report", "", "")),
)


def split_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def forms(word: str) -> list[str]:
    return {"leave": ["leaves"]}.get(word, [])


@pytest.mark.parametrize(("words", "better", "worse"), BETTER)
def test_what_fits_better(words: str, better: tuple[str, str, str], worse: tuple[str, str, str]) -> None:
    closeness = Closeness(read_query(words, split_words, forms).wanted, split_words)
    assert closeness.of(*better) > closeness.of(*worse)


def test_nothing_in_common() -> None:
    assert (
        Closeness(read_query("leave", split_words, forms).wanted, split_words).of("Travel", "By train\nBy plane", "h.test/travel")
        == 0
    )
    assert Closeness(read_query("leave", split_words, forms).wanted, split_words).of("", "", "") == 0


# --- texts found by a server ----------------------------------------------------------------------------------------


FILLER = " ".join(["filler"] * 30)
NO_WORD_FOUND = " ".join(["filler"] * 24) + " … "

# A search, the languages of the documents, a text, and what is shown of it.
SNIPPETS: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("leave", ("en",), "Ask for annual leave.", "Ask for annual [leave]."),
    ("leaves", ("en-GB",), "Ask for annual leave.", "Ask for annual [leave]."),
    ("installation", ("de",), "Installing it", "Installing it"),
    ("installation", ("de", "en"), "Installing it", "[Installing] it"),
    ("leaves", (), "Ask for annual leave.", "Ask for annual [leave]."),
    ("annual leave", ("en",), "Ask for annual leave.", "Ask for [annual] [leave]."),
    ('"for annual" ask', ("en",), "Ask for annual leave.", "[Ask] [for annual] leave."),
    ("annu* zebra", ("en",), "Ask for annual leave.", "Ask for [annual] leave."),
    ("e-mail", ("en",), "The mail of e", "The [mail] of [e]"),
    ("ask -leave", ("en",), "Ask for annual leave.", "[Ask] for annual leave."),
    ("leave", ("en",), FILLER, NO_WORD_FOUND),
    ("leave", ("en",), "", ""),
    ("the leave", ("en",), f"{FILLER} the leave {FILLER}", f" … {'filler ' * 11}[the] [leave] {'filler ' * 11}… "),
    ("管理者", ("ja",), "年次管理者の申請", "年次[管理者]の申請"),
    ("office", ("en",), "The oﬃce", "The [oﬃce]"),
    ("ตั้ง", ("th",), "ก่อตั้งขึ้น", "ก่อ[ตั้ง]ขึ้น"),
    ("a b " * 2_000, ("en",), "a b", "[a] [b]"),
)


@pytest.mark.parametrize(("words", "languages", "text", "expected"), SNIPPETS)
def test_snippets(words: str, languages: tuple[str, ...], text: str, expected: str) -> None:
    with closing(FoundTexts(words, languages)) as texts:
        assert texts.snippet(text, ("[", "]")) == expected
        assert texts.snippet(text, ("[", "]")) == expected


def candidate(id: str, score: float, *, title: str = "", headings: tuple[str, ...] = (), path: str = "/") -> FoundDocument:
    return FoundDocument(id, score, f"http://a.test{path}", title, headings)


# A search, documents as the server has them in order, and in what order they are shown.
ORDERS: tuple[tuple[str, list[FoundDocument], str], ...] = (
    ("leave", [candidate("a", 9.0), candidate("b", 1.0, title="Leave")], "ba"),
    ("leave", [candidate("a", 9.0), candidate("b", 1.0, headings=("Other", "Leaves"))], "ba"),
    ("leave", [candidate("a", 9.0), candidate("b", 1.0, path="/l%65ave")], "ba"),
    ("lea*", [candidate("a", 9.0), candidate("b", 1.0, title="Leaving")], "ba"),
    ("leave", [candidate("a", 9.0, title="Other"), candidate("b", 1.0, title="Others")], "ab"),
    ("leave", [candidate("a", 9.0, title="Leave - Site"), candidate("b", 9.0, title="Leave and more")], "ab"),
    ("leave", [], ""),
)


@pytest.mark.parametrize(("words", "found", "expected"), ORDERS)
def test_order(words: str, found: list[FoundDocument], expected: str) -> None:
    with closing(FoundTexts(words, ("en",))) as texts:
        assert "".join(one.id for one, _ in texts.in_order(found)) == expected


def test_texts_without_a_word() -> None:
    with pytest.raises(UsageError, match="nothing to search for"):
        FoundTexts("-x")
