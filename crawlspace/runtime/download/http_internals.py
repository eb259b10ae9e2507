"""The private names of Scrapy's HTTP client, and of Twisted's below it, that are used, each with its reason.

This is what to compare when one of the two changes. What other modules need of them has a public name here. They stand apart from
the other private names because loading the client takes a tenth of a second, which commands without a crawl do not need.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from scrapy.core.downloader.contextfactory import _ScrapyClientContextFactory
from scrapy.core.downloader.handlers import http11
from scrapy.core.downloader.handlers.http11 import (
    HTTP11DownloadHandler,
    _LenientHTTP11ClientFactory,
    _LenientHTTP11ClientProtocol,
    _LenientHTTPClientParser,
    _ScrapyAgent,
)
from scrapy.http import Headers
from scrapy.utils import _download_handlers
from scrapy.utils.url import add_http_if_no_scheme
from twisted.internet.defer import Deferred, succeed
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.ssl import optionsForClientTLS
from twisted.python.failure import Failure
from twisted.web import _newclient
from twisted.web.client import HTTPConnectionPool
from twisted.web.http import _ChunkedTransferDecoder

from crawlspace.runtime.download.tunnels import LONGEST_CONNECT_S, TunnelAgent
from crawlspace.runtime.scrapy_internals import STOPPED

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

ParseError = _newclient.ParseError
RequestNotSent = _newclient.RequestNotSent
"""These two errors are exported by no public module; the others of the client are in twisted.web.client."""

make_response = _download_handlers.make_response
normalize_bind_address = _download_handlers.normalize_bind_address
"""How Scrapy's handlers make a response, and read a setting; the module is private."""


class WrittenRequest(_newclient.Request):
    """A request that was written to its connection before the connection was given it. What sends a request would always write it."""

    def writeTo(self, transport: Any) -> Deferred[None]:  # noqa: N802
        return succeed(None)


class ChunkedDecoder(_ChunkedTransferDecoder):
    """Decoder of chunked bodies with a method for each trailer: Twisted bounds their bytes only, in a private attribute."""

    def limit_trailer_bytes(self, most: int) -> None:
        self._maxTrailerHeadersSize = min(most, self._maxTrailerHeadersSize)

    def trailers(self, number: int) -> None:
        """So many lines of trailers have been read."""

    def _dataReceived_TRAILER(self) -> bool:  # noqa: N802
        goes_on = super()._dataReceived_TRAILER()
        self.trailers(len(self._trailerHeaders))
        return goes_on


class ResponseParser(_LenientHTTPClientParser):
    """Parser of a response. `chunked`: the decoder of chunked bodies, which Twisted takes from a private table."""

    def __init_subclass__(cls, *, chunked: type[ChunkedDecoder], **others: Any) -> None:
        super().__init_subclass__(**others)
        cls._transferDecoders = {b"chunked": chunked}


class ClientProtocol(_LenientHTTP11ClientProtocol):
    """HTTP connection with methods where a response ends and where it is given up: Twisted has none."""

    @property
    def reads_response(self) -> bool:
        """Whether what comes belongs to a response: without a parser, nothing was asked, or the response is complete."""
        return self._parser is not None

    def parse_with(self, parser: type[ResponseParser]) -> None:
        """Replace the class of the parser, which Twisted chooses by itself."""
        assert self._parser is not None
        self._parser.__class__ = parser

    def return_to_pool(self) -> None:
        """Have the connection kept for another request; the callback for that is private."""
        self._quiescentCallback(self)

    def do_not_keep(self) -> None:
        """Close the connection after this response; whether it is kept is an attribute of the request, which is private."""
        if self._currentRequest is not None:
            self._currentRequest.persistent = False

    def response_complete(self, rest: bytes) -> None:
        """A response is complete; `rest` was sent after it."""

    def given_up(self, reason: Failure) -> None:
        """The connection is being closed, because of what came."""

    def _finishResponse_WAITING(self, rest: bytes) -> None:  # noqa: N802
        self.response_complete(rest)
        super()._finishResponse_WAITING(rest)

    def _giveUp(self, reason: Failure) -> None:  # noqa: N802
        super()._giveUp(reason)
        self.given_up(reason)


class ConnectionFactory(_LenientHTTP11ClientFactory):
    """Factory of connections that return to the pool: the callback for that is private."""

    def connection(self, protocol: type[ClientProtocol]) -> Any:
        return protocol(self._quiescentCallback)


