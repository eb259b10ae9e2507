"""The page about FDSE: its example is a collection with the decisions shown, its pending file goes in and out, no option is missing."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from crawlspace import settings as defaults
from crawlspace.admin.pending.export import pending_lines
from crawlspace.admin.pending.importing import PendingImport
from crawlspace.admin.pending.lines import read_lines
from crawlspace.admin.url_changes import UrlChanges
from crawlspace.clock import FakeClock
from crawlspace.config.collection import Collection, load_collection
from crawlspace.crawl.admission import Admission, CandidateChecker
from crawlspace.crawl.startup import build_space
from tests.conftest import assert_same
from tests.contract.memory.store import MemoryStore
from tests.unit.test_docs import plain, rows, section, tables, text

PAGE = "docs/from-fdse.md"
NOW = 1_750_000_000

# FDSE's settings of the crawler, by the names of version 2.0.0.0073
SETTINGS = [
    "Max Characters: URL",
    "Crawler: Follow Query Strings",
    "Crawler: Ignore Links To",
    "Crawler: Follow Offsite Links",
    "Crawler: Rogue",
    "Crawler: Days Til Refresh",
    "Crawler: Max Redirects",
    "Crawler: Max Pages Per Batch",
    "Crawler: Minimum Whitespace",
    "Crawler: User Agent",
    "Crawler: Use Cookies",
    "Network Timeout",
    "Refresh Time Delay",
    "Minimum Page Size",
    "Max Characters: File",
    "Max Characters: Title",
    "Max Characters: Description",
    "Max Characters: Auto Description",
    "Max Characters: Keywords",
    "Max Characters: Text",
    "Max Index File Size",
    "Timeout",
    "Time Interval Between Restarts",
    "Parse FDSE-Index-As Header",
]
# section of the page -> what the first column of its tables must have
OPTIONS = {
    "Links": ["`A`", "`AREA`", "`FRAME`", "`IFRAME`", "`BASE`", "`parse_html_ex`", "Index Entire Site", "rewrite rules"],
    "Robots": ["robots.txt", "`Disallow`", "`noindex`", "`nofollow`", "`none`"],
    "Crawl and refresh": ["redirects", "Rebuild", "Revisit Old", "META noindex"],
    "Filter rules": [
        *("Always Allow", "Deny", "Require Approval", "Promote", "No Update on Redirect", "Index, Nofollow", "Follow, Noindex"),
        *("the host", "the URL", "document text", "n hits", "unless", "named realms", "Admin Pages"),
    ],
    "Realms and commands": [
        *("open", "file-fed", "by crawler", "by file system", "runtime", "filtered"),
        *(
            "`listrules`",
            "`setrule NAME VALUE`",
            "`listrealms`",
            "`rebuild REALM`",
            "`add_url REALM URL`",
            "`add_site REALM URL`",
        ),
        *("`create_realm`", "`delete_realm REALM`"),
    ],
    "Words": [
        "realm",
        "search.pending.txt",
        "state 0",
        "state 2",
        "a time",
        "Clear Error Cache",
        "Index Remote Web Page",
        "Index Entire Site",
    ],
}


def test_every_setting_is_on_the_page() -> None:
    documented = rows(PAGE, "Settings")
    assert_same([plain(name) for name, _, _ in documented], SETTINGS)
    ours = re.compile(r"`[A-Z][A-Z_]+[`( ]|no counterpart")
    assert [name for name, _, here in documented if not ours.search(here)] == []


def test_the_settings_named_are_there() -> None:
    spans = re.findall(r"`(CRAWLSPACE_[A-Z_]+)", text(PAGE))
    assert sorted(name for name in set(spans) if not hasattr(defaults, name)) == []


@pytest.mark.parametrize("title", OPTIONS)
def test_every_option_is_on_the_page(title: str) -> None:
    column = "\n".join(row[0] for row in rows(PAGE, title))
    assert [option for option in OPTIONS[title] if option not in column] == []
    assert all(all(row) for row in rows(PAGE, title)), "what became of it"


@pytest.fixture
def handbook(tmp_path: Path) -> Collection:
    """The collection of the example."""
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "start_urls.txt").write_text("http://www.example.com/docs/\n")
    (folder / "rules.xml").write_text(block("xml"))
    own: dict[str, object] = {}
    exec(block("python"), {}, own)
    names = {name: value for name, value in vars(defaults).items() if name.isupper()}
    return load_collection("handbook", {**names, **own, "CRAWLSPACE_COLLECTIONS_DIR": str(tmp_path)})


def test_the_decisions_of_the_example(handbook: Collection) -> None:
    space = build_space(handbook)
    [shown] = tables(section(PAGE, "An example"))
    assert len(shown) == 8
    answers = []
    for url, _ in shown:
        decision = space.decide(plain(url))[1]
        indexed = "admitted" if decision.index else "admitted, not indexed"
        answers.append([url, indexed if decision.admitted else f"refused: {decision.reason}"])
    assert answers == shown


def test_the_pending_file_of_the_example(handbook: Collection) -> None:
    file = "".join(f"{line}\n" for line in indented("`search.pending.txt` of the realm"))
    store = MemoryStore()
    discovery = CandidateChecker(build_space(handbook))
    importing = PendingImport(
        store, Admission(handbook, discovery, store), discovery, collection="handbook", file="search.pending.txt", now=NOW
    )
    importing.add(list(read_lines(io.BytesIO(file.encode()), "search.pending.txt", now=NOW, fault=pytest.fail)))
    counts = importing.counts
    _, *printed, numbers = indented("imported before the first crawl")
    assert printed == [*counts.notes, *counts.sentences()]
    assert [int(number) for number in re.findall(r"(\d+) (?:lines|URLs|known|as|kept)", numbers)] == [
        *(counts.lines, counts.entered, counts.changed, counts.unchanged, counts.left_out)
    ]
    _, *exported = indented("The export is as the file was")
    assert list(pending_lines(store.urls(), store, collection="handbook")) == exported
    made = UrlChanges(store, clock=FakeClock(NOW)).clear_errors()
    assert (
        indented("waits for a person")[1]
        == f"{made.renewed} URL is pending again, {made.changed - made.renewed} with a document are due now"
    )


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", section(PAGE, "An example"), re.DOTALL)
    assert found is not None
    return found[1]


def indented(before: str) -> list[str]:
    """The lines of the indented block behind a sentence with these words."""
    behind = text(PAGE).partition(before)[2]
    found = re.search(r"\n\n((?: {4}.*\n)+)", behind)
    assert found is not None
    return [line[4:] for line in found[1].splitlines()]
