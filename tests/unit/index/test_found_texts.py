"""Texts that a server has found: put in order and shown as those of the embedded index are."""

from __future__ import annotations

from contextlib import closing

import pytest

from crawlspace.errors import UsageError
from crawlspace.index.found_texts import FoundDocument, FoundTexts

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


def test_nothing_to_search_for() -> None:
    with pytest.raises(UsageError, match="nothing to search for"):
        FoundTexts("-x")
