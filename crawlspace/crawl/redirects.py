"""Redirects: those that lead back to themselves, pages that have moved, and sites that send every URL to one page.

A site that is broken or closed for a while often redirects every URL, to a page of the log-in or of maintenance, to its home page, or
back to itself. Believed at once, that would empty an index. So a redirect of a page that has a document is believed at once only where
the document is not lost, because the page is in the index at another address. Any other one is held, and confirmed as a refusal is: the URL
redirects again after the site has answered for another page, and less than half of its last pages led to the same target.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import unquote
from zlib import crc32

from msgspec import structs

from crawlspace.cache import Recent
from crawlspace.model import NewUrl, Outcome, OutcomeKind, State, Status, UrlState
from crawlspace.printable import printable
from crawlspace.rules.url_options import UrlFolding
from crawlspace.state.depths import UrlDepth
from crawlspace.urls import MalformedUrl, Url, join, parse

logger = logging.getLogger(__name__)

_KEPT = 50_000
"""Redirects of this run that are remembered, to recognise loops and pages that have moved."""
_WARNINGS = 20
"""Sites of which it is warned that their redirects lead back."""


class RedirectStore(Protocol):
    def get(self, url: str) -> UrlState | None: ...
    def get_by_id(self, id: int) -> UrlState | None: ...
    def links_of(self, ids: Collection[int]) -> Mapping[int, Collection[int]]: ...
    def is_duplicate(self, id: int, *, checksum: bytes, canonical: int | None) -> bool: ...
    def depths_of(self, keys: Iterable[int]) -> list[UrlDepth]: ...


@dataclass(frozen=True, slots=True)
class Target:
    """Where a page redirects to, as far as it is known."""

    url: str
    signature: int
    """The same for targets that count as one (`signature_of_target`)."""
    is_same_path: bool
    state: UrlState | None = None
    """What is stored of it; None: it is unknown, or the rules refuse it."""
    is_refused: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether it is known if the target has a document."""
        return self.is_refused or (self.state is not None and self.state.state not in (State.PENDING, State.FAILED))

    def has(self, page: UrlState) -> bool:
        """Return whether the index has the document of a page at the target, or will have it as soon as the page's own leaves."""
        state = self.state
        if state is None or state.checksum is None:
            return False
        if state.checksum == page.checksum:
            return True
        return self.is_same_path and (state.indexed or state.duplicate_of == page.id)


@dataclass(frozen=True, slots=True)
class WaitingPage:
    """A page with a document that waits for what becomes of the URL that it redirects to."""

    page: UrlState
    """Its state meanwhile."""
    link: NewUrl
    """The URL that it redirects to."""
    target: Target | None = None


