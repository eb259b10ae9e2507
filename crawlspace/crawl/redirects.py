"""All decisions about redirects: what counts as one, where it leads, and whether it is trusted.

The lifecycle of a URL that redirects is in `state/lifecycle.py`. This module handles redirect loops, pages that have moved, and sites that
redirect every URL to one page.

A site that is broken or closed for a while often redirects every URL, to a page of the log-in or of maintenance, to its home page, or
back to itself. Trusted at once, that would empty an index. So a redirect of a page that has a document is trusted at once only if
the index has the page at another address. Any other one is held, and confirmed like a refusal: the URL redirects again after the site has
answered for another page, and less than half of its last pages led to the same target.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from urllib.parse import unquote
from zlib import crc32

from msgspec import structs

from crawlspace.cache import Recent
from crawlspace.crawl.inherited_metadata import added_by, packed
from crawlspace.decision import Actions
from crawlspace.model import Candidate, Held, NewUrl, Source, State, UrlState
from crawlspace.outcome import Outcome, OutcomeKind
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.url_options import UrlFolding
from crawlspace.state.changes import Change
from crawlspace.state.lifecycle import is_retry
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.state.site_health import Health
from crawlspace.state.store import Store
from crawlspace.status import OUT_OF_SPACE, Status
from crawlspace.text import printable
from crawlspace.urls import MalformedUrl, Url, join, parse, without_route

logger = logging.getLogger(__name__)

_REDIRECTS = frozenset({*range(300, 400), int(Status.SOFT_REDIRECT), int(Status.REDIRECT_LOOP)})
_UNSETTLED = frozenset({State.PENDING, State.FAILED, State.REDIRECTED})
"""States of targets that may still get a document; redirects of this run are followed, and those of earlier runs may have changed."""
_KEPT = 50_000
"""Maximal redirects of this run that are remembered, to recognise loops and moved pages."""
_MOST_WAITING = 100
"""Maximal pages that wait for one URL."""
_MOST_STATES = 20_000
"""Maximal states and targets that are remembered."""
_WARNINGS = 20
"""Maximal sites with a warning about redirect loops."""


def location_with_route(location: str, state: UrlState) -> str:
    """Return the target of a Location header, with the fragment of the URL (RFC 9110, 10.2.2)."""
    if location and "#" in state.url and "#" not in location:
        return location + state.url[state.url.index("#") :]
    return location


def names_another(target: str, state: UrlState, space: CrawlSpace) -> bool:
    """Return whether a target, as it is written, is a URL other than that of the page."""
    url = _url_of(target, state, space)
    return url is not None and url.text != state.url


def redirect_outcome(state: UrlState, target: str, status: int, space: CrawlSpace, *, sets_cookie: bool) -> Outcome:
    """Return the outcome of a redirect to a target as it is written; without one that is a URL, the page counts as gone."""
    url = _url_of(target, state, space)
    if url is None:
        detail = printable(target) if target else _without_target(status)
        return Outcome(state.id, state.url, OutcomeKind.GONE, Status.REDIRECT_MALFORMED, detail=detail)
    # As written, because domain rules may be case-sensitive.
    outcome = Outcome(state.id, state.url, OutcomeKind.REDIRECTED, status, redirect_to=target, detail=printable(url.text))
    outcome.sets_cookie = sets_cookie
    return outcome


def replaced_request(state: UrlState, url: str) -> Outcome:
    """Return the outcome of a page in place of which another URL was requested, which counts as a redirect."""
    return Outcome(state.id, state.url, OutcomeKind.REDIRECTED, Status.SOFT_REDIRECT, redirect_to=url, detail=printable(url))


def redirects_before(state: UrlState) -> int:
    """Return how many redirects led to a URL: none to one that has a document, with which a new chain begins."""
    return state.redirects if state.checksum is None else 0


def target_candidate(state: UrlState, outcome: Outcome, actions: Actions) -> Candidate:
    """Return the target of a redirect as a candidate of source redir with the same link depth; `actions` are those of the URL."""
    return Candidate(
        outcome.redirect_to or "",
        Source.REDIR,
        base=state.url,
        base_host_as_written=state.host_as_written,
        depth=state.depth,
        redirects=redirects_before(state) + 1,
        depth_from=state.id,
        inherited=packed(added_by(actions, state.inherited).items()),
    )


def target_url(state: UrlState, outcome: Outcome) -> Url | None:
    """Return the target of a redirect; None where it is malformed."""
    try:
        return parse(join(state.url, outcome.redirect_to or ""))
    except MalformedUrl:
        return None


@dataclass(slots=True)
class _Seen:
    """A redirect of this run."""

    target: str
    sets_cookie: bool
    is_refused: bool = False
    """Whether the rules refuse its target."""
    is_outdated: bool = False
    """Whether it is requested once more, with a cookie."""


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a redirect, as far as known."""

    url: str
    signature: int
    """Equal for targets that count as one (`signature_of_target`)."""
    is_same_path: bool
    state: UrlState | None = None
    """Its stored state; None: it is unknown, or the rules refuse it."""
    is_refused: bool = False
    is_alternate: bool = False
    """Whether it is not indexed because it names a canonical page, which may have another text."""
    is_duplicate: bool = False
    """Whether it is such an alternate, and would not be indexed without its canonical page either: another URL has its text."""

    @property
    def is_settled(self) -> bool:
        """Whether it is known if the target has a document."""
        if self.is_refused or self.state is None or self.is_duplicate_in_flight:
            return self.is_refused
        return self.state.state not in _UNSETTLED and self.state.status not in OUT_OF_SPACE  # the rules admit it by now

    @property
    def is_duplicate_in_flight(self) -> bool:
        """Whether it is a duplicate whose outcome is to come, which counts as that of a URL without a document in the index."""
        state = self.state
        return state is not None and state.lease_until is not None and state.duplicate_of is not None and not state.indexed

    def has_document_of(self, page: UrlState) -> bool:
        """Return whether the index has the document of a page at the target, or will have it once the page's own is deleted."""
        state = self.state
        if state is None or state.checksum is None or state.state is not State.DONE or self.is_duplicate_in_flight:
            return False
        if state.checksum == page.checksum:
            return not self.is_alternate
        return self.is_same_path and (state.indexed or (state.duplicate_of == page.id and not self.is_duplicate))

    def was_lost_to(self, page: UrlState) -> bool:
        """Return whether the target had the text of the page at its last fetch, and is in the index as it was, for the deletion limit."""
        state = self.state
        if state is None or state.held is not Held.MANY or state.lease_until is not None or page.checksum is None:
            return False
        return state.state is State.DONE and state.detail == sentence_of_shown(signature_of_text(page.checksum))


