"""`scrapy sitemaps`: show what sitemaps name, how far they are trusted, and what differs from the pages."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from crawlspace.admin.report import status_sentence
from crawlspace.admin.sitemaps import DIFFERENCES, NamedSitemap, SitemapReport, sitemap_report
from crawlspace.config.collection import load_collection
from crawlspace.crawl.startup import build_space
from crawlspace.runtime.components.command import CollectionCommand, exactly_one, hanging, print_json
from crawlspace.text import MESSAGE, counted, printable

SHOWN = 10
_MOST = 100
_COUNT = "{:<14}{:>12,}   "


class Command(CollectionCommand):
    usage = "[options] <collection>"
    summary = "Show sitemaps and feeds, how far they are trusted, and what differs from the pages"
    explanation = (
        "Show the sitemaps and feeds that were read: the URLs that each names, how far its lastmod is trusted, and the entries that the rules "
        "refuse. Then what differs from the pages: URLs that are in a sitemap and linked from no page, documents that are in no sitemap of their "
        f"host, and URLs in a sitemap that are gone or redirected. The first {SHOWN} URLs of each are printed. Makes no network requests. "
        "Exit status: 0 shown, whatever was found; 1 the collection or its store has a fault; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--list",
            choices=tuple(DIFFERENCES),
            metavar="WHAT",
            help=f"print all URLs of one kind alone: {', '.join(DIFFERENCES)}",
        )
        parser.add_argument("--json", action="store_true", help="print the answer for a program, with all URLs")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        paths = self.paths(exactly_one(args, example="scrapy sitemaps demo --list not-linked"))
        space = build_space(load_collection(paths.name, paths.settings))
        most = None if opts.json or opts.list else SHOWN
        with paths.store.reading() as opened:
            found = None if opened is None else sitemap_report(opened.store, space, most=most)
        if opts.json:
            print_json({"collection": paths.name, **(SitemapReport([]) if found is None else found).as_json()})
        elif found is None:
            print(f"{paths.name} has never been crawled: `scrapy crawl {paths.name}` does")
        elif opts.list:
            for url in found.found.get(opts.list, ()):
                print(printable(url, most=MESSAGE))
        elif not found.sitemaps:
            print(
                "no sitemap or feed was found: name one in CRAWLSPACE_SITEMAPS if the site has one that its robots.txt does not name"
            )
        else:
            print("\n".join(_lines(found, paths.name)))
        return 0


def _lines(report: SitemapReport, name: str) -> Iterator[str]:
    yield counted(len(report.sitemaps), "sitemap or feed", "sitemaps and feeds")
    for one in report.sitemaps[:_MOST]:
        yield from _of_sitemap(one)
    if len(report.sitemaps) > _MOST:
        yield f"  and {len(report.sitemaps) - _MOST:,} more (scrapy sitemaps {name} --json)"
    for kind, meaning in DIFFERENCES.items():
        if total := report.totals[kind]:
            yield ""
            yield hanging(_COUNT.format(kind, total), meaning)
            for url in report.found[kind]:
                yield f"  {printable(url, most=MESSAGE)}"
            if total > len(report.found[kind]):
                yield f"  and {total - len(report.found[kind]):,} more (scrapy sitemaps {name} --list {kind})"
    if report.forgotten:
        yield ""
        yield hanging(_COUNT.format("forgotten", report.forgotten), "in a sitemap, and gone for so long that they are forgotten")


def _of_sitemap(one: NamedSitemap) -> Iterator[str]:
    yield f"  {one.url}"
    status = one.state.status
    unread = "not requested yet" if status is None else f"not read: {status} {status_sentence(status)}"
    yield hanging("    ", one.sentence or unread)
    for reason, count in one.refused.items():
        yield hanging(f"    {reason.value:<20}{count:>8,}   ", f"refused: {reason.sentence}")
    for seen in one.examples:
        yield f"      {seen.decision.reason} {seen.rule or '-'}  {seen.printable}"
