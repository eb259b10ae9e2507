"""One request to a site with its log-in, for a person who wants to see whether it works."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import aiohttp

from crawlspace.content.html import extract
from crawlspace.printable import printable
from crawlspace.urls import Url

_MOST_BYTES = 1 << 20
_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Tried:
    """What a site has answered; `failed` says why it has not."""

    status: int = 0
    location: str = ""
    content_type: str = ""
    title: str = ""
    failed: str = ""

    @property
    def is_taken(self) -> bool:
        """Whether the site has taken the log-in, as far as a status says so."""
        return 200 <= self.status < 400

    @property
    def sentence(self) -> str:
        if self.failed:
            return f"no answer: {self.failed}"
        parts = [f"status {self.status}"]
        parts += [f"to {printable(self.location)}"] if self.location else []
        parts += [printable(self.content_type)] if self.content_type else []
        parts += [f"titled {printable(self.title)}"] if self.title else []
        return ", ".join(parts)


def try_login(url: Url, headers: dict[str, str], *, user_agent: str, verify: bool) -> Tried:
    """Request a URL, without following a redirect."""
    return asyncio.run(_tried(url, {"User-Agent": user_agent, **headers}, verify=verify))


async def _tried(url: Url, headers: dict[str, str], *, verify: bool) -> Tried:
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(url.text, headers=headers, allow_redirects=False, ssl=verify) as response,
        ):
            body = await response.content.read(_MOST_BYTES)
            kind = response.content_type if "Content-Type" in response.headers else ""
            title = extract(body, url=url.text, charset=response.charset).title if kind == "text/html" else ""
            return Tried(response.status, response.headers.get("Location", ""), kind, title)
    except TimeoutError:
        return Tried(failed=f"none within {_TIMEOUT_S} s")
    except (aiohttp.ClientError, OSError) as error:
        return Tried(failed=printable(str(error)))
