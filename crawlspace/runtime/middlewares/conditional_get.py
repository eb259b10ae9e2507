"""Asks for a known page only if it has changed (RFC 9110, section 13): with the validators of its last answer.

The engine marks the requests: not after the rules have changed, when the links of a page must be read again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlspace.content.headers import kept_validator
from crawlspace.runtime.requests import CONDITIONAL, STATE

if TYPE_CHECKING:
    from scrapy import Request


class BaseConditionalGet:
    """Sets If-None-Match and If-Modified-Since. A header that a request has already stays."""

    def process_request(self, request: Request) -> None:
        if not request.meta.get(CONDITIONAL):
            return
        state = request.meta[STATE]
        for name, value in ((b"If-None-Match", state.etag), (b"If-Modified-Since", state.last_modified)):
            if value and (validator := kept_validator(value)):  # those of older versions had no bounds
                request.headers.setdefault(name, validator.encode("latin-1", "replace"))