@dataclass(frozen=True, slots=True)
class WaitingPage:
    """A page with a document that waits for the outcome of its redirect's target."""

    page: UrlState
    """Its state meanwhile."""
    link: NewUrl
    """The URL that it redirects to."""
    target: Target | None = None


class Redirects:
    """The redirects of this run."""

    def __init__(
        self,
        store: Store,
        *,
        uncommitted: Callable[[str], UrlState | None],
        most: int,
        keeps_cookies: bool,
        folding: UrlFolding | None = None,
    ) -> None:
        """`uncommitted` returns the state of a URL after an outcome that is not recorded yet. `most`: maximal redirects in a row.
        `keeps_cookies`: requests send the cookies that responses have set."""
        self._store = store
        self._uncommitted = uncommitted
        self._folding = folding
        self._parse = parse if folding is None else folding.parse
        self._most = max(most, 1)
        self._keeps_cookies = keeps_cookies
        self._seen: Recent[str, _Seen] = Recent(_KEPT)
        """The redirects of this run, by URL."""
        self._has_seen = False
        self._waiting: dict[str, dict[int, WaitingPage]] = {}
        """By URL, the pages that redirect to it and wait for its outcome, by id."""
        self._waits_for: dict[int, str] = {}
        self.leaving: set[int] = set()
        """Ids of pages that waited, and whose deletion is not recorded yet."""
        self._warned_of: set[str] = set()

    def check(self, state: UrlState, outcome: Outcome) -> list[UrlState]:
        """Turn the outcome of a redirect that leads back to its own URL into an error that names the loop (691).

        Its `sets_cookie` stays true where the URL is to be requested once more in this run, with a cookie set on the way. Returns the states of
        other URLs to be fetched in this run: those of a loop on which a cookie was set, and a target that redirected in an earlier run. Call it
        with each outcome.
        """
        if state.id in self._waits_for:
            self.end_wait(state)
        if outcome.redirect_to is None:
            if self._has_seen:
                self._seen.drop(state.url)
            return []
        try:
            written = self._parse(join(state.url, outcome.redirect_to))
        except MalformedUrl:
            return []
        folded = None if self._folding is None else self._folding.folded(written)
        target = written.text if folded is None else folded.text
        if folded is not None and target == state.url:  # only by the URL options (`Admission`)
            return []
        is_first = self._seen.get(state.url) is None
        self._seen.put(state.url, _Seen(target, outcome.sets_cookie))
        self._has_seen = True
        outcome.detail = outcome.detail or printable(target)
        loop = self._loop(state, target)
        if loop is None:
            return self._of_earlier_run(target)
        sets_cookie = outcome.sets_cookie or any(seen.sets_cookie for url in loop if (seen := self._seen.get(url)) is not None)
        outcome.kind, outcome.status = OutcomeKind.FAILED, Status.REDIRECT_LOOP
        outcome.sets_cookie = sets_cookie and self._keeps_cookies and is_first
        outcome.detail = _loop_sentence(loop, sets_cookie=sets_cookie, keeps_cookies=self._keeps_cookies)
        if not outcome.sets_cookie:
            self._warn(state, outcome)
            return []
        for url in (state.url, *loop):
            if (seen := self._seen.get(url)) is not None:
                seen.is_outdated = True
        others = [other for url in loop if (other := self._known(url)) is not None and _redirects(other)]
        return [structs.replace(one, state=State.FAILED, status=int(Status.REDIRECT_LOOP), retries=1) for one in others]

    def target(self, state: UrlState, outcome: Outcome, admitted: NewUrl | None) -> Target | None:
        """Return where a page that has a document redirects to; None if irrelevant.

        `admitted` is the target as it is inserted; None where the rules refuse it.
        """
        if outcome.redirect_to is not None and admitted is None and (seen := self._seen.get(state.url)) is not None:
            seen.is_refused = True
        if outcome.redirect_to is None or outcome.kind is not OutcomeKind.REDIRECTED or state.checksum is None:
            return None  # an index file of sitemaps has no target
        if admitted is not None:
            return self._target(state, admitted.url)
        url = target_url(state, outcome)
        if url is None:
            return None
        return Target(url.text, signature_of_target(url, parse(state.url)), is_same_path=False, is_refused=True)

    def links_of_kept(self, state: UrlState, target: NewUrl, *, deepest: int | None) -> tuple[list[int], NewUrl]:
        """Return the links to store for a page whose redirect is not trusted, including the target.

        The target counts as a link of the page, so that its depth is settled when the page is back. `deepest` is the limit of link depth.
        """
        links = list(self._store.links_of([state.id]).get(state.id, ()))
        if target.key not in links:
            links.append(target.key)
        if deepest is None or target.depth < deepest:
            target = structs.replace(target, depth=target.depth + 1)
        return links, target

    def wait(self, page: UrlState, target: Target, *, link: NewUrl) -> None:
        """Make a page wait for the outcome of the target; `page` is its state meanwhile, `link` the URL that it redirects to."""
        self.end_wait(page)
        waiting = self._waiting.get(target.url, {})
        if len(self._waits_for) < _KEPT and len(waiting) < _MOST_WAITING:  # else its retry decides
            self._waiting.setdefault(target.url, waiting)[page.id] = WaitingPage(page, link)
            self._waits_for[page.id] = target.url

    def end_wait(self, state: UrlState) -> None:
        """End the wait of a page."""
        url = self._waits_for.pop(state.id, None)
        if url is not None:
            waiting = self._waiting[url]
            del waiting[state.id]
            if not waiting:
                del self._waiting[url]

    def is_awaited(self, url: str) -> bool:
        """Return whether pages wait for the outcome of a URL."""
        return url in self._waiting

    def settle(
        self, after: UrlState, *, in_flight: Container[int], leave: Callable[[WaitingPage], Change | None]
    ) -> list[Change]:
        """Return the changes that delete documents waiting for the outcome of a URL; `after` is that URL after its outcome.

        `in_flight` are the ids of URLs whose own outcome decides. `leave` returns the change of one page, None if it keeps waiting.
        """
        changes: list[Change] = []
        for one in self._waiting_for(after):
            if one.page.id in in_flight:
                continue
            change = leave(one)
            if change is not None:
                changes.append(change)
                self.leaving.add(one.page.id)
            if change is not None or one.target is None or one.target.is_settled:
                self.end_wait(one.page)
            elif one.target.url != after.url:
                self.wait(one.page, one.target, link=one.link)
        return changes

    def recorded(self, ids: Iterable[int]) -> None:
        """Note that the outcomes of URLs are recorded."""
        if self.leaving:
            self.leaving.difference_update(ids)

    def _waiting_for(self, after: UrlState) -> list[WaitingPage]:
        """Return the pages that wait for the outcome of a URL, each with its present target."""
        found: list[WaitingPage] = []
        for one in list(self._waiting.get(after.url, {}).values()):
            now = self._store.get_by_id(one.page.id)
            is_newer = now is not None and (now.fetched_at or 0) > (one.page.fetched_at or 0)
            if now is None or now.lease_until is not None or is_newer or now.checksum != one.page.checksum:
                self.end_wait(one.page)  # it is being fetched again, or has changed
                continue
            page = structs.replace(one.page, indexed=now.indexed, duplicate_of=now.duplicate_of)
            if after.state is State.REDIRECTED:
                target = self._target(page, after.url)
            else:
                target = self._at(_known_url(after.url), _known_url(page.url), after)
            found.append(WaitingPage(page, one.link, target))
        return found

    def _target(self, state: UrlState, text: str) -> Target:
        """Return the target of a page's redirect: the last one of a chain, as far as that is known."""
        first, requested = _known_url(text), _known_url(state.url)
        signature = signature_of_target(first, requested)
        for _ in range(self._most):
            seen = self._seen.get(text)
            if seen is None or seen.target == state.url:
                break
            if seen.is_refused:
                return Target(seen.target, signature, is_same_path=False, is_refused=True)
            text = seen.target
        known = self._known(text)
        if known is None:
            return replace(self._at(_known_url(text), requested, None), signature=signature)
        target = self._at(_known_url(text), requested, known)
        is_own = known.indexed and known.checksum not in (None, state.checksum) and not _repeats(first, requested)
        if is_own and self._store.is_duplicate(known.id, checksum=known.checksum or b"", canonical=None):
            is_own = False  # other URLs have the same text
        return target if is_own else replace(target, signature=signature)

    def _at(self, url: Url, requested: Url, state: UrlState | None) -> Target:
        is_same_path = (url.path, url.query, url.fragment) == (requested.path, requested.query, requested.fragment)
        target = Target(url.text, _signature(url.text), is_same_path=is_same_path, state=state)
        if state is None or not self._is_alternate(state):
            return target
        is_duplicate = self._store.is_duplicate(state.id, checksum=state.checksum or b"", canonical=None)
        return replace(target, is_alternate=True, is_duplicate=is_duplicate)

    def _is_alternate(self, state: UrlState) -> bool:
        """Return whether a URL is not indexed because of its canonical page.

        False where it is represented by a page with the same text.
        """
        if state.canonical is None or state.indexed:
            return False
        instead = None if state.duplicate_of is None else self._store.get_by_id(state.duplicate_of)
        return instead is None or instead.checksum != state.checksum

    def _loop(self, state: UrlState, target: str) -> list[str] | None:
        """Return the URLs of a redirect loop, from the target of the URL; None without a loop in this run."""
        loop: list[str] = []
        url = target
        while url != state.url:
            seen = self._seen.get(url)
            if seen is None or seen.is_outdated or url in loop or len(loop) >= self._most:
                return None
            loop.append(url)
            url = seen.target
        return loop

    def _of_earlier_run(self, target: str) -> list[UrlState]:
        """Return the target of a redirect if that redirected in an earlier run: it may have changed."""
        if self._seen.get(target) is not None:
            return []
        known = self._known(target)
        return [known] if known is not None and _redirects(known) and known.lease_until is None else []

    def _known(self, url: str) -> UrlState | None:
        return self._uncommitted(url) or self._store.get(url)

    def _warn(self, state: UrlState, outcome: Outcome) -> None:
        """Warn of a redirect loop, once for each site."""
        if state.site in self._warned_of or len(self._warned_of) >= _WARNINGS:
            return
        self._warned_of.add(state.site)
        stays = "" if state.checksum is None else " Its document stays in the index."
        logger.warning(
            "%s cannot be fetched: %s (691).%s For other pages of %s this warning is not repeated in this run",
            state.url,
            outcome.detail,
            stays,
            state.site,
        )


