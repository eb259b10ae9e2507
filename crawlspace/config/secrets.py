"""Settings that may refer to a secret outside settings.py: `env:NAME` in the environment, `file:PATH` in a file."""

from __future__ import annotations

import os
from pathlib import Path

from crawlspace.errors import SettingError
from crawlspace.text import printable

MOST_BYTES = 65_536
"""Maximal size of a secret's file."""


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


def _from_file(setting: str, name: str) -> str:
    """Return the stripped text of a regular file. Raises SettingError, also for a pipe, which would block."""
    path = Path(name).expanduser()
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
