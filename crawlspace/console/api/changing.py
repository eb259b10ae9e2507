"""What changes a collection by the JSON interface, and what takes long. Each function calls the use-case of its command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from crawlspace.admin.url_changes import Selection, read_prefix, read_url
from crawlspace.console import crawls
from crawlspace.console.api import answers as to
from crawlspace.console.api import parameters as of
from crawlspace.console.api.answers import answered
from crawlspace.console.routes import Asked, NotNow, alone
from crawlspace.errors import UsageError
from crawlspace.runtime.planning.rule_plan import rule_plan
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore
from crawlspace.runtime.session.sink_audit import audit_sinks, sinks_to_audit
from crawlspace.runtime.session.url_requests import Recrawled, enter, recrawl


def plan(asked: Asked, _: of.NoParameters) -> to.PlannedAnswer:
    """Show what the next start would change."""
    paths = asked.console.paths(asked.name)
    with _long_work(asked):
        return answered(rule_plan(paths, asked.console.collection(paths)).as_json(), to.PlannedAnswer)


def recrawl_urls(asked: Asked, body: of.RecrawlBody) -> to.DueAnswer:
    """Make URLs due now."""
    prefix = read_prefix(body.prefix) if body.prefix else None
    selection = Selection(prefix=prefix, host=body.host.lower() or None, errors=body.errors)
    is_selection = selection != Selection()
    if not body.urls and not is_selection:
        raise UsageError("name what is to be fetched again: send urls, or one of prefix, host and errors")
    paths = asked.console.paths(asked.name)
    urls = [read_url(text) for text in body.urls]
    with _crawled(paths, changes=True) as opened:
        done = recrawl(paths, opened, asked.changes(opened), urls, selection if is_selection else None)
    return _due(done)


def add_urls(asked: Asked, body: of.AddBody) -> to.DueAnswer:
    """Enter URLs by hand."""
    paths = asked.console.paths(asked.name)
    urls = [read_url(text) for text in body.urls]
    asked.console.collection(paths)  # a store is made for a collection that can be crawled alone
    with paths.store.filling() as opened:
        done = enter(paths, opened, asked.changes(opened), urls, with_folders=body.site)
    return _due(done)


def _due(done: Recrawled) -> to.DueAnswer:
    return to.DueAnswer(
        done.made.changed + done.entered,
        done.entered,
        crawling=done.crawled,
        refused=done.refused,
        notes=list(done.made.of_the_rest()),
    )


def start_crawl(asked: Asked, _: of.NoParameters) -> to.CrawlAnswer:
    """Start a crawl."""
    log = crawls.start(asked.console, asked.console.paths(asked.name))
    return to.CrawlAnswer(f"The crawl of {asked.name} begins.", log=log.name)


def stop_crawl(asked: Asked, _: of.NoParameters) -> to.CrawlAnswer:
    """Ask a crawl to end."""
    processes = crawls.stop(asked.console.paths(asked.name))
    sentence = f"The crawl of {asked.name} ends as soon as its requests in flight are answered."
    return to.CrawlAnswer(sentence, processes)


def audit(asked: Asked, query: of.AuditQuery) -> to.AuditAnswer:
    """Compare the sinks with the stored state."""
    return _audited(asked, query, repairs=False)


def repair(asked: Asked, body: of.AuditQuery) -> to.AuditAnswer:
    """Compare the sinks with the stored state, and order what is needed to make them equal."""
    return _audited(asked, body, repairs=True)


def _audited(asked: Asked, wanted: of.AuditQuery, *, repairs: bool) -> to.AuditAnswer:
    paths, clock = asked.console.paths(asked.name), asked.console.clock
    chosen = sinks_to_audit(paths, wanted.sink or None)
    with _long_work(asked), _crawled(paths, changes=repairs) as opened:
        found = audit_sinks(paths, opened, chosen, clock=clock, most=wanted.limit, repairs=repairs)
        delivered = opened.deliver(paths.sinks, clock) if repairs else ""
    return answered({"sinks": [one.as_json() for one in found], "notes": [delivered] if delivered else []}, to.AuditAnswer)


@contextmanager
def _crawled(paths: CollectionPaths, *, changes: bool) -> Iterator[OpenStore]:
    """Open the store. Raises NotNow if the collection was never crawled."""
    with paths.store.changing() if changes else paths.store.reading() as opened:
        if opened is None:
            raise NotNow(f"{paths.name} has never been crawled: start a crawl first")
        yield opened


def _long_work(asked: Asked) -> AbstractContextManager[None]:
    """Let one request at a time read a whole collection. Raises NotNow."""
    return alone(asked.console.long_work, "a plan or an audit is being worked out")
