"""The held deletions of a collection: by reason and host, with samples, and the decision about them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from crawlspace.console.routes import Asked, Done, Routes, View, action, page
from crawlspace.console.templates import link, path_part
from crawlspace.errors import UsageError
from crawlspace.model import Held, UrlState
from crawlspace.runtime.session.held_deletions import HeldDeletions, HeldSelection, decide, first_held, held_deletions
from crawlspace.text import counted

_URLS = 100
"""URLs on a page."""
_HOSTS = 100
_NONE = HeldDeletions({}, {})


class _HostRow(NamedTuple):
    """A host with its number of held deletions by reason."""

    host: str
    numbers: Mapping[Held, int]
    total: int


def show(asked: Asked) -> View:
    """Show the held deletions: numbers, and the URLs of those that are chosen."""
    paths = asked.console.paths(asked.name)
    chosen = _selection(asked.query)
    after, number = asked.number("after", default=0, high=2**62), asked.page_number()
    found, urls, has_more = _NONE, list[UrlState](), False
    with paths.store.reading() as opened:
        if opened is not None:
            found = held_deletions(paths, opened.store)
            urls, has_more = first_held(opened.store, found, chosen, after=after, most=_URLS)
    hosts = _by_host(found, asked.query.get("find", "").strip().lower())
    sort = asked.query.get("sort", "-total")
    hosts.sort(key=lambda row: row.host if sort.endswith("host") else (row.total, row.host), reverse=sort.startswith("-"))
    first = (number - 1) * _HOSTS
    return View(
        "deletions.html",
        {
            "was_crawled": opened is not None,
            "total": found.total(HeldSelection()),
            "reasons": [(reason, count) for reason in Held if (count := found.total(HeldSelection(reason)))],
            "hosts": list(islice(hosts, first, first + _HOSTS)),
            "number": number,
            "has_more_hosts": len(hosts) > first + _HOSTS,
            "chosen": chosen,
            "chosen_total": found.total(chosen),
            "sites": found.sites_of(chosen) if not after else [],
            "urls": urls,
            "after": after,
            "has_more": has_more,
        },
    )


def _by_host(found: HeldDeletions, part: str) -> list[_HostRow]:
    hosts: dict[str, dict[Held, int]] = {}
    for (reason, host), number in found.numbers.items():
        if part in host.lower():
            hosts.setdefault(host, {})[reason] = number
    return [_HostRow(host, numbers, sum(numbers.values())) for host, numbers in hosts.items()]


def _selection(given: Mapping[str, str]) -> HeldSelection:
    """Return the reason and host that are chosen. Raises UsageError."""
    label = given.get("reason", "")
    reason = next((one for one in Held if one.label == label), None)
    if label and reason is None:
        raise UsageError(f"a deletion is held for one of: {', '.join(one.label for one in Held)}")
    return HeldSelection(reason, given.get("host") or None)


def approve(asked: Asked) -> Done:
    """Delete the documents."""
    return _decide(asked, approved=True)


def discard(asked: Asked) -> Done:
    """Keep the documents."""
    return _decide(asked, approved=False)


def _decide(asked: Asked, *, approved: bool) -> Done:
    number = asked.form.get("number", "")
    if not (number.isascii() and number.isdigit() and len(number) < 20):
        raise UsageError("the number of the deletions is missing: load the page again")
    done = decide(
        asked.console.paths(asked.name),
        _selection(asked.form),
        approve=approved,
        clock=asked.console.clock,
        changes_of=asked.changes,
        most=int(number),
    )
    what = "approved" if approved else "discarded: the documents stay in the index"
    sentences = [f"{counted(done.changed, 'deletion is', 'deletions are')} {what}", *done.notes]
    return Done(
        ". ".join(sentence[:1].upper() + sentence[1:] for sentence in sentences) + ".",
        link(f"/c/{path_part(asked.name)}/deletions"),
        {"changed": done.changed},
    )


ROUTES: Routes = (
    page("/c/{name}/deletions", show),
    action("/c/{name}/deletions/approve", approve),
    action("/c/{name}/deletions/discard", discard),
)
