"""Search in the embedded index.

SQL finds the best documents by BM25; the first of them are reordered by their title, headings and URL (`closeness`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

import apsw

from crawlspace.document import NO_SNIPPET, Document, listed, unpack_text
from crawlspace.index.closeness import REORDERED, Closeness, best_first
from crawlspace.index.embedded_schema import COUNT, HIT, OF_DOCUMENTS, PACKED, RANKED, SCHEMA, SHOWN, TEXT, TOKENIZER
from crawlspace.index.ideographs import CLOSE, OPEN, is_ideograph, joined, separated
from crawlspace.index.orders import part_id, part_url
from crawlspace.index.search import FACET_VALUES, FEW, OF_FIELDS, PARTS, Filter, FoundPart, Hit, SearchResult, by_field
from crawlspace.index.words import SearchQuery, Stems, Tokenize, read_query

_WORDS_OF_SNIPPET, _CHARACTERS_OF_SNIPPET = 24, 64
FACET_COLUMNS = {"host": "host", "language": "language", "type": "content_type"}
"""The column of each facet that has one."""
_MOST_PIECES = 100
_SNIPPET = "SELECT snippet(words, 4, ?, ?, ' … ', ?) FROM words WHERE words MATCH ?"
_MARKS_OF_LINES = re.compile(r"(?m)^[ >]*(?:[-*]|[0-9]+[.)]|\|(?: --- \|)*)?(?= |$)| \\?\| ?")
_PARTS_FOUND = "SELECT rowid, snippet(words, 4, ?, ?, ' … ', ?) FROM words WHERE words MATCH ? ORDER BY rank, rowid LIMIT ?"
_VALUES = """
json_each((SELECT CASE WHEN v LIKE '["%"]' AND json_valid(v) THEN v ELSE json_array(v) END FROM (SELECT json_extract(d.fields, ?) AS v)))"""
"""The values of a further field, by its path."""


class IndexSearch:
    """Searches in an open index."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._stems = Stems(db)
        self._tokens = tokenizer_of(db)

    def search(
        self, text: str, *, limit: int, offset: int, marks: tuple[str, str], filters: Sequence[Filter], facets: Sequence[str]
    ) -> SearchResult:
        """Return the hits from `offset` on. Raises UsageError for a text without words."""
        stemmers = self._stems.stemmers(tuple(one.value for one in filters if one.field == "language"))
        query = read_query(text, self._tokens, lambda word: self._stems.forms(word, stemmers))
        where, values = filter_sql(filters)
        total = self._count(query.fts, where, values)
        counts = {name: self._facet(name, query.fts, where, values) for name in facets}
        numbers = self._best(query, query.fts, where, values, limit=limit, offset=offset)
        hits = [self._hit(query, query.fts, found, marks) for found in numbers]
        if total < FEW and offset == 0 and query.fts_of_some:
            found_already = {number for number, _ in numbers}
            some = self._best(query, query.fts_of_some, where, values, limit=limit, offset=0)
            others = [found for found in some if found[0] not in found_already][: limit - len(hits)]
            hits += [self._hit(query, query.fts_of_some, found, marks, has_all_words=False) for found in others]
        return SearchResult(total, tuple(hits), counts)

    def _count(self, match: str, where: str, values: Sequence[str]) -> int:
        return integer_of(
            self._db.execute(f"{COUNT}{OF_DOCUMENTS if where else ''} WHERE words MATCH ?{where}", (match, *values)).get
        )

    def _facet(self, name: str, match: str, where: str, values: Sequence[str]) -> list[tuple[str, int]]:
        """Return the most frequent values of a field, without the empty one."""
        column = FACET_COLUMNS.get(name)
        what, of = (f"d.{column} AS value", "") if column else ("value", f", {_VALUES}")
        rows = self._db.execute(
            f"SELECT {what}, count(*) FROM words w{OF_DOCUMENTS}{of}"  # noqa: S608 - constants
            f" WHERE words MATCH ?{where} AND value <> '' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?",
            (*([] if column else [_path(name)]), match, *values, FACET_VALUES),
        )
        return [(str(value), integer_of(number)) for value, number in rows]

    def _best(
        self, query: SearchQuery, match: str, where: str, values: Sequence[str], *, limit: int, offset: int
    ) -> list[tuple[int, float]]:
        """Return row number and score of the best documents."""
        rows = self._db.execute(
            f"{RANKED}{OF_DOCUMENTS if where else ''} WHERE words MATCH ?{where} ORDER BY w.rank LIMIT ?",
            (match, *values, max(REORDERED, offset + limit)),
        )
        found = [(integer_of(number), float(str(score))) for number, score in rows]
        closeness = Closeness(query.wanted, self._tokens)
        return best_first(found, lambda number: self._closeness(closeness, number))[offset : offset + limit]

    def _closeness(self, closeness: Closeness, number: int) -> float:
        return closeness.of(*map(str, self._row(SHOWN, (number,))))

    def _hit(
        self, query: SearchQuery, match: str, found: tuple[int, float], marks: tuple[str, str], *, has_all_words: bool = True
    ) -> Hit:
        number, score = found
        length = snippet_length(query)
        url, title, snippet, language, written, duplicates = map(str, self._row(HIT, (OPEN, CLOSE, length, match, number)))
        fields = json.loads(written)
        if NO_SNIPPET in fields:
            (text,) = self._row(TEXT, (number,))
            snippet = _snippet_without(query, str(text), fields)
        packed = self._db.execute(PACKED, (number,)).get
        return Hit(
            url=url,
            title=joined(title),
            snippet=joined(snippet, marks),
            score=score,
            language=language,
            fields=fields,
            duplicates=tuple(json.loads(duplicates)),
            has_all_words=has_all_words,
            parts=_parts_of(query, url, str(packed), fields, marks) if packed else (),
        )

    def _row(self, statement: str, values: Sequence[str | int]) -> Sequence[object]:
        (row,) = self._db.execute(statement, values).fetchall()
        return row


