"""`scrapy login`: test the log-in of a site."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence

from crawlspace.access.login_states import forget_refused, forget_waiting, places_of
from crawlspace.access.sessions import Sessions
from crawlspace.clock import SystemClock
from crawlspace.config.access import SiteAccess
from crawlspace.config.collection import Collection, load_collection
from crawlspace.errors import UsageError
from crawlspace.runtime.access.login_check import Tried
from crawlspace.runtime.components.command import CollectionCommand, print_json
from crawlspace.text import printable, quoted
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, Url, parse


class Command(CollectionCommand):
    usage = "[options] <collection> <site>"
    summary = "Try the log-in of a site now"
    explanation = (
        "Log in to a site as CRAWLSPACE_SITES has it, and request one page: its start URL, else its home page, or the URL given. Shows each "
        "step, without secrets, and what the page is like. Where a crawl has found the log-in refused and it is taken now, the next crawl, or "
        "the one that is running, continues with the site, and with this new session. "
        "Exit status: 0 taken; 1 refused or no answer, or the collection or its store has a fault; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="only show it: a crawl that waits keeps waiting")
        parser.add_argument("--json", action="store_true", help="print the answer for a program")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if len(args) != 2:
            raise UsageError("name a collection and a site, as in: scrapy login demo wiki.example.com")
        paths = self.paths(args[0])
        collection = load_collection(paths.name, paths.settings)
        url = _url_of(args[1], collection)
        access = collection.sites.of(url.host, url.port).access
        if access is None:
            raise UsageError(f"CRAWLSPACE_SITES has neither log-in nor headers nor a client certificate for {url.host}")
        from crawlspace.runtime.access.client import LoginClient  # noqa: PLC0415 - the client takes half a second
        from crawlspace.runtime.access.login_check import try_login  # noqa: PLC0415
        from crawlspace.runtime.browser.extra import check_browser  # noqa: PLC0415
        from crawlspace.runtime.http.negotiate import prepare_negotiate  # noqa: PLC0415
        from crawlspace.runtime.http.tls import TlsOptions  # noqa: PLC0415

        collection.seal.check()
        check_browser([access], collection.browser)
        prepare_negotiate([access])
        tls = TlsOptions(verifies=bool(paths.settings["DOWNLOAD_VERIFY_CERTIFICATES"]))
        client = LoginClient(collection.user_agent, collection.sites, collection.proxies, tls, browser=collection.browser)
        steps: list[str] = []
        if not opts.json:
            print(f"log-in       {access.sentence_for(url.scheme)}")
        report = steps.append if opts.json else lambda step: print(f"             {step}")
        allows = places_of(collection.sites, access)
        tried = asyncio.run(try_login(url, access, client=client, allows=allows, report=report))
        is_taken = access.carries(url.scheme) and tried.is_taken
        if opts.json:
            print_json(_as_json(url, access, tried, steps, is_taken=is_taken))
        else:
            print(f"page         {printable(url.text)}")
            if tried.asks:
                print(f"asks for     {', '.join(map(printable, tried.asks))}")
            print(f"answer       {tried.sentence}")
        if is_taken and not opts.check:
            with paths.store.changing() as opened:
                if opened is not None and tried.session is not None:
                    sessions = Sessions(opened.store, SystemClock(), collection.seal)
                    sessions.add(access, tried.session.content, lasts_s=tried.session.lasts_s)
                if opened is not None:
                    forget_waiting(opened.store, access.pattern)
                if opened is not None and forget_refused(opened.store, access.pattern) and not opts.json:
                    who = "the running crawl" if opened.crawlers() else "the next crawl"
                    print(f"             {who} continues with the site")
        return 0 if is_taken else 1


def _url_of(text: str, collection: Collection) -> Url:
    """Return the URL to request for a site: `text` itself, a start URL of that host, or its home page. Raises UsageError."""
    try:
        if "://" in text:
            return parse(text)
        https = parse(f"https://{text}/")
    except MalformedUrl as error:
        raise UsageError(f"{quoted(text)} is no host and no URL: {error}") from error
    starts = [start.url for start in collection.start_urls if start.url.host == https.host]
    with_port = [url for url in starts if url.port == https.port or https.port == DEFAULT_PORTS["https"]]
    return with_port[0] if with_port else https


def _as_json(url: Url, access: SiteAccess, tried: Tried, steps: Sequence[str], *, is_taken: bool) -> dict[str, object]:
    return {
        "url": printable(url.text),
        "access": access.sentence_for(url.scheme),
        "steps": list(steps),
        "taken": is_taken,
        "status": tried.status or None,
        "location": printable(tried.location) or None,
        "content_type": printable(tried.content_type) or None,
        "title": printable(tried.title) or None,
        "logged_out": tried.sign or None,
        "asks_for": [printable(scheme) for scheme in tried.asks],
        "failed": tried.failed or None,
    }
