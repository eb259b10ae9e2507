"""Sends lines while they are made."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from itertools import islice

from aiohttp import web

logger = logging.getLogger(__name__)

LINES_AT_ONCE = 500


async def send_lines(request: web.Request, lines: Iterator[str], headers: Mapping[str, str]) -> web.StreamResponse:
    """Send lines, a few hundred at a time, as fast as they are read. An error of the first ones is raised; a later one cuts the response."""
    response = web.StreamResponse(headers={"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", **headers})
    try:
        some = await asyncio.to_thread(_some, lines)
        await response.prepare(request)
        while some:
            await response.write("".join(some).encode("utf-8", "backslashreplace"))
            some = await asyncio.to_thread(_some, lines)
        await response.write_eof()
    except ConnectionResetError:
        raise
    except Exception:
        if not response.prepared:
            raise
        logger.exception("lines could not be read to their end: %s %s", request.method, request.path)
        if request.transport is not None:
            request.transport.abort()  # the reader must not take what it has for the whole
    finally:
        await asyncio.to_thread(_close, lines)
    return response


def _some(lines: Iterator[str]) -> list[str]:
    return list(islice(lines, LINES_AT_ONCE))


def _close(lines: Iterator[str]) -> None:
    """End a generator that was not read to its end, which closes its store."""
    close = getattr(lines, "close", None)
    if close is not None:
        close()
