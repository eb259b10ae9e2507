"""When requests were sent, and which of them are sent once more."""

from __future__ import annotations

from time import monotonic

from crawlspace.cache import Recent
from crawlspace.runtime.http.errors import KeptConnectionClosed

SITES = 50_000
REMEMBERED = 10_000
"""Requests that wait for their second attempt, at least; only some hundred are in flight at a time."""


class SendingTimes:
    """Times at which the last request to each site was written to its connection.

    The delay of a site counts from the sending. In a busy process tenths of a second can pass between leasing a URL, getting a
    connection for it and writing the request.
    """

    def __init__(self) -> None:
        self._sent: Recent[str, float] = Recent(SITES)

    def sent(self, site: str) -> None:
        """Note that a request to the site is written now."""
        self._sent.put(site, monotonic())

    def ago_s(self, site: str) -> float:
        """Return the seconds since the last request to the site was written; 0 where that is not known."""
        sent = self._sent.get(site)
        return 0.0 if sent is None else monotonic() - sent


class SecondAttempts:
    """Requests that have had their one retry. A request is known by the id of its URL, or by the site of its robots.txt.

    Servers close a kept connection after some time or some number of requests, often without saying so beforehand, maybe at the moment
    when a request is written to it. That is not counted as a failure, once: the URL is leased once more, after the site's delay.
    """

    def __init__(self) -> None:
        self._waiting: Recent[int | str, int] = Recent(REMEMBERED)

    def may_retry(self, request: int | str, error: BaseException | None) -> bool:
        """Return whether a failed request is sent once more, as if it had not been sent."""
        if not isinstance(error, KeptConnectionClosed):
            return False
        self._waiting.put(request, 1)
        return True

    def begins(self, request: int | str) -> bool:
        """Return whether this is the second attempt of a request. It needs a new connection: a kept one might be closed in the same way."""
        if self._waiting.get(request) is None:
            return False
        self._waiting.drop(request)
        return True
