"""What the owner of each site may want to correct, as a letter in Markdown, from what is stored: nothing is requested.

Broken links on its pages; pages that are closed to the crawler although others link to them; pages that nothing leads to; slow pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from statistics import median

from crawlspace.admin.links import referrers
from crawlspace.admin.report import status_sentence
from crawlspace.clock import local_time
from crawlspace.model import State, UrlState
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.duplicates import host_of
from crawlspace.state.fetch_history import fetches
from crawlspace.state.store import Store
from crawlspace.status import Status
from crawlspace.text import MESSAGE, counted, printable

SHOWN = 50
"""Entries of each list in a letter."""
SLOW_S = 2.0
"""Half of the last fetches of a slow page took longer."""
_LEAST_FETCHES = 3
_MOST_BROKEN = 20_000
"""Broken and closed URLs whose pages are looked for, each kind: one pass over all links."""
_MOST_PAGES = 100
"""Pages that are named for one of them."""
_CLOSED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, Status.LOGGED_OUT, Status.ROBOTS_FORBIDDEN, Status.NOINDEX})
_AT_ONCE = 500


@dataclass(slots=True)
class Letter:
    """What was found for one host. Each list has the first entries; the numbers count all."""

    host: str
    documents: int = 0
    broken: list[tuple[str, str, int]] = field(default_factory=list)
    """A page, the URL that it links to, and its status."""
    closed: list[tuple[int, str, int]] = field(default_factory=list)
    """The number of pages that link to a URL, the URL, and its status."""
    orphans: list[str] = field(default_factory=list)
    slow: list[tuple[float, str]] = field(default_factory=list)
    """Seconds, and the URL."""
    numbers: Counter[str] = field(default_factory=Counter)

    @property
    def has_findings(self) -> bool:
        return self.numbers.total() > 0

    def as_json(self) -> dict[str, object]:
        return {
            "host": self.host,
            "documents": self.documents,
            "broken": [{"page": page, "url": url, "status": status} for page, url, status in self.broken],
            "closed": [{"url": url, "status": status, "pages": pages} for pages, url, status in self.closed],
            "orphans": self.orphans,
            "slow": [{"url": url, "seconds": seconds} for seconds, url in self.slow],
            "numbers": {name: self.numbers[name] for name in ("broken", "closed", "orphans", "slow")},
        }


def site_letters(store: Store, space: CrawlSpace, *, host: str | None = None) -> list[Letter]:
    """Return the letters of all hosts, or of one, by host: those with documents or findings."""
    found: dict[str, Letter] = {}

    def letter_of(site: str) -> Letter:
        name = host_of(site)
        return found.setdefault(name, Letter(name))

    broken: dict[int, tuple[str, int]] = {}
    closed: dict[int, tuple[str, str, int]] = {}
    for state in store.urls():
        if _is_broken(state) and len(broken) < _MOST_BROKEN:
            broken[state.key] = (_shown(state), state.status or 0)
        elif _is_closed(state, space) and len(closed) < _MOST_BROKEN and host in (None, host_of(state.site)):
            closed[state.key] = (state.site, _shown(state), state.status or 0)
        if host in (None, host_of(state.site)):
            _add_page(letter_of(state.site), state)
    leading = referrers({*broken, *closed}, store, most=_MOST_PAGES)
    for key, (site, url, status) in closed.items():
        if (pages := leading.get(key)) is not None:
            letter = letter_of(site)
            letter.numbers["closed"] += 1
            letter.closed.append((pages.total, url, status))
    pages_of = _pages({id for key in broken if key in leading for id in leading[key].ids}, store)
    for key, (url, status) in broken.items():
        for id in leading[key].ids if key in leading else ():
            page = pages_of.get(id)
            if page is not None and host in (None, host_of(page.site)):
                letter = letter_of(page.site)
                letter.numbers["broken"] += 1
                if len(letter.broken) < SHOWN:
                    letter.broken.append((_shown(page), url, status))
    for letter in found.values():
        letter.closed = sorted(letter.closed, key=lambda one: (-one[0], one[1]))[:SHOWN]
        letter.slow = sorted(letter.slow, reverse=True)[:SHOWN]
    return sorted((one for one in found.values() if one.documents or one.has_findings), key=lambda one: one.host)


def markdown_of(letter: Letter, *, collection: str, now: float) -> str:
    """Return a letter as Markdown."""
    return "\n".join(_lines(letter, collection, now)) + "\n"


def _lines(letter: Letter, collection: str, now: float) -> Iterator[str]:
    yield f"# {letter.host}"
    yield ""
    yield (
        f"What the crawler of the collection {collection} has found on this site by {local_time(now)}."
        f" The index has {counted(letter.documents, 'document')} of it."
    )
    if not letter.has_findings:
        yield from ("", "Nothing was found that should be corrected.")
    lists = {
        "broken": [f"<{page}> links to <{url}>: {_meaning(status)}" for page, url, status in letter.broken],
        "closed": [
            f"<{url}>: {_meaning(status)}; {counted(pages, 'page links', 'pages link')} to it"
            for pages, url, status in letter.closed
        ],
        "orphans": [f"<{url}>" for url in letter.orphans],
        "slow": [f"<{url}>: {seconds:,.1f} s" for seconds, url in letter.slow],
    }
    for name, (title, meaning) in _SECTIONS.items():
        if total := letter.numbers[name]:
            yield from ("", f"## {title} ({total:,})", "", meaning, "")
            yield from (f"- {entry}" for entry in lists[name])
            if total > len(lists[name]):
                yield f"- and {total - len(lists[name]):,} more"


_HOW_TO_OPEN = "If that is not meant, correct robots.txt, the robots directives of the page, or who may read it."
_SECTIONS: Mapping[str, tuple[str, str]] = {
    "broken": ("Broken links", "Pages of this site that link to what is not there, on this site or another one."),
    "closed": ("Closed to the crawler", f"Other pages link to these, and the crawler may not read or index them. {_HOW_TO_OPEN}"),
    "orphans": (
        "Pages that nothing leads to",
        "They can be found by searching, and not by following links. Link to them, or take them down.",
    ),
    "slow": ("Slow pages", f"Half of the last fetches of these took longer than {SLOW_S:g} s."),
}


def _meaning(status: int) -> str:
    return f"{status}, {status_sentence(status)}"


def _is_broken(state: UrlState) -> bool:
    is_error = state.state in (State.GONE, State.FAILED) and state.status is not None
    return is_error and state.status not in _CLOSED


def _is_closed(state: UrlState, space: CrawlSpace) -> bool:
    """Return whether the site keeps a URL from the crawler; a page that a rule of the collection does not index is not closed by its site."""
    if state.status not in _CLOSED or state.state is State.PENDING:
        return False
    return state.status != Status.NOINDEX or space.decide(state.url)[1].index


def _add_page(letter: Letter, state: UrlState) -> None:
    letter.documents += state.indexed
    if state.orphaned is not None:
        letter.numbers["orphans"] += 1
        if len(letter.orphans) < SHOWN:
            letter.orphans.append(_shown(state))
    times = [one.took_s for one in fetches(state) if one.took_s is not None]
    if state.state is State.DONE and len(times) >= _LEAST_FETCHES and (usual := median(times)) > SLOW_S:
        letter.numbers["slow"] += 1
        letter.slow.append((usual, _shown(state)))
        if len(letter.slow) > 2 * SHOWN:
            letter.slow = sorted(letter.slow, reverse=True)[:SHOWN]


def _pages(ids: set[int], store: Store) -> dict[int, UrlState]:
    wanted = sorted(ids)
    return {
        state.id: state
        for start in range(0, len(wanted), _AT_ONCE)
        for state in store.get_by_ids(wanted[start : start + _AT_ONCE])
    }


def _shown(state: UrlState) -> str:
    """Return a URL as it may stand between `<` and `>` in Markdown."""
    return printable(state.url, most=MESSAGE).replace("<", "%3C").replace(">", "%3E").replace(" ", "%20")
