"""Findings across collections.

Hosts that two of them crawl for one index or one global crawl space, hosts of the global crawl space that none crawls, hosts
crawled outside it, and differing copies of its rules.

A collection crawls a host if its domain rules admit it, and one of them names it (`*` alone names none), or a start URL or a URL
in the store has it. So `allow domain *` gives no warning for every host of the other collections.

Files of global rules with the same rules are one global crawl space, whatever their comments and blank lines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import NamedTuple

from crawlspace.config.collection import Collection
from crawlspace.config.files import GLOBAL_RULES, StartUrl
from crawlspace.lint.finding import Finding, of_setting
from crawlspace.private_files import real_path
from crawlspace.rules.crawl_rules import DomainRule, RuleAction
from crawlspace.rules.domain import DomainMatcher
from crawlspace.state.store import Store
from crawlspace.status import Status
from crawlspace.text import printable, quoted
from crawlspace.urls import DEFAULT_PORTS

MOST_LEFT = 100_000
"""Maximal URLs with status 761 read for hosts that a collection has given up."""
SHOWN = 3
"""Hosts named in a finding; the others are counted."""

Host = tuple[str, int]
"""Host and port."""


@dataclass(frozen=True, slots=True)
class CollectionHosts:
    """A collection with the hosts in its store: those of pending or due URLs, and those given up (761)."""

    collection: Collection
    hosts: frozenset[Host] = frozenset()
    given_up: frozenset[Host] = frozenset()


def collection_hosts(collection: Collection, store: Store | None) -> CollectionHosts:
    """Read a collection's hosts from its store; the time depends on the number of sites, and of URLs with 761."""
    if store is None:
        return CollectionHosts(collection)
    hosts = {_host(site.site) for site in store.sites() if site.pending or site.due}
    given_up: set[Host] = set()
    if store.counts().by_status.get(Status.EXCLUDED_HERE):
        given_up = {_host(state.site) for state in islice(store.urls(status=Status.EXCLUDED_HERE), MOST_LEFT)}
    return CollectionHosts(collection, frozenset(hosts), frozenset(given_up))


def lint_collections(found: Sequence[CollectionHosts], *, complete: bool = True) -> Iterator[Finding]:
    """Yield the findings across collections; files are named with their collection.

    `complete`: no collection is missing, so hosts that none crawls can be reported.
    """
    spaces = [_Space(one) for one in found]
    ports = _ports(spaces)
    twice, reported = _crawled_twice(spaces, ports)
    yield from _start_urls_twice(found, reported)
    yield from twice
    yield from _differing_copies(spaces)
    yield from _shared_indexes(spaces)
    yield from _outside_global_space(spaces, ports)
    if complete:
        yield from _uncrawled(spaces, ports)


def with_collection(finding: Finding, folder: Path, global_file: Path | None) -> Finding:
    """Return a finding with its collection before its file."""
    if finding.file == folder.name or (finding.code in _ALSO_OUTSIDE and finding.file != "settings.py"):
        return finding
    if global_file is not None and finding.file == global_file.name:
        return replace(finding, file=_shown(global_file, folder))
    return replace(finding, file=f"{folder.name}/{finding.file}")


_ALSO_OUTSIDE = frozenset({"no-effect", "misspelt-setting", "set-twice", "spider"})
"""Codes of findings that may be in a file of the project, or on the command line."""