class Body(Protocol):
    """Takes the place of the buffer of a body, with a limit of its own."""

    is_too_large: bool
    """Nothing of it is to be read, or no more."""

    @property
    def is_over(self) -> bool: ...

    def write(self, data: bytes) -> object: ...

    def getvalue(self) -> bytes: ...

    def truncate(self, size: int) -> object: ...

    def drop(self) -> None: ...


class DownloadAgent(_ScrapyAgent):
    """What downloads one response, with a method that returns what takes its body: Scrapy has no way to set that."""

    @staticmethod
    def _headers_from_twisted_response(response: Any) -> Headers:
        """Return the headers of a response. Scrapy converts them for the signal `headers_received`, and then all of them once more."""
        headers: Headers | None = getattr(response, "crawlspace_headers", None)
        if headers is None:
            headers = response.crawlspace_headers = _ScrapyAgent._headers_from_twisted_response(response)
        copy = Headers()
        dict.update(copy, {name: [*values] for name, values in dict.items(headers)})
        return copy

    _written: _Written | None = None

    def read_as_usual(
        self, request: Request, read: Callable[[Any], Deferred[Any]], *, began: float, timeout_s: float
    ) -> Deferred[Response]:
        """Have Scrapy make the response to a request that is written already. `read` returns what it reads of the answer.

        `began`: when the request was written, by time.monotonic(); `timeout_s`: what is left of its time.
        """
        self._written = _Written(read, began)
        response = _ScrapyAgent.download_request(self, request)
        timer: Any = self._timeout_cl  # the interface has methods without self
        if timer.active():
            timer.reset(max(0.0, timeout_s))
        return response

    def call_later(self, delay_s: float, function: Callable[[], None]) -> Any:
        """Set a timer of the pool, which has a clock of its own, in a private attribute."""
        pool: Any = self._pool
        return pool._reactor.callLater(delay_s, function)

    def _get_agent(self, request: Request, timeout: float) -> Any:
        proxy = request.meta.get("proxy")
        if self._written or not proxy:
            return self._written or super()._get_agent(request, timeout)
        connect_timeout_s = min(timeout / 2, LONGEST_CONNECT_S)
        if not request.url.startswith("https:"):
            return super()._get_agent(request, connect_timeout_s)
        return TunnelAgent(
            proxy=add_http_if_no_scheme(proxy).encode("ascii"),
            authorization=request.headers.get(b"Proxy-Authorization"),
            policy=self._contextFactory,
            connect_timeout_s=connect_timeout_s,
            bind=normalize_bind_address(request.meta.get("bindaddress") or self._bindAddress),
            pool=self._pool,
        )

    def _cb_latency(self, result: Any, request: Request, start_time: float) -> Any:
        return super()._cb_latency(result, request, start_time if self._written is None else self._written.began)

    def body_for(
        self, request: Request, values_of: Callable[[bytes], list[bytes]], *, length: int, page_limit: int
    ) -> Body | None:
        """Return what takes the body of a response, by its headers; None: as usual."""
        return None

    def _cb_bodyready(self, txresponse: Any, request: Request) -> Any:
        length = txresponse.length if isinstance(txresponse.length, int) else -1
        limit = request.meta.get("download_maxsize", self._maxsize)
        headers = txresponse.headers
        body = self.body_for(request, lambda name: headers.getRawHeaders(name, []), length=length, page_limit=limit)
        if body is None:
            return super()._cb_bodyready(txresponse, request)
        if body.is_too_large:
            txresponse._transport.stopProducing()
            txresponse._transport.loseConnection()
            return {"txresponse": txresponse, "flags": [STOPPED]}
        self._maxsize = 0  # the body has its limit
        deliver = txresponse.deliverBody
        txresponse.deliverBody = lambda reader: deliver(_into(body, reader))
        return super()._cb_bodyready(txresponse, request)


class _Written:
    """Takes the place of Twisted's agent for a request that is written already."""

    def __init__(self, read: Callable[[Any], Deferred[Any]], began: float) -> None:
        self._read, self.began = read, began

    def request(self, method: bytes, uri: bytes, headers: Any, body: Any) -> Deferred[Any]:
        return self._read(WrittenRequest(method, uri, headers, body, persistent=True))