class CookieRetries:
    """The states of URLs with a held deletion before they redirected in this run, perhaps to set a cookie."""

    def __init__(self) -> None:
        self._before: Recent[int, UrlState] = Recent(_MOST_STATES)

    def before(self, state: UrlState, outcome: Outcome) -> UrlState:
        """Return the state of a URL before it redirected for a cookie in this run: the outcome of the last run may be held."""
        wanted_cookie = is_retry(state) and state.status == Status.REDIRECT_LOOP
        if outcome.redirect_to is not None and state.held is Held.HOST and not wanted_cookie:
            self._before.put(state.id, state)
        return (self._before.get(state.id) or state) if wanted_cookie else state


class Moves:
    """The pages of this run whose documents were found at another address."""

    def __init__(self) -> None:
        self.by_host: Counter[tuple[str, str]] = Counter()
        """Their numbers by the old and the new scheme and host."""
        self._led_to: set[str] = set()
        """Targets with a document of their own, to which a page of this run has moved."""

    def add(self, page: UrlState, target: Target, health: Health) -> bool:
        """Return whether the target of a redirect replaces a page, and count it then.

        It does if the index has the document of the page there, or one that no other page of this run leads to.
        """
        is_own = target.state is not None and target.state.indexed and health.shown.count(target.signature) <= 1
        if is_own and not target.has_document_of(page):
            is_own = target.url not in self._led_to
            if len(self._led_to) < _MOST_STATES:
                self._led_to.add(target.url)
        if not is_own and not target.has_document_of(page):
            return False
        if page.indexed:
            self.by_host[hosts_of_move(page.url, target.url)] += 1
        return True


