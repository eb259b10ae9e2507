"""Requests with JSON to the server of a sink, from a thread that has no event loop."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import gaierror
from typing import Self, TypeVar, cast

import aiohttp
import msgspec

from crawlspace.errors import IndexUnavailable, SettingError
from crawlspace.index.sink import Options
from crawlspace.text import printable

T = TypeVar("T")

_OF_ANOTHER_HOST = (62, 64)
"""X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH of OpenSSL."""
_PART_BYTES = 1 << 18
MOST_SHOWN = 300
"""Characters of an answer that are shown."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Address of a server, and headers and certificates of requests to it. Secrets are not shown."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    timeout_s: float
    ca_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    @classmethod
    def from_options(cls, options: Options, headers: Mapping[str, str]) -> Self:
        """Return the connection that the options of a sink describe. Raises SettingError."""
        return cls(
            options.url("url"),
            headers,
            options.seconds("timeout", 60, low=1),
            ca_file=options.file("ca_file"),
            certificate=options.file("client_cert"),
            key=options.file("client_key"),
        )

    def tls(self) -> ssl.SSLContext | None:
        """Return the context that checks the server's certificate; None for http. Raises SettingError."""
        if not self.url.startswith("https:"):
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            named = " and ".join(str(path) for path in (self.ca_file, self.certificate, self.key) if path is not None)
            raise SettingError(f"CRAWLSPACE_SINKS: {named} cannot be used for {self.url}: {error}") from error
        return context


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of a server."""

    status: int
    body: object
    """Parsed JSON, or the text if it is not JSON."""

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300


class Client:
    """Sends requests to one server, from one thread at a time. Close it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._tls = connection.tls()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: aiohttp.ClientSession | None = None

    def run(self, work: Awaitable[T]) -> T:
        """Return the result of requests that run concurrently."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(work)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        lines: bytes | None = None,
        parameters: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request with a JSON body, or with lines of JSON. Raises IndexUnavailable if the server cannot be reached."""
        sent: dict[str, str] = {
            "Content-Type": "application/json" if lines is None else "application/x-ndjson",
            **(headers or {}),
        }
        written = lines if lines is not None or body is None else json.dumps(body).encode()
        if written is not None:
            sent["Content-Length"] = str(len(written))
        try:
            async with self._opened().request(
                method,
                self._connection.url + path,
                data=None if written is None else _parts(written),
                headers=sent,
                params=parameters,
                allow_redirects=False,
            ) as response:
                return Reply(response.status, _parsed(await response.read()))
        except aiohttp.ClientConnectorCertificateError as error:
            raise IndexUnavailable(f"{self._connection.url} {_wrong_certificate(error.certificate_error)}") from error
        except aiohttp.ClientConnectorSSLError as error:
            why = printable(str(getattr(error.os_error, "reason", "") or error.os_error))
            raise IndexUnavailable(
                f"{self._connection.url} does not speak TLS as it should ({why}): is it http:// there?"
            ) from error
        except aiohttp.ServerDisconnectedError as error:
            is_plain = self._connection.url.startswith("http:")
            perhaps = "; if it accepts https only, use https:// in its URL" if is_plain else ""
            raise IndexUnavailable(
                f"{self._connection.url} cannot be reached: it closed the connection without an answer{perhaps}"
            ) from error
        except TimeoutError as error:  # before the others: it is an OSError
            raise IndexUnavailable(f"{self._connection.url} has not answered within {self._connection.timeout_s:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise IndexUnavailable(f"{self._connection.url} cannot be reached: {unreachable(error)}") from error

    def close(self) -> None:
        if self._loop is None:
            return
        if self._session is not None:
            with ThreadPoolExecutor(1) as thread:  # the thread of a crawl has a loop that runs
                thread.submit(self._loop.run_until_complete, self._session.close()).result()
            self._session = None
        self._loop.close()
        self._loop = None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._tls if self._tls is not None else True, limit=16),
                timeout=aiohttp.ClientTimeout(total=self._connection.timeout_s),
                headers=dict(self._connection.headers),
            )
        return self._session


async def _parts(body: bytes) -> AsyncIterator[bytes]:
    """Yield a body in parts, so that other requests continue meanwhile. aiohttp itself would need a file, and a thread, which costs more."""
    for start in range(0, len(body), _PART_BYTES):
        yield body[start : start + _PART_BYTES]


def _wrong_certificate(error: Exception) -> str:
    """Return why a certificate is refused, and what to do."""
    why = printable(str(getattr(error, "verify_message", "") or error)).rstrip(".")
    if getattr(error, "verify_code", 0) in _OF_ANOTHER_HOST:
        return f"shows a certificate of another host: {why}; name it in its URL as its certificate does"
    return f'shows a certificate that is not trusted: {why}; if it is yours, name the authority, as in "ca_file": "/etc/ssl/our-ca.pem"'


def unreachable(error: Exception) -> str:
    """Return why a server cannot be reached."""
    cause = getattr(error, "os_error", error)
    if isinstance(cause, gaierror):
        return printable(f"its name cannot be resolved ({cause.strerror})")
    if isinstance(cause, OSError) and cause.errno:
        return os.strerror(cause.errno)
    return printable(str(error) or type(error).__name__)


def shown(body: object) -> str:
    """Return an answer as it is shown in a message: on one line, shortened."""
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return printable(" ".join(text.split()))[:MOST_SHOWN]


def _parsed(read: bytes) -> object:
    if not read:
        return None
    with suppress(ValueError, RecursionError):
        return cast("object", msgspec.json.decode(read))
    text = read.decode("utf-8", "replace")
    with suppress(
        ValueError, RecursionError
    ):  # it may quote a refused document: bytes that are no UTF-8, halves of surrogate pairs
        return cast("object", json.loads(text))
    return text


def table(value: object) -> Mapping[str, object]:
    """Return a JSON object of an answer; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[object]:
    """Return a list of an answer; an empty one for anything else."""
    return value if isinstance(value, list) else []
