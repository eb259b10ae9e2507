"""Compiled address rules: the first rule that applies to an IP address.

For each netmask in use there is one dict from masked address to the first rule, so the cost grows with the number of different
netmasks, which is small, and not with the number of rules. Netmasks need not be contiguous.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from crawlspace.decision import RuleRef
from crawlspace.rules.crawl_rules import AddressRule, RuleAction
from crawlspace.rules.patterns import NO_MATCH
from crawlspace.rules.targets import address_target

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


# --- Embedded addresses: IPv4 addresses written inside IPv6 ones, and loopback -------------------------------------

LOOPBACK_4 = 0x7F000001
LOOPBACK_6 = 1


class Embedded(NamedTuple):
    """An address that another one leads to; `bits` is the number of bits of the other one that mark the form."""

    version: int
    value: int
    bits: int


def embedded(version: int, value: int) -> tuple[Embedded, ...]:
    """Return the other addresses that a connection to an address, given as by `address_value`, may reach.

    IPv4-mapped addresses (`::ffff:a.b.c.d`) are not included: `address_value` returns them as IPv4. In `64:ff9b:1::/48` (RFC
    8215) each network chooses the position of the IPv4 address, so there are several.
    """
    if version == 4:
        return (Embedded(4, LOOPBACK_4, 32),) if value == 0 else ()
    if value <= LOOPBACK_6:
        return (Embedded(6, LOOPBACK_6, 128), _LOOPBACK) if value == 0 else ()
    found = tuple(Embedded(4, inner, bits) for inner, bits in _inner(value))
    return (*found, _LOOPBACK) if any(inner.value == 0 for inner in found) else found


_LOOPBACK = Embedded(4, LOOPBACK_4, 128)
_LOW = 0xFFFFFFFF


def _inner(value: int) -> list[tuple[int, int]]:
    """Return the IPv4 addresses in an IPv6 address, each with the number of bits that mark its form."""
    upper = value >> 32
    if upper in _TRANSLATED:
        return [(value & _LOW, 96)]
    if value >> 80 == 0x0064FF9B0001:
        return [(one, 48) for one in dict.fromkeys(_local_translated(value)) if one >> 24]
    if value >> 112 == 0x2002:  # 6to4, RFC 3056
        return [(value >> 80 & _LOW, 16)]
    if value >> 96 == 0x20010000:  # Teredo, RFC 4380: the server, and the client with inverted bits
        return [(~value & _LOW, 32), (value >> 64 & _LOW, 32)]
    if upper & 0xFCFFFFFF == 0x00005EFE:  # ISATAP, RFC 5214: in the lower half, after any prefix
        return [(value & _LOW, 96)]
    return []


_TRANSLATED = frozenset(
    (
        0,  # ::a.b.c.d, RFC 4291 section 2.5.5.1
        0xFFFF,  # ::ffff:a.b.c.d, section 2.5.5.2
        0xFFFF0000,  # ::ffff:0:a.b.c.d, RFC 2765
        0x0064FF9B << 64,  # 64:ff9b::a.b.c.d, RFC 6052
    )
)


def _local_translated(value: int) -> tuple[int, ...]:
    """Return the addresses by RFC 6052 section 2.2, with prefixes of 96, 48, 56 and 64 bits; bits 64 to 71 are skipped."""
    return (
        value & _LOW,
        (value >> 64 & 0xFFFF) << 16 | value >> 40 & 0xFFFF,
        (value >> 64 & 0xFF) << 24 | value >> 32 & 0xFFFFFF,
        value >> 24 & _LOW,
    )


# --- Address ranges to which links, redirects and name servers must not lead a crawler -----------------------------
# The ranges are those of the IANA special-purpose address registries (RFC 6890 and successors) and the metadata services of large
# clouds. They are listed here because the results of the `ipaddress` module differ between Python versions.


class Reach(Enum):
    """Class of an address, by who may have requests sent to it."""

    PUBLIC = "public"
    INTERNAL = "internal"
    """This machine, private networks, and reserved ranges: only hosts that the configuration names."""
    METADATA = "metadata"
    """Link-local and cloud metadata: nobody, unless an address rule allows it."""


_METADATA = (
    "169.254.0.0/16",  # link-local, and the metadata service of most clouds
    "100.100.100.200",  # Alibaba
    "168.63.129.16",  # Azure, in a public range
    "192.0.0.192",  # Oracle
    "fe80::/10",
    "fd00:c1::/32",  # Oracle
    "fd00:ec2::/64",  # Amazon
    "fd20:ce::254",  # Google
    "fd00:42::42",  # Scaleway
)
_INTERNAL = (
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",  # shared address space of providers
    "127.0.0.0/8",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/3",  # multicast and reserved
    "2001::/23",  # protocol assignments, Teredo
    "2001:db8::/32",
    "3fff::/20",
)
_GLOBAL_IPV6 = 0b001
"""The upper three bits of all public IPv6 addresses (2000::/3)."""


def reach(version: int, value: int) -> Reach:
    """Return who may have requests sent to an address, given as by `address_value`.

    An address that embeds an IPv4 address has the most restricted reach of the two; in `::a.b.c.d`, `64:ff9b::a.b.c.d` and 6to4
    only the embedded address counts.
    """
    if version == 4 and value:  # most addresses embed no other one
        return _reach_of(version, value)
    kinds = [_reach_of(one.version, one.value) for one in embedded(version, value)]
    if not kinds or (value >> 32 not in _OPEN_TRANSLATORS and value >> 112 != _6TO4):
        kinds.append(_reach_of(version, value))
    return next(kind for kind in (Reach.METADATA, Reach.INTERNAL, Reach.PUBLIC) if kind in kinds)


def _reach_of(version: int, value: int) -> Reach:
    if _metadata.match_value(version, value):
        return Reach.METADATA
    if _internal.match_value(version, value) or (version == 6 and value >> 125 != _GLOBAL_IPV6):
        return Reach.INTERNAL
    return Reach.PUBLIC


_OPEN_TRANSLATORS = frozenset((0, 0x0064FF9B << 64))
"""The upper 96 bits of ::a.b.c.d and 64:ff9b::a.b.c.d."""
_6TO4 = 0x2002


def _compiled(networks: tuple[str, ...]) -> AddressMatcher:
    rules = []
    for network in networks:
        version, value, mask = address_target(network)
        full = (1 << (32 if version == 4 else 128)) - 1
        mask = full if mask is None else mask
        rules.append(AddressRule(RuleAction.FORBID, version, value & mask, mask, RuleRef("", 0, network)))
    return AddressMatcher(rules)


_metadata = _compiled(_METADATA)
_internal = _compiled(_INTERNAL)
