"""Who may use the console: users with passwords, tokens of programs, and their roles, kept in a file.

A line has a name, its kind (`user` or `token`), its role, and what its secret is checked against: scrypt (RFC 7914) of a password, or SHA-256
of a token, whose 256 random bits nobody can guess. No secret itself is stored.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from crawlspace.errors import ConfigError, UsageError
from crawlspace.private_files import make_folder, replace_file
from crawlspace.text import quoted

SHORTEST_PASSWORD = 10
_COST, _BLOCK, _PARALLEL = 2**15, 8, 1
"""Parameters of scrypt: 32 MiB and about a tenth of a second."""
_MEMORY = 64 * 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}", re.ASCII)
_USER, _TOKEN = "user", "token"
_NO_PASSWORD = "-"


class Role(IntEnum):
    """What a user may do. A greater role may do all that a smaller one may."""

    VIEWER = 1
    OPERATOR = 2

    @property
    def label(self) -> str:
        return self.name.lower()


ROLES = tuple(role.label for role in Role)


@dataclass(frozen=True, slots=True)
class User:
    """Who asks. `is_program`: it was known by a token, and has no session."""

    name: str
    role: Role
    is_program: bool = False

    def may(self, role: Role) -> bool:
        return self.role >= role


LOCAL = User("local user", Role.OPERATOR)
"""Whoever reaches a console on loopback that has no users."""


@dataclass(frozen=True, slots=True)
class _UserEntry:
    name: str
    kind: str
    role: Role
    secret: str

    def __str__(self) -> str:
        return f"{self.name}:{self.kind}:{self.role.label}:{self.secret}"


class Users:
    """The users of a file. It is read again when it has changed, so a new password or a removed user needs no restart."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read_at: tuple[int, int] | None = None
        self._entries: dict[tuple[str, str], _UserEntry] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nobody can log in. Raises ConfigError."""
        return not any(kind == _USER for kind, _ in self._current())

    def check_password(self, name: str, password: str) -> User | None:
        """Return the user with that password; takes as long for an unknown name. Raises ConfigError."""
        entry = self._current().get((_USER, name))
        stored = entry.secret if entry is not None and entry.secret != _NO_PASSWORD else _hash_of("", salt=bytes(16))
        is_right = _is_password(password, stored)
        return User(name, entry.role) if entry is not None and entry.secret != _NO_PASSWORD and is_right else None

    def check_token(self, token: str) -> User | None:
        """Return the program that has that token. Raises ConfigError."""
        digest = _token_hash(token)
        for (kind, name), entry in self._current().items():
            if kind == _TOKEN and hmac.compare_digest(entry.secret, digest):
                return User(name, entry.role, is_program=True)
        return None

    def entry_of(self, name: str) -> str:
        """Return the line of a user, which changes with its password and its role; empty if it may not log in. Raises ConfigError."""
        return str(self._current().get((_USER, name), ""))

    def named(self, name: str) -> User:
        """Return a user whom a proxy has logged in: a viewer, if the file does not say otherwise. Raises ConfigError."""
        entry = self._current().get((_USER, name))
        return User(name, Role.VIEWER if entry is None else entry.role)

    def set_password(self, name: str, password: str | None, role: Role | None) -> None:
        """Add a user, or change it; None for the password: a proxy logs it in. Raises UsageError and ConfigError."""
        if password is not None and len(password) < SHORTEST_PASSWORD:
            raise UsageError(f"the password is too short: use at least {SHORTEST_PASSWORD} characters")
        old = self._current().get((_USER, name))
        new_role = role or (Role.VIEWER if old is None else old.role)
        secret = _NO_PASSWORD if password is None else _hash_of(password, salt=secrets.token_bytes(16))
        self._write(_UserEntry(_valid(name), _USER, new_role, secret))

    def add_token(self, name: str, role: Role) -> str:
        """Return a new token of a program; it replaces an older one. Raises UsageError and ConfigError."""
        token = secrets.token_urlsafe(32)
        self._write(_UserEntry(_valid(name), _TOKEN, role, _token_hash(token)))
        return token

    def remove(self, name: str) -> bool:
        """Remove a user, or the token of a program; return whether there was one. Raises ConfigError."""
        entries = self._current()
        left = {key: entry for key, entry in entries.items() if key[1] != name}
        if len(left) == len(entries):
            return False
        self._save(left)
        return True

    def _write(self, entry: _UserEntry) -> None:
        self._save({**self._current(), (entry.kind, entry.name): entry})

    def _save(self, entries: dict[tuple[str, str], _UserEntry]) -> None:
        text = "".join(f"{entry}\n" for entry in entries.values())
        try:
            make_folder(self.path.parent)
            replace_file(self.path, text.encode())
        except OSError as error:
            raise ConfigError(f"the users cannot be written to {self.path}: {error.strerror}") from error

    def _current(self) -> dict[tuple[str, str], _UserEntry]:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            self._read_at, self._entries = None, {}
            return self._entries
        except OSError as error:
            raise ConfigError(f"the users cannot be read from {self.path}: {error.strerror}") from error
        read_at = (status.st_mtime_ns, status.st_ino)
        if read_at != self._read_at:
            self._entries = {(entry.kind, entry.name): entry for entry in _read(self.path)}
            self._read_at = read_at
        return self._entries


def _valid(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{quoted(name)} cannot name a user: use up to 64 letters, digits and . _ @ -, beginning with a letter or digit"
        )
    return name


def _read(path: Path) -> Iterator[_UserEntry]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the users cannot be read from {path}: {error}") from error
    roles = {role.label: role for role in Role}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, rest = line.strip().partition(":")
        kind, _, rest = rest.partition(":")
        role, _, secret = rest.partition(":")
        if not _NAME.fullmatch(name) or kind not in (_USER, _TOKEN) or role not in roles or not secret:
            raise ConfigError(
                f"{path}:{number}: this is no user: the line has to be NAME:user:ROLE:HASH or NAME:token:ROLE:HASH, with the role"
                f" {' or '.join(roles)}; remove it, and add the user with `scrapy console --set-password NAME`"
            )
        yield _UserEntry(name, kind, roles[role], secret)


def _hash_of(password: str, *, salt: bytes, cost: int = _COST) -> str:
    key = hashlib.scrypt(password.encode("utf-8", "replace"), salt=salt, n=cost, r=_BLOCK, p=_PARALLEL, maxmem=_MEMORY, dklen=32)
    return f"scrypt:{cost}:{salt.hex()}:{key.hex()}"


def _is_password(password: str, stored: str) -> bool:
    try:
        kind, cost, salt, _ = stored.split(":")
        again = _hash_of(password, salt=bytes.fromhex(salt), cost=int(cost)) if kind == "scrypt" else ""
    except ValueError:
        return False
    return hmac.compare_digest(stored, again)


def _token_hash(token: str) -> str:
    return f"sha256:{hashlib.sha256(token.encode('utf-8', 'replace')).hexdigest()}"
