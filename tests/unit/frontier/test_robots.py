"""robots.txt as RFC 9309 has it: which group speaks to us, what it forbids, how fast it lets us go, and how long it is believed."""

from __future__ import annotations

import logging
import math

import pytest

from crawlspace.clock import FakeClock
from crawlspace.frontier.robots.cache import (
    ABSURD_S,
    MAX_SIZE,
    MAX_WILDCARD_TEXT,
    MOMENT_S,
    Answer,
    Robots,
    bounded,
    lines_for,
    product_token,
    whole_lines,
)
from crawlspace.frontier.robots.packed_rules import is_plain
from crawlspace.state.memory.store import MemoryStore
from crawlspace.state.views import RobotsEntry

SITE = "www.example.com:80"
AGENT = "crawlspace/0.1 (+https://www.example.org/our-bot; bot@example.org)"
DAY_S = 86_400.0
ALLOWED, FORBIDDEN, UNKNOWN = Answer.ALLOWED, Answer.FORBIDDEN, Answer.UNKNOWN


class CountingStore(MemoryStore):
    """Counts how often a robots.txt is read from it."""

    reads = 0

    def robots(self, site: str, scheme: str) -> RobotsEntry | None:
        self.reads += 1
        return super().robots(site, scheme)


def robots_of(
    store: MemoryStore | None = None, clock: FakeClock | None = None, *, agent: str = AGENT, ttl_s: float = DAY_S
) -> Robots:
    return Robots(store or MemoryStore(), clock=clock or FakeClock(), user_agent=agent, ttl_s=ttl_s, longest_delay_s=60.0)


def reading(body: str, *, agent: str = AGENT) -> Robots:
    robots = robots_of(agent=agent)
    assert robots.save(SITE, "http", status=200, body=body)
    return robots


def ask(robots: Robots, path: str = "/a") -> Answer:
    return robots.ask(f"http://www.example.com{path}", site=SITE)


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
def test_groups_and_rules(body: str, a: Answer, b: Answer) -> None:
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


def test_a_delay_goes_on_counting_until_robots_txt_is_read_anew() -> None:
    store, clock = MemoryStore(), FakeClock()
    robots = robots_of(store, clock)
    robots.save(SITE, "http", status=200, body="User-agent: *\nCrawl-delay: 5")
    clock.advance(2 * DAY_S)
    assert ask(robots) is UNKNOWN
    assert robots.delay_of(SITE, "http") == 5.0
    assert robots_of(store, clock).delay_of(SITE, "http") == 5.0
    robots.save(SITE, "http", status=404, body="")
    assert robots.delay_of(SITE, "http") == 0.0


# --- what an answer means -----------------------------------------------------------------------------------------

BARRED = "User-agent: *\nDisallow: /"
STATUSES = [
    # status of robots.txt, what may be fetched then
    (200, FORBIDDEN),
    (203, FORBIDDEN),
    # what is left of redirects leads nowhere, and says nothing
    (300, UNKNOWN),
    (301, UNKNOWN),
    (304, UNKNOWN),
    (308, UNKNOWN),
    (400, ALLOWED),
    (401, ALLOWED),
    (403, ALLOWED),
    (404, ALLOWED),
    (410, ALLOWED),
    (418, ALLOWED),
    (429, UNKNOWN),
    (451, ALLOWED),
    (499, ALLOWED),
    (500, UNKNOWN),
    (503, UNKNOWN),
    (599, UNKNOWN),
    (612, UNKNOWN),
    (613, UNKNOWN),
    (680, UNKNOWN),
    (741, UNKNOWN),
    (3020, UNKNOWN),
    (101, UNKNOWN),
    (0, UNKNOWN),
]


@pytest.mark.parametrize(("status", "answer"), STATUSES)
def test_statuses(status: int, answer: Answer) -> None:
    store = MemoryStore()
    robots = robots_of(store)
    assert robots.save(SITE, "http", status=status, body=BARRED) is (answer is not UNKNOWN)
    assert ask(robots) is answer
    assert (store.robots(SITE, "http") is None) is (answer is UNKNOWN)


def test_an_error_does_not_take_the_place_of_what_was_read() -> None:
    robots = reading("User-agent: *\nDisallow: /b")
    assert robots.save(SITE, "http", status=503, body="") is False
    assert (ask(robots, "/a"), ask(robots, "/b")) == (ALLOWED, FORBIDDEN)


