"""How many deletions at once are too many: more than a share of the documents, and more than a number."""

from __future__ import annotations

import pytest

from crawlspace.state.error_policy import DeletionLimit

MOST = [
    # percent, count, indexed documents, the most that may leave at once
    (10, 100, 0, 100),
    (10, 100, 999, 100),
    (10, 100, 1_000, 100),
    (10, 100, 1_009, 100),
    (10, 100, 1_010, 101),
    (10, 100, 1_000_000, 100_000),
    (10, 0, 9, 0),
    (10, 0, 19, 1),
    (0, 0, 1_000, 0),
    (0, 5, 1_000, 5),
    (100, 0, 1_000, 1_000),
]


@pytest.mark.parametrize("percent,count,indexed,most", MOST)
def test_the_most_that_may_leave_at_once(percent: int, count: int, indexed: int, most: int) -> None:
    deletion_limit = DeletionLimit(percent, count)
    assert deletion_limit.most(indexed) == most
    for deletions in (most, most + 1):
        too_many = deletions * 100 > percent * indexed and deletions > count
        assert deletion_limit.allows(deletions, indexed=indexed) is not too_many
