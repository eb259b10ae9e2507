"""Outcomes of simulated answers: the project's own spider reads their pages, headers too, as those of a download."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from scrapy.http import HtmlResponse, Response

from crawlspace.content.page import Page
from crawlspace.crawl.engine import Engine
from crawlspace.decision import Reason
from crawlspace.document import Part
from crawlspace.model import UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.runtime.components.items import Fetched
from crawlspace.runtime.components.requests import STATE, LeasedRequest
from crawlspace.status import Status
from pipelines.dedupe import Fingerprint
from spiders.collection import CollectionSpider
from tests.histories.web import Answer

_FORM = (
    '<form action="/login" method="post"><input name="user"><input name="password" type="password"><button>Log in</button></form>'
)


def parts_of(text: str, edition: int) -> list[Part]:
    """The parts of a page by its text: so many words each, or so many hundred; none in edition 0."""
    words = text.split()
    size = edition * (100 if len(words) > 100 else 1)
    positions = range(0, len(words), size) if edition else ()
    return [Part(f"at {at}", text=" ".join(words[at : at + size]), fields={"edition": str(edition)}) for at in positions]


EDITIONS = 3
"""Of the code that makes them."""


class PartsSpider(CollectionSpider):
    """Divides pages into parts; its code has several editions."""

    edition = 0

    def document(self, response: Response, page: Page) -> Iterator[Any]:
        yield super().document(response, page)
        yield from parts_of(page.text, self.edition)


class Reader:
    """The spider of a crawl, with what it needs of a session."""

    def __init__(self, engine: Engine, *, edition: int = 0) -> None:
        sending = SimpleNamespace(ago_s=lambda site: 0.0)
        session: Any = SimpleNamespace(
            engine=engine,
            collection=engine.collection,
            space=engine.space,
            clock=engine.clock,
            progress=engine.progress,
            logins=engine.logins,
            sitemaps=engine.sitemaps,
            site_delays=engine.site_delays,
            sending=sending,
        )
        self._spider = PartsSpider(name=engine.collection.name)
        self._spider.edition = edition
        self._spider.use_session(session)
        crawler: Any = SimpleNamespace(spider=self._spider)
        self._fingerprint = Fingerprint(crawler)

    def outcome(self, state: UrlState, answer: Answer, *, conditional: bool) -> Outcome:
        """Return the outcome of an answer."""
        request = LeasedRequest(state.url, meta={STATE: state})
        if conditional:
            request.headers["If-None-Match"] = state.etag or "-"
        made = HtmlResponse(state.url, status=answer.status, headers=headers_of(answer), body=body_of(answer), request=request)
        return self.outcome_of(made)

    def outcome_of(self, response: Response) -> Outcome:
        """Return the outcome of a response to the request for a page."""
        fetched: Fetched
        (fetched,) = self._spider.parse(response)
        self._fingerprint.process_fetch(fetched)
        return fetched.outcome


def headers_of(answer: Answer) -> dict[str, str]:
    headers = {
        "Content-Type": answer.type,
        "Location": answer.location,
        "ETag": answer.etag,
        "Last-Modified": answer.last_modified,
        "X-Robots-Tag": "noindex" if answer.header_noindex else "",
        "Link": f'<{answer.link_canonical}>; rel="canonical"' if answer.link_canonical else "",
        "Set-Cookie": f"session={answer.session}; Path=/" if answer.session else "c=1" if answer.sets_cookie else "",
        "Retry-After": str(int(answer.retry_after_s)) if answer.retry_after_s is not None else "",
    }
    return {name: value for name, value in headers.items() if value}


def body_of(answer: Answer) -> bytes:
    if answer.status != 200:
        return b""
    head = '<meta name="robots" content="noindex">' if answer.noindex else ""
    head += f'<link rel="canonical" href="{answer.canonical}">' if answer.canonical else ""
    links = "".join(f'<a href="{link}"></a>' for link in answer.links)
    form = _FORM if answer.has_form else ""
    return f"<title>{answer.title}</title>{head}<p>{answer.text}</p>{links}{form}".encode()


# --- answers -------------------------------------------------------------------------------------------------------


def without_document(engine: Engine, state: UrlState, answer: Answer, *, conditional: bool) -> Outcome | None:
    """Return the outcome of an answer that is no page to be read; None where it is one."""
    status = status_of(answer)

    def outcome(kind: OutcomeKind, status: int = status, reason: Reason | None = None) -> Outcome:
        return Outcome(state.id, state.url, kind, status, reason=reason)

    if answer.failure or status == 429 or (status == 503 and answer.retry_after_s is not None):
        failed = outcome(OutcomeKind.GONE if status == Status.NO_SUCH_HOST else OutcomeKind.FAILED)
        failed.host_failure = bool(answer.failure)
        failed.retry_after_s = answer.retry_after_s
        return failed
    if 300 <= status < 400:
        answered = outcome(OutcomeKind.UNCHANGED if status == 304 else OutcomeKind.REDIRECTED)
        answered.conditional, answered.redirect_to = conditional, answer.location or None
        answered.sets_cookie = bool(answer.sets_cookie)
        return answered
    if status == 200 and not engine.space.at_headers(answer.type, site=state.site, conclusive=True).admitted:
        return outcome(OutcomeKind.EXCLUDED, Status.WRONG_TYPE, Reason.MIME_TYPE)
    soft = engine.collection.soft_errors.status_of(state.url, title=answer.title, text=answer.text) if status == 200 else None
    if status != 200 or soft is not None:
        gone = outcome(OutcomeKind.GONE, soft or status)
        gone.host_failure = gone.status >= 500
        return gone
    return None


def status_of(answer: Answer) -> int:
    failures = {"refused": Status.CONNECT_ERROR, "timeout": Status.TIMEOUT, "no host": Status.NO_SUCH_HOST}
    return int(failures[answer.failure]) if answer.failure else answer.status
