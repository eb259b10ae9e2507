"""Which of several URLs with equal documents is in the index: the representative of the group.

A page that names another one as its canonical page is an alternate of it, as long as that one has a document and names no other page itself.
An alternate is never the canonical page of others, so the representative always has the group's own checksum. The other members with that
checksum are noted on its document; an alternate with another text is no duplicate of it, although it is not indexed. Near duplicates are
alternates that are noted (`near_duplicates.py`).

Within a host the smallest rank wins: https before http, whichever was found first, then fewer redirects and shorter paths. Between hosts the
indexed one stays: a page of another host replaces it only when it has left the group (gone, redirected, another text, excluded) or becomes
an alternate. So copies on one host never displace the documents of another host, whatever their addresses and canonical pages are.

A document that is held because the rules exclude it, or because its page is gone, redirects or is no document any more, is in no group: it
has a unique checksum (`held_checksum`). It stays in the index unchanged, represents no group and is not pushed again.

Pure functions: a store passes in the rankings of groups before and after a batch, and `settle` returns the orders for the index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from crawlspace.model import Held, State, UrlState
from crawlspace.status import Status

NOTED = 100
"""Maximal members noted on the representative's document, so that a large group stays cheap."""

NO_PAGE = -1
"""The canonical key of a document that has left its group because it is held: it has no alternates then."""

GroupOrder = tuple[bool, bool, int, int]

MAX_PATH_LENGTH = 999_999
"""Longer paths compare as if they had this length."""
MAX_REDIRECTS = 499
HTTP = (MAX_REDIRECTS + 1) * (MAX_PATH_LENGTH + 1)
"""Added to the rank of an http URL. Ranks have nine digits at most, as in the members of a group in Redis."""


def rank_of(redirects: int, url: str) -> int:
    """Return the rank of a URL as it is stored: https first, then fewer redirects, then the shorter path in characters, with the query."""
    path_length = len(url) - url.index("/", 8)
    of_scheme = 0 if url.startswith("https:") else HTTP
    if not redirects and path_length <= MAX_PATH_LENGTH:
        return of_scheme + path_length
    return of_scheme + min(redirects, MAX_REDIRECTS) * (MAX_PATH_LENGTH + 1) + min(path_length, MAX_PATH_LENGTH)


def with_scheme(rank: int, url: str) -> int:
    """Return the rank of a URL as `rank_of` does; `rank` may be stored by an earlier version, which left the scheme out."""
    return rank if rank >= HTTP or url.startswith("https:") else min(rank, HTTP - 1) + HTTP


def canonical_page(named: Iterable[UrlState]) -> UrlState | None:
    """Return the canonical page of alternates, of the stored URLs with the key that they name; None where there is none."""
    return min((page for page in named if page.checksum is not None and page.canonical is None), key=_id, default=None)


def group_order(member: UrlState, named: Collection[int], *, alternate: bool = False) -> GroupOrder:
    """Return the sort key of a URL in its group; the smallest wins.

    `named` are the keys of the canonical URLs that the pages of the group name. Alternates are last; of the others a named one is first, then
    the one with the smallest stored rank (`rank_of`), then the first discovered.
    """
    return (alternate, member.key not in named, member.rank, member.id)


class GroupRanking(NamedTuple):
    """The representative of a group, and the members noted as duplicates, by rank."""

    representative: int | None
    noted: tuple[int, ...]


NO_MEMBERS = GroupRanking(None, ())


def rank_members(
    members: Iterable[UrlState],
    alternates: Collection[int] = (),
    *,
    near: Collection[int] = (),
    representative: int | None = None,
) -> GroupRanking:
    """Return the ranking of a group with these members; `alternates` are the ids of alternates, of which `near` are near duplicates.

    `representative` is the id of the present one, whether it is still a member or not.
    """
    group = list(members)
    named = {member.canonical for member in group if member.canonical is not None}
    group.sort(key=lambda member: group_order(member, named, alternate=member.id in alternates))
    own = [member for member in group if member.checksum == group[0].checksum or member.id in near]
    return ranking_of([member.id for member in own], representative=_representative(own, alternates, representative))


