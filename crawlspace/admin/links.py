"""Which URLs a page leads to and which pages lead to a URL, each with the decision that the present rules make about it.

A link that was admitted is stored as the key of its URL. The pages that lead to a URL are found in one pass over the links of all pages.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple, Protocol

from crawlspace.admin.report import UrlReport, label_of
from crawlspace.decision import Decision
from crawlspace.model import UrlState
from crawlspace.printable import MESSAGE, printable
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.depths import PageLinks, UrlDepth, leads_on
from crawlspace.urls import Url

SOME = 500
"""URLs that are read at once."""
_OF_ONE_PASS = 20_000
"""URLs whose referrers are found in one pass over the links."""


class LinkStore(Protocol):
    def get(self, url: str) -> UrlState | None: ...
    def get_by_ids(self, ids: Sequence[int]) -> list[UrlState]: ...
    def depths_of(self, keys: Iterable[int]) -> list[UrlDepth]: ...
    def links_of(self, ids: Collection[int]) -> dict[int, array[int]]: ...
    def links_to(self, keys: Collection[int]) -> Iterator[PageLinks]: ...


@dataclass(frozen=True, slots=True)
class LinkedUrl:
    """A URL at one end of a link, with the present decision and its stored state if it is known."""

    text: str
    decision: Decision
    state: UrlState | None = None
    url: Url | None = None
    """None if it is malformed, or was read from the store."""

    @property
    def printable(self) -> str:
        return printable(self.text, most=MESSAGE)

    def as_json(self) -> dict[str, object]:
        decision, state = self.decision, self.state
        return {
            "url": self.printable,
            "admitted": decision.admitted,
            "reason": decision.reason.value,
            "rule": None if decision.rule is None else str(decision.rule),
            "state": None if state is None else label_of(state),
            "status": None if state is None else state.status,
            "depth": None if state is None else state.depth,
        }


class LinksOut(NamedTuple):
    """The known URLs that a page leads to."""

    ids: Sequence[int]
    """In the order of the page, each once."""
    forgotten: int = 0
    """The number of other URLs to which it has links: they were known, and are forgotten."""


@dataclass(slots=True)
class Referrers:
    """The pages that lead to a URL: the ids of the first ones, and the number of all."""

    ids: list[int]
    total: int = 0


class Referring(NamedTuple):
    """The pages that lead to a URL: the first ones, and the number of all."""

    urls: list[str]
    total: int

    def as_json(self) -> dict[str, object]:
        return {"referrers": [printable(url, most=MESSAGE) for url in self.urls], "referrers_total": self.total}


_NOBODY = Referrers([])


def linked_url(text: str, *, space: CrawlSpace, store: LinkStore | None) -> LinkedUrl:
    """Return the decision and the state of a URL. `store` is None for a collection that was never crawled."""
    url, decision = space.decide(text)
    state = None if url is None or store is None else store.get(url.text)
    if state is not None:
        return LinkedUrl(state.url, decided(state, space), state, url)
    return LinkedUrl(text if url is None else url.text, decision, url=url)


def decided(state: UrlState, space: CrawlSpace) -> Decision:
    """Return the decision for a stored URL by the present rules."""
    return space.decide(state.url, base_host_as_written=state.host_as_written, depth=state.depth)[1]


def links_out(state: UrlState, store: LinkStore) -> LinksOut:
    """Return the URLs that a page leads to, or the target of its redirect. A page that is gone leads nowhere."""
    if not leads_on(state.state, state.status):
        return LinksOut(())
    keys = dict.fromkeys(store.links_of([state.id]).get(state.id, ()))
    ids: dict[int, list[int]] = {}
    for one in store.depths_of(keys):
        ids.setdefault(one.key, []).append(one.id)
    return LinksOut([id for key in keys for id in ids.get(key, ())], len(keys) - len(ids))


def links_in(key: int, store: LinkStore) -> Sequence[int]:
    """Return the ids of the pages that lead to the URL with this key, known or not, in order of discovery."""
    return array("q", (page.id for page in store.links_to([key])))


def described(ids: Iterable[int], *, space: CrawlSpace, store: LinkStore) -> Iterator[LinkedUrl]:
    """Yield known URLs, in the order of their ids."""
    for states in _in_batches(ids, store):
        for state in states:
            yield LinkedUrl(state.url, decided(state, space), state)


def referrers(keys: Collection[int], store: LinkStore, *, most: int) -> dict[int, Referrers]:
    """Return the pages that lead to URLs by their keys, `most` ids for each; a key that no page leads to is left out."""
    wanted, found = frozenset(keys), dict[int, Referrers]()
    for page in store.links_to(wanted):
        for key in wanted.intersection(page.targets):
            of_key = found.setdefault(key, Referrers([]))
            of_key.total += 1
            if len(of_key.ids) < most:
                of_key.ids.append(page.id)
    return found


def with_referrers(reports: Iterable[UrlReport], store: LinkStore, *, most: int) -> Iterator[tuple[UrlReport, Referring]]:
    """Yield the reports of URLs with the pages that lead to each, `most` for each: a pass over all links for every 20,000 URLs."""
    left = iter(reports)
    while some := list(islice(left, _OF_ONE_PASS)):
        found = referrers({one.state.key for one in some}, store, most=most)
        ids = sorted({id for of_key in found.values() for id in of_key.ids})
        urls = {state.id: state.url for states in _in_batches(ids, store) for state in states}
        for one in some:
            of_key = found.get(one.state.key, _NOBODY)
            yield one, Referring([urls[id] for id in of_key.ids if id in urls], of_key.total)


def _in_batches(ids: Iterable[int], store: LinkStore) -> Iterator[list[UrlState]]:
    left = iter(ids)
    while some := list(islice(left, SOME)):
        yield store.get_by_ids(some)
