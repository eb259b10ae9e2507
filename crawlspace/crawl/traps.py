"""Traps: sites that have ever more URLs and no new documents, as calendars, session ids and relative links that stack up have.

Pages are counted by site and pattern of their URL when they are fetched for the first time. If nearly all of the last pages of a pattern
repeat others of the pattern, it is reported, with the rule that would stop it. Nothing is excluded: whether the pages are useful is for a
person to decide. Memory is bounded for any site: the least recently used patterns are forgotten, and texts are bits of a table that is
cleared before it is too full.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from crawlspace.cache import Recent
from crawlspace.model import UrlState
from crawlspace.outcome import Outcome
from crawlspace.rules.url_options import SESSION_SEGMENT, TICKETS
from crawlspace.text import printable

WINDOW = 100
"""Pages of a pattern that are evaluated together: fewer can be chance, such as a new section."""
REPEATS = 90
"""Number of them that must show nothing new. A paginated archive or a shop has hardly any; a shop with a parameter for sorting has at most
about half."""
CHAIN = 10
"""Additional depth of a page, compared with the first of its pattern, from which its text is compared without numbers and dates: a calendar
links from month to month, while pages with tables of numbers are found through a list."""
PATTERNS = 5_000
_WINDOW_BITS = (1 << WINDOW) - 1
_BITS = 1 << 23
_MOST_TEXTS = 400_000
"""Maximal texts in the table, whose bits are a megabyte: less than 5 in 100 new texts are mistaken for known ones."""
_READ = 20_000
"""Characters of a text that are compared without numbers."""
_LONG = 200
"""Characters of a pattern."""


class Trap(msgspec.Struct, frozen=True):
    """A pattern of URLs with hardly any new document."""

    site: str
    pattern: str
    pages: int
    """Pages of the pattern fetched for the first time in that run, when it was noticed."""
    repeats: int
    """Number of the last WINDOW of them that showed nothing new."""
    example: str
    """The last of them."""
    stopped_by: str
    """A line of crawl.rules, or a setting."""

    @property
    def sentence(self) -> str:
        return (
            f"{printable(self.pattern)} may be a trap: {self.repeats} of the last {WINDOW} pages like {printable(self.example)} show what"
            f" others of these show ({self.pages:,} so far). If they are of no use, this stops it: {printable(self.stopped_by)}"
        )

    def as_json(self) -> dict[str, object]:
        return {
            "site": self.site,
            "pattern": printable(self.pattern),
            "pages": self.pages,
            "example": printable(self.example),
            "stopped_by": printable(self.stopped_by),
        }


@dataclass(slots=True)
class _Pages:
    """The pages of one pattern."""

    first: str
    first_depth: int
    pages: int = 0
    recent: int = 0
    """The last WINDOW pages as bits, the newest lowest: 1 for one that showed nothing new."""
    is_named: bool = False


class TrapWatch:
    """Watches the pages of a run."""

    def __init__(self) -> None:
        self._patterns: Recent[str, _Pages] = Recent(PATTERNS // 2)
        self._texts = bytearray(_BITS // 8)
        self._count = 0

    def page(self, state: UrlState, outcome: Outcome) -> Trap | None:
        """Count a document that was fetched for the first time. Return a trap that it reveals, once for each pattern."""
        document = outcome.document
        if document is None or outcome.checksum is None:
            return None
        patterns = [self._pages(pattern, state) for pattern in patterns_of(state.url)]
        words = b""
        if state.depth >= patterns[0][1].first_depth + CHAIN:
            words = f" {without_dates(document.title)} {without_dates(document.text)}".encode()
        found = None
        for pattern, pages in patterns:
            key = pattern.encode()
            is_repeat = self._is_known(key + outcome.checksum)
            if words:
                is_repeat |= self._is_known(key + words)
            pages.pages += 1
            pages.recent = (pages.recent << 1 | is_repeat) & _WINDOW_BITS
            repeats = pages.recent.bit_count()
            if repeats >= REPEATS and pages.pages >= WINDOW and not pages.is_named and found is None:
                pages.is_named = True
                rule = stopping_rule(pages.first, state.url)
                found = Trap(state.site, pattern, pages.pages, repeats, state.url, rule)
        if found is not None:  # the wider pattern is the same trap
            for _, pages in patterns:
                pages.is_named = True
        return found

    def _pages(self, pattern: str, state: UrlState) -> tuple[str, _Pages]:
        pages = self._patterns.get(pattern)
        if pages is None:
            pages = _Pages(state.url, state.depth)
            self._patterns.put(pattern, pages)
        return pattern, pages

    def _is_known(self, text: bytes) -> bool:
        """Return whether a text was given before, and remember it."""
        index = hash(text) % _BITS
        byte, bit = index >> 3, 1 << (index & 7)
        if self._texts[byte] & bit:
            return True
        self._count += 1
        if self._count > _MOST_TEXTS:
            self._texts, self._count = bytearray(_BITS // 8), 1
        self._texts[byte] |= bit
        return False


def patterns_of(url: str) -> list[str]:
    """Return the patterns of a URL in normal form, the narrower first: with parameters, also the one of all paths with these.

    Digits are one #, words that look like ids and the values of parameters one *, and repeated segments are left out, unless one has
    digits. Parameters are those of the query, and those of the path after a semicolon.
    """
    origin, path, names = _parts(url)
    segments = path.split("/")[1:]
    different = list(dict.fromkeys(segments))
    again = len(different) < len(segments) and not any(map(_DIGITS.search, segments))  # a month may equal the number of a day
    shown = "/".join(map(_word, different if again else segments)) + ("/…" if again else "")
    query = "?" + "&".join(f"{name}=*" for name in names) if names else ""
    of_path = "".join(f"/{_SESSION}" if name == SESSION_SEGMENT else f";{name}=*" for name in _path_values(path))
    patterns = [f"{origin}/{shown}{query}"[:_LONG]]
    if query or of_path:
        patterns.append(f"{origin}/…{of_path}{query}"[:_LONG])
    return patterns


def stopping_rule(first: str, last: str) -> str:
    """Return the setting, or line of crawl.rules, that would stop a trap, by the first and the last URL of its pattern."""
    origin, path, names = _parts(last)
    in_path, first_in_path = _path_values(path), _path_values(_parts(first)[1])
    differing = sorted(name for name, value in in_path.items() if first_in_path.get(name) != value)
    if differing and not any(_DATE.search(name) for name in differing):
        return f"{', '.join(map(repr, differing))} added to CRAWLSPACE_URL_DROP_PATH_PARAMETERS"
    counts = [path.split("/").count(segment) for segment in path.split("/") if segment]
    if counts and max(counts) > 1:
        return f"CRAWLSPACE_MAX_REPEATED_SEGMENTS = {max(counts) - 1}"
    if names:
        before, now = _values(first), _values(last)
        other = sorted(name for name in names if before.get(name) != now.get(name))
        if other and not (path == _parts(first)[1] and any(_DATE.search(name) for name in other)):
            return f"CRAWLSPACE_URL_DROP_PARAMETERS = {other!r}"
        return f"forbid prefix {origin}{path}?"
    same = _common(first.removeprefix(origin).split("/"), path.split("/"))
    return f"forbid prefix {origin}{'/'.join(same)}/" if len(same) > 1 else f"forbid prefix {origin}{_starred(path)}"


_DATE = re.compile(r"(?i)date|day|month|year|week|from|to$|start|end|page|offset|jahr|monat|tag|woche|datum|mois|annee|jour")
"""Names of parameters that select content, so that dropping them would lose pages."""
_SESSION = "(*)"
_SHORTEST_ID = 16
_DIGITS = re.compile(r"[0-9]+")
_ID = re.compile(r"(?=[^0-9]*[0-9])(?=[^a-zA-Z]*[a-zA-Z])[0-9a-zA-Z_~-]{16,}")


def _parts(url: str) -> tuple[str, str, Sequence[str]]:
    """Return scheme with host, path, and the names of the parameters in their order, each once."""
    slash = url.find("/", url.find("://") + 3)
    path, _, query = url[slash:].partition("?")
    return url[:slash], path, sorted({one.partition("=")[0] for one in query.split("&")}) if query else ()


def _values(url: str) -> Mapping[str, str]:
    return {name: value for name, _, value in (one.partition("=") for one in url.partition("?")[2].split("&"))}


def _path_values(path: str) -> Mapping[str, str]:
    """Return the parameters of a path by name; segments with session ids under SESSION_SEGMENT."""
    if ";" not in path and "(" not in path:
        return {}
    values = {}
    for segment in path.split("/"):
        word, *parameters = segment.split(";")
        if TICKETS.fullmatch(word):
            values[SESSION_SEGMENT] = word
        values.update((name, value) for name, is_given, value in (one.partition("=") for one in parameters) if is_given)
    return values


def _word(segment: str) -> str:
    word, *parameters = segment.split(";")
    if parameters:
        parts = (one.partition("=") for one in parameters)
        return ";".join([_word(word), *(f"{name}=*" if is_given else _word(name) for name, is_given, _ in parts)])
    if TICKETS.fullmatch(segment):
        return _SESSION
    if len(segment) >= _SHORTEST_ID and _ID.fullmatch(segment):
        return "*"
    return segment if segment.isalpha() else _DIGITS.sub("#", segment)


def _starred(path: str) -> str:
    return _DIGITS.sub("*", "/".join("*" if _ID.fullmatch(segment) else segment for segment in path.split("/")))


def _common(one: Sequence[str], other: Sequence[str]) -> list[str]:
    """Return the segments at the beginning that both paths have, but for the last one of each."""
    found = []
    for mine, others in zip(one[:-1], other[:-1], strict=False):
        if mine != others or _DIGITS.search(mine):
            break
        found.append(mine)
    return found


_TOKEN = re.compile(r"[^\W\d_]+")
_OF_CALENDARS = frozenset(
    """
    january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec
    monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun
    januar februar märz mai juni juli oktober dezember mär okt dez
    montag dienstag mittwoch donnerstag freitag samstag sonntag mo di mi do fr sa so
    janvier février mars avril juin juillet août septembre octobre novembre décembre janv févr avr juil déc
    lundi mardi mercredi jeudi vendredi samedi dimanche lun mer jeu ven sam dim
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre ene abr ago dic
    lunes martes miércoles jueves viernes sábado domingo mié jue vie sáb dom
    gennaio febbraio aprile maggio giugno luglio settembre ottobre novembre dicembre gen mag giu lug set ott
    lunedì martedì mercoledì giovedì venerdì sabato domenica gio
    janeiro fevereiro março maio junho julho setembro outubro novembro dezembro
    januari februari maart mei augustus maandag dinsdag woensdag donderdag vrijdag zaterdag zondag
    st nd rd th am pm
    """.split()
)
"""Words of dates in the most frequent languages of Europe and America; in others a calendar is noticed by its empty or equal pages."""


def without_dates(text: str) -> str:
    """Return the words of a text in small letters, without numbers, months and days of the week."""
    return " ".join(word for word in _TOKEN.findall(text[:_READ].lower()) if word not in _OF_CALENDARS)
