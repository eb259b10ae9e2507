"""The fields of a search server that texts are in: one for each language, with the analyser of that language."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from crawlspace.index.search import Filter

OTHER = "other"
"""The field of texts whose language has none of its own."""


class Languages:
    """The languages of a collection's documents, by the fields that their texts are in."""

    def __init__(self, written: Iterable[str], *, fields: Collection[str] | None, filters: Sequence[Filter] = ()) -> None:
        """`written` are the languages as documents have them, `fields` those that an index has fields for; None: texts have one each."""
        wanted = [one.value.lower() for one in filters if one.field == "language"]
        self.written = [one for one in written if not wanted or any(_is_of(one, language) for language in wanted)]
        self.by_field: dict[str, list[str]] = {}
        """The languages by that of the fields."""
        if fields is None:
            self.by_field[""] = []
            return
        for one in self.written:
            self.by_field.setdefault(language_field(one, fields), []).append(one)
        self.by_field.setdefault(OTHER, [])

    def of_others(self, field: str) -> list[str]:
        """Return the languages that are in other fields than this one."""
        return [one for other, written in self.by_field.items() if other != field for one in written]


def language_field(language: str, languages: Collection[str]) -> str:
    """Return the field for texts in a language of a document, of those that an index has."""
    code = language.partition("-")[0].lower()
    return code if code in languages else OTHER


def _is_of(written: str, language: str) -> bool:
    return written.lower() == language or written.lower().startswith(f"{language}-")
