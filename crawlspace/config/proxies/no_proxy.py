"""The hosts that are requested without a proxy, as variables `no_proxy` have them, with host patterns and address ranges beside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from crawlspace.decision import RuleRef
from crawlspace.errors import SettingError
from crawlspace.parsing import words
from crawlspace.rules.address import is_address
from crawlspace.rules.crawl_rules import DomainRule, RuleAction
from crawlspace.rules.domain import DomainMatcher
from crawlspace.rules.targets import BadTarget, domain_target
from crawlspace.text import quoted

_EXAMPLE = "'intranet.example.com', '*.example.org', 'example.net:8080' or '10.0.0.0/8'"


class NoProxy:
    """Compiled entries. A name without a star also stands for all hosts below it; a range only for hosts that are addresses themselves."""

    def __init__(self, where: str, entries: Sequence[str]) -> None:
        """Raises SettingError for an entry that is neither a host, a pattern nor a range."""
        self.where = where
        self.entries = tuple(entries)
        self._networks: list[tuple[str, IPv4Network | IPv6Network]] = []
        rules: list[DomainRule] = []
        for entry in entries:
            if ("/" in entry and "://" not in entry) or is_address(entry):
                self._networks.append((entry, _network(where, entry)))
                continue
            try:
                host, port = domain_target(entry.removeprefix("."))
            except BadTarget as error:
                raise SettingError(f"{where} has {quoted(entry)}: {error}; an entry is like {_EXAMPLE}") from None
            named = [host] if "*" in host or is_address(host) else [host, f"*.{host}"]
            rules += [DomainRule(RuleAction.ALLOW, name, port, RuleRef(where, 0, entry)) for name in named]
        self._matcher = DomainMatcher(rules, case_sensitive=False)

    def matches(self, host: str, port: int) -> bool:
        """Return whether a host, as in URLs in normal form, is requested without a proxy."""
        return self._matcher.match(host, port) is not None or any(self._ranges(host))

    def unused(self, sites: Iterable[tuple[str, int]]) -> list[str]:
        """Return the entries that match none of the sites (host and port)."""
        left = {entry: NoProxy(self.where, [entry]) for entry in self.entries}
        for site in sites:
            left = {entry: alone for entry, alone in left.items() if not alone.matches(*site)}
        return list(left)

    def _ranges(self, host: str) -> Iterable[str]:
        if not self._networks or not is_address(host):
            return ()
        address = ip_address(host.strip("[]"))
        return [entry for entry, network in self._networks if address.version == network.version and address in network]


def read_no_proxy(where: str, value: object) -> NoProxy | None:
    """Return the entries of a setting; None where it is not set. Raises SettingError."""
    if value is None:
        return None
    try:
        entries = words(where, value, separators=", \t\n")
    except SettingError:
        raise SettingError(
            f"{where} is {quoted(value)}; it must be a list, or text with commas, of entries like {_EXAMPLE}"
        ) from None
    return NoProxy(where, list(dict.fromkeys(entries)))


def _network(where: str, entry: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(entry.replace("[", "").replace("]", ""), strict=False)
    except ValueError:
        raise SettingError(f"{where} has {quoted(entry)}, which is no range of addresses; an entry is like {_EXAMPLE}") from None