def is_unsettled(target: Target, state: UrlState, outcome: Outcome, policy: RecrawlPolicy) -> bool:
    """Return whether a redirect is not trusted yet because it is unknown if its target has a document."""
    if target.is_settled:
        return False
    leads_back = target.state is not None and target.state.status == Status.REDIRECT_LOOP
    is_forgotten = target.state is None and outcome.is_doubted_again  # else it is known by now
    return leads_back or not (is_forgotten or state.errors >= policy.max_temporary_errors)


def _redirects(state: UrlState) -> bool:
    """Return whether a URL redirected at its last fetch, even if that is not trusted."""
    return state.state is State.REDIRECTED or (state.state is State.FAILED and state.status in _REDIRECTS)


def _url_of(target: str, state: UrlState, space: CrawlSpace) -> Url | None:
    """Return the URL of a target as it is written on a page; None where it is empty or malformed."""
    return space.decide(target, base=state.url, base_host_as_written=state.host_as_written)[0] if target else None


def _without_target(status: int) -> str:
    if status == HTTPStatus.MULTIPLE_CHOICES:
        return f"it offers several pages ({status}) and prefers none: its links are followed"
    return f"it redirects ({status}) without naming a target"


def _known_url(text: str) -> Url:
    """Return the parts of a URL in normal form, with its route."""
    return parse(text, routes=True)


