"""How a crawl ended, for programs; and the table of several."""

from __future__ import annotations

import json

import pytest

from crawlspace.admin.site_report import SiteReport
from crawlspace.runtime.session.crawl_sequence import FinishedCrawl, table_of, worst_status
from crawlspace.runtime.session.summary import RunReport
from crawlspace.state.unreachable import UnreachableSite
from tests.unit.test_docs import json_in, shape

NOT_BEGUN = RunReport("demo", 1, ["crawl.rules:3:1: a mistake\n    alow\n    ^"], 0, None)


def test_the_report_is_as_documented() -> None:
    site = SiteReport(UnreachableSite("dead.test:80", 612, since=1, runs=1, counted_at=1), documents=1, held=False)
    value = {**NOT_BEGUN.as_json(), "unreachable": [site.as_json()]}
    (documented,) = json_in("docs/commands.md", "The summary for programs")
    assert shape(documented) == shape(json.loads(json.dumps(value)))


@pytest.mark.parametrize(
    ("statuses", "worst"),
    [([], 0), ([0, 0], 0), ([0, 1, 0], 1), ([0, 130], 130), ([130, 1], 1), ([0, 2], 1), ([0, -9], 1)],
)
def test_the_worst_status(statuses: list[int], worst: int) -> None:
    assert worst_status(statuses) == worst


def test_the_table_of_several() -> None:
    done = {
        **NOT_BEGUN.as_json(),
        "outcome": "done",
        "faults": [],
        "fetched": 12_345,
        "outcomes": {"failed": 2, "gone": 1},
        "duration_s": 61.4,
        "held": {"host": 1, "many": 0, "rules": 2},
    }
    failed = {**NOT_BEGUN.as_json(), "duration_s": 0.2}
    crawls = [
        FinishedCrawl("a", 0, done),
        FinishedCrawl("a-long-name", 1, failed),
        FinishedCrawl("killed", -9, None),
        FinishedCrawl("not-yet", None, None),
    ]
    assert table_of(crawls).splitlines() == [
        "collection   outcome       fetched   errors  documents   held      time",
        "a            done           12,345        3          0      3      61 s",
        "a-long-name  failed              0        0          0      0       0 s   crawl.rules:3:1: a mistake",
        "killed       failed        it ended with exit status -9",
        "not-yet      not started",
    ]