def test_each_site_and_scheme_has_its_own() -> None:
    robots = reading(BARRED)
    assert robots.ask("https://www.example.com/a", site="www.example.com:443") is UNKNOWN
    assert robots.ask("https://www.example.com:80/a", site=SITE) is UNKNOWN
    assert robots.ask("http://www.example.com:8080/a", site="www.example.com:8080") is UNKNOWN


# --- how long it is believed --------------------------------------------------------------------------------------

AGES = [
    # seconds since it was read, whether it is believed
    (0.0, True),
    (DAY_S - 1, True),
    (DAY_S, False),
    (DAY_S * 30, False),
    # the clock has been set back
    (-MOMENT_S, True),
    (-MOMENT_S - 1, False),
    (-DAY_S, False),
]


@pytest.mark.parametrize(("age", "believed"), AGES)
@pytest.mark.parametrize("restarted", [False, True])
def test_ages(age: float, *, believed: bool, restarted: bool) -> None:
    store, clock = MemoryStore(), FakeClock()
    robots = robots_of(store, clock)
    robots.save(SITE, "http", status=200, body=BARRED)
    clock.advance(age)
    if restarted:
        robots = robots_of(store, clock)
    assert ask(robots) is (FORBIDDEN if believed else UNKNOWN)
    robots.save(SITE, "http", status=404, body="")
    assert ask(robots) is ALLOWED


def test_it_can_be_believed_for_ever() -> None:
    store, clock = MemoryStore(), FakeClock()
    robots_of(store, clock).save(SITE, "http", status=200, body=BARRED)
    clock.advance(DAY_S * 10_000)
    assert ask(robots_of(store, clock, ttl_s=math.inf)) is FORBIDDEN


def test_what_another_process_has_read_meanwhile_is_taken() -> None:
    store, clock = CountingStore(), FakeClock()
    ours, others = robots_of(store, clock), robots_of(store, clock)
    ours.save(SITE, "http", status=200, body=BARRED)
    clock.advance(DAY_S)
    assert ask(ours) is UNKNOWN
    others.save(SITE, "http", status=200, body="User-agent: *\nDisallow: /b\nCrawl-delay: 3")
    assert ask(ours) is ALLOWED
    assert ours.delay_of(SITE, "http") == 3.0
    reads = store.reads
    assert ask(ours, "/b") is FORBIDDEN
    assert store.reads == reads


def test_a_host_that_is_not_there_is_passed_over_for_a_moment() -> None:
    store, clock = MemoryStore(), FakeClock()
    robots = robots_of(store, clock)
    robots.pass_over(SITE, "http")
    assert ask(robots) is ALLOWED
    assert robots.delay_of(SITE, "http") == 0.0
    assert store.robots(SITE, "http") is None
    clock.advance(MOMENT_S)
    assert ask(robots) is UNKNOWN


def test_after_the_moment_what_was_read_before_counts() -> None:
    clock = FakeClock()
    robots = robots_of(clock=clock)
    robots.save(SITE, "http", status=200, body=BARRED)
    clock.advance(60)
    robots.pass_over(SITE, "http")
    assert ask(robots) is ALLOWED
    clock.advance(MOMENT_S)
    assert ask(robots) is FORBIDDEN


@pytest.mark.parametrize("read_ago_s", [90_000, -90_000], ids=["long ago", "in the future, the clock has been set back"])
def test_a_host_that_is_not_there_any_more_answers_one_question_however_late(read_ago_s: int) -> None:
    store, clock = MemoryStore(), FakeClock()
    store.save_robots(RobotsEntry(SITE, "http", 200, BARRED, round(clock.now()) - read_ago_s))
    robots = robots_of(store, clock)
    assert ask(robots) is UNKNOWN
    robots.pass_over(SITE, "http")
    clock.advance(60)  # its rest after failures in a row
    assert ask(robots) is ALLOWED, "else it would be asked for its robots.txt for ever"
    assert ask(robots) is UNKNOWN


# --- files that are too large, or made to hold up the crawl -------------------------------------------------------

LINES = "0123456\n" * 10
CUTS = [
    # bytes that are read, how many of the ten lines of eight bytes
    (80, 10),
    (79, 10),
    (78, 9),
    (72, 9),
    (71, 9),
    (70, 8),
    (8, 1),
    (7, 1),
    (6, 0),
]


