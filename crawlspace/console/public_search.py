"""The search page for everybody: only the collections named for it, and no document whose page is behind a log-in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from http import HTTPStatus
from urllib.parse import urlsplit

from crawlspace.config.sites import read_sites
from crawlspace.console.guard import limited
from crawlspace.console.missing_pages import MissingPages
from crawlspace.console.routes import Answer, Asked, Done, Route, View
from crawlspace.console.search import search_page
from crawlspace.console.sessions import Attempts
from crawlspace.console.templates import link
from crawlspace.document import Document
from crawlspace.errors import CrawlspaceError, UnknownCollection, UsageError
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.login_exclusion import is_marked
from crawlspace.runtime.session.paths import CollectionPaths

HOME = "/find"
SUGGESTIONS = 8
LONGEST_TEXT = 200_000
"""Characters of a document that its page shows."""


class PublicSearch:
    """The pages of the public search."""

    def __init__(self, names: Sequence[str], attempts: Attempts) -> None:
        self._names = tuple(names)
        self._attempts = attempts

    def routes(self) -> Iterator[Route]:
        yield Route("GET", HOME, self.show, None)
        yield Route("GET", f"{HOME}/suggestions", self.suggest, None)
        yield Route("GET", f"{HOME}/document", self.document, None)
        yield Route("GET", f"{HOME}/missing", self.ask_what_is_missing, None)
        yield Route("POST", f"{HOME}/missing", self.report, None)

    def show(self, asked: Asked) -> View:
        """Search in one collection."""
        paths = self._paths(asked)
        found = search_page(paths, HOME, asked.query, is_public=True)
        is_hidden = _hidden(paths)
        hits = [one for one in found.hits if not is_hidden(one.hit.url)]
        return self._view("find.html", paths, asked, {"found": found, "hits": hits})

    def suggest(self, asked: Asked) -> View:
        """Suggest titles that have the words so far."""
        paths = self._paths(asked)
        words = asked.query.get("q", "").strip()
        titles: dict[str, None] = {}
        if len(words) > 1:
            query = {"q": words if words.endswith(("*", '"')) else f"{words}*"}
            hits, is_hidden = search_page(paths, HOME, query, is_public=True).hits, _hidden(paths)
            titles = dict.fromkeys(one.title for one in hits if one.title and not is_hidden(one.hit.url))
        return View("suggestions.html", {"titles": list(titles)[:SUGGESTIONS]})

    def document(self, asked: Asked) -> View:
        """Show a document as it is in the index, with its place on the site."""
        paths = self._paths(asked)
        document = _document(paths, asked.query.get("url", ""))
        if document is None:
            return self._view("find_missing.html", paths, asked, {"sent": False, "url": ""}, HTTPStatus.NOT_FOUND)
        parts = urlsplit(document.url)
        folders = [part for part in parts.path.split("/") if part]
        place = [parts.netloc, *folders]
        return self._view("find_document.html", paths, asked, {"document": document, "place": place, "most": LONGEST_TEXT})

    def ask_what_is_missing(self, asked: Asked) -> View:
        """Ask for the address of a page that was not found."""
        return self._view("find_missing.html", self._paths(asked), asked, {"sent": False, "url": asked.query.get("q", "")})

    def report(self, asked: Asked) -> Answer:
        """Keep a report about a missing page."""
        paths = self._paths(asked)
        key = limited("report", asked.address)
        wait_s = self._attempts.begin(key)
        if wait_s > 0:
            raise UsageError(f"Too many reports came from your address: try again in {wait_s:.0f} seconds")
        try:
            MissingPages(paths.state_file.parent).add(
                asked.form.get("url", ""),
                words=asked.form.get("q", ""),
                comment=asked.form.get("comment", ""),
                at=int(asked.console.clock.now()),
            )
        except UsageError:
            self._attempts.take_back(key)
            raise
        return Done("Thank you: the administrator sees your report.", link(HOME, {"in": paths.name}))

    def _paths(self, asked: Asked) -> CollectionPaths:
        """Return the collection that is asked for, the first one if none is. Raises UnknownCollection for one that is not public."""
        name = asked.query.get("in") or asked.form.get("in") or self._names[0]
        if name not in self._names:
            raise UnknownCollection("There is no such collection here")
        return asked.console.paths(name)

    def _view(
        self, template: str, paths: CollectionPaths, asked: Asked, shown: dict[str, object], status: int = HTTPStatus.OK
    ) -> View:
        return View(template, {**shown, "chosen": paths.name, "names": self._names, "words": asked.query.get("q", "")}, status)


def _document(paths: CollectionPaths, url: str) -> Document | None:
    """Return a document of the collection from its embedded index; None if there is none, or it is not public."""
    if not paths.sinks.has_embedded or not paths.index_file.exists() or _hidden(paths)(url):
        return None
    with closing(EmbeddedIndex(paths.index_file, read_only=True, owner=paths.name)) as index:
        entry = index.look_up([url]).get(url)
        document = index.get(url)
    if document is None or is_marked(document) or entry is None or entry.owner != paths.name:
        return None
    return document


def _hidden(paths: CollectionPaths) -> Callable[[str], bool]:
    """Return whether the page of a URL is behind a log-in by the present settings, which may be newer than its document."""
    try:
        return read_sites(paths.settings).requires_login
    except CrawlspaceError:
        return lambda url: True  # noqa: ARG005 - what cannot be decided is not shown
