"""Makes HTML of the console's pages with Jinja2. Every value is escaped; none of a page's text is ever marked as safe."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from crawlspace.admin.report import status_sentence
from crawlspace.clock import iso
from crawlspace.text import counted, duration, escaped, without_credentials

_FOLDER = Path(__file__).parent
STATIC = _FOLDER / "static"
_KILO = 1000


def environment() -> Environment:
    """Return the environment of the templates, with the filters and functions of ours."""
    made = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        {
            "number": number,
            "decimal": decimal,
            "bytes": size,
            "seconds": seconds,
            "percent": percent,
            "time": time_of,
            "whole_seconds": whole_seconds,
            "whole_minutes": whole_minutes,
            "counted": counted_of,
            "url": shown_url,
            "path": path_part,
            "status": status_of,
            "meaning": status_sentence,
            "pretty": pretty,
            "sentence": sentence,
        }
    )
    made.globals.update({"static": _Static(), "link": link})
    return made


class _Static:
    """Paths of the static files, with a digest, so that browsers may keep each version."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        if name not in self._digests:
            self._digests[name] = blake2b((STATIC / name).read_bytes(), digest_size=8).hexdigest()
        return f"/static/{name}?{self._digests[name]}"


def number(value: int | None) -> str:
    """`1,234`; a dash where nothing is known."""
    return "–" if value is None else f"{value:,}"


def decimal(value: float | None, places: int = 1) -> str:
    return "–" if value is None else f"{value:,.{places}f}"


def size(value: float | None) -> str:
    """`1.2 MB`, in units of a thousand."""
    if value is None:
        return "–"
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < _KILO:
            return f"{value:,.0f} {unit}" if unit == "B" or value >= 100 else f"{value:,.1f} {unit}"
        value /= _KILO
    return f"{value:,.1f} TB"


def whole_seconds(value: float) -> str:
    """A duration that is known in whole seconds."""
    return "under 1 s" if value < 1 else duration(value)


def whole_minutes(value: float) -> str:
    """A duration that is known in minutes."""
    return "under 2 min" if value < 120 else duration(value)


def seconds(value: float | None) -> str:
    return "–" if value is None else duration(value)


def percent(part: float, whole: float) -> str:
    """`12.5 %`; a dash where there is no whole."""
    return f"{100 * part / whole:,.1f} %" if whole else "–"


def time_of(at: float | str | None) -> Markup:
    """A time element in UTC, which console.js shows in the zone of the reader; a text is as `iso` has made it."""
    if at is None:
        return Markup("–")
    text = at if isinstance(at, str) else iso(at)
    return Markup('<time datetime="{}">{} UTC</time>').format(text, f"{text[:10]} {text[11:19]}")


def counted_of(value: int, noun: str, plural: str = "") -> str:
    return counted(value, noun, plural)


def shown_url(text: str) -> Markup:
    """A URL as text that may be broken at its parts; control characters are escaped and credentials hidden."""
    return Markup("/<wbr>").join(escaped(without_credentials(text)).split("/"))


def path_part(text: str) -> str:
    """Text as one part of a path."""
    return quote(text, safe="")


def status_of(code: int | None) -> Markup:
    """A status code with its meaning as a title."""
    if code is None:
        return Markup("–")
    group = "good" if code < 300 else "moved" if code < 400 else "bad"
    if code in (2004, 2005, 2006, 760, 761, 740, 780):
        group = "out"
    elif code in (3020, 3021):
        group = "moved"
    return Markup('<abbr class="status {}" title="{}">{}</abbr>').format(group, status_sentence(code), code)


def sentence(text: str) -> str:
    """Text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def link(path: str, query: Mapping[str, object] | None = None, **changed: object) -> str:
    """Return a path with a query: those given, with changes; None and empty values are left out."""
    merged: Iterable[tuple[str, object]] = {**(query or {}), **changed}.items()
    kept = [(name, value) for name, value in merged if value not in (None, "")]
    return f"{path}?{urlencode(kept)}" if kept else path
