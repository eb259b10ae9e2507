"""The options that say how a search server is spoken to."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from crawlspace import __version__
from crawlspace.errors import SettingError
from crawlspace.index.json_client import Connection

if TYPE_CHECKING:
    from crawlspace.index.sink import Options


def connection_of(options: Options, *, has_api_key: bool) -> Connection:
    """Return the connection that options describe; `has_api_key`: an API key may take the place of a password. Raises SettingError."""
    url = options.url("url")
    user, password = options.text("user", ""), options.secret("password")
    key = options.secret("api_key") if has_api_key else ""
    if bool(user) != bool(password) or (user and key):
        neither = ', and neither with "api_key"' if has_api_key else ""
        raise SettingError(f'{options.where("user")} goes with "password"{neither}')
    headers = {"User-Agent": f"crawlspace/{__version__}", "Accept": "application/json"}
    if user:
        headers["Authorization"] = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
    elif key:
        headers["Authorization"] = f"ApiKey {key}"
    return Connection(
        url,
        headers,
        options.seconds("timeout", 60, low=1),
        ca_file=options.file("ca_file"),
        certificate=options.file("client_cert"),
        key=options.file("client_key"),
    )


def batch_bytes_of(options: Options) -> int:
    """Return the most bytes of one request. Raises SettingError."""
    return options.integer("batch_bytes", 5_000_000, low=10_000, high=100_000_000)


def connections_of(options: Options) -> int:
    """Return the number of requests at a time. Raises SettingError."""
    return options.integer("connections", 4, low=1, high=16)
