"""`scrapy links`: list the links of a page, and the pages that link to a URL."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from crawlspace.admin.links import LinkAnswer, LinkedUrl, LinksOut, cell_of, described, linked_url, links_of
from crawlspace.admin.report import label_of, status_sentence
from crawlspace.config.collection import load_collection
from crawlspace.crawl.startup import build_space
from crawlspace.decision import Reason
from crawlspace.errors import UsageError
from crawlspace.rules.space import CrawlSpace
from crawlspace.runtime.components.command import CollectionCommand, hanging, print_json
from crawlspace.state.store import Store
from crawlspace.text import counted, printable

SHOWN = 100
_DECISION = 32
"""Width of the column for a decision."""


class Command(CollectionCommand):
    usage = "[options] <collection> <url>"
    summary = "List the links of a page, and the pages that link to it"
    explanation = (
        "List the URLs that a page links to or redirects to, and the pages that link or redirect to it, as last fetched: for each its state, status "
        "code, links from a start URL, the decision by the rules on disk with the deciding line, and the URL. Makes no network requests. Pages that "
        f"link to a URL are searched among the links of all pages; it need not be known itself. Of each list the first {SHOWN} are printed. "
        "Exit status: 0 listed, whatever was found; 1 the collection or its store has a fault; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--out", action="store_true", help="only the links of the page")
        parser.add_argument("--in", dest="incoming", action="store_true", help="only the pages that link to it")
        parser.add_argument("--all", action="store_true", help=f"print all, and not the first {SHOWN} of each list")
        parser.add_argument("--json", action="store_true", help="print the answer for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if len(args) != 2:
            raise UsageError("name a collection and a URL, as in: scrapy links demo http://www.example.com/page.html")
        name, text = args
        paths = self.paths(name)
        space = build_space(load_collection(name, paths.settings))
        both = opts.out == opts.incoming
        with paths.store.reading() as opened:
            if opened is None:
                answer = LinkAnswer(linked_url(text, space=space, store=None), [], LinksOut(()))
            else:
                answer = links_of(text, space=space, store=opened.store, out=both or opts.out, incoming=both or opts.incoming)
            lists = _Lists(space, None if opened is None else opened.store, most=None if opts.all else SHOWN)
            if opts.json:
                print_json(_as_json(answer, lists))
                return 0
            print("\n".join(_head(answer)))
            if opened is None:
                print(f"\n{name} has never been crawled: `scrapy crawl {name}` does")
                return 0
            if both or opts.out:
                print(f"\nlinks out    {_links_out(answer)}")
                lists.write(answer.out.ids)
                lists.write_refused(answer)
            if both or opts.incoming:
                print(f"\nlinks in     {counted(len(answer.incoming), 'page')}")
                lists.write(answer.incoming)
        return 0


class _Lists:
    """Prints lists of URLs, `most` of each."""

    def __init__(self, space: CrawlSpace, store: Store | None, *, most: int | None) -> None:
        self._space = space
        self._store = store
        self._most = most

    def as_json(self, ids: Sequence[int]) -> list[dict[str, object]]:
        return [one.as_json() for one in self._first(ids)]

    def write(self, ids: Sequence[int]) -> None:
        for one in self._first(ids):
            print(_line(one))
        if self._most is not None and len(ids) > self._most:
            print(f"  and {len(ids) - self._most:,} more (--all)")

    def write_refused(self, answer: LinkAnswer) -> None:
        """Print the refused links of the page that are in the sample, and the number of the others."""
        shown = answer.refused[: self._most]
        for one in shown:
            print(_line(one))
        more = sum(answer.out.refused.values()) - len(shown)
        if shown and more > 0:
            print(f"  and {more:,} more refused")

    def _first(self, ids: Iterable[int]) -> Iterator[LinkedUrl]:
        if self._store is None:
            return iter(())
        return described(islice(ids, self._most), space=self._space, store=self._store)


def _as_json(answer: LinkAnswer, lists: _Lists) -> dict[str, object]:
    out = answer.out
    return {
        **answer.subject.as_json(),
        "seen_on": [seen.printable_page for seen in answer.seen_on],
        "links_out": {
            "total": len(out.ids),
            "forgotten": out.forgotten,
            "urls": lists.as_json(out.ids),
            "refused": {reason.value: number for reason, number in out.refused.items()},
            "refused_urls": [one.as_json() for one in answer.refused],
        },
        "links_in": {"total": len(answer.incoming), "urls": lists.as_json(answer.incoming)},
    }


def _head(answer: LinkAnswer) -> Iterator[str]:
    decision, state = answer.subject.decision, answer.subject.state
    yield answer.subject.printable
    sentence = decision.reason.sentence if decision.admitted else f"{decision.reason.sentence} ({decision.reason})"
    yield hanging(f"{'admitted' if decision.admitted else 'refused':<12} ", sentence)
    if decision.rule is not None:
        yield f"{'by':<12} {decision.rule}: {printable(decision.rule.text)}"
    if decision.reason is Reason.MALFORMED and "//" not in answer.subject.text:
        yield f"{'hint':<12} write it with http:// or https://"
    for number, seen in enumerate(answer.seen_on):
        yield f"{'' if number else 'seen on':<12} {seen.printable_page}"
    if state is None:
        yield f"{'known':<12} no: this URL is not among those found so far"
    else:
        status = "" if state.status is None else f", status {state.status} {status_sentence(state.status)}".rstrip()
        yield f"{'known':<12} {label_of(state)}{status}; {counted(state.depth, 'link')} from a start URL"


def _links_out(answer: LinkAnswer) -> str:
    state, out = answer.subject.state, answer.out
    if state is None:
        return "none: it is not known"
    if state.fetched_at is None:
        return "none: it was never fetched"
    forgotten = f", and {out.forgotten:,} that were known and are forgotten" if out.forgotten else ""
    refused = ", ".join(f"{reason} {number:,}" for reason, number in sorted(out.refused.items(), key=lambda row: -row[1]))
    return f"{counted(len(out.ids), 'URL')}{forgotten}{f'; refused: {refused}' if refused else ''}"


def _line(one: LinkedUrl) -> str:
    state = one.state
    label, status, depth = ("-", "-", "-") if state is None else (label_of(state), state.status or "-", state.depth)
    return f"  {label:<10} {status:>6} {depth:>5}  {cell_of(one.decision):<{_DECISION}} {one.printable}"
