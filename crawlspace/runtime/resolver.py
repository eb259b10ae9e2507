"""Looks hosts up, and lets a connection be made only to an address that the crawl space allows.

The check is made on the very addresses that are then connected to, so a second look-up cannot slip past it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IHostnameResolver, IHostResolution
from twisted.internet.threads import deferToThreadPool
from zope.interface import implementer

from crawlspace.decision import Decision
from crawlspace.recent import Recent
from crawlspace.urls import MalformedUrl, parse

if TYPE_CHECKING:
    from twisted.internet.base import ReactorBase
    from twisted.python.failure import Failure

Guard = Callable[[str, int, str], Decision]
"""(host, port, address) -> decision."""
Found = list[tuple[int, str]]
"""(family, address)"""


@implementer(IHostResolution)
class _Resolution:
    def __init__(self, name: str) -> None:
        self.name = name

    def cancel(self) -> None:
        """A look-up in a thread can't be cancelled; its answer is not waited for."""


@implementer(IHostnameResolver)
class GuardedResolver:
    """Twisted's name resolver for a crawl. Positive answers are kept for `ttl_s`."""

    ttl_s = 300.0
    no_answer_ttl_s = 10.0

    def __init__(self, reactor: ReactorBase, *, cache_size: int, timeout_s: float) -> None:
        self._reactor: Any = reactor
        self._timeout_s = timeout_s
        self._answers: Recent[str, tuple[float, Found]] = Recent(max(1, cache_size))
        self._guard: Guard | None = None
        self._refused: Recent[tuple[str, int], Decision] = Recent(10_000)
        self._codes: Recent[str, int] = Recent(10_000)
        """Why the last look-up of a host failed."""
        self._proxies = frozenset(filter(None, (urlsplit(proxy).hostname for proxy in getproxies().values())))

    @classmethod
    def from_crawler(cls, crawler: Any, reactor: ReactorBase) -> GuardedResolver:
        settings = crawler.settings
        size = settings.getint("DNSCACHE_SIZE") if settings.getbool("DNSCACHE_ENABLED") else 0
        return cls(reactor, cache_size=size, timeout_s=settings.getfloat("DNS_TIMEOUT"))

    def install_on_reactor(self) -> None:
        self._reactor.installNameResolver(self)

    def guard(self, guard: Guard) -> None:
        """Check each address with `guard` from now on."""
        self._guard = guard

    def why_refused(self, host: str, port: int) -> Decision | None:
        """Why no address of the host was allowed at the last look-up, if that was so."""
        return self._refused.get((host, port))

    def does_not_exist(self, host: str) -> bool:
        """Whether the last look-up of the host was answered "no such host"."""
        return self._codes.get(host) in _NO_SUCH_HOST

    def resolveHostName(  # noqa: N802
        self,
        resolutionReceiver: Any,  # noqa: N803
        hostName: str,  # noqa: N803
        portNumber: int = 0,  # noqa: N803
        addressTypes: Sequence[type] | None = None,  # noqa: N803
        transportSemantics: str = "TCP",  # noqa: N803
    ) -> Any:
        hostName = _as_in_urls(hostName)  # noqa: N806
        resolution = _Resolution(hostName)
        resolutionReceiver.resolutionBegan(resolution)
        known = self._answers.get(hostName)
        now = self._reactor.seconds()
        if known is not None and known[0] > now:
            self._tell(resolutionReceiver, hostName, portNumber, known[1])
            return resolution
        done = deferToThreadPool(self._reactor, self._reactor.getThreadPool(), _look_up, hostName)
        done.addTimeout(self._timeout_s, self._reactor)

        def answered(found: Found) -> None:
            self._answers.put(hostName, (now + self.ttl_s, found))
            self._tell(resolutionReceiver, hostName, portNumber, found)

        def failed(failure: Failure) -> None:
            error = failure.value
            code = error.errno if isinstance(error, socket.gaierror) and error.errno is not None else socket.EAI_AGAIN
            self._codes.put(hostName, code)
            self._refused.drop((hostName, portNumber))
            self._answers.put(hostName, (now + self.no_answer_ttl_s, []))
            resolutionReceiver.resolutionComplete()

        done.addCallbacks(answered, failed)
        return resolution

    def _tell(self, receiver: Any, host: str, port: int, found: Found) -> None:
        refused: Decision | None = None
        allowed = 0
        for family, address in found:
            decision = None if self._guard is None or host in self._proxies else self._guard(host, port, address)
            if decision is not None and not decision.admitted:
                refused = refused or decision
                continue
            allowed += 1
            kind = IPv6Address if family == socket.AF_INET6 else IPv4Address
            receiver.addressResolved(kind("TCP", address, port))
        if not allowed and refused is not None:
            self._refused.put((host, port), refused)
        else:
            self._refused.drop((host, port))
        receiver.resolutionComplete()


def _as_in_urls(host: str) -> str:
    """Return a name as URLs and rules have it; Twisted asks for international ones in their own letters.

    Python's own look-up would turn some of them into another host: `straße` into `strasse`.
    """
    try:
        return host if host.isascii() else parse(f"http://{host}/").host
    except MalformedUrl:
        return host


_NO_SUCH_HOST: frozenset[object] = frozenset(
    {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME), socket.EAI_FAIL}
)


def _look_up(host: str) -> Found:
    """Runs in a thread. Raises socket.gaierror."""
    answers = socket.getaddrinfo(host.strip("[]"), 0, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((int(family), str(address[0])) for family, _, _, _, address in answers))