class _Place(NamedTuple):
    """A place in a file; line 0 if only the collection is known."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class _Space:
    """The hosts that a collection crawls."""

    def __init__(self, found: CollectionHosts) -> None:
        collection = found.collection
        self.name = collection.name
        self.found = found
        self.domain = collection.rules.domain
        self.index = real_path(collection.index_file)
        self.server_indexes = [index for one in collection.sinks.servers if (index := one.server_index)]
        self.global_file = None if collection.global_file is None else real_path(collection.global_file)
        self.global_rules = None if collection.global_rules is None else collection.global_rules.domain
        self.global_space = None if self.global_rules is None else tuple(map(_meaning, self.global_rules))
        self.starts: dict[Host, StartUrl] = {}
        for start in collection.start_urls:
            self.starts.setdefault((start.url.host, start.url.port), start)
        self._start_hosts = {host for host, _ in self.starts}
        limits = collection.limits
        self._to_start_hosts = limits.index_entire_site or not limits.follow_offsite_links
        self._matcher = DomainMatcher(self.domain, case_sensitive=collection.host_case_sensitive)

    def crawls(self, host: Host) -> bool:
        if self._to_start_hosts and host[0] not in self._start_hosts:
            return False
        rule = self._matcher.match(*host)
        if rule is not None and rule.action is RuleAction.FORBID:
            return False
        return (rule is not None and not rule.catch_all) or host in self.starts or host in self.found.hosts

    def admitting_place(self, host: Host) -> _Place:
        """Return the place of the rule that names a host it crawls, or else of its start URL."""
        rule = self._matcher.match(*host)
        start = self.starts.get(host)
        if start is not None and (rule is None or rule.catch_all):
            return _place_of(self.name, start)
        if rule is not None:
            return _Place(f"{self.name}/{rule.ref.file}", rule.ref.line, rule.column)
        return _Place(self.name)

    def shares_with(self, other: _Space) -> bool:
        """Return whether the documents of both are in one index, or both share a global crawl space."""
        return self.index == other.index or self.in_global_space_of(other)

    def server_index_with(self, other: _Space) -> str:
        """Return an index on a server that both write to; empty if there is none."""
        return next((index for index in self.server_indexes if index in other.server_indexes), "")

    def in_global_space_of(self, other: _Space) -> bool:
        return self.global_space is not None and self.global_space == other.global_space

    def global_place(self, rule: DomainRule | None) -> _Place:
        """Return the place of a rule of its global space; the file alone for None."""
        file = _shown(self.global_file or Path(GLOBAL_RULES), self.found.collection.folder)
        return _Place(file) if rule is None else _Place(file, rule.ref.line, rule.column)


def _ports(spaces: Sequence[_Space]) -> dict[str, set[int]]:
    """Return the hosts that the collections name or know, each with its ports; without a port, a rule means both default ones."""
    ports: defaultdict[str, set[int]] = defaultdict(set)
    for space in spaces:
        for host, port in (*space.starts, *space.found.hosts):
            ports[host].add(port)
        for rule in _naming(space.domain):
            ports[rule.host].update(_ports_of(rule))
    return dict(ports)


def _crawled_twice(spaces: Sequence[_Space], ports: dict[str, set[int]]) -> tuple[list[Finding], set[tuple[str, str, str]]]:
    """Return findings for hosts that two collections crawl, and (first collection, second one, host) for each."""
    hosts: defaultdict[tuple[str, _Place, _Place, str], list[str]] = defaultdict(list)
    reported: set[tuple[str, str, str]] = set()
    for host in sorted((name, port) for name, of_host in ports.items() for port in of_host):
        crawling = [space for space in spaces if space.crawls(host)]
        for number, second in enumerate(crawling):
            earlier = crawling[:number]
            first = next((space for space in earlier if space.shares_with(second)), None) or next(
                (space for space in earlier if space.server_index_with(second)), None
            )
            if first is not None and (first.name, second.name, host[0]) not in reported:
                reported.add((first.name, second.name, host[0]))
                on_server = "" if first.shares_with(second) else first.server_index_with(second)
                hosts[first.name, first.admitting_place(host), second.admitting_place(host), on_server].append(_written(host))
    findings = []
    for (first_name, first_place, place, on_server), names in hosts.items():
        what_follows = (
            f"and both write to the index {on_server}: collections may share it, but a document belongs to the one that pushed it last, so "
            "that these change hands with each crawl"
            if on_server
            else "so that each refreshes and deletes documents of the other"
        )
        message = (
            f"{_listed(names)}: crawled by {first_name} too ({first_place}), {what_follows}; forbid the host in one of the two"
        )
        findings.append(Finding(place.file, place.line, place.column, "warning", "crawled-twice", message))
    return sorted(findings, key=lambda one: (one.file, one.line, one.message)), reported


def _start_urls_twice(found: Sequence[CollectionHosts], reported: set[tuple[str, str, str]]) -> Iterator[Finding]:
    first: dict[str, tuple[str, _Place]] = {}
    for collection in (one.collection for one in found):
        for start in collection.start_urls:
            place = _place_of(collection.name, start)
            name, there = first.setdefault(start.url.text, (collection.name, place))
            if name != collection.name and (name, collection.name, start.url.host) not in reported:
                message = (
                    f"{printable(start.url.text)} is a start URL of another collection too ({there}), so it is crawled twice"
                )
                yield Finding(place.file, place.line, place.column, "warning", "start-url-twice", message)


def _differing_copies(spaces: Sequence[_Space]) -> Iterator[Finding]:
    """Yield copies of global.rules in the collections' folders, or their parent, whose rules differ from the first one's."""
    copies: dict[Path, _Space] = {}
    for space in spaces:
        if space.global_file is not None and _is_copy(space.found.collection):
            copies.setdefault(space.global_file, space)
    # the one in the parent of the collections is the original
    ordered = sorted(copies.values(), key=lambda one: "/" in one.global_place(None).file)
    for space in ordered[1:]:
        first = ordered[0]
        if space.in_global_space_of(first):
            continue
        rules = zip_longest(space.global_rules or (), first.global_rules or ())
        own, its = next((own, its) for own, its in rules if own is None or its is None or _meaning(own) != _meaning(its))
        place = space.global_place(own)
        message = (
            f"{_rule_or_end(own)} here, {_rule_or_end(its)} in {first.global_place(its)}: these copies of {GLOBAL_RULES} are one global crawl "
            "space only with the same rules in the same order; make them equal, or keep one in the folder of the collections (where two "
            "global crawl spaces are meant, name the other one's file with CRAWLSPACE_GLOBAL_RULES)"
        )
        yield Finding(place.file, place.line, place.column, "warning", "global-differs", message)


def _is_copy(collection: Collection) -> bool:
    """Return whether its global rules were found by the file's name, in its folder or the parent."""
    file, folder = collection.global_file, real_path(collection.folder)
    return file is not None and file.name == GLOBAL_RULES and real_path(file.parent) in {folder, folder.parent}


