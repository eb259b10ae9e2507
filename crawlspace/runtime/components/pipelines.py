"""Scrapy's item pipelines for the documents of a collection.

A pipeline with a method `process_fetch(fetched)` gets the fetch of a page, with its outcome; any other gets the item of the page. So
pipelines written for Scrapy work in their usual place, between fetching and recording, and signals and log lines of items carry the item.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any

from scrapy import signals
from scrapy.core.scraper import Scraper
from scrapy.exceptions import DropItem
from scrapy.http import Response
from scrapy.pipelines import ItemPipelineManager
from scrapy.utils.defer import ensure_awaitable
from twisted.python.failure import Failure

from crawlspace.outcome import Outcome
from crawlspace.runtime.components.exports import Exports
from crawlspace.runtime.components.items import Fetched, dropped, failed, is_document
from crawlspace.runtime.session.recording import Recorder
from crawlspace.text import printable

logger = logging.getLogger(__name__)


class NoItem(DropItem):
    """A pipeline returned something that is no item. The log has the sentence already."""

    def __init__(self, message: str) -> None:
        super().__init__(message, log_level="DEBUG")


@dataclass(frozen=True, slots=True)
class _Step:
    """Method of a pipeline: `process_fetch` with the fetch, or `process_item` with the item."""

    process: Callable[..., Any]
    name: str
    gets_fetch: bool
    records: bool
    needs_spider: bool


class PagePipelines(ItemPipelineManager):
    """Calls the pipelines for each page; the item that one returns takes the place of the item before."""

    def __init__(self, *pipelines: Any, crawler: Any = None) -> None:
        super().__init__(*pipelines, crawler=crawler)
        self._steps = [
            _Step(
                process,
                f"{type(one).__module__}.{type(one).__qualname__}",
                gets_fetch=hasattr(one, "process_fetch"),
                records=_recorder_of(one) is not None,
                needs_spider=process in self._mw_methods_requiring_spider,
            )
            for one in pipelines
            if (process := getattr(one, "process_fetch", None) or getattr(one, "process_item", None))
        ]
        self._recorder = next(filter(None, map(_recorder_of, pipelines)), None)
        self._scraper: Scraper | None = None
        self._exports: Exports | None = None
        self._next: Fetched | None = None
        """The fetch whose item is about to be processed."""

    async def open_spider_async(self) -> None:
        """Have the scraper take the item out of each fetch of a collection. It has no other place for that before its signals."""
        if getattr(self._spider, "session", None) is not None:
            self._scraper = self.crawler.engine.scraper  # type: ignore[union-attr]
            self._start = self._scraper.start_itemproc_async
            self._scraper.start_itemproc_async = self.start  # type: ignore[method-assign]
        assert self.crawler is not None
        self._exports = self.crawler.get_extension(Exports)
        if self._exports is not None:  # called directly, since a signal of items takes a task for each receiver
            self.crawler.signals.disconnect(self._exports.item_scraped, signals.item_scraped)
        await super().open_spider_async()

    async def start(self, item: Any, *, response: Response | Failure | None) -> None:
        """Process what a spider yields. A fetch without an item is recorded, and Scrapy does not learn of it."""
        if not isinstance(item, Fetched):
            await self._start(item, response=response)
        elif item.item is None:
            await self._process(item)
        else:
            self._next = item  # Scrapy calls `process_item_async` before it waits for anything
            await self._start(item.item, response=response)

    async def process_item_async(self, item: Any) -> Any:
        """Process an item. Raises DropItem, or what a pipeline raised, as Scrapy expects."""
        fetched, self._next = self._next, None
        if fetched is None:
            processed = await super().process_item_async(item)
        else:
            await self._process(fetched)
            processed = fetched.item
        if self._exports is not None:
            self._exports.export(processed)
        return processed

    async def _process(self, fetched: Fetched) -> None:
        raised: Exception | None = None
        is_recorded = False
        try:
            for step in self._steps:
                try:
                    await self._take(step, fetched, is_recorded=is_recorded)
                except Exception as error:
                    if is_recorded or fetched.item is None:
                        raise
                    raised = error
                    fetched.outcome = self._outcome_after(error, fetched.outcome, step.name)
                    fetched.item = None  # the rest is for ours
                is_recorded = is_recorded or step.records
        finally:
            if self._recorder is not None:
                self._recorder.ensure(fetched.outcome)
        if raised is not None:
            raise raised

    async def _take(self, step: _Step, fetched: Fetched, *, is_recorded: bool) -> None:
        given = fetched if step.gets_fetch else fetched.item
        if given is None:
            return
        result = step.process(given, self._spider) if step.needs_spider else step.process(given)
        if result is not None and result is not given and isawaitable(result):
            result = await ensure_awaitable(result)
        if step.gets_fetch:
            return
        if not (is_recorded or is_document(result)):
            kind = "nothing" if result is None else f"a {type(result).__qualname__}"
            raise NoItem(f"returned {kind} in place of the item: return the item, or raise DropItem to leave the page out")
        fetched.item = result

    def _outcome_after(self, error: Exception, outcome: Outcome, pipeline: str) -> Outcome:
        """Return the outcome of a page whose item did not get through the pipelines."""
        if isinstance(error, DropItem) and not isinstance(error, NoItem):
            return dropped(outcome, why=printable(str(error)))
        why = printable(str(error)) if isinstance(error, NoItem) else "failed"
        logger.error("%s: the item pipeline %s %s (699)", outcome.url, pipeline, why)
        return failed(outcome, why=f"{pipeline} {why}")


def _recorder_of(pipeline: object) -> Recorder | None:
    recorder = getattr(pipeline, "recorder", None)
    return recorder if isinstance(recorder, Recorder) else None