@pytest.mark.parametrize(("most", "lines"), CUTS)
@pytest.mark.parametrize("end", ["\n", "\r"])
def test_half_a_line_is_not_read(most: int, lines: int, end: str) -> None:
    assert whole_lines(LINES.replace("\n", end), most).splitlines() == ["0123456"] * lines


def test_the_size_is_that_in_bytes() -> None:
    assert whole_lines("ä\nä\nä\n", 6).splitlines() == ["ä", "ä"]
    assert whole_lines("\ufeffä\n", 3) == "ä\n"
    assert whole_lines("a\ud800\n", 100) == "a?\n"


def test_500_kib_of_a_file_are_read() -> None:
    head = "User-agent: *\nDisallow: /a\n"
    body = head + "#" * (MAX_SIZE - len(head) - len("\nDisallow: /b\n")) + "\nDisallow: /b\nDisallow: /c\n"
    store = MemoryStore()
    robots = robots_of(store)
    robots.save(SITE, "http", status=200, body=body)
    assert [ask(robots, path) for path in ("/a", "/b", "/c")] == [FORBIDDEN, FORBIDDEN, ALLOWED]
    entry = store.robots(SITE, "http")
    assert entry is not None
    assert len(entry.body) <= MAX_SIZE
    robots.save(SITE, "http", status=200, body=body.replace("/b\n", "/bcd\n"))
    assert [ask(robots, path) for path in ("/a", "/b", "/bcd")] == [FORBIDDEN, ALLOWED, ALLOWED]


def test_rules_for_many_names_are_kept_once() -> None:
    """Protego has names times rules of them: here 100 million."""
    names = "".join(f"User-agent: a{number}\n" for number in range(10_000))
    rules = [f"Disallow: /{number}" for number in range(10_000)]
    body = f"{names}User-agent: crawlspace\nUser-agent: *\n" + "\n".join(rules)
    assert lines_for("crawlspace", body) == rules
    assert ask(reading(body), "/9999") is FORBIDDEN


def test_rules_of_others_are_not_kept() -> None:
    body = "User-agent: a\nDisallow: /\nUser-agent: *\nAllow: /b\nSitemap: http://www.example.com/s.xml\nHost: a\nCrawl-delay: 1"
    assert lines_for("crawlspace", body) == ["Allow: /b", "Crawl-delay: 1"]


WILDCARDS = [
    # lines, how many of them are left out
    ([], 0),
    (["Disallow: /a"] * 40_000, 0),
    (["Disallow: /*?sort=", "Disallow: /*.pdf$", "Allow: /a$"] * 500, 0),
    (["Disallow: /*" + "a" * 1012] * 64, 0),
    (["Disallow: /*" + "a" * 1012] * 70, 6),
    (["Disallow: /" + "*a" * 250_000], 1),
    (["Disallow: /" + "*a" * 250_000, "Disallow: /*?sort="], 1),
    (["allow:/$"] * (MAX_WILDCARD_TEXT // 8 + 100), 100),
    (["Disallow: /*" + "a" * 1012] * 70 + ["Disallow: /a"], 6),
    (["Disallow: /%25" + "a" * 1010] * 70, 6),
]


@pytest.mark.parametrize(("lines", "left_out"), WILDCARDS)
def test_only_so_many_rules_with_wildcards_count(lines: list[str], left_out: int) -> None:
    kept, count = bounded(lines)
    assert count == left_out == len(lines) - len(kept)
    assert [line for line in kept if is_plain(line)] == [line for line in lines if is_plain(line)]
    assert sum(len(line) for line in kept if not is_plain(line)) <= MAX_WILDCARD_TEXT


def test_rules_that_are_left_out_are_named_when_they_are_read(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    robots = robots_of(store)
    body = "User-agent: *\nDisallow: /a\n" + "Disallow: /*x\n" * 10_000
    with caplog.at_level(logging.WARNING):
        robots.save(SITE, "http", status=200, body=body)
        assert ask(robots_of(store)) is FORBIDDEN
    assert [record.getMessage() for record in caplog.records] == [
        f"the robots.txt of {SITE} has more than 65536 characters of rules that are not plain paths, as with * or $: {10_000 - 65_536 // 13} of them are not obeyed"
    ]
