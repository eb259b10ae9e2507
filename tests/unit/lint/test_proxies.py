"""What lint finds about the proxies of a collection and its sites."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.lint.linted import RULES, START, found_in, reviewed, store_of

URL = "http://proxy.example.com:3128"
SITE = "CRAWLSPACE_SITES = {'www.example.com': {'proxy': %r}}\n"
LITERAL, UNUSED = "settings.py:1:1 error literal-secret", "settings.py:1:1 warning unused-no-proxy"
ADDRESSES = RULES + "forbid address 0.0.0.0/0\nforbid address ::/0\n"
FINDINGS: list[tuple[str, str, list[str]]] = [
    # settings, rules, findings
    (f"CRAWLSPACE_PROXY = {URL!r}\n",                                                 RULES,     []),
    ("CRAWLSPACE_PROXY = 'env:NO_SUCH_VARIABLE'\n",                                   RULES,     []),
    ("CRAWLSPACE_PROXY = 'http://a:x@proxy.example.com:3128'\n",                      RULES,     [LITERAL]),
    (f"CRAWLSPACE_PROXY = {{'url': {URL!r}, 'user': 'a', 'password': 'x'}}\n",        RULES,     [LITERAL]),
    (SITE % "http://a:x@proxy.example.com:3128",                                      RULES,     [LITERAL]),
    (SITE % URL,                                                                      ADDRESSES, ["crawl.rules:3:16 warning addresses-with-proxy"]),
    (SITE % "direct",                                                                 ADDRESSES, []),
    (f"CRAWLSPACE_PROXY = {URL!r}\nHTTPPROXY_ENABLED = False\n",                      ADDRESSES, ["settings.py:1:1 warning proxies-off"]),
    ("CRAWLSPACE_NO_PROXY = ['www.example.com']\n",                                   RULES,     [UNUSED]),
    (f"CRAWLSPACE_NO_PROXY = 'wwww.example.com'\nCRAWLSPACE_PROXY = {URL!r}\n",       RULES,     [UNUSED]),
    (f"CRAWLSPACE_NO_PROXY = 'example.com, allowed.net'\nCRAWLSPACE_PROXY = {URL!r}\n", "allow domain allowed.net\n" + RULES, []),
    ("CRAWLSPACE_PROXY = 'socks6://proxy:1080'\n",                                    RULES,     ["settings.py:1:1 error setting"]),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "rules", "findings"), FINDINGS)
def test_findings(tmp_path: Path, settings: str, rules: str, findings: list[str]) -> None:
    assert found_in(tmp_path, {"start_urls.txt": START, "crawl.rules": rules, "settings.py": settings}) == findings


def test_the_warning_names_the_sites(tmp_path: Path) -> None:
    files = {"start_urls.txt": START, "crawl.rules": ADDRESSES, "settings.py": SITE % URL}
    [finding] = reviewed(tmp_path, "demo", files)[0]
    assert finding.message.startswith("address rules are not applied to www.example.com: requests go through a proxy")


def test_a_known_site_is_matched(tmp_path: Path) -> None:
    files = {
        "start_urls.txt": START,
        "crawl.rules": RULES,
        "settings.py": f"CRAWLSPACE_PROXY = {URL!r}\nCRAWLSPACE_NO_PROXY = '*.other.net'\n",
    }
    of_a_rule = "crawl.rules:1:14 warning no-known-url"
    assert found_in(tmp_path, files, store=store_of({"http://a.other.net/": 200})) == [of_a_rule]
    assert found_in(tmp_path, files, store=store_of({})) == ["settings.py:2:1 warning unused-no-proxy"]
