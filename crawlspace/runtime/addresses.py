"""At which address a host is reached, for those that share one machine and so its patience."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING, Any, Protocol

from twisted.internet.interfaces import IResolutionReceiver
from zope.interface import implementer

from crawlspace.discovery import Recent

if TYPE_CHECKING:
    from crawlspace.clock import Clock

Answered = Callable[[str | None], None]
"""Is told the address; None when there is none, or none that may be connected to."""
Address = IPv4Address | IPv6Address


class NameResolver(Protocol):
    """What Twisted's IHostnameResolver has for us."""

    def resolveHostName(self, resolutionReceiver: Any, hostName: str, portNumber: int = 0) -> Any:  # noqa: N802, N803
        """Tell the receiver the addresses, and then that these were all; maybe before this returns."""


class AddressLookup:
    """Asks the name resolver of the crawl, without blocking, and remembers what it said.

    It is asked as for a connection to the port, so that its guard leaves out what is never connected to: otherwise a host could
    name the address of another one, beside its own, and be taken for its neighbour.
    """

    def __init__(
        self,
        resolver: NameResolver,
        *,
        clock: Clock,
        keep_s: float = 600.0,
        keep_none_s: float = 60.0,
        most: int = 10_000,
    ) -> None:
        """`keep_s` and `keep_none_s` say how long an address is believed, and that there is none; `most`, how many are remembered."""
        self._resolver = resolver
        self._clock = clock
        self._keep_s = keep_s
        self._keep_none_s = keep_none_s
        self._known: Recent[tuple[str, int], tuple[float, str | None]] = Recent(max(1, most // 2))
        """Until when, on the monotonic clock, and what."""
        self._under_way: dict[tuple[str, int], list[Answered]] = {}

    def look_up(self, host: str, answered: Answered, *, port: int) -> None:
        """Tell `answered` the address of a host: at once if it is an address or remembered, otherwise once the resolver has answered.

        Of several addresses it is the smallest, IPv4 first, so that hosts with the same ones get the same.
        """
        literal = _address(host.strip("[]"))
        if literal is not None:
            answered(str(literal))
            return
        key = (host.lower(), port)
        known = self._known.get(key)
        if known is not None and known[0] > self._clock.monotonic():
            answered(known[1])
            return
        waiting = self._under_way.get(key)
        if waiting is not None:
            waiting.append(answered)
            return
        self._under_way[key] = [answered]
        self._resolver.resolveHostName(_Addresses(lambda found: self._told(key, found)), host, port)

    def _told(self, key: tuple[str, int], found: list[Address]) -> None:
        address = str(min(found, key=lambda one: (one.version, int(one)))) if found else None
        keep_s = self._keep_none_s if address is None else self._keep_s
        self._known.put(key, (self._clock.monotonic() + keep_s, address))
        for answered in self._under_way.pop(key, []):
            answered(address)


@implementer(IResolutionReceiver)
class _Addresses:
    """Gathers the addresses of one look-up."""

    def __init__(self, done: Callable[[list[Address]], None]) -> None:
        self._done = done
        self._found: list[Address] = []

    def resolutionBegan(self, resolutionInProgress: Any) -> None:  # noqa: N802, N803
        """Nothing is cancelled."""

    def addressResolved(self, address: Any) -> None:  # noqa: N802
        found = _address(str(getattr(address, "host", "")))
        if found is not None:
            self._found.append(found)

    def resolutionComplete(self) -> None:  # noqa: N802
        self._done(self._found)


def _address(text: str) -> Address | None:
    """Return an IP address; IPv4 in IPv6 form is the IPv4 one, for it is the same machine."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
