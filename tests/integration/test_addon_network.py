"""The rules alone in a plain Scrapy project, where they meet the network: addresses, retries, and what is said of start URLs."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from scrapy.settings import Settings

from crawlspace.addon import CrawlSpaceRules
from crawlspace.runtime.components.addon_settings import RULES_DIR
from tests.conftest import assert_same
from tests.integration.plain_project import SETTINGS, SHOP, PlainProject, fetched
from tests.sites import Site, page, redirect, sequence, serve, status

# --- addresses ----------------------------------------------------------------------------------------------------

RULES = """\
allow  address 127.0.0.2
forbid address 127.0.0.0/8
forbid address ::/0
"""

SPELLINGS = [
    # a host in a link; why the link leads nowhere
    ("127.0.0.1",            "address"),
    ("127.1",                "address"),
    ("0x7f.1",               "address"),
    ("0177.0.0.1",           "address"),
    ("2130706433",           "address"),
    ("0x7f000001",           "address"),
    ("017700000001",         "address"),
    ("127.0.0.1.",           "address"),
    ("１２７.0.0.1",          "address"),
    ("127。0。0。1",          "address"),
    ("localhost",            "address"),
    ("LocalHost",            "address"),
    ("LOCALHOST.",           "address"),
    ("localhost.",           "address"),
    ("localhost。",           "address"),
    ("ｌｏｃａｌｈｏｓｔ",      "address"),
    ("[::1]",                "address"),
    ("[0:0:0:0:0:0:0:1]",    "address"),
    ("[0000::0001]",         "address"),
    ("[::ffff:127.0.0.1]",   "address"),
    ("[::FFFF:7F00:1]",      "address"),
    ("user@127.0.0.1",       "credentials"),
    ("user:word@localhost.", "credentials"),
    ("[::1%25lo]",           "malformed"),
    ("127.0.0.1%20",         "malformed"),
]  # fmt: skip
LED = ["link", "redirect"]


@pytest.mark.parametrize("led", LED)
def test_no_spelling_of_a_host_leads_to_an_address_that_is_forbidden(plain: PlainProject, led: str) -> None:
    reasons = [reason for _, reason in SPELLINGS]
    refused = where_nothing_leads(plain, led, [host for host, _ in SPELLINGS])
    assert refused == {reason: reasons.count(reason) for reason in set(reasons)}


@pytest.mark.parametrize("led", LED)
def test_no_escapes_in_a_host_lead_there(plain: PlainProject, led: str) -> None:
    hosts = ["127.0.0%2E1", "%31%32%37.1", "loc%61lhost", "%6C%6F%63%61%6C%68%6F%73%74", "localhost%2E", "localhost%E3%80%82"]
    assert where_nothing_leads(plain, led, hosts) == {"address": len(hosts)}


def where_nothing_leads(plain: PlainProject, led: str, hosts: list[str]) -> dict[str, int]:
    """Crawl a page that leads to this machine in each of these spellings, see that none does, and return what was refused."""
    plain.write({"rules/crawl.rules": RULES, "settings.py": f"{SETTINGS}RETRY_ENABLED = False\n"})
    outside, inside = Site({}), Site({}, otherwise=page("Inside"))
    with serve(outside, host="127.0.0.2") as before, serve(inside) as behind, listen(behind.port) as connections:
        targets = [f"http://{host}:{behind.port}/{number}" for number, host in enumerate(hosts)]
        redirects = {f"/to/{number}": redirect(target.encode().decode("latin-1")) for number, target in enumerate(targets)}
        outside.update(redirects)
        outside["/"] = page("Outside", links=targets if led == "link" else list(redirects))
        plain.crawl(before.url("/")).succeeded()
        assert_same(fetched(before), ["/"] if led == "link" else ["/", *redirects])
        assert (behind.paths(), behind.connections, connections()) == ([], 0, 0)
    return plain.stats("crawlspace/refused/")


@contextmanager
def listen(port: int) -> Iterator[Callable[[], int]]:
    """Listen on ::1 too, where there is IPv6; what is yielded counts the connections."""
    with ExitStack() as sockets:
        try:
            listener = sockets.enter_context(socket.create_server(("::1", port), family=socket.AF_INET6))
        except OSError:
            yield lambda: 0
            return
        listener.setblocking(False)

        def count() -> int:
            number = 0
            with suppress(BlockingIOError):
                while True:
                    sockets.enter_context(listener.accept()[0])
                    number += 1
            return number

        yield count


UNREADABLE = [
    # the crawl.rules of a folder each, None where it can't be read; whether names are looked up by the resolver that asks the rules
    ({"shop": "forbid domain *\n"}, False),
    ({"shop": "forbid address 127.0.0.1\n"}, True),
    ({"shop": "forbid domain *\n", "news": None}, True),
    ({"shop": "forbid address 127.0.0.1\n", "news": None}, True),
    ({"shop": None}, True),
    ({}, False),
]


@pytest.mark.parametrize(("rules", "asks"), UNREADABLE)
def test_a_file_that_cannot_be_read_may_have_address_rules(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rules: dict[str, str | None], *, asks: bool
) -> None:
    for name, text in rules.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "crawl.rules").write_text(text or "", encoding="utf-8")
    read = Path.read_bytes

    def read_or_fail(path: Path) -> bytes:
        if path.parent.name in rules and rules[path.parent.name] is None:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", read_or_fail)
    settings = Settings({RULES_DIR: str(tmp_path)})
    CrawlSpaceRules.update_pre_crawler_settings(settings)
    assert ("SharedResolver" in settings["TWISTED_DNS_RESOLVER"]) is asks


# --- pages a host -------------------------------------------------------------------------------------------------

MOST = [
    # CRAWLSPACE_MAX_URLS_PER_HOST; how many of the ten links' targets are fetched
    (11, 0),
    (15, 4),
    (21, 10),
]


@pytest.mark.parametrize(("most", "targets"), MOST)
def test_a_redirect_after_a_retry_counts_and_the_retry_does_not(plain: PlainProject, most: int, targets: int) -> None:
    links = [f"/link/{number}" for number in range(10)]
    site = Site({"/": page("Home", links=links)}, otherwise=page("Target"))
    for number, link in enumerate(links):
        site[link] = sequence([status(503), redirect(f"/target/{number}")])
    plain.write({"rules/crawl.rules": "", "settings.py": f"{SETTINGS}CRAWLSPACE_MAX_URLS_PER_HOST = {most}\n"})
    with serve(site) as server:
        # All links before any target, or a target could take the place of a link.
        plain.crawl(server.url("/"), options=("-s", "REDIRECT_PRIORITY_ADJUST=-500")).succeeded()
        counts = server.counts()
    assert [counts[link] for link in links] == [2] * 10
    assert sum(count for path, count in counts.items() if path.startswith("/target/")) == targets
    assert plain.stats() == ({"refused/urls_per_host": 10 - targets} if targets < 10 else {})


ASKS_AGAIN = f"""\
{SHOP}        for _ in range(2):
            yield response.request.replace(dont_filter=True)
