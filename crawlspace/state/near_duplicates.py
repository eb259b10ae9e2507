"""Groups of near duplicates: which texts are in the group of another one.

A group of equal documents takes in pages with another text that is nearly the same as that of its representative. They are alternates there:
they never represent the group while it has a page with its own text. The checksum of that text names the group, so where a page with another
text becomes the representative, the group gets the name of that text: `regroup` finds out, and moves the pages of a text from one group to
another. Texts that are not near the new representative leave; each may be near that of another group, or has a group of its own from then on.

Each change of the distance begins an epoch, and so does one of the settings by which pages get other texts. When a page is recorded for the
first time in one, it leaves its group if it is not near that any more, and a text that names a group may join another one. So the signature of a
page has the number of the epoch in which it was recorded, and a leading text has that of its page.

A text with a signature (`crawlspace/simhash.py`) that names a group is a leading text; stores find these by the bands of their simhashes. A new
text joins the group with the smallest distance, then with the smallest checksum. A band has a limited number of texts, for on a site with one
template very many have close simhashes. It never joins two groups together: recording a page deletes one document at most, as if it were equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple, Protocol

from crawlspace.simhash import EPOCHS, epoch_of, is_near
from crawlspace.state.store import MetaStore

NEAR_META = "near_duplicates"
"""The name of the distance of the setting among the metadata of a store; absent: 0."""
NEAR_EPOCH_META = "near_duplicates_epoch"
"""The name of the number of the epoch; absent: 0."""
MOST_NEAR = 500
"""Pages that a group takes in with other texts, and pages with its own up to which another text may represent it: moving them takes time."""

MOST_IN_BAND = 16
"""Leading texts with the same value of a band: more are found by their other bands only, so that a look-up takes a limited time."""


class NearPage(NamedTuple):
    """A page that names no other one as canonical, and is a candidate to represent its group."""

    id: int
    checksum: bytes
    simhash: bytes | None
    named: bool
    """A page of the group names it as canonical."""
    rank: int
    host: str


class LeadingTexts(Protocol):
    """The texts that name a group which near duplicates may join."""

    def leading(self, signature: bytes, within: int) -> Iterable[tuple[int, bytes]]:
        """Return the leading texts whose simhash is within that distance, each with its distance; those of another length may be left out."""

    def signature(self, text: bytes) -> bytes | None:
        """Return the signature of a leading text; None for another text."""

    def is_full(self, group: bytes) -> bool:
        """Return whether a group has `MOST_NEAR` pages with other texts than its own."""


class NearGroups(LeadingTexts, Protocol):
    """The groups in a transaction, after all changes of URLs are written."""

    def near_pages(self, group: bytes) -> list[NearPage]:
        """Return the pages of a group with another text than its own, in any order."""

    def epoch(self) -> int:
        """Return the number of the present epoch."""

    def lead(self, text: bytes, signature: bytes | None) -> None:
        """Make a text a leading one; None: it is none any more."""

    def group_of(self, text: bytes) -> bytes | None:
        """Return the group of other texts that has pages with this one."""

    def page(self, id: int) -> tuple[bytes, NearPage] | None:
        """Return the group of a page and the page; None for an alternate of a canonical page, or a URL without a document."""

    def has_many(self, group: bytes, most: int) -> bool:
        """Return whether a group has more than `most` pages with its own text."""

    def host_before(self, group: bytes, near: Iterable[NearPage]) -> str | None:
        """Return the host of the page that represented a group before the transaction, if it is still a page of it; `near` are its near pages."""

    def first_of_host(self, group: bytes, host: str | None) -> NearPage | None:
        """Return the first page by rank with the group's own text, of a host or of any."""

    def choose(self, group: bytes, page: NearPage) -> None:
        """Make a page the representative of a group, whichever page that was before the transaction."""

    def move(self, text: bytes, group: bytes, into: bytes) -> None:
        """Move the pages with a text to another group, with the alternates of these pages."""


def use_distance(store: MetaStore, within: int) -> None:
    """Store the distance of the setting, for all that change documents from now on; another one than before begins an epoch."""
    if (store.get_meta(NEAR_META) or "0") != str(within):
        begin_epoch(store)
        store.set_meta(NEAR_META, str(within))


def begin_epoch(store: MetaStore) -> None:
    """Have each page compared with all groups again when it is recorded next."""
    store.set_meta(NEAR_EPOCH_META, str((int(store.get_meta(NEAR_EPOCH_META) or 0) + 1) % EPOCHS))


def leading_text(groups: LeadingTexts, signature: bytes, within: int, *, but: Collection[bytes | None] = ()) -> bytes | None:
    """Return the leading text next to a signature: that whose group the text would join."""
    for _, text in sorted(groups.leading(signature, within)):
        its = groups.signature(text) if text not in but else None
        if its is not None and is_near(signature, its, within) and not groups.is_full(text):
            return text
    return None


def joined_text(groups: LeadingTexts, text: bytes, signature: bytes, within: int, *, left: bytes | None) -> bytes | None:
    """Return the leading text whose group a text would join; itself if it is a leading one, unless that was in an earlier epoch.

    `left` is the group that ends with that, since it has no other page than the one that gets the text.
    """
    led = groups.signature(text)
    is_earlier = led is not None and epoch_of(led) != epoch_of(signature)
    return leading_text(groups, signature, within, but=(text if is_earlier else None, left))


