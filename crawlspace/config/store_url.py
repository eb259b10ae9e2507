"""Parsing of CRAWLSPACE_STORE_URL: where the states of URLs are stored."""

from __future__ import annotations

from crawlspace.config.secrets import is_elsewhere, read_secret
from crawlspace.errors import SettingError
from crawlspace.text import quoted, without_credentials

NAME = "CRAWLSPACE_STORE_URL"
_SERVERS = ("redis", "rediss", "unix", "sentinel")


def is_server(url: str) -> bool:
    """Return whether a URL names a server; `redis` alone is the server of scrapy-redis's settings."""
    kind, colon, _ = url.partition("://")
    return url == "redis" or bool(colon and kind in _SERVERS)


def shown(url: str) -> str:
    """Return a server's URL for messages: without user, password and query, which may have a password, too."""
    return without_credentials(url).partition("?")[0]


def read_store_url(value: object, *, share_address_delay: bool = False) -> str:
    """Return the URL of a shared store, resolved if it is in the environment or a file; empty for a file. Raises SettingError."""
    written = str(value or "").strip()
    url = read_secret(NAME, written)
    if url and not is_server(url):
        where = f"{written}, which is " if is_elsewhere(written) else ""
        raise SettingError(
            f"{NAME} is {where}{quoted(shown(url))}; leave it empty for a file, or write the URL of a Redis server, as in redis://localhost:6379/0"
        )
    if url and share_address_delay:
        raise SettingError(
            "CRAWLSPACE_SHARE_ADDRESS_DELAY is on, but workers on a shared store (CRAWLSPACE_STORE_URL) do not know the addresses of"
            " each other's requests; turn it off, or crawl with one process and a file"
        )
    return url
