"""Pages that show nothing without their scripts, and a middleware that stands for the browser: the DOM is what a comment of the page has."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from scrapy.http import Request, Response

from crawlspace.runtime.components.archived_responses import with_dom
from crawlspace.runtime.components.requests import EXCHANGE
from tests.sites import Answer, binary

_MARK = b"<!--dom:"
RENDERS = "DOWNLOADER_MIDDLEWARES = {'tests.integration.rendering.Rendering': 100}\n"
LATIN_1 = "iso-8859-1"


def dom(title: str, *, text: str = "", links: Sequence[str] = (), script: str = "") -> str:
    scripts = f"<script>{script}</script>" if script else ""
    return f"<title>{title}</title>{scripts}<p>{text}</p>" + "".join(f'<a href="{to}">{to}</a>' for to in links)


def packed_shell(made: str) -> bytes:
    return zlib.compress(
        f'<meta charset="{LATIN_1}"><title>Shell</title><script src="/app.js"></script><!--dom:{made}-->'.encode(LATIN_1)
    )


def shell(title: str, *, text: str = "", links: Sequence[str] = (), script: str = "") -> Answer:
    """A page of scripts, in another character set than its DOM, and compressed."""
    encoding = {"Content-Encoding": "deflate", "X-Own": "yes"}
    return binary(
        packed_shell(dom(title, text=text, links=links, script=script)), f"text/html; charset={LATIN_1}", headers=encoding
    )


class Rendering:
    """Downloader middleware that gives the DOM to whatever comes next, and to the archive."""

    def process_response(self, request: Request, response: Response) -> Any:
        if EXCHANGE not in request.meta or _MARK not in response.body:
            return response
        made = response.body.partition(_MARK)[2].partition(b"-->")[0].decode(LATIN_1).encode()
        request.meta[EXCHANGE] = replace(request.meta[EXCHANGE], dom=made)
        return with_dom(response, made)
