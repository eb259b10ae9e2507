"""Serves the console: where it listens, with or without TLS, and what else is served beside it."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import os
import signal
import ssl
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from crawlspace.clock import SystemClock
from crawlspace.console.application import application, search_application
from crawlspace.console.assistants.extra import check_extra_of
from crawlspace.console.console import Console
from crawlspace.console.guard import Access, Network
from crawlspace.console.users import Users
from crawlspace.errors import ConfigError, UsageError
from crawlspace.runtime.session.project import ProjectCollections
from crawlspace.state.sqlite.file import limit_caches
from crawlspace.text import quoted

_CACHE_BYTES = 8 * 1024 * 1024
"""Of the stores that pages open: each page reads what it shows, and seldom twice."""
_SECURE_MOVES = "add one with --set-password NAME, or let a proxy log users in: --user-header NAME --trusted-proxy ADDRESS"


def serve(collections: ProjectCollections, users: Users, opts: argparse.Namespace, *, project: Path) -> None:
    """Serve the console until Ctrl-C, as the options of `scrapy console` say. `project` is the folder with scrapy.cfg.

    Raises UsageError and ConfigError.
    """
    console = Console(collections, clock=SystemClock(), project=project)
    address, port = _address(opts.bind)
    tls = _tls(opts.certificate, opts.key)
    proxies = _networks(opts.trusted_proxy)
    if opts.user_header and not proxies:
        raise UsageError("--user-header needs --trusted-proxy ADDRESS: the header is believed from that proxy alone")
    beyond = _beyond(opts, address)
    if beyond and users.is_empty and not opts.user_header:
        raise ConfigError(
            f"{beyond}: the console can be reached from other machines, and is served only with users: {_SECURE_MOVES}"
        )
    console.names()  # a wrong folder is told now
    access = Access(
        users,
        hosts=frozenset(name.lower() for name in [*opts.host, *([] if _is_any(address) else [address])]),
        user_header=opts.user_header,
        proxies=proxies,
        is_secure=tls is not None or opts.https,
        is_local=not beyond,
    )
    unknown = [name for name in opts.search if name not in console.names()]
    if unknown or (opts.search_bind and not opts.search):
        raise UsageError(
            f"--search names {quoted(unknown[0])}, and there is no such collection"
            if unknown
            else "--search-bind needs --search NAME"
        )
    places = [_Served(application(console, access, () if opts.search_bind else opts.search), address, port, "The console")]
    if opts.mcp:
        _serve_assistants(places[0].app, console, opts.mcp)
    if opts.search_bind:
        place = _address(opts.search_bind)
        names = frozenset({*access.hosts, *([] if _is_any(place[0]) else [place[0]])})
        places.append(_Served(search_application(console, replace(access, hosts=names), opts.search), *place, "The search page"))
    who = "nobody has to log in" if access.is_open else "users log in"
    limit_caches(_CACHE_BYTES)
    asyncio.run(_run(places, tls, who))


def _serve_assistants(app: web.Application, console: Console, names: Sequence[str]) -> None:
    """Let assistants ask collections. Raises ConfigError without the extra, UnknownCollection for a name that no collection has."""
    check_extra_of("--mcp")
    # they need the extra
    from crawlspace.console.assistants.http import add_mcp  # noqa: PLC0415
    from crawlspace.console.assistants.tools import AssistantTools  # noqa: PLC0415

    add_mcp(app, AssistantTools(console.collections, names, console.clock))


class _Served(NamedTuple):
    """An application, and where it is served."""

    app: web.Application
    address: str
    port: int
    title: str


async def _run(places: Sequence[_Served], tls: ssl.SSLContext | None, who: str) -> None:
    """Serve applications until Ctrl-C. Raises ConfigError where one cannot be served."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, ended.set)
    runners = [web.AppRunner(place.app, access_log=None, shutdown_timeout=5) for place in places]
    try:
        for place, runner in zip(places, runners, strict=True):
            await runner.setup()
            bind = f"[{place.address}]:{place.port}" if ":" in place.address else f"{place.address}:{place.port}"
            try:
                await web.TCPSite(runner, place.address, place.port, ssl_context=tls).start()
            except OSError as error:
                why = os.strerror(error.errno) if error.errno else str(error)
                raise ConfigError(
                    f"{place.title.lower()} cannot listen on {bind}: {why}; give another address, as in 127.0.0.1:8961"
                ) from error
            _say(f"{place.title} is at {'https' if tls is not None else 'http'}://{bind}/")
        _say(f"On the console {who}. Ctrl-C ends it.")
        await ended.wait()
    finally:
        for runner in runners:
            await runner.cleanup()


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def _address(bind: str) -> tuple[str, int]:
    """Return the address and the port of `--bind`. Raises UsageError."""
    address, colon, port = bind.rpartition(":")
    address = address.removeprefix("[").removesuffix("]")
    if not colon or not port.isdigit() or not 0 < int(port) < 65_536:
        raise UsageError(f"--bind is {quoted(bind)}; give an address and a port, as in 127.0.0.1:8960 or [::1]:8960")
    try:
        return str(ipaddress.ip_address(address)), int(port)
    except ValueError as error:
        raise UsageError(
            f"--bind is {quoted(bind)}; {quoted(address)} is no IP address, give one as in 127.0.0.1:8960"
        ) from error


def _beyond(opts: argparse.Namespace, address: str) -> str:
    """Return the options by which the console can be reached from other machines; empty where it cannot."""
    if not ipaddress.ip_address(address).is_loopback:
        return f"--bind {opts.bind}"
    given = {"--https": opts.https, "--host": opts.host, "--trusted-proxy": opts.trusted_proxy}
    return " and ".join(name for name, value in given.items() if value)


def _is_any(address: str) -> bool:
    return ipaddress.ip_address(address).is_unspecified


def _networks(texts: Sequence[str]) -> list[Network]:
    found: list[Network] = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text, strict=False))
        except ValueError as error:
            raise UsageError(
                f"--trusted-proxy is {quoted(text)}; give an address or a network, as in 127.0.0.1 or 10.0.0.0/24"
            ) from error
    return found


def _tls(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    if certificate is None:
        if key is not None:
            raise UsageError("--key needs --certificate")
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"the certificate {certificate} cannot be used: {error.strerror or error}") from error
    return context
