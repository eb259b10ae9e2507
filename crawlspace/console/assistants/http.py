"""The server of the Model Context Protocol at an address of the console: requests of aiohttp for the ASGI application of the SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from http import HTTPStatus

from aiohttp import web
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from multidict import CIMultiDict

from crawlspace.console.assistants.server import mcp_server
from crawlspace.console.assistants.tools import AssistantTools

PATH = "/mcp"
Message = MutableMapping[str, object]


def add_mcp(app: web.Application, tools: AssistantTools) -> None:
    """Serve the tools at /mcp. Each request is answered by itself: no session is kept."""
    endpoint = _Endpoint(tools)
    app.router.add_post(PATH, endpoint.answer)
    app.cleanup_ctx.append(endpoint.running)


class _Endpoint:
    """Hands requests to the SDK."""

    def __init__(self, tools: AssistantTools) -> None:
        server = mcp_server(tools)
        server.streamable_http_app(json_response=True, stateless_http=True)
        self._manager: StreamableHTTPSessionManager = server.session_manager

    async def running(self, _: web.Application) -> AsyncIterator[None]:
        """Run the manager of the SDK in a task of its own, which begins and ends it, as its task group needs."""
        ready, over = asyncio.Event(), asyncio.Event()

        async def run() -> None:
            async with self._manager.run():
                ready.set()
                await over.wait()

        task = asyncio.create_task(run())
        await ready.wait()
        yield
        over.set()
        await task

    async def answer(self, request: web.Request) -> web.StreamResponse:
        exchange = _Exchange(request)
        await self._manager.asgi_app(exchange.scope, exchange.receive, exchange.send)
        return exchange.response()


class _Exchange:
    """One request and its response, as ASGI has them."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self._is_read = False
        self._status = HTTPStatus.INTERNAL_SERVER_ERROR.value
        self._headers: CIMultiDict[str] = CIMultiDict()
        self._body = bytearray()
        self.scope: Message = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": request.method,
            "scheme": request.scheme,
            "path": request.path,
            "raw_path": request.rel_url.raw_path.encode(),
            "query_string": request.query_string.encode(),
            "root_path": "",
            "headers": [(name.lower(), value) for name, value in request.raw_headers],
            "client": None,
            "server": None,
        }

    async def receive(self) -> Message:
        if self._is_read:
            await asyncio.Event().wait()  # until the task is cancelled: aiohttp does that when the client goes
        self._is_read = True
        return {"type": "http.request", "body": await self._request.read(), "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            status, headers = message["status"], message["headers"]
            assert isinstance(status, int)
            assert isinstance(headers, list)
            self._status = status
            self._headers.extend((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
        elif message["type"] == "http.response.body":
            body = message.get("body", b"")
            assert isinstance(body, bytes)
            self._body += body

    def response(self) -> web.Response:
        """Return what was sent."""
        return web.Response(status=self._status, headers=self._headers, body=bytes(self._body))
