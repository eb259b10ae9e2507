"""What a store keeps of sites: which cannot be reached, their documents, their schemes, and the addresses of hosts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

import pytest

from crawlspace.crawl.addresses import KnownAddresses, LookedUp, LookUps, last_look_up
from crawlspace.crawl.rule_changes.survey import survey
from crawlspace.errors import StoreDamaged
from crawlspace.model import State
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.exclusion import KnownUrlDecisions
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.changes import Reclassified
from crawlspace.state.site_health import NEW_SITE, Health
from crawlspace.state.site_pauses import PAUSES, SitePause, pause_of
from crawlspace.state.store import Store
from crawlspace.state.unreachable import ALL_SCHEMES, UnreachableSite
from crawlspace.state.views import KnownSite, WaitingUrls
from tests.contract.conftest import NOW, Known, new

A, B = "a.example:80", "b.example:80"
ROW = UnreachableSite(A, 612, since=NOW - 9, runs=2, counted_at=NOW)


def test_the_row_of_a_site_is_replaced_and_removed(open_store: Callable[[], Store]) -> None:
    store = open_store()
    assert store.unreachable() == []
    store.set_unreachable(B, UnreachableSite(B, 680, NOW, 1, NOW, "the name é does not exist"))
    store.set_unreachable(A, UnreachableSite(A, 613, NOW - 9, 1, NOW - 9))
    store.set_unreachable(A, ROW)
    assert store.unreachable() == [ROW, UnreachableSite(B, 680, NOW, 1, NOW, "the name é does not exist")]
    if not hasattr(store, "_unreachable"):  # one in memory keeps nothing
        with closing(open_store()) as again:
            assert again.unreachable() == store.unreachable()
    store.set_unreachable(A, None)
    store.set_unreachable("unknown.example:80", None)
    assert [row.site for row in store.unreachable()] == [B]


def test_documents_are_counted_by_site(known: Known) -> None:
    store = known.store
    known.crawled(("a.example/1", "one"), ("a.example/2", "two"), ("b.example/long", "one"), ("b.example/2", "three"))
    counts = [store.documents([A, B, "unknown:80"])]
    known.record(known.change("a.example/1", forget=True))  # its duplicate at the other host takes its place
    counts.append(store.documents([A, B]))
    known.record(known.change("b.example/2", checksum=None, state=State.EXCLUDED, status=2004))
    counts.append(store.documents([A, B]))
    store.reclassify(Reclassified(excluded=[known.get("a.example/2").id], given_up=[known.get("b.example/long").id]), now=NOW)
    counts.append(store.documents([A, B]))
    assert counts == [{A: 2, B: 1, "unknown:80": 0}, {A: 1, B: 2}, {A: 1, B: 1}, {A: 0, B: 0}]


def test_what_is_out_of_the_crawl_space_or_missing_does_not_count_as_a_url_of_its_host(known: Known) -> None:
    store = known.store
    known.crawled(("a.example/1", "one"), ("a.example/2", "two"), ("http://a.example:8080/3", "three"))
    known.discover("a.example/4", "a.example/5")
    counts = [store.host_count("a.example")]

    def ids(*urls: str) -> list[int]:
        return [known.get(url).id for url in urls]

    steps = [
        Reclassified(excluded=ids("a.example/1"), given_up=ids("http://a.example:8080/3")),
        Reclassified(excluded=ids("a.example/1"), unindexed=ids("a.example/2")),
        Reclassified(returned=ids("a.example/1")),
        Reclassified(unindexed=ids("http://a.example:8080/3")),
    ]
    for step in steps:
        store.reclassify(step, now=NOW)
        counts.append(store.host_count("a.example"))
    for change in (
        known.change("a.example/4", state=State.EXCLUDED, status=760),
        known.change("a.example/5", state=State.EXCLUDED, status=740),
        known.change("a.example/4", forget=True),
        known.change("a.example/5", state=State.GONE, status=404),
    ):
        known.record(change)
        counts.append(store.host_count("a.example"))
    assert counts == [5, 3, 3, 4, 5, 4, 4, 4, 3]
    assert store.known_of_host("a.example") == 4


@pytest.mark.parametrize(
    ("urls", "site", "schemes"),
    [
        (["http://a.example:8080/"], "a.example:8080", {"http"}),
        (["https://a.example:8080/"], "a.example:8080", {"https"}),
        (["http://a.example:8080/", "https://a.example:8080/x"], "a.example:8080", {"http", "https"}),
        (["http://a.example/"], A, {"http"}),
        (["https://a.example/"], "a.example:443", {"https"}),
        (["https://a.example:80/", "http://a.example/"], A, {"http", "https"}),
        (["http://a.example/"], "unknown.example:8080", ALL_SCHEMES),
    ],
)
def test_schemes_of_a_site(known: Known, urls: list[str], site: str, schemes: set[str]) -> None:
    known.discover(*map(new, urls))
    assert known.store.schemes(site) == schemes


def test_a_wait_is_kept_with_its_length(store: Store) -> None:
    store.wait_site(A, NOW + 5, wait_s=7)
    assert [(site.wait_until, site.wait_s) for site in store.sites()] == [(NOW + 5, 7)]


# --- addresses of hosts ---------------------------------------------------------------------------------------------


def test_addresses_of_hosts_are_kept(known: Known) -> None:
    store, look_ups = known.store, LookUps()
    look_ups.note("a.example", ["10.0.0.1", "fe80::1%eth0"])
    look_ups.note("b.example", [])
    look_ups.keep(store, now=NOW)
    assert last_look_up(store, "a.example") == LookedUp(("10.0.0.1", "fe80::1%eth0"), NOW)
    assert last_look_up(store, "b.example") is None
    kept = KnownAddresses(store)
    for _ in range(2):
        assert [kept(host) for host in ("a.example", "b.example")] == [("10.0.0.1", "fe80::1%eth0"), ()]
        kept.read(["a.example", "10.0.0.1", "b.example"])


def test_a_reconcile_reads_them_a_page_at_a_time(known: Known) -> None:
    look_ups = LookUps()
    known.discover(*(f"h{number}.example/" for number in range(50)))
    for number in range(50):
        look_ups.note(f"h{number}.example", ["10.0.0.1"])
    look_ups.keep(known.store, now=NOW)
    space = CrawlSpace(parse_crawl_rules("forbid address 10.0.0.0/8\n", file="crawl.rules"), Limits(), [])
    counted = Counted(known.store)
    addresses = KnownAddresses(counted)
    found = survey(known.store, KnownUrlDecisions(space, None, addresses=addresses, read_ahead=addresses.read))
    assert len(found.excluded) == 50
    assert counted.calls == 1


class Counted:
    """The entries of a store, and how often they were asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls = 0

    def get_meta(self, name: str) -> str | None:
        self.calls += 1
        return self._store.get_meta(name)

    def get_metas(self, names: Sequence[str]) -> list[str | None]:
        self.calls += 1
        return self._store.get_metas(names)

    def set_meta(self, name: str, value: str) -> None:
        self._store.set_meta(name, value)

    def replace_meta(self, name: str, before: str | None, after: str) -> bool:
        return self._store.replace_meta(name, before, after)

    def claim(self, name: str, *, seconds: int) -> bool:
        return True

    def end_claim(self, name: str) -> None: ...


