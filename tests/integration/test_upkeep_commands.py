"""The commands that foretell and change, through the command line: what they print, their exit status, and what is there afterwards."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest

from crawlspace.clock import FakeClock
from crawlspace.config.sinks import EMBEDDED
from crawlspace.crawl.rule_changes.reconcile import RULES_HASH
from crawlspace.crawl.startup import CONTENT, METADATA_HASH
from crawlspace.document import Document
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.outbox import Drain
from crawlspace.model import Held, NewUrl, Source, State
from crawlspace.runtime.components.command import WIDTH
from crawlspace.state.changes import Change
from crawlspace.state.sqlite.file import CrawlLock
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.urls import parse
from tests.command_line import CompletedRun
from tests.conftest import MakeProject, Project
from tests.draining import drain_all
from tests.integration.conftest import Run
from tests.integration.stored import FAST, indexed, opened, shared, states, statuses, worker_of
from tests.sites import Site, page, serve
from tests.unit.test_docs import json_in

NOW = 1_750_000_000
LATER = 4_000_000_000
HOME, SHOP = "http://www.example.com", "http://shop.example.com"
RULES = "allow  domain *.example.com\nforbid domain *\n"
FILES = {"demo/start_urls.txt": f"{HOME}/\n", "demo/crawl.rules": RULES, "demo/settings.py": "CRAWLSPACE_MAX_DELETIONS = 2\n"}
IN_A_FILE = pytest.mark.parametrize("demo", ["file"], indirect=True)
COMMANDS = ("plan", "deletions", "recrawl", "forget", "clear-errors", "reindex", "archive", "content")

# URL, state, status, has a document, held
URLS: list[tuple[str, State, int, bool, Held | None]] = [
    (f"{HOME}/", State.DONE, 200, True, None),
    (f"{HOME}/down", State.FAILED, 503, True, Held.HOST),
    (f"{HOME}/gone", State.GONE, 404, False, None),
    (f"{HOME}/many", State.GONE, 404, True, Held.MANY),
    (f"{HOME}/slip", State.DONE, 200, True, Held.RULES),
    (f"{SHOP}/", State.DONE, 200, True, None),
    (f"{SHOP}/out", State.EXCLUDED, 760, False, None),
]


@pytest.fixture(params=["file", "server"])
def demo(project: MakeProject, request: pytest.FixtureRequest) -> Project:
    """A collection that has been crawled; the index has followed."""
    demo = shared(project(FILES)) if request.param == "server" else project(FILES)
    (demo.data / "demo").mkdir()
    if demo.store_url:
        worker_of(demo).leave()
    with (
        opened(demo, clock=FakeClock(NOW)) as store,
        closing(EmbeddedIndex(demo.data / "demo" / "index.db", owner="demo")) as index,
    ):
        for number, (url, state, status, has_document, held) in enumerate(URLS):
            parsed = parse(url)
            store.discover([NewUrl(parsed.key, url, parsed.site, Source.INDEX_FOLLOW, 0, 1, 0, 1)], now=NOW)
            row = store.get(url)
            assert row is not None
            row.state, row.status, row.held, row.fetched_at, row.interval_s = state, status, held, NOW, 86_400
            row.next_fetch = None if held is Held.RULES or status == 760 else LATER
            row.checksum = bytes([number]) * 16 if has_document else None
            store.record([Change(row, document=Document(url, title="A") if has_document else None)], now=NOW)
        store.set_meta(RULES_HASH, "of other rules")
        drain_all(Drain(store, index, FakeClock(NOW)))
    return demo


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(run: Run, command: str) -> None:
    help_text = run(command, "--help").succeeded().stdout
    assert f"scrapy {command} " in help_text
    assert "Exit status: 0" in " ".join(help_text.split())


# arguments -> a part of the sentence
WRONG = [
    (("plan",), "name one collection"),
    (("plan", "dmeo"), "no collection 'dmeo'"),
    (("deletions", "demo", "--approve", "--discard"), "--approve or --discard, not both"),
    (("deletions", "demo", "--reason", "mood"), "invalid choice: 'mood'"),
    (("recrawl", "demo"), "what to fetch again"),
    (("recrawl", "--errors"), "what to fetch again"),
    (("recrawl", "demo", "www.example.com/"), "is not a valid URL"),
    (("recrawl", "demo", "--prefix", "www.example.com/a"), "write what the URLs begin with"),
    (("forget", "demo"), "what to forget"),
    (("forget", "demo", f"{HOME}/", "www.example.com"), "is not a valid URL"),
    (("forget", "demo", "--prefix", ""), "write what the URLs begin with"),
    (("forget", "demo", "--status", "gone"), "'gone' is no status code"),
    (("clear-errors", "demo", "shop"), "name one collection"),
]


@pytest.mark.parametrize(("arguments", "sentence"), WRONG, ids=[" ".join(row[0]) for row in WRONG])
def test_wrong_use(demo: Project, run: Run, arguments: tuple[str, ...], sentence: str) -> None:
    before = states(demo)
    ended = run(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert sentence in ended.stderr
    assert states(demo) == before


# arguments -> exit status and a part of what is said
NEVER_CRAWLED = [
    (("plan", "new"), 0, "new knows no URL yet: nothing would change"),
    (("deletions", "new"), 0, "no deletion of new is held"),
    (("deletions", "new", "--approve"), 1, "no deletion of new is held"),
    (("recrawl", "new", f"{HOME}/"), 1, "new has never been crawled"),
    (("forget", "new", "--status", "404"), 1, "new has never been crawled"),
    (("clear-errors", "new"), 0, "0 URLs are pending again"),
]


@pytest.mark.parametrize(("arguments", "status", "reported"), NEVER_CRAWLED, ids=[" ".join(row[0]) for row in NEVER_CRAWLED])
def test_before_the_first_crawl(demo: Project, run: Run, arguments: tuple[str, ...], status: int, reported: str) -> None:
    demo.write({name.replace("demo", "new"): content for name, content in FILES.items()})
    ended = run(*arguments)
    assert ended.returncode == status
    assert reported in ended.stdout + ended.stderr
    assert not (demo.data / "new").exists()


# --- plan ---------------------------------------------------------------------------------------------------------


def test_the_plan(demo: Project, run: Run) -> None:
    demo.write({"demo/crawl.rules": f"forbid prefix {HOME}/slip\nforbid prefix {SHOP}/\n"})
    before = states(demo)
    foretold = json_of(run("plan", "demo", "--json"))
    assert {kind: foretold[kind] for kind in ("excluded", "kept", "returned", "deletions", "held", "indexed", "known")} == {
        "excluded": 2,
        "kept": 0,
        "returned": 0,
        "deletions": 2,
        "held": 0,
        "indexed": 5,
        "known": 7,
    }
    assert foretold["by_rule"] == {
        "crawl.rules:1": {"excluded": 1, "deletions": 1},
        "crawl.rules:2": {"excluded": 1, "deletions": 1},
    }
    assert foretold["rules"]["crawl.rules:2"] == f"forbid prefix {SHOP}/"
    assert foretold["by_host"]["shop.example.com"] == {"excluded": 1, "deletions": 1}
    shown = run("plan", "demo").succeeded().stdout
    assert "By rule                                       excluded   deletions" in shown
    assert f"  crawl.rules:2                                      1           1\n    forbid prefix {SHOP}/\n" in shown
    assert f"leave the index\n  {HOME}/slip\n  {SHOP}/\n" in shown
    assert max(map(len, shown.splitlines())) <= WIDTH
    assert states(demo) == before


def test_a_plan_whose_deletions_would_be_held(demo: Project, run: Run) -> None:
    demo.write(
        {
            "demo/settings.py": "CRAWLSPACE_MAX_DELETIONS = 1\n",
            "demo/crawl.rules": f"forbid prefix {SHOP}/\nforbid prefix {HOME}/slip\n",
        }
    )
    ended = run("plan", "demo")
    assert ended.returncode == 1
    assert "held: 2 deletions, more than 1 and more than 10 % of the index" in " ".join(ended.stdout.split())
    assert "scrapy deletions demo --approve" in " ".join(ended.stdout.split())
    assert json_of(run("plan", "demo", "--json"), status=1)["held"] == 2


def test_a_plan_after_a_change_of_fields_alone(demo: Project, run: Run) -> None:
    with opened(demo) as store:
        store.set_meta(METADATA_HASH, "")
    reported = "The fields that rules.xml adds to documents have changed: each page is fetched with an unconditional GET"
    assert reported not in run("plan", "demo").stdout
    rule = '<Rules><Rule><Path val="/nowhere"/><AddMeta name="department" value="sales"/></Rule></Rules>'
    demo.write({"demo/rules.xml": rule})
    assert reported in " ".join(run("plan", "demo").succeeded().stdout.split())
    assert json_of(run("plan", "demo", "--json"))["fields_changed"] is True


def test_a_plan_after_a_change_of_what_is_taken_from_pages(demo: Project, run: Run) -> None:
    reported = "A page may yield other links, another text or another status than before"
    assert reported not in run("plan", "demo").stdout
    assert json_of(run("plan", "demo", "--json"))["content_changed"] is False
    with opened(demo) as store:
        store.set_meta(CONTENT, "of other settings")
    assert reported in " ".join(run("plan", "demo").succeeded().stdout.split())
    assert json_of(run("plan", "demo", "--json"))["content_changed"] is True


def test_the_json_is_as_documented(demo: Project, run: Run) -> None:
    demo.write({"demo/crawl.rules": f"forbid prefix {SHOP}/\n"})
    for title, printed in (
        ("scrapy plan", run("plan", "demo", "--json")),
        ("scrapy deletions", run("deletions", "demo", "--json")),
    ):
        documented = json_in("docs/commands.md", title)[0]
        assert isinstance(documented, dict)
        assert list(documented) == list(json.loads(printed.stdout.splitlines()[0])), title


@IN_A_FILE
def test_a_plan_while_it_is_crawled(demo: Project, run: Run) -> None:
    with closing(SqliteStore.open_for_crawl(demo.data / "demo" / "state.db", sinks=(EMBEDDED,))):
        assert json_of(run("plan", "demo", "--json"))["returned"] == 2


def test_a_start_that_would_fail(demo: Project, run: Run) -> None:
    demo.write({"demo/crawl.rules": "forbid domain *\n"})
    ended = run("plan", "demo")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("no start URL is in the crawl space:\n  start_urls.txt:1: ")


# --- deletions and status -----------------------------------------------------------------------------------------


def test_held_deletions_are_listed(demo: Project, run: Run) -> None:
    listed = run("deletions", "demo").succeeded()
    assert [line.split()[0::4] for line in listed.stdout.splitlines()] == [
        ["host", f"{HOME}/down"],
        ["many", f"{HOME}/many"],
        ["rules", f"{HOME}/slip"],
    ]
    assert "3 deletions are held:" in listed.stderr
    assert [json.loads(line) for line in run("deletions", "demo", "--json", "--reason", "host").stdout.splitlines()] == [
        {"url": f"{HOME}/down", "reason": "host", "status": 503, "last_fetch": "2025-06-15T15:06:40Z"}
    ]
    held = run("urls", "demo", "--held").succeeded().stdout
    assert [line.split()[-1] for line in held.splitlines()] == [f"{HOME}/down", f"{HOME}/many", f"{HOME}/slip"]


def test_status_shows_held_deletions_and_other_rules(demo: Project, run: Run) -> None:
    numbers = json_of(run("status", "demo", "--json"))
    assert (numbers["index"]["held"], numbers["held"]) == (3, {"host": 1, "many": 1, "rules": 1, "folded": 0})
    shown = run("status", "demo").succeeded().stdout
    assert "  held                         3   deletions that wait for approval (scrapy deletions demo)\n" in shown
    assert "    host                       1   the site may be at fault" in shown
    changed = "the rules have changed since the last start: scrapy plan demo shows what that does\n"
    assert shown.endswith(f"\n\n{changed}")
    run("deletions", "demo", "--discard").succeeded()
    shown = run("status", "demo").succeeded().stdout
    assert "held" not in shown
    assert shown.endswith("the next start checks all known URLs again: scrapy plan demo shows what that does\n")
    demo.write({"demo/crawl.rules": "alow\n"})
    assert "scrapy plan" not in run("status", "demo").succeeded().stdout


def test_deletions_are_approved(demo: Project, run: Run) -> None:
    approved = run("deletions", "demo", "--approve", "--reason", "many").succeeded()
    assert (approved.stdout, approved.stderr) == ("1 deletion is approved\n", "the index is up to date\n")
    assert "/many" not in statuses(demo)
    assert indexed(demo) == ["/", "/", "/down", "/slip"]
    assert run("deletions", "demo", "--approve", "--host", "shop.example.com").returncode == 1
    assert json_of(run("deletions", "demo", "--approve", "--host", "www.example.com", "--json")) == {
        "approved": 2,
        "fetched_now": 0,
    }
    assert statuses(demo) == {"/": 200, "/gone": 404, "/slip": 760, f"{SHOP}/": 200, f"{SHOP}/out": 760}
    assert indexed(demo) == ["/", "/"]
    ended = run("deletions", "demo", "--approve")
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "no deletion of demo is held\n")


def test_deletions_are_discarded(demo: Project, run: Run) -> None:
    discarded = run("deletions", "demo", "--discard").succeeded()
    assert discarded.stdout == "3 deletions are discarded: the documents stay in the index\n"
    assert "held again by the next start, unless the rules are corrected" in discarded.stderr
    assert len(indexed(demo)) == 5
    assert run("deletions", "demo", "--discard", "--reason", "host").returncode == 1


# --- recrawl, forget, clear-errors --------------------------------------------------------------------------------


def due(demo: Project) -> list[str]:
    """What is due now, and what is pending."""
    return [url for url, state in states(demo).items() if state.state is State.PENDING or (state.next_fetch or LATER) < LATER]


def test_urls_are_crawled_again(demo: Project, run: Run) -> None:
    again = run("recrawl", "demo", "HTTP://www.example.com/#top", f"{HOME}/new").succeeded()
    assert (again.stdout, again.stderr) == ("2 URLs are due now, 1 of them new: the next crawl fetches them\n", "")
    assert due(demo) == ["/", "/new"]
    assert (states(demo)["/"].rules, states(demo)["/new"].source) == (0, Source.USER)
    assert run("recrawl", "demo", "--errors").succeeded().stdout.startswith("3 URLs are due now:")
    assert due(demo) == ["/", "/down", "/gone", "/many", "/new"]
    assert run("recrawl", "demo", "--prefix", f"{HOME}/x").succeeded().stdout.startswith("0 URLs are due now")
    shop = run("recrawl", "demo", "--host", "SHOP.example.com").succeeded()
    assert shop.stderr == "1 URL is outside the crawl space, and is not changed\n"


def test_urls_outside_the_crawl_space_are_refused(demo: Project, run: Run) -> None:
    demo.write({"demo/crawl.rules": f"forbid prefix {SHOP}/out\nforbid domain other.example\n"})
    ended = run("recrawl", "demo", f"{SHOP}/out", "http://other.example/", f"{HOME}/slip", f"{HOME}/")
    assert (ended.returncode, ended.stdout) == (1, "1 URL is due now: the next crawl fetches it\n")
    by_rule, new, held = ended.stderr.splitlines()
    prefix = f"a prefix rule forbids the URL (crawl.rules:1: forbid prefix {SHOP}/out)"
    assert by_rule == f"outside the crawl space: {SHOP}/out is refused: {prefix}"
    assert new.startswith(
        "outside the crawl space: http://other.example/ is refused: a domain rule forbids the host (crawl.rules:2: "
    )
    assert held.startswith(f"outside the crawl space: {HOME}/slip was refused when the rules were applied last; ")
    assert due(demo) == ["/"]


def test_a_known_url_that_the_rules_on_disk_refuse_is_refused_though_no_start_has_applied_them(demo: Project, run: Run) -> None:
    demo.write({"demo/crawl.rules": f"forbid prefix {HOME}/down\n"})
    ended = run("recrawl", "demo", f"{HOME}/down", f"{HOME}/")
    assert (ended.returncode, ended.stdout) == (1, "1 URL is due now: the next crawl fetches it\n")
    rule = f"a prefix rule forbids the URL (crawl.rules:1: forbid prefix {HOME}/down)"
    assert ended.stderr == f"outside the crawl space: {HOME}/down is refused: {rule}\n"
    assert due(demo) == ["/"]


def test_urls_are_forgotten(demo: Project, run: Run) -> None:
    forgotten = run("forget", "demo", f"{HOME}/down", f"{HOME}/nothing")
    assert forgotten.returncode == 1
    assert forgotten.stdout == "1 URL is forgotten; a link or start URL that leads to one brings it back\n"
    assert forgotten.stderr == f"the index is up to date\n{HOME}/nothing is not known\n"
    assert indexed(demo) == ["/", "/", "/many", "/slip"]
    assert run("forget", "demo", "--status", "4xx").succeeded().stdout.startswith("2 URLs")
    assert run("forget", "demo", "--prefix", f"{SHOP}/").succeeded().stdout.startswith("2 URLs")
    assert (indexed(demo), list(states(demo))) == (["/", "/slip"], ["/", "/slip"])


def test_errors_are_cleared(demo: Project, run: Run) -> None:
    assert demo.scrapy("clear-errors", "demo").succeeded().stdout == "1 URL is pending again, 2 with a document are due now\n"
    assert due(demo) == ["/down", "/gone", "/many"]
    assert (states(demo)["/gone"].state, states(demo)["/down"].held) == (State.PENDING, None)
    assert len(indexed(demo)) == 5


# --- beside a crawl, and from one crawl to the next ---------------------------------------------------------------


@IN_A_FILE
def test_beside_a_crawl(demo: Project, run: Run) -> None:
    with closing(SqliteStore.open_for_crawl(demo.data / "demo" / "state.db", sinks=(EMBEDDED,))) as store:
        fetched = store.lease("www.example.com:80", 1, now=LATER, until=LATER + 600)
        assert [state.url for state in fetched] == [f"{HOME}/"]
        (many,) = store.lease("www.example.com:80", 4, now=LATER, until=LATER + 600)[2:]
        assert many.url == f"{HOME}/many"
        version = store.version()
        left_alone = "1 URL is being fetched at this moment, and its outcome decides; run it again afterwards\n"
        approved = run("deletions", "demo", "--approve", "--reason", "many").succeeded()
        assert (approved.stdout, approved.stderr) == ("0 deletions are approved\n", left_alone)
        again = run("recrawl", "demo", f"{HOME}/", f"{SHOP}/").succeeded()
        assert (again.stdout, again.stderr) == ("1 URL is due now\n", left_alone)
        forgotten = run("forget", "demo", f"{HOME}/").succeeded()
        assert forgotten.stderr == "the running crawl updates the index\n"
        assert (store.get(f"{HOME}/"), store.backlog(EMBEDDED)) == (None, 1)
        assert store.version() != version


@IN_A_FILE  # four crawls
def test_a_mistake_in_the_rules_is_seen_and_fixed(demo: Project, run: Run) -> None:
    site = Site({"/": page("Home", text="h", links=["/a", "/b"]), "/a": page("A", text="a"), "/b": page("B", text="b")})
    with serve(site) as server:
        demo.write({"slip/start_urls.txt": server.url("/"), "slip/settings.py": f"{FAST}CRAWLSPACE_MAX_DELETIONS = 1\n"})
        demo.crawl("slip").succeeded()
        nothing = "the rules of slip are those of its last start: nothing would change\n"
        assert run("plan", "slip").succeeded().stdout == nothing
        demo.write({"slip/crawl.rules": f"forbid prefix {server.url('/a')}\nforbid prefix {server.url('/b')}\n"})
        assert run("plan", "slip").returncode == 1
        demo.crawl("slip").succeeded()
        run("deletions", "slip", "--discard").succeeded()
        demo.crawl("slip").succeeded()
        held = {path: state.held for path, state in states(demo, "slip").items()}
        assert held == {"/": None, "/a": Held.RULES, "/b": Held.RULES}
        run("deletions", "slip", "--discard").succeeded()
        demo.write({"slip/crawl.rules": ""})
        run("forget", "slip", server.url("/b")).succeeded()
        run("recrawl", "slip", server.url("/")).succeeded()
        assert indexed(demo, "slip") == ["/", "/a"]
        demo.crawl("slip").succeeded()
        assert {(state.held, state.status) for state in states(demo, "slip").values()} == {(None, 200)}
        assert indexed(demo, "slip") == ["/", "/a", "/b"]


def json_of(run: CompletedRun, *, status: int = 0) -> Any:
    assert run.returncode == status, run.stderr
    return json.loads(run.stdout)


@IN_A_FILE
def test_ctrl_c_while_a_start_judges_the_known_urls(demo: Project, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    demo.write({"demo/crawl.rules": "allow domain www.example.com\nforbid domain *\n"})
    monkeypatch.setattr(SqliteStore, "reclassify", stopped)
    ended = run("crawl", "demo")
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr == "stopped before anything was fetched; the next start continues from here\n"
    CrawlLock(demo.data / "demo" / "state.db").close()
