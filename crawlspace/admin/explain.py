"""Explain why a URL is in the crawl space or not, and report its stored state, without network requests.

The crawl makes its checks at different times: at discovery, before a fetch, on connecting, and on the headers. This module makes all checks
that the given values allow, by the same code, and combines them into one decision with one trace.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from crawlspace.access.login_states import why_urls_wait
from crawlspace.admin.refresh import Refreshing, refreshing
from crawlspace.admin.refused import SeenLink, seen_on
from crawlspace.admin.rendering import PageRendering, rendering_of
from crawlspace.admin.report import UrlReport, known
from crawlspace.admin.site_report import SiteReport, unreachable_sites
from crawlspace.admin.sitemaps import named_by
from crawlspace.admin.url_changes import find_url
from crawlspace.clock import Clock, iso
from crawlspace.config.collection import Collection
from crawlspace.crawl.addresses import LookedUp, last_look_up
from crawlspace.crawl.inherited_metadata import added_by
from crawlspace.crawl.sites import kept_out
from crawlspace.decision import Decision, Reason, RuleRef, Step, Verdict, of_all_addresses
from crawlspace.errors import UsageError
from crawlspace.frontier.robots import Robots, RobotsVerdict
from crawlspace.model import Source, State, UrlState, priority, source_of
from crawlspace.rules.address import is_address
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.url_options import UrlFolding
from crawlspace.state.site_pauses import Paused, pause_of
from crawlspace.state.store import Store
from crawlspace.status import OUT_OF_SPACE
from crawlspace.text import MESSAGE, printable, quoted
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, Url, join, parse


@dataclass(frozen=True, slots=True)
class Question:
    """A URL to explain. `page` is the page with the link; `depth` the number of links from a start URL."""

    url: str
    address: str | None = None
    mime: str | None = None
    depth: int | None = None
    page: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a URL. `source` and `shift` are the queue of an admitted URL; `unchecked` has omitted checks.

    `fields` is the metadata that action rules add to its document, inherited metadata included.
    """

    url_text: str
    url: Url | None
    decision: Decision
    depth: int | None
    source: Source
    shift: int
    known: UrlReport | None
    unchecked: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    looked_up: LookedUp | None = None
    """The addresses of the host at its last look-up."""
    unreachable: SiteReport | None = None
    """The site, if it was unreachable in its last runs."""
    paused: Paused | None = None
    """The pause of its site, if a person has paused it."""
    folded_from: str | None = None
    """The URL before the URL options, if they change it."""
    access: str = ""
    """The credentials sent with a request, without secrets."""
    waits: str = ""
    """Why the URLs of its site wait for their log-in, if they do."""
    proxy: str = ""
    """Its proxy, without secrets, and the setting that names it."""
    seen_on: tuple[str, ...] = ()
    """Pages on which it was refused, from the sample of refused links."""
    rendering: PageRendering | None = None
    """Whether its page is rendered; None where the collection renders nothing."""
    start_url: str = ""
    """File and line, or setting and index, of the start URL."""
    excluded_extensions: tuple[str, ...] = ()
    """The extensions that are not crawled, where that of the URL is one of them."""

    named_by: tuple[str, ...] = ()
    """Sentences about the sitemaps that name it."""

    refreshing: Refreshing | None = None
    """Times at which known pages are fetched again; None for a malformed URL."""

    def as_json(self) -> dict[str, object]:
        """Return the explanation as JSON has it."""
        decision = self.decision
        return {
            "url": self.url_text,
            "normalized": None if self.url is None else printable(self.url.text, most=MESSAGE),
            "folded_from": None if self.folded_from is None else printable(self.folded_from, most=MESSAGE),
            "admitted": decision.admitted,
            "reason": decision.reason.value,
            "rule": _place(decision.rule),
            "trace": [
                {"check": str(step.check), "verdict": step.verdict.value, "rule": _place(step.rule)} for step in decision.trace
            ],
            "actions": [
                {"rule": str(one.rule), "changed": list(one.changed), "without_effect": list(one.without_effect)}
                for one in decision.actions.applied
            ],
            "fields": dict(self.fields),
            "index": decision.admitted and decision.index,
            "follow": decision.admitted and decision.follow,
            "source": self.source.label,
            "shift": self.shift,
            "priority": priority(self.source, self.shift),
            "addresses": [] if self.looked_up is None else list(self.looked_up.addresses),
            "looked_up": None if self.looked_up is None else iso(self.looked_up.at),
            "unreachable": None if self.unreachable is None else self.unreachable.as_json(),
            "paused": None if self.paused is None else {"pattern": self.paused.pattern, **self.paused.pause.as_json()},
            "access": self.access,
            "waits_for_login": self.waits or None,
            "proxy": self.proxy,
            "seen_on": list(self.seen_on),
            "rendering": None if self.rendering is None else self.rendering.as_json(),
            "start_url": self.start_url or None,
            "excluded_extensions": list(self.excluded_extensions),
            "named_by": list(self.named_by),
            "state": None if self.known is None else self.known.as_json(),
        }