def without_hidden(text: str, fields: Mapping[str, str]) -> str:
    """Return the text of a document without what no snippet may show, by its fields."""
    for hidden in sorted(filter(None, listed(fields.get(NO_SNIPPET, ""))), key=len, reverse=True):
        text, number = re.subn(rf"(?<!\w){re.escape(hidden)}(?!\w)", "…", text)
        if not number:  # within a word, or in a language without spaces
            text = text.replace(hidden, "…")
    return text


class StoredPart(NamedTuple):
    """What is shown of a part, and searched in it."""

    id: str
    key: str
    url: str
    headings: Sequence[str]
    text: str


def fill_parts(db: apsw.Connection, parts: Sequence[StoredPart], fields: Mapping[str, str]) -> None:
    """Write the parts of a document to an empty index; `fields` are those of the document."""
    rows = (
        (number, separated("\n".join(part.headings)), separated(_shown_text(part.text, fields)))
        for number, part in enumerate(parts)
    )
    db.executemany("INSERT INTO words (rowid, headings, text) VALUES (?, ?, ?)", rows)


def _shown_text(text: str, fields: Mapping[str, str]) -> str:
    """Return the text of a part in one line; of a page that hides some from snippets, without marks of lists and tables, as it is hidden."""
    if NO_SNIPPET in fields:
        text = _MARKS_OF_LINES.sub(" ", text)
    return without_hidden(" ".join(text.split()), fields)


def best_parts(db: apsw.Connection, query: SearchQuery, parts: Sequence[StoredPart], marks: tuple[str, str]) -> list[FoundPart]:
    """Return the best of the parts that an index has; if none has all words, those with some of them."""
    found: list[tuple[int, str]] = []
    for match in filter(None, (query.fts, query.fts_of_some)):
        found = found or list(db.execute(_PARTS_FOUND, (OPEN, CLOSE, snippet_length(query), match, PARTS)))
    return [
        FoundPart(parts[number].url, parts[number].id, parts[number].key, parts[number].headings, joined(snippet, marks))
        for number, snippet in found
    ]


def _parts_of(query: SearchQuery, url: str, packed: str, fields: Mapping[str, str], marks: tuple[str, str]) -> list[FoundPart]:
    document = Document(url)
    unpack_text(document, packed)
    parts = [
        StoredPart(part_id(url, part.key), part.key, part_url(url, part.anchor), part.headings, part.text)
        for part in document.parts
    ]
    if not parts:
        return []
    with closing(apsw.Connection(":memory:")) as db:
        db.execute(SCHEMA)
        fill_parts(db, parts, fields)
        return best_parts(db, query, parts, marks)


