"""The lines of FDSE's `search.pending.txt`: `URL realm number`, sorted by URL, the realm URL-encoded.

The number is 0 for a URL that waits, 2 for one that ended in an error, and else the Unix time at which it was indexed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from crawlspace.errors import MOST_SHOWN, ConfigError
from crawlspace.text import printable, quoted

WAITING = 0
ERROR = 2
MOST_BYTES = 16_384
"""Of a line: no URL that is crawled is longer."""
CLOCK_S = 86_400
"""Seconds that the clock of the other machine may be ahead."""
_MOST_REALM = 255
_BOM = b"\xef\xbb\xbf"
_OTHER_FILES = {
    b"\x1f\x8b": "is compressed: unpack it first, as with `gzip -d`",
    b"PK\x03\x04": "is a ZIP archive: unpack it first",
    b"\xff\xfe": "is UTF-16: convert it, as with `iconv -f utf-16 -t utf-8`",
    b"\xfe\xff": "is UTF-16: convert it, as with `iconv -f utf-16 -t utf-8`",
}
"""The first bytes of unreadable files, and what is wrong with them."""
_REALM = re.compile(r"(?:[!-$&-~]|%[0-9A-Fa-f]{2})+")
_NUMBER = re.compile(r"[02-9]|[1-9][0-9]{1,18}")
_PLAIN = re.compile(rb"([!-~]+) ((?:[!-$&-~]|%[0-9A-Fa-f]{2})+) ([02-9]|[1-9][0-9]{1,18})\r?\n")
"""A line in ASCII, like nearly all. The length of its realm, its time and its order in the file may be wrong."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class PendingLine(NamedTuple):
    """A line of the file, which counts from 1."""

    line: int
    url: str
    realm: str
    """As in the file, URL-encoded."""
    number: int


class PendingFileError(ConfigError):
    """A pending file that cannot be imported, with a sentence for each faulty line."""

    def __init__(self, faults: list[str], *, note: str = "") -> None:
        self.faults = tuple(faults)
        self._note = note
        super().__init__()

    def __str__(self) -> str:
        return "\n".join([*self.faults, self._note] if self._note else self.faults)


def merged(known: int, new: int) -> int:
    """Return the number of a URL after a line with another one: a larger number replaces a smaller one, and 2 a time."""
    return new if new == ERROR or new > known else known


def read_lines(file: BinaryIO, name: str, *, now: int, fault: Callable[[str], None]) -> Iterator[PendingLine]:
    """Yield the lines of a file in order; `fault` is called with a sentence for each line that is left out.

    Of lines with the same URL the largest number counts, as in FDSE: each has the largest one so far. A byte order mark and CR LF are skipped.
    `name` is the file's in these sentences. Only one line at a time is in memory. Raises what `fault` raises.
    """
    line = 0
    before = b""
    largest = WAITING  # of the lines so far with the URL `before`
    latest = now + CLOCK_S
    while raw := file.readline(MOST_BYTES + 1):
        line += 1
        plain = _PLAIN.fullmatch(raw)
        if plain is not None:
            url, realm, digits = plain.groups()
            number = int(digits)
            if url >= before and number <= latest and len(realm) <= _MOST_REALM:
                largest = max(largest, number) if url == before else number
                before = url
                yield PendingLine(line, url.decode("ascii"), realm.decode("ascii"), largest)
                continue
        if line == 1 and (why := next((why for begin, why in _OTHER_FILES.items() if raw.startswith(begin)), "")):
            fault(f"{printable(name)} {why}")
            return
        where = f"{printable(name)}:{line}"
        if len(raw) > MOST_BYTES:
            fault(
                f"{where}: the line is longer than {MOST_BYTES:,} bytes: it begins with {quoted(_shown(raw[:60]))}; no URL is so"
                " long, take the line out"
            )
            _skip_line(file)
            continue
        if raw.endswith(b"\r\n"):
            raw = raw[:-2] + b"\n"
        if line == 1:
            raw = raw.removeprefix(_BOM)
        why = _fault_of_bytes(raw)
        if why:
            fault(f"{where}: {why}")
            continue
        url = raw.partition(b" ")[0]
        found = _parsed(raw[:-1].decode(), line, now)
        if isinstance(found, str):
            fault(f"{where}: {found}")
        elif url < before:
            fault(
                f"{where}: {quoted(found.url)} comes after {quoted(_shown(before))}, so the file is not sorted by URL: sort it"
                " with `LC_ALL=C sort -o FILE FILE`"
            )
        else:
            largest = max(largest, found.number) if url == before else found.number
            yield found._replace(number=largest)
        before = max(before, url)


def checked(file: BinaryIO, name: str, *, now: int) -> int:
    """Return the number of lines of a file. Raises PendingFileError with the first MOST_SHOWN faults if there is any."""
    faults: list[str] = []
    others = 0

    def fault(sentence: str) -> None:
        nonlocal others
        if len(faults) < MOST_SHOWN:
            faults.append(sentence)
        else:
            others += 1

    lines = sum(1 for _ in read_lines(file, name, now=now, fault=fault))
    if faults:
        if others:
            faults.append(f"{printable(name)}: and {others:,} more")
        raise PendingFileError(faults, note="nothing was imported")
    return lines


def _fault_of_bytes(raw: bytes) -> str:
    """Return what is wrong with the bytes of a line; empty if nothing is."""
    if not raw.endswith(b"\n"):
        return (
            f"the file ends within a line, {quoted(_shown(raw[-60:]))}, so it may have been cut off: use a whole copy of it, or end"
            " the line if it is complete"
        )
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return (
            f"byte {error.start + 1} of the line, 0x{raw[error.start]:02X}, is not UTF-8: convert the file, as with"
            " `iconv -f latin1 -t utf-8`, or write such characters as %XX"
        )
    return ""


def _parsed(text: str, line: int, now: int) -> PendingLine | str:
    """Return a line without its end as its three fields, or what is wrong with it."""
    if control := _CONTROL.search(text):
        return f"{quoted(text)} has the control character U+{ord(control[0]):04X}: take it out, or write it as %XX"
    fields = text.split(" ")
    if len(fields) != 3 or not all(fields):
        return (
            f"{quoted(text)} is not `URL realm number` with one space between each: write a space in a URL as %20, and encode the"
            " realm"
        )
    url, realm, number = fields
    if not _REALM.fullmatch(realm) or len(realm) > _MOST_REALM:
        return (
            f"the realm {quoted(realm, most=60)} is not URL-encoded: write other characters than ASCII, and a percent sign, as %XX,"
            f" in at most {_MOST_REALM} characters"
        )
    if not _NUMBER.fullmatch(number):
        return f"the state is {quoted(number, most=60)}: write 0 (waiting), 2 (error), or the Unix time at which it was indexed"
    if int(number) > now + CLOCK_S:
        return f"the state {number} is a time in the future: write the Unix time in seconds, or 0 to have it crawled"
    return PendingLine(line, url, realm, int(number))


def _skip_line(file: BinaryIO) -> None:
    """Read up to the end of a line that is too long."""
    while (part := file.readline(MOST_BYTES)) and not part.endswith(b"\n"):
        pass


def _shown(raw: bytes) -> str:
    return raw.decode(errors="replace").rstrip("\r\n")
