"""What a robots.txt says: which group is ours, how rules may be spelt, and how fast a site may be asked."""

from __future__ import annotations

import pytest

from crawlspace.clock import FakeClock
from crawlspace.frontier.robots import (
    ABSURD_S,
    Robots,
    RobotsVerdict,
    product_token,
)
from tests.contract.memory.store import MemoryStore
from tests.unit.frontier.conftest import AGENT, ALLOWED, DAY_S, FORBIDDEN, SITE, UNKNOWN, CountingStore, ask, reading, robots_of

# --- which group speaks to us -------------------------------------------------------------------------------------

TOKENS = [
    ("crawlspace/0.1", "crawlspace"),
    ("CrawlSpace", "crawlspace"),
    (AGENT, "crawlspace"),
    ("my-own_bot2/1.0", "my-own_bot2"),
    ("Mozilla/5.0 (compatible; Crawlspace/0.1; +https://www.example.org/)", "crawlspace"),
    ("Mozilla/5.0 (X11; Linux)", "mozilla"),
    ("(+https://www.example.org/)", ""),
    ("", ""),
]


def test_a_site_may_have_a_user_agent_of_its_own() -> None:
    body = "User-agent: partnerbot\nDisallow: /a\nCrawl-delay: 7\n\nUser-agent: *\nDisallow: /b\n"
    sites = ("www.example.com:80", "other.example:80")
    store = CountingStore().holding(dict.fromkeys(sites, body))

    def own_agent(site: str) -> str:
        return "partnerbot/2" if site == sites[0] else ""

    robots = Robots(store, clock=FakeClock(), user_agent=AGENT, ttl_s=DAY_S, own_agent=own_agent)
    assert [ask(robots, path, site=site) for site in sites for path in ("/a", "/b")] == [FORBIDDEN, ALLOWED, ALLOWED, FORBIDDEN]
    assert [robots.delay_of(site, "http") for site in sites] == [7.0, 0.0]


@pytest.mark.parametrize(("user_agent", "token"), TOKENS)
def test_product_tokens(user_agent: str, token: str) -> None:
    assert product_token(user_agent) == token


GROUPS = [
    # a group and its one rule, whether it is ours
    ("User-agent: crawlspace", True),
    ("User-agent: CrawlSpace", True),
    ("user-agent:crawlspace", True),
    ("  USER-AGENT :\tcrawlspace  # that is you", True),
    ("User-agent: crawlspace/2.0", True),
    ("User-agent: crawlspace (any version)", True),
    ("User-agent: *", True),
    ("User-agent: * # all", True),
    ("User-agent: crawlspace*", True),
    ("User-agent: other\nUser-agent: crawlspace", True),
    ("User-agent: crawlspace\n\n# a comment\nSitemap: http://www.example.com/s.xml\nUser-agent: other", True),
    # what site owners also write, and Protego reads
    ("User-agent: crawlspace\nNoindex: /x\nsomething\nUser-agent: other", True),
    ("User agent: crawlspace", True),
    ("Useragent crawlspace", True),
    ("User  agent crawlspace", True),
    # a rule ends the names of a group
    ("User-agent: crawlspace\nAllow: /b\nUser-agent: other", False),
    ("User-agent: crawlspace\nCrawl-delay: 5\nUser-agent: other", False),
    ("User-agent: crawlspace\nRequest-rate: 1/5\nUser-agent: other", False),
    # the name is compared as a whole, and with nothing else of what we send
    ("User-agent: crawl", False),
    ("User-agent: c", False),
    ("User-agent: space", False),
    ("User-agent: crawlspacebot", False),
    ("User-agent: crawlspace-news", False),
    ("User-agent: https", False),
    ("User-agent: bot", False),
    ("User-agent: 0.1", False),
    ("User-agent:", False),
    ("", False),
    ("User-agent: other", False),
    ("User-agent: crawlspace\nDisallow:\nUser-agent: other", False),
    ("User-agent: crawlspace\nDisallow /b\nUser-agent: other", False),
]


