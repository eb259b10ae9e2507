"""How a site has answered of late: the last fetches, and how many answers there were; as values that are stored."""

from __future__ import annotations

import pytest

from crawlspace.state.site_health import NEW_SITE, Health, health_of

WINDOW = 4
ROWS = [
    # fetches (x failed, - missing)  answers  fetches  failures  misses  fails from 50 %  mostly missing
    ("",                             0,       0,       0,        0,      True,            False),
    ("x",                            0,       1,       1,        0,      True,            False),
    (".",                            1,       1,       0,        0,      False,           False),
    ("..x",                          2,       3,       1,        0,      False,           False),
    (".x",                           1,       2,       1,        0,      True,            False),
    ("xxxx",                         0,       4,       4,        0,      True,            False),
    ("xxxx.",                        1,       4,       3,        0,      True,            False),
    ("xxxx...",                      3,       4,       1,        0,      False,           False),
    ("....xxxxxxxx",                 4,       4,       4,        0,      True,            False),
    ("--",                           0,       2,       0,        2,      False,           False),
    ("---",                          0,       3,       0,        3,      False,           True),
    ("....--",                       4,       4,       0,        2,      False,           False),
    ("....---",                      4,       4,       0,        3,      False,           True),
    ("---..",                        2,       4,       0,        2,      False,           False),
    ("--xx",                         0,       4,       2,        2,      True,            False),
]  # fmt: skip


@pytest.mark.parametrize(("came", "answers", "fetches", "failures", "misses", "failing", "missing"), ROWS)
def test_a_site_is_known_by_its_last_fetches(
    came: str, answers: int, fetches: int, failures: int, misses: int, failing: bool, missing: bool
) -> None:
    health: Health = NEW_SITE
    for one in came:
        health = health.after(failed=one == "x", missing=one == "-", window=WINDOW)
    assert (health.answers, health.fetches, health.failures, health.misses) == (answers, fetches, failures, misses)
    assert (health.is_failing(50), health.is_mostly_missing(WINDOW)) == (failing, missing)
    assert health_of(health.as_text()) == health


def test_what_an_older_version_wrote_is_read() -> None:
    assert health_of("3 5") == Health(3, 5)
