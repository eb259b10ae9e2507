"""One of a group: which of several URLs with equal documents stands for them in the index.

A page that names another one as its canonical page stands aside for it, as long as that one has a document and names no other
page itself. So nobody stands aside for a page that stands aside, and who stands for a group always has the group's own checksum.
Members with that checksum are noted on its document; a page with another text is no duplicate of it, though it isn't indexed.

Pure: the stores say how a group stood before a batch and how it stands after it, `settle` says what the index has to do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from crawlspace.model import State, Status, UrlState

NOTED = 100
"""At most so many of the other members are noted on the winner's document, so that a large group stays cheap."""

Rank = tuple[bool, bool, int, int, int]


def canonical_page(named: Iterable[UrlState]) -> UrlState | None:
    """Return the page for which pages stand aside, of the stored URLs with the key that they name; None where there is none."""
    return min((page for page in named if page.checksum is not None and page.canonical is None), key=_id, default=None)


def rank(member: UrlState, named: Collection[int], *, aside: bool = False) -> Rank:
    """Return the place of a URL in its group; the smallest wins.

    `named` holds the keys of the canonical URLs that the pages of the group name. Who stands aside goes last, a named
    member first, then fewest redirects, shortest path, first discovered.
    """
    return (aside, member.key not in named, member.redirects, member.path_length, member.id)


class Standing(NamedTuple):
    """Who stands for a group, and which members are noted as duplicates, best first."""

    winner: int | None
    noted: tuple[int, ...]


NOBODY = Standing(None, ())


def standing(members: Iterable[UrlState], aside: Collection[int] = ()) -> Standing:
    """Return how a group of these members stands, by looking at all of them; `aside` holds the ids of those that stand aside."""
    group = list(members)
    named = {member.canonical for member in group if member.canonical is not None}
    group.sort(key=lambda member: rank(member, named, aside=member.id in aside))
    return ranked([member.id for member in group if member.checksum == group[0].checksum])


def ranked(ids: Sequence[int]) -> Standing:
    """Return how a group stands whose best members with its own checksum are these, in order; NOTED + 1 of them are enough."""
    return Standing(ids[0], tuple(ids[1 : NOTED + 1])) if ids else NOBODY


class Settlement(NamedTuple):
    """Ids whose documents are to be pushed and deleted, each in order of discovery."""

    push: list[int]
    delete: list[int]


def settle(before: Mapping[bytes, Standing], after: Mapping[bytes, Standing], changed: Collection[int]) -> Settlement:
    """Return the orders that make the index follow, for groups that may have changed, by the checksum they go by.

    `changed` holds the ids whose document is new or changed. A winner is pushed when it is new in its group, changed, or
    its duplicates are others than before; who was a winner and no longer is one of any group is deleted.
    """
    won = {group.winner for group in before.values()}
    wins: set[int | None] = set()
    push = []
    for checksum, now in after.items():
        then = before[checksum]
        wins.add(now.winner)
        if now.winner is not None and (now.winner != then.winner or now.winner in changed or set(now.noted) != set(then.noted)):
            push.append(now.winner)
    delete = [id for id in won - wins if id is not None]
    return Settlement(sorted(push), sorted(delete))


def is_left(state: UrlState) -> bool:
    """Whether a document that a URL left in the index, for another crawler, stays there.

    It does until this collection has a say again: until the page has answered, or the rules leave it to nobody. An error that
    may be the host's is no answer.
    """
    silent = state.state is State.GONE and state.status is not None and state.status >= _HOSTS_ERRORS
    return silent or state.state in (State.PENDING, State.FAILED) or state.status == Status.EXCLUDED_HERE


_HOSTS_ERRORS = 500
"""From this status on, an error may be the host's: HTTP's 5xx, and our own for connections that fail."""


def _id(page: UrlState) -> int:
    return page.id
