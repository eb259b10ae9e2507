"""Serves the JSON interface: reads parameters, calls the function of an operation in a thread, and sends its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from aiohttp import web

from crawlspace.console.api.openapi import openapi_document
from crawlspace.console.api.operations import BASE, JSON, LINES, MARKDOWN, Lines, MarkdownText, Operation, Reply, list_names
from crawlspace.console.api.routes import OPERATIONS
from crawlspace.console.console import Console
from crawlspace.console.guard import USER, address_of
from crawlspace.console.routes import Asked, refuse_role
from crawlspace.console.sending import send_lines
from crawlspace.console.users import Role, User
from crawlspace.errors import UsageError

DESCRIPTION = f"{BASE}/openapi.json"
_FORMAT = "format"


def add_api(app: web.Application, console: Console) -> None:
    """Add the addresses of the interface to the application of a console."""
    app.router.add_get(DESCRIPTION, _describe)
    for operation in OPERATIONS:
        app.router.add_route(operation.method, f"{BASE}{operation.path}", _OperationHandler(console, operation).answer)


async def _describe(_request: web.Request) -> web.Response:
    return web.json_response(openapi_document())


class _OperationHandler:
    """Serves one operation."""

    def __init__(self, console: Console, operation: Operation) -> None:
        self._console = console
        self._operation = operation
        self._lists = list_names(operation.takes)
        self._is_action = operation.role is Role.OPERATOR

    async def answer(self, request: web.Request) -> web.StreamResponse:
        operation = self._operation
        user = request[USER]
        refuse_role(user, operation.role)
        match = dict(request.match_info)
        asked = Asked(self._console, user, request.path, address_of(request), match.pop("name", ""), match)
        values = await _body(request) if operation.method == "POST" else self._query(request)
        if self._is_action:
            reply = await asyncio.to_thread(self._act, asked, values, user)
        else:
            reply = await asyncio.to_thread(operation.call, asked, values)
        if isinstance(reply, Lines):
            return await send_lines(request, reply.lines, {"Content-Type": LINES})
        if isinstance(reply, MarkdownText):
            return _markdown(request, reply)
        return web.Response(body=await asyncio.to_thread(msgspec.json.encode, reply), content_type=JSON)

    def _act(self, asked: Asked, values: object, user: User) -> Reply:
        details = values if isinstance(values, dict) else {}
        action = self._operation.name
        with self._console.audit_log.recorded(
            user, asked.address, action=action, collection=asked.name, details=details
        ) as entry:
            reply = self._operation.call(asked, values)
            entry.details = msgspec.to_builtins(reply) if isinstance(reply, msgspec.Struct) else {}
        return reply

    def _query(self, request: web.Request) -> Mapping[str, object]:
        """Return the parameters of the query. Raises UsageError for one that is repeated and must not be."""
        values: dict[str, object] = {}
        for name in dict.fromkeys(request.query):
            given = request.query.getall(name)
            if name not in self._lists and len(given) > 1:
                raise UsageError(f"{name} is given {len(given)} times: give it once")
            values[name] = given if name in self._lists else given[0]
        if MARKDOWN in self._operation.media and _FORMAT not in values and _prefers_markdown(request):
            values[_FORMAT] = "markdown"
        return values


async def _body(request: web.Request) -> object:
    """Return the JSON of a request; an empty object where it has no body. Raises UsageError."""
    body = await request.read()
    if not body:
        return {}
    if request.content_type != JSON:
        raise UsageError(f"the request has the type {request.content_type}: send JSON, as {JSON}")
    try:
        return await asyncio.to_thread(msgspec.json.decode, body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"the request cannot be read as JSON, in UTF-8: {error}") from error


def _prefers_markdown(request: web.Request) -> bool:
    """Whether the Accept header names Markdown before JSON. Weights are ignored; `format` decides where both are accepted."""
    types = [part.partition(";")[0].strip().lower() for part in request.headers.get("Accept", "").split(",")]
    return MARKDOWN in types and JSON not in types[: types.index(MARKDOWN)]


def _markdown(request: web.Request, reply: MarkdownText) -> web.Response:
    headers = {"ETag": f'"{reply.etag}"', "Vary": "Accept"}
    if any(one.value in (reply.etag, "*") for one in request.if_none_match or ()):
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    return web.Response(body=reply.body, content_type=MARKDOWN, charset="utf-8", headers=headers)
