"""A store in Redis that another version of crawlspace has written is refused; nothing in it is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from crawlspace.errors import StoreVersionError
from crawlspace.state.redis.encoding import FORMAT
from crawlspace.state.redis.store import RedisStore
from crawlspace.state.redis.workers import Worker
from tests.contract.conftest import NOW, Known

OTHERS = [
    ("a later version", ("SET", "{shared}:format", FORMAT + 1), f"format {FORMAT + 1}, this one reads {FORMAT}"),
    ("a development version, which wrote none", ("DEL", "{shared}:format"), f"format of development, this one reads {FORMAT}"),
]
CALLS: dict[str, Callable[[RedisStore], object]] = {
    "read": lambda store: store.counts(),
    "discover": lambda store: Known(store).discover("a.example/other"),
    "begin a run": lambda store: store.begin_run(NOW),
    "join as a worker": lambda store: Worker(store, timeout_s=1000).begin("rules"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("title", "command", "sentence"), OTHERS, ids=[row[0] for row in OTHERS])
def test_another_version_is_refused(
    title: str, command: tuple[str, ...], sentence: str, call: str, shared: RedisStore, client: Any
) -> None:
    Known(shared).discover("a.example/")
    assert client.get("{shared}:format") == str(FORMAT).encode()
    client.execute_command(*command)
    before = sorted(client.scan_iter())
    with pytest.raises(StoreVersionError, match=sentence):
        CALLS[call](shared)
    assert sorted(client.scan_iter()) == before


def test_a_store_that_is_only_read_is_not_begun(shared: RedisStore, client: Any) -> None:
    assert shared.counts().by_state == {}
    assert not list(client.scan_iter())
