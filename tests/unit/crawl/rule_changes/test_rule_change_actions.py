"""What a change of the action rules makes of known URLs: out of the index and in again, from queue to queue, held and approved."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import structs

from crawlspace.admin.url_changes import UrlChanges
from crawlspace.clock import FakeClock
from crawlspace.crawl.rule_changes import survey as module
from crawlspace.crawl.rule_changes.reconcile import plan, reconcile
from crawlspace.crawl.rule_changes.survey import ACTIONS_HASH, Plan
from crawlspace.model import SITEMAP_QUEUE, Held, NewUrl, Queue, Source, State
from crawlspace.rules.crawl_rules import CrawlRules, parse_crawl_rules
from crawlspace.rules.exclusion import KnownUrlDecisions
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.parser import parse_rules_xml
from crawlspace.state.changes import Change
from crawlspace.state.error_policy import DeletionLimit
from crawlspace.urls import parse
from tests.contract.memory.store import MemoryStore
from tests.unit.crawl.known_urls import (
    BACK,
    DOCUMENT,
    DUPLICATE,
    FAILING,
    HELD,
    LATER,
    MISSING,
    NEVER_DUE,
    NOW,
    OPEN,
    OUT,
    PENDING,
    SHUT,
    Killed,
    Mortal,
    Row,
    content,
    get,
    known,
    row,
)

RULES = """\
<Rules>
  <Rule> <Path val="/unindexed"/> <NoIndex/> </Rule>
  <Rule> <Path val="/ignored"/> <Ignore/> </Rule>
