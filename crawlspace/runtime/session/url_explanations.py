"""Why URLs of a collection are crawled or not, for `scrapy explain`, the console and its JSON interface."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from crawlspace.admin.explain import Explanation, Question, explain
from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.crawl.startup import build_space
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore, lost_documents
from crawlspace.status import Status


def explain_urls(
    questions: Iterable[Question], paths: CollectionPaths, collection: Collection, *, opened: OpenStore | None, clock: Clock
) -> Iterator[Explanation]:
    """Yield the explanation of each URL, by the rules on disk. `opened` is None for a collection that was never crawled.

    Raises UsageError for an invalid address or page, and StoreError.
    """
    space = build_space(collection)
    for question in questions:
        answer = explain(question, collection, space=space, store=None if opened is None else opened.store, clock=clock)
        yield answer if opened is None else _with_index(answer, paths, opened)


def _with_index(answer: Explanation, paths: CollectionPaths, opened: OpenStore) -> Explanation:
    """Return an explanation with what the index has of the URL."""
    if answer.known is None or not answer.known.state.indexed:
        return answer
    state = answer.known.state
    with lost_documents(paths, opened) as lost:
        text_status = lost.text_status(state.url) if state.status == Status.UNREADABLE_FILE else ""
        return replace(answer, known=replace(answer.known, lost=lost.is_lost(state.url), text_status=text_status))