def test_an_answer_is_written_once_and_what_changes_again(known: Known) -> None:
    store, look_ups = known.store, LookUps()
    for addresses, now, kept_at in ((["10.0.0.1"], NOW, NOW), (["10.0.0.1"], NOW + 1, NOW), (["10.0.0.2"], NOW + 2, NOW + 2)):
        look_ups.note("a.example", addresses)
        look_ups.keep(store, now=now)
        assert last_look_up(store, "a.example") == LookedUp(tuple(addresses), kept_at)


def test_they_are_written_in_parts(known: Known) -> None:
    look_ups = LookUps()
    for number in range(5):
        look_ups.note(f"h{number}.example", ["10.0.0.1"])
    for expected in (2, 4, 5):
        look_ups.keep(known.store, now=NOW, most=2)
        assert sum(last_look_up(known.store, f"h{number}.example") is not None for number in range(5)) == expected


def test_what_is_damaged_is_not_known(known: Known) -> None:
    for written in ("", "x 10.0.0.1", str(NOW), f"{NOW} 10.0.0", "9" * 5_000 + " 10.0.0.1"):
        known.store.set_meta("addresses:a.example", written)
        assert last_look_up(known.store, "a.example") is None


# --- sites that a person has paused ---------------------------------------------------------------------------------

PAUSE = SitePause("ada", NOW, "moves to another server, é")

# pattern -> the sites that it matches
PATTERNS = [
    ("a.example", {"a.example:80", "a.example:8080"}),
    ("a.example:80", {"a.example:80"}),
    ("a.example:443", set()),
    ("*.example", {"a.example:80", "a.example:8080", "sub.a.example:80", "b.example:80"}),
    ("*.example:8080", {"a.example:8080"}),
    ("*.a.example", {"sub.a.example:80"}),
    ("*.sub.a.example", set()),
    ("example", set()),
    ("*.net", set()),
    ("[2001:db8::7]", {"[2001:db8::7]:80"}),
]


