"""Documents that a search server has found, in the same order and with the same snippets as those of the embedded index.

Servers divide words in different ways, and not all of them can highlight. So the texts are written to an embedded index in memory, which has
the tokenizer, the forms of words and the snippets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

import apsw

from crawlspace.index.closeness import Closeness, best_first
from crawlspace.index.embedded_schema import SCHEMA
from crawlspace.index.embedded_search import StoredPart, best_parts, fill_parts, snippet_of, tokenizer_of, wanted_words
from crawlspace.index.ideographs import joined, separated
from crawlspace.index.json_client import items, table
from crawlspace.index.search import FoundPart
from crawlspace.index.words import SearchQuery, Stems, read_query


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document that a server has found, with the server's score."""

    id: str
    score: float
    url: str
    title: str
    headings: Sequence[str]


class FoundTexts:
    """The texts of one search. `languages` are those of the documents; none: English. Close it."""

    def __init__(self, text: str, languages: Iterable[str] = ()) -> None:
        """Raises UsageError for a text without words."""
        self._text = text
        self._db = apsw.Connection(":memory:")
        self._db.execute(SCHEMA)
        self._tokens = tokenizer_of(self._db)
        self._stems = Stems(self._db)
        self._languages = tuple(languages)
        self.query = read_query(text, self._tokens, lambda _: ())

    def in_order(self, found: Sequence[FoundDocument]) -> list[tuple[FoundDocument, float]]:
        """Return documents, given best first, in the order of hits and with their scores."""
        shown = {one.id: _shown(one) for one in found}
        self._fill(shown.values())
        closeness = Closeness(self._read().wanted, self._tokens)
        return best_first([(one, one.score) for one in found], lambda one: closeness.of(*shown[one.id]))

    def snippet(self, text: str, marks: tuple[str, str]) -> str:
        """Return the snippet of a text, with marks around the words found; its beginning without any."""
        self._fill([(wanted_words(self.query), "", "")], text)  # the title lets each text match
        return joined(snippet_of(self._db, self._read()), marks)

    def parts(self, stored: object, fields: Mapping[str, str], marks: tuple[str, str]) -> list[FoundPart]:
        """Return the best of the parts of a document, given as a server has stored them."""
        parts = list(map(_stored_part, map(table, items(stored))))
        if not parts:
            return []
        self._db.execute("DELETE FROM words")
        fill_parts(self._db, parts, fields)
        return best_parts(self._db, self._read(), parts, marks)

    def close(self) -> None:
        self._db.close()

    def _fill(self, rows: Iterable[tuple[str, str, str]], text: str = "") -> None:
        """Replace the contents of the index by titles, headings and URLs, with a text."""
        self._db.execute("DELETE FROM words")
        text = separated(text.replace("\0", " "))
        self._db.executemany("INSERT INTO words (title, headings, url, text) VALUES (?, ?, ?, ?)", ((*row, text) for row in rows))

    def _read(self) -> SearchQuery:
        """Return the query with the forms of its words in the index."""
        stemmers = self._stems.stemmers(self._languages)
        return read_query(self._text, self._tokens, lambda word: self._stems.forms(word, stemmers))


def _stored_part(part: Mapping[str, object]) -> StoredPart:
    id, key, url = (str(part.get(name, "")) for name in ("id", "key", "url"))
    return StoredPart(
        id, key, url, list(map(str, items(of_language(part.get("headings"))))), str(of_language(part.get("text")) or "")
    )


def of_language(value: object) -> object:
    """Return what is stored by language, or as it is."""
    return next(iter(value.values()), None) if isinstance(value, dict) else value


def _shown(one: FoundDocument) -> tuple[str, str, str]:
    """Return title, headings and URL as the embedded index stores them."""
    return separated(one.title), separated("\n".join(one.headings)), separated(unquote(one.url.partition("://")[2]))
