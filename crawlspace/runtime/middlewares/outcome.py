"""Ensures that every fetch ends in exactly one outcome, even when a spider's own parsing fails."""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import CloseSpider

from crawlspace.model import Outcome, OutcomeKind, Status
from crawlspace.printable import printable, printable_message
from crawlspace.runtime.items import Fetched, failed
from crawlspace.runtime.requests import STATE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy.http import Response

logger = logging.getLogger(__name__)


class BaseOneOutcome:
    """A page whose parsing raised is recorded as 699, so that it is tried again and not lost."""

    def process_spider_exception(self, response: Response, exception: Exception) -> Iterable[Any] | None:
        state = response.request.meta.get(STATE) if response.request is not None else None
        if state is None or isinstance(exception, CloseSpider):
            return None
        logger.error("%s could not be parsed (699):\n%s", state.url, traceback_of(exception))
        outcome = Outcome(state.id, state.url, OutcomeKind.FAILED, Status.UNEXPECTED)
        return [Fetched(failed(outcome, why=printable(str(exception))))]


def traceback_of(exception: BaseException) -> str:
    """Return the traceback of an exception, each of its lines fit to be printed: a message may hold a whole page."""
    lines = "".join(traceback.format_exception(exception)).splitlines()
    return "\n".join(printable_message(line) for line in lines)
