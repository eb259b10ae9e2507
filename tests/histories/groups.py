"""Groups of duplicates as the oracle expects them, equal ones and near ones.

Which pages are equal follows from the present. Near ones may be grouped in several ways, and each is right in which all pages of a group are near
the one that represents it: so those groups are taken as the index has them, and checked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from tests.histories.configuration import Configuration
from tests.histories.documents import AS_IT_WAS, IN_NO_GROUP, Document, HeldDocument, Indexed
from tests.histories.families import are_near, family_of, shown
from tests.histories.web import Page, name_of, path_of

_FARTHEST = 6
Compared = Document | HeldDocument | Page
"""What has a URL, a title and a text."""


def groups_of(
    documents: Mapping[str, Document], index: Mapping[str, Indexed], configuration: Configuration
) -> list[list[Document]]:
    """Return the groups of equal pages. One of which none is in the index is part of the group that it is near, if it is noted there."""
    groups: defaultdict[tuple[str, ...], list[Document]] = defaultdict(list)
    for document in documents.values():
        groups[document.key].append(document)
    noted = {url: by for by in _by_freshness(documents, index) for url in index[by].duplicates}
    for key, group in list(groups.items()):
        if any(one.url in index for one in group):
            continue
        own = [one for one in group if not one.is_duplicate]
        by = {noted.get(one.url, "") for one in own}
        winner = documents.get(by.pop()) if len(by) == 1 else None
        if winner is not None and not winner.is_duplicate and _may_be_near(winner, own[0], configuration):
            groups[winner.key] += groups.pop(key)
    return list(groups.values())


def _by_freshness(documents: Mapping[str, Document], index: Mapping[str, Indexed]) -> list[str]:
    """Return the documents in the index; last those whose notes are the newest. On one that has left its group they are out of date."""

    def order(url: str) -> tuple[bool, bool, str]:
        document = documents[url]
        return document.own_key[0] not in (IN_NO_GROUP, AS_IT_WAS), not document.is_held, url

    return sorted(index.keys() & documents.keys(), key=order)


def near_differences(
    documents: Mapping[str, Document], index: Mapping[str, Indexed], configuration: Configuration
) -> Iterator[str]:
    """Yield pairs in the index that are near each other, where all that are near one are near each other: then one group has them all."""
    within = configuration.near
    there = [one for one in documents.values() if one.url in index and not (one.is_held or one.is_duplicate)]
    in_no_chain = [one for one in there if (family := family_of(one.text)) is not None and within not in family.chain]
    for one, other in combinations(in_no_chain, 2):
        if one.key != other.key and _are_near(one, other, configuration, within):
            yield f"NEAR    {one.url} and {other.url}: {shown(one.text)!r} and {shown(other.text)!r} are near at {within}"


def is_always_preferred(one: Document, other: Document, group: Sequence[Document]) -> bool:
    """Whether the first is preferred, whichever was found first. Between hosts, the one that was indexed first stays."""
    if name_of(one.url) != name_of(other.url) and one.is_duplicate == other.is_duplicate:
        return False
    return _rank(one, group, one.most) < _rank(other, group, other.least)


def _rank(document: Document, group: Sequence[Document], redirects: int) -> tuple[bool, bool, bool, int, int]:
    is_named = any(other.canonical == document.url for other in group)
    is_plain = document.url.startswith("http://")
    return (document.is_duplicate, not is_named, is_plain, redirects, len(path_of(document.url)))


def duplicate_differences(document: Document, has: Indexed, group: Sequence[Document]) -> Iterator[str]:
    """Yield what is noted on a document and is no duplicate, and the other way round. An alternate with another text is none."""
    if document.own_key[0] in (IN_NO_GROUP, AS_IT_WAS):
        return  # so are they
    others = {other.url for other in group if other.own_key == document.own_key or not other.is_duplicate} - {document.url}
    if has.duplicates != others:
        yield f"NOTED   {document.url}: duplicates MISSING {sorted(others - has.duplicates)}, EXTRA {sorted(has.duplicates - others)}"


def has_near(page: Page, others: Sequence[Compared], configuration: Configuration) -> bool:
    """Whether another page may be a near duplicate, or may have been under former settings."""
    return any(one.url != page.url and _are_near(page, one, configuration, _FARTHEST) for one in others)


def _may_be_near(one: Document, other: Document, configuration: Configuration) -> bool:
    """Whether two documents may be near duplicates: one that is held may have been compared under former settings."""
    if IN_NO_GROUP in (one.key[0], other.key[0]):
        return False
    if one.is_held or other.is_held:
        return AS_IT_WAS in (one.key[0], other.key[0]) or _are_near(one, other, configuration, _FARTHEST)
    return _are_near(one, other, configuration, configuration.near)


def _are_near(one: Compared, other: Compared, configuration: Configuration, within: int) -> bool:
    is_public = [configuration.key_at(document.url, "", "")[-1] for document in (one, other)]
    texts = [" ".join(configuration.content_key(document.title, document.text)) for document in (one, other)]
    return is_public[0] == is_public[1] and are_near(texts[0], texts[1], within)
