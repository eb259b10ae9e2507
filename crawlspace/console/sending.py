"""Sends lines while they are made, so that a response which breaks is not taken for whole."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice

from aiohttp import web

logger = logging.getLogger(__name__)

LINES_AT_ONCE = 500


async def send_lines(request: web.Request, lines: Iterator[str], headers: Mapping[str, str]) -> web.StreamResponse:
    """Send lines, a few hundred at a time, as fast as they are read. An error of the first ones is raised; a later one cuts the response."""
    response = web.StreamResponse(headers=headers)
    try:
        some = await asyncio.to_thread(_some, lines)
        with cut_by_errors(request):
            await response.prepare(request)
            while some:
                await response.write("".join(some).encode("utf-8", "backslashreplace"))
                some = await asyncio.to_thread(_some, lines)
            await response.write_eof()
    finally:
        await asyncio.to_thread(_close, lines)
    return response


@contextmanager
def cut_by_errors(request: web.Request) -> Iterator[None]:
    """End the connection at an error, which is logged: a response that has begun must not be taken for whole."""
    try:
        yield
    except ConnectionResetError:
        raise
    except Exception:
        logger.exception("a response could not be sent to its end: %s %s", request.method, request.rel_url.raw_path)
        if request.transport is not None:
            request.transport.abort()


def _some(lines: Iterator[str]) -> list[str]:
    return list(islice(lines, LINES_AT_ONCE))


def _close(lines: Iterator[str]) -> None:
    """End a generator that was not read to its end, which closes its store."""
    close = getattr(lines, "close", None)
    if close is not None:
        close()