@pytest.mark.parametrize(("pattern", "paused"), PATTERNS, ids=[row[0] for row in PATTERNS])
def test_nothing_is_leased_of_a_site_that_is_paused(known: Known, pattern: str, paused: set[str]) -> None:
    sites = ["a.example:80", "a.example:8080", "sub.a.example:80", "b.example:80", "[2001:db8::7]:80"]
    known.discover(*(new(f"http://{site.removesuffix(':80')}/") for site in sites))
    known.store.set_site_pause(pattern, PAUSE)

    def left() -> set[str]:
        found = [state for site in sites for state in known.store.lease(site, 5, now=NOW, until=NOW + 9)]
        known.store.release(state.id for state in found)
        return {state.site for state in found}

    assert left() == set(sites) - paused
    assert {site for site in sites if pause_of(known.store.site_pauses(), site) is not None} == paused
    assert len(list(known.store.sites())) == len(sites), "what there is to fetch is known all the same"
    known.store.set_site_pause(pattern, None)
    assert left() == set(sites)


def test_pauses_are_kept(open_store: Callable[[], Store]) -> None:
    store = open_store()
    assert store.site_pauses() == {}
    store.set_site_pause("b.example", None)
    store.set_site_pause("a.example", SitePause("bob", NOW - 5))
    store.set_site_pause("b.example:8080", PAUSE)
    store.set_site_pause("a.example", PAUSE)
    assert store.site_pauses() == {"a.example": PAUSE, "b.example:8080": PAUSE}
    if not hasattr(store, "_unreachable"):  # one in memory keeps nothing
        with closing(open_store()) as again:
            assert again.site_pauses() == store.site_pauses()
    store.set_site_pause("a.example", None)
    assert store.site_pauses() == {"b.example:8080": PAUSE}
    store.set_site_pause("b.example:8080", None)
    assert store.site_pauses() == {}


def test_the_most_exact_pattern_is_named() -> None:
    by_pattern = {pattern: SitePause(pattern, NOW) for pattern in ("*.example", "*.a.example:80", "*.a.example", "x.a.example")}
    found = {
        site: None if (paused := pause_of(by_pattern, site)) is None else (paused.pattern, paused.pause.by)
        for site in ("x.a.example:80", "y.a.example:80", "y.a.example:81", "b.example:80", "example:80")
    }
    patterns = ["x.a.example", "*.a.example:80", "*.a.example", "*.example"]
    assert list(found.values()) == [*zip(patterns, patterns, strict=True), None]


def test_damaged_pauses_are_not_taken_for_none(known: Known) -> None:
    """Otherwise a host that a person has paused would be requested."""
    store = known.store
    if hasattr(store, "_unreachable"):
        return  # the model keeps no text
    for value in ("{", '{"a.example": 7}', "[]"):
        store.set_meta(PAUSES, value)
        for call in (store.site_pauses, lambda: store.set_site_pause("b.example", PAUSE)):
            with pytest.raises(StoreDamaged, match="the pauses of hosts in the store are damaged"):
                call()


# --- the numbers of all sites ---------------------------------------------------------------------------------------


def test_numbers_of_sites(known: Known) -> None:
    store = known.store
    known.crawled(("a.example/1", "one"), ("a.example/2", "two"))
    known.discover("a.example/3", "a.example/4", "http://a.example:8080/5", "b.example/6")
    known.record(
        known.change("a.example/1", state=State.DONE, status=200, checksum=b"one", next_fetch=NOW),
        known.change("a.example/2", state=State.GONE, status=404, checksum=None, next_fetch=NOW + 60),
    )
    health = Health(1, 0b101, 0b010, (7,))
    store.record([], now=NOW, health={A: health})
    store.lease(A, 1, now=NOW, until=NOW + 9, queue=known.get("a.example/3").queue)
    assert [one for one in store.known_sites() if one.urls] == [
        KnownSite(A, 5, 1, health),
        KnownSite("a.example:8080", 5, 0, NEW_SITE),
        KnownSite(B, 1, 0, NEW_SITE),
    ]
    counted = [store.waiting_urls([A, B, "unknown:80"], now=NOW + after_s) for after_s in (-1, 0, 60)]
    assert [one[A] for one in counted] == [WaitingUrls(1, 0), WaitingUrls(1, 1), WaitingUrls(1, 2)]
    assert (counted[0][B], counted[0]["unknown:80"]) == (WaitingUrls(1, 0), WaitingUrls(0, 0))