def snippet_of(db: apsw.Connection, query: SearchQuery) -> str:
    """Return the snippet of the text of the one document of an index, with OPEN and CLOSE around the words found; its beginning without any.

    The document must have any of the words: see `wanted_words`.
    """
    pieces = list(dict.fromkeys(piece for term in query.wanted for piece in (term.fts, *term.pieces())))[:_MOST_PIECES]
    return str(db.execute(_SNIPPET, (OPEN, CLOSE, snippet_length(query), " OR ".join(pieces))).get)


def wanted_words(query: SearchQuery) -> str:
    return " ".join(word for term in query.wanted for word in term.words)


def _snippet_without(query: SearchQuery, text: str, fields: Mapping[str, str]) -> str:
    """Return the snippet of a stored text without what no snippet may show, as `snippet_of` does."""
    with closing(apsw.Connection(":memory:")) as db:
        db.execute(SCHEMA)
        shown = separated(without_hidden(joined(text), fields))
        db.execute("INSERT INTO words (title, text) VALUES (?, ?)", (wanted_words(query), shown))
        return snippet_of(db, query)


def tokenizer_of(db: apsw.Connection) -> Tokenize:
    """Return the function that divides texts into words like the index."""
    tokenizer = db.fts5_tokenizer(TOKENIZER[0], list(TOKENIZER[1:]))

    def tokens(text: str) -> Sequence[str]:
        words = tokenizer(text.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False)
        return [str(word) for word in words]

    return tokens


def snippet_length(query: SearchQuery) -> int:
    """Return the number of words in a snippet: in languages without spaces, each character is one."""
    has_ideographs = any(is_ideograph(word) for term in query.wanted for word in term.words)
    return _CHARACTERS_OF_SNIPPET if has_ideographs else _WORDS_OF_SNIPPET


def filter_sql(filters: Collection[Filter]) -> tuple[str, tuple[str, ...]]:
    """Return the end of a WHERE clause for all filters, with its values. Empty without filters."""
    fields = [[_sql(one) for one in of_field] for of_field in by_field(filters).values()]
    negated = [_sql(one) for one in filters if one.is_negated]
    sql = "".join(f" AND ({' OR '.join(part for part, _ in of_field)})" for of_field in fields)
    sql += "".join(f" AND NOT ({part})" for part, _ in negated)
    return sql, tuple(value for of_field in (*fields, negated) for _, values in of_field for value in values)


def _sql(one: Filter) -> tuple[str, tuple[str, ...]]:
    """Return a condition on the columns of a document, with its values."""
    match one.field:
        case "host":
            return "d.host = ?", (one.value,)
        case "owner":
            return "d.owner = ?", (one.value,)
        case "language":
            return "(d.language = ? COLLATE NOCASE OR d.language LIKE ? ESCAPE '\\')", (one.value, f"{_escaped(one.value)}-%")
        case "type":
            kind = _escaped(one.value) if "/" in one.value else f"%/{_escaped(one.value)}"
            return "(d.content_type LIKE ? ESCAPE '\\' OR d.content_type LIKE ? ESCAPE '\\')", (kind, f"{kind};%")
        case "modified":
            return "d.day BETWEEN ? AND ?", _days(one)
        case field if one.value:
            return f"EXISTS (SELECT 1 FROM {_VALUES} WHERE value = ?)", (_path(field), one.value)  # noqa: S608 - a constant
        case field:  # of a month or year its first day
            return "substr(json_extract(d.fields, ?) || '-01-01', 1, 10) BETWEEN ? AND ?", (_path(field), *_days(one))


def _days(one: Filter) -> tuple[str, str]:
    return one.first or "0000-00-00", one.last or "9999-99-99"


def _path(field: str) -> str:
    """Return the path of a further field in JSON."""
    return f'$."{field.removeprefix(OF_FIELDS)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def integer_of(value: object) -> int:
    assert isinstance(value, int)
    return value
