"""The settings.py of an imported collection: each setting below the places that it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

SITES = "CRAWLSPACE_SITES"


@dataclass(slots=True)
class SettingsFile:
    """The settings of a collection, in the order in which they are set."""

    heading: str
    """Lines of comments at the top."""
    values: dict[str, object] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)
    sites: dict[str, dict[str, object]] = field(default_factory=dict)
    """CRAWLSPACE_SITES, by host pattern; the first that matches holds."""
    of_all_sites: dict[str, object] = field(default_factory=dict)
    """What each entry of CRAWLSPACE_SITES has, and one for all other sites."""
    notes: list[str] = field(default_factory=list)
    """Paragraphs of comments at the end, without their `#`."""

    def set(self, settings: Mapping[str, object], place: str) -> None:
        for name, value in settings.items():
            self.values[name] = value
            self.places.setdefault(name, []).append(place)

    def set_site(self, pattern: str, own: Mapping[str, object], place: str) -> None:
        self.sites.setdefault(pattern, {}).update(own)
        self.places.setdefault(SITES, []).append(place)

    def text(self) -> str:
        """Return the file."""
        values = dict(self.values)
        sites = {pattern: {**self.of_all_sites, **own} for pattern, own in self.sites.items()}
        if self.of_all_sites:
            sites["*"] = dict(self.of_all_sites)
        if sites:
            values[SITES] = sites
        notes = "".join("\n" + "".join(f"# {line}\n" for line in note.splitlines()) for note in self.notes)
        return self.heading + "".join(self._setting(name, value) for name, value in values.items()) + notes

    def _setting(self, name: str, value: object) -> str:
        comments = "".join(f"# {place}\n" for place in dict.fromkeys(self.places.get(name, ())))
        return f"\n{comments}{name} = {''.join(_written(value, ''))}\n"


def _written(value: object, indent: str) -> Iterator[str]:
    """Yield the parts of a value in Python, large ones on several lines."""
    short = _plain(value)
    if len(short) + len(indent) < 80 or not isinstance(value, Mapping | list):
        yield short
        return
    yield "{\n" if isinstance(value, Mapping) else "[\n"
    inner = f"{indent}    "
    for one in value:
        yield inner
        if isinstance(value, Mapping):
            yield f"{_plain(one)}: "
            yield from _written(value[one], inner)
        else:
            yield _plain(one)
        yield ",\n"
    yield f"{indent}}}" if isinstance(value, Mapping) else f"{indent}]"


def _plain(value: object) -> str:
    if isinstance(value, str):
        text = repr(value)
        return text if text.startswith('"') or '"' in text or "\\" in text else f'"{value}"'
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_plain(key)}: {_plain(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_plain, value))}]"
    return repr(value)
