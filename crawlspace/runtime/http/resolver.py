"""Looks hosts up, and lets a connection be made only to an address that the crawl space allows.

The check is made on the very addresses that are then connected to, so a second look-up cannot circumvent it. A process has one
resolver, and maybe several crawls, each with rules of its own: a crawl whose rules forbid an address must not reach it because
another crawl may, and must not lose its pages because another crawl may not. So each crawl has a resolver with its own rules, which
shares the answers of that of the process.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from scrapy.settings import BaseSettings
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.base import ReactorBase
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IHostnameResolver, IHostResolution
from twisted.internet.threads import deferToThreadPool
from twisted.python.failure import Failure
from zope.interface import implementer

from crawlspace.cache import Recent
from crawlspace.crawl.addresses import LookUps
from crawlspace.decision import Decision, Reason, of_all_addresses
from crawlspace.urls import MalformedUrl, parse

Guard = Callable[[str, int, str], Decision]
"""(host, port, address) -> decision."""
Found = list[tuple[int, str]]
"""(family, address)"""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a look-up, or why it found nothing: an EAI_ number of getaddrinfo."""

    found: Found
    error: int | None = None


NO_ANSWER = Answer([], socket.EAI_AGAIN)
_HOSTS = 10_000
"""Of which something is remembered."""


class HostNames:
    """Looks names up in the reactor's threads, and remembers the answers unless `cache_size` is 0.

    Questions for a name that is being looked up wait for the same answer, but each for `timeout_s` at most.
    """

    ttl_s = 300.0
    no_answer_ttl_s = 10.0

    def __init__(self, reactor: ReactorBase, *, cache_size: int, timeout_s: float) -> None:
        self.reactor: Any = reactor
        self._timeout_s = timeout_s
        self._answers: Recent[str, tuple[float, Answer]] | None = Recent(cache_size) if cache_size else None
        self._in_flight: dict[str, list[Deferred[Answer]]] = {}
        """The waiting questions by name that is being looked up."""

    @classmethod
    def from_settings(cls, settings: BaseSettings, reactor: ReactorBase) -> HostNames:
        """Return the look-ups with Scrapy's settings for them."""
        size = max(0, settings.getint("DNSCACHE_SIZE")) if settings.getbool("DNSCACHE_ENABLED") else 0
        return cls(reactor, cache_size=size, timeout_s=settings.getfloat("DNS_TIMEOUT"))

    def look_up(self, host: str, callback: Callable[[Answer], None]) -> None:
        """Have `callback` called with the answer: at once if it is cached."""
        now = self.reactor.seconds()
        known = self.cached(host)
        if known is not None:
            callback(known)
            return
        waiting = self._in_flight.get(host)
        begins = waiting is None
        if waiting is None:
            waiting = self._in_flight[host] = []
        question: Deferred[Answer] = Deferred()
        waiting.append(question)

        def timed_out(_: Failure) -> Answer:
            waiting.remove(question)
            if not waiting:
                del self._in_flight[host]  # the next question must not wait for a thread that hangs
            self._keep(host, NO_ANSWER, since=now)
            return NO_ANSWER

        question.addTimeout(self._timeout_s, self.reactor)
        question.addErrback(timed_out).addCallback(callback)
        if begins:
            looked_up = deferToThreadPool(self.reactor, self.reactor.getThreadPool(), _look_up, host)
            looked_up.addCallbacks(Answer, _why_nothing).addCallback(self._answered, host, waiting, now)

    def cached(self, host: str) -> Answer | None:
        """Return the answer for a host that is an address, or the one that is cached; None if there is none."""
        literal = _of_address(host)
        if literal is not None:
            return literal
        known = self._answers.get(host) if self._answers is not None else None
        return known[1] if known is not None and known[0] > self.reactor.seconds() else None

    async def answer(self, host: str) -> Answer:
        """Return the answer for a host, after looking it up if it is not cached."""
        found: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.look_up(host, lambda answer: None if found.done() else found.set_result(answer))
        return await found

    def _answered(self, answer: Answer, host: str, waiting: list[Deferred[Answer]], since: float) -> None:
        if not waiting:
            return  # too late for all questions: it must not replace the result of a later look-up
        del self._in_flight[host]
        self._keep(host, answer, since=since)
        for question in waiting:
            question.callback(answer)

    def _keep(self, host: str, answer: Answer, *, since: float) -> None:
        if self._answers is not None:
            self._answers.put(host, (since + (self.ttl_s if answer.error is None else self.no_answer_ttl_s), answer))


class LoopNames:
    """Looks names up in the threads of the running event loop, where there is no reactor; nothing is remembered."""

    def __init__(self, *, timeout_s: float) -> None:
        self._timeout_s = timeout_s

    def cached(self, host: str) -> Answer | None:
        """Return the answer for a host that is an address."""
        return _of_address(host)

    async def answer(self, host: str) -> Answer:
        """Return the answer for a host."""
        try:
            looked_up = asyncio.get_running_loop().run_in_executor(None, _look_up, host)
            return Answer(await asyncio.wait_for(looked_up, self._timeout_s))
        except (OSError, UnicodeError) as error:
            return _of_error(error)