def _representative(ranking: Sequence[UrlState], alternates: Collection[int], representative: int | None) -> int | None:
    """Return the representative where it isn't the member with the smallest rank."""
    stays = next((member for member in ranking if member.id == representative and member.id not in alternates), None)
    if stays is None:
        return None
    return next(member.id for member in ranking if host_of(member.site) == host_of(stays.site))


def host_of(site: str) -> str:
    """Return the host of a site, without its port."""
    return site.rpartition(":")[0]


def ranking_of(ids: Sequence[int], *, representative: int | None = None) -> GroupRanking:
    """Return the ranking of a group whose first members with its own checksum are these, by rank; NOTED + 1 of them are enough.

    `representative` is given where it isn't the first of them.
    """
    if not ids:
        return NO_MEMBERS
    stands = ids[0] if representative is None else representative
    return GroupRanking(stands, tuple(id for id in ids if id != stands)[:NOTED])


def held_checksum(id: int) -> bytes:
    """Return the checksum of a held document that has left its group, which no other document has."""
    return b"held%012d" % id


def leaves_group(state: UrlState) -> bool:
    """Return whether the deletion of a document is held and its page is no document any more, by the rules or its own response.

    The document of a folded URL stays in its group until the other URL has one.
    """
    return state.held is Held.RULES or (state.held is Held.MANY and state.state in _NO_DOCUMENT)


_NO_DOCUMENT = frozenset({State.REDIRECTED, State.GONE, State.EXCLUDED})


def stored_checksum(state: UrlState, checksum: bytes | None, *, indexed: bool, new: bool) -> bytes | None:
    """Return the checksum that is stored for a URL whose document has the checksum given.

    If the document leaves its group, that is a unique one when the document is in the index or will be, and None otherwise.
    """
    if not leaves_group(state) or checksum in (None, held_checksum(state.id)):
        return checksum
    return held_checksum(state.id) if indexed or new else None


class Settlement(NamedTuple):
    """Ids whose documents are to be pushed and deleted, each in order of discovery."""

    push: list[int]
    delete: list[int]
    displaced: int = 0
    """Number of the deleted that still have a document, and lost to another member of the group."""


def settle(before: Mapping[bytes, GroupRanking], after: Mapping[bytes, GroupRanking], changed: Collection[int]) -> Settlement:
    """Return the orders for the index that follow from the rankings of groups before and after a batch, by checksum.

    `changed` are the ids whose document is new or changed. A representative is pushed when it is new,
    changed, or has other duplicates than before; one that represents no group any more is deleted.
    """
    won = {group.representative for group in before.values()}
    wins: set[int | None] = set()
    push = []
    for checksum, now in after.items():
        then = before[checksum]
        wins.add(now.representative)
        if now.representative is not None and (
            now.representative != then.representative or now.representative in changed or set(now.noted) != set(then.noted)
        ):
            push.append(now.representative)
    delete = [id for id in won - wins if id is not None]
    return Settlement(sorted(push), sorted(delete))


def stays_in_index(state: UrlState) -> bool:
    """Return whether a document that a URL left in the index for another collection stays there.

    It stays until the page has answered, or until no collection is left that may have it. An error that may be the host's is no answer.
    """
    if state.held is not None:  # until a person decides, or the page answers
        return True
    failed_host = state.state is State.GONE and state.status is not None and state.status >= _HOSTS_ERRORS
    return failed_host or state.state in (State.PENDING, State.FAILED) or state.status == Status.EXCLUDED_HERE


_HOSTS_ERRORS = 500
"""From this status on, an error may be the host's: HTTP's 5xx, and our own for connections that fail."""


def _id(page: UrlState) -> int:
    return page.id
