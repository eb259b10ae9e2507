"""Digest log-ins (RFC 7616): the password is never sent, only what proves it, for a number that the server has given."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from secrets import token_hex
from urllib.parse import quote, urlsplit
from urllib.request import parse_http_list, parse_keqv_list

from crawlspace.cache import Recent

_ALGORITHMS = {"md5": hashlib.md5, "sha-256": hashlib.sha256, "sha-512-256": lambda data: hashlib.new("sha512_256", data)}
_STRENGTH = tuple(_ALGORITHMS)


Challenge = Mapping[str, str]
"""The values of a challenge that can be answered."""
_BASIC: Challenge = {"nonce": "basic"}
"""The challenge of a site that asks for the password itself (RFC 7617)."""
_REMEMBERED = 100
_COMMAS = re.compile(r',(?=(?:[^"]*"[^"]*")*[^"]*$)')
"""A comma that is in no quotes."""
_SCHEME = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:[ \t]+.*)?", re.DOTALL)
"""A scheme, with its first parameter or token if it has one (RFC 9110, 11.3); a further parameter has no blank before its `=`."""
_LONGEST_SCHEME, _MOST_SCHEMES = 40, 8


class DigestLogin:
    """The log-in at one site: which challenges it has answered, and the one that requests answer beforehand."""

    def __init__(self, user: str, password: str, *, takes_basic: bool = False) -> None:
        """`takes_basic`: the password is sent to a site that asks for it, and for no proof of it."""
        self._takes_basic = takes_basic
        self._user = user
        self._password = password
        self._taken: Challenge = {}
        """The last one with which the log-in was taken."""
        self._given: Recent[str, Challenge] = Recent(_REMEMBERED)
        """By nonce."""
        self._counts: Recent[str, int] = Recent(_REMEMBERED)
        """Number of uses, by nonce."""

    @property
    def known(self) -> Challenge:
        """The challenge that a request may answer beforehand; empty: none yet."""
        return self._taken

    def take(self, challenges: Iterable[str], *, answered: str, is_last: bool = False) -> Challenge | None:
        """Return the challenge of a 401 that is to be answered; None if it refuses the log-in. `answered`: the nonce that was, if any.

        Where one was answered, the log-in is wrong, unless the server wants another number (`stale`), which a request follows once:
        `is_last` when it has. The number of a challenge is the request's own until the server has taken it: it may be good only once.
        """
        challenges = list(challenges)
        found = [challenge for one in challenges if (challenge := _read(one)) is not None]
        if not found and self._takes_basic and "basic" in {name.lower() for name in schemes(map(str.encode, challenges))}:
            found = [_BASIC]
        if not found or is_last:
            return None
        challenge = max(found, key=lambda one: _STRENGTH.index(_algorithm(one)))
        if answered and challenge.get("stale", "").lower() != "true" and self._taken.get("nonce", answered) == answered:
            return None  # else another request has a newer one, which was right
        self._given.put(challenge["nonce"], challenge)
        return challenge

    def taken(self, nonce: str) -> None:
        """The answer with that number was taken."""
        self._taken = self._given.get(nonce) or self._taken

    def authorization(self, method: str, url: str, challenge: Challenge) -> str:
        """Return the header for a request, which answers that challenge."""
        if challenge is _BASIC:
            return f"Basic {b64encode(f'{self._user}:{self._password}'.encode()).decode()}"
        name = _algorithm(challenge)

        def hashed(text: str) -> str:
            return str(_ALGORITHMS[name](text.encode()).hexdigest())

        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        realm, nonce, client_nonce = challenge.get("realm", ""), challenge["nonce"], token_hex(16)
        secret = hashed(f"{self._user}:{realm}:{self._password}")
        if challenge.get("algorithm", "").lower().endswith("-sess"):
            secret = hashed(f"{secret}:{nonce}:{client_nonce}")
        times = (self._counts.get(nonce) or 0) + 1
        self._counts.put(nonce, times)
        count = f"{times:08x}"
        what = hashed(f"{method}:{target}")
        fields = {**_user(self._user), "realm": _quoted(realm), "nonce": _quoted(nonce), "uri": _quoted(target)}
        if "qop" in challenge:
            answer = hashed(f"{secret}:{nonce}:{count}:{client_nonce}:auth:{what}")
            fields.update({"qop": "auth", "nc": count, "cnonce": _quoted(client_nonce)})
        else:  # RFC 2069
            answer = hashed(f"{secret}:{nonce}:{what}")
        fields["response"] = _quoted(answer)
        if "algorithm" in challenge:
            fields["algorithm"] = challenge["algorithm"]
        if "opaque" in challenge:
            fields["opaque"] = _quoted(challenge["opaque"])
        return "Digest " + ", ".join(f"{key}={value}" for key, value in fields.items())


def _read(header: str) -> Challenge | None:
    """Return the values of a challenge that can be answered."""
    scheme, _, rest = header.strip().partition(" ")
    if scheme.lower() != "digest":
        return None
    try:
        challenge = {key.strip().lower(): value for key, value in parse_keqv_list(parse_http_list(rest)).items()}
    except (ValueError, IndexError):
        return None
    qop = challenge.get("qop")
    knows_qop = qop is None or "auth" in [one.strip().lower() for one in qop.split(",")]
    return challenge if challenge.get("nonce") and knows_qop and _algorithm(challenge) in _ALGORITHMS else None


def _algorithm(challenge: Challenge) -> str:
    return challenge.get("algorithm", "md5").lower().removesuffix("-sess")


def _user(name: str) -> dict[str, str]:
    return {"username": _quoted(name)} if name.isascii() else {"username*": f"UTF-8''{quote(name)}"}


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def schemes(values: Iterable[bytes]) -> list[str]:
    """Return the schemes of log-ins that the values of WWW-Authenticate offer, as ["Negotiate", "NTLM", "Basic"]."""
    parts = [part.strip() for value in values for part in _COMMAS.split(value.decode("latin-1"))]
    names = [match[1] for part in parts if (match := _SCHEME.fullmatch(part))]
    return list(dict.fromkeys(name[:_LONGEST_SCHEME] for name in names))[:_MOST_SCHEMES]