@pytest.mark.parametrize(("group", "ours"), GROUPS)
def test_which_group_is_ours(group: str, ours: bool) -> None:
    assert ask(reading(f"{group}\nDisallow: /a\n")) is (FORBIDDEN if ours else ALLOWED)


SPELLINGS = [
    # a line, whether it is a rule that forbids /a or slows us down
    ("Disallow: /a", True),
    ("DISALLOW:/a", True),
    ("disallow : /a", True),
    ("Disallow /a", True),
    ("Dissallow: /a", True),
    ("Dissalow: /a", True),
    ("Disalow: /a", True),
    ("Diasllow: /a", True),
    ("Disallaw: /a", True),
    ("Disallow: /%61", True),
    ("Disallow: /*", True),
    ("Disallow: /a$", True),
    ("Disallow: /b", False),
    ("Disallow: /A", False),
    ("Disallow: /b$", False),
    ("Disallow:", False),
    ("Disallow", False),
    ("Disallows: /a", False),
    ("Noindex: /a", False),
    ("Crawl-delay: 5", True),
    ("Crawl delay 5", True),
    ("Crawl  delay 5", True),
    ("Request-rate: 1/5", True),
    ("Request rate 1/5", True),
    ("Visit-time: 0600-0845", False),
]


@pytest.mark.parametrize(("line", "counts"), SPELLINGS)
def test_spellings_of_rules(line: str, counts: bool) -> None:
    robots = reading(f"User-agent: crawlspace\n{line}\n")
    assert (ask(robots) is FORBIDDEN or robots.delay_of(SITE, "http") > 0) is counts


MORE_GROUPS = [
    # our own group wins over that for all, wherever it stands; what it doesn't say is not filled in
    ("User-agent: *\nDisallow: /\n\nUser-agent: crawlspace\nDisallow: /b", ALLOWED, FORBIDDEN),
    ("User-agent: crawlspace\nDisallow: /b\n\nUser-agent: *\nDisallow: /", ALLOWED, FORBIDDEN),
    ("User-agent: *\nDisallow: /\n\nUser-agent: crawlspace\nDisallow:", ALLOWED, ALLOWED),
    ("User-agent: *\nDisallow: /\n\nUser-agent: crawlspace", ALLOWED, ALLOWED),
    ("User-agent: *\nDisallow: /b\n\nUser-agent: crawl\nDisallow: /a", ALLOWED, FORBIDDEN),
    # all groups for us are one
    ("User-agent: crawlspace\nDisallow: /a\n\nUser-agent: x\nDisallow: /\n\nUser-agent: Crawlspace/1\nDisallow: /b", FORBIDDEN, FORBIDDEN),
    ("User-agent: *\nDisallow: /a\n\nUser-agent: x\nDisallow: /\n\nUser-agent: *\nDisallow: /b", FORBIDDEN, FORBIDDEN),
    ("User-agent: *\nUser-agent: crawlspace\nDisallow: /a\n\nUser-agent: *\nDisallow: /b", FORBIDDEN, ALLOWED),
    # the longest rule counts, Allow where two are equally long
    ("User-agent: *\nDisallow: /\nAllow: /a", ALLOWED, FORBIDDEN),
    ("User-agent: *\nAllow: /a\nDisallow: /a", ALLOWED, ALLOWED),
    # lines of any end, with a byte order mark, and rules before any group
    ("\ufeffUser-agent: *\rDisallow: /a\r\nDisallow: /b", FORBIDDEN, FORBIDDEN),
    ("Disallow: /a\nUser-agent: *\nDisallow: /b", ALLOWED, FORBIDDEN),
    ("<html><body>Disallow: /a", ALLOWED, ALLOWED),
    ("", ALLOWED, ALLOWED),
]  # fmt: skip


@pytest.mark.parametrize(("body", "a", "b"), MORE_GROUPS)
def test_groups_and_rules(body: str, a: RobotsVerdict, b: RobotsVerdict) -> None:
    robots = reading(body)
    assert (ask(robots, "/a"), ask(robots, "/b")) == (a, b)