def _meaning(rule: DomainRule) -> tuple[str, str]:
    return rule.action.value, rule.target


def _rule_or_end(rule: DomainRule | None) -> str:
    return "no further rule" if rule is None else quoted(rule.ref.text)


def _shared_indexes(spaces: Sequence[_Space]) -> Iterator[Finding]:
    """Yield collections that share an index but not the global rules that assign hosts to them."""
    first: dict[Path, _Space] = {}
    for space in spaces:
        other, collection = first.setdefault(space.index, space), space.found.collection
        if other is space or space.in_global_space_of(other):
            continue
        message = (
            f"the index {collection.index_file} is {other.name}'s too, and the two have no global.rules in common, so that a host moved "
            "from one to the other loses its documents; put one global.rules into the folder of the collections"
        )
        found = of_setting(collection.folder, "CRAWLSPACE_SINKS", "index-shared", message)
        yield replace(found, file=f"{collection.name}/{found.file}" if found.line else collection.name)


def _uncrawled(spaces: Sequence[_Space], ports: dict[str, set[int]]) -> Iterator[Finding]:
    """Yield hosts that a global crawl space allows and no collection crawls: those its rules name, and those crawled earlier."""
    seen: set[tuple[tuple[str, str], ...]] = set()
    for space in spaces:
        rules = space.global_rules
        if rules is None or space.global_space is None or space.global_space in seen:
            continue
        seen.add(space.global_space)
        matcher = DomainMatcher(rules, case_sensitive=space.found.collection.host_case_sensitive)
        named = {(rule.host, port) for rule in _naming(rules) for port in _ports_of(rule)}
        known = {host for one in spaces for host in (*one.found.hosts, *one.found.given_up)}
        hosts: defaultdict[DomainRule, list[str]] = defaultdict(list)
        for host in sorted(named | known):
            rule = matcher.match(*host)
            if rule is None or rule.action is RuleAction.FORBID or any(one.crawls(host) for one in spaces):
                continue
            # For a rule without a port, a collection that crawls the host on another port is enough.
            if (
                host in named
                and host not in known
                and any(one.crawls((host[0], p)) for one in spaces for p in _others(host, ports))
            ):
                continue
            if _written(host) not in hosts[rule]:
                hosts[rule].append(_written(host))
        for rule, names in sorted(hosts.items(), key=lambda one: one[0].ref.line):
            message = (
                f"{_listed(names)}: allowed by {quoted(rule.ref.text)} and crawled by no collection, so that documents would stay in the "
                "index unrefreshed; let a collection crawl the host, or forbid it here"
            )
            yield Finding(space.global_place(None).file, rule.ref.line, rule.column, "warning", "global-uncrawled", message)


