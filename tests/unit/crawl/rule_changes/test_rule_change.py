"""What a change of the rules makes of known URLs: foretold, made or held, and the same after a kill at any write."""

from __future__ import annotations

import json

import pytest
from msgspec import structs

from crawlspace.crawl.conditional import set_generation
from crawlspace.crawl.rule_changes import survey as module
from crawlspace.crawl.rule_changes.reconcile import RECONCILING, RULES_HASH, plan, reconcile, rules_hash
from crawlspace.crawl.rule_changes.survey import OTHERS, Plan
from crawlspace.document import Document
from crawlspace.model import Held, State
from crawlspace.rules.crawl_rules import CrawlRules, parse_crawl_rules, parse_global_rules
from crawlspace.rules.exclusion import KnownUrlDecisions
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.changes import Change
from crawlspace.state.error_policy import DeletionLimit
from tests.unit.crawl.known_urls import (
    BACK,
    DOCUMENT,
    DUPLICATE,
    ELSEWHERE,
    FAILING,
    GLOBAL,
    HELD,
    IN,
    LATER,
    LOST,
    MISSING,
    NEVER_DUE,
    NOW,
    OPEN,
    OUT,
    PENDING,
    PRIVATE,
    RULES,
    SALES,
    SHUT,
    Mortal,
    Row,
    content,
    everything,
    get,
    kill,
    known,
    metas,
    row,
    verdicts,
)

IMPORTED_ERROR: Row = (State.GONE, None, False, None, None)
IMPORTED_ERROR_OF_DOCUMENT: Row = (State.FAILED, None, True, None, None)

ROWS: list[tuple[str, Row, str, Row, Row]] = [
    # URL, as it is known, what the plan counts it as, after, after where the deletion limit allows nothing
    (IN, PENDING, "", PENDING, PENDING),
    (IN, DOCUMENT, "", DOCUMENT, DOCUMENT),
    (IN, FAILING, "", FAILING, FAILING),
    (IN, OUT, "returned", PENDING, PENDING),
    (IN, ELSEWHERE, "returned", PENDING, PENDING),
    (IN, HELD, "returned", BACK, BACK),
    (IN, NEVER_DUE, "returned", BACK, BACK),
    (IN, IMPORTED_ERROR, "", IMPORTED_ERROR, IMPORTED_ERROR),
    (IN, IMPORTED_ERROR_OF_DOCUMENT, "", IMPORTED_ERROR_OF_DOCUMENT, IMPORTED_ERROR_OF_DOCUMENT),
    (PRIVATE, IMPORTED_ERROR, "excluded", OUT, OUT),
    (PRIVATE, PENDING, "excluded", OUT, OUT),
    (PRIVATE, DOCUMENT, "excluded deletions", OUT, HELD),
    (PRIVATE, DUPLICATE, "excluded", OUT, OUT),
    (PRIVATE, MISSING, "excluded", OUT, OUT),
    (PRIVATE, FAILING, "excluded deletions", OUT, (State.FAILED, 503, True, Held.RULES, None)),
    (PRIVATE, HELD, "excluded deletions", OUT, HELD),
    (PRIVATE, NEVER_DUE, "excluded deletions", OUT, HELD),
    (PRIVATE, OUT, "", OUT, OUT),
    (PRIVATE, ELSEWHERE, "excluded", OUT, OUT),
    (SALES, PENDING, "kept", ELSEWHERE, ELSEWHERE),
    (SALES, DOCUMENT, "kept", ELSEWHERE, ELSEWHERE),
    (SALES, DUPLICATE, "kept", ELSEWHERE, ELSEWHERE),
    (SALES, HELD, "kept", ELSEWHERE, ELSEWHERE),
    (SALES, OUT, "kept", ELSEWHERE, ELSEWHERE),
    (SALES, ELSEWHERE, "", ELSEWHERE, ELSEWHERE),
    (LOST, DOCUMENT, "excluded deletions", OUT, HELD),
]


