"""Saving rule files: what is kept of the old ones, and two who save at the same time."""

from __future__ import annotations

import fcntl
import threading
from pathlib import Path

import pytest

from crawlspace.admin.rule_files import RuleFile, digest_of, rule_files
from crawlspace.admin.rule_history import LOCK, VERSIONS_KEPT, RuleFileChanged, read_version, save_rule_file, versions
from crawlspace.clock import FakeClock
from crawlspace.errors import UsageError
from tests.notifications import LONGEST_WAIT_S


@pytest.fixture
def file(tmp_path: Path) -> RuleFile:
    return RuleFile("crawl.rules", tmp_path / "crawl.rules", tmp_path / "history")


def save(file: RuleFile, data: bytes | None, seen: bytes | None, clock: FakeClock | None = None) -> None:
    save_rule_file(file, data, seen="" if seen is None else digest_of(seen), user="anna", clock=clock or FakeClock())


def test_the_last_versions_are_kept(file: RuleFile) -> None:
    clock, last = FakeClock(), None
    for number in range(VERSIONS_KEPT + 5):
        save(file, b"%d" % number, last, clock)
        last = b"%d" % number
        clock.advance(0 if number % 2 else 60)
    kept = versions(file)
    assert len(kept) == VERSIONS_KEPT
    newest = [read_version(file, one.id)[1] for one in kept]
    assert newest == [b"%d" % number for number in range(VERSIONS_KEPT + 3, 3, -1)]
    assert len(list(file.history.iterdir())) == 2 * VERSIONS_KEPT + 1, "each with its note, and the lock"
    for id in ("1", "../crawl", "", kept[0].id + "0"):
        with pytest.raises(UsageError):
            read_version(file, id)


def test_a_file_that_was_missing(file: RuleFile) -> None:
    save(file, b"new", None)
    assert [(one.is_missing, one.size, one.user) for one in versions(file)] == [(True, 0, "anna")]
    save(file, None, b"new")
    assert not file.path.exists()
    assert read_version(file, versions(file)[0].id)[1] == b"new"


def test_two_who_save_at_the_same_time(file: RuleFile) -> None:
    file.path.write_bytes(b"old")
    file.history.mkdir()
    refused: list[str] = []

    def save_too() -> None:
        try:
            save(file, b"mine", b"old")
        except RuleFileChanged as error:
            refused.append(str(error))

    with (file.history / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = threading.Thread(target=save_too)
        other.start()
        file.path.write_bytes(b"of the other")
    other.join(LONGEST_WAIT_S)
    assert (len(refused), file.path.read_bytes()) == (1, b"of the other")


def test_each_file_has_one_history_whoever_edits_it(tmp_path: Path) -> None:
    collections, data, elsewhere = tmp_path / "collections", tmp_path / "data", tmp_path / "elsewhere"
    for folder in (collections / "a", collections / "b", elsewhere):
        folder.mkdir(parents=True)
    linked = collections / "b" / "crawl.rules"
    linked.symlink_to(elsewhere / "crawl.rules")
    for path in (collections / "global.rules", collections / "b" / "global.rules", elsewhere / "one", elsewhere / "other"):
        path.write_text("allow domain a.test\n")
    (elsewhere / "link").symlink_to(elsewhere / "one")

    def history(name: str, file: str, named: Path | None = None) -> Path:
        settings = {
            "CRAWLSPACE_DATA_DIR": str(data),
            "CRAWLSPACE_COLLECTIONS_DIR": str(collections),
            "CRAWLSPACE_GLOBAL_RULES": None if named is None else str(named),
        }
        return rule_files(collections / name, settings)[file].history

    own = data / "b" / "rule-history"
    assert history("a", "crawl.rules") == data / "a" / "rule-history"
    assert history("b", "rules.xml") == history("b", "global.rules") == own
    assert history("a", "global.rules", collections / "b" / "global.rules") == own, "where the collection that has it looks"
    shared = history("a", "global.rules")
    assert shared.parent == data / ".rule-history"
    assert shared == history("b", "global.rules", collections / "a" / ".." / "global.rules")
    one, other, link = (history("a", "global.rules", elsewhere / name) for name in ("one", "other", "link"))
    assert len({shared, one, other}) == 3
    assert one == link == history("b", "global.rules", elsewhere / "one")
    assert history("b", "crawl.rules") not in (own, one, other, shared)
