"""The settings of documents that are sent without their text: CRAWLSPACE_INLINE_MAX_BYTES and CRAWLSPACE_CONTENT_URL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from crawlspace.errors import SettingError
from crawlspace.parsing import boolean, optional_integer
from crawlspace.text import quoted
from crawlspace.urls import document_id

_URL, _INLINE = "CRAWLSPACE_CONTENT_URL", "CRAWLSPACE_INLINE_MAX_BYTES"
_EXAMPLE = "https://console.example.com/content/{id}"
_NAMES = ("collection", "id", "url")
_MOST_BYTES_OF_A_CHARACTER = 4


@dataclass(frozen=True, slots=True)
class ReferenceSettings:
    """`is_archived`: without an archive, there is nothing to refer to."""

    is_archived: bool = False
    max_bytes: int | None = None
    """Of the text of a document that is sent whole; None: no limit."""
    url: str = ""
    """Template of the URL of a document; empty: it has none."""
    collection: str = ""

    def is_too_large(self, text: str) -> bool:
        """Return whether a text has more bytes than are sent."""
        most = self.max_bytes
        if most is None or len(text) * _MOST_BYTES_OF_A_CHARACTER <= most:
            return False
        return len(text) > most or len(text.encode("utf-8", "surrogatepass")) > most

    def url_of(self, url: str) -> str:
        """Return the URL that the document of a URL can be had at; empty where there is none."""
        if not self.url:  # as for most collections: nothing is computed for each document then
            return ""
        values = {"collection": self.collection, "id": document_id(url), "url": url}
        return re.sub(r"\{(\w+)\}", lambda found: quote(values[found[1]], safe=""), self.url)


ALL_WHOLE = ReferenceSettings()
"""All documents are sent with their text."""


def read_references(settings: Mapping[str, object], collection: str) -> ReferenceSettings:
    """Return the settings of a collection. Raises SettingError."""
    return ReferenceSettings(
        is_archived=boolean("CRAWLSPACE_ARCHIVE", settings["CRAWLSPACE_ARCHIVE"]),
        max_bytes=optional_integer(_INLINE, settings[_INLINE], low=1_000),
        url=_template(settings[_URL]),
        collection=collection,
    )


def _template(value: object) -> str:
    if value is None or value == "":
        return ""
    if not isinstance(value, str) or not re.match(r"https?://[^/\s]\S*$", value):
        raise SettingError(f"{_URL} is {quoted(value)}; write a URL with {{id}} or {{url}}, as in {_EXAMPLE}")
    names = re.findall(r"\{(\w*)\}", value)
    unknown = [name for name in names if name not in _NAMES]
    if unknown or re.search(r"[{}]", re.sub(r"\{\w*\}", "", value)):
        what = f"holds {{{unknown[0]}}}" if unknown else "has a brace of its own"
        raise SettingError(
            f"{_URL} is {quoted(value)} and {what}; there are {{id}}, {{url}} and {{collection}}, as in {_EXAMPLE}"
        )
    if not {"id", "url"}.intersection(names):
        raise SettingError(
            f"{_URL} is {quoted(value)}, which is one URL for all documents; write {{id}} or {{url}} into it, as in {_EXAMPLE}"
        )
    return value
