"""Plans that are worked out while their reader waits: one at a time, and none for a reader who has left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crawlspace.clock import FakeClock, SystemClock
from crawlspace.console.plans import PATIENCE_S, Plans
from crawlspace.errors import StoreError, UsageError
from crawlspace.runtime.planning.plan_process import PlanStart, started
from tests.command_line import ROOT
from tests.conftest import MakeProject, Project
from tests.notifications import LONGEST_WAIT_S

WAITS = """
import sys
if "crawlspace.runtime.planning.plan_process" in sys.orig_argv and not hasattr(sys, "has_passed"):
    open({path!r}).read()
    sys.has_passed = True
"""
"""The settings of a collection whose plan waits: they may be read more than once."""


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A pipe for which the process of a plan waits."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


@pytest.fixture
def demo(project: MakeProject, gate: Path) -> Project:
    start = "http://www.example.com/\n"
    return project(
        {"slow/start_urls.txt": start, "slow/settings.py": WAITS.format(path=str(gate)), "quick/start_urls.txt": start}
    )


def start_of(demo: Project, name: str, data: str | None = None) -> PlanStart:
    return PlanStart(name, demo.env, "" if data is None else "crawl.rules", data)


def test_a_plan_waits_for_the_one_before(demo: Project, gate: Path) -> None:
    plans = Plans(ROOT, FakeClock())
    slow = plans.begin("anna", start_of(demo, "slow"))
    assert slow.begun.wait(LONGEST_WAIT_S)
    quick = plans.begin("ben", start_of(demo, "quick"))
    assert (quick.has_begun, quick.is_over) == (False, False)
    assert plans.begin("ben", start_of(demo, "quick")) is quick, "the same is asked for again"
    gate.write_text("open")
    assert quick.ended.wait(LONGEST_WAIT_S)
    assert slow.is_over, "that which came first"
    assert [plan.found is not None and plan.found.known == 0 for plan in (slow, quick)] == [True, True]
    assert plans.get(quick.id, collection="quick") is quick
    for id, collection in ((quick.id, "slow"), ("guessed", "quick")):
        with pytest.raises(UsageError):
            plans.get(id, collection=collection)


def test_nobody_waits(demo: Project) -> None:
    clock = FakeClock()
    plans = Plans(ROOT, clock)
    slow, behind = plans.begin("anna", start_of(demo, "slow")), plans.begin("ben", start_of(demo, "quick"))
    assert slow.begun.wait(LONGEST_WAIT_S)
    clock.advance(PATIENCE_S - 1)
    plans.get(behind.id, collection="quick")
    clock.advance(2)
    plans.get(behind.id, collection="quick")
    assert slow.ended.wait(LONGEST_WAIT_S)
    assert "nobody has waited" in slow.error
    assert behind.ended.wait(LONGEST_WAIT_S)
    assert (behind.found is not None, behind.error) == (True, "")


def test_a_newer_plan_of_the_same_reader_takes_the_place(demo: Project, gate: Path) -> None:
    plans = Plans(ROOT, FakeClock())
    old = plans.begin("anna", start_of(demo, "slow"))
    assert old.begun.wait(LONGEST_WAIT_S)
    new = plans.begin("anna", start_of(demo, "slow", ""))
    assert old.ended.wait(LONGEST_WAIT_S)
    assert (old.found, old.error != "") == (None, True)
    gate.write_text("open")
    assert new.ended.wait(LONGEST_WAIT_S)
    assert new.found is not None


def test_a_fault_of_the_collection_is_the_answer(demo: Project) -> None:
    plan = Plans(ROOT, FakeClock()).begin("anna", start_of(demo, "quick", "bm8gcnVsZQo="))  # "no rule"
    assert plan.ended.wait(LONGEST_WAIT_S)
    assert "crawl.rules:1:1" in plan.error


def test_a_reader_who_never_asks_again_has_left(demo: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other request tells the console so."""
    monkeypatch.setattr("crawlspace.console.plans.PATIENCE_S", 0.2)
    plan = Plans(ROOT, SystemClock()).begin("anna", start_of(demo, "slow"))
    assert plan.ended.wait(LONGEST_WAIT_S)
    assert (plan.found, "nobody has waited" in plan.error) == (None, True)


def test_a_process_that_cannot_be_told_what_to_plan_is_ended(demo: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    class Deaf(subprocess.Popen[bytes]):
        """A process that reads nothing and ends at once."""

        def __init__(self, _: object, **options: Any) -> None:
            super().__init__(
                [sys.executable, "-c", "import os, time\nos.close(0)\nprint(flush=True)\ntime.sleep(3600)"], **options
            )
            assert self.stdout is not None
            self.stdout.readline()
            begun.append(self)

    monkeypatch.setattr("crawlspace.runtime.planning.plan_process.subprocess.Popen", Deaf)
    with pytest.raises(StoreError, match="its process has ended"):
        started(ROOT, start_of(demo, "quick", "eHh4" * 100_000))
    assert begun[0].returncode is not None
