"""What the JSON interface answers without changing anything. Each function calls the use-case of its command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import chain, islice, repeat

import msgspec

from crawlspace.admin.explain import Question
from crawlspace.admin.links import with_referrers
from crawlspace.admin.report import UrlReport
from crawlspace.admin.sink_report import as_json, sink_reports
from crawlspace.admin.url_lines import status_range
from crawlspace.console.api import answers as to
from crawlspace.console.api import parameters as of
from crawlspace.console.api.answers import answered
from crawlspace.console.api.operations import Lines
from crawlspace.console.pages.collections import looked_up
from crawlspace.console.routes import Asked, NoSuchThing, alone
from crawlspace.errors import CrawlspaceError, UsageError
from crawlspace.runtime.lookups.url_listing import UrlFilter, listed_urls
from crawlspace.runtime.session.collection_status import collection_status
from crawlspace.runtime.session.paths import CollectionPaths
from crawlspace.runtime.session.url_details import explain_urls
from crawlspace.text import quoted

REFERRERS = 10
"""Pages that link to a URL, at most."""


def collections(asked: Asked, _: of.NoParameters) -> to.CollectionsAnswer:
    """List the collections of the project."""
    return to.CollectionsAnswer([_row(asked, name) for name in asked.console.names()])


def _row(asked: Asked, name: str) -> to.CollectionRow:
    try:
        found = looked_up(asked.console, name)
    except CrawlspaceError as error:
        return to.CollectionRow(name, error=str(error))
    numbers = found.status.numbers
    return to.CollectionRow(
        name,
        crawling=numbers.crawling is not None,
        crawled=found.status.was_crawled,
        urls=numbers.known,
        documents=numbers.documents,
        notices=[one.sentence for one in found.notices],
    )


def status(asked: Asked, _: of.NoParameters) -> to.StatusAnswer:
    """Show a collection in numbers."""
    return answered(collection_status(asked.console.paths(asked.name)).as_json(), to.StatusAnswer)


def sinks(asked: Asked, _: of.NoParameters) -> to.SinksAnswer:
    """Show the sinks of a collection."""
    paths = asked.console.paths(asked.name)
    with paths.store.reading() as opened:
        return answered({"sinks": [] if opened is None else as_json(sink_reports(opened.store, paths.sinks))}, to.SinksAnswer)


def parked(asked: Asked, _: of.NoParameters) -> to.ParkedAnswer:
    """List the documents that a sink refuses."""
    paths, name = asked.console.paths(asked.name), asked.match["sink"]
    with paths.store.reading() as opened:
        if opened is None or name not in {one.name for one in sink_reports(opened.store, paths.sinks)}:
            raise NoSuchThing(f"{paths.name} has no sink {quoted(name)}: /collections/{paths.name}/sinks lists them")
        return to.ParkedAnswer([to.ParkedRow(op.value, url, reason) for op, url, reason in opened.store.parked(name)])


# --- URLs ------------------------------------------------------------------------------------------------------------


def urls(asked: Asked, query: of.UrlsQuery) -> Lines:
    """List the known URLs."""
    paths = asked.console.paths(asked.name)
    if query.sorted and query.after:
        raise UsageError("after is for URLs in the order of their discovery: leave out sorted")
    selected = UrlFilter(
        query.state or None,
        status_range(query.status) if query.status else None,
        query.host.lower() or None,
        held=query.held,
        orphaned=query.orphaned,
        not_archived=query.not_archived,
    )
    return Lines(_lines_of_urls(asked, paths, selected, query))


def _lines_of_urls(asked: Asked, paths: CollectionPaths, selected: UrlFilter, query: of.UrlsQuery) -> Iterator[str]:
    with paths.store.reading() as opened:
        if opened is None:
            return
        after = 0
        if query.after:
            state = opened.store.get(query.after)
            if state is None:
                raise UsageError(f"after is {quoted(query.after)}, which is not known: send another URL of the page before")
            after = state.id
        found = islice(listed_urls(paths, opened, selected, by_url=query.sorted, after=after), query.limit)
        if query.with_referrers:
            permit = asked.console.passes  # later passes wait for it: the answer has begun
            first: AbstractContextManager[object] = alone(permit, "the links of all pages are being read")
            passes = chain([first], repeat(permit))
            for known, referring in with_referrers(found, opened.store, most=REFERRERS, passes=passes):
                yield _line(known, referring.as_json())
        else:
            for known in found:
                yield _line(known, {})


def _line(known: UrlReport, more: Mapping[str, object]) -> str:
    return f"{msgspec.json.encode(answered({**known.as_json(), **more}, to.UrlRow)).decode()}\n"


def explain_one(asked: Asked, query: of.ExplainQuery) -> to.ExplainAnswer:
    """Explain why a URL is crawled or not."""
    question = Question(
        query.url,
        address=query.address or None,
        mime=query.mime or None,
        depth=None if query.depth < 0 else query.depth,
        page=query.page or None,
    )
    return _explained(asked, [question])[0]


def explain_several(asked: Asked, body: of.ExplainBody) -> to.ExplanationsAnswer:
    """Explain several URLs."""
    return to.ExplanationsAnswer(_explained(asked, [Question(url) for url in body.urls]))


def _explained(asked: Asked, questions: list[Question]) -> list[to.ExplainAnswer]:
    paths = asked.console.paths(asked.name)
    collection = asked.console.collection(paths)
    with paths.store.reading() as opened:
        found = explain_urls(questions, paths, collection, opened=opened, clock=asked.console.clock)
        return [answered(one.as_json(), to.ExplainAnswer) for one in found]