def regroup(groups: NearGroups, ids: Iterable[int], touched: Iterable[bytes], within: int) -> None:
    """Update the groups of near duplicates after a change of pages.

    `ids` are the URLs that were changed, or are alternates of others than before; `touched` are the groups which any URL has left or joined.
    """
    concerned = _end_empty(groups, touched)
    epoch = groups.epoch()
    leaving: list[_Leaving] = []
    left: set[bytes] = set()
    for id in sorted(ids):
        if (found := groups.page(id)) is None:
            continue
        group, page = found
        text = page.checksum
        if page.simhash is not None and within and epoch_of(page.simhash) == epoch:
            others = _leave_earlier(groups, group, text, page.simhash, within)
            leaving += others
            left.update(other for other, _ in others)
        if text in left:
            continue
        if group != text or groups.signature(text) is not None:
            concerned.add(group)
            continue
        into = groups.group_of(text)
        if into is None and page.simhash is not None and within:
            into = leading_text(groups, page.simhash, within)
            if into is None:
                groups.lead(text, page.simhash)
        if into is not None:
            groups.move(text, text, into)
            concerned.add(into)
    leaving += [text for group in sorted(concerned) for text in _elect(groups, group, within, epoch)]
    seen: set[bytes] = set()
    while leaving:
        text, signature = leaving.pop(0)
        if groups.signature(text) is not None or groups.group_of(text) is not None:
            continue  # it has a group since
        into = None
        if signature is not None and within and text not in seen:
            into = leading_text(groups, signature, within, but=(text,))
        seen.add(text)
        if into is not None:
            groups.move(text, text, into)
            leaving += _elect(groups, into, within, epoch)
        elif signature is not None and within:
            groups.lead(text, signature)


def _end_empty(groups: NearGroups, touched: Iterable[bytes]) -> set[bytes]:
    """Return those of some groups that have a leading text. That of a group without a page leads no more: else a page that was alone there, and
    has got another text, would join the group that it has left, and stay alone."""
    found = set[bytes]()
    for group in sorted(one for one in touched if groups.signature(one) is not None):
        if groups.first_of_host(group, None) is not None or groups.near_pages(group):
            found.add(group)
        else:
            groups.lead(group, None)
    return found


_Leaving = tuple[bytes, bytes | None]
"""A text that leaves a group, with its signature."""


def _leave_earlier(groups: NearGroups, group: bytes, text: bytes, signature: bytes, within: int) -> list[_Leaving]:
    """Return the texts that leave a group because a page was recorded in this epoch, whose text and signature are given.

    If that text led the group in an earlier epoch, it leads it no more, and all others leave. If it is not near the leading one any more, it leaves.
    """
    led = groups.signature(group)
    if led is None or (epoch_of(led) == epoch_of(signature) if group == text else is_near(led, signature, within)):
        return []
    leaving: list[_Leaving] = [(text, signature)]
    if group == text:
        groups.lead(text, None)
        leaving = sorted({page.checksum: page.simhash for page in groups.near_pages(group)}.items())
    for other, _ in leaving:
        groups.move(other, group, other)
    return leaving


def _elect(groups: NearGroups, group: bytes, within: int, epoch: int) -> list[_Leaving]:
    """Name a group after the text of the page that represents it; return the texts that leave it, with their signatures."""
    signature = groups.signature(group)
    if signature is None:
        return []
    near = groups.near_pages(group)
    own = groups.first_of_host(group, None)
    if not near:
        if own is None or not within:  # turned off, the page may have no signature any more
            groups.lead(group, None)
        return []
    winner = _winner(groups, group, near)
    if within and (winner.checksum == group or groups.has_many(group, MOST_NEAR)):
        return []
    signatures = {page.checksum: page.simhash for page in near if page.simhash is not None}
    texts = {page.checksum for page in near}
    if own is not None:
        texts.add(group)
        signatures[group] = signature
    chosen = signatures.get(winner.checksum) if within else None
    if chosen is not None and epoch_of(signature) != epoch and leading_text(groups, chosen, within, but=(group,)) is not None:
        chosen = None  # it may join a group that it was not near before
    groups.lead(group, None)
    leaving: list[_Leaving] = []
    for text in sorted(texts, key=lambda text: (text != winner.checksum, text)):
        its = signatures.get(text)
        if chosen is not None and text == winner.checksum:
            groups.lead(text, chosen)
            groups.move(text, group, text)
            groups.choose(
                text, winner
            )  # pages with its text may have been a group of their own before, with another representative
        elif chosen is not None and its is not None and is_near(chosen, its, within):
            groups.move(text, group, winner.checksum)
        else:
            if text != group:
                groups.move(text, group, text)
            leaving.append((text, its))
    return leaving


def _winner(groups: NearGroups, group: bytes, near: Collection[NearPage]) -> NearPage:
    """Return the page that represents a group by the rule for equal pages: between hosts, the one that is there."""
    host = groups.host_before(group, near)
    found = [page for page in near if host is None or page.host == host]
    if (first := groups.first_of_host(group, host)) is not None:
        found.append(first)
    return min(found, key=_order)


def _order(page: NearPage) -> tuple[bool, int, int]:
    return (not page.named, page.rank, page.id)
