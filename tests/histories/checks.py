"""Checks after each crawl of a random history, and after each that finished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from crawlspace.model import Held, State, UrlState
from tests.histories.archive import is_shown_no_more
from tests.histories.collection import NO_DOCUMENT, Collection, row_of
from tests.histories.configuration import DAY, HOUR, OUTSIDE
from tests.histories.documents import Indexed, has_earlier_version
from tests.histories.fate import Run
from tests.histories.oracle import WALLED, Oracle
from tests.histories.sites import is_walled
from tests.histories.web import REDIRECTS, fails, host_of, name_of

_LONGEST_CRAWL_S = HOUR / 2
"""Of a small web, where no site asks for a rest; less than the clock is set back by."""
_MISSING = ("404", "410")
_LARGE_SITE = 20
"""Pages; a smaller site may lose all at once."""


class CheckedCollection(Collection):
    def _at_rest(self, states: Mapping[str, UrlState], index: Mapping[str, Indexed]) -> Iterator[str]:
        """Yield differences between index and store, and within the store, after a crawl that finished."""
        self._not_rebuilt &= {url for url, state in states.items() if state.held is Held.RULES or is_shown_no_more(state)}
        rows = {url for url, state in states.items() if state.indexed}
        left = self._crawler.left_to_others(states.values())
        self._not_compared &= rows ^ index.keys()
        for url in sorted(rows - index.keys() - self._not_rebuilt - self._not_compared):
            yield f"MISSING {url}: indexed by the store, not in the index"
        for url in sorted(index.keys() - rows):
            if url not in left and url not in self._not_compared:
                yield f"EXTRA   {url}: in the index, not indexed by the store ({row_of(states.get(url))})"
        counts = self._counts
        held = sum(1 for url, one in states.items() if one.held is not None and (one.indexed or url in left))
        found = {
            "by state": dict(Counter("leased" if one.lease_until is not None else one.state.label for one in states.values())),
            "by status": dict(Counter(one.status for one in states.values() if one.status is not None)),
            "indexed": len(rows),
            "held": held,
            "left to others": len(left),
            "retrying": sum(1 for one in states.values() if one.retries),
            "outbox": 0,
            "parked": 0,
        }
        counted = {
            "by state": dict(counts.by_state),
            "by status": dict(counts.by_status),
            "indexed": counts.indexed,
            "held": self._held,
            "left to others": counts.left_to_others,
            "retrying": counts.retrying,
            "outbox": counts.outbox,
            "parked": counts.parked,
        }
        for name, number in found.items():
            if counted[name] != number:
                yield f"COUNTS  {name}: {counted[name]}, must be {number}"
        for url, state in states.items():
            if state.lease_until is not None:
                yield f"LEASED  {url} after the end of the crawl"

    def _unplanned(self, before: Mapping[str, Indexed], index: Mapping[str, Indexed], run: Run) -> Iterator[str]:
        """Yield the documents that a change of the rules deleted without a plan, or beyond the deletion limit."""
        oracle = self._oracle()
        gone = sorted(
            url for url in before.keys() - index.keys() if oracle.verdicts(url) == {OUTSIDE} and not self._is_folded(url)
        )
        if len(gone) > run.deletions:
            yield f"PLAN    {len(gone)} documents left the index by a change of the rules, {run.deletions} were planned: {gone}"
        if len(gone) > run.deletion_limit_by_rules:
            yield f"LIMIT   {len(gone)} deletions by a change of the rules, {run.deletion_limit_by_rules} may be made: {gone}"

    def _touched(
        self,
        had: Mapping[str, Indexed],
        has: Mapping[str, Indexed],
        before: Mapping[str, UrlState],
        after: Mapping[str, UrlState],
    ) -> Iterator[str]:
        """Yield documents that are held for the rules and were changed in the index, or the duplicates noted on them."""
        held = [url for url, was in before.items() if was.held is Held.RULES and url in after and after[url].held is Held.RULES]
        others = self._other._has_had if self._other is not None else ()
        for url in held:
            if url in had and url not in others and had[url] != has.get(url):
                yield f"TOUCHED {url}, held for the rules: {has.get(url)}, was {had[url]}"

    def _not_sent_again(self, lost: AbstractSet[str], states: Mapping[str, UrlState]) -> Iterator[str]:
        """Yield documents that were lost before a crawl and not sent again by it, though that was possible."""
        for url in sorted(self._lost.keys() & lost):
            if has_earlier_version(states[url]):
                continue  # its file cannot be read any more
            page = self._web.page(url)
            is_page = page is not None and page.status == 200 and not page.failure and not self._is_forbidden(url)
            if states[url].held is None and is_page and self._is_well(url) and not self._configuration.bars(url, self._web):
                yield f"MISSING {url}: lost before this crawl, and not sent again ({row_of(states[url])})"

    def _always(
        self, before: Mapping[str, UrlState], after: Mapping[str, UrlState], run: Run, down: Mapping[str, str]
    ) -> Iterator[str]:
        """Yield documents that were deleted because their site is down, and deletions beyond the limit, after any crawl."""
        oracle = self._oracle()
        lost: list[str] = []
        failing: Counter[str] = Counter()
        missing: Counter[str] = Counter()
        there = {state.checksum for state in after.values() if state.indexed}
        keys = {state.key for state in after.values() if state.indexed}
        # what becomes of a document whose address was folded is said by the other address
        stayed = {url: was for url, was in before.items() if url in after or not self._is_folded(url)}
        for url, was in stayed.items():
            now = after.get(url)
            if was.checksum is None or (now is not None and now.checksum is not None) or not self._is_inside(oracle, url):
                continue
            host = self._web.site_of(url).host
            excused = was.held is not None or url in run.orphans or url in run.too_far or self._configuration.bars(url, self._web)
            if host in down and not excused:
                failing[host] += 1
                if down[host] in _MISSING:
                    missing[host] += 1
                elif down[host] != "mostly" and not self._may_have_moved_away(was, down[host], before, there, oracle):
                    yield f"LOST    {url}, though its site was down ({down[host]}): {row_of(was)}, now {row_of(now)}"
            # a better address took its place before its own deletion could be held: that is no deletion
            has_nothing = now is None or now.state in NO_DOCUMENT
            is_displaced = was.checksum in there or (was.canonical in keys and (now is not None or url in run.orphans))
            # nor is it one where it has moved to a page that left the index for the one that it names as canonical
            targets = [after[to] for to in self._leads_to(url, down) if to in after]
            is_displaced = is_displaced or any(to.state is State.DONE and to.canonical in keys for to in targets)
            if was.indexed and not (has_nothing and is_displaced):
                lost.append(url)
        for host, number in missing.items():
            documents = sum(1 for url, was in before.items() if host_of(url) == host and was.checksum is not None)
            if documents > _LARGE_SITE and number > self._configuration.host_fetches // 2:
                yield f"LOST    {number} documents of {host}, which has none of its {documents} pages any more"
        for host, number in failing.items():
            if down[host] in _MISSING or down[host] == WALLED or (down[host] in REDIRECTS and self._is_small(host, before)):
                continue
            if number > self._configuration.host_fetches // 2 + 1:
                yield f"LOST    {number} documents of {host}, which mostly fails"
        if run.ended == "finished" and not self._configuration.continuous:
            yield from self._left_behind(after, run, oracle)
        # at its new address, at that of an equal page, or displaced there by the page that it names as canonical
        moved_away = sum(
            any(
                state.indexed or state.checksum in {before[url].checksum, *there} - {None}
                for to in self._leads_to(url, down)
                for states in (before, after)
                if (state := states.get(to)) is not None
            )
            for url in lost
        )
        if run.lasted < DAY and run.ended != "killed" and len(lost) - min(run.moved_away, moved_away) > run.deletion_limit:
            yield f"LIMIT   {len(lost)} deletions, {run.deletion_limit} may be made: {lost}"

    def _leads_to(self, url: str, down: Mapping[str, str]) -> list[str]:
        """Return where the redirects of an address lead, one after the other: the first targets may be held in the index meanwhile."""
        targets = list[str]()
        for _ in range(10):
            site, page = self._web.site_of(url), self._web.page(url)
            outage = down.get(site.host, "")
            that = f"{site.home}closed" if outage == "to one" else site.home
            if outage in REDIRECTS and url != that:
                targets.append(that)
            elif page is not None and page.location and host_of(page.location) in self._web.sites:
                targets.append(page.location)
            else:
                break
            url = targets[-1]
        return targets

    def _may_have_moved_away(
        self, was: UrlState, outage: str, before: Mapping[str, UrlState], there: AbstractSet[bytes | None], oracle: Oracle
    ) -> bool:
        """Whether documents may have left because their site redirects: a small site may redirect elsewhere, and an equal page is no loss."""
        if outage not in REDIRECTS and not (outage == WALLED and oracle.leads_outside(was.url)):
            return False
        site = self._web.site_of(was.url)
        if site.moved and was.url == site.home:
            return True  # a move, to the same path of another host (spec 10), whatever else of the site fails
        return self._is_small(host_of(was.url), before) or was.checksum in there

    def _is_small(self, host: str, before: Mapping[str, UrlState]) -> bool:
        """Whether so few URLs of a host are known that its redirects are believed at once."""
        name = host.partition(":")[0]
        return sum(name_of(url) == name for url in before) <= self._configuration.host_fetches

    def _is_inside(self, oracle: Oracle, url: str) -> bool:
        """Whether the rules admit an address, and what it is folded into."""
        return {*oracle.verdicts(url), *oracle.verdicts(self._configuration.folded(url))} == {None}

    def _left_behind(self, after: Mapping[str, UrlState], run: Run, oracle: Oracle) -> Iterator[str]:
        """Yield what a crawl that finished left though it could be fetched, and what it waited for though that could not come."""
        if self._drawn.starts:
            for url, state in after.items():
                if state.state is State.PENDING and oracle.verdicts(url) == {None} and self._is_well(url):
                    yield f"LEFT    {url}: pending after the end of the crawl"
        longest_s = _LONGEST_CRAWL_S + (2 * HOUR if self._asked_to_wait or (self._has_waited and self._set_back) else 0)
        self._has_waited, self._set_back = self._has_waited or self._asked_to_wait, False
        self._asked_to_wait = any(site.outage == "busy" for site in self._web.sites.values())
        if self._drawn.clock and run.lasted - run.stalled > longest_s:
            yield f"WAITED  {run.lasted} s, though there was nothing to wait for so long"

    def _is_folded(self, url: str) -> bool:
        return self._configuration.folded(url) != url

    def _is_well(self, url: str) -> bool:
        site = self._web.sites.get(host_of(url))
        is_open = site is not None and not site.outage and not is_walled(site, self._configuration)
        return is_open and site is not None and not any(map(fails, self._web.pages_of(site)))