def _outside_global_space(spaces: Sequence[_Space], ports: dict[str, set[int]]) -> Iterator[Finding]:
    """Yield hosts that a collection crawls (by a rule, start URL or known URL) and its global crawl space does not allow."""
    for space in spaces:
        if space.global_rules is None:
            continue
        hosts: defaultdict[_Place, list[str]] = defaultdict(list)
        for host in sorted(_crawled_outside(space, space.global_rules, ports)):
            named = hosts[space.admitting_place(host)]
            if _written(host) not in named:
                named.append(_written(host))
        for place, names in sorted(hosts.items()):
            message = (
                f"{_listed(names)}: crawled by {space.name} and not allowed by {space.global_place(None).file}, so that documents would leave "
                "the index if the host were moved to another collection; allow the host there, or forbid it here"
            )
            yield Finding(place.file, place.line, place.column, "warning", "outside-global", message)


def _crawled_outside(space: _Space, rules: Sequence[DomainRule], ports: dict[str, set[int]]) -> set[Host]:
    matcher = DomainMatcher(rules, case_sensitive=space.found.collection.host_case_sensitive)

    def is_allowed(host: Host) -> bool:
        rule = matcher.match(*host)
        return rule is not None and rule.action is RuleAction.ALLOW

    global_ports: defaultdict[str, set[int]] = defaultdict(set)
    for rule in _naming(rules):
        global_ports[rule.host].update(_ports_of(rule))
    hosts = {*space.starts, *space.found.hosts}
    for rule in _naming(space.domain):
        if rule.port is not None:
            hosts.add((rule.host, rule.port))
        # For a rule without a port, it is enough that the global crawl space allows the host on any port.
        elif not any(is_allowed((rule.host, port)) for port in _others((rule.host, 0), ports) | global_ports[rule.host]):
            hosts.update((rule.host, port) for port in _ports_of(rule))
    return {host for host in hosts if space.crawls(host) and not is_allowed(host)}


def _others(host: Host, ports: dict[str, set[int]]) -> set[int]:
    return {*DEFAULT_PORTS.values(), *ports.get(host[0], ())}


def _naming(rules: Iterable[DomainRule]) -> Iterator[DomainRule]:
    """Return the rules that allow one host."""
    return (rule for rule in rules if rule.action is RuleAction.ALLOW and "*" not in rule.host)


def _ports_of(rule: DomainRule) -> Iterable[int]:
    return DEFAULT_PORTS.values() if rule.port is None else (rule.port,)


def _host(site: str) -> Host:
    host, _, port = site.rpartition(":")
    return host, int(port)


def _written(host: Host) -> str:
    return host[0] if host[1] in DEFAULT_PORTS.values() else f"{host[0]}:{host[1]}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _place_of(name: str, start: StartUrl) -> _Place:
    file, _, line = start.where.rpartition(":")
    return _Place(f"{name}/{file}", int(line), 1)


def _shown(global_file: Path, folder: Path) -> str:
    """Return the name of a global.rules: with its collection if it belongs to one, alone if it is in their parent."""
    base, where = real_path(folder.parent), real_path(global_file.parent) / global_file.name
    return where.relative_to(base).as_posix() if where.is_relative_to(base) else str(global_file)
