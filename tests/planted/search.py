"""Search for secrets in all that a crawl leaves behind, in the forms in which a program may write them."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus

Places = Mapping[str, Iterable[bytes]]
Found = Counter[tuple[str, str]]
"""How often a secret is found: by place and name of the secret."""
_MEMBER = b"\x1f\x8b\x08"


def forms(secret: str) -> set[bytes]:
    """Return a secret as it is, encoded for URLs and JSON, and what base64 makes of it wherever it begins."""
    quoted = {secret, quote(secret), quote(secret, safe=""), quote(secret, safe="+"), quote_plus(secret)}
    found = {one.encode() for one in (*quoted, json.dumps(secret)[1:-1], repr(secret)[1:-1])}
    for raw in {one.encode() for one in quoted}:
        for before in range(3):
            encoded = base64.b64encode(b"\0" * before + raw)
            first, last = -(-before * 8 // 6), (before + len(raw)) * 8 // 6  # without what depends on the bytes before and after
            found |= {encoded[first:last], encoded[first:last].translate(bytes.maketrans(b"+/", b"-_"))}
    return found | {one.replace(b"/", b"\\/") for one in found}


def count(places: Places, secrets: Mapping[str, str]) -> Found:
    """Return where which secret is."""
    patterns = {name: re.compile(b"|".join(map(re.escape, sorted(forms(secret))))) for name, secret in secrets.items()}
    found: Found = Counter()
    for place, contents in places.items():
        for content in contents:
            for name, pattern in patterns.items():
                if number := len(pattern.findall(content)):
                    found[place, name] += number
    return found


def files(folder: Path) -> Iterable[bytes]:
    """Yield the files of a folder, and those that are compressed without that, too."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            yield content
            if content.startswith(_MEMBER):
                yield b"".join(_members(content))


def _members(content: bytes) -> Iterable[bytes]:
    """Yield what is in the members of a gzip file, of which the last may be cut short."""
    while content.startswith(_MEMBER):
        inflate = zlib.decompressobj(31)
        yield inflate.decompress(content)
        content = inflate.unused_data


def table(found: Found, places: Iterable[str], secrets: Iterable[str]) -> str:
    """Return how often each secret was found at each place."""
    names, rows = list(secrets), list(places)
    wide = max(map(len, rows))
    lines = [f"{'':<{wide}}  " + "  ".join(names)]
    lines += [f"{row:<{wide}}  " + "  ".join(f"{found[row, name]:>{len(name)}}" for name in names) for row in rows]
    return "\n".join(lines)
