"""Checks at the end of a run: link depths are those of a plain walk along the stored links, and only orphans are forgotten."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Protocol

from crawlspace.crawl.depths.end_of_run import end_run, start_keys
from crawlspace.crawl.depths.settlement import last_run
from crawlspace.crawl.engine import Engine
from crawlspace.model import Held, State, UrlState
from crawlspace.state.depths import DepthMark
from crawlspace.status import LINKS_ONLY
from crawlspace.urls import parse
from tests.histories.configuration import ELSEWHERE, OUTSIDE
from tests.histories.fate import Run
from tests.histories.web import path_of

_LOOP = 691
_OF_A_REDIRECT = (Held.HOST, Held.MANY, Held.RULES)
"""Why the document of what is or was a redirect may be held: its whole site redirected or fails, there were too many, and by now perhaps the rules
exclude it, too."""


class HasLinks(Protocol):
    def links_of(self, ids: Collection[int]) -> dict[int, array[int]]: ...
    def depth_marks(self) -> dict[int, DepthMark]: ...
    def urls(self) -> Iterator[UrlState]: ...


def end_run_checked(engine: Engine, run: Run, *, discarded: AbstractSet[str] = frozenset()) -> None:
    """End a run, and note in what that was wrong. `discarded`: see `SimulatedCrawler`."""
    store, collection = engine.store, engine.collection
    starts = start_keys(collection) | {state.key for state in store.urls() if _is_named_sitemap(state)}
    before = {state.url: state for state in store.urls()}
    reached = _distances(store, before.values(), starts)
    end_run(engine)
    after = {state.url: state for state in store.urls()}
    orphans = before.keys() - after.keys()
    run.orphans |= orphans
    run.differences += [f"LOST    {url}: a way leads to it over stored links" for url in orphans if before[url].key in reached]
    folding = collection.url_folding
    settled = {url: state for url, state in after.items() if folding.folded(parse(url, routes=True)) is None}
    # a folded URL has no links any more; a hold that a person dropped during the run comes back at the next start
    run.differences += _depth_differences(store, settled, after, starts, discarded)
    if collection.orphans_after is not None:
        now = last_run(store)
        for url, state in after.items():
            waits = state.held is not None or state.lease_until is not None or state.status in (OUTSIDE, ELSEWHERE)
            if state.orphaned is not None and now - state.orphaned + 1 >= collection.orphans_after and not waits:
                run.differences.append(f"ORPHAN  {url}: since run {state.orphaned}, now it is {now}")


def _depth_differences(
    store: HasLinks,
    compared: dict[str, UrlState],
    states: dict[str, UrlState],
    starts: Collection[int],
    discarded: AbstractSet[str],
) -> Iterator[str]:
    """Yield the URLs whose stored depth is not the length of the shortest way over stored links, and those wrongly called orphans.

    What fails and has no document may have been a redirect, and so may what came back and has not been fetched since, or what a person has
    kept though its deletion was held. That must not make anything farther: both lengths are right then.
    """
    longest = _distances(store, states.values(), starts)
    shortest = _distances(store, states.values(), starts, may_redirect=True, discarded=discarded)
    marks = store.depth_marks()
    for url, state in compared.items():
        if state.held is Held.FOLDED or (state.key in starts and _is_refused_start(state)):
            continue
        if state.lease_until is not None and state.key in marks:  # it is settled once it has been fetched
            continue
        found, least = longest.get(state.key), shortest.get(state.key)
        if state.status in (OUTSIDE, ELSEWHERE):
            if found is not None and state.depth > found:  # the link depth limit may exclude it for that
                yield f"DEPTH   {url}: {state.depth}, outside, must be {found} at most"
            continue
        if found is None and state.orphaned is None:
            yield f"DEPTH   {url}: no way leads to it, and it is no orphan (depth {state.depth}, from {state.depth_from})"
        elif found is not None and least is not None and (state.orphaned is not None or not least <= state.depth <= found):
            orphan = ", an orphan" if state.orphaned is not None else ""
            yield f"DEPTH   {url}: {state.depth}{orphan}, must be {found if found == least else f'{least} to {found}'}"


def _distances(
    store: HasLinks,
    states: Iterable[UrlState],
    starts: Collection[int],
    *,
    may_redirect: bool = False,
    discarded: AbstractSet[str] = frozenset(),
) -> dict[int, int]:
    inside = [state for state in states if state.status not in (OUTSIDE, ELSEWHERE)]
    links = store.links_of([state.id for state in inside])
    distances = {state.key: state.depth if _is_refused_start(state) else 0 for state in inside if state.key in starts}
    changed = True
    while changed:
        changed = False
        for state in inside:
            if state.key not in distances or not _leads_on(state):
                continue
            is_redirect = state.state is State.REDIRECTED or (
                may_redirect
                and state.state in (State.FAILED, State.PENDING)
                and (
                    state.checksum is None
                    or state.held in _OF_A_REDIRECT
                    or _is_doubted_redirect(state)
                    or state.url in discarded
                )
            )
            reach = distances[state.key] + (not is_redirect)
            for key in links.get(state.id, ()):
                if reach < distances.get(key, reach + 1):
                    distances[key] = reach
                    changed = True
    return distances


def _is_named_sitemap(state: UrlState) -> bool:
    """Return whether a URL was inserted as a sitemap that a robots.txt names: it counts as a start URL.

    One that only an index file named, or that another has moved to, may be an orphan.
    """
    return path_of(state.url).startswith("/sitemap-") and not (state.depth or state.depth_from) and state.orphaned is None


def _is_refused_start(state: UrlState) -> bool:
    """Return whether a start URL is one that the rules refuse: it is not entered, and keeps the depth that it had."""
    return state.held is Held.RULES


def _is_doubted_redirect(state: UrlState) -> bool:
    """Return whether a page keeps its document though it redirects: the target of a redirect has the same link depth (spec 9), and is a link of it."""
    status = state.status or 0
    return state.state is State.FAILED and (300 <= status < 400 or status == _LOOP)


def _leads_on(state: UrlState) -> bool:
    return state.state not in (State.GONE, State.EXCLUDED) or state.status in LINKS_ONLY
