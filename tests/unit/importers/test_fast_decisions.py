"""A collection of FAST's decides about URLs as FAST did: through the files as they are written, read by a crawl."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.crawl.startup import build_space
from crawlspace.importers.fast.rules import pattern_of
from tests.unit.importers.fast_imports import CORPUS, imported
from tests.unit.importers.imports import admitted, collection, findings

# file of the corpus -> URLs that FAST crawls, and that it doesn't
DECISIONS = {
    "contoso": (
        [
            "http://www.contoso.com/",
            "http://www.contoso.com:8080/a",
            "https://www.contoso.com/a",
            "http://WWW.Contoso.com/a",
            "http://a.b.contoso.com/",
            "http://www.contoso.com/Private/",
            "https://www.contoso.com/private/",
            "http://www.contoso.com/print",
            "http://www.contoso.com/a.bak?b",
            "http://www.contoso.com/?sid=x",
            "http://www.contoso.com/draft?v=1",
            "http://www.contoso.com/Draft?v=12",
            "http://www.contoso.com/Draft",
        ],
        [
            "http://contoso.com/",
            "http://www.contoso.com.evil.example/",
            "http://www.fabrikam.com/",
            "http://test.contoso.com/",
            "http://TEST.contoso.com/",
            "http://old-site.contoso.com/",
            "http://www.contoso.com/private/start.html",
            "http://www.contoso.com/print/a",
            "http://www.contoso.com/a.bak",
            "http://www.contoso.com/?sid=12",
            "http://www.contoso.com/?a=b&sid=1",
            "http://www.contoso.com/Draft?v=1",
            "http://WWW.contoso.com/Draft?v=1",
        ],
    ),
    "regexps": (
        [
            "http://www.contoso.com/",
            "http://www.a.b.com/x",
            "http://WWW.CONTOSO.COM/",
            "http://intranet.contoso.local/",
            "http://www.contoso.com/a.draft?b",
            "http://www.contoso.com/calendar/12/",
            "http://www.contoso.com/x/calendar/2024/",
        ],
        [
            "http://contoso.com/",
            "http://www.contoso.org/",
            "http://www.contoso.com/a.draft",
            "http://www.contoso.com/a/b.tmp",
            "https://www.contoso.com/calendar/2024/1",
            "http://test.www.contoso.com/",
            "http://dev12.www.contoso.com/",
        ],
    ),
    "uris": (
        ["http://www.contoso.com/docs/a", "http://WWW.contoso.com/docs/", "https://www.contoso.com:8443/help/b"],
        [
            "http://www.contoso.com/",
            "https://www.contoso.com/docs/a",
            "http://www.contoso.com/docs/old/a",
            "https://www.contoso.com/help/",
            "http://evil.example/http://www.contoso.com/docs/",
        ],
    ),
    "mixed": (
        [
            "http://www.contoso.com/",
            "http://www.contoso.com/a.html",
            "https://www.contoso.com/x/News/1",
            "http://shop.contoso.com/a",
            "http://SHOP.contoso.com/a",
        ],
        [
            "http://www.contoso.com/a",
            "http://www.contoso.com/x/news/1",
            "http://www.fabrikam.com/a.html",
            "http://shop.fabrikam.com/",
            "http://contoso.com/a.html",
            "http://www.contoso.com/a.HTML",
        ],
    ),
    "open": (
        ["http://www.contoso.com/", "https://anything.example.org/", "http://www.contoso.com/one.html?x"],
        [
            "http://a.com.example/",
            "http://my-tracker.example.org/",
            "http://ads.example.com/a",
            "http://logs.example.com/",
            "http://www.contoso.com/one.html",
        ],
    ),
    "limits": (
        ["https://www.contoso.com/a/x/a/", "https://www.contoso.com/a.jpg", "https://www.contoso.com/list?b=2&a=2"],
        [
            "http://www.contoso.com/",
            "https://www.contoso.com/a.pdf",
            "https://www.contoso.com/a/a/a/",
            "https://www.contoso.com/list?a=1&b=2",
            "https://www.contoso.com/list?b=2&a=1",
            "https://www.fabrikam.com/",
        ],
    ),
    "addresses": (["http://www.contoso.com/", "http://anything.example/"], []),
    "patterns_and_addresses": (["http://www.contoso.com/", "http://anything.example/"], []),
    "names_and_addresses": (["http://www.contoso.com/", "http://anything.example/"], ["http://test.contoso.com/"]),
}  # fmt: skip
# address of a host -> whether it is connected to
ADDRESSES = [("10.1.3.4", True), ("10.1.2.4", False), ("10.2.0.1", False), ("2001:db8::7", True), ("93.184.216.34", False)]
# of the file names_and_addresses: host, address -> whether it is connected to
NAMES_AND_ADDRESSES = [
    ("www.contoso.com", "10.1.3.4", True),
    ("www.contoso.com", "203.0.113.7", True),
    ("www.contoso.com", "10.2.0.1", True),
    ("www.contoso.com", "93.184.216.34", False),
    ("anything.example", "10.1.3.4", True),
    ("anything.example", "203.0.113.7", False),
    ("anything.example", "2001:db8::7", False),
    ("www.contoso.com", "169.254.169.254", False),
]
# the same of the file patterns_and_addresses
PATTERNS_AND_ADDRESSES = [
    ("www.contoso.com", "93.184.216.34", True),
    ("www.a.b.com", "93.184.216.34", True),
    ("shop.contoso.com", "93.184.216.34", False),
    ("shop.fabrikam.example", "93.184.216.34", True),
    ("shop.contoso.com", "10.1.3.4", True),
    ("shop.fabrikam.example", "10.2.0.1", False),  # anybody can have such a name, so that it opens no private network
]
# what lint finds in a collection, and is as the file of FAST has it
FINDINGS = {
    "addresses": ["no-domain-rules"],
    "contoso": ["unused-login"],
    "every_option": ["plain-login"],
    "open": ["no-final-forbid"],
    "patterns_and_addresses": ["hosts-of-anybody", "hosts-of-anybody"],
}


@pytest.mark.parametrize("name", DECISIONS)
def test_decisions_are_those_of_fast(name: str, tmp_path: Path) -> None:
    read = collection(name, tmp_path, imported(name))
    crawled, refused = DECISIONS[name]
    assert admitted(read, *crawled, *refused) == {**dict.fromkeys(crawled, True), **dict.fromkeys(refused, False)}


@pytest.mark.parametrize(("address", "allowed"), ADDRESSES)
def test_addresses_are_judged_as_by_fast(address: str, allowed: bool, tmp_path: Path) -> None:
    space = build_space(collection("addresses", tmp_path, imported("addresses")))
    assert space.at_connect("www.contoso.com", 80, address).admitted is allowed


@pytest.mark.parametrize(("host", "address", "allowed"), NAMES_AND_ADDRESSES)
def test_hosts_are_crawled_by_name_or_by_address(host: str, address: str, allowed: bool, tmp_path: Path) -> None:
    name = "names_and_addresses"
    space = build_space(collection(name, tmp_path, imported(name)))
    assert space.at_connect(host, 80, address).admitted is allowed


@pytest.mark.parametrize(("host", "address", "allowed"), PATTERNS_AND_ADDRESSES)
def test_hosts_are_crawled_by_pattern_or_by_address(host: str, address: str, allowed: bool, tmp_path: Path) -> None:
    name = "patterns_and_addresses"
    space = build_space(collection(name, tmp_path, imported(name)))
    assert space.at_connect(host, 80, address).admitted is allowed


EXPRESSIONS = [
    # expression, the pattern for the same hosts
    (r"^www\..*\.com$", "www.*.com"),
    (r"www\..*\.com", "*www.*.com*"),
    (r"\.contoso\.com$", "*.contoso.com"),
    (r"(?i)^Docs-2\.", "docs-2.*"),
    (r"^a.*.*b$", "a*b"),
    (r"^a\-b$", "a-b"),
    (r"^www.contoso.com$", ""),
    (r"^a\.*b$", ""),
    (r"^wiki\d+\.", ""),
    (r"^(a|b)\.", ""),
    (r"a|b", ""),
    (r".*", ""),
    (r"\.", ""),
    ("", ""),
]


@pytest.mark.parametrize(("expression", "pattern"), EXPRESSIONS)
def test_expressions_that_a_domain_rule_can_have(expression: str, pattern: str) -> None:
    assert pattern_of(expression) == pattern


def test_hosts_that_lists_name_may_have_private_addresses(tmp_path: Path) -> None:
    """Also where rules.xml decides about the hosts."""
    space = build_space(collection("regexps", tmp_path, imported("regexps")))
    assert space.at_connect("intranet.contoso.local", 80, "10.0.0.7").admitted
    assert not space.at_connect("www.elsewhere.com", 80, "10.0.0.7").admitted


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.xml")), ids=lambda path: path.stem)
def test_what_is_written_passes_lint(path: Path, tmp_path: Path) -> None:
    reported = findings(path.stem, tmp_path, imported(path.stem))
    assert [finding.code for finding in reported] == FINDINGS.get(path.stem, []), [*map(str, reported)]
