"""A change of the rules that was killed in the midst: the next start ends it as if nothing had been."""

from __future__ import annotations

import pytest

from crawlspace.crawl.conditional import set_generation
from crawlspace.crawl.rule_changes import survey as module
from crawlspace.crawl.rule_changes.reconcile import RECONCILING, RULES_HASH, plan, reconcile
from crawlspace.state.changes import Change
from crawlspace.state.error_policy import DeletionLimit
from tests.unit.crawl.known_urls import (
    LATER,
    NOW,
    OPEN,
    PRIVATE,
    RULES,
    SHUT,
    content,
    everything,
    get,
    kill,
    metas,
    row,
    verdicts,
)

# --- killed --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("deletion_limit", [OPEN, SHUT], ids=["open", "shut"])
@pytest.mark.parametrize("lost", [True, False], ids=["before the write", "after it"])
def test_a_kill_at_any_point_changes_nothing_of_the_end(
    deletion_limit: DeletionLimit, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH", 2)
    monkeypatch.setattr(module, "BATCH_IN_INDEX", 2)
    whole = everything()
    reconcile(whole, verdicts(), hash="new", deletion_limit=deletion_limit, now=LATER)
    assert metas(whole) == ("new", "", 2)
    assert len(whole.log) > 8
    for writes in range(len(whole.log)):
        store = everything()
        kill(store, writes, deletion_limit=deletion_limit, lost=lost)
        assert plan(store, verdicts(), hash="new", deletion_limit=deletion_limit).changed is (metas(store)[:2] != ("new", ""))
        reconcile(store, verdicts(), hash="new", deletion_limit=deletion_limit, now=LATER)
        assert content(store) == content(whole), f"killed at write {writes}"
        assert reconcile(store, verdicts(), hash="new", deletion_limit=deletion_limit, now=LATER) is None


def test_urls_come_back_only_for_an_unconditional_get() -> None:
    store = everything()
    reconcile(store, verdicts(), hash="new", deletion_limit=OPEN, now=LATER)
    assert store.log.index("rules_generation") < store.log.index("reclassify")
    assert store.log[0] == RECONCILING
    assert store.log[-2:] == [RULES_HASH, RECONCILING]


def test_what_was_decided_before_a_kill_holds_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three deletions were too many; the two that are left would not be."""
    monkeypatch.setattr(module, "BATCH", 1)
    monkeypatch.setattr(module, "BATCH_IN_INDEX", 1)
    deletion_limit = DeletionLimit(0, 2)
    store = everything()
    kill(store, 3 + 3 + 1, deletion_limit=deletion_limit)  # after the metas, what is left to others, and one held deletion
    assert store.counts().held == 1 + 1
    store.record([Change(get(store, f"{PRIVATE}1"), forget=True)], now=NOW)
    found = plan(store, verdicts(), hash="new", deletion_limit=deletion_limit)
    assert (found.deletions, found.held) == (2, 2)
    reconcile(store, verdicts(), hash="new", deletion_limit=deletion_limit, now=LATER)
    assert store.counts().held == 1 + 2


@pytest.mark.parametrize("back", [True, False], ids=["back to the old rules", "to others"])
def test_rules_changed_again_after_a_kill(back: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 1)
    monkeypatch.setattr(module, "BATCH_IN_INDEX", 1)
    store = everything()
    store.set_meta(RULES_HASH, "old")
    kill(store, 3 + 3 + 1, deletion_limit=SHUT)
    other, rules = ("old", "") if back else ("other", RULES.replace("/private/", "/public/"))
    assert plan(store, verdicts(rules), hash=other, deletion_limit=OPEN).changed
    reconcile(store, verdicts(rules), hash=other, deletion_limit=OPEN, now=LATER)
    assert metas(store) == (other, "", 3)
    assert row(store, f"{PRIVATE}1")[2:4] == (True, None)


def test_a_generation_made_meanwhile_is_not_taken_back() -> None:
    store = everything()
    kill(store, 3, deletion_limit=OPEN)
    set_generation(store, 7)
    reconcile(store, verdicts(), hash="new", deletion_limit=OPEN, now=LATER)
    assert metas(store) == ("new", "", 7)
