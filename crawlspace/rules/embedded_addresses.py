"""Embedded addresses: IPv4 addresses written inside IPv6 ones, and loopback."""

from __future__ import annotations

from typing import NamedTuple

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
