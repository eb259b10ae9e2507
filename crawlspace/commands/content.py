"""`scrapy content`: print a page as it was fetched."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import islice

from crawlspace.admin.url_changes import find_url, read_url
from crawlspace.archive.reader import StoredResponse
from crawlspace.config.sites import read_url_folding
from crawlspace.errors import StoreError, UsageError
from crawlspace.runtime.components.archived_responses import response_of, sent_response_of
from crawlspace.runtime.components.command import CollectionCommand, EscapingOutput
from crawlspace.runtime.http.errors import UndecodableBody
from crawlspace.runtime.session.paths import archive_reader


class Command(CollectionCommand):
    usage = "[options] <collection> <url>"
    summary = "Print a page as it was fetched"
    explanation = (
        "Print the body of a page as it was fetched, from the archive: without its content encoding, or as it was sent with --raw. Of a "
        "page that was rendered in a browser it prints the DOM after its scripts had run, or with --as-sent the response. On a "
        "terminal, control characters are shown as escapes. --versions lists the versions that are still there, the newest first. "
        "Exit status: 0 printed; 1 the URL is not known or has no record, or the store has a fault; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--headers", action="store_true", help="print status and headers first")
        parser.add_argument("--raw", action="store_true", help="print the body as it was sent, still encoded")
        parser.add_argument(
            "--as-sent", action="store_true", help="print the response, and not the DOM of a page that was rendered"
        )
        parser.add_argument("--versions", action="store_true", help="list the versions that are there")
        parser.add_argument(
            "--version", type=int, default=1, metavar="N", help="the version with this number in the list; 1 is the newest"
        )

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if len(args) != 2:
            raise UsageError("name a collection and a URL, as in: scrapy content demo http://www.example.com/")
        if opts.version < 1:
            raise UsageError(f"--version is {opts.version}; write 1 for the newest, 2 for the one before")
        paths, url = self.paths(args[0]), read_url(args[1])
        with paths.store.reading() as opened:
            state = None if opened is None else find_url(opened.store, url, read_url_folding(paths.settings))
            if opened is None or state is None:
                raise StoreError(f"{url.text} is not known: `scrapy explain {paths.name} {url.text}` tells what the rules say")
            with closing(archive_reader(paths, opened)) as archive:
                versions = () if state.archived is None else archive.versions(state.archived, state.url)
                if opts.versions:
                    return _list(versions, state.url)
                found = next(islice(versions, opts.version - 1, None), None)
        if found is None:
            if opts.version == 1:
                raise StoreError(f"{url.text} has no record in the archive on this machine")
            raise StoreError(
                f"{url.text} has no such record in the archive: `scrapy content {paths.name} {url.text} --versions` lists those there are"
            )
        _print(found, with_headers=opts.headers, raw=opts.raw, as_sent=opts.as_sent)
        return 0


def _list(versions: Iterable[StoredResponse], url: str) -> int:
    number = 0
    for number, version in enumerate(versions, 1):
        rendered = "" if version.dom is None else f", rendered: {len(version.dom):,} bytes"
        print(f"{number:>3}  {version.date}  {version.status}  {len(version.body):>12,} bytes{rendered}")
    if not number:
        raise StoreError(f"{url} has no record in the archive")
    return 0


def _print(found: StoredResponse, *, with_headers: bool, raw: bool, as_sent: bool) -> None:
    try:
        body = found.body if raw else (sent_response_of if as_sent else response_of)(found).body
    except UndecodableBody as error:
        raise StoreError(f"the body of {found.url} cannot be decoded ({error}): --raw prints it as it was sent") from error
    head = found.head + b"\r\n\r\n" if with_headers else b""
    stream = sys.stdout.unescaped if isinstance(sys.stdout, EscapingOutput) else sys.stdout
    if stream.isatty():
        print((head.replace(b"\r\n", b"\n") + body).decode("utf-8", "replace"))
        return
    stream.flush()
    stream.buffer.write(head + body)
    stream.buffer.flush()
