"""How a site has answered of late: the last fetches, and how many answers there were."""

from __future__ import annotations

import pytest

from crawlspace.state.health import NEW_SITE, Health

WINDOW = 4
ROWS = [
    # fetches (x failed)  answers  fetches  failures  fails from 50 %
    ("",                  0,       0,       0,        True),
    ("x",                 0,       1,       1,        True),
    (".",                 1,       1,       0,        False),
    ("..x",               2,       3,       1,        False),
    (".x",                1,       2,       1,        True),
    ("xxxx",              0,       4,       4,        True),
    ("xxxx.",             1,       4,       3,        True),
    ("xxxx...",           3,       4,       1,        False),
    ("....xxxxxxxx",      4,       4,       4,        True),
]  # fmt: skip


@pytest.mark.parametrize(("came", "answers", "fetches", "failures", "failing"), ROWS)
def test_a_site_is_known_by_its_last_fetches(came: str, answers: int, fetches: int, failures: int, failing: bool) -> None:
    health: Health = NEW_SITE
    for one in came:
        health = health.after(failed=one == "x", window=WINDOW)
    assert (health.answers, health.fetches, health.failures, health.is_failing(50)) == (answers, fetches, failures, failing)
