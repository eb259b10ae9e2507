"""Where the intranet's web sites stand: three hosts on loopback, and a port nobody listens on.

Pages, rules and start URLs are written with the default ports. Where one is taken, the whole intranet moves to
free ones, and `Ports.rewrite` puts them into every text.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import astuple, dataclass

HOME_HOST = "127.0.0.1"
PRODUCTS_HOST = "127.0.0.2"
SUPPORT_HOST = "localhost"


class NoFreePorts(OSError):
    """None of the ports tried is free, or a loopback address cannot be used."""


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of the home, products and support sites, and one that stays closed."""

    home: int = 8941
    products: int = 8942
    support: int = 8943
    closed: int = 8944

    def rewrite(self, text: str) -> str:
        """Return a text written for the default ports with these ports."""
        if self == DEFAULT_PORTS:
            return text
        pairs = list(zip(astuple(DEFAULT_PORTS), astuple(self), strict=True))
        for old, _ in pairs:  # in two steps, so that a new port equal to another old one is not replaced again
            text = text.replace(f":{old}", f":<{old}>")
        for old, new in pairs:
            text = text.replace(f":<{old}>", f":{new}")
        return text


DEFAULT_PORTS = Ports()


def free_ports(starts: Iterable[int] = range(DEFAULT_PORTS.home, DEFAULT_PORTS.home + 500, 10)) -> Ports:
    """Return the first four ports in a row that can all be listened on. Raises NoFreePorts."""
    trouble: OSError | None = None
    for start in starts:
        ports = Ports(start, start + 1, start + 2, start + 3)
        try:
            for address in addresses(ports):
                _probe(address)
            return ports
        except OSError as error:
            trouble = error
    raise NoFreePorts(
        f"no free ports for the intranet: {trouble}. It needs {HOME_HOST} and {PRODUCTS_HOST}; "
        f"where only 127.0.0.1 is set up (macOS), add the other with: sudo ifconfig lo0 alias {PRODUCTS_HOST}"
    )


def addresses(ports: Ports) -> list[tuple[str, int]]:
    """Return the address and port of each site, the closed one last."""
    return [
        (HOME_HOST, ports.home),
        (PRODUCTS_HOST, ports.products),
        ("127.0.0.1", ports.support),
        (PRODUCTS_HOST, ports.closed),
    ]


def _probe(address: tuple[str, int]) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)
