"""The fields of a search, by the languages of the documents."""

from __future__ import annotations

import pytest

from crawlspace.index.search import read_filter
from crawlspace.index.search_server.documents import Languages

FIELDS = ("de", "en", "other")

# What is written, and the fields of texts that are asked, with the languages of the documents in them.
LANGUAGES: tuple[tuple[list[str], list[str], dict[str, list[str]]], ...] = (
    (["de", "de-AT", "DE", "en"], [], {"de": ["de", "de-AT", "DE"], "en": ["en"], "other": []}),
    (["tlh", "en"], [], {"other": ["tlh"], "en": ["en"]}),
    (["de", "de-AT", "DE", "en"], ["language=de"], {"de": ["de", "de-AT", "DE"], "other": []}),
    (["de", "de-AT", "en"], ["language=DE-at"], {"de": ["de-AT"], "other": []}),
    (["de", "de-AT", "en"], ["language=d"], {"other": []}),
    ([], [], {"other": []}),
)


@pytest.mark.parametrize(("written", "filters", "expected"), LANGUAGES)
def test_languages(written: list[str], filters: list[str], expected: dict[str, list[str]]) -> None:
    assert Languages(written, fields=FIELDS, filters=list(map(read_filter, filters))).by_field == expected


def test_a_template_with_plain_texts_has_no_languages() -> None:
    assert Languages(["de", "en"], fields=None).by_field == {"": []}
