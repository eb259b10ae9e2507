"""The held deletions of a collection, and the decision about them, for `scrapy deletions`, the console and its JSON interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from crawlspace.admin.site_report import SiteReport, held_by_host, held_sites
from crawlspace.admin.url_changes import NotChanged, UrlChanges
from crawlspace.clock import Clock
from crawlspace.errors import UsageError
from crawlspace.model import Held, UrlState
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore
from crawlspace.state.duplicates import host_of
from crawlspace.state.store import Store
from crawlspace.text import quoted


@dataclass(frozen=True, slots=True)
class HeldSelection:
    """Held deletions with one reason, of one host (without port), or both; all of them without either."""

    reason: Held | None = None
    host: str | None = None

    def has(self, reason: Held, host: str) -> bool:
        return self.reason in (None, reason) and self.host in (None, host)

    def __str__(self) -> str:
        said = "" if self.reason is None else f" for the reason {self.reason.label}"
        return said + ("" if self.host is None else f" on {quoted(self.host)}")


@dataclass(frozen=True, slots=True)
class HeldDeletions:
    """The numbers of documents in the index whose deletion is held."""

    numbers: Mapping[tuple[Held, str], int]
    """By reason and host."""
    sites: Mapping[str, SiteReport]
    """Sites that cannot be reached, by name: all their documents are held, and counted for Held.HOST alone."""

    def total(self, selection: HeldSelection) -> int:
        return sum(number for (reason, host), number in self.numbers.items() if selection.has(reason, host))

    def sites_of(self, selection: HeldSelection) -> list[SiteReport]:
        return [one for name, one in self.sites.items() if selection.has(Held.HOST, host_of(name))]


def held_deletions(paths: CollectionPaths, store: Store) -> HeldDeletions:
    """Return how many deletions are held. Takes time by these alone. Raises StoreError and SettingError."""
    sites = paths.unreachable(store)
    return HeldDeletions(held_by_host(store, sites), held_sites(sites))


def held_urls(store: Store, found: HeldDeletions, selection: HeldSelection, *, after: int = 0) -> Iterator[UrlState]:
    """Yield the URLs with a held deletion, in order of discovery, but for those of sites that are held as a whole."""
    states = store.urls(held=True, reason=selection.reason, host=selection.host, after=after)
    return (state for state in states if state.site not in found.sites)


def first_held(
    store: Store, found: HeldDeletions, selection: HeldSelection, *, after: int, most: int
) -> tuple[list[UrlState], bool]:
    """Return the next URLs with a held deletion, and whether there are more."""
    states = list(islice(held_urls(store, found, selection, after=after), most + 1))
    return states[:most], len(states) > most


@dataclass(frozen=True, slots=True)
class DecidedDeletions:
    """What was done about held deletions. `notes` are sentences for a person."""

    changed: int
    fetched_now: int
    """Those of URLs that were being fetched, and are still held."""
    notes: list[str]


class NothingHeld(UsageError):
    """There is no such deletion."""

    exit_status = 1


class MoreHeld(UsageError):
    """There are more of them than were agreed to; nothing has been changed."""


def decide(
    paths: CollectionPaths,
    selection: HeldSelection,
    *,
    approve: bool,
    clock: Clock,
    changes_of: Callable[[OpenStore], UrlChanges],
    most: int | None = None,
) -> DecidedDeletions:
    """Approve held deletions, and send what that orders to the sinks; or discard them. Works during a crawl.

    `most` is the number that was agreed to. Raises NothingHeld, MoreHeld, and StoreError.
    """
    with paths.store.changing() as opened:
        found = None if opened is None else held_deletions(paths, opened.store)
        number = 0 if found is None else found.total(selection)
        if opened is None or found is None or not number:
            raise NothingHeld(f"no deletion of {paths.name} is held{selection}")
        if most is not None and number > most:
            raise MoreHeld(
                f"{number:,} deletions of {paths.name} are held{selection} now, and not {most:,} as when the page was made: nothing was done;"
                " look again"
            )
        changes = changes_of(opened)
        decided = changes.approve if approve else changes.discard
        made = decided(selection.reason, host=selection.host)
        for site in found.sites_of(selection):
            made.add(changes.approve_site(site.row.site) if approve else changes.discard_site(site.row.site))
        notes = list(made.of_the_rest())
        if not approve and any(
            found.total(HeldSelection(one, selection.host)) for one in _OF_RULES if selection.reason in (None, one)
        ):
            notes.append(
                f"what the rules exclude is held again by the next start, unless the rules are corrected: scrapy plan {paths.name} shows it"
            )
        if approve and (message := opened.deliver(paths.sinks, clock)):
            notes.append(message)
        return DecidedDeletions(made.changed, made.left[NotChanged.FETCHED_NOW], notes)


_OF_RULES = (Held.RULES, Held.FOLDED)