def _into(body: Body, reader: Any) -> Any:
    """Return the reader of a response that puts what comes into a body."""
    reader._bodybuf = body
    receive = reader.dataReceived

    def received(data: bytes) -> None:
        try:
            receive(data)
        except OSError as error:  # the disk is full
            reader.transport.loseConnection()
            reader._finished.errback(Failure(error))
            return
        if reader._finished.called or not body.is_over:
            return
        if body.is_too_large:
            body.drop()
            reader.transport.stopProducing()
            reader.transport.loseConnection()
            reader._finish_response(flags=[STOPPED])
        else:
            reader._finished.cancel()

    reader.dataReceived = received
    return reader


def use_agent(agent: type[DownloadAgent]) -> None:
    """Set what downloads responses. Scrapy's handler makes it in the middle of a method."""
    http11._ScrapyAgent = agent  # type: ignore[misc]


def pool_of(handler: HTTP11DownloadHandler) -> HTTPConnectionPool:
    """Return the connections of Scrapy's download handler, which has no parameter for them."""
    return handler._pool


def use_factory(pool: HTTPConnectionPool, factory: type[ConnectionFactory]) -> None:
    """Set what makes the connections of a pool. Twisted documents `_factory` for subclasses; Scrapy sets it too."""
    pool._factory = factory


def kept_connection(pool: HTTPConnectionPool, key: Any) -> Any:
    """Return a connection that was kept, None if there is none. The pool's public method would make another then."""
    connections = pool._connections.get(key)
    while connections:
        connection = connections.pop(0)
        pool._timeouts.pop(connection).cancel()
        if connection.state == "QUIESCENT":
            return connection
    return None


def new_connection(pool: HTTPConnectionPool, key: Any, endpoint: Any) -> Any:
    """Return a connection that is not a kept one. The pool's public method prefers those."""
    return pool._newConnection(key, endpoint)


def wrap_new_connection(pool: HTTPConnectionPool, wrap: Callable[[Callable[..., Any], Any], Callable[..., Any]]) -> None:
    """Have connections made by `wrap(make, clock)`. The pool is where they are made; Scrapy has no setting for it."""
    pool._newConnection = wrap(pool._newConnection, pool._reactor)  # type: ignore[method-assign]


def wrap_timers(pool: HTTPConnectionPool, wrap: Callable[[Any], Any]) -> None:
    """Have the pool set its timers by `wrap(reactor)`; it has no other use for its reactor."""
    pool._reactor = wrap(pool._reactor)


def bound_idle_connections(pool: HTTPConnectionPool, most: int) -> None:
    """Have the pool close the connection that has been idle longest, once there are more.

    Twisted bounds them by site, and by four minutes. In four minutes a crawl can ask more sites than a process may have files open:
    then nothing could be opened any more, and every further page would be an error.
    """
    put = pool._putConnection

    def put_and_bound(key: Any, connection: Any) -> None:
        put(key, connection)
        while len(pool._timeouts) > most:
            ending = next(iter(pool._timeouts.values()))  # they are in the order in which they became idle
            site, idle = ending.args
            ending.cancel()
            pool._removeConnection(site, idle)
            if not pool._connections[site]:
                del pool._connections[site]

    pool._putConnection = put_and_bound  # type: ignore[method-assign]


def remember_host_names(most: int) -> None:
    """Have Twisted remember the two forms of a host, which it makes for each request anew, even on a connection that was kept."""
    forms_of = HostnameEndpoint._hostAsBytesAndText
    if not hasattr(forms_of, "cache_info"):
        HostnameEndpoint._hostAsBytesAndText = staticmethod(lru_cache(most)(forms_of))  # type: ignore[method-assign]


class SitePolicy(_ScrapyClientContextFactory):
    """What TLS connections to one site are made with; Scrapy has no public class for it, nor certificates of a client."""

    trusts: Any = None
    """The authorities; None: those that Scrapy trusts."""
    own: Mapping[str, Any] = MappingProxyType({})
    """Options of Twisted for the certificate of the client."""

    def creatorForNetloc(self, hostname: bytes, port: int) -> Any:  # noqa: N802
        if self.trusts is None:
            return super().creatorForNetloc(hostname, port)
        return optionsForClientTLS(
            hostname.decode("ascii"), trustRoot=self.trusts, extraCertificateOptions=self._get_cert_options_kwargs()
        )

    def _get_cert_options_kwargs(self) -> dict[str, Any]:
        return {**super()._get_cert_options_kwargs(), **self.own}


def replace_policy(handler: HTTP11DownloadHandler, replaced: Callable[[Any], Any]) -> None:
    """Have TLS connections made by what `replaced` makes of the present policy."""
    handler._contextFactory = replaced(handler._contextFactory)
