"""No output has passwords or characters that steer terminals, and no file that a crawl leaves has a secret."""

from __future__ import annotations

import base64
import json
import re
from contextlib import closing
from urllib.parse import quote

import pytest

from crawlspace.clock import FakeClock
from crawlspace.config.sinks import EMBEDDED
from crawlspace.decision import Reason
from crawlspace.document import Document
from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.index.outbox import Drain
from crawlspace.model import NewUrl, Source, State
from crawlspace.state.changes import Change
from crawlspace.state.refused_links import RefusedLink
from crawlspace.state.sqlite.store import SqliteStore
from crawlspace.urls import parse
from tests.conftest import MakeProject, Project
from tests.draining import drain_all
from tests.integration.conftest import Run
from tests.planted.scene import SENT, planted
from tests.planted.search import count
from tests.quick import some

NOW = 1_750_000_000
HOME = "http://www.example.com/"
STEERING = "\x1b]0;title\x07 \x9b31m \u202egnirts\u2066 \0 \u200f"
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
MALFORMED = ("http://user:SEC@RET@h/", "http:user:SECRET@h/", "user:SECRET@h", "http://user:SEC RET@h/")
FILES = {
    "demo/start_urls.txt": HOME,
    "demo/crawl.rules": "allow domain www.example.com\nforbid domain *\n",
    "demo/settings.py": "",
}


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return project(FILES)


def fill(demo: Project) -> None:
    """One document whose page has such characters in all its texts."""
    folder = demo.data / "demo"
    folder.mkdir(parents=True)
    url = parse(HOME)
    with closing(SqliteStore(folder / "state.db", sinks=(EMBEDDED,))) as store:
        store.discover([NewUrl(url.key, url.text, url.site, Source.INDEX_FOLLOW, 0, 0, 0, 1)], now=NOW)
        state = store.get(HOME)
        assert state is not None
        document = Document(HOME, title=f"Holiday {STEERING}", text=f"Ask for a {STEERING} holiday", fields={"f": STEERING})
        state.state, state.status, state.fetched_at, state.checksum = State.DONE, 200, NOW, bytes(16)
        state.refused = "d9m9"
        sample = [
            RefusedLink(reason, host, text, state.id, f"{STEERING}:1")
            for reason, host in ((Reason.MALFORMED, ""), (Reason.DOMAIN, STEERING))
            for text in (*MALFORMED, STEERING, f"http://{STEERING}/", "http://other.example/?password=SECRET", f"{STEERING}…")
        ]
        store.record([Change(state, document=document, links=[url.key], refused_links=sample)], now=NOW)
        with closing(EmbeddedIndex(folder / "index.db")) as index:
            drain_all(Drain(store, index, FakeClock(NOW)))


LOOKING: list[tuple[str, ...]] = [
    ("lint", "demo"),
    ("lint", "demo", "--json"),
    ("lint", "--all"),
    ("plan", "demo"),
    ("status", "demo"),
    ("urls", "demo"),
    ("urls", "demo", "--host", STEERING),
    ("urls", "demo", "--with-referrers"),
    ("refused", "demo"),
    ("refused", "demo", "--json"),
    ("refused", "demo", "--host", STEERING),
    ("links", "demo", HOME),
    ("links", "demo", HOME, "--json"),
    ("search", "demo", "holiday"),
    ("search", "demo", "holiday", "--json"),
    ("search", "demo", f'-"{STEERING}"'),
]
ASKING: list[tuple[str, ...]] = [
    *((command, "demo", url) for command in ("explain", "links", "recrawl", "forget") for url in (*MALFORMED, f"http://h/{STEERING}", STEERING)),
    *((command, "demo", url, "--json") for command in ("explain", "links") for url in (*MALFORMED, f"http://h/{STEERING}")),
    *(("explain", "demo", HOME, option, value) for option in ("--address", "--from", "--mime") for value in MALFORMED),
    *(("recrawl", "demo", "--prefix", url) for url in MALFORMED),
    *(("startcollection", "new", url) for url in (*MALFORMED, STEERING)),
    ("startcollection", STEERING, HOME),
    ("move-store", "demo", "file", "redi://:SECRET@h/"),
    ("status", STEERING),
    ("deletions", "demo", "user:SECRET@h"),
]  # fmt: skip


def test_no_command_prints_arguments_or_results_unescaped(demo: Project, run: Run) -> None:
    fill(demo)
    assert_fit(run, [*LOOKING, *ASKING])


