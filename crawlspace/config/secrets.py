"""Settings that may refer to a secret outside settings.py: `env:NAME` in the environment, `file:PATH` in a file; and sessions, sealed.

Sessions are stored as they are in a file that only this user may read, and encrypted on a server that others share.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from crawlspace.errors import SettingError
from crawlspace.text import printable, quoted, without_credentials

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

MOST_BYTES = 65_536
"""Maximal size of a secret's file."""
STORE_URL = "CRAWLSPACE_STORE_URL"
SESSION_KEY = "CRAWLSPACE_SESSION_KEY"
_SERVERS = ("redis", "rediss", "unix", "sentinel")
_SECRET_NAME = re.compile(r"pass|pwd|secret|token|otp|pin\b|kennwort|key|cookie|credential|authorization|_auth\b", re.IGNORECASE)
_NO_SECRET = re.compile(r"keytab|(url|file|path|enabled)$", re.IGNORECASE)
_REFERRING = ("CRAWLSPACE_", "HTTPPROXY", "REDIS_")
"""What the names of settings begin with that may refer to a secret."""
_MOST_DEPTH = 10
_COST = 1 << 14
"""Of scrypt: the key may be a word that a person has chosen."""


def is_elsewhere(value: str) -> bool:
    """Return whether a value refers to the environment or to a file."""
    return value.startswith(("env:", "file:"))


def read_secret(setting: str, value: str) -> str:
    """Return a setting's value, read from the environment or the file that it refers to. Raises SettingError."""
    kind, _, name = value.partition(":")
    if not is_elsewhere(value):
        return value
    if not name:
        raise SettingError(f"{setting} is {value!r}, which names nothing; write env:NAME for a variable, or file:PATH for a file")
    return _from_environment(setting, name) if kind == "env" else _from_file(setting, name)


def _from_environment(setting: str, name: str) -> str:
    secret = os.environ.get(name)
    if secret is None:
        raise SettingError(f"{setting} is env:{printable(name)}, and the environment has no variable {printable(name)}; set it")
    if not secret.strip():
        raise SettingError(f"{setting} is env:{printable(name)}, and that variable is empty; set it to the value that is meant")
    return secret.strip()


def credential_name(path: str) -> str:
    """Return the name under which systemd passes a secret's file to a service (`LoadCredential=`)."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path).strip("-.")


def _file_of(name: str) -> Path:
    """Return a secret's file: where systemd has passed it, or where it is."""
    passed = os.environ.get("CREDENTIALS_DIRECTORY")
    if passed and (credential := Path(passed, credential_name(name))).is_file():
        return credential
    return Path(name).expanduser()


def _from_file(setting: str, name: str) -> str:
    """Return the stripped text of a regular file. Raises SettingError, also for a pipe, which would block."""
    path = _file_of(name)
    where = f"{setting} is file:{printable(name)}"
    try:
        if not path.is_file():
            path.stat()  # raises if it is missing
            raise SettingError(f"{where}, which is not a file; name one that holds the value and nothing else")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise SettingError(f"{where}, which cannot be read: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise SettingError(
            f"{where}, which has more than {MOST_BYTES:,} bytes; name a file that holds the value and nothing else"
        )
    try:
        secret = content.decode().strip()
    except UnicodeDecodeError:
        raise SettingError(f"{where}, which is not UTF-8; save it as UTF-8") from None
    if not secret:
        raise SettingError(f"{where}, which is empty; write the value into it")
    if len(secret.splitlines()) > 1:
        raise SettingError(f"{where}, which has several lines; name a file that holds the value and nothing else")
    return secret


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
    url = read_secret(STORE_URL, written)
    if url and not is_server(url):
        where = f"{written}, which is " if is_elsewhere(written) else ""
        raise SettingError(
            f"{STORE_URL} is {where}{quoted(shown(url))}; leave it empty for a file, or write the URL of a Redis server, as in redis://localhost:6379/0"
        )
    if url and share_address_delay:
        raise SettingError(
            "CRAWLSPACE_SHARE_ADDRESS_DELAY is on, but workers on a shared store (CRAWLSPACE_STORE_URL) do not know the addresses of"
            " each other's requests; turn it off, or crawl with one process and a file"
        )
    return url


def plain_text_secrets(settings: Mapping[str, object]) -> list[str]:
    """Return which settings seem to have a secret as plain text, by their names and keys, or because a URL has a password."""
    return [where for name, value in sorted(settings.items()) for where in _secrets_in(value, name, where=name, depth=0)]


def secret_references(settings: Mapping[str, object]) -> tuple[list[str], list[str]]:
    """Return the files and the variables of the environment to which settings of ours and of proxies refer."""
    files: set[str] = set()
    variables: set[str] = set()
    values: list[tuple[object, int]] = [(value, 0) for name, value in settings.items() if name.startswith(_REFERRING)]
    while values:
        value, depth = values.pop()
        if isinstance(value, str) and is_elsewhere(value) and not value.startswith("file://"):
            kind, _, name = value.partition(":")
            (files if kind == "file" else variables).add(name)
        elif isinstance(value, (Mapping, list, tuple)) and depth < _MOST_DEPTH:
            values += [(one, depth + 1) for one in (value.values() if isinstance(value, Mapping) else value)]
    return sorted(files), sorted(variables)


def _secrets_in(value: object, name: object, *, where: str, depth: int, is_secret: bool = False) -> Iterator[str]:
    is_secret = is_secret or (_SECRET_NAME.search(str(name)) is not None and _NO_SECRET.search(str(name)) is None)
    if isinstance(value, str):
        if value.strip() and not is_elsewhere(value) and (is_secret or without_credentials(value) != value):
            yield where
    elif isinstance(value, (Mapping, list, tuple)) and depth < _MOST_DEPTH:
        for key, one in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _secrets_in(one, key, where=f"{where}[{key!r}]", depth=depth + 1, is_secret=is_secret)


class Seal:
    """Encrypts what is kept; without a key a shared store gets nothing."""

    def __init__(self, key: object = "", *, is_shared: bool = False) -> None:
        """`key` may be a reference, which is read when it is needed."""
        self._reference = str(key or "")
        self._is_shared = is_shared

    @property
    def keeps(self) -> bool:
        """Whether sessions are stored at all."""
        return bool(self._reference) or not self._is_shared

    def closed(self, content: str) -> str:
        """Return a content as it is to be stored; empty: it may not be stored. Raises SettingError for a key that cannot be read."""
        if self._reference:
            return self._fernet().encrypt(content.encode()).decode()
        return "" if self._is_shared else content

    def opened(self, stored: str) -> str | None:
        """Return the content of what `closed` has returned; None where it has none, or was closed with another key. Raises as `closed`."""
        if not stored:
            return None
        if not self._reference:
            return None if self._is_shared else stored
        from cryptography.fernet import InvalidToken  # noqa: PLC0415 - as below

        try:
            return self._fernet().decrypt(stored.encode()).decode()
        except InvalidToken:
            return None

    def check(self) -> None:
        """Raises SettingError for a key that cannot be read."""
        if self._reference:
            read_secret(SESSION_KEY, self._reference)

    def _fernet(self) -> Fernet:
        return _fernet(read_secret(SESSION_KEY, self._reference))


@cache
def _fernet(key: str) -> Fernet:
    from cryptography.fernet import Fernet  # noqa: PLC0415 - it takes a tenth of a second, for all commands

    derived = hashlib.scrypt(key.encode(), salt=b"crawlspace sessions", n=_COST, r=8, p=1, dklen=32)
    return Fernet(base64.urlsafe_b64encode(derived))
