"""A process writes the index of a crawl; what it does not commit, the crawl commits."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from crawlspace.document import Document, IndexOrder, Op
from crawlspace.errors import IndexUnavailable
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.marks import BatchMark
from crawlspace.runtime.processes.index_process import COMMAND, MOST_LOST, IndexProcess
from tests.notifications import LONGEST_WAIT_S

MARK = BatchMark("generation", 1, 1)


def push(number: int, text: str = "words") -> IndexOrder:
    url = f"http://a.example/{number}"
    return IndexOrder(number, Op.PUSH, url, Document(url, title=f"Page {number}", text=text, fields={"team": "sales"}))


class Index:
    """An index, its file and the process that writes it."""

    def __init__(self, folder: Path, command: Sequence[str] = COMMAND) -> None:
        self.path = folder / "index.db"
        self.index = EmbeddedIndex(self.path, owner="docs")
        self.process = IndexProcess(self.path, owner="docs", command=command)
        self.index.write_by(self.process)

    def send(self, *orders: IndexOrder) -> list[str]:
        return [refusal.reason for refusal in self.index.send(orders, MARK).refused]

    def titles(self) -> list[str]:
        return [one.title for one in self.index.documents("docs")]

    @property
    def pid(self) -> int:
        assert self.process._process is not None
        return self.process._process._process.pid


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    made = Index(tmp_path)
    yield made
    made.index.close()


def test_a_process_commits_what_is_sent(index: Index) -> None:
    assert index.send(push(1), push(2), push(3)) == []
    assert index.send(IndexOrder(4, Op.DELETE, "http://a.example/2")) == []
    assert (index.titles(), index.index.mark()) == (["Page 1", "Page 3"], MARK)
    document = index.index.get("http://a.example/3")
    assert document is not None
    assert (document.text, document.fields) == ("words", {"team": "sales"})
    assert index.process._lost == 0
    assert index.pid != os.getpid()


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        (IndexOrder(1, Op.PUSH, "http://a.example/1"), "a push without a document"),
        (push(1, "half of a pair \ud800"), "half"),
        (push(1, "x" * 50_000_001), "50,000,00"),
    ],
    ids=["without a document", "half of a surrogate pair", "too large"],
)
def test_what_the_index_refuses(index: Index, order: IndexOrder, reason: str) -> None:
    [refused] = index.send(order, push(2))
    assert reason in refused
    assert index.titles() == ["Page 2"]


@pytest.mark.parametrize("kills", [1, MOST_LOST + 1])
def test_what_a_killed_process_has_not_committed_the_crawl_commits(index: Index, kills: int) -> None:
    for number in range(kills):
        index.send(push(100 + number))
        if index.process._process is not None:
            os.kill(index.pid, signal.SIGSTOP)
            os.kill(index.pid, signal.SIGKILL)
        index.send(push(number))
    assert len(index.titles()) == 2 * kills


def test_programs_that_do_not_answer_are_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    index = Index(tmp_path, (sys.executable, "-c", "raise SystemExit(3)"))
    for number in range(MOST_LOST + 2):
        assert index.send(push(number)) == []
    assert len(index.titles()) == MOST_LOST + 2
    assert [one for one in caplog.messages if "exit status 3" in one and "the crawl writes it itself" in one] == caplog.messages
    assert len(caplog.messages) == 1
    index.index.close()


def test_why_nothing_can_be_written(index: Index) -> None:
    """The crawl tries what the process has failed to do, so the sentence is the same as without a process."""
    index.send(push(1))
    other = EmbeddedIndex(index.path, owner="other")
    other._db.execute("BEGIN IMMEDIATE")
    index.index._db.set_busy_timeout(0)
    os.kill(index.pid, signal.SIGKILL)  # which would wait for the lock
    with pytest.raises(IndexUnavailable, match="is locked by another process"):
        index.send(push(2))
    other._db.execute("ROLLBACK")
    other.close()
    assert index.send(push(2)) == []


def test_no_process_is_left(tmp_path: Path) -> None:
    index = Index(tmp_path)
    index.send(push(1))
    process = index.process._process
    index.index.close()
    assert process is not None
    assert process.is_gone(within_s=LONGEST_WAIT_S)
    assert not list(tmp_path.glob("*-wal"))
