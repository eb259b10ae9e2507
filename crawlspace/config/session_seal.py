"""Sessions as they are kept in a store: as they are in a file that only this user may read, encrypted on a server that others share."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from typing import TYPE_CHECKING

from crawlspace.config.secrets import read_secret

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

NAME = "CRAWLSPACE_SESSION_KEY"
_COST = 1 << 14
"""Of scrypt: the key may be a word that a person has chosen."""


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
            read_secret(NAME, self._reference)

    def _fernet(self) -> Fernet:
        return _fernet(read_secret(NAME, self._reference))


@cache
def _fernet(key: str) -> Fernet:
    from cryptography.fernet import Fernet  # noqa: PLC0415 - it takes a tenth of a second, for all commands

    derived = hashlib.scrypt(key.encode(), salt=b"crawlspace sessions", n=_COST, r=8, p=1, dklen=32)
    return Fernet(base64.urlsafe_b64encode(derived))
