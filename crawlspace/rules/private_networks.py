"""Address ranges to which links, redirects and name servers must not lead a crawler.

The ranges are those of the IANA special-purpose address registries (RFC 6890 and successors) and the metadata services of large
clouds. They are listed here because the results of the `ipaddress` module differ between Python versions.
"""

from __future__ import annotations

from enum import Enum

from crawlspace.decision import RuleRef
from crawlspace.rules.address import AddressMatcher
from crawlspace.rules.crawl_rules import AddressRule, RuleAction
from crawlspace.rules.embedded_addresses import embedded
from crawlspace.rules.targets import address_target


class Reach(Enum):
    """Who may have requests sent to an address."""

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
