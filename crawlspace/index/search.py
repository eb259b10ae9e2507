"""What a search returns, and the interface of an index that can be searched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Protocol, runtime_checkable

from crawlspace.errors import UsageError
from crawlspace.text import quoted

FEW = 3
"""Where fewer documents have all words, those that have some of them follow."""
PARTS = 3
"""Parts of a hit at most."""
FACET_VALUES = 20
"""Values of a facet at most."""


@dataclass(frozen=True, slots=True)
class FoundPart:
    """A part of a document that has words of the search."""

    url: str
    id: str
    key: str
    headings: Sequence[str]
    snippet: str


@dataclass(frozen=True, slots=True)
class Hit:
    """One document found. A larger score is a better match; scores of different searches are not comparable."""

    url: str
    title: str
    snippet: str
    score: float
    language: str
    fields: Mapping[str, str]
    duplicates: tuple[str, ...]
    has_all_words: bool = True
    parts: Sequence[FoundPart] = ()
    """Those of its parts that have all words, else some of them, best first."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`total` counts the documents that have all words. `hits` has the best of them; if they are few, others with some words follow."""

    total: int
    hits: tuple[Hit, ...]
    facets: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    """For each requested field, its most frequent values among the counted documents, with their numbers."""


@runtime_checkable
class Searchable(Protocol):
    """An index that can be searched."""

    def search(
        self,
        words: str,
        *,
        limit: int = ...,
        offset: int = ...,
        marks: tuple[str, str] = ...,
        filters: Sequence[Filter] = ...,
        facets: Sequence[str] = ...,
    ) -> SearchResult:
        """Return the best matches for a search text; `words` has its syntax, and `filters` the names of facets.

        `marks` are put around the matching words of a snippet. Raises UsageError for a text without words, or hits that the index
        does not show, and IndexUnavailable.
        """

    def close(self) -> None: ...


FACETS = ("host", "language", "type", "author", "keywords", "site_name")
FILTERS = (*FACETS, "modified", "published")
OF_FIELDS = "fields."
"""Before the name of a further field of documents, as in `fields.color`; those of FACETS and FILTERS that are some have short names, too."""
_SHORT = ("author", "keywords", "site_name", "published")
_DAYS_OF = ("modified", f"{OF_FIELDS}published")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS = "write a day as 2026-01-31, or a range as 2026-01-01..2026-01-31, 2026-01-01.. or ..2026-01-31"


@dataclass(frozen=True, slots=True)
class Filter:
    """A condition on a field of a document: a value, or for the times a first and a last day, empty where there is none.

    The names of further fields begin with `fields.`.
    """

    field: str
    value: str = ""
    first: str = ""
    last: str = ""
    is_negated: bool = False
    """Only documents without that value."""


OWNER = "owner"
"""The field of a filter of an embedded index that several collections share: the collection that a document is of."""


def read_filter(written: str) -> Filter:
    """Return the filter of a text such as `language=de`. Raises UsageError with the way out."""
    name, sign, value = written.partition("=")
    field, value = _field(name, FILTERS), value.strip()
    if not field or not sign or not value:
        raise UsageError(f"the filter {quoted(written)} is none: write FIELD=VALUE, with one of the fields {_names(FILTERS)}")
    if field in _DAYS_OF:
        return _of_days(written, field, value)
    return Filter(field, value.lower() if field == "host" else value)


def _field(name: str, known: Sequence[str]) -> str:
    """Return the field of a name as it is written; empty if there is none."""
    name = name.strip()
    if name.lower().startswith(OF_FIELDS):
        own = name[len(OF_FIELDS) :]
        return OF_FIELDS + own if own and '"' not in own else ""
    name = name.lower()
    return "" if name not in known else OF_FIELDS + name if name in _SHORT else name


def _names(known: Sequence[str]) -> str:
    return f"{', '.join(known)}, or fields.NAME for any further field of documents"


def by_field(filters: Iterable[Filter]) -> Mapping[str, Sequence[Filter]]:
    """Return filters by field: those of one field are alternatives, and all fields must fit. Without negated ones."""
    found: dict[str, list[Filter]] = {}
    for one in (one for one in filters if not one.is_negated):
        found.setdefault(one.field, []).append(one)
    return found


def read_facets(names: Sequence[str]) -> tuple[str, ...]:
    """Return the fields of facets, each once. Raises UsageError for one that there is not."""
    fields = []
    for name in names:
        fields.append(_field(name, FACETS))
        if not fields[-1]:
            raise UsageError(f"there is no facet {quoted(name)}: there are {_names(FACETS)}")
    return tuple(dict.fromkeys(fields))


def shown_name(field: str) -> str:
    """Return the name of a facet as it is shown: short where there is a short one."""
    return field.removeprefix(OF_FIELDS) if field.removeprefix(OF_FIELDS) in _SHORT else field


def day_of(modified: str) -> str:
    """Return the day of an HTTP date (RFC 9110, 5.6.7) or of a date that begins as in ISO 8601; empty for anything else."""
    day = (
        f"{modified[12:16]}-{_MONTHS.index(modified[8:11]) + 1:02}-{modified[5:7]}"
        if modified[8:11] in _MONTHS
        else modified[:10]
    )
    return day if _is_day(day) else ""


def _of_days(written: str, field: str, value: str) -> Filter:
    first, dots, last = (part.strip() for part in value.partition(".."))
    if not dots:
        last = first
    if not (first or last) or not all(_is_day(day) for day in (first, last) if day):
        raise UsageError(f"the filter {quoted(written)} has no such days: {_DAYS}")
    if first and last and first > last:
        raise UsageError(f"the filter {quoted(written)} ends before it begins: {_DAYS}")
    return Filter(field, first=first, last=last)


def _is_day(text: str) -> bool:
    if len(text) != len("2026-01-31"):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
