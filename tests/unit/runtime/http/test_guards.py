"""Whose rules an address must pass, where several crawls share the one resolver of a process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Any

import pytest

from crawlspace.decision import Decision, Reason
from crawlspace.runtime.components.addon_rules import SharedResolver
from crawlspace.runtime.http.resolver import Guard, GuardedResolver, HostNames
from tests.unit.runtime.http.look_ups import answer_look_ups
from tests.unit.runtime.http.test_resolver import Reactor, Receiver

ADDRESS, PRIVATE, ADMITTED = Reason.ADDRESS, Reason.PRIVATE_ADDRESS, Reason.ADMITTED
HOST, FIRST, SECOND = "www.example.com", "192.0.2.1", "192.0.2.2"


def names() -> HostNames:
    reactor: Any = Reactor()
    return HostNames(reactor, cache_size=10, timeout_s=5)


def guard_that_says(reason: Reason) -> Guard:
    return lambda host, port, address: Decision(reason, None, ())


def guard_against(address: str) -> Guard:
    return lambda _host, _port, asked: Decision(ADDRESS if asked == address else ADMITTED, None, ())


def raise_no_such_host(host: str) -> list[str]:
    raise socket.gaierror(socket.EAI_NONAME, "no such host")


TOGETHER = [
    # what the rules of each say        with collections  with spiders that have the add-on
    ([],                                ADMITTED,         ADMITTED),
    ([ADMITTED],                        ADMITTED,         ADMITTED),
    ([PRIVATE],                         PRIVATE,          PRIVATE),
    ([PRIVATE, ADMITTED],               PRIVATE,          ADMITTED),
    ([ADMITTED, PRIVATE],               PRIVATE,          ADMITTED),
    ([ADMITTED, ADDRESS],               ADDRESS,          ADDRESS),
    ([ADDRESS, ADMITTED],               ADDRESS,          ADDRESS),
    ([ADDRESS, PRIVATE],                ADDRESS,          ADDRESS),
]  # fmt: skip


@pytest.mark.parametrize(("reported", "of_collections", "of_spiders"), TOGETHER)
def test_where_the_client_is_not_known(reported: list[Reason], of_collections: Reason, of_spiders: Reason) -> None:
    for resolver, holds in ((GuardedResolver(names()), of_collections), (SharedResolver(names()), of_spiders)):
        guards = [guard_that_says(reason) for reason in reported]
        for guard in guards:
            resolver.add(guard)
        assert resolver.decide(HOST, 80, FIRST).reason is holds
        for guard in guards:
            resolver.remove(guard)
        assert resolver.decide(HOST, 80, FIRST).reason is ADMITTED


class TwoCrawls:
    """One may not connect to the first address of the host, the other not to the second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: type[GuardedResolver], addresses: list[str]) -> None:
        answer_look_ups(monkeypatch, lambda _: addresses)
        self.of_process = kind(names())
        guards = [guard_against(FIRST), guard_against(SECOND)]
        for guard in guards:
            self.of_process.add(guard)
        self.crawls = [self.of_process.for_one(guard) for guard in guards]

    def ask(self) -> list[str]:
        """What the reactor's resolver answers, as to a client that knows no other."""
        receiver = Receiver()
        self.of_process.resolveHostName(receiver, HOST, 80)
        assert receiver.complete
        return receiver.found

    def ask_for(self, number: int, *, is_proxy: bool = False) -> list[str]:
        """What the resolver of a crawl answers, to its download handler: the same the second time, from memory."""
        crawl = self.crawls[number]
        found = asyncio.run(crawl.addresses(HOST, 80, is_proxy=is_proxy))
        assert crawl.cached(HOST, 80, is_proxy=is_proxy) == crawl.cached(HOST, 80, is_proxy=is_proxy) == found
        return [address for _, address in found]


@pytest.mark.parametrize("kind", [GuardedResolver, SharedResolver])
def test_where_it_is_known_its_rules_hold_and_no_others(monkeypatch: pytest.MonkeyPatch, kind: type[GuardedResolver]) -> None:
    two = TwoCrawls(monkeypatch, kind, [FIRST, SECOND])
    assert two.ask_for(0) == [SECOND]
    assert two.ask_for(1) == [FIRST]
    assert two.ask() == []


def test_the_crawl_whose_rules_refuse_gets_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    two = TwoCrawls(monkeypatch, GuardedResolver, [FIRST])
    assert (two.ask_for(0), two.ask_for(1)) == ([], [FIRST])
    reasons = [crawl.why_refused(HOST, 80) for crawl in two.crawls]
    assert [reason and reason.reason for reason in reasons] == [ADDRESS, None]


def test_a_crawl_gets_the_answer_of_a_handler_that_does_not_name_its_crawl(monkeypatch: pytest.MonkeyPatch) -> None:
    two = TwoCrawls(monkeypatch, GuardedResolver, [FIRST])
    assert two.ask() == []
    reasons = [crawl.why_refused(HOST, 80) for crawl in two.crawls]
    assert [reason and reason.reason for reason in reasons] == [ADDRESS, ADDRESS]


def test_an_unknown_host_is_known_to_every_crawl(monkeypatch: pytest.MonkeyPatch) -> None:
    two = TwoCrawls(monkeypatch, GuardedResolver, [])
    answer_look_ups(monkeypatch, raise_no_such_host)
    assert two.ask() == []
    assert [crawl.does_not_exist(HOST) for crawl in two.crawls] == [True, True]


def test_a_proxy_may_have_any_address_and_pages_on_its_host_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    two = TwoCrawls(monkeypatch, GuardedResolver, [FIRST])
    assert two.ask_for(0, is_proxy=True) == [FIRST]
    kept = Kept()
    two.crawls[0].look_ups.keep(kept, now=1)
    assert (kept, two.ask_for(0)) == ({}, [])
    two.crawls[0].look_ups.keep(kept, now=1)
    assert list(kept) == [f"addresses:{HOST}"]


def test_a_proxy_of_the_environment_is_checked_as_a_page_where_the_crawl_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://{HOST}:3128")
    two = TwoCrawls(monkeypatch, GuardedResolver, [FIRST])
    assert (two.ask_for(0), two.ask()) == ([], [FIRST])


class Kept(dict[str, str]):
    """Meta entries of a store."""

    def get_meta(self, name: str) -> str | None:
        return self.get(name)

    def get_metas(self, names: Sequence[str]) -> list[str | None]:
        return [self.get(name) for name in names]

    def set_meta(self, name: str, value: str) -> None:
        self[name] = value

    def replace_meta(self, name: str, before: str | None, after: str) -> bool:
        raise NotImplementedError

    def claim(self, name: str, *, seconds: int) -> bool:
        return True

    def end_claim(self, name: str) -> None: ...


def test_an_address_that_was_admitted_is_checked_by_the_rules_of_a_crawl_that_began_since() -> None:
    resolver, guard = GuardedResolver(names()), guard_against(FIRST)
    assert resolver.cached(FIRST, 80) == [(socket.AF_INET, FIRST)]
    resolver.add(guard)
    assert resolver.cached(FIRST, 80) == []
    resolver.remove(guard)
    assert resolver.cached(FIRST, 80) == [(socket.AF_INET, FIRST)]
