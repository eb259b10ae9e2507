"""Filters and facets of a search."""

from __future__ import annotations

import pytest

from crawlspace.errors import UsageError
from crawlspace.index.embedded_search import filter_sql
from crawlspace.index.search import day_of, read_facets, read_filter

WRONG = (
    ("language", "write FIELD=VALUE"),
    ("language=", "write FIELD=VALUE"),
    ("=de", "write FIELD=VALUE"),
    ("colour=red", "one of the fields host, language, type, modified"),
    ("modified=..", "write a day as 2026-01-31"),
    ("modified=2026", "write a day as 2026-01-31"),
    ("modified=2026-02-30", "write a day as 2026-01-31"),
    ("modified=2026-01-01..soon", "write a day as 2026-01-31"),
    ("modified=20260101..", "write a day as 2026-01-31"),
    ("modified=2026-02-01..2026-01-01", "ends before it begins"),
)


@pytest.mark.parametrize(("written", "sentence"), WRONG)
def test_a_wrong_filter_says_how_to_write_it(written: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        read_filter(written)


def test_a_wrong_facet_names_the_others() -> None:
    with pytest.raises(UsageError, match="no facet 'colour': there are host, language, type"):
        read_facets(["host", "colour"])


def test_facets_are_counted_once() -> None:
    assert read_facets(["type", "host", "type"]) == ("type", "host")


def test_values_of_one_field_are_alternatives() -> None:
    sql, values = filter_sql(map(read_filter, ("host=a.test", "modified=2026-01-01..", "host=B.test")))
    assert sql == " AND (d.host = ? OR d.host = ?) AND (d.day BETWEEN ? AND ?)"
    assert values == ("a.test", "b.test", "2026-01-01", "9999-99-99")


DAYS = (
    ("Wed, 21 Oct 2015 07:28:00 GMT", "2015-10-21"),
    ("2015-10-21", "2015-10-21"),
    ("2015-10-21T07:28:00Z", "2015-10-21"),
    ("", ""),
    ("yesterday", ""),
    ("Wed, 41 Oct 2015 07:28:00 GMT", ""),
    ("Wednesday, 21-Oct-15 07:28:00 GMT", ""),
    ("21.10.2015", ""),
)


@pytest.mark.parametrize(("modified", "day"), DAYS)
def test_day_of(modified: str, day: str) -> None:
    assert day_of(modified) == day
