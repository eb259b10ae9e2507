"""Which sites are not asked because their log-in was refused, for several processes and runs."""

from __future__ import annotations

import pytest

from crawlspace.access.login_states import (
    REFUSED,
    Logins,
    forget_refused,
    places_of,
    refused_logins,
    waiting_logins,
    why_urls_wait,
)
from crawlspace.clock import FakeClock
from crawlspace.config.sites import SiteTable, read_sites
from crawlspace.errors import StoreAway
from tests.contract.memory.store import MemoryStore

PATTERN = "*.example.com"
WIKI, SHOP, OTHER = "wiki.example.com:443", "shop.example.com:8443", "www.example.org:443"


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", "one")


def sites(*, plain: bool = False) -> SiteTable:
    login = {"type": "basic", "user": "crawler", "password": "env:WIKI_PASSWORD"}
    access = {"login": login, **({"allow_plain_http": True} if plain else {})}
    settings = {"DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8, "CRAWLSPACE_SITES": {PATTERN: access}}
    return read_sites(settings)


def logins(store: MemoryStore, clock: FakeClock | None = None) -> Logins:
    return Logins(sites(), store, clock or FakeClock())


@pytest.mark.parametrize(
    ("site", "scheme", "plain", "sent"),
    [
        (WIKI, "https", False, True),
        (SHOP, "https", False, True),
        (WIKI, "http", False, False),
        (WIKI, "http", True, True),
        (OTHER, "https", True, False),
    ],
)
def test_who_gets_it(site: str, scheme: str, plain: bool, sent: bool) -> None:
    found = Logins(sites(plain=plain), MemoryStore(), FakeClock()).headers(site, scheme=scheme)
    assert bool(found) is sent


def test_a_refused_log_in_pauses_all_sites_of_its_entry() -> None:
    one = logins(MemoryStore())
    one.note_refused(WIKI, "401")
    assert [one.is_paused(site) for site in (WIKI, SHOP, OTHER)] == [True, True, False]


def test_others_learn_of_it_and_of_its_end() -> None:
    store, clock = MemoryStore(), FakeClock()
    one, other = logins(store, clock), logins(store, clock)
    assert not other.is_paused(WIKI)
    one.note_refused(WIKI, "401")
    other.recheck()
    assert other.is_paused(WIKI)
    assert logins(store).is_paused(WIKI)
    assert forget_refused(store, PATTERN)
    assert not forget_refused(store, PATTERN)
    assert (one.recheck(), other.recheck()) == ({WIKI}, {WIKI})
    assert not other.is_paused(WIKI)


def test_another_password_is_tried_and_the_note_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    logins(store).note_refused(WIKI, "401")
    monkeypatch.setenv("WIKI_PASSWORD", "another")
    again = logins(store)
    assert not again.is_paused(WIKI)
    assert refused_logins(store) == {}
    again.note_refused(WIKI, "401")
    assert logins(store).is_paused(WIKI)


def test_it_is_logged_and_noted_once(caplog: pytest.LogCaptureFixture) -> None:
    store, clock = MemoryStore(), FakeClock()
    one = logins(store, clock)
    one.note_refused(WIKI, "the first")
    clock.advance(10)
    one.note_refused(SHOP, "the second")
    assert caplog.text.count("is refused by wiki.example.com:443 (the first)") == 1
    assert "the second" not in caplog.text
    assert [(one.site, one.why) for one in refused_logins(store).values()] == [(WIKI, "the first")]
    assert "one" not in {*(store.get_meta(REFUSED) or "").split('"')}


def test_why_the_urls_of_an_entry_wait() -> None:
    store, clock = MemoryStore(), FakeClock()
    one = logins(store, clock)

    def why() -> str:
        return why_urls_wait(store, PATTERN, now=clock.now())

    assert why() == ""
    one.note_failure(WIKI, "it answers 503")
    since = int(clock.now())
    clock.advance(10)
    one.note_failure(SHOP, "no answer")
    assert why().startswith("nobody could log in by CRAWLSPACE_SITES['*.example.com'] (no answer): the URLs of its sites wait")
    assert waiting_logins(store)[PATTERN].since == since
    one.note_success(WIKI)
    assert why() == ""
    one.note_failure(WIKI, "no answer")
    one.note_refused(WIKI, "401")
    assert "is refused by wiki.example.com:443 (401)" in why()
    assert waiting_logins(store) == {}
    assert why_urls_wait(store, "www.example.org", now=clock.now()) == ""


class AwayStore(MemoryStore):
    is_away = False

    def get_meta(self, name: str) -> str | None:
        if self.is_away:
            raise StoreAway("Redis cannot be reached")
        return super().get_meta(name)


def test_a_server_that_is_away_is_told_when_it_is_back() -> None:
    store = AwayStore()
    one = logins(store)
    store.is_away = True
    one.note_refused(WIKI, "401")
    assert one.recheck() == set()
    assert one.is_paused(WIKI)
    store.is_away = False
    assert refused_logins(store) == {}
    assert one.recheck() == set()
    assert list(refused_logins(store)) == [PATTERN]
    assert one.is_paused(WIKI)


@pytest.mark.parametrize("written", ["", "{", "[]", '{"a": 1}'])
def test_what_cannot_be_read_refuses_nothing(written: str) -> None:
    store = MemoryStore()
    store.set_meta(REFUSED, written)
    assert not logins(store).is_paused(WIKI)


def test_what_another_worker_has_noted_is_seen_before_a_log_in(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    one, other = logins(store), logins(store)
    one.note_refused(WIKI, "it answers 401")
    assert not other.is_paused(SHOP)
    caplog.clear()
    assert other.is_refused_by_now(SHOP)
    assert other.is_refused_by_now(SHOP)
    assert caplog.text.count("is refused by") == 1
    forget_refused(store, PATTERN)
    assert other.recheck() == {SHOP}


PLACES = [
    # the entry, the address of its log-in, its hosts, a place, whether the log-in may lead there
    ("wiki.example.com", "https://wiki.example.com/login", [], "wiki.example.com:443", True),
    ("wiki.example.com", "https://wiki.example.com/login", [], "wiki.example.com:9999", True),
    ("wiki.example.com", "https://wiki.example.com/login", [], "www.example.com:443", False),
    ("wiki.example.com:8443", "https://wiki.example.com:8443/login", [], "wiki.example.com:8443", True),
    ("wiki.example.com:8443", "https://wiki.example.com:8443/login", [], "wiki.example.com:443", False),
    ("wiki.example.com:8443", "https://wiki.example.com:8443/login", [], "wiki.example.com:9999", False),
    ("wiki.example.com:443", "https://wiki.example.com/login", [], "WIKI.example.com:443", True),
    ("wiki.example.com:443", "https://wiki.example.com/login", [], "wiki.example.com:80", True),
    ("wiki.example.com:443", "https://wiki.example.com/login", [], "wiki.example.com:8443", False),
    ("*.example.com:8443", "https://wiki.example.com:8443/login", [], "shop.example.com:8443", True),
    ("*.example.com:8443", "https://wiki.example.com:8443/login", [], "shop.example.com:443", False),
    ("wiki.example.com", "https://sso.example.org/login", [], "sso.example.org:443", True),
    ("wiki.example.com", "https://sso.example.org/login", [], "sso.example.org:8443", False),
    ("wiki.example.com", "https://wiki.example.com/login", ["sso.example.org"], "sso.example.org:8443", True),
    ("wiki.example.com", "https://wiki.example.com/login", ["sso.example.org:8443"], "sso.example.org:8443", True),
    ("wiki.example.com", "https://wiki.example.com/login", ["sso.example.org:8443"], "sso.example.org:443", False),
    ("[::1]:8443", "https://[::1]:8443/login", [], "[::1]:8443", True),
    ("[::1]:8443", "https://[::1]:8443/login", [], "[::1]:443", False),
]


@pytest.mark.parametrize(("pattern", "url", "named", "place", "may_lead"), PLACES)
def test_where_a_log_in_may_lead_to(pattern: str, url: str, named: list[str], place: str, may_lead: bool) -> None:
    login = {"type": "form", "url": url, "fields": {"user": "a", "password": "env:WIKI_PASSWORD"}, "hosts": named}
    settings = {
        "DOWNLOAD_DELAY": 0,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "CRAWLSPACE_SITES": {pattern: {"login": login}, "other.example.com": {"delay": 1}},
    }
    table = read_sites(settings)
    (access,) = table.accesses
    host, _, port = place.rpartition(":")
    assert places_of(table, access)(host, int(port)) is may_lead


def test_failures_are_counted() -> None:
    """For the metrics of the crawl; a log-in that is refused already is not tried, so it does not count again."""
    one = logins(MemoryStore())
    one.note_failure(WIKI, "no answer")
    one.note_refused(WIKI, "401")
    one.note_refused(SHOP, "401")
    one.note_failure(OTHER, "it has no log-in")
    assert one.failures == 2