def explain(question: Question, collection: Collection, *, space: CrawlSpace, store: Store | None, clock: Clock) -> Explanation:
    """Return the decision for a URL, and its stored state. `store` is None for a collection that was never crawled.

    Raises UsageError for an invalid address or page.
    """
    page = _page(question.page, store, collection.url_folding)
    url, decision = space.decide(question.url, base=page.base, base_host_as_written=page.host_as_written)
    url_text = printable(question.url, most=MESSAGE)
    if url is None:
        seen = [] if store is None else seen_on(None, question.url, space=space, store=store)
        return Explanation(url_text, None, decision, question.depth, Source.INDEX_FOLLOW, 0, None, seen_on=_pages(seen))
    state = None if store is None else store.get(url.text)
    if state is not None and state.host_as_written and question.url == url.text:
        # the crawl checks a known URL with the host as written in the link
        url = parse(url.text, host_as_written=state.host_as_written, routes=True)
        decision = space.decide_static(url)
    places = [start.where for start in collection.start_urls if start.url.text == url.text]
    start = 0 if places else None
    seen = [] if store is None else seen_on(url, question.url, space=space, store=store)
    depth = _first(question.depth, start, page.depth, None if state is None else state.depth, *(link.depth for link in seen))
    decision = space.at_depth(decision, depth)
    unchecked: list[str] = []
    if depth is None and space.limits.max_link_depth is not None:
        unchecked.append("the link depth (give one with --depth or --from)")
    if url.scheme in DEFAULT_PORTS:
        case = _Case(question, space, store, url, unchecked.append, collection=collection, clock=clock, state=state)
        by_address = _leave_out_address if collection.proxies.has(url) else _check_address
        for check in (_check_host_limit, _check_robots, by_address, _check_type):
            decision = _then(decision, check(case))
    source, shift = _queue(url, decision, collection, state=state, page=page)
    return Explanation(
        url_text,
        url,
        decision,
        depth,
        source,
        shift,
        None if state is None or store is None else known(state, store),
        tuple(unchecked),
        added_by(decision.actions, None if state is None else state.inherited) if decision.admitted else {},
        None if store is None else last_look_up(store, url.host),
        None if store is None else _unreachable(url, collection, store),
        None if store is None else pause_of(store.site_pauses(), url.site),
        _folded_from(question.url, page, url),
        _access(url, collection),
        "" if store is None else _waits(url, collection, store, now=clock.now()),
        _proxy(url, collection),
        () if decision.admitted else _pages(seen),
        rendering_of(url, decision.actions, collection, store) if decision.admitted else None,
        refreshing=refreshing(collection.refresh, store, now=clock.now()),
        start_url=next(iter(places), ""),
        excluded_extensions=_extensions(url, decision, space),
        named_by=() if store is None or state is None else tuple(named_by(store, state)),
    )


def _extensions(url: Url, decision: Decision, space: CrawlSpace) -> tuple[str, ...]:
    excluded = space.limits_of(url.host, url.port).exclude_extensions
    return tuple(sorted(excluded)) if decision.reason is Reason.EXTENSION else ()


def _folded_from(text: str, page: _Page, url: Url) -> str | None:
    try:
        written = parse(join(page.base, text) if page.base else text, routes=True)
    except MalformedUrl:
        return None
    return written.text if written.text != url.text else None


def _pages(seen: Sequence[SeenLink]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.printable_page for one in seen))


def _access(url: Url, collection: Collection) -> str:
    access = collection.sites.of(url.host, url.port).access
    return "" if access is None else access.sentence_for(url.scheme)


def _waits(url: Url, collection: Collection, store: Store, *, now: float) -> str:
    access = collection.sites.of(url.host, url.port).access
    return "" if access is None else why_urls_wait(store, access.pattern, now=now)


def _proxy(url: Url, collection: Collection) -> str:
    proxy = collection.proxies.of(url.scheme, url.host, url.port)
    return "" if proxy is None else proxy.sentence


def _unreachable(url: Url, collection: Collection, store: Store) -> SiteReport | None:
    sites = unreachable_sites(store, max_temporary_errors=collection.policy.max_temporary_errors, only=url.site)
    return sites[0] if sites else None


@dataclass(frozen=True, slots=True)
class _Page:
    """The page with the link; all fields are empty without one."""

    base: str = ""
    host_as_written: str | None = None
    depth: int | None = None
    redirected: bool = False


def _page(text: str | None, store: Store | None, folding: UrlFolding | None) -> _Page:
    if text is None:
        return _Page()
    try:
        url = parse(text, routes=True)
    except MalformedUrl as error:
        raise UsageError(f"{error}; give the page with the link as in --from http://www.example.com/") from error
    state = None if store is None else find_url(store, url, folding)
    if state is None:
        return _Page(url.text, url.host_as_written)
    redirected = state.state is State.REDIRECTED  # a redirect's target has the depth of the page itself
    return _Page(url.text, state.host_as_written or url.host_as_written, state.depth + (not redirected), redirected)


