"""`scrapy explain`: explain why a URL is in the crawl space or not."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from crawlspace.admin.explain import Question
from crawlspace.clock import SystemClock
from crawlspace.config.collection import load_collection
from crawlspace.errors import UsageError
from crawlspace.runtime.components.command import CollectionCommand, print_json
from crawlspace.runtime.components.explanation_text import decision_lines, known_lines
from crawlspace.runtime.session.url_details import explain_urls


class Command(CollectionCommand):
    usage = "[options] <collection> <url>"
    summary = "Explain why a URL is crawled or not"
    explanation = (
        "Explain whether a URL belongs to a collection: each check in order with its result, the rule that decided with its line, the queue that "
        "the URL waits in, and its stored state. Makes no network requests: an address, a document type or a link depth to be checked must be "
        "given, and robots.txt is used as read last. The rules are read from disk, so that a change can be tried before the next start. "
        "Exit status: 0 answered, whatever the answer; 1 the collection has a fault; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--address", metavar="IP", help="also check a connection to this address of the host")
        parser.add_argument("--mime", metavar="TYPE", help="also check this Content-Type of the document, as in application/pdf")
        parser.add_argument("--depth", metavar="N", type=_depth, help="check it as N links away from a start URL")
        parser.add_argument(
            "--from", dest="page", metavar="URL", help="the page with the link, for a relative URL and for the link depth"
        )
        parser.add_argument("--json", action="store_true", help="print the answer for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if len(args) != 2:
            raise UsageError("name a collection and a URL, as in: scrapy explain demo http://www.example.com/page.html")
        name, url = args
        paths = self.paths(name)
        collection = load_collection(name, paths.settings)
        question = Question(url, address=opts.address, mime=opts.mime, depth=opts.depth, page=opts.page)
        with paths.store.reading() as opened:
            (answer,) = explain_urls([question], paths, collection, opened=opened, clock=SystemClock())
        if opts.json:
            print_json(answer.as_json())
        else:
            print("\n".join((*decision_lines(answer, collection=name), *known_lines(answer))))
        return 0


def _depth(text: str) -> int:
    depth = int(text)
    if depth < 0:
        raise argparse.ArgumentTypeError("a link depth is 0 or more")
    return depth
