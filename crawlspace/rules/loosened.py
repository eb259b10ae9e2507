"""Which checks of links admit more than before: from a description of all checks, which the store keeps from one start to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import msgspec

from crawlspace.decision import Reason
from crawlspace.rules.crawl_rules import CrawlRules, Rule, RuleAction
from crawlspace.rules.limits import Limits, folders
from crawlspace.rules.url_options import UrlFolding
from crawlspace.urls import Url

_FORMAT = 1
_MOST_ENTRIES = 5_000
"""A longer list is described by one hash, and any change of it counts as one that admits more."""
_NUMBERS = {
    Reason.URL_LENGTH: "max_url_length",
    Reason.PATH_DEPTH: "max_path_depth",
    Reason.REPEATED_SEGMENTS: "max_repeated_segments",
    Reason.LINK_DEPTH: "max_link_depth",
    Reason.URLS_PER_HOST: "max_urls_per_host",
    Reason.REDIRECTS: "redirects",
    Reason.PAGE_LINKS: "page_links",
}
"""Limits that admit more if they are larger, or None."""
_SWITCHES = {
    Reason.QUERY_STRING: ("follow_query_strings", True),
    Reason.OFFSITE: ("follow_offsite_links", True),
    Reason.OFFSITE_REDIRECT: ("follow_offsite_redirects", True),
    Reason.FOLDER: ("index_entire_site", False),
    Reason.ROBOTS: ("robots", False),
    Reason.NOINDEX: ("meta_robots", False),
}
"""Switches, and the value that admits all."""
_SETS = {
    Reason.SCHEME: ("schemes", False),
    Reason.MIME_TYPE: ("mime_types", False),
    Reason.EXTENSION: ("exclude_extensions", True),
    Reason.OFFSITE: ("hosts", False),
    Reason.FOLDER: ("folders", False),
}
"""Sets, and whether they have what is refused."""
_LISTS = {Reason.DOMAIN: "domain", Reason.PREFIX: "prefix"}
_HASHES = {
    Reason.ACTIONS: "accept",
    Reason.NOINDEX: "meta",
    Reason.PATH_DEPTH: "sites",
    Reason.QUERY_STRING: "sites",
    Reason.URLS_PER_HOST: "sites",
    Reason.EXTENSION: "site_extensions",
    Reason.MIME_TYPE: "site_types",
}
"""Any change of their text may admit more."""
_OPTIONAL = ("meta", "site_extensions", "site_types")
"""Of these, empty ones are left out."""
_FOLDINGS = {
    "folding": (
        Reason.URL_LENGTH,
        Reason.QUERY_STRING,
        Reason.PATH_DEPTH,
        Reason.REPEATED_SEGMENTS,
        Reason.PREFIX,
        Reason.ACTIONS,
        Reason.FOLDER,
    ),
    "hosts_folded": (Reason.DOMAIN, Reason.PREFIX, Reason.ACTIONS, Reason.OFFSITE, Reason.FOLDER),
}
"""The same for the URL options: the checks that may see another text. A changed slash or query makes no file of another type."""
ALL = frozenset((*_NUMBERS, *_SWITCHES, *_SETS, *_LISTS, *_HASHES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """All that decides about links, and about a page for itself."""

    rules: CrawlRules
    limits: Limits
    start_urls: Sequence[Url]
    host_case_sensitive: bool
    accept: str
    """A hash of which URLs rules.xml accepts."""
    sites: str
    """A hash of the limits of single sites, other than the following."""
    folding: UrlFolding | None
    redirects: int
    """The most in a row."""
    page_links: int
    """The most of one page."""
    robots: bool
    """robots.txt is obeyed."""
    meta_robots: bool
    """So are the directives of a page."""
    site_extensions: str = ""
    """A hash of the extensions that single sites exclude; empty: none has its own."""
    site_types: str = ""
    """The same for the types that are taken of them."""
    follows_redirects: bool = True
    """Redirects to other hosts are followed."""
    meta: str = ""
    """A hash of where rules.xml has them ignored; empty: nowhere."""

    def described(self) -> str:
        """Return the description, as JSON: equal for equal checks."""
        limits = self.limits
        description = _Description(
            _FORMAT,
            numbers={name: getattr(limits, name, None) for name in _NUMBERS.values()}
            | {"redirects": self.redirects, "page_links": self.page_links},
            switches={
                "follow_query_strings": limits.follow_query_strings,
                "follow_offsite_links": limits.follow_offsite_links,
                "index_entire_site": limits.index_entire_site,
                "robots": self.robots,
                "meta_robots": self.meta_robots,
                **({} if self.follows_redirects else {"follow_offsite_redirects": False}),
            },
            sets={
                "schemes": sorted(limits.schemes),
                "mime_types": sorted(limits.mime_types),
                "exclude_extensions": sorted(limits.exclude_extensions),
                "hosts": _entries(sorted({url.host for url in self.start_urls})),
                "folders": _entries(sorted(folders(self.start_urls))),
            },
            lists={
                "domain": _entries(_rules(self.rules.domain, "case " if self.host_case_sensitive else "")),
                "prefix": _entries(_rules(self.rules.prefix)),
            },
            hashes={
                "accept": self.accept,
                "sites": self.sites,
                "folding": "" if self.folding is None else self.folding.of_the_rest,
                "hosts_folded": "" if self.folding is None else self.folding.of_hosts,
                **{name: text for name in _OPTIONAL if (text := str(getattr(self, name)))},
            },
        )
        return msgspec.json.encode(description).decode()


class _Description(msgspec.Struct):
    format: int
    numbers: dict[str, int | None]
    switches: dict[str, bool]
    sets: dict[str, list[str] | str]
    lists: dict[str, list[str] | str]
    hashes: dict[str, str]


_decode = msgspec.json.Decoder(_Description).decode


def loosened(before: str, now: str) -> frozenset[Reason]:
    """Return the reasons whose checks may admit a URL that they refused before; all where it is not known how they were."""
    if before == now:
        return frozenset()
    try:
        old, new = _decode(before), _decode(now)
        return frozenset(_loosened(old, new)) if old.format == new.format else ALL
    except (msgspec.MsgspecError, KeyError, RecursionError):
        return ALL


def _loosened(old: _Description, new: _Description) -> Iterator[Reason]:
    for reason, name in _NUMBERS.items():
        then, now = old.numbers[name], new.numbers[name]
        if then is not None and (now is None or now > then):
            yield reason
    for reason, (name, open_value) in _SWITCHES.items():
        if new.switches.get(name, open_value) == open_value != old.switches.get(name, open_value):
            yield reason
    for reason, (name, refuses) in _SETS.items():
        if _grows(old.sets[name], new.sets[name], refuses=refuses):
            yield reason
    for reason, name in _LISTS.items():
        if _admits_more(old.lists[name], new.lists[name]):
            yield reason
    for reason, name in _HASHES.items():
        if old.hashes.get(name, "") != new.hashes.get(name, ""):
            yield reason
    for name, reasons in _FOLDINGS.items():
        if old.hashes[name] != new.hashes[name]:
            yield from reasons


def _grows(old: list[str] | str, new: list[str] | str, *, refuses: bool) -> bool:
    """Return whether a set has become larger, or one of what is refused smaller."""
    if isinstance(old, str) or isinstance(new, str):
        return old != new
    return bool(set(old) - set(new) if refuses else set(new) - set(old))


def _admits_more(old: list[str] | str, new: list[str] | str) -> bool:
    """Return whether rules were changed otherwise than by adding some that forbid, or removing some that allow.

    In a list the first rule that applies decides, so neither of these admits a URL that was refused, wherever in the list it is.
    """
    if isinstance(old, str) or isinstance(new, str):
        return old != new
    known, wanted = set(old), set(new)
    kept = [rule for rule in old if rule in wanted or not rule.startswith("+")]
    return kept != [rule for rule in new if rule in known or rule.startswith("+")]


def _rules(rules: Iterable[Rule], prefix: str = "") -> Iterator[str]:
    """Yield each rule as a sign and a hash."""
    for rule in rules:
        sign = "+" if rule.action is RuleAction.ALLOW else "-"
        yield sign + blake2b(f"{prefix}{rule.target}".encode(), digest_size=6).hexdigest()


def _entries(values: Iterable[str]) -> list[str] | str:
    """Return them as a list, or as one hash where they are too many."""
    found = list(values)
    if len(found) <= _MOST_ENTRIES:
        return found
    return blake2b("\n".join(found).encode(), digest_size=16).hexdigest()
