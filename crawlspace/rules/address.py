"""Compiled address rules: the first rule that applies to an IP address.

For each netmask in use there is one dict from masked address to the first rule, so the cost grows with the number of different
netmasks, which is small, and not with the number of rules. Netmasks need not be contiguous.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from crawlspace.rules.crawl_rules import AddressRule, RuleAction
from crawlspace.rules.embedded_addresses import LOOPBACK_4, LOOPBACK_6, embedded
from crawlspace.rules.patterns import NO_MATCH

_MAPPED = 0xFFFF
"""The upper 96 bits of an IPv4 address in IPv6 form."""
_LOOPBACK_BITS = {4: 8, 6: 127}
"""By version: how many bits of the netmask a rule has that applies to loopback and nothing else; in IPv6 with the unspecified address."""


def address_value(text: str) -> tuple[int, int]:
    """Return IP version and value of an address, with or without brackets and interface. IPv4-mapped IPv6 is returned as IPv4.

    Raises ValueError if the text is not an address.
    """
    address = ipaddress.ip_address(text[1:-1] if text.startswith("[") and text.endswith("]") else text)
    value = int(address)
    return (4, value & 0xFFFFFFFF) if address.version == 6 and value >> 32 == _MAPPED else (address.version, value)


def is_address(text: str) -> bool:
    try:
        address_value(text)
    except ValueError:
        return False
    return True


class AddressMatcher:
    """Immutable after compilation."""

    __slots__ = ("_masks", "_rules", "_wider")

    def __init__(self, rules: Sequence[AddressRule]) -> None:
        self._rules = tuple(rules)
        masks: dict[int, dict[int, dict[int, int]]] = {4: {}, 6: {}}
        for index, rule in enumerate(rules):
            masks[rule.version].setdefault(rule.mask, {}).setdefault(rule.network, index)
        # (first index, mask, networks), sorted by first index, so that a look-up can stop early
        self._masks = {
            version: sorted((min(networks.values()), mask, networks) for mask, networks in by_mask.items())
            for version, by_mask in masks.items()
        }
        self._wider: dict[tuple[int, int], list[tuple[int, int, dict[int, int]]]] = {}
        """By version and netmask: the entries of `_masks` that can cover a rule with that netmask. Filled on demand."""

    def match(self, address: str) -> AddressRule | None:
        """Return the first rule that applies to an address. Raises ValueError if the text is not an address."""
        version, value = address_value(address)
        return self.match_value(version, value)

    def match_value(self, version: int, value: int) -> AddressRule | None:
        best = NO_MATCH
        for first, mask, networks in self._masks[version]:
            if first >= best:
                break
            best = min(best, networks.get(value & mask, NO_MATCH))
        return None if best == NO_MATCH else self._rules[best]

    def deciding(self, version: int, value: int) -> AddressRule | None:
        """Return the rule that decides a connection to an address, given as by `address_value`.

        A rule that forbids an address also forbids addresses that embed it, and one that forbids loopback that of the other family.
        A rule that allows an address does not allow embedded ones, and a rule that allows more IPv6 addresses than one embedding
        form allows none of the IPv4 addresses in it.
        """
        own = self.match_value(version, value)
        if own is not None and own.action is RuleAction.FORBID:
            return own
        if version == 4 and 0 < value >> 24 != LOOPBACK_4 >> 24:  # most addresses embed no other one
            return own
        others = embedded(version, value)
        for one in others:
            rule = self.match_value(one.version, one.value)
            if rule is not None and rule.action is RuleAction.FORBID:
                return rule
            if own is not None and rule is None and own.mask.bit_count() < one.bits:
                own = None
        if own is None or own.mask.bit_count() < _LOOPBACK_BITS[version]:
            for one_version, one_value in ((version, value), *(one[:2] for one in others)):
                rule = self._forbidding_other_loopback(one_version, one_value)
                if rule is not None:
                    return rule
        return own

    def _forbidding_other_loopback(self, version: int, value: int) -> AddressRule | None:
        """Return the rule that forbids a loopback address by that of the other family.

        One for more of IPv6 than loopback does not count: `forbid address ::/0` is to leave IPv4 as it is.
        """
        if version == 6:
            rule = self.match_value(4, LOOPBACK_4) if value == LOOPBACK_6 else None
        else:
            rule = self.match_value(6, LOOPBACK_6) if value >> 24 == LOOPBACK_4 >> 24 else None
            rule = rule if rule is not None and rule.mask.bit_count() >= _LOOPBACK_BITS[6] else None
        return rule if rule is not None and rule.action is RuleAction.FORBID else None

    def covering(self, rule: AddressRule) -> AddressRule | None:
        """Return the first rule that applies to all addresses of `rule`; it may be the rule itself."""
        masks = self._wider.get((rule.version, rule.mask))
        if masks is None:
            masks = [one for one in self._masks[rule.version] if one[1] & rule.mask == one[1]]
            self._wider[rule.version, rule.mask] = masks
        best = NO_MATCH
        for first, mask, networks in masks:
            if first >= best:
                break
            best = min(best, networks.get(rule.network & mask, NO_MATCH))
        return None if best == NO_MATCH else self._rules[best]
