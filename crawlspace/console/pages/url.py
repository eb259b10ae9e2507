"""The page of one URL, known or not: the decision, its state, its links, its stored page and its document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from crawlspace.admin.explain import Explanation, Question
from crawlspace.admin.links import LinkedUrl, described, links_out, refused_out
from crawlspace.admin.url_changes import read_url
from crawlspace.admin.verdict import verdict
from crawlspace.console.routes import Asked, Done, Framed, Routes, View, action, alone, page
from crawlspace.console.stored_page import MOST_BYTES, framed_page
from crawlspace.console.templates import link, path_part
from crawlspace.content.mime import HTML_TYPES
from crawlspace.crawl.startup import build_space
from crawlspace.errors import UsageError
from crawlspace.model import State, UrlState
from crawlspace.rules.space import CrawlSpace
from crawlspace.runtime.components.archived_responses import archived_html, decoded_body
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore, archive_reader
from crawlspace.runtime.session.url_details import document_of, explain_urls, sent_documents, stored_response, type_of
from crawlspace.runtime.session.url_requests import forget, recrawl
from crawlspace.text import cut

LONGEST_URL = 4_000
LINKS = 100
"""Links that are shown of each kind."""
MOST_LINKS_IN = 1_000
"""Pages that link to a URL, after which the search ends."""
SIMILAR = 10
_MOST_TEXT, _MOST_VALUE, _MOST_SOURCE = 20_000, 2_000, 200_000
"""Characters."""
PARTS = ("links", "in", "page", "text", "document", "source")


def show(asked: Asked) -> View:
    """Show a URL."""
    text = asked.query.get("url", "").strip()
    if len(text) > LONGEST_URL:
        raise UsageError(f"a URL has at most {LONGEST_URL:,} characters here")
    if not text:
        return View("url_form.html")
    part = asked.query.get("show") or "links"
    if part not in PARTS:
        raise UsageError(f"show is one of {', '.join(PARTS)}")
    paths = asked.console.paths(asked.name)
    collection = asked.console.collection(paths)
    space = build_space(collection)
    with paths.store.reading() as opened:
        (answer,) = explain_urls([Question(text)], paths, collection, opened=opened, clock=asked.console.clock, space=space)
        state = None if answer.known is None else answer.known.state
        known = answer.known
        shown = {
            "found_url": text,
            "part": part,
            "answer": answer,
            "url": answer.url_text if answer.url is None else answer.url.text,
            "verdict": verdict(answer),
            "known": known,
            "fetches": () if known is None else known.as_json().get("fetches", ()),
            "was_crawled": opened is not None,
            "has_stored": state is not None and state.archived is not None,
            "has_document": state is not None and state.checksum is not None,
            **({} if opened is None else _UrlParts(asked, paths, space, opened, answer).of(part)),
        }
    return View("url.html", shown)


@dataclass(frozen=True, slots=True)
class _UrlParts:
    """The parts of the page that are read only when they are wanted."""

    asked: Asked
    paths: CollectionPaths
    space: CrawlSpace
    opened: OpenStore
    answer: Explanation

    def of(self, part: str) -> dict[str, object]:
        state = None if self.answer.known is None else self.answer.known.state
        unknown: dict[str, object] = {"similar": self._similar()} if state is None else {}
        if part == "in":
            return {**unknown, **self._links_in()}
        if state is None:
            return unknown
        match part:
            case "text" | "document":
                return self._document(state)
            case "source" | "page":
                return self._stored(state, with_source=part == "source")
            case _:
                return self._links_out(state)

    def _links_out(self, state: UrlState) -> dict[str, object]:
        space, store = self.space, self.opened.store
        out = links_out(state, store)
        return {
            "out": out,
            "links": list(described(out.ids[:LINKS], space=space, store=store)),
            "refused": refused_out(state, space=space, store=store)[:LINKS],
            "is_redirect": state.state is State.REDIRECTED,
        }

    def _links_in(self) -> dict[str, object]:
        """One pass over all links, by one request at a time."""
        if self.answer.url is None:
            return {"links": [], "total": 0}
        store = self.opened.store
        with alone(self.asked.console.passes, "the links of all pages are being read"):
            ids = [one.id for one in islice(store.links_to([self.answer.url.key]), MOST_LINKS_IN)]
        found: list[LinkedUrl] = list(described(ids[:LINKS], space=self.space, store=store))
        return {
            "links": found,
            "redirects": [one for one in found if one.state is not None and one.state.state is State.REDIRECTED],
            "total": len(ids),
            "has_more": len(ids) == MOST_LINKS_IN,
        }

    def _document(self, state: UrlState) -> dict[str, object]:
        document = document_of(self.paths, self.opened, state)
        if document is None:
            return {"document": None}
        now = self.asked.console.clock.now()
        sent = sent_documents(document, self.paths.sinks, owner=self.paths.name, now=now, most=_MOST_VALUE)
        return {
            "document": document,
            "text": cut(document.text, _MOST_TEXT),
            "is_cut": len(document.text) > _MOST_TEXT,
            "sent": list(sent),
        }

    def _stored(self, state: UrlState, *, with_source: bool) -> dict[str, object]:
        response = stored_response(self.paths, self.opened, state)
        if response is None:
            return {"response": None}
        kind = type_of(response)
        source = None
        if with_source and (kind in HTML_TYPES or kind.startswith("text/")):
            source = cut(decoded_body(response)[:_MOST_SOURCE], _MOST_SOURCE)
        return {"response": response, "kind": kind, "is_html": kind in HTML_TYPES, "source": source}

    def _similar(self) -> Sequence[str]:
        """Return known URLs next to this one in the order of URLs."""
        if self.answer.url is None:
            return ()
        with self.asked.console.snapshots.open(self.paths, self.opened) as (snapshot, _):
            return () if snapshot is None else snapshot.similar(self.answer.url.text, SIMILAR)


def show_stored(asked: Asked) -> Framed:
    """Send a stored page for a frame, without all that runs or loads anything."""
    url = read_url(asked.query.get("url", "")[:LONGEST_URL])
    paths = asked.console.paths(asked.name)
    collection = asked.console.collection(paths)
    with paths.crawled(paths.store.reading()) as opened:
        state = opened.store.get(url.text)
        if state is None:
            return Framed("text/plain", "This URL is not known any more.")
        archive = archive_reader(paths, opened)
        try:
            fetched = archived_html(state, archive, collection.content)
        finally:
            archive.close()
    if fetched is None:
        return Framed("text/plain", "There is no HTML page of it in the archive on this machine.")
    if len(fetched.html) > MOST_BYTES:
        return Framed("text/plain", f"The page has more than {MOST_BYTES:,} characters, and is not shown.")
    made = framed_page(fetched.html)
    return Framed("text/plain", fetched.html) if made is None else Framed("text/html", made)


def _sentences(parts: Sequence[str]) -> Iterator[str]:
    yield from (f"{part.rstrip('.')}." for part in parts)


def recrawl_url(asked: Asked) -> Done:
    """Make a URL due now; enter it if it is not known."""
    url = read_url(asked.form.get("url", "")[:LONGEST_URL])
    paths = asked.console.paths(asked.name)
    with paths.store.filling() as opened:
        done = recrawl(paths, opened, asked.changes(opened), [url], None)
    return Done(" ".join(_sentences([done.sentence, *done.notes])), link(f"/c/{path_part(asked.name)}/url", url=url.text))


def forget_url(asked: Asked) -> Done:
    """Forget a URL."""
    url = read_url(asked.form.get("url", "")[:LONGEST_URL])
    paths = asked.console.paths(asked.name)
    with paths.crawled(paths.store.changing()) as opened:
        done = forget(paths, opened, asked.changes(opened), [url], None)
    return Done(" ".join(_sentences([done.sentence, *done.notes])), link(f"/c/{path_part(asked.name)}/url", url=url.text))


ROUTES: Routes = (
    page("/c/{name}/url", show),
    page("/c/{name}/stored", show_stored),
    action("/c/{name}/url/recrawl", recrawl_url),
    action("/c/{name}/url/forget", forget_url),
)
