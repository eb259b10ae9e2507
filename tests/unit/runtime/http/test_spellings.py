"""One host in its many spellings: a client asks for it as it stands in a link, and rules have it in one form."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.decision import Decision, Reason
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.runtime.components.addon_rules import AddonRules
from crawlspace.runtime.http import resolver as module
from crawlspace.runtime.http.resolver import GuardedResolver, HostNames, as_in_urls
from crawlspace.urls import MalformedUrl, parse
from tests.unit.runtime.http.look_ups import answer_look_ups
from tests.unit.runtime.http.test_resolver import Reactor, Receiver

HERE = "127.0.0.1"
SPELLINGS = [
    # as a client asks for it      as URLs and rules have it, None for what is no host
    ("www.example.com",            "www.example.com"),
    ("my_host-1.example",          "my_host-1.example"),
    ("WWW.Example.COM",            "www.example.com"),
    ("www.example.com.",           "www.example.com"),
    ("www.example.com..",          None),
    ("www..example.com",           None),
    (".example.com",               None),
    ("",                           None),
    (HERE,                         HERE),
    ("127.1",                      HERE),
    ("0x7f.1",                     HERE),
    ("0X7F.0x1",                   HERE),
    ("0177.0.0.01",                HERE),
    ("2130706433",                 HERE),
    ("0x7f000001",                 HERE),
    ("017700000001",               HERE),
    ("127.0.0.1.",                 HERE),
    ("127.0.0%2e1",                HERE),
    ("loc%61lhost",                "localhost"),
    ("1.2.3.4.5",                  None),
    ("256.0.0.1",                  None),
    ("::1",                        "::1"),
    ("[::1]",                      "::1"),
    ("0:0:0:0:0:0:0:1",            "::1"),
    ("2001:DB8::0:1",              "2001:db8::1"),
    ("::ffff:127.0.0.1",           "::ffff:7f00:1"),
    ("[::FFFF:7F00:1]",            "::ffff:7f00:1"),
    ("::1%lo",                     None),
    ("bücher.example",             "xn--bcher-kva.example"),
    ("xn--bcher-kva.example",      "xn--bcher-kva.example"),
    ("straße.example",             "xn--strae-oqa.example"),
    ("🄰.example",                 "xn--617h.example"),
    ("🯱🯲🯷.0.0.🯱",                  "xn--ub0icp.0.0.xn--ub0i"),
    ("🯱🯲🯷.0.0.1",                  None),
    ("user@www.example.com",       None),
    ("www.example.com:80",         None),
    ("www.example.com/a",          None),
    ("127.0.0.1\\a",               None),
    ("127.0.0.1?",                 None),
    ("127.0.0.1#",                 None),
    ("local\thost",                None),
    ("www.example.com ",           None),
    ("www.example.com\n",          None),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "form"), SPELLINGS)
def test_the_form_in_urls(asked: str, form: str | None) -> None:
    assert as_in_urls(asked) == form
    assert form is None or as_in_urls(form) == form


@given(st.from_regex(module._PLAIN, fullmatch=True))
def test_what_looks_plain_is_in_that_form(name: str) -> None:
    try:
        assert parse(f"http://{name}/").host == as_in_urls(name) == name
    except MalformedUrl:
        assert "xn--" in name


@given(st.text("01279xaF.:%[]-_eEß。１ſ🯱\\@/ "))
def test_a_host_is_the_one_of_its_url_or_none(host: str) -> None:
    form = as_in_urls(host)
    if form is not None and host.isascii():
        assert form == parse(f"http://[{host.strip('[]')}]/" if ":" in host else f"http://{host}/").host.strip("[]")
    assert form is None or as_in_urls(form) == form


def resolver_that_finds(monkeypatch: pytest.MonkeyPatch, host: str) -> GuardedResolver:
    """One whose rules forbid every address; the host is the only one there is."""

    def look_up(asked: str) -> list[str]:
        if asked != host:
            raise socket.gaierror(socket.EAI_NONAME, "no such host")
        return [HERE]

    answer_look_ups(monkeypatch, look_up)
    reactor: Any = Reactor()
    resolver = GuardedResolver(HostNames(reactor, cache_size=10, timeout_s=5))
    resolver.add(lambda host, port, address: Decision(Reason.ADDRESS, None, ()))
    return resolver


SAME = [(asked, form) for asked, form in SPELLINGS if form is not None]


@pytest.mark.parametrize(("asked", "form"), SAME)
def test_why_a_host_was_refused_is_known_by_its_form_in_urls(monkeypatch: pytest.MonkeyPatch, asked: str, form: str) -> None:
    resolver = resolver_that_finds(monkeypatch, form)
    receiver = Receiver()
    resolver.resolveHostName(receiver, asked, 80)
    refused = resolver.why_refused(form, 80)
    assert (receiver.found, refused and refused.reason) == ([], Reason.ADDRESS)


@pytest.mark.parametrize(
    "proxy", ["http://proxy.example.:3128", "http://PROXY.example:3128", "http://me:word@proxy.example:3128/"]
)
@pytest.mark.parametrize("asked", ["proxy.example", "proxy.example.", "Proxy.Example"])
def test_a_proxy_of_the_environment_is_connected_to_however_it_is_spelt(
    monkeypatch: pytest.MonkeyPatch, proxy: str, asked: str
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    resolver = resolver_that_finds(monkeypatch, "proxy.example")
    receiver = Receiver()
    resolver.resolveHostName(receiver, asked, 3128)
    assert receiver.found == [HERE]


NOT_ASKED_FOR = [
    # a host that no request of the crawl was for; whether its connection is taken for another's, whom the rules don't hold
    ("mail.example",       True),
    ("127.0.0.1",          True),
    ("::1",                True),
    ("0x7f.1",             False),
    ("mail.example.",      False),
    ("Mail.example",       False),
    ("0:0:0:0:0:0:0:1",    False),
    ("::1%lo",             False),
    ("me@mail.example",    False),
    ("xn--617h.example",   False),
    ("🄰.example",         False),
]  # fmt: skip


@pytest.mark.parametrize(("host", "of_another"), NOT_ASKED_FOR)
def test_only_what_can_be_spelt_no_other_way_is_taken_for_anothers_connection(host: str, *, of_another: bool) -> None:
    nothing: Any = None
    space = CrawlSpace(parse_crawl_rules("forbid address 127.0.0.0/8\n", file="crawl.rules"), Limits(), [])
    assert AddonRules(space, nothing, nothing).at_connect(host, 80, HERE).admitted is of_another
