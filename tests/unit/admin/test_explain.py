"""The answer of `scrapy explain`: one decision over all that can be checked, and what is known of the URL."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from crawlspace import settings as defaults
from crawlspace.admin.explain import Explanation, Question, explain
from crawlspace.clock import FakeClock
from crawlspace.config.collection import load_collection
from crawlspace.crawl.startup import build_space
from crawlspace.document import Document
from crawlspace.errors import UsageError
from crawlspace.model import NewUrl, Source, State
from crawlspace.rules.limits import DEFAULT_EXCLUDED_EXTENSIONS
from crawlspace.runtime.components.explanation_text import decision_lines
from crawlspace.state.changes import Change
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import RobotsEntry
from crawlspace.urls import parse
from tests.contract.memory.store import MemoryStore

NOW = 1_750_000_000
RULES = """\
allow  domain www.example.com
allow  domain 10.0.0.7
forbid domain *
forbid prefix http://www.example.com/private/
allow  address 10.0.0.0 255.0.0.0
forbid address 192.0.2.1
"""
SETTINGS = {
    "DEPTH_LIMIT": 3,
    "CRAWLSPACE_MAX_URLS_PER_HOST": 7,
    "CRAWLSPACE_SITES": {"10.0.0.7": {"max_urls_per_host": 1}},
    "USER_AGENT": "testcrawler",
}
HOME = "http://www.example.com"

# URL and what is told of it -> reason, deciding rule, checks from the address of the URL on (those before are the rules' own tests)
DECISIONS: list[tuple[Question, str, str | None, str]] = [
    (Question(f"{HOME}/"), "admitted", "crawl.rules:1", "link_depth urls_per_host robots"),
    (Question(f"{HOME}/new"), "urls_per_host", None, "-urls_per_host robots"),
    (Question(f"{HOME}/private/x"), "prefix", "crawl.rules:4", "-urls_per_host robots"),
    (Question("http://other.example/"), "domain", "crawl.rules:3", "urls_per_host"),
    (Question(f"{HOME}/a", depth=3), "admitted", "crawl.rules:1", "link_depth urls_per_host robots"),
    (Question(f"{HOME}/a", depth=4), "link_depth", None, "-link_depth urls_per_host robots"),
    (Question("b", page=f"{HOME}/a"), "admitted", "crawl.rules:1", "link_depth urls_per_host robots"),
    (Question("b", page=f"{HOME}/deep"), "link_depth", None, "-link_depth urls_per_host robots"),
    (Question("b", page=f"{HOME}/moved"), "admitted", "crawl.rules:1", "link_depth urls_per_host robots"),
    (Question("b", page=f"{HOME}/deep", depth=1), "admitted", "crawl.rules:1", "link_depth urls_per_host robots"),
    (Question(f"{HOME}/secret/b"), "robots", None, "link_depth urls_per_host -robots"),
    (Question(f"{HOME}/a", address="10.1.2.3"), "admitted", "crawl.rules:1", "link_depth urls_per_host robots address"),
    (Question(f"{HOME}/a", address="192.0.2.1"), "address", "crawl.rules:6", "link_depth urls_per_host robots -address"),
    (
        Question(f"{HOME}/a", address="169.254.169.254"),
        "private_address",
        None,
        "link_depth urls_per_host robots address -private_address",
    ),
    (Question("http://10.0.0.7/"), "admitted", "crawl.rules:2", "urls_per_host address"),
    (Question("http://10.0.0.7/", address="192.0.2.1"), "address", "crawl.rules:6", "urls_per_host -address"),
    (
        Question(f"{HOME}/a", mime="text/html; charset=utf-8"),
        "admitted",
        "crawl.rules:1",
        "link_depth urls_per_host robots mime_type",
    ),
    (Question(f"{HOME}/a", mime="video/mp4"), "mime_type", None, "link_depth urls_per_host robots -mime_type"),
    (Question("ftp://www.example.com/"), "scheme", None, ""),
    (Question("www.example.com"), "malformed", None, ""),
    (Question("http://me:secret@www.example.com/"), "credentials", None, ""),
]


def ask(tmp_path: Path, question: Question, *, store: MemoryStore | None, rules: str = RULES, **own: object) -> Explanation:
    folder = tmp_path / "demo"
    folder.mkdir(exist_ok=True)
    (folder / "crawl.rules").write_text(rules)
    (folder / "start_urls.txt").write_text(f"{HOME}/ shift=-1\n")
    settings = {name: value for name, value in vars(defaults).items() if name.isupper()}
    collection = load_collection(
        "demo", {**settings, "CRAWLSPACE_COLLECTIONS_DIR": str(tmp_path), "RETRY_TIMES": 2, **SETTINGS, **own}
    )
    return explain(question, collection, space=build_space(collection), store=store, clock=FakeClock(NOW + 10 * 86400))


def new(url: str, depth: int, *, source: Source = Source.INDEX_FOLLOW, host_as_written: str | None = None) -> NewUrl:
    parsed = parse(url)
    return NewUrl(
        key=parsed.key,
        url=parsed.text,
        site=parsed.site,
        source=source,
        shift=0,
        depth=depth,
        redirects=0,
        rank=1,
        host_as_written=host_as_written,
    )


@pytest.fixture
def store() -> MemoryStore:
    """Seven URLs of the host, robots.txt read, two pages with one text, and one that moved."""
    store = MemoryStore()
    store.discover([new(f"{HOME}/", 0, source=Source.USER)], now=NOW)
    store.discover(
        [new(f"{HOME}/{path}", depth) for path, depth in [("a", 1), ("b", 1), ("secret/b", 2), ("deep", 3), ("moved", 3)]],
        now=NOW,
    )
    store.discover([new(f"{HOME}/c", 1, host_as_written="WWW.example.com")], now=NOW)
    store.save_robots(RobotsEntry("www.example.com:80", "http", 200, "User-agent: *\nDisallow: /secret/\n", NOW))
    for url in (f"{HOME}/a", f"{HOME}/b"):
        state = store.get(url)
        assert state is not None
        state.state, state.status, state.fetched_at, state.next_fetch, state.checksum = State.DONE, 200, NOW, NOW + 60, b"1" * 16
        store.record([Change(state, document=Document(url, text="same"))], now=NOW)
    moved = store.get(f"{HOME}/moved")
    assert moved is not None
    moved.state, moved.status = State.REDIRECTED, 301
    store.record([Change(moved)], now=NOW)
    return store


@pytest.mark.parametrize(
    ("question", "reason", "rule", "checks"), DECISIONS, ids=[str(row[0].url) + "-" + row[1] for row in DECISIONS]
)
def test_the_first_refusal_is_the_reason_and_every_check_is_shown(
    tmp_path: Path, store: MemoryStore, question: Question, reason: str, rule: str | None, checks: str
) -> None:
    answer = ask(tmp_path, question, store=store).as_json()
    assert (answer["reason"], answer["rule"], answer["admitted"]) == (reason, rule, reason == "admitted")
    assert later_checks(answer) == checks


EXTENSIONS: list[tuple[str, str, str, list[str]]] = [
    # setting, URL, how the text begins, the list
    ("pdf|old", f"{HOME}/a.pdf", "old pdf", ["old", "pdf"]),
    ("+pdf -zip", f"{HOME}/a.PDF?x", "the built-in list with +pdf -zip: 3g2 3gp 7z", sorted({*DEFAULT_EXCLUDED_EXTENSIONS, "pdf"} - {"zip"})),
    ("", f"{HOME}/a.gif", "the built-in list: 3g2 3gp 7z", sorted(DEFAULT_EXCLUDED_EXTENSIONS)),
    ("pdf", f"{HOME}/a.gif", "", []),
]  # fmt: skip


@pytest.mark.parametrize(("value", "url", "text", "extensions"), EXTENSIONS)
def test_the_extensions_are_shown_where_they_decide(
    tmp_path: Path, value: str, url: str, text: str, extensions: list[str]
) -> None:
    answer = ask(tmp_path, Question(url), store=None, CRAWLSPACE_EXCLUDE_EXTENSIONS=value)
    assert answer.as_json()["excluded_extensions"] == extensions
    shown = [line for line in "\n".join(decision_lines(answer)).splitlines() if line.startswith("extensions")]
    assert [line.removeprefix("extensions   ")[: len(text)] for line in shown] == ([text] if text else [])


def test_the_place_of_a_start_url(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "more.txt").write_text(f"# more\n{HOME}/\n{HOME}/more\n")
    places = [
        ask(tmp_path, Question(f"{HOME}/{path}"), store=None, CRAWLSPACE_START_URL_FILES=["more.txt"])
        for path in ("", "more", "other")
    ]
    assert [answer.as_json()["start_url"] for answer in places] == ["start_urls.txt:1", "more.txt:3", None]
    assert "start URL    more.txt:3" in list(decision_lines(places[1]))


def test_json_of_a_known_url(tmp_path: Path, store: MemoryStore) -> None:
    answer = ask(tmp_path, Question(f"{HOME}/x/../b#top"), store=store).as_json()
    del answer["trace"]
    assert answer == {
        "url": f"{HOME}/x/../b#top",
        "normalized": f"{HOME}/b",
        "folded_from": None,
        "admitted": True,
        "reason": "admitted",
        "rule": "crawl.rules:1",
        "actions": [],
        "fields": {},
        "index": True,
        "follow": True,
        "source": "index_follow",
        "shift": 0,
        "priority": 20,
        "addresses": [],
        "looked_up": None,
        "unreachable": None,
        "paused": None,
        "access": "",
        "waits_for_login": None,
        "proxy": "",
        "seen_on": [],
        "rendering": None,
        "start_url": None,
        "excluded_extensions": [],
        "named_by": [],
        "state": {
            "url": f"{HOME}/b",
            "state": "done",
            "status": 200,
            "depth": 1,
            "source": "index_follow",
            "shift": 0,
            "priority": 20,
            "errors": 0,
            "last_fetch": "2025-06-15T15:06:40Z",
            "next_fetch": "2025-06-15T15:07:40Z",
            "indexed": False,
            "indexed_at": None,
            "orphaned": False,
            "left_to_others": False,
            "lost": False,
            "held": None,
            "duplicate_of": f"{HOME}/a",
            "detail": None,
            "fetches": [{"at": "2025-06-15T15:06:40Z", "status": 200, "took_s": None, "document": None}],
        },
    }


def test_a_site_that_cannot_be_reached(tmp_path: Path, store: MemoryStore) -> None:
    store.set_unreachable("www.example.com:80", UnreachableSite("www.example.com:80", 612, NOW - 60, 4, NOW))
    shown = {url: ask(tmp_path, Question(url), store=store).as_json()["unreachable"] for url in (f"{HOME}/b", "http://10.0.0.7/")}
    row = {
        "site": "www.example.com:80",
        "status": 612,
        "cause": "connection refused or lost",
        "since": "2025-06-15T15:05:40Z",
        "runs": 4,
        "documents": 1,
        "held": False,
    }
    assert shown == {f"{HOME}/b": row, "http://10.0.0.7/": None}


def test_json_of_a_url_that_cannot_be_parsed(tmp_path: Path) -> None:
    answer = ask(tmp_path, Question("http://me:secret@www.example.com/"), store=None).as_json()
    assert answer["url"] == "http://…@www.example.com/"
    assert (answer["normalized"], answer["state"], answer["index"]) == (None, None, False)
    assert answer["trace"] == [{"check": "well_formed", "verdict": "refuse", "rule": None}]


ACTIONS = """\
<Rules>
  <Rule><Path val="/"/><NoIndex/><AddMeta name="of" value="all"/></Rule>
  <Rule><Path val="/b"/><Follow/><Index/><Source name="b"/><AddMeta name="of" value="b"/></Rule>
  <Rule><Path val="/private/"/><Ignore/><Priority shift="1"/></Rule>
