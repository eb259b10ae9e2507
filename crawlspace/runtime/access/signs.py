"""Whether a response was made for somebody who is not logged in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from parsel import Selector
from scrapy.http import HtmlResponse, TextResponse

from crawlspace.runtime.access.addresses import bare, shown, target_of
from crawlspace.runtime.access.html_forms import NoFormError, has_form, tree_of
from crawlspace.runtime.http.headers import location_of
from crawlspace.text import quoted

if TYPE_CHECKING:
    from scrapy.http import Response

    from crawlspace.config.session_login import SessionLogin

_MOST_BYTES = 2_000_000
"""Of a page that is looked at; log-in pages are short."""


class LoggedOut:
    """The signs of one log-in."""

    def __init__(self, login: SessionLogin) -> None:
        self._signs = login.signs
        self._address = "" if login.kind not in {"form", "browser"} or login.url is None else bare(login.url.text)
        self._form = login.steps[0] if login.steps else None
        self._text = login.signs.text

    def is_login_address(self, url: str) -> bool:
        """Return whether a URL is that of the log-in page, whatever its query."""
        return bool(self._address) and bare(url) == self._address

    def sign(self, response: Response) -> str:
        """Return in a few words why a response looks logged out; empty if it does not."""
        if response.status in self._signs.statuses:
            return f"status {response.status}"
        if 300 <= response.status < 400:
            return self._redirects(response)
        if not (200 <= response.status < 300 and isinstance(response, TextResponse)) or len(response.body) > _MOST_BYTES:
            return ""
        if self._text and self._text in response.text:
            return f"the text {quoted(self._text)}"
        if not isinstance(response, HtmlResponse):
            return ""
        if self._signs.selector and _selects(response, self._signs.selector):
            return f"what {quoted(self._signs.selector)} selects"
        form = self._form
        if form is not None and b"password" in response.body.lower() and has_form(response, form.fields, selector=form.form):
            return "the form of the log-in"
        return ""

    def _redirects(self, response: Response) -> str:
        location = location_of(response.headers.get(b"Location"))
        target = target_of(response.url, location)
        if (
            location
            and target
            and (self.is_login_address(target) or (self._signs.redirect and target.startswith(self._signs.redirect)))
        ):
            return f"a redirect to {shown(target)}"
        return ""


def _selects(response: HtmlResponse, selector: str) -> bool:
    try:
        return bool(Selector(root=tree_of(response)).css(selector))
    except NoFormError:
        return False