class Redirects:
    """What is known of the redirects of this run."""

    def __init__(
        self,
        store: RedirectStore,
        *,
        uncommitted: Callable[[str], UrlState | None],
        most: int,
        keeps_cookies: bool,
        folding: UrlFolding | None = None,
    ) -> None:
        """`uncommitted` returns the state of a URL after an outcome that is not recorded yet. `most`: the redirects in a row that are followed.
        `keeps_cookies`: requests carry the cookies that responses have set."""
        self._store = store
        self._uncommitted = uncommitted
        self._folding = folding
        self._most = max(most, 1)
        self._keeps_cookies = keeps_cookies
        self._targets: Recent[str, tuple[str, bool]] = Recent(_KEPT)
        """By URL, where it redirects to, and whether it sets a cookie."""
        self._has_targets = False
        self._waiting: dict[str, dict[int, WaitingPage]] = {}
        """By URL, the pages that redirect to it and whose documents wait for what becomes of it, by id."""
        self._waits_for: dict[int, str] = {}
        self._warned_of: set[str] = set()

    def check(self, state: UrlState, outcome: Outcome) -> list[UrlState]:
        """Turn the outcome of a redirect that leads back to its own URL into an error that names the loop (691).

        Returns the other URLs of the loop that are to be fetched once more, because a cookie was set on the way. To be called with each
        outcome.
        """
        if state.id in self._waits_for:
            self.end_wait(state)
        if outcome.redirect_to is None:
            if self._has_targets:
                self._targets.drop(state.url)
            return []
        try:
            written = parse(join(state.url, outcome.redirect_to))
        except MalformedUrl:
            return []
        folded = None if self._folding is None else self._folding.folded(written)
        target = written.text if folded is None else folded.text
        if folded is not None and target == state.url:  # only the URL options lead it back (`Admission`)
            return []
        is_first = self._targets.get(state.url) is None
        self._targets.put(state.url, (target, outcome.sets_cookie))
        self._has_targets = True
        loop = self._loop(state, target)
        if loop is None:
            return []
        sets_cookie = outcome.sets_cookie or any((self._targets.get(url) or ("", False))[1] for url in loop)
        outcome.kind, outcome.status = OutcomeKind.FAILED, Status.REDIRECT_LOOP
        outcome.sets_cookie = sets_cookie and self._keeps_cookies
        outcome.detail = _loop_sentence(loop, sets_cookie=sets_cookie, keeps_cookies=self._keeps_cookies)
        self._warn(state, outcome)
        if not (outcome.sets_cookie and is_first):
            return []
        return [found for url in loop if (found := self._store.get(url)) is not None and _redirects(found)]

    def target(self, state: UrlState, outcome: Outcome, admitted: NewUrl | None) -> Target | None:
        """Return where a page that has a document redirects to; None where that is of no importance."""
        if outcome.kind is not OutcomeKind.REDIRECTED or state.checksum is None:
            return None
        if admitted is not None:
            return self._target(state, admitted.url)
        try:
            url = parse(join(state.url, outcome.redirect_to or ""))
        except MalformedUrl:
            return None
        return Target(url.text, signature_of_target(url, parse(state.url)), is_same_path=False, is_refused=True)

    def links_of_kept(self, state: UrlState, target: NewUrl, *, deepest: int | None) -> tuple[list[int], NewUrl]:
        """Return the links that are stored for a page whose redirect is not believed, and the target as one of them.

        It counts as a link of the page, so that its depth is settled when the page is there again. `deepest` is the limit of link depth.
        """
        links = list(self._store.links_of([state.id]).get(state.id, ()))
        if target.key not in links:
            links.append(target.key)
        if deepest is None or target.depth < deepest:
            target = structs.replace(target, depth=target.depth + 1)
        return links, target

    def wait(self, page: UrlState, target: Target, *, link: NewUrl) -> None:
        """Have a page wait for what becomes of the target; `page` is its state meanwhile, `link` the URL that it redirects to."""
        self.end_wait(page)
        if len(self._waits_for) < _KEPT:  # else its retry decides
            self._waiting.setdefault(target.url, {})[page.id] = WaitingPage(page, link)
            self._waits_for[page.id] = target.url

    def end_wait(self, state: UrlState) -> None:
        """Have a page wait no longer."""
        url = self._waits_for.pop(state.id, None)
        if url is not None:
            waiting = self._waiting[url]
            del waiting[state.id]
            if not waiting:
                del self._waiting[url]

    def is_awaited(self, url: str) -> bool:
        """Return whether pages wait for what becomes of a URL."""
        return url in self._waiting

    def waiting(self, after: UrlState) -> list[WaitingPage]:
        """Return the pages that wait for what becomes of a URL, each with where it leads to now; `after` is that URL after its outcome."""
        found: list[WaitingPage] = []
        for one in list(self._waiting.get(after.url, {}).values()):
            now = self._store.get_by_id(one.page.id)
            if now is None or now.lease_until is not None:  # it is being fetched again, or nobody knows it any more
                self.end_wait(one.page)
                continue
            page = structs.replace(one.page, indexed=now.indexed, duplicate_of=now.duplicate_of)
            if after.state is State.REDIRECTED:
                target = self._target(page, after.url)
            else:
                target = _target_at(parse(after.url), parse(page.url), after)
            found.append(WaitingPage(page, one.link, target))
        return found

    def _target(self, state: UrlState, text: str) -> Target:
        """Return the target of a page's redirect: the last one of a chain, as far as that is known."""
        first, asked = parse(text), parse(state.url)
        signature = signature_of_target(first, asked)
        for _ in range(self._most):
            following = self._target_of(text)
            if following is None or following == state.url:
                break
            text = following
        known = self._uncommitted(text) or self._store.get(text)
        if known is None:
            return replace(_target_at(parse(text), asked, None), signature=signature)
        target = _target_at(parse(text), asked, known)
        is_own = known.indexed and known.checksum not in (None, state.checksum)
        if is_own and self._store.is_duplicate(known.id, checksum=known.checksum or b"", canonical=None):
            is_own = False  # other URLs show the same text
        return target if is_own else replace(target, signature=signature)

    def _loop(self, state: UrlState, target: str) -> list[str] | None:
        """Return the URLs between a URL and itself, beginning with the target of its redirect; None where it does not lead back."""
        loop: list[str] = []
        url: str | None = target
        while url is not None and url != state.url:
            if url in loop or len(loop) >= self._most:
                return None
            loop.append(url)
            url = self._target_of(url)
        return None if url is None else loop

    def _target_of(self, url: str) -> str | None:
        """Return where a URL redirects to, by this run or as it is stored; None where it is no redirect."""
        seen = self._targets.get(url)
        if seen is not None:
            return seen[0]
        known = self._store.get(url)
        if known is None or known.state is not State.REDIRECTED:
            return None
        keys = self._store.links_of([known.id]).get(known.id, ())
        found = self._store.depths_of(keys) if len(keys) == 1 else []
        target = self._store.get_by_id(found[0].id) if len(found) == 1 else None
        return None if target is None else target.url

    def _warn(self, state: UrlState, outcome: Outcome) -> None:
        """Warn, once for each site, of a URL whose redirect leads back to it."""
        if state.site in self._warned_of or len(self._warned_of) >= _WARNINGS:
            return
        self._warned_of.add(state.site)
        logger.warning(
            "%s cannot be fetched: %s (691). What the index has of it stays; for other pages of %s this warning is not repeated in this run",
            state.url,
            outcome.detail,
            state.site,
        )


