"""Requests as they are made of a search text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing

from crawlspace.index.found_texts import FoundTexts
from crawlspace.index.search import read_filter
from crawlspace.index.search_server.documents import Languages
from crawlspace.index.search_server.search import SearchRequest


def request(
    text: str,
    languages: Sequence[str] = (),
    *,
    fields: Collection[str] | None = ("de", "en", "other"),
    filters: Sequence[str] = (),
    of_some: bool = False,
) -> SearchRequest:
    """`languages` are those of the documents, `fields` those that the index has fields for."""
    read = list(map(read_filter, filters))
    with closing(FoundTexts(text)) as texts:
        return SearchRequest(texts, Languages(languages, fields=fields, filters=read), read, of_some=of_some)