def as_in_urls(host: str) -> str | None:
    """Return a host as URLs in normal form and rules have it, an IPv6 address without brackets; None for what no URL has as its host.

    A client looks up a host as it is spelt in a link: `127.1`, `0x7f.1`, `LOCALHOST`, `localhost.` or `0:0:0:0:0:0:0:1`.
    """
    if _PLAIN.fullmatch(host):
        return host
    if not host.isascii():
        # Twisted passes an `xn--` name in its own letters. Each label is encoded again as it is: in normal form such letters can be
        # those of another host, `straße` those of `strasse`, and digits in boxes those of an address.
        host = ".".join(label if label.isascii() else f"xn--{label.encode('punycode').decode()}" for label in host.split("."))
    bare = host.strip("[]")
    try:
        parsed = parse(f"http://[{bare}]/" if ":" in bare else f"http://{host}/").host
    except MalformedUrl:
        return None
    if parsed.startswith("["):
        return parsed.strip("[]")
    # What ends a host in a URL is no part of it, and a name has no empty label: `a.example..` is not `a.example`.
    return None if _ENDS_A_HOST.search(host) or not all(parsed.split(".")) else parsed


@implementer(IHostResolution)
class _Resolution:
    def __init__(self, name: str) -> None:
        self.name = name

    def cancel(self) -> None:
        """A look-up in a thread can't be cancelled; its answer is not waited for."""


@implementer(IHostnameResolver)
class GuardedResolver:
    """Twisted's name resolver. If the crawl is unknown, an address is returned only if every guard allows it."""

    def __init__(self, names: HostNames | LoopNames, *, of_process: GuardedResolver | None = None) -> None:
        """`of_process`: the resolver of the process, which clients without a crawl use."""
        self._names = names
        self._of_process = of_process
        self._guards: list[Guard] = []
        self._admitted: Recent[tuple[str, int, bool], tuple[Answer, Found]] = Recent(_HOSTS)
        """Addresses of an answer that may be connected to, by the present guards."""
        self.look_ups = LookUps()
        """The addresses found, for the crawl to store."""
        self._refused: Recent[tuple[str, int], Decision] = Recent(_HOSTS)
        self._errors: Recent[str, int] = Recent(_HOSTS)
        """Why the last look-up of a host failed."""
        proxies = filter(None, (urlsplit(proxy).hostname for proxy in getproxies().values())) if of_process is None else ()
        self._proxies = frozenset(as_in_urls(host) or host for host in proxies)
        """Of the environment, for clients of which it is not known whether they connect to a proxy."""

    @classmethod
    def from_crawler(cls, crawler: Any, reactor: ReactorBase) -> GuardedResolver:
        return cls(HostNames.from_settings(crawler.settings, reactor))

    def install_on_reactor(self) -> None:
        assert isinstance(self._names, HostNames)
        self._names.reactor.installNameResolver(self)

    # --- guards ---------------------------------------------------------------------------------------------------

    def add(self, guard: Guard) -> None:
        """Check each address with `guard` too, from now on."""
        self._guards.append(guard)
        self._admitted = Recent(_HOSTS)

    def remove(self, guard: Guard) -> None:
        if guard in self._guards:
            self._guards.remove(guard)
            self._admitted = Recent(_HOSTS)

    def for_one(self, *guards: Guard) -> GuardedResolver:
        """Return a resolver with these guards alone. Its cache is shared."""
        own = GuardedResolver(self._names, of_process=self)
        for guard in guards:
            own.add(guard)
        return own

    def decide(self, host: str, port: int, address: str) -> Decision:
        """Return whether a connection may be made by the rules of all guards."""
        decisions = (guard(host, port, address) for guard in self._guards)
        return next((decision for decision in decisions if not decision.admitted), _ADMITTED)

    # --- the last look-up -----------------------------------------------------------------------------------------

    def why_refused(self, host: str, port: int) -> Decision | None:
        """Why no address of the host was allowed at the last look-up, if that was so."""
        refused = self._refused.get((host, port))
        if refused is None and self._errors.get(host) is None and self._of_process is not None:
            return self._of_process.why_refused(host, port)  # called by a download handler that replaces ours
        return refused

    def does_not_exist(self, host: str) -> bool:
        """Whether the last look-up of the host was answered "no such host"."""
        error = self._errors.get(host)
        if error is None and self._of_process is not None:
            return self._of_process.does_not_exist(host)
        return error in _NO_SUCH_HOST

    def gave_no_answer(self, host: str) -> bool:
        """Whether the last look-up of the host gave neither an address nor the answer that there is none, so that another one may."""
        error = self._errors.get(host)
        return error is not None and error not in _NO_SUCH_HOST

    # --- looking up -----------------------------------------------------------------------------------------------

    def resolveHostName(  # noqa: N802
        self,
        resolutionReceiver: Any,  # noqa: N803
        hostName: str,  # noqa: N803
        portNumber: int = 0,  # noqa: N803
        addressTypes: Sequence[type] | None = None,  # noqa: N803
        transportSemantics: str = "TCP",  # noqa: N803
    ) -> Any:
        hostName = as_in_urls(hostName) or hostName  # noqa: N806
        resolution = _Resolution(hostName)
        resolutionReceiver.resolutionBegan(resolution)
        assert isinstance(self._names, HostNames)
        self._names.look_up(hostName, lambda answer: self._tell(resolutionReceiver, hostName, portNumber, answer))
        return resolution

    def _tell(self, receiver: Any, host: str, port: int, answer: Answer) -> None:
        for family, address in self._check(host, port, answer, is_proxy=host in self._proxies):
            kind = IPv6Address if family == socket.AF_INET6 else IPv4Address
            receiver.addressResolved(kind("TCP", address, port))
        receiver.resolutionComplete()

    def cached(self, host: str, port: int, *, is_proxy: bool = False) -> Found | None:
        """Return the addresses of a host (as in URLs in normal form) that may be connected to; None where it must be looked up first.

        `is_proxy`: a proxy is to be connected to, which a person has named: any of its addresses may be.
        """
        answer = self._names.cached(host)
        if answer is None:
            return None
        key = host, port, is_proxy
        last = self._admitted.get(key)
        if last is not None and last[0] is answer:
            return last[1]
        found = self._check(host, port, answer, is_proxy=is_proxy)
        self._admitted.put(key, (answer, found))
        return found

    async def addresses(self, host: str, port: int, *, is_proxy: bool = False) -> Found:
        """Return the addresses of a host that may be connected to, after looking it up. See `cached`."""
        return self._check(host, port, await self._names.answer(host), is_proxy=is_proxy)

    def refuse(self, host: str, port: int, decision: Decision) -> None:
        """Note why an address of a host may not be connected to that was not looked up here."""
        self._refused.put((host, port), decision)

    def _check(self, host: str, port: int, answer: Answer, *, is_proxy: bool) -> Found:
        """Return the addresses of an answer that the guards allow; note the answer, and why it has none that may be connected to."""
        refused: Decision | None = None
        allowed: Found = []
        if self._of_process is not None and not is_proxy:
            self.look_ups.note(host, [address for _, address in answer.found])
        for family, address in answer.found:
            decision = _ADMITTED if is_proxy else self.decide(host, port, address)
            if decision.admitted:
                allowed.append((family, address))
            else:
                refused = decision if refused is None else of_all_addresses([refused, decision])
        if not allowed and refused is not None:
            self._refused.put((host, port), refused)
        else:
            self._refused.drop((host, port))
        if answer.error is not None:
            self._errors.put(host, answer.error)
        else:
            self._errors.drop(host)
        return allowed