"""


def test_a_page_that_the_spider_requests_again_counts_again_though_it_was_a_retry(plain: PlainProject) -> None:
    """Its request is a copy of the one that was tried again."""
    settings = f"{SETTINGS}CRAWLSPACE_MAX_URLS_PER_HOST = 3\n"
    plain.write({"rules/crawl.rules": "", "settings.py": settings, "spiders.py": ASKS_AGAIN})
    with serve(Site({"/": sequence([status(503), page("Home")])})) as server:
        plain.crawl(server.url("/")).succeeded()
        assert fetched(server) == ["/"] * 4
    assert plain.stats() == {"refused/urls_per_host": 4}


# --- start URLs ---------------------------------------------------------------------------------------------------

BY_ADDRESS = "an address rule forbids every address of the host"
STARTS = [
    # what is at the start URL of a host that may be reached; what is said of it, or of its redirect
    ("http://127.0.0.1:{inside}/", f"the start URL http://127.0.0.1:{{inside}}/ is refused: {BY_ADDRESS} (crawl.rules:2: "),
    (
        "{outside}/to",
        f"the start URL {{outside}}/to leads to http://127.1:{{inside}}/, which is refused: {BY_ADDRESS} (crawl.rules:2: ",
    ),
    ("{outside}/letter", "the start URL {outside}/letter is refused: the document's type"),
]


@pytest.mark.parametrize(("start", "reported"), STARTS)
def test_a_start_url_that_leads_nowhere_is_a_warning(plain: PlainProject, start: str, reported: str) -> None:
    plain.write({"rules/crawl.rules": RULES, "settings.py": SETTINGS.replace('"DEBUG"', '"INFO"')})
    with serve(Site({}), host="127.0.0.2") as outside, serve(Site({}, otherwise=page("Inside"))) as inside:
        outside.site["/to"] = redirect(f"http://127.1:{inside.port}/")
        outside.site["/letter"] = status(200, headers={"Content-Type": "application/zip"}, body="PK")
        names = {"outside": outside.url(""), "inside": str(inside.port)}
        run = plain.crawl(start.format(**names)).succeeded()
        assert inside.paths() == []
    assert run.stderr.count(reported.format(**names)) == 1


def test_a_link_that_carries_the_meta_of_a_start_url_is_no_start_url(plain: PlainProject) -> None:
    spider = f"""\
{SHOP}        yield from response.follow_all(css="a", meta=response.meta)
"""
    plain.write({"rules/crawl.rules": RULES, "spiders.py": spider})
    with serve(Site({}), host="127.0.0.2") as outside, serve(Site({}, otherwise=page("Inside"))) as inside:
        outside.site["/"] = page("Outside", links=[inside.url("/")])
        run = plain.crawl(outside.url("/")).succeeded()
        assert inside.paths() == []
    assert plain.stats() == {"refused/address": 1}
    assert "start URL" not in run.stderr
