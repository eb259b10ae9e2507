"""One of a group: which of several URLs with equal documents stands for them in the index.

A page that names another one as its canonical page stands aside for it, as long as that one has a document and names no other
page itself. So nobody stands aside for a page that stands aside, and who stands for a group always has the group's own checksum.
Members with that checksum are noted on its document; a page with another text is no duplicate of it, though it isn't indexed.

Within a host the best rank wins. Between hosts the one that is indexed stays: a page of another host takes its place only when it
has left the group (gone, redirected, another text, excluded) or stands aside itself. So nobody's copies push the documents of
another host out of the index, whatever their addresses are and whatever they name as canonical.

A document that is held because the rules exclude it, or because its page is gone, redirects or is no document any more, is in no
group: it has a checksum of its own (`held_checksum`), so it stays in the index as it is, wins nothing and is not pushed again, and its
group goes on without it.

Pure: the stores say how a group stood before a batch and how it stands after it, `settle` says what the index has to do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from crawlspace.model import Held, State, Status, UrlState

NOTED = 100
"""At most so many of the other members are noted on the winner's document, so that a large group stays cheap."""

NO_PAGE = -1
"""What a document that is held apart names as canonical: it is itself nobody's canonical page then."""

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


def standing(members: Iterable[UrlState], aside: Collection[int] = (), *, incumbent: int | None = None) -> Standing:
    """Return how a group of these members stands, by looking at all of them; `aside` holds the ids of those that stand aside.

    `incumbent` is the id of the one that has been standing for the group until now, whether it is still a member or not.
    """
    group = list(members)
    named = {member.canonical for member in group if member.canonical is not None}
    group.sort(key=lambda member: rank(member, named, aside=member.id in aside))
    own = [member for member in group if member.checksum == group[0].checksum]
    return ranked([member.id for member in own], winner=_winner(own, aside, incumbent))


def _winner(ranking: Sequence[UrlState], aside: Collection[int], incumbent: int | None) -> int | None:
    """Return who stands for a group where that isn't the one with the best rank."""
    stays = next((member for member in ranking if member.id == incumbent and member.id not in aside), None)
    if stays is None:
        return None
    return next(member.id for member in ranking if host_of(member.site) == host_of(stays.site))


def host_of(site: str) -> str:
    """Return the host of a site, without its port."""
    return site.rpartition(":")[0]


def ranked(ids: Sequence[int], *, winner: int | None = None) -> Standing:
    """Return how a group stands whose best members with its own checksum are these, in order; NOTED + 1 of them are enough.

    `winner` stands for it where that isn't the best of them.
    """
    if not ids:
        return NOBODY
    stands = ids[0] if winner is None else winner
    return Standing(stands, tuple(id for id in ids if id != stands)[:NOTED])


def held_checksum(id: int) -> bytes:
    """Return the checksum of a document that is held apart from its group: nobody else has it. The stores write the same."""
    return b"held%012d" % id


def is_held_apart(state: UrlState) -> bool:
    """Whether the deletion of a document is held and its page is known to be none any more, by the rules or by its own answer."""
    return state.held is Held.RULES or (state.held is Held.MANY and state.state in _NO_DOCUMENT)


_NO_DOCUMENT = frozenset({State.REDIRECTED, State.GONE, State.EXCLUDED})


def held_apart(state: UrlState, checksum: bytes | None, *, indexed: bool, new: bool) -> bytes | None:
    """Return the checksum with which a URL is stored, where `checksum` is the one of its document.

    One that is held apart gets its own, if its document is in the index, or is a new one on the way there; else it has none.
    """
    if not is_held_apart(state) or checksum in (None, held_checksum(state.id)):
        return checksum
    return held_checksum(state.id) if indexed or new else None


class Settlement(NamedTuple):
    """Ids whose documents are to be pushed and deleted, each in order of discovery."""

    push: list[int]
    delete: list[int]
    displaced: int = 0
    """How many of the deleted have a document still, for which another one stands now."""


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
    if state.held is not None:  # until a person, or the page, decides
        return True
    given_up_sites = state.state is State.GONE and state.status is not None and state.status >= _HOSTS_ERRORS
    return given_up_sites or state.state in (State.PENDING, State.FAILED) or state.status == Status.EXCLUDED_HERE


_HOSTS_ERRORS = 500
"""From this status on, an error may be the host's: HTTP's 5xx, and our own for connections that fail."""


def _id(page: UrlState) -> int:
    return page.id
