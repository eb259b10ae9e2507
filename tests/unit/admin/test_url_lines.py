"""Reports of URLs as lines, and status codes as they are written."""

from __future__ import annotations

import csv
import json

import pytest

from crawlspace.admin.links import Referring
from crawlspace.admin.report import UrlReport
from crawlspace.admin.url_lines import csv_lines, json_lines, status_range
from crawlspace.model import State, UrlState

REPORT = UrlReport(
    UrlState(1, 2, 'http://a.example/"x",y', "a.example:80", State.GONE, 404, detail="line\nbreak"), duplicate_of=None
)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("404", range(404, 405)),
        ("4xx", range(400, 500)),
        ("20XX", range(2000, 2100)),
        ("", None),
        ("x", None),
        ("xx", None),
        ("-1", None),
        ("4.4", None),
        ("²", None),
        ("9" * 5000, None),
    ],
)
def test_status_codes(text: str, codes: range | None) -> None:
    assert status_range(text) == codes


def test_lines_have_the_same_values() -> None:
    rows = [(REPORT, None), (REPORT, None)]
    (found, again) = [json.loads(line) for line in json_lines(rows)]
    assert found == again == REPORT.as_json()
    table = list(csv.DictReader("".join(csv_lines(rows)).splitlines(keepends=True)))
    assert len(table) == 2
    assert (table[0]["url"], table[0]["status"], table[0]["detail"]) == (REPORT.state.url, "404", "line\nbreak")


def test_the_pages_that_link_to_a_url() -> None:
    rows = [(REPORT, Referring(["http://a.example/1", "http://a.example/2"], 7))]
    (line,) = json_lines(rows)
    assert json.loads(line)["referrers_total"] == 7
    (row,) = csv.DictReader("".join(csv_lines(rows)).splitlines(keepends=True))
    assert row["referrers"] == "http://a.example/1 http://a.example/2"
