"""All errors and warnings about a collection's files, without stopping at the first."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from crawlspace.admin.lint_access import lint_access
from crawlspace.admin.lint_proxies import lint_proxies
from crawlspace.admin.lint_rendering import lint_rendering
from crawlspace.admin.refresh import lint_refresh
from crawlspace.config.access import HEADERS, HTTP_PASSWORD, default_headers, http_auth_warning
from crawlspace.config.collection import Collection, configured, refuse_unknown_names
from crawlspace.config.files import (
    AllRules,
    read_action_rules,
    read_global_rules,
    read_rules,
    read_start_urls,
    refuse_what_is_not_read,
)
from crawlspace.config.limits import EXTENSIONS, read_extensions
from crawlspace.config.sentences import read_with_defaults, setting_named, where_set
from crawlspace.config.sites import NAME as SITES
from crawlspace.crawl.inherited_metadata import MAX_INHERITED
from crawlspace.crawl.startup import build_space
from crawlspace.decision import RuleRef
from crawlspace.errors import ConfigError, RuleFileError, SettingError
from crawlspace.printable import quoted
from crawlspace.rules.crawl_rules import CrawlRules, DomainRule, PrefixRule, RuleAction
from crawlspace.rules.lint.action_rules import Usage, lint_action_rules
from crawlspace.rules.lint.crawl_rules import Finding, lint_rules, lint_start_urls
from crawlspace.rules.lint.expressions import lint_expressions
from crawlspace.rules.lint.values import lint_values
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.xml.model import ActionKind, ActionRuleSet
from crawlspace.state.store import Store
from crawlspace.urls import DEFAULT_PORTS, parse

MOST_URLS = 100_000
"""Maximal known URLs for finding rules that decided none of them; more would take minutes."""

T = TypeVar("T")


def review(
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
    start_urls = attempt(lambda: read_start_urls(folder, known)) or ()
    rules = AllRules(*own, *global_rules, actions)
    read = attempt(lambda: read_with_defaults(lambda some: configured(folder, some, rules, start_urls), known, defaults))
    collection, faulty = read or (None, [])
    errors += faulty
    if collection is not None and collection.on_finish is not None:
        attempt(collection.on_finish.check)
    if collection is not None:
        attempt(collection.files.check)
    if errors:
        collection = None
    found = dict.fromkeys(finding for error in errors for finding in findings_of(error, folder))
    if collection is not None:
        found.update(dict.fromkeys(_warnings(collection, store)))
        of_headers = collection.credential_hosts.warning([header for header, _ in default_headers(known)])
        for setting, warning in ((HEADERS, of_headers), (HTTP_PASSWORD, http_auth_warning(known))):
            if warning is not None:
                line, column = where_set(folder, setting)
                found[Finding("settings.py" if line else "settings", line, column, "warning", "credential-header", warning)] = (
                    None
                )
        line, column = where_set(folder, EXTENSIONS)
        for message in read_extensions(known).warnings():
            place = "settings.py" if line else "settings"
            found[Finding(place, line, column, "warning", "extension-without-effect", message)] = None
        line, column = where_set(folder, SITES)
        starts, sites = [start.url for start in collection.start_urls], collection.sites
        for level, code, message in lint_access(sites.accesses, starts, sites, keeps_sessions=collection.seal.keeps):
            found[Finding("settings.py" if line else "settings", line, column, level, code, message)] = None
        for level, code, where, message in lint_proxies(collection.proxies, _sites(collection, store)):
            line, column = where_set(folder, where.partition("[")[0])
            found[Finding("settings.py" if line else "settings", line, column, level, code, message)] = None
    return sorted(found, key=lambda one: (one.file, one.line, one.column, one.code)), collection


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


def findings_of(error: ConfigError, folder: Path) -> Iterator[Finding]:
    """Yield the findings of a ConfigError, with their places."""
    if isinstance(error, RuleFileError):
        for mistake in error.mistakes:
            yield Finding(mistake.file, mistake.line, mistake.column, "error", "syntax", mistake.message)
    elif isinstance(error, SettingError):
        setting = setting_named(error)
        line, column = where_set(folder, setting) if setting else (0, 0)
        yield Finding("settings.py" if line else "settings", line, column, "error", "setting", str(error))
    elif at := _AT_LINE.match(str(error)):
        yield Finding(Path(at["file"]).name, int(at["line"]), 1, "error", "setting", at["message"])
    else:
        yield Finding(folder.name, 0, 0, "error", "collection", str(error))


_AT_LINE = re.compile(r"(?P<file>.*settings\.py):(?P<line>\d+): (?P<message>.*)", re.DOTALL)


def _warnings(collection: Collection, store: Store | None) -> Iterator[Finding]:
    case, proxied = collection.host_case_sensitive, collection.proxies.sentence
    accepts_all = collection.action_rules is None or collection.action_rules.accept
    yield from lint_rules(collection.rules, collection.limits, host_case_sensitive=case, proxied=proxied, accepts_all=accepts_all)
    places = [start.where.rpartition(":") for start in collection.start_urls]
    yield from lint_start_urls(
        build_space(collection),
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
    yield from lint_rendering(collection)
    yield from lint_refresh(collection)
    if store is not None:
        yield from _without_effect(collection, store)


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


def _without_effect(collection: Collection, store: Store) -> Iterator[Finding]:
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