def _redirects(state: UrlState) -> bool:
    """Return whether a URL redirected when it was fetched last, even if that is not believed."""
    return state.state is State.REDIRECTED or (state.state is State.FAILED and state.status in range(300, 400))


def _target_at(url: Url, asked: Url, state: UrlState | None) -> Target:
    return Target(url.text, _signature(url.text), is_same_path=(url.path, url.query) == (asked.path, asked.query), state=state)


def _loop_sentence(loop: Sequence[str], *, sets_cookie: bool, keeps_cookies: bool) -> str:
    """Return how a redirect leads back, and what might help."""
    sentence = "it redirects to itself"
    if loop:
        sentence = f"it redirects to {' and from there to '.join(map(printable, loop))} and back to itself"
    if sets_cookie and keeps_cookies:
        return f"{sentence}, and sets a cookie each time"
    if sets_cookie:
        return f"{sentence}, and sets a cookie that it does not get back: COOKIES_ENABLED = True keeps cookies"
    return sentence


def signature_of_target(target: Url, asked: Url) -> int:
    """Return the signature of a redirect: the same for targets that differ in their query only, or in a path that repeats that of the URL asked for."""
    path = target.path
    for repeated in (asked.path, unquote(asked.path)):
        if len(repeated) > 1 and path.endswith(repeated):
            path = path.removesuffix(repeated)
            break
    return _signature(f"{_root(target.text)}{path}")


def signature_of_text(checksum: bytes) -> int:
    """Return the signature of a document's text."""
    return crc32(checksum) or 1


def signatures_of_page(url: str) -> Iterator[int]:
    """Yield the signatures that redirects to a URL may have."""
    text = url.partition("?")[0]
    yield _signature(url)
    yield _signature(text)
    root = len(_root(text))
    while (slash := text.rfind("/")) >= root:
        text = text[:slash]
        yield _signature(text)


def hosts_of_move(old: str, new: str) -> tuple[str, str]:
    """Return the scheme and host of the old address of a page and of its new one."""
    return _root(old), _root(new)


def _signature(text: str) -> int:
    return crc32(text.encode()) or 1


def _root(url: str) -> str:
    """Return scheme and host of a URL, as in `http://a.example`."""
    return url[: url.index("/", 8)]
