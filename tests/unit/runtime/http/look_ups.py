"""Name look-ups that a test answers in the place of the system."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence

import pytest


def answer_look_ups(monkeypatch: pytest.MonkeyPatch, addresses_of: Callable[[str], Sequence[str]]) -> None:
    """Have the system's look-up of a host return these addresses, or raise what the function raises."""

    def getaddrinfo(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        return [
            (socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0))
            for address in addresses_of(host)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
