"""Plans of edited rules that are worked out while their reader waits: one at a time, and none for a reader who has left."""

from __future__ import annotations

import os
import secrets
import selectors
import subprocess
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from crawlspace.clock import Clock
from crawlspace.errors import CrawlspaceError, UsageError
from crawlspace.runtime.planning.plan_process import PlanAnswer, PlannedChanges, PlanStart, started

PATIENCE_S = 60.0
"""Seconds after which a reader who has not asked again has left. Browsers ask less often for a page that nobody sees."""
_KEPT = 20
"""Plans that can still be seen."""
_LEAST_S = 0.01
"""Added to waits for the time when a reader has left, so that it has come then."""
_BLOCK = 65_536


@dataclass(slots=True)
class WaitingPlan:
    """A plan, from when it is asked for. It is not begun while another one is worked out."""

    id: str
    user: str
    start: PlanStart
    text: str
    """The edited text."""
    seen: str
    """The digest of the file that was edited."""
    asked_at: float
    checked: int = 0
    known: int = 0
    found: PlannedChanges | None = None
    error: str = ""
    is_over: bool = False
    is_unwanted: bool = False
    begun: threading.Event = field(default_factory=threading.Event)
    """Set when it is worked out, and no other one is."""
    ended: threading.Event = field(default_factory=threading.Event)
    process: subprocess.Popen[bytes] | None = None
    """What works it out now."""

    @property
    def has_begun(self) -> bool:
        return self.begun.is_set()

    @property
    def collection(self) -> str:
        return self.start.collection

    @property
    def file(self) -> str:
        return self.start.file


class Plans:
    """The plans of a console."""

    def __init__(self, project: Path, clock: Clock) -> None:
        self._project = project
        self._clock = clock
        self._changed = threading.Condition()
        self._plans: OrderedDict[str, WaitingPlan] = OrderedDict()
        self._worked_out: WaitingPlan | None = None

    def begin(self, user: str, start: PlanStart, *, text: str = "", seen: str = "") -> WaitingPlan:
        """Begin a plan, or return that which the user waits for already; another one of this user is given up."""
        with self._changed:
            self._give_up_left()
            for old in self._plans.values():
                if old.user != user or old.collection != start.collection or old.is_over or old.is_unwanted:
                    continue
                if old.start == start:
                    old.asked_at = self._clock.monotonic()
                    return old
                self._give_up(old)
            if sum(not one.is_over for one in self._plans.values()) >= _KEPT:
                raise UsageError("too many plans are being worked out already: try again in a minute")
            plan = WaitingPlan(secrets.token_urlsafe(12), user, start, text, seen, self._clock.monotonic())
            self._plans[plan.id] = plan
            for id, one in list(self._plans.items()):
                if len(self._plans) > _KEPT and one.is_over:
                    del self._plans[id]
        threading.Thread(target=self._work_out, args=(plan,), daemon=True, name="plan").start()
        return plan

    def get(self, id: str, *, collection: str) -> WaitingPlan:
        """Return a plan that its reader asks for. Raises UsageError for one that is not kept any more."""
        with self._changed:
            plan = self._plans.get(id)
            if plan is not None and plan.collection == collection:
                plan.asked_at = self._clock.monotonic()
            self._give_up_left()
        if plan is None or plan.collection != collection:
            raise UsageError("this plan is not kept any more: begin it again")
        return plan

    def _give_up_left(self) -> None:
        """Give up the plans whose readers have left; call it with `_changed`."""
        for plan in self._plans.values():
            if not plan.is_over and self._patience_s(plan) < 0:
                self._give_up(plan)

    def _give_up(self, plan: WaitingPlan) -> None:
        """Give up a plan, which ends its process; call it with `_changed`."""
        plan.is_unwanted = True
        if plan.process is not None:
            plan.process.kill()
        self._changed.notify_all()

    def _patience_s(self, plan: WaitingPlan) -> float:
        """Return the seconds until the reader of a plan has left; negative: it has."""
        return plan.asked_at + PATIENCE_S - self._clock.monotonic()

    def _work_out(self, plan: WaitingPlan) -> None:
        try:
            if self._is_next(plan):
                plan.begun.set()
                self._follow(plan)
        except CrawlspaceError as error:
            plan.error = str(error)
        finally:
            if plan.found is None and not plan.error:
                plan.error = (
                    "nobody has waited for this plan, so it was given up: begin it again"
                    if plan.is_unwanted
                    else "the process that works out the plan has ended: `scrapy plan` shows why"
                )
            with self._changed:
                plan.is_over = True
                if self._worked_out is plan:
                    self._worked_out = None
                self._changed.notify_all()
            plan.ended.set()

    def _is_next(self, plan: WaitingPlan) -> bool:
        """Wait until no other plan is worked out; return whether this one is still wanted."""
        with self._changed:
            while self._worked_out is not None and not plan.is_unwanted:
                self._changed.wait(max(0.0, self._patience_s(plan)) + _LEAST_S)
                self._give_up_left()
            if not plan.is_unwanted:
                self._worked_out = plan
            return not plan.is_unwanted

    def _follow(self, plan: WaitingPlan) -> None:
        """Read what a process answers until it ends, or until nobody waits for it. Raises StoreError."""
        process = started(self._project, plan.start)
        assert process.stdout is not None
        rest = b""
        with process.stdout as stream, selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            try:
                with self._changed:
                    plan.process = process
                while not plan.is_unwanted:
                    if not selector.select(max(0.0, self._patience_s(plan)) + _LEAST_S):
                        with self._changed:
                            self._give_up_left()
                        continue
                    block = os.read(stream.fileno(), _BLOCK)
                    if not block:
                        break
                    *lines, rest = (rest + block).split(b"\n")
                    for line in lines:
                        answer = msgspec.json.decode(line, type=PlanAnswer)
                        plan.checked, plan.known = answer.checked or plan.checked, answer.known or plan.known
                        plan.found, plan.error = answer.plan or plan.found, answer.error or plan.error
            finally:
                with self._changed:
                    plan.process = None
                process.kill()
                process.wait()
