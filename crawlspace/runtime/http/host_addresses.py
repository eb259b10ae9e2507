"""The address of a host, so that hosts with one address can share their delay."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Protocol

from twisted.internet.interfaces import IResolutionReceiver
from zope.interface import implementer

Address = IPv4Address | IPv6Address


class NameResolver(Protocol):
    """The part of Twisted's IHostnameResolver that is used here."""

    def resolveHostName(self, resolutionReceiver: Any, hostName: str, portNumber: int = 0) -> Any:  # noqa: N802, N803
        """Call the receiver with each address, then with the end; maybe before this returns."""

    def gave_no_answer(self, host: str) -> bool:
        """Whether the last look-up of the host gave neither an address nor the answer that there is none."""


class Answered(Protocol):
    def __call__(self, address: str | None, *, certain: bool) -> None: ...


def look_up(resolver: NameResolver, host: str, port: int, answered: Answered) -> None:
    """Call `answered` with the address of a host: at once if the host is an address, otherwise when the resolver has answered.

    None where it has none that may be connected to, and, not `certain`, where the look-up gave no answer: a later one may.
    Of several addresses it is the smallest, IPv4 first, so that hosts with the same ones get the same. The resolver is called as for a
    connection to the port, so that its guard leaves out what is never connected to: otherwise a host could name the address of another
    one, in addition to its own, and share its delay. Answers are remembered there.
    """
    literal = _address(host.strip("[]"))
    if literal is not None:
        answered(str(literal), certain=True)
    else:
        resolver.resolveHostName(_Addresses(resolver, host, answered), host, port)


@implementer(IResolutionReceiver)
class _Addresses:
    """Gathers the addresses of one look-up."""

    def __init__(self, resolver: NameResolver, host: str, answered: Answered) -> None:
        self._resolver = resolver
        self._host = host
        self._answered = answered
        self._found: list[Address] = []

    def resolutionBegan(self, resolutionInProgress: Any) -> None:  # noqa: N802, N803
        """Do nothing: no resolution is cancelled."""

    def addressResolved(self, address: Any) -> None:  # noqa: N802
        found = _address(str(getattr(address, "host", "")))
        if found is not None:
            self._found.append(found)

    def resolutionComplete(self) -> None:  # noqa: N802
        first = min(self._found, key=lambda one: (one.version, int(one)), default=None)
        if first is not None:
            self._answered(str(first), certain=True)
        else:
            self._answered(None, certain=not self._resolver.gave_no_answer(self._host))


def _address(text: str) -> Address | None:
    """Return an IP address; IPv4 in IPv6 form is the IPv4 one, for it is the same machine."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
