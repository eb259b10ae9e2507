"""The URLs that a page links to, and the pages that link to a URL, each with the decision of the present rules.

A link that was admitted is stored as the key of its URL. The pages that lead to a URL are found in one pass over the links of all pages.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice, repeat
from types import MappingProxyType
from typing import NamedTuple

from crawlspace.admin.refused import SeenLink, seen_links, seen_on
from crawlspace.admin.report import UrlReport, label_of
from crawlspace.decision import Decision, Reason
from crawlspace.model import State, UrlState
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.depths import leads_on, reach_of
from crawlspace.state.refused_links import by_letter, by_reason
from crawlspace.state.store import Store
from crawlspace.text import MESSAGE, printable
from crawlspace.urls import MalformedUrl, Url, parse

SOME = 500
"""URLs that are read at once."""
_OF_ONE_PASS = 20_000
"""URLs whose referrers are found in one pass over the links."""


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
        """Return the link as JSON has it."""
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
    """The known URLs that a page links to."""

    ids: Sequence[int]
    """In the order of the page, each once."""
    forgotten: int = 0
    """The number of other URLs to which it has links: they were known, and are forgotten."""
    refused: Mapping[Reason, int] = MappingProxyType({})
    """Number of its links refused at its last fetch."""


@dataclass(frozen=True, slots=True)
class LinkAnswer:
    """The links of a URL, and the links to it."""

    subject: LinkedUrl
    seen_on: Sequence[SeenLink]
    """Pages on which it was refused, if it is."""
    out: LinksOut
    refused: Sequence[LinkedUrl] = ()
    """Refused links of the page, as far as the sample has them."""
    incoming: Sequence[int] = ()
    """Ids of the pages that lead to it."""


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
_CHOICES = {State.PENDING: "waiting", State.GONE: "error", State.FAILED: "error"}


def linked_url(text: str, *, space: CrawlSpace, store: Store | None) -> LinkedUrl:
    """Return the decision and the state of a URL. `store` is None for a collection that was never crawled."""
    url, decision = space.decide(text)
    state = None if url is None or store is None else store.get(url.text)
    if state is not None:
        return LinkedUrl(state.url, decided(state, space), state, url)
    return LinkedUrl(text if url is None else url.text, decision, url=url)


def links_of(text: str, *, space: CrawlSpace, store: Store, out: bool, incoming: bool) -> LinkAnswer:
    """Return the links of a URL (`out`) and those to it (`incoming`)."""
    subject = linked_url(text, space=space, store=store)
    state = subject.state if out else None
    seen: Sequence[SeenLink] = ()
    if subject.state is None or not subject.decision.admitted:
        seen = seen_on(subject.url, text, space=space, store=store)
    if seen and subject.decision.admitted:  # refused for its depth, or the limit of its host
        subject = replace(subject, decision=seen[0].decision)
    return LinkAnswer(
        subject,
        seen,
        LinksOut(()) if state is None else links_out(state, store),
        () if state is None else refused_out(state, space=space, store=store),
        links_in(subject.url.key, store) if incoming and subject.url is not None else (),
    )


def decided(state: UrlState, space: CrawlSpace) -> Decision:
    """Return the decision for a stored URL by the present rules."""
    return space.decide(state.url, base_host_as_written=state.host_as_written, depth=state.depth)[1]


def links_out(state: UrlState, store: Store) -> LinksOut:
    """Return the URLs that a page links to, or the target of its redirect. A page that is gone has none."""
    if not leads_on(state.state, state.status):
        return LinksOut(())
    keys = dict.fromkeys(store.links_of([state.id]).get(state.id, ()))
    ids: dict[int, list[int]] = {}
    for one in store.depths_of(keys):
        ids.setdefault(one.key, []).append(one.id)
    return LinksOut([id for key in keys for id in ids.get(key, ())], len(keys) - len(ids), by_reason(by_letter(state.refused)))


def refused_out(state: UrlState, *, space: CrawlSpace, store: Store) -> list[LinkedUrl]:
    """Return the refused links of a page that are in the sample, and that the present rules still refuse."""
    found = seen_links(store.refused_links(page=state.id), space=space, store=store)
    return [LinkedUrl(seen.link.url, seen.decision, _known(seen.link.url, store)) for seen in found]


def links_to_choose(
    state: UrlState, hrefs: Iterable[str] | None, *, base: str, space: CrawlSpace, store: Store
) -> tuple[list[LinkedUrl], int]:
    """Return the links of a page, each once, and the number of other links that are not known any more.

    `hrefs` are all archived links of the page, relative to `base`. Without them, the links come from the store: the admitted ones, and of the
    refused ones those in the sample.
    """
    if hrefs is None:
        out, refused = links_out(state, store), refused_out(state, space=space, store=store)
        found = [*described(out.ids, space=space, store=store), *refused]
        return found, out.forgotten + max(0, sum(out.refused.values()) - len(refused))
    links: dict[str, LinkedUrl] = {}
    for href in hrefs:
        url, decision = space.decide(
            href, base=base, base_host_as_written=state.host_as_written, depth=reach_of(state.depth, state.state)
        )
        known = None if url is None else store.get(url.text)
        text = href if url is None else url.text
        if known is not None and decision.admitted:
            decision = decided(known, space)
        links.setdefault(text, LinkedUrl(text, decision, known, url))
    return list(links.values()), 0


def choice_label(one: LinkedUrl) -> str:
    """Return the label of a link in a list to choose from: indexed, error, waiting, new, refused, or that of its state."""
    state = one.state
    if state is None:
        return "new" if one.decision.admitted else "refused"
    if state.indexed:
        return "indexed"
    return _CHOICES.get(state.state, state.state.label)


def cell_of(decision: Decision) -> str:
    """Return a decision as a cell of a table: `admitted`, or the reason with the rule."""
    if decision.admitted or decision.rule is None:
        return decision.reason.value
    return f"{decision.reason} ({decision.rule})"


def links_in(key: int, store: Store) -> Sequence[int]:
    """Return the ids of the pages that lead to the URL with this key, known or not, in order of discovery."""
    return array("q", (page.id for page in store.links_to([key])))


def described(ids: Iterable[int], *, space: CrawlSpace, store: Store) -> Iterator[LinkedUrl]:
    """Yield known URLs, in the order of their ids."""
    for states in _in_batches(ids, store):
        for state in states:
            yield LinkedUrl(state.url, decided(state, space), state)


def referrers(keys: Collection[int], store: Store, *, most: int) -> dict[int, Referrers]:
    """Return the pages that lead to URLs by their keys, `most` ids for each; a key that no page leads to is left out."""
    wanted, found = frozenset(keys), dict[int, Referrers]()
    for page in store.links_to(wanted):
        for key in wanted.intersection(page.targets):
            of_key = found.setdefault(key, Referrers([]))
            of_key.total += 1
            if len(of_key.ids) < most:
                of_key.ids.append(page.id)
    return found


def with_referrers(
    reports: Iterable[UrlReport], store: Store, *, most: int, passes: Iterable[AbstractContextManager[object]] | None = None
) -> Iterator[tuple[UrlReport, Referring]]:
    """Yield the reports of URLs with the pages that lead to each, `most` for each: a pass over all links for every 20,000 URLs.

    Each pass is made inside the next of `passes`, which is left before anything is yielded: whoever reads may take long.
    """
    left, permits = iter(reports), iter(repeat(nullcontext()) if passes is None else passes)
    while some := list(islice(left, _OF_ONE_PASS)):
        with next(permits):
            found = referrers({one.state.key for one in some}, store, most=most)
        ids = sorted({id for of_key in found.values() for id in of_key.ids})
        urls = {state.id: state.url for states in _in_batches(ids, store) for state in states}
        for one in some:
            of_key = found.get(one.state.key, _NOBODY)
            yield one, Referring([urls[id] for id in of_key.ids if id in urls], of_key.total)


def _known(text: str, store: Store) -> UrlState | None:
    """Return the state of a refused URL: one beyond the link depth may be known through another link."""
    try:
        return store.get(parse(text, routes=True).text)
    except MalformedUrl:
        return None


def _in_batches(ids: Iterable[int], store: Store) -> Iterator[list[UrlState]]:
    left = iter(ids)
    while some := list(islice(left, SOME)):
        yield store.get_by_ids(some)