def everywhere(line: str) -> dict[str, str]:
    """Files with a line that is wrong in each of them."""
    value = line.replace("\0", "").replace("\x1b", "").replace("\x07", "")
    return {
        "start_urls.txt": f"{line}\n",
        "crawl.rules": f"allow {line}\nforbid domain {line}\nallow prefix {line}\nforbid address {line} {line}\nallow domain x {line}\n",
        "rules.xml": f'<Rules><Rule name="{value}"><Domain val="{value}" {value[-1]}="x"/><Url val="{value}"/><Index/></Rule></Rules>',
        "global.rules": f"{line}\n",
        "settings.py": f"CRAWLSPACE_STORE_URL = {line!r}\nCRAWLSPACE_REFRESH_MIN = {line!r}\nCRAWLSPACE_SITES = {{{line!r}: {line!r}}}\n"
        f"CRAWLSPACE_TIMEZONE = {line!r}\nDEPTH_LIMIT = {line!r}\nCRAWLSPACE_X = {line!r}\n",
    }


@pytest.mark.full
@pytest.mark.parametrize("line", some([MALFORMED[0], STEERING, *MALFORMED[1:], "redi://:SECRET@h/"], 2))
def test_no_command_prints_what_is_in_files_as_it_is(demo: Project, run: Run, line: str) -> None:
    fill(demo)
    demo.store_url = line if line.startswith("redi") else ""
    for name, content in everywhere(line).items():
        (demo.collections / "demo" / name).write_text(content, encoding="utf-8", newline="")
        assert_fit(run, [*LOOKING, ("crawl", "demo")])


def assert_fit(run: Run, commands: list[tuple[str, ...]]) -> None:
    for arguments in commands:
        done = run(*arguments)
        for text in (done.stdout, done.stderr):
            assert not UNSEEN.search(text), (arguments, text)
            assert not re.search("SEC|RET|SECRET", text), (arguments, text)
            assert "Traceback" not in text, (arguments, text)
        if "--json" in arguments and done.stdout:
            json.loads(done.stdout)


def test_json_loses_nothing(demo: Project, run: Run) -> None:
    fill(demo)
    (hit,) = json.loads(run("search", "demo", "holiday", "--json").stdout)["hits"]
    assert hit["fields"] == {"f": STEERING}


def test_lint_of_a_line_of_a_megabyte_is_short(demo: Project, run: Run) -> None:
    for name, content in everywhere("x" * 1_000_000).items():
        if name != "settings.py":
            (demo.collections / "demo" / name).write_text(content, encoding="utf-8")
    done = run("lint", "demo")
    assert done.returncode == 1
    assert len(done.stdout) < 20_000


def test_a_file_with_many_mistakes(demo: Project, run: Run) -> None:
    (demo.collections / "demo" / "crawl.rules").write_text("alow domain x\n" * 1_000)
    for command in ("lint", "plan"):
        done = run(command, "demo")
        assert (done.stdout + done.stderr).splitlines()[-1] == "crawl.rules: and 900 more"


def test_a_store_url_in_the_environment(demo: Project, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE", "redis://:SECRET@127.0.0.1:1/0")
    demo.store_url = "env:STORE"
    done = run("status", "demo")
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr
    assert "SECRET" not in done.stderr


SECRET = "a secret/+?é"
WRITTEN = (
    SECRET,
    quote(SECRET),
    quote(SECRET, safe=""),
    json.dumps({"a": SECRET}),
    *(base64.b64encode(f"{'u' * n}:{SECRET}:".encode()).decode() for n in range(3)),
    base64.urlsafe_b64encode(SECRET.encode()).decode(),
    base64.b64encode(f"user:{quote(SECRET, safe='')}".encode()).decode(),
)


@pytest.mark.parametrize("written", WRITTEN)
def test_a_secret_is_found_however_it_is_written(written: str) -> None:
    assert count({"log": [f"DEBUG: {written} …".encode()]}, {"it": SECRET, "another": "b" + SECRET}) == {("log", "it"): 1}


@pytest.mark.full
def test_none_is_found(project: MakeProject) -> None:
    with planted(project({}), shares=False, is_brief=True) as scene:
        assert scene.unwanted() == {}
        assert scene.used >= SENT
        assert scene.found()["data folder", "link"], "the archive is searched"
        assert {place for place, contents in scene.places.items() if any(contents)} >= {"log", "commands", "data folder", "sinks"}
