"""Messages on a socket between a process and one that it has started: a length of four bytes, then MessagePack."""

from __future__ import annotations

import socket

from msgspec import Struct, msgpack

LENGTH_BYTES = 4
_AT_ONCE = 1 << 20


def framed(message: Struct) -> bytes:
    """Return a message with its length."""
    body = msgpack.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def received(channel: socket.socket) -> bytes:
    """Return the body of the next message; none when the other side has closed the socket."""
    return _received(channel, int.from_bytes(_received(channel, LENGTH_BYTES), "big"))


def _received(channel: socket.socket, number: int) -> bytes:
    parts = bytearray()
    while len(parts) < number:
        part = channel.recv(min(number - len(parts), _AT_ONCE))
        if not part:
            return b""
        parts += part
    return bytes(parts)
