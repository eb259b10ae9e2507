"""Connections through a proxy, with the private names of Scrapy's HTTP client that they need, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrapy.core.downloader.handlers.http11 import _TunnelingAgent, _TunnelingTCP4ClientEndpoint
from twisted.internet.defer import Deferred
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from twisted.web.client import URI

from crawlspace.runtime.download.errors import TunnelRefused

LONGEST_CONNECT_S = 30.0
"""Until a proxy must have taken a connection, and at most half the time of a request: later it is not known what kept the answer away."""


class TunnelEndpoint(_TunnelingTCP4ClientEndpoint):
    """What connects to a site through a proxy. It has no public name.

    Scrapy's speaks no TLS with the proxy, looks the proxy's name up later and as IPv4 only, and does not notice when the proxy closes
    the connection instead of an answer.
    """

    def __init__(self, to_proxy: Any, uri: Any, authorization: bytes | None, policy: Any) -> None:
        """`to_proxy`: the endpoint of the proxy; `uri`: what is connected to; `policy`: of the TLS connection to that."""
        conf = ("", 0, authorization)
        super().__init__(reactor=None, host=uri.host, port=uri.port, proxyConf=conf, contextFactory=policy)  # type: ignore[arg-type]
        self._to_proxy = to_proxy

    def connect(self, protocolFactory: Any) -> Deferred[Any]:  # noqa: N803
        connected = self._to_proxy.connect(protocolFactory)
        connected.addCallback(self.requestTunnel).addErrback(self.connectFailed)
        return self._tunnelReadyDeferred

    def requestTunnel(self, protocol: Any) -> Any:  # noqa: N802
        ready = self._tunnelReadyDeferred

        def lost(reason: Failure) -> None:
            del protocol.connectionLost
            if not ready.called:
                ready.errback(reason)
            protocol.connectionLost(reason)

        protocol.connectionLost = lost
        return super().requestTunnel(protocol)

    def processProxyResponse(self, data: bytes) -> None:  # noqa: N802
        self._connectBuffer += data
        if b"\r\n\r\n" not in self._connectBuffer:
            return
        protocol: Any = self._protocol
        protocol.dataReceived = self._protocolDataReceived
        found = self._responseMatcher.match(self._connectBuffer)
        status = int(found["status"]) if found is not None else 0
        if not 200 <= status < 300:
            self._tunnelReadyDeferred.errback(TunnelRefused(status))
            protocol.transport.abortConnection()
            return
        del protocol.connectionLost
        policy: Any = self._contextFactory
        _begin_tls(protocol, policy.creatorForNetloc(self._tunneledHost, self._tunneledPort))
        self._tunnelReadyDeferred.callback(protocol)


def _begin_tls(protocol: Any, creator: Any) -> None:
    """Have what a protocol sends and gets encrypted from now on, also where its transport is TLS: Twisted's startTLS knows only sockets."""
    below = protocol.transport
    if not isinstance(below, TLSMemoryBIOProtocol):
        below.startTLS(creator)
        return
    make: Any = TLSMemoryBIOFactory
    factory = make(creator, True, None)  # noqa: FBT003 - as a client; the name of the parameter is no interface
    inner = factory.protocol(factory, protocol, False)  # noqa: FBT003 - the protocol is connected already
    below.wrappedProtocol = protocol.transport = inner
    inner.makeConnection(below)


class TunnelAgent(_TunnelingAgent):
    """Twisted's agent for what goes through a tunnel; Scrapy's class is looked for to keep the proxy's log-in from the site."""

    def __init__(
        self, *, proxy: bytes, authorization: bytes | None, policy: Any, connect_timeout_s: float, bind: Any, pool: Any
    ) -> None:
        from twisted.internet import reactor  # noqa: PLC0415 - importing it installs it

        conf: Any = (proxy, 0, authorization)  # a part of the key by which connections are kept
        super().__init__(
            reactor=reactor,
            proxyConf=conf,
            contextFactory=policy,
            connectTimeout=connect_timeout_s,
            bindAddress=bind,
            pool=pool,
        )
        self._proxy, self._authorization = URI.fromBytes(proxy), authorization

    def _getEndpoint(self, uri: Any) -> Any:  # noqa: N802
        return TunnelEndpoint(self._endpointFactory.endpointForURI(self._proxy), uri, self._authorization, self._contextFactory)


def is_to_proxy(key: Any, endpoint: Any) -> bool:
    """Return whether a connection of the pool is one to a proxy, or through one."""
    return isinstance(endpoint, _TunnelingTCP4ClientEndpoint) or key[0] == b"http-proxy"


def tunnel_state(endpoint: Any) -> tuple[Any, bytes, Callable[[], None]]:
    """Return what waits for a proxy's answer, what came of it, and what ends the connection: the endpoint has no limits to set."""
    return endpoint._tunnelReadyDeferred, endpoint._connectBuffer, endpoint._protocol.transport.abortConnection
