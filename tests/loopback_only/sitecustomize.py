"""Refuses and notes each connection and look-up beyond this machine: Python imports this where its folder is on PYTHONPATH."""

from __future__ import annotations

import os
import sys
from ipaddress import ip_address
from typing import Any

NOTES = "CRAWLSPACE_TEST_LOOPBACK_NOTES"
"""The file that what was refused is written to, a line each."""
_LOCAL = ("localhost", "", None)


def refuse_others(event: str, arguments: tuple[Any, ...]) -> None:
    """Audit hook: raise OSError for whatever leads beyond the loopback."""
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        host = arguments[1][0] if isinstance(arguments[1], tuple) else None
        allowed = host in _LOCAL or _is_loopback(host)
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = arguments[0].decode() if isinstance(arguments[0], bytes) else arguments[0]
        allowed = host in _LOCAL or _is_loopback(host, or_other_address=True)
    else:
        return
    if not allowed:
        with open(os.environ[NOTES], "a", encoding="utf-8") as notes:  # noqa: PTH123 - Python is starting
            notes.write(f"{event} {host}\n")
        raise OSError(f"{host} is beyond this machine")


def _is_loopback(host: str, *, or_other_address: bool = False) -> bool:
    try:
        return ip_address(host).is_loopback or or_other_address  # the "look-up" of an address asks nobody
    except ValueError:
        return False


def refuse() -> None:
    """Refuse whatever leads beyond this machine for as long as this process lives."""
    sys.addaudithook(refuse_others)


if NOTES in os.environ:
    refuse()