def _loop_sentence(loop: Sequence[str], *, sets_cookie: bool, keeps_cookies: bool) -> str:
    """Return a sentence that describes a redirect loop, and a possible remedy."""
    sentence = "it redirects to itself"
    if loop:
        sentence = f"it redirects to {' and from there to '.join(map(printable, loop))} and back to itself"
    if sets_cookie and keeps_cookies:
        return f"{sentence}, and sets a cookie each time"
    if sets_cookie:
        return f"{sentence}, and sets a cookie that it does not get back: COOKIES_ENABLED = True keeps cookies"
    return sentence


def signature_of_target(target: Url, requested: Url) -> int:
    """Return the signature of a redirect: equal for targets that differ in their query only, or repeat the path of the requested URL."""
    path = target.path
    for repeated in (requested.path, unquote(requested.path)):
        if len(repeated) > 1 and path.endswith(repeated):
            path = path.removesuffix(repeated)
            break
    return _signature(f"{_root(target.text)}{path}")


def _repeats(target: Url, requested: Url) -> bool:
    """Return whether a target may be the same page for every URL: it has a query, or repeats the path of the requested URL."""
    return target.query is not None or (
        len(requested.path) > 1 and target.path != requested.path and target.path.endswith(requested.path)
    )


def is_same_fault(state: UrlState, outcome: Outcome) -> bool:
    """Return whether a URL shows the same in place of its document as at its last fetch."""
    if state.status != outcome.status or state.detail is None:
        return False
    if outcome.redirect_to is None:
        return state.detail == outcome.detail
    try:
        requested = parse(state.url)
        return signature_of_target(parse(state.detail), requested) == signature_of_target(parse(outcome.detail), requested)
    except MalformedUrl:
        return False