def test_without_a_name_the_group_for_all_counts() -> None:
    assert ask(reading("User-agent: *\nDisallow: /a", agent="(+https://www.example.org/)")) is FORBIDDEN


def test_a_url_of_robots_txt_itself_is_never_forbidden() -> None:
    assert ask(reading("User-agent: *\nDisallow: /"), "/robots.txt") is ALLOWED


# --- how fast ----------------------------------------------------------------------------------------------------

DELAYS = [
    # lines of our group, seconds
    ("Disallow: /a", 0.0),
    ("Crawl-delay: 10", 10.0),
    ("crawl-delay:0.5", 0.5),
    ("Crawl-delay: 0", 0.0),
    ("Crawl-delay: 61", 60.0),
    ("Crawl-delay: 86400", 60.0),
    ("Request-rate: 1/5", 5.0),
    ("Request-rate: 1/5s", 5.0),
    ("Request-rate: 10/1m", 6.0),
    ("Request-rate: 1/1h", 60.0),
    ("Request-rate: 100/10", 0.1),
    ("Request-rate: 1/30 0600-0845", 30.0),
    # the larger of the two
    ("Crawl-delay: 3\nRequest-rate: 1/5", 5.0),
    ("Crawl-delay: 7\nRequest-rate: 1/5", 7.0),
    # what can't be meant
    ("Crawl-delay: -5", 0.0),
    ("Crawl-delay: nan", 0.0),
    ("Crawl-delay: inf", 0.0),
    ("Crawl-delay: 1e300", 0.0),
    (f"Crawl-delay: {ABSURD_S + 1}", 0.0),
    ("Crawl-delay: soon", 0.0),
    ("Crawl-delay:", 0.0),
    ("Request-rate: 0/5", 0.0),
    ("Request-rate: 1/0", 0.0),
    ("Request-rate: -1/5", 0.0),
    ("Request-rate: 1/5x", 0.0),
    ("Request-rate: 1/9999999999", 0.0),
    (f"Request-rate: 1/{'9' * 4000}", 0.0),
    (f"Request-rate: {'9' * 4000}/1", 0.0),
    (f"Request-rate: {'9' * 4000}/{'9' * 4000}", 1.0),
    (f"Request-rate: 1/{'9' * 5000}", 0.0),
    (f"Crawl-delay: 4\nRequest-rate: 1/{'9' * 4000}", 4.0),
]


@pytest.mark.parametrize(("lines", "seconds"), DELAYS, ids=[row[0][:40] for row in DELAYS])
def test_delays(lines: str, seconds: float) -> None:
    robots = reading(f"User-agent: other\nCrawl-delay: 33\n\nUser-agent: *\n{lines}\n")
    assert robots.delay_of(SITE, "http") == pytest.approx(seconds)


def test_a_delay_holds_for_its_site_scheme_and_group() -> None:
    robots = reading("User-agent: *\nCrawl-delay: 5\n\nUser-agent: crawlspace\nDisallow: /a\n")
    assert robots.delay_of(SITE, "http") == 0.0
    robots.save(SITE, "http", status=200, body="User-agent: *\nCrawl-delay: 5")
    assert robots.delay_of(SITE, "http") == 5.0
    assert robots.delay_of(SITE, "https") == 0.0
    assert robots.delay_of("other.example.com:80", "http") == 0.0


def test_a_delay_goes_on_counting_until_robots_txt_is_read_again() -> None:
    store, clock = MemoryStore(), FakeClock()
    robots = robots_of(store, clock)
    robots.save(SITE, "http", status=200, body="User-agent: *\nCrawl-delay: 5")
    clock.advance(2 * DAY_S)
    assert ask(robots) is UNKNOWN
    assert robots.delay_of(SITE, "http") == 5.0
    assert robots_of(store, clock).delay_of(SITE, "http") == 5.0
    robots.save(SITE, "http", status=404, body="")
    assert robots.delay_of(SITE, "http") == 0.0
