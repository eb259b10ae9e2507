"""A crawler of Exalead's decides about URLs as it did there: through the files as they are written, read by a crawl."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.crawl.startup import build_space
from crawlspace.rules.xml.model import RegexSyntax
from crawlspace.urls import parse
from tests.unit.importers.exalead_imports import imported, with_start
from tests.unit.importers.imports import collection, findings

LONG = "a" * 60
# file of the corpus -> URLs: "-" refused, else index or no index, follow or not, and the shift
DECISIONS = {
    "intranet": f"""
        i f 0 http://intranet.example.com/
        i f 0 http://www.intranet.example.com/
        i f 0 http://INTRANET.example.com/a
        i f 0 http://intranet.example.com/a/b?c=d
        i f 0 http://intranet.example.com/a/print/
        n f 0 http://intranet.example.com/print/a
        n f 0 http://intranet.example.com/PRINT/a
        i n 0 http://intranet.example.com/{LONG[:59]}
        i f 0 http://intranet.example.com/{LONG[:58]}
        n n 0 http://intranet.example.com/print/{LONG}
        -     https://intranet.example.com/
        -     http://intranet.example.com:8080/
        -     http://intranet.example.com.evil.example/
        -     http://sub.intranet.example.com/
        -     http://intranet.example.com/setup.exe
        -     http://intranet.example.com/A.ZIP
        i f 1 http://wiki.example.com/public/
        i f 1 http://wiki.example.com/public/Page?id=1
        i f 1 http://wiki.example.com/public/a?action=view
        -     http://wiki.example.com/public/../print/../public/../print/
        -     http://wiki.example.com/
        -     http://wiki.example.com/private/
        -     http://wiki.example.com/Public/
        -     http://wiki.example.com/public
        -     http://www.wiki.example.com/public/
        -     http://wiki.example.com/public/a?action=edit
        -     http://wiki.example.com/public/a?x=1&action=history
        -     http://wiki.example.com/public/a?action=EDIT
        i f 0 https://apps.example.com:8443/Docs
        i f 0 https://apps.example.com:8443/Docs/a
        i f 0 https://apps.example.com:8443/Docsets
        -     https://apps.example.com:8443/docs
        -     https://apps.example.com/Docs
        -     http://apps.example.com:8443/Docs
        -     http://partner.example.org/
        -     http://sub.partner.example.org/a
    """,
    "listings": """
        n f 0 http://www.homes.example/
        n f 0 http://www.homes.example/about
        n f 0 http://www.homes.example/rent_1.html
        n f 0 http://www.homes.example/x_ad.html
        n f 0 http://www.homes.example/Sale_1
        n f 0 http://www.homes.example/?SESSIONID=3
        i f 0 http://www.homes.example/sale_
        i f 0 http://www.homes.example/sale_1.html
        i f 0 http://www.homes.example/sale_1_ad.html
        i n 0 http://www.homes.example/offer/paris/1234567
        i n 0 http://www.homes.example/offer/a/b/0000000
        n f 0 http://www.homes.example/offer/paris/123456
        n f 0 http://www.homes.example/offer/paris/12345678
        n f 0 http://www.homes.example/offer/paris/1234567/
        n f 0 http://www.homes.example/offer/paris/123456a
        -     http://www.homes.example/?sessionid=3
        -     http://www.homes.example/sale_1?sessionid=
        -     https://www.homes.example/
        -     http://homes.example/
        i f 0 http://WWW.homes.example/sale_2
        -     http://www.homes.example.evil.example/
        -     http://www.homes.example:8080/sale_1
        n f 0 http://jobs.example/start.html
        i n -2 http://jobs.example/job/
        i n -2 http://jobs.example/job/1
        -     http://jobs.example/
        -     http://jobs.example/job
        -     http://jobs.example/jobs/1
        -     http://jobs.example/start.html?x=1
        -     http://jobs.example/START.html
        -     http://jobs.example/job/1?sessionid=3
        -     http://www.jobs.example/job/1
        -     https://jobs.example/job/1
        -     http://other.example/
    """,
    "mixed": """
        i f 0 http://foo.example/
        i f 0 http://foo.example/a?b
        i f 0 http://FOO.example/a
        i f 0 http://www.foo.example/x
        i f 0 http://www.foo.example/?x=1
        i f 0 http://foo.example/index.html
        n f 0 http://foo.example/?print=1
        i f 0 http://foo.example/?print=11
        i f 0 http://foo.example/?a=b&print=1
        -     https://foo.example/
        -     https://www.foo.example/
        -     http://a.foo.example/
        -     http://www.www.foo.example/
        -     http://foo.example:81/
        -     http://foo.example.org/
        -     http://fooxexample/
        i f 0 http://bar.example/a/index.html
        i f 0 http://bar.example/a/
        i f 0 http://bar.example/A/b
        i f 0 http://BAR.example/a/b
        i f 0 http://bar.example/a/b/c/
        i f 0 http://bar.example/a/ü
        n f 0 http://bar.example/a/x?PRINT=1
        -     http://bar.example/
        -     http://bar.example/a
        -     http://bar.example/b
        -     https://bar.example/a/
        -     http://www.bar.example/a/
        -     http://baz.example/
        -     http://baz.example/?print=1
        -     http://baz.example/http://foo.example/
    """,
    "groups": f"""
        i f 0 http://foo.com/
        i f 0 http://bar.foo.com/
        i f 0 http://FOO.com/a
        i f 0 http://foo.com:8080/
        i f 0 https://foo.com/
        -     http://barfoo.com/
        -     http://example.com/
        -     http://foo.com.evil.example/
        -     http://foo.com/a.gif
        -     http://foo.com/a.GIF
        -     http://foo.com/cgi-bin
        -     http://foo.com/cgi-bin/x
        -     http://foo.com/cgi-binary
        -     http://foo.com/CGI-BIN/x
        -     http://foo.com/cgi-bin/ok
        -     http://www.foo.com/cgi-bin/ok/
        -     https://www.foo.com/cgi-bin/ok
        i f 0 http://www.foo.com/cgi-bin/ok
        i f -1 http://foo.com/watch
        i f -1 http://foo.com/watch?v=1
        i f 0 http://foo.com/Watch
        i f 0 http://foo.com/a/watch
        i f 0 http://foo.com/q=foo
        i f 0 http://foo.com/?q=foo
        i f 0 http://foo.com/?q=bar
        n f 0 http://foo.com/?a=b&q=foo
        n f 0 http://foo.com/?q=foobar
        n f 0 http://foo.com/?xq=foo
        i n 0 http://foo.com/{LONG[:29]}
        i f 0 http://foo.com/{LONG[:28]}
        n n 0 http://foo.com/{LONG}?xq=foo
    """,
}
READ_AS_USUAL = ("listings", "mixed", "groups")
"""Files whose values mean the same as usual expressions, or are changed to what does (those of `listings` with backslashes)."""
# what lint finds in a collection, and is as the file has it
FINDINGS = {
    "intranet": [],
    "listings": [],
    "mixed": [],
    "groups": ["no-domain-rules"],
}
FIELDS = [
    ("intranet", "http://intranet.example.com/a", (("area", "home"), ("audience", "staff")), ""),
    ("intranet", "http://www.intranet.example.com/", (("area", "home"), ("audience", "staff")), ""),
    ("intranet", "http://wiki.example.com/public/", (("kind", "wiki"),), "Wiki"),
    ("intranet", "https://apps.example.com:8443/Docs", (), ""),
    ("listings", "http://www.homes.example/", (("portal", "Homes"),), ""),
    ("listings", "http://www.homes.example/about", (), ""),
    ("groups", "http://www.foo.com/", (("site", "main"),), ""),
]


def lines(name: str) -> list[str]:
    return [" ".join(line.split()) for line in DECISIONS[name].splitlines() if line.strip()]


def decided(name: str, base: Path, urls: list[str], syntax: RegexSyntax | None) -> list[str]:
    """The decisions about URLs, as they are written above."""
    read = collection(name, base, with_start(imported(name, syntax)))
    space = build_space(read)
    decisions = []
    for text in urls:
        url = parse(text)
        assert read.action_rules is not None
        actions = read.action_rules.evaluate(url)
        flags = f"{'i' if actions.index else 'n'} {'f' if actions.follow else 'n'} {actions.shift}"
        decisions.append(f"{flags if space.decide_url(url).admitted else '-'} {text}")
    return decisions


@pytest.mark.parametrize(
    ("name", "syntax"), [*((name, None) for name in DECISIONS), *((name, RegexSyntax.STANDARD) for name in READ_AS_USUAL)]
)
def test_urls_are_decided_as_there(tmp_path: Path, name: str, syntax: RegexSyntax | None) -> None:
    expected = lines(name)
    assert len(expected) >= 30
    assert decided(name, tmp_path, [line.split()[-1] for line in expected], syntax) == expected


@pytest.mark.parametrize(("name", "url", "fields", "label"), FIELDS)
def test_metas_are_fields(tmp_path: Path, name: str, url: str, fields: tuple[tuple[str, str], ...], label: str) -> None:
    read = collection(name, tmp_path, with_start(imported(name)))
    assert read.action_rules is not None
    actions = read.action_rules.evaluate(parse(url))
    assert (actions.fields, actions.label) == (fields, label)


@pytest.mark.parametrize("name", DECISIONS)
def test_lint_finds_no_mistake_in_what_is_written(tmp_path: Path, name: str) -> None:
    found = findings(name, tmp_path, with_start(imported(name)))
    assert [(one.level, one.code) for one in found] == [("warning", code) for code in FINDINGS[name]]


def test_start_urls_have_the_shift_of_their_root(tmp_path: Path) -> None:
    starts = collection("intranet", tmp_path, imported("intranet")).start_urls
    assert [(start.url.text, start.shift) for start in starts] == [
        ("http://intranet.example.com/", 0),
        ("http://wiki.example.com/public/", -1),
        ("https://apps.example.com:8443/Docs", 1),
    ]


def test_hosts_that_rules_accept_may_have_private_addresses() -> None:
    """crawl.rules names them where nothing else is accepted."""
    assert imported("listings").files["crawl.rules"].splitlines()[-3:] == [
        "# Hosts that rules of rules.xml accept: they may have private addresses.",
        "allow domain www.homes.example",
        "allow domain jobs.example",
    ]
