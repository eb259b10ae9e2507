"""`scrapy deletions`: list held deletions, and approve or discard them."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence

from crawlspace.admin.site_report import SiteReport, held_by_reason, held_sites
from crawlspace.admin.url_changes import NotChanged
from crawlspace.clock import SystemClock, iso, local_time
from crawlspace.errors import UsageError
from crawlspace.model import Held, UrlState
from crawlspace.runtime.components.command import CollectionCommand, exactly_one, hanging, print_json, url_changes
from crawlspace.runtime.session.paths import CollectionPaths
from crawlspace.text import counted

_REASONS = "; ".join(f"{reason.label}: {reason.sentence}" for reason in Held)


class Command(CollectionCommand):
    usage = "[options] <collection>"
    summary = "List, approve or discard held deletions"
    explanation = (
        f"List the documents that stay in the index although they should be deleted, with the reason why the deletion is held ({_REASONS}). "
        "--approve deletes them, --discard keeps them until their pages are fetched again. What the rules exclude is held again by the next start, "
        "also when it was discarded, unless the rules are corrected. Works while the collection is crawled. "
        "Exit status: 0 listed, also when nothing is held, or done; 1 there was nothing to approve or discard, or the store or index has a fault; "
        "2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--approve", action="store_true", help="delete the documents")
        parser.add_argument("--discard", action="store_true", help="drop the deletions")
        parser.add_argument(
            "--reason",
            choices=[reason.label for reason in Held],
            metavar="REASON",
            help="only those with this reason: host, many or rules",
        )
        parser.add_argument("--json", action="store_true", help="print one object a line for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if opts.approve and opts.discard:
            raise UsageError("give --approve or --discard, not both")
        paths = self.paths(exactly_one(args, example="scrapy deletions demo"))
        reason = None if opts.reason is None else Held[opts.reason.upper()]
        if opts.approve or opts.discard:
            return _decide(paths, reason, approve=opts.approve, as_json=opts.json)
        _list(paths, reason, as_json=opts.json)
        return 0


def _list(paths: CollectionPaths, reason: Held | None, *, as_json: bool) -> None:
    found: Counter[Held] = Counter()
    if not as_json and sys.stdout.isatty():
        print(f"{'REASON':<6} {'STATUS':>6}  {'LAST FETCH':<16}  URL")
    with paths.store.reading() as opened:
        whole = {} if opened is None else held_sites(paths.unreachable(opened.store))
        for site in whole.values() if reason in (None, Held.HOST) else ():
            found[Held.HOST] += site.documents
            print(json.dumps(_site_json(site)) if as_json else _site_text(site))
        for state in opened.store.urls(held=True) if opened is not None else ():
            if state.held is not None and reason in (None, state.held) and state.site not in whole:
                found[state.held] += 1
                print(_json(state, state.held) if as_json else _text(state, state.held))
    if as_json:
        return
    sys.stdout.flush()
    if not found:
        print(_nothing(paths, reason), file=sys.stderr)
        return
    print(f"\n{counted(found.total(), 'deletion is', 'deletions are')} held:", file=sys.stderr)
    for held, count in sorted(found.items()):
        print(hanging(f"  {held.label:<6}{count:>10,}  ", held.sentence), file=sys.stderr)


def _decide(paths: CollectionPaths, reason: Held | None, *, approve: bool, as_json: bool) -> int:
    with paths.store.changing() as opened:
        sites = [] if opened is None else paths.unreachable(opened.store)
        found = Counter[Held]() if opened is None else held_by_reason(opened.store, sites)
        if opened is None or not (found if reason is None else found.get(reason)):
            print(_nothing(paths, reason), file=sys.stderr)
            return 1
        changes = url_changes(opened)
        made = changes.approve(reason) if approve else changes.discard(reason)
        for site in held_sites(sites) if reason in (None, Held.HOST) else ():
            made.add(changes.approve_site(site) if approve else changes.discard_site(site))
        if as_json:
            print_json({"approved" if approve else "discarded": made.changed, "fetched_now": made.left[NotChanged.FETCHED_NOW]})
        else:
            print(
                f"{counted(made.changed, 'deletion is', 'deletions are')} {'approved' if approve else 'discarded: the documents stay in the index'}"
            )
        for note in made.of_the_rest():
            print(note, file=sys.stderr)
        if not approve and any(one in found and reason in (None, one) for one in (Held.RULES, Held.FOLDED)):
            print(
                f"what the rules exclude is held again by the next start, unless the rules are corrected: scrapy plan {paths.name} shows it",
                file=sys.stderr,
            )
        if approve:
            message = opened.deliver(paths.sinks, SystemClock())
            if message:
                print(message, file=sys.stderr)
    return 0


def _nothing(paths: CollectionPaths, reason: Held | None) -> str:
    return f"no deletion of {paths.name} is held" + ("" if reason is None else f" for the reason {reason.label}")


def _site_text(site: SiteReport) -> str:
    many = counted(site.documents, "document")
    return f"{Held.HOST.label:<6} {site.row.status:>6}  {site.since:<16}  {site.row.site}: no answer since then, {many}"


def _site_json(site: SiteReport) -> dict[str, object]:
    return {"url": None, "reason": Held.HOST.label, **{key: value for key, value in site.as_json().items() if key != "held"}}


def _text(state: UrlState, held: Held) -> str:
    fetched = "never" if state.fetched_at is None else local_time(state.fetched_at)
    return f"{held.label:<6} {state.status or '-':>6}  {fetched:<16}  {state.url}"


def _json(state: UrlState, held: Held) -> str:
    fetched = None if state.fetched_at is None else iso(state.fetched_at)
    return json.dumps({"url": state.url, "reason": held.label, "status": state.status, "last_fetch": fetched}, ensure_ascii=False)