@pytest.mark.parametrize("deletion_limit", [OPEN, SHUT], ids=["open", "shut"])
@pytest.mark.parametrize("url,before,counted,after,after_held", ROWS)
def test_one_known_url(url: str, before: Row, counted: str, after: Row, after_held: Row, deletion_limit: DeletionLimit) -> None:
    store = known((url, before))
    foretold = plan(store, verdicts(), hash="new", deletion_limit=deletion_limit)
    done = reconcile(store, verdicts(), hash="new", deletion_limit=deletion_limit, now=LATER)
    assert done == foretold
    assert " ".join(kind for kind in ("excluded", "kept", "returned", "deletions") if getattr(foretold, kind)) == counted
    assert foretold.held == (foretold.deletions if deletion_limit is SHUT else 0)
    assert row(store, url) == (after_held if deletion_limit is SHUT else after)
    if get(store, url).state in (State.PENDING, State.DONE) and counted == "returned":
        assert get(store, url).rules == 0
    deleted = [(order.op, order.url) for order in store.orders("index", 9, now=NOW) if url == order.url]
    assert deleted == ([("delete", url)] if "deletions" in counted and deletion_limit is OPEN else [])


def test_nothing_is_done_when_the_rules_are_as_they_were() -> None:
    store = known((PRIVATE, DOCUMENT), (IN, OUT))
    store.set_meta(RULES_HASH, "same")
    store.writes_left = 0
    assert reconcile(store, verdicts(), hash="same", deletion_limit=OPEN, now=NOW) is None
    assert plan(store, verdicts(), hash="same", deletion_limit=OPEN) == Plan(False, 3, 2, 0, 0, 0, 0, 0, {}, {}, {})


def test_a_new_collection_only_notes_its_rules() -> None:
    store = Mortal()
    assert reconcile(store, verdicts(), hash="new", deletion_limit=OPEN, now=NOW) is None
    assert metas(store) == ("new", None, 1)


def test_a_plan_lists_rules_hosts_and_examples_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 3)
    store = everything()
    store.writes_left = 0
    found = plan(store, verdicts(), hash="new", deletion_limit=SHUT)
    assert content(store) == content(everything())
    assert json.loads(json.dumps(found.as_json())) == {
        "changed": True,
        "known": 17,
        "indexed": 8,
        "excluded": 6,
        "kept": 3,
        "returned": 3,
        "unindexed": 0,
        "due": 0,
        "judged": 0,
        "folded": 0,
        "folded_into": 0,
        "deletions": 3,
        "held": 3,
        "by_rule": {
            "crawl.rules:2": {"excluded": 2, "kept": 3, "deletions": 1},
            "crawl.rules:3": {"excluded": 3, "deletions": 1},
            "extension": {"excluded": 1, "deletions": 1},
        },
        "by_host": {
            "www.example.com": {"excluded": 4, "returned": 3, "deletions": 2},
            "sales.example.com": {"kept": 3},
            "lost.example.com": {"excluded": 2, "deletions": 1},
        },
        "examples": {
            "excluded": [f"{PRIVATE}1", f"{PRIVATE}2", f"{PRIVATE}3", f"{LOST}1", f"{LOST}2"],
            "kept": [f"{SALES}1", f"{SALES}2", f"{SALES}3"],
            "returned": [f"{IN}3", f"{IN}4", f"{IN}5"],
            "deletions": [f"{PRIVATE}1", f"{LOST}1", f"{IN}a.zip"],
        },
    }


def test_of_many_hosts_the_largest_are_listed() -> None:
    urls = [f"http://h{host:02}.example.com/{n}" for host in range(30) for n in range(1 if host < 10 else 3)]
    found = plan(known(*((url, PENDING) for url in urls)), verdicts(), hash="new", deletion_limit=OPEN)
    assert list(found.by_host) == [f"h{host}.example.com" for host in range(10, 30)] + [OTHERS]
    assert found.by_host["h10.example.com"] == {"excluded": 3}
    assert found.by_host[OTHERS] == {"excluded": 10}


