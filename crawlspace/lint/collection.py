"""All findings about a collection's files: errors, without stopping at the first, and warnings about valid files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from crawlspace.config.access import HEADERS, default_headers
from crawlspace.config.collection import Collection, configured, refuse_unknown_names
from crawlspace.config.content import check_converters
from crawlspace.config.files import (
    AllRules,
    read_action_rules,
    read_extraction_rules,
    read_global_rules,
    read_rule_tests,
    read_rules,
    read_start_urls,
    refuse_what_is_not_read,
)
from crawlspace.config.limits import EXTENSIONS, read_extensions
from crawlspace.config.proxies import Proxies
from crawlspace.config.refresh import CYCLE, SCHEDULE, SMART
from crawlspace.config.sentences import read_with_defaults
from crawlspace.config.sites import NAME as SITES
from crawlspace.config.sites import RENDER, RENDER_HOSTS, WAIT_FOR, SiteTable
from crawlspace.content.extraction_rules import NO_RULES
from crawlspace.crawl.inherited_metadata import MAX_INHERITED
from crawlspace.crawl.startup import build_space
from crawlspace.decision import Render, RuleRef
from crawlspace.errors import ConfigError, SettingError
from crawlspace.lint.crawl_rules import lint_rules, lint_start_urls
from crawlspace.lint.expressions import lint_expressions
from crawlspace.lint.finding import Finding, Level, findings_of, of_setting
from crawlspace.lint.rules_xml import Usage, lint_action_rules, lint_values
from crawlspace.rules.crawl_rules import CrawlRules, DomainRule, PrefixRule, RuleAction
from crawlspace.rules.rule_tests import failed_tests
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.xml.model import ActionKind, ActionRuleSet
from crawlspace.state.store import Store
from crawlspace.text import quoted
from crawlspace.urls import DEFAULT_PORTS, Url, parse

_NO_LITERAL = "write env:NAME for a variable of the environment, or file:PATH for a file that has it"
MOST_URLS = 100_000
"""Maximal known URLs for finding rules that decided none of them; more would take minutes."""

T = TypeVar("T")


def lint_collection(
    folder: Path,
    settings: Mapping[str, object],
    defaults: Mapping[str, object],
    *,
    store: Store | None,
) -> tuple[list[Finding], Collection | None]:
    """Return the findings of a collection by file and line, and its configuration if that is valid.

    `settings` are the collection's, `defaults` the values of unset ones.
    """
    errors: list[ConfigError] = []

    def attempt(read: Callable[[], T]) -> T | None:
        try:
            return read()
        except ConfigError as error:
            errors.append(error)
            return None

    known = dict(settings)
    for setting in settings:
        try:
            refuse_unknown_names([setting])
        except SettingError as error:
            errors.append(error)
            del known[setting]
    own = attempt(lambda: read_rules(folder)) or (CrawlRules(), None)
    actions = attempt(lambda: read_action_rules(folder, {**defaults, **known}))
    attempt(lambda: refuse_what_is_not_read(own[0], actions, {**defaults, **known}))
    global_rules = attempt(lambda: read_global_rules(folder, known)) or (None, None)
    extraction = attempt(lambda: read_extraction_rules(folder)) or NO_RULES
    tests = attempt(lambda: read_rule_tests(folder)) or ()
    start_urls = attempt(lambda: read_start_urls(folder, known)) or ()
    rules = AllRules(*own, *global_rules, actions, extraction, tests)
    read = attempt(lambda: read_with_defaults(lambda some: configured(folder, some, rules, start_urls), known, defaults))
    collection, faulty = read or (None, [])
    errors += faulty
    if collection is not None:
        if collection.on_finish is not None:
            attempt(collection.on_finish.check)
        attempt(partial(check_converters, collection.files))
    if errors:
        collection = None
    found = [finding for error in errors for finding in findings_of(error, folder)]
    if collection is not None:
        found += _of_settings(collection, known, store)
        found += _of_rules(collection, store)
    return sorted(dict.fromkeys(found), key=lambda one: one.order), collection


def _of_settings(collection: Collection, settings: Mapping[str, object], store: Store | None) -> Iterator[Finding]:
    """Yield the findings about valid settings."""
    folder = collection.folder
    of_headers = collection.credential_hosts.warning([header for header, _ in default_headers(settings)])
    for setting, warning in ((HEADERS, of_headers), (_HTTP_PASSWORD, _http_auth_warning(settings))):
        if warning is not None:
            yield of_setting(folder, setting, "credential-header", warning)
    for message in read_extensions(settings).warnings():
        yield of_setting(folder, EXTENSIONS, "extension-without-effect", message)
    starts, sites = [start.url for start in collection.start_urls], collection.sites
    for extensions in (one.own_extensions for one in sites.settings if one.own_extensions is not None):
        for message in extensions.warnings():
            yield of_setting(folder, SITES, "extension-without-effect", message)
    yield from lint_access(folder, sites, starts, keeps_sessions=collection.seal.keeps)
    yield from lint_proxies(folder, collection.proxies, list(_sites(collection, store)))
    yield from lint_rendering(collection)
    yield from lint_refresh(collection)


def _sites(collection: Collection, store: Store | None) -> Iterator[tuple[str, int]]:
    """Yield host and port of the start URLs, of hosts that domain rules allow by name, and of known sites."""
    for start in collection.start_urls:
        yield start.url.host, start.url.port
    for rule in collection.rules.domain:
        if rule.action is RuleAction.ALLOW and "*" not in rule.host:
            for port in DEFAULT_PORTS.values() if rule.port is None else (rule.port,):
                yield rule.host.lower(), port
    for known in store.sites() if store is not None else ():
        host, _, number = known.site.rpartition(":")
        yield host, int(number)


def lint_access(folder: Path, sites: SiteTable, starts: Sequence[Url], *, keeps_sessions: bool = True) -> Iterator[Finding]:
    """Yield the findings about the log-ins and headers of CRAWLSPACE_SITES."""
    accesses = sites.accesses
    if not keeps_sessions and any(access.session is not None for access in accesses):
        yield of_setting(
            folder,
            SITES,
            "no-session-key",
            "CRAWLSPACE_SESSION_KEY is not set: the shared store keeps no sessions, and each worker logs in for itself in each run",
        )
    for access in accesses:
        for where in access.literals():
            yield of_setting(folder, SITES, "literal-secret", f"{where} is a secret itself; {_NO_LITERAL}", level="error")
        own = [start for start in starts if sites.of(start.host, start.port).access is access]
        if not own:
            message = f"{access.where} matches no start URL: is its host spelt as in start_urls.txt?"
            yield of_setting(folder, SITES, "unused-login", message)
        if not access.logs_in:
            continue
        if access.allow_plain_http:
            message = f"{access.where} allows plain http: whoever is on the way can read what is sent ({access.sentence})"
            yield of_setting(folder, SITES, "plain-login", message)
        elif plain := [start.text for start in own if start.scheme != "https"]:
            message = f"{plain[0]} is requested without what {access.where} has: that goes over https only"
            yield of_setting(folder, SITES, "plain-login", message)


def lint_proxies(folder: Path, proxies: Proxies, sites: Sequence[tuple[str, int]]) -> Iterator[Finding]:
    """Yield the findings about proxies. `sites`: host and port of those that are crawled, as far as known."""
    for proxy in proxies.configured():
        for where in proxy.literals():
            yield _of_value(folder, where, "literal-secret", f"has a password itself; {_NO_LITERAL}", level="error")
    configured = [proxy.where for proxy in proxies.configured()]
    if configured and not proxies.is_on:
        message = (
            f"HTTPPROXY_ENABLED is False, which switches off all proxies: {', '.join(configured)} and those of the environment"
        )
        yield of_setting(folder, configured[0].partition("[")[0], "proxies-off", message)
    for no_proxy, has_proxy in proxies.exceptions():
        if not has_proxy:
            why = "has no effect, because there is no proxy that its hosts could be exempt from"
            yield _of_value(folder, no_proxy.where, "unused-no-proxy", why)
            continue
        for entry in no_proxy.unused(sites):
            why = f"has {quoted(entry)}, which matches no start URL, no host that a rule allows, and no known site"
            yield _of_value(folder, no_proxy.where, "unused-no-proxy", why)


def _of_value(folder: Path, where: str, code: str, what: str, *, level: Level = "warning") -> Finding:
    """Return a finding about a setting, or a part of one such as `CRAWLSPACE_SITES['a.example']`, of which `what` is said."""
    return of_setting(folder, where.partition("[")[0], code, f"{where} {what}", level=level)


def lint_rendering(collection: Collection) -> Iterator[Finding]:
    """Yield the settings and rules about rendering that have no effect."""
    by_rules = collection.action_rules is not None and collection.action_rules.renders
    of_routes = collection.sites.routes_without_effect(rendered_by_rules=by_rules)
    for setting, what, why in (*_rendering_of_collection(collection), *_rendering_of_sites(collection), *of_routes):
        yield of_setting(collection.folder, setting, "render-without-effect", f"{what} has no effect: {why}")
    yield from _rendering_by_rules(collection)


def _rendering_of_collection(collection: Collection) -> Iterator[tuple[str, str, str]]:
    """Yield the setting at fault, what has no effect, and why."""
    default = collection.sites.default.rendering
    for setting, value in ((RENDER_HOSTS, default.hosts), (WAIT_FOR, default.wait_for)):
        if value and not collection.renders:
            yield setting, setting, f"no page is rendered; {RENDER} has them rendered"


def _rendering_of_sites(collection: Collection) -> Iterator[tuple[str, str, str]]:
    by_rules = collection.action_rules is not None and collection.action_rules.renders
    default = collection.sites.default.rendering
    for pattern, settings in collection.sites.by_pattern.items():
        own, where = settings.rendering, f"{SITES}[{quoted(pattern)}]"
        if own.sets_mode and own.mode is default.mode:
            yield SITES, f"{where}['render']", f"{RENDER} is {own.mode.value}, too"
        if own.mode is Render.NEVER and not by_rules:
            for key, is_set in (("render_hosts", own.sets_hosts), ("render_wait_for", own.wait_for != default.wait_for)):
                if is_set:
                    yield SITES, f"{where}[{quoted(key)}]", "no page of this site is rendered; 'render' has them rendered"


def _rendering_by_rules(collection: Collection) -> Iterator[Finding]:
    """Yield the actions that keep pages from being rendered where none is."""
    if collection.action_rules is None or collection.renders:
        return
    for rule in collection.action_rules.rules.rules:
        for action in rule.actions:
            if action.mode is Render.NEVER:
                message = f"'Render never' of {quoted(rule.ref.text)} has no effect: no page is rendered anyway"
                yield Finding(rule.ref.file, action.line, action.column, "warning", "xml-render-without-effect", message)


def lint_refresh(collection: Collection) -> Iterator[Finding]:
    """Yield the settings after which pages are not fetched again, or which have no effect."""
    times = collection.refresh
    if collection.sites.longest_refresh_s and not times.has_due_times:
        message = (
            f"refresh_min and refresh_max of single sites have no effect, because {SMART} is False: no page is due by its age"
        )
        yield of_setting(collection.folder, SITES, "refresh", message)
    if not times.is_ever:
        message = (
            f"{SMART} is False, and there is neither {SCHEDULE} nor {CYCLE}: pages that were fetched are not fetched again, except those that"
            " failed; the index will have them as they were"
        )
    elif not times.due_by_age and times.cycle is not None:
        message = f"{SMART} has no effect: with {CYCLE} everything known is fetched once in each cycle"
    else:
        return
    yield of_setting(collection.folder, SMART, "refresh", message)


def _of_rules(collection: Collection, store: Store | None) -> Iterator[Finding]:
    """Yield the findings about valid rules and start URLs."""
    case, proxied = collection.host_case_sensitive, collection.proxies.sentence
    accepts_all = collection.action_rules is None or collection.action_rules.accept
    yield from lint_rules(
        collection.rules,
        collection.limits,
        host_case_sensitive=case,
        proxied=proxied,
        accepts_all=accepts_all,
        of_addresses=collection.named_hosts_any_address,
    )
    space = build_space(collection)
    for failed in failed_tests(collection.rule_tests, space):
        yield Finding(failed.file, failed.line, failed.column, "error", "rule-test", failed.message)
    places = [start.where.rpartition(":") for start in collection.start_urls]
    yield from lint_start_urls(
        space,
        [start.url for start in collection.start_urls],
        [RuleRef(file, int(line), "") for file, _, line in places],
    )
    if collection.global_rules is not None:
        yield from _global_warnings(collection, collection.global_rules)
    if collection.action_rules is not None:
        yield from lint_action_rules(collection.action_rules.rules, accept=collection.action_rules.accept)
        yield from lint_values(collection.action_rules.rules)
        yield from lint_expressions(collection.action_rules.rules)
        if collection.metadata_along_links:
            yield from _too_long_to_inherit(collection.action_rules.rules)
    if store is not None:
        yield from _unused_rules(collection, store)


def _too_long_to_inherit(rules: ActionRuleSet) -> Iterator[Finding]:
    for rule in rules.rules:
        for action in rule.actions:
            if action.kind is ActionKind.ADD_META and len(action.name) + len(action.value) > MAX_INHERITED:
                message = (
                    f"the field {quoted(action.name)} is not inherited along links: it has {len(action.value):,} characters, and all that a page "
                    f"passes on has {MAX_INHERITED:,} at most"
                )
                yield Finding(rule.ref.file, action.line, action.column, "warning", "xml-metadata-too-long", message)


def _global_warnings(collection: Collection, rules: CrawlRules) -> Iterator[Finding]:
    """Yield the findings that apply to global rules; a list without a final `forbid` ends in one anyway."""
    for finding in lint_rules(rules, collection.limits, host_case_sensitive=collection.host_case_sensitive):
        if finding.code in {"never-applies", "capitals-in-host"}:
            yield finding


def _unused_rules(collection: Collection, store: Store) -> Iterator[Finding]:
    """Yield allow rules that admitted none of the known URLs, and action rules without effect on them.

    Only when nothing is pending, because before that it means nothing.
    """
    by_state = store.counts().by_state
    total = sum(by_state.values())
    listed: tuple[DomainRule | PrefixRule, ...] = (*collection.rules.domain, *collection.rules.prefix)
    rules = [rule for rule in listed if rule.action is RuleAction.ALLOW]
    actions = collection.action_rules
    if not (rules or actions) or not 0 < total <= MOST_URLS or by_state.keys() & {"pending", "leased"}:
        return
    space = CrawlSpace(collection.rules, collection.limits, [], host_case_sensitive=collection.host_case_sensitive)
    unused = {rule.ref: rule for rule in rules}
    usage = Usage(actions.rules) if actions is not None else None
    for state in store.urls():
        url = parse(state.url, host_as_written=state.host_as_written)
        for step in space.decide_static(url).trace:
            if step.rule is not None:
                unused.pop(step.rule, None)
        if actions is not None and usage is not None:
            usage.see(actions.evaluate(url))
        elif not unused:
            return
    if usage is not None:
        yield from usage.findings()
    for ref, rule in unused.items():
        message = f"{quoted(ref.text)} has admitted none of the {total:,} known URLs"
        yield Finding(ref.file, ref.line, rule.column, "warning", "no-known-url", message)


_HTTP_PASSWORD = "HTTPAUTH_PASS"


def _http_auth_warning(settings: Mapping[str, object]) -> str | None:
    """Return a warning about the password of Scrapy's HTTPAUTH_ settings if it is for every host; else None."""
    if not settings.get(_HTTP_PASSWORD) or settings.get("HTTPAUTH_DOMAIN"):
        return None
    return (
        f"{_HTTP_PASSWORD} is sent to every host that a link leads to, because HTTPAUTH_DOMAIN is None or not set;"
        " name the domain that the password is for"
    )
