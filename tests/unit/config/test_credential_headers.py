"""Which headers carry credentials, and which hosts get them."""

from __future__ import annotations

import pytest

from crawlspace.config.access import CredentialHosts, is_credential
from crawlspace.urls import parse

HEADERS = [
    # name, whether it is taken for one that carries credentials
    ("Authorization", True),
    ("proxy-authorization", True),
    ("Cookie", True),
    ("X-Api-Key", True),
    ("apikey", True),
    ("X-Auth-Token", True),
    ("PRIVATE-TOKEN", True),
    ("X-Session-Id", True),
    ("X-Amz-Signature", True),
    ("Accept", False),
    ("Accept-Language", False),
    ("User-Agent", False),
    ("From", False),
    ("X-Crawler", False),
]


@pytest.mark.parametrize(("name", "carries"), HEADERS)
def test_headers_that_carry_credentials(name: str, *, carries: bool) -> None:
    assert is_credential(name) is carries


STARTS = ["https://wiki.example.com/", "http://plain.example.com:8080/x", "https://both.example.com/", "http://both.example.com/"]
HOSTS = [
    # patterns,                    URL,                                     whether credentials are sent with it
    ([],                          "https://wiki.example.com/a",            True),
    ([],                          "https://WIKI.example.com:8443/",        True),
    ([],                          "https://wiki.example.com/robots.txt",   True),
    ([],                          "http://wiki.example.com/a",             False),
    ([],                          "http://plain.example.com/",             True),
    ([],                          "https://plain.example.com/",            True),
    ([],                          "http://both.example.com/",              True),
    ([],                          "https://evil.example/",                 False),
    ([],                          "https://example.com/",                  False),
    ([],                          "https://www.wiki.example.com/",         False),
    ([],                          "https://[",                             False),
    (["*.wiki.example.com"],      "https://www.wiki.example.com/",         True),
    (["*.wiki.example.com"],      "https://wiki.example.com/",             False),
    (["wiki.example.com:443"],    "https://wiki.example.com/",             True),
    (["wiki.example.com:443"],    "http://wiki.example.com/",              False),
    (["*"],                       "http://evil.example/",                  True),
]  # fmt: skip


@pytest.mark.parametrize(("patterns", "url", "sent"), HOSTS)
def test_hosts_that_get_them(patterns: list[str], url: str, *, sent: bool) -> None:
    assert CredentialHosts(patterns, [parse(start) for start in STARTS]).allow(url) is sent


WARNINGS = [
    # patterns, headers, what the warning says
    ([], ["Accept"], None),
    ([], ["Authorization", "X-Api-Key"], "has Authorization and X-Api-Key: sent to the hosts of the start URLs only (both.example.com, plain.example.com, wiki.example.com), "),
    (["wiki.example.com"], ["Authorization"], None),
    (["*"], ["Authorization"], "lets every host have it"),
    (["*"], ["Accept"], None),
    (["*.com"], ["Authorization"], "lets hosts that anybody can register have it ('*.com')"),
    (["wiki.example.com", "*example.com:443"], ["Authorization"], "can register have it ('*example.com:443')"),
    (["*.example.com:443"], ["Authorization"], None),
]  # fmt: skip


@pytest.mark.parametrize(("patterns", "headers", "words"), WARNINGS)
def test_the_findings_of_lint(patterns: list[str], headers: list[str], words: str | None) -> None:
    warning = CredentialHosts(patterns, [parse(start) for start in STARTS]).warning(headers)
    assert (warning is None) is (words is None)
    assert words is None or words in str(warning)