def _queue(url: Url, decision: Decision, collection: Collection, *, state: UrlState | None, page: _Page) -> tuple[Source, int]:
    """Return the source and shift of the URL's queue, present or future."""
    if state is not None:
        return state.source, state.shift
    for start in collection.start_urls:
        if start.url.text == url.text:
            return Source.USER, start.shift or decision.shift
    return Source.REDIR if page.redirected else source_of(index=decision.index, follow=decision.follow), decision.shift


def explain_by_rules(question: Question, *, space: CrawlSpace, start_urls: Sequence[str]) -> Explanation:
    """Return the decision for a URL where there is no collection, as with the add-on. Raises UsageError as `explain` does."""
    page = _page(question.page, None, None)
    url, decision = space.decide(question.url, base=page.base, base_host_as_written=page.host_as_written)
    url_text = printable(question.url, most=MESSAGE)
    if url is None:
        return Explanation(url_text, None, decision, None, Source.INDEX_FOLLOW, 0, None)
    unchecked: list[str] = []
    if url.scheme in DEFAULT_PORTS:
        case = _RuleCase(question, space, None, url, unchecked.append)
        for check in (_check_address, _check_type):
            decision = _then(decision, check(case))
    source = Source.USER if url.text in start_urls else source_of(index=decision.index, follow=decision.follow)
    fields = added_by(decision.actions, None) if decision.admitted else {}
    extensions = _extensions(url, decision, space)
    return Explanation(
        url_text, url, decision, None, source, decision.shift, None, tuple(unchecked), fields, excluded_extensions=extensions
    )


@dataclass(frozen=True, slots=True)
class _RuleCase:
    question: Question
    space: CrawlSpace
    store: Store | None
    url: Url
    leave_out: Callable[[str], None]
    """Records a check that cannot be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case(_RuleCase):
    collection: Collection
    clock: Clock
    state: UrlState | None


def _check_host_limit(case: _Case) -> Decision | None:
    """Check the limit as at admission: it applies to an unknown URL, or a known and excluded one."""
    url = case.url
    most = case.collection.sites.of(url.host, url.port).limits.max_urls_per_host
    if most is None:
        return None
    has = 0 if case.store is None else case.store.host_count(url.host)
    if case.state is None and case.store is not None:
        has += kept_out(case.store)[url.host]
    is_in = case.state is not None and case.state.status not in OUT_OF_SPACE
    return _single(Reason.URLS_PER_HOST, refused=not is_in and has >= most)


def _check_robots(case: _Case) -> Decision | None:
    """Check the robots.txt read last, of any age, because it is not read again here."""
    if not case.collection.robots_obey:
        return None
    answer = RobotsVerdict.UNKNOWN
    if case.store is not None:
        robots = Robots(
            case.store,
            clock=case.clock,
            user_agent=case.collection.robots_agent,
            ttl_s=math.inf,
            own_agent=lambda site: case.collection.sites.at(site).user_agent,
        )
        answer = robots.check(case.url.text, site=case.url.site)
    if answer is RobotsVerdict.UNKNOWN:
        case.leave_out("robots.txt (not read yet)")
        return None
    return _single(Reason.ROBOTS, refused=answer is RobotsVerdict.FORBIDDEN)


def _check_address(case: _RuleCase) -> Decision | None:
    address = case.question.address
    known = last_look_up(case.store, case.url.host) if address is None and case.store is not None else None
    if known is not None:  # one allowed address is enough
        return of_all_addresses([case.space.at_connect(case.url.host, case.url.port, one) for one in known.addresses])
    if address is None and not is_address(case.url.host):
        case.leave_out("the host's address (give one with --address)")
        return None
    if address is not None and not is_address(address):
        raise UsageError(f"{quoted(address)} is not an IP address; give one as in --address 10.0.0.7 or --address 2001:db8::7")
    return case.space.at_connect(case.url.host, case.url.port, address or case.url.host)


def _leave_out_address(case: _RuleCase) -> None:
    case.leave_out("the host's address (its proxy looks it up)")


def _check_type(case: _RuleCase) -> Decision | None:
    if case.question.mime is None:
        case.leave_out("the document type (give one with --mime)")
        return None
    return case.space.at_headers(case.question.mime, site=case.url.site)


def _single(reason: Reason, *, refused: bool) -> Decision:
    step = Step(reason, Verdict.REFUSE if refused else Verdict.PASS)
    return Decision(reason if refused else Reason.ADMITTED, None, (step,))


def _then(first: Decision, second: Decision | None) -> Decision:
    """Combine two decisions: the first refusal is the reason."""
    if second is None:
        return first
    trace = (*first.trace, *second.trace)
    if not first.admitted:
        return replace(first, trace=trace)
    if second.admitted:
        return replace(first, rule=first.rule or second.rule, trace=trace)
    return replace(first, reason=second.reason, rule=second.rule, trace=trace)


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _place(rule: RuleRef | None) -> str | None:
    return None if rule is None else str(rule)