</Rules>
"""

# path -> what rules matched and did, fields of its document, the rule that decided
APPLIED: list[tuple[str, list[tuple[str, str, str]], dict[str, str], str | None]] = [
    ("/a", [("rules.xml:2", "index off, of = all", "")], {"of": "all"}, "crawl.rules:1"),
    (
        "/b",
        [
            ("rules.xml:2", "index off, of = all", ""),
            ("rules.xml:3", "index on, source b, of = b", "follow on"),
        ],
        {"of": "b", "from": "a page", "source": "b"},
        "crawl.rules:1",
    ),
    (
        "/private/x",
        [("rules.xml:2", "index off, of = all", ""), ("rules.xml:4", "accept off, priority 1", "")],
        {},
        "rules.xml:4",
    ),
]


@pytest.mark.parametrize(("path", "applied", "fields", "rule"), APPLIED)
def test_what_each_action_rule_changed(
    tmp_path: Path,
    store: MemoryStore,
    path: str,
    applied: list[tuple[str, str, str]],
    fields: dict[str, str],
    rule: str | None,
) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "rules.xml").write_text(ACTIONS)
    store.discover([structs.replace(new(f"{HOME}/b", 1), inherited='{"from":"a page","of":"a page"}')], now=NOW)
    answer = ask(
        tmp_path, Question(f"{HOME}{path}"), store=store, rules="allow domain www.example.com\nforbid domain *\n"
    ).as_json()
    assert isinstance(answer["actions"], list)
    told = [(one["rule"], ", ".join(one["changed"]), ", ".join(one["without_effect"])) for one in answer["actions"]]
    assert (told, answer["fields"], answer["rule"]) == (applied, fields, rule)


# URL, page it stands on -> source, shift
QUEUES = [
    (f"{HOME}/", None, "user", -1),
    (f"{HOME}/new", None, "index_follow", 0),
    (f"{HOME}/new", f"{HOME}/moved", "redir", 0),
]


@pytest.mark.parametrize(("url", "page", "source", "shift"), QUEUES)
def test_where_a_url_would_wait(tmp_path: Path, store: MemoryStore, url: str, page: str | None, source: str, shift: int) -> None:
    fresh = None if page is None else store
    answer = ask(tmp_path, Question(url, page=page), store=fresh)
    assert (answer.source.label, answer.shift) == (source, shift)


def test_a_known_url_is_judged_by_its_host_as_it_was_written(tmp_path: Path, store: MemoryStore) -> None:
    assert ask(tmp_path, Question(f"{HOME}/c"), store=store).decision.reason == "domain"
    assert ask(tmp_path, Question(f"{HOME}/c"), store=None).decision.admitted


def test_without_a_store_the_checks_left_out_are_named(tmp_path: Path) -> None:
    answer = ask(tmp_path, Question(f"{HOME}/a"), store=None)
    assert answer.decision.admitted
    assert answer.known is None
    assert [left_out.partition(" (")[0] for left_out in answer.unchecked] == [
        "the link depth",
        "robots.txt",
        "the host's address",
        "the document type",
    ]


def test_robots_txt_counts_only_where_it_is_obeyed(tmp_path: Path, store: MemoryStore) -> None:
    answer = ask(tmp_path, Question(f"{HOME}/secret/b"), store=store, ROBOTSTXT_OBEY=False)
    assert answer.decision.admitted
    assert not [left_out for left_out in answer.unchecked if "robots" in left_out]


WRONG = [
    (Question(f"{HOME}/", address="www.example.com"), "'www.example.com' is not an IP address"),
    (Question("b", page="/a"), "'/a' is not an absolute URL; give the page with the link as in --from"),
]


@pytest.mark.parametrize(("question", "sentence"), WRONG)
def test_wrong_use(tmp_path: Path, question: Question, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        ask(tmp_path, question, store=None)


def later_checks(answer: dict[str, object]) -> str:
    """The checks after those of the URL alone, `-` before one that refuses."""
    trace = answer["trace"]
    assert isinstance(trace, list)
    names = [step["check"] for step in trace]
    start = names.index("folder") + 1 if "folder" in names else len(names)
    return " ".join(("-" if step["verdict"] == "refuse" else "") + step["check"] for step in trace[start:])


@pytest.mark.parametrize(
    ("addresses", "reason"),
    [("10.0.0.1 8.8.8.8", "admitted"), ("10.0.0.1", "private_address"), ("64:ff9b::a00:1", "private_address")],
)
def test_the_addresses_of_a_host_are_those_of_the_last_look_up(tmp_path: Path, addresses: str, reason: str) -> None:
    store = MemoryStore()
    store.set_meta("addresses:x.test", f"1750000000 {addresses}")
    shown = ask(tmp_path, Question("http://x.test/"), store=store, rules="allow domain *\n").as_json()
    assert (shown["addresses"], shown["looked_up"]) == (addresses.split(), "2025-06-15T15:06:40Z")
    assert shown["reason"] == reason