def sentence_of_shown(signature: int) -> str:
    """Return the detail of a page that shows another text than its document has."""
    return f"it shows the text of other pages ({signature:08x})"


def signature_of_text(checksum: bytes) -> int:
    """Return the signature of a document's text."""
    return crc32(checksum) or 1


def signatures_of_page(state: UrlState) -> Iterator[int]:
    """Yield the signatures that redirects to a URL may have.

    A redirect that changes nothing but the query has the signature of scheme and host alone, which could be that of any page. Without a query,
    a URL has it only if a redirect has led to it first; else one redirect of `/a?x` to `/a` would make the site one that never answers normally.
    """
    url = without_route(state.url)
    text, query, _ = url.partition("?")
    yield _signature(url)
    yield _signature(text)
    root = len(_root(text))
    while (slash := text.rfind("/")) >= root:
        text = text[:slash]
        if slash > root or query or state.source is Source.REDIR:
            yield _signature(text)


def hosts_of_move(old: str, new: str) -> tuple[str, str]:
    """Return the scheme and host of the old address of a page and of its new one."""
    return _root(old), _root(new)


def _signature(text: str) -> int:
    return crc32(text.encode()) or 1


def _root(url: str) -> str:
    """Return scheme and host of a URL, as in `http://a.example`."""
    scheme, slashes, rest = url.partition("://")
    return f"{scheme}{slashes}{rest.partition('/')[0]}"