DELETION_LIMITS = [
    # percent, count, how many of three deletions are held, among eight documents
    (10, 100, 0),
    (37, 0, 3),
    (38, 0, 0),
    (37, 2, 3),
    (37, 3, 0),
    (0, 0, 3),
]


@pytest.mark.parametrize("percent,count,held", DELETION_LIMITS)
def test_all_deletions_are_held_or_none(percent: int, count: int, held: int) -> None:
    store = everything()
    done = reconcile(store, verdicts(), hash="new", deletion_limit=DeletionLimit(percent, count), now=LATER)
    assert done is not None
    assert (done.deletions, done.held) == (3, held)
    assert sum(store.held_numbers().values()) == held + 1  # one was held before, for its host's sake
    deletes = [order for order in store.orders("index", 99, now=NOW) if order.op == "delete"]
    assert len(deletes) == 3 - held


@pytest.mark.parametrize("deletion_limit", [OPEN, SHUT])
def test_documents_sent_in_place_of_equal_ones_that_leave_are_counted(deletion_limit: DeletionLimit) -> None:
    store = known((f"{PRIVATE}1", DOCUMENT), (f"{IN}a/copy/of/it", DOCUMENT), alike=True)
    done = reconcile(store, verdicts(), hash="new", deletion_limit=deletion_limit, now=LATER)
    assert done is not None
    assert (done.deletions, done.pushed) == (1, 1)
    assert [order.url for order in store.orders("index", 99, now=NOW) if order.op == "push"] == [f"{IN}a/copy/of/it"]


def test_held_deletions_are_counted_again_with_the_next_change() -> None:
    store = everything()
    reconcile(store, verdicts(), hash="new", deletion_limit=SHUT, now=LATER)
    assert plan(store, verdicts(), hash="newer", deletion_limit=OPEN).deletions == 3
    reconcile(store, verdicts(), hash="newer", deletion_limit=OPEN, now=LATER)
    assert row(store, f"{PRIVATE}1") == OUT


def test_the_first_urls_of_a_host_stay() -> None:
    store = known(*((f"{IN}{n}", DOCUMENT) for n in range(5)))  # and one before them
    limited = KnownUrlDecisions(CrawlSpace(CrawlRules(), Limits(max_urls_per_host=4), []), None)
    for _ in range(2):
        found = plan(store, limited, hash="new", deletion_limit=OPEN)
        assert (found.by_rule, found.examples["excluded"]) == (
            {"urls_per_host": {"excluded": 2, "deletions": 2}},
            [f"{IN}3", f"{IN}4"],
        )


GROUPS = [
    # a page, what has the same content, and where there are orders then
    (f"{PRIVATE}1", [f"{PRIVATE}22", f"{SALES}a-longer-path"], [("delete", f"{PRIVATE}1")]),
    (f"{SALES}1", [f"{SALES}22"], []),
    (f"{PRIVATE}1", [f"{IN}a-longer-path"], [("delete", f"{PRIVATE}1"), ("push", f"{IN}a-longer-path")]),
]