</Rules>
"""
HOME = "http://www.example.com"
PLAIN, UNINDEXED, IGNORED = (f"{HOME}/{name}" for name in ("plain", "unindexed", "ignored"))

NOINDEX = (State.EXCLUDED, 2004, False, None, NOW + 500)
DUE = (State.EXCLUDED, 2004, False, None, LATER)
FAILING_HELD = (State.FAILED, 503, True, Held.RULES, None)

ROWS: list[tuple[str, Row, str, Row, Row]] = [
    # URL, as it is known, what the plan counts it as, after, after if the deletion limit allows nothing
    (UNINDEXED, PENDING, "", PENDING, PENDING),
    (UNINDEXED, DOCUMENT, "unindexed deletions", DUE, HELD),
    (UNINDEXED, DUPLICATE, "unindexed", DUE, DUE),
    (UNINDEXED, MISSING, "", MISSING, MISSING),
    (UNINDEXED, FAILING, "unindexed deletions", DUE, FAILING_HELD),
    (UNINDEXED, HELD, "unindexed deletions", DUE, HELD),
    (UNINDEXED, NEVER_DUE, "unindexed deletions", DUE, HELD),
    (UNINDEXED, OUT, "returned", PENDING, PENDING),
    (UNINDEXED, NOINDEX, "", NOINDEX, NOINDEX),
    (PLAIN, NOINDEX, "returned", DUE, DUE),
    (PLAIN, HELD, "returned", BACK, BACK),
    (PLAIN, DOCUMENT, "", DOCUMENT, DOCUMENT),
    (PLAIN, OUT, "returned", PENDING, PENDING),
    (IGNORED, DOCUMENT, "excluded deletions", OUT, HELD),
    (IGNORED, NOINDEX, "excluded", OUT, OUT),
    (IGNORED, HELD, "excluded deletions", OUT, HELD),
]
KINDS = ("excluded", "kept", "unindexed", "returned", "deletions")


@pytest.mark.parametrize("deletion_limit", [OPEN, SHUT], ids=["open", "shut"])
@pytest.mark.parametrize("url,before,counted,after,after_held", ROWS)
def test_one_known_url(url: str, before: Row, counted: str, after: Row, after_held: Row, deletion_limit: DeletionLimit) -> None:
    store = known((url, before))
    foretold = plan(store, verdicts(), hash="new", deletion_limit=deletion_limit)
    assert changed(store, deletion_limit=deletion_limit) == foretold
    assert " ".join(kind for kind in KINDS if getattr(foretold, kind)) == counted
    assert foretold.held == (foretold.deletions if deletion_limit is SHUT else 0)
    assert row(store, url) == (after_held if deletion_limit is SHUT else after)
    if "unindexed" in counted and deletion_limit is OPEN:
        assert get(store, url).rules == 0, "it is fetched whole, for its links"
    assert orders(store, url) == (["delete"] if "deletions" in counted and deletion_limit is OPEN else [])


MOVES: list[tuple[Source, int, str, Source, int]] = [
    # a URL waits in this source with this shift, the rules say of it, and then it waits
    (Source.INDEX_FOLLOW, 0, "<Index/>", Source.INDEX_FOLLOW, 0),
    (Source.INDEX_FOLLOW, 0, "<NoFollow/>", Source.INDEX, 0),
    (Source.INDEX_FOLLOW, 0, "<NoIndex/>", Source.FOLLOW, 0),
    (Source.INDEX_FOLLOW, 0, "<NoIndex/><NoFollow/>", Source.FOLLOW, 0),
    (Source.INDEX_FOLLOW, 0, '<Priority shift="-2"/>', Source.INDEX_FOLLOW, -2),
    (Source.INDEX, 1, "<Index/>", Source.INDEX_FOLLOW, 0),
    (Source.FOLLOW, -1, '<NoFollow/><Priority shift="1"/>', Source.INDEX, 1),
    (Source.REDIR, 0, "<NoFollow/>", Source.REDIR, 0),
    (Source.REDIR, 0, '<NoIndex/><Priority shift="2"/>', Source.REDIR, 2),
    (Source.USER, -1, '<NoFollow/><Priority shift="2"/>', Source.USER, -1),
]


@pytest.mark.parametrize("known_as", [PENDING, MISSING], ids=["pending", "due later"])
@pytest.mark.parametrize("source,shift,actions,source_after,shift_after", MOVES)
def test_where_a_url_waits(
    source: Source, shift: int, actions: str, source_after: Source, shift_after: int, known_as: Row
) -> None:
    store = known((PLAIN, known_as))
    store.record([Change(structs.replace(get(store, PLAIN), source=source, shift=shift))], now=NOW)
    done = changed(store, f'<Rules><Rule><Path val="/plain"/>{actions}</Rule></Rules>')
    assert (get(store, PLAIN).source, get(store, PLAIN).shift) == (source_after, shift_after)
    assert row(store, PLAIN) == known_as
    assert not done.has_effect, "a plan tells what happens to documents"
    if known_as is PENDING:
        (site,) = store.sites()
        assert Queue(source_after, shift_after) in site.pending


@pytest.mark.parametrize(("depth", "after"), [(0, SITEMAP_QUEUE), (1, Queue(Source.INDEX_FOLLOW))])
def test_a_sitemap_that_is_not_yet_read_stays_first(depth: int, after: Queue) -> None:
    """One that robots.txt names is at depth 0; a page there is a start URL, or the target of one."""
    store, (source, shift) = MemoryStore(), SITEMAP_QUEUE
    parsed = parse(PLAIN)
    store.discover([NewUrl(parsed.key, PLAIN, parsed.site, source, shift, depth, 0, 0)], now=NOW)
    changed(store, '<Rules><Rule><Path val="/other"/><NoFollow/></Rule></Rules>')
    assert get(store, PLAIN).queue == after


BRAKES = [
    # percent, count, how many of three deletions are held, among nine documents
    (33, 2, 3),
    (34, 2, 0),
    (33, 3, 0),
    (0, 0, 3),
]


@pytest.mark.parametrize("percent,count,held", BRAKES)
def test_what_is_ignored_and_what_is_not_indexed_count_together(percent: int, count: int, held: int) -> None:
    store = documents(f"{UNINDEXED}/1", f"{UNINDEXED}/2", IGNORED, *(f"{PLAIN}/{n}" for n in range(5)))
    done = changed(store, deletion_limit=DeletionLimit(percent, count))
    assert (done.indexed, done.deletions, done.held) == (9, 3, held)
    assert sum(state.held is Held.RULES for state in store.urls()) == held


def test_deletions_that_are_approved() -> None:
    store = documents(UNINDEXED, IGNORED, PLAIN)
    changed(store, deletion_limit=SHUT)
    assert [row(store, url) for url in (UNINDEXED, IGNORED)] == [HELD, HELD]
    clock = FakeClock()
    assert UrlChanges(store, clock=clock).approve().changed == 2
    assert row(store, UNINDEXED) == (State.EXCLUDED, 2004, False, None, int(clock.now())), "due, for its links"
    assert row(store, IGNORED) == OUT
    assert [orders(store, url) for url in (UNINDEXED, IGNORED, PLAIN)] == [["delete"], ["delete"], []]
    assert changed(store, "<Rules/>", number=2).returned == 2
    assert row(store, UNINDEXED) == DUE


def test_deletions_that_are_held_and_then_not_needed() -> None:
    store = documents(UNINDEXED, IGNORED)
    changed(store, deletion_limit=SHUT)
    done = changed(store, "<Rules/>", deletion_limit=SHUT, number=2)
    assert (done.returned, done.deletions) == (2, 0)
    assert [row(store, url) for url in (UNINDEXED, IGNORED)] == [BACK, BACK]
    assert [get(store, url).held_mark for url in (UNINDEXED, IGNORED)] == [0, 0]


HOLDS = [
    # held as one thing, what the rules make of it next, then approved
    ("NoIndex", "Ignore", OUT[:2]),
    ("Ignore", "NoIndex", NOINDEX[:2]),
]


@pytest.mark.parametrize("first,then,approved", HOLDS)
def test_a_deletion_that_is_held_is_made_as_the_last_rules_say(first: str, then: str, approved: tuple[State, int]) -> None:
    store = documents(PLAIN)
    for number, action in enumerate((first, then)):
        changed(store, f'<Rules><Rule><Path val="/plain"/><{action}/></Rule></Rules>', deletion_limit=SHUT, number=number)
        assert row(store, PLAIN) == HELD
    UrlChanges(store, clock=FakeClock()).approve()
    assert row(store, PLAIN)[:2] == approved


def test_a_plan_names_the_rule_that_unindexes() -> None:
    store = documents(UNINDEXED, f"{UNINDEXED}/2", IGNORED)
    found = changed(store)
    assert found.by_rule == {"rules.xml:2": {"unindexed": 2, "deletions": 2}, "rules.xml:3": {"excluded": 1, "deletions": 1}}
    assert found.examples["unindexed"] == [UNINDEXED, f"{UNINDEXED}/2"]
    assert "2 crawled for their links only (2004)" in found.sentence()


def test_where_no_rule_decides_the_reason_is_named() -> None:
    found = reconcile(documents(PLAIN), verdicts("<Rules/>", index=False), hash="new", deletion_limit=OPEN, now=LATER)
    assert found is not None
    assert found.by_rule == {"noindex": {"unindexed": 2, "deletions": 2}}


def test_what_is_not_indexed_comes_back_only_when_the_action_rules_change() -> None:
    store = known((PLAIN, NOINDEX))
    store.set_meta(ACTIONS_HASH, verdicts().actions_hash)
    other = parse_crawl_rules("forbid domain other.example\n", file="crawl.rules")
    assert not changed(store, crawl_rules=other).has_effect, "the page may say so itself"
    assert changed(store, "<Rules/>", number=2).returned == 1


def test_a_kill_at_any_point_changes_nothing_of_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 1)
    rows = [
        (f"{url}/{number}", kind)
        for url in (PLAIN, UNINDEXED, IGNORED)
        for number, kind in enumerate((DOCUMENT, NOINDEX, PENDING, OUT))
    ]
    for deletion_limit in (OPEN, SHUT):
        whole = known(*rows)
        changed(whole, deletion_limit=deletion_limit)
        assert len(whole.log) > 10
        for writes in range(len(whole.log)):
            store = known(*rows)
            store.writes_left = writes
            with pytest.raises(Killed):
                changed(store, deletion_limit=deletion_limit)
            store.writes_left = None
            changed(store, deletion_limit=deletion_limit)
            assert content(store) == content(whole), f"killed at write {writes}"
            assert store.get_meta(ACTIONS_HASH) == verdicts().actions_hash


def verdicts(rules: str = RULES, *, index: bool = True, crawl_rules: CrawlRules | None = None) -> KnownUrlDecisions:
    parsed = parse_rules_xml(rules.encode(), file="rules.xml")
    actions = CompiledActions(parsed, accept=True, index=index, follow=True)
    return KnownUrlDecisions(CrawlSpace(crawl_rules or CrawlRules(), Limits(), [], actions=actions), None)


def changed(
    store: MemoryStore,
    rules: str = RULES,
    *,
    deletion_limit: DeletionLimit = OPEN,
    number: int = 1,
    crawl_rules: CrawlRules | None = None,
) -> Plan:
    """What was done when the rules became these."""
    done = reconcile(store, verdicts(rules, crawl_rules=crawl_rules), hash=str(number), deletion_limit=deletion_limit, now=LATER)
    assert done is not None
    return done


def documents(*urls: str) -> Mortal:
    """A store with these documents, and one more."""
    return known(*((url, DOCUMENT) for url in urls))


def orders(store: MemoryStore, url: str) -> Sequence[str]:
    return [order.op.value for order in store.orders("index", 99, now=NOW) if order.url == url]
