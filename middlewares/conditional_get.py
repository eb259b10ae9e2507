"""Asks for a known page only if it has changed (RFC 9110, section 13)."""

from __future__ import annotations

from crawlspace.runtime.middlewares.conditional_get import BaseConditionalGet


class ConditionalGet(BaseConditionalGet):
    """Sets If-None-Match and If-Modified-Since where the engine allows it. A header that a request has already stays."""
