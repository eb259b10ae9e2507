"""URLs named on a command line: unknown ones are inserted if the rules admit them, known ones found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from crawlspace.admin.url_changes import UrlChanges, find_url, is_outside
from crawlspace.config.collection import Collection
from crawlspace.crawl.admission import Admission, CandidateChecker
from crawlspace.crawl.run import Refused, describe_refusal
from crawlspace.crawl.startup import build_space
from crawlspace.model import UrlState
from crawlspace.state.store import Store
from crawlspace.urls import Url


class NamedUrls:
    """The URLs of one command: ids of known ones, and the number of unknown ones inserted."""

    def __init__(self, collection: Collection, store: Store, url_changes: UrlChanges) -> None:
        self._store = store
        self._folding = collection.url_folding
        self._url_changes = url_changes
        self._discovery = CandidateChecker(build_space(collection))
        self._admission = Admission(collection, self._discovery, store)
        self.ids: list[int] = []
        self.entered = 0

    def refusals(self, urls: Iterable[Url]) -> Iterator[str]:
        """Process each URL; yield a sentence for each that is outside the crawl space."""
        for url in urls:
            state = find_url(self._store, url, self._folding)
            if state is None:
                why = self._url_changes.enter(url, self._admission)
                self.entered += why is None
            else:
                why = self.why_not(state)
                if why is None:
                    self.ids.append(state.id)
            if why is not None:
                yield f"outside the crawl space: {why}"

    def find(self, url: Url) -> UrlState | None:
        """Return the state of a URL, if it is known."""
        return find_url(self._store, url, self._folding)

    def why_not(self, state: UrlState) -> str | None:
        """Return why a known URL is not fetched again: the rules refuse it, now or when applied last. None if it is fetched."""
        decision = self._discovery.recheck(state)
        if not decision.admitted:
            return describe_refusal(Refused("", state.url, decision))
        if is_outside(state):
            return f"{state.url} was refused when the rules were applied last; if they admit it now, the next start readmits it"
        return None