_PLAIN = re.compile(r"(?:[a-z0-9_-]+\.)*[a-z_-][a-z0-9_-]*")
"""Names that are in normal form for certain: nearly all."""
_ENDS_A_HOST = re.compile(r"[/\\?#@\s]")
_ADMITTED = Decision(Reason.ADMITTED, None, ())
_NO_SUCH_HOST: frozenset[object] = frozenset(
    {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME), socket.EAI_FAIL}
)


@lru_cache(1_000)
def _of_address(host: str) -> Answer | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return Answer([(int(socket.AF_INET6 if address.version == 6 else socket.AF_INET), str(address))])


def _look_up(host: str) -> Found:
    """Runs in a thread. Raises socket.gaierror; UnicodeError for what can be no name, as with a label of 64 letters or an empty one."""
    answers = socket.getaddrinfo(host.strip("[]"), 0, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((int(family), str(address[0])) for family, _, _, _, address in answers))


def resolver_of_process(settings: BaseSettings) -> GuardedResolver:
    """Return the resolver that all crawls of the process share; one without rules where it has another."""
    if not is_reactor_installed():
        return GuardedResolver(LoopNames(timeout_s=settings.getfloat("DNS_TIMEOUT")))
    from twisted.internet import reactor  # noqa: PLC0415 - importing it installs it

    installed = getattr(reactor, "nameResolver", None)
    if isinstance(installed, GuardedResolver):
        return installed
    return GuardedResolver(HostNames.from_settings(settings, reactor))


def _why_nothing(failure: Failure) -> Answer:
    return NO_ANSWER if failure.value is None else _of_error(failure.value)


def _of_error(error: BaseException) -> Answer:
    if isinstance(error, UnicodeError):
        return Answer([], socket.EAI_NONAME)
    return Answer([], error.errno) if isinstance(error, socket.gaierror) and error.errno is not None else NO_ANSWER
