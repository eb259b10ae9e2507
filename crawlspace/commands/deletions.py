"""`scrapy deletions`: list held deletions, and approve or discard them."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence

from crawlspace.admin.site_report import SiteReport
from crawlspace.clock import SystemClock, iso, local_time
from crawlspace.errors import UsageError
from crawlspace.model import Held, UrlState
from crawlspace.runtime.components.command import CollectionCommand, exactly_one, hanging, print_json, url_changes
from crawlspace.runtime.session.held_deletions import HeldSelection, decide, held_deletions, held_urls
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
        parser.add_argument("--host", metavar="HOST", help="only those of this host, on all its ports")
        parser.add_argument("--json", action="store_true", help="print one object a line for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if opts.approve and opts.discard:
            raise UsageError("give --approve or --discard, not both")
        paths = self.paths(exactly_one(args, example="scrapy deletions demo"))
        selection = HeldSelection(None if opts.reason is None else Held[opts.reason.upper()], opts.host)
        if opts.approve or opts.discard:
            _decide(paths, selection, approve=opts.approve, as_json=opts.json)
        else:
            _list(paths, selection, as_json=opts.json)
        return 0


def _list(paths: CollectionPaths, selection: HeldSelection, *, as_json: bool) -> None:
    found: Counter[Held] = Counter()
    if not as_json and sys.stdout.isatty():
        print(f"{'REASON':<6} {'STATUS':>6}  {'LAST FETCH':<16}  URL")
    with paths.store.reading() as opened:
        if opened is not None:
            held = held_deletions(paths, opened.store)
            for site in held.sites_of(selection):
                found[Held.HOST] += site.documents
                print(json.dumps(_site_json(site)) if as_json else _site_text(site))
            for state in held_urls(opened.store, held, selection):
                if state.held is not None:
                    found[state.held] += 1
                    print(_json(state, state.held) if as_json else _text(state, state.held))
    if as_json:
        return
    sys.stdout.flush()
    if not found:
        print(f"no deletion of {paths.name} is held{selection}", file=sys.stderr)
        return
    print(f"\n{counted(found.total(), 'deletion is', 'deletions are')} held:", file=sys.stderr)
    for reason, count in sorted(found.items()):
        print(hanging(f"  {reason.label:<6}{count:>10,}  ", reason.sentence), file=sys.stderr)


def _decide(paths: CollectionPaths, selection: HeldSelection, *, approve: bool, as_json: bool) -> None:
    done = decide(paths, selection, approve=approve, clock=SystemClock(), changes_of=url_changes)
    if as_json:
        print_json({"approved" if approve else "discarded": done.changed, "fetched_now": done.fetched_now})
    else:
        print(
            f"{counted(done.changed, 'deletion is', 'deletions are')} {'approved' if approve else 'discarded: the documents stay in the index'}"
        )
    for note in done.notes:
        print(note, file=sys.stderr)


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
