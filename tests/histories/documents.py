"""Documents as the index has them and as they must be there: equal ones, and which of them stands for the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.histories.web import name_of, path_of

IN_NO_GROUP = "in no group"
"""What the key of a document begins with that is held for the rules."""


AS_IT_WAS = "as it was"
"""What it begins with where the document is held as it was, and equal to what was equal to it then."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """A document as the index has it."""

    title: str
    text: str
    duplicates: frozenset[str] = frozenset()
    field: str = ""
    """What rules have added."""


@dataclass(slots=True)
class Document:
    url: str
    title: str
    text: str
    canonical: str
    key: tuple[str, ...]
    """Of its group."""
    own_key: tuple[str, ...]
    least: int = 0
    """Redirects on the way to it."""
    most: int = 0
    aside: bool = False
    as_it_is: bool = True
    """Its content is known for sure."""


def groups_of(documents: Mapping[str, Document]) -> list[list[Document]]:
    groups: defaultdict[tuple[str, ...], list[Document]] = defaultdict(list)
    for document in documents.values():
        groups[document.key].append(document)
    return list(groups.values())


def is_always_better(one: Document, other: Document, group: Sequence[Document]) -> bool:
    """Whether the first stands before the second, whichever of them was found first. Between hosts, the one that was indexed first stays."""
    if name_of(one.url) != name_of(other.url) and one.aside == other.aside:
        return False
    return _rank(one, group, one.most) < _rank(other, group, other.least)


def _rank(document: Document, group: Sequence[Document], redirects: int) -> tuple[bool, bool, bool, int, int]:
    is_named = any(other.canonical == document.url for other in group)
    is_plain = document.url.startswith("http://")
    return (document.aside, not is_named, is_plain, redirects, len(path_of(document.url)))


def noted_differences(document: Document, has: Indexed, group: Sequence[Document]) -> Iterator[str]:
    if document.own_key[0] in (IN_NO_GROUP, AS_IT_WAS):
        return  # so are they
    others = {other.url for other in group if other.own_key == document.own_key} - {document.url}
    if has.duplicates != others:
        yield f"NOTED   {document.url}: duplicates MISSING {sorted(others - has.duplicates)}, EXTRA {sorted(has.duplicates - others)}"