@pytest.mark.parametrize("url,duplicates,orders", GROUPS)
def test_what_goes_too_is_not_pushed_first(
    url: str, duplicates: list[str], orders: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH", 1)
    store = known((url, DOCUMENT), *((duplicate, DUPLICATE) for duplicate in duplicates), alike=True)
    reconcile(store, verdicts(), hash="new", deletion_limit=OPEN, now=LATER)
    assert [(order.op, order.url) for order in store.orders("index", 9, now=NOW)] == orders


def test_of_equal_pages_that_another_crawler_takes_over_none_is_deleted_because_one_has_gone_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The shorter path stays here; the other one stands for the group because a third one names it, and is taken over with that one."""
    monkeypatch.setattr(module, "BATCH", 1)
    store = known((f"{SALES}333", DUPLICATE), (f"{IN}1", DUPLICATE), (f"{SALES}22", DOCUMENT), alike=True)
    named = get(store, f"{SALES}22").key
    store.record([Change(structs.replace(get(store, f"{SALES}333"), canonical=named), document=Document("", text="x"))], now=NOW)
    assert get(store, f"{SALES}22").indexed
    store.acknowledge("index", store.orders("index", 9, now=NOW))
    reconcile(store, verdicts(), hash="new", deletion_limit=OPEN, now=LATER)
    assert [(order.op, order.url) for order in store.orders("index", 9, now=NOW)] == [("push", f"{IN}1")]


def test_a_held_document_stays_though_the_page_that_named_it_is_excluded(monkeypatch: pytest.MonkeyPatch) -> None:
    """It represented its group because of that page; now an equal page inside is indexed beside it."""
    monkeypatch.setattr(module, "BATCH", 1)
    named, naming, inside = f"{PRIVATE}a-longer-path", f"{PRIVATE}22", f"{IN}1"
    store = known((named, DOCUMENT), (naming, DUPLICATE), (inside, DUPLICATE), alike=True)
    change = Change(structs.replace(get(store, naming), canonical=get(store, named).key), document=Document("", text="x"))
    store.record([change], now=NOW)
    assert [get(store, url).indexed for url in (named, naming, inside)] == [True, False, False]
    reconcile(store, verdicts(), hash="new", deletion_limit=SHUT, now=LATER)
    assert [get(store, url).indexed for url in (named, naming, inside)] == [True, False, True]
    assert (get(store, named).held, sum(store.held_numbers().values())) == (Held.RULES, 1)


HASHES = [
    # rules, global rules, what else counts, whether it is the same as of RULES and GLOBAL
    (RULES, GLOBAL, "", True),
    (f"# a comment\n\n{RULES.replace('allow', 'ALLOW')}", f"\n{GLOBAL}  ", "", True),
    (RULES, GLOBAL, "links", False),
    (RULES, None, "", False),
    (RULES, "", "", False),
    (RULES, GLOBAL.replace("sales", "Sales"), "", False),
    (RULES, GLOBAL.replace("allow", "forbid"), "", False),
    (RULES, f"{GLOBAL}\nallow domain *", "", False),
    (RULES.replace("private", "secret"), GLOBAL, "", False),
]


@pytest.mark.parametrize("rules,global_rules,beside,same", HASHES)
def test_the_hash_differs_where_a_verdict_could(rules: str, global_rules: str | None, beside: str, same: bool) -> None:
    def hashed(rules: str, global_rules: str | None, beside: str) -> str:
        shared = None if global_rules is None else CrawlRules(parse_global_rules(global_rules, file="global.rules"))
        return rules_hash(CrawlSpace(parse_crawl_rules(rules, file="crawl.rules"), Limits(), []), shared, beside)

    assert (hashed(rules, global_rules, beside) == hashed(RULES, GLOBAL, "")) is same


@pytest.mark.parametrize(
    ("known", "deletions", "held", "sentence"),
    [
        (1, 0, 0, "of 1 known URL 1 excluded (760)"),
        (2_000, 1, 0, "of 2,000 known URLs 1 excluded (760), 1 document leaves the index"),
        (2_000, 1_500, 0, "of 2,000 known URLs 1,500 excluded (760), 1,500 documents leave the index"),
        (2, 1, 1, "of 2 known URLs 1 excluded (760), 1 document held in the index"),
    ],
)
def test_the_sentence_of_a_plan(known: int, deletions: int, held: int, sentence: str) -> None:
    found = Plan(True, known, known, max(1, deletions), 0, 0, deletions, held, {}, {}, {})
    assert found.sentence() == sentence


# --- changes that are killed: the next start ends them --------------------------------------------------------------


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
    assert sum(store.held_numbers().values()) == 1 + 1
    store.record([Change(get(store, f"{PRIVATE}1"), forget=True)], now=NOW)
    found = plan(store, verdicts(), hash="new", deletion_limit=deletion_limit)
    assert (found.deletions, found.held) == (2, 2)
    reconcile(store, verdicts(), hash="new", deletion_limit=deletion_limit, now=LATER)
    assert sum(store.held_numbers().values()) == 1 + 2


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
