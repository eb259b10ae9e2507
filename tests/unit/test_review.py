"""What `scrapy lint` finds in a collection's files: all of it at once, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace import settings as defaults
from crawlspace.config import Collection, read_settings_file
from crawlspace.errors import ConfigError
from crawlspace.model import NewUrl, Source, State
from crawlspace.review import across, findings_of, review
from crawlspace.rules.lint import Finding
from crawlspace.state.memory import MemoryStore
from crawlspace.state.store import Change
from crawlspace.urls import parse

START = "http://www.example.com/\n"
RULES = "allow domain www.example.com\nforbid domain *\n"

# files -> place, level and code of each finding
FINDINGS: list[tuple[str, dict[str, str], list[str]]] = [
    ("nothing", {"start_urls.txt": START, "crawl.rules": RULES}, []),
    (
        "mistakes in both files",
        {"start_urls.txt": "www.example.com\n", "crawl.rules": "alow domain a\nforbid domain\n"},
        ["crawl.rules:1:1 error syntax", "crawl.rules:2:14 error syntax", "start_urls.txt:1:1 error syntax"],
    ),
    (
        "settings",
        {
            "start_urls.txt": START,
            "settings.py": "A = 1\n\nCRAWLSPACE_MAX_PATH_DEEPTH = 3\nDEPTH_LIMIT = -1\nCRAWLSPACE_QQ = 1\n",
        },
        ["settings.py:3:1 error setting", "settings.py:4:1 error setting", "settings.py:5:1 error setting"],
    ),
    ("no start URL", {"crawl.rules": RULES}, ["demo:0:0 error collection"]),
    (
        "a start URL outside the rules",
        {"start_urls.txt": START + "# here\nhttp://other.example/\n", "crawl.rules": RULES},
        ["start_urls.txt:3:1 warning start-url-refused"],
    ),
    (
        "rules",
        {"start_urls.txt": START, "crawl.rules": "allow domain *\nallow domain www.example.com\n"},
        ["crawl.rules:2:14 warning never-applies", "crawl.rules:2:14 warning no-final-forbid"],
    ),
]


@pytest.mark.parametrize(("files", "findings"), [row[1:] for row in FINDINGS], ids=[row[0] for row in FINDINGS])
def test_findings(tmp_path: Path, files: dict[str, str], findings: list[str]) -> None:
    assert found_in(tmp_path, files) == findings


def test_address_rules_with_a_proxy(tmp_path: Path) -> None:
    files = {"start_urls.txt": START, "crawl.rules": RULES + "forbid address 0.0.0.0/0\nforbid address ::/0\n"}
    assert found_in(tmp_path, files) == []
    assert found_in(tmp_path, files, proxy=True) == ["crawl.rules:3:16 warning addresses-with-proxy"]


def test_a_settings_file_that_does_not_run(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text("import os\nDEPTH_LIMIT = nothing\n")
    with pytest.raises(ConfigError) as caught:
        read_settings_file(tmp_path)
    (finding,) = findings_of(caught.value, tmp_path)
    assert place_of(finding) == "settings.py:2:1 error setting"
    assert finding.message.startswith("NameError:")


# what is known: URL and whether it is crawled -> findings
KNOWN: list[tuple[dict[str, bool], list[str]]] = [
    ({"http://www.example.com/": True, "http://docs.example.com/": True}, []),
    ({"http://www.example.com/": True}, ["crawl.rules:2:14 warning no-known-url"]),
    ({"http://www.example.com/": True, "http://www.example.com/a": False}, []),
    ({}, []),
]


@pytest.mark.parametrize(("known", "findings"), KNOWN)
def test_a_rule_without_effect_is_found_once_all_is_crawled(tmp_path: Path, known: dict[str, bool], findings: list[str]) -> None:
    store = MemoryStore()
    for url, crawled in known.items():
        parsed = parse(url)
        store.discover([NewUrl(parsed.key, url, parsed.site, Source.INDEX_FOLLOW, 0, 1, 0, 1)], now=1)
        state = store.get(url)
        assert state is not None
        if crawled:
            state.state, state.status = State.DONE, 200
            store.record([Change(state)], now=1)
    rules = "allow domain www.example.com\nallow domain docs.example.com\nforbid domain *\n"
    assert found_in(tmp_path, {"start_urls.txt": START, "crawl.rules": rules}, store=store) == findings


def test_two_collections_with_one_start_url(tmp_path: Path) -> None:
    collections = []
    for name, starts in (("one", START), ("two", START + "http://other.example/\n"), ("three", "http://third.example/\n")):
        _, collection = reviewed(tmp_path, name, {"start_urls.txt": starts})
        assert collection is not None
        collections.append(collection)
    assert [place_of(finding) for finding in across(collections)] == ["two/start_urls.txt:1:1 warning start-url-twice"]


def found_in(tmp_path: Path, files: dict[str, str], *, store: MemoryStore | None = None, proxy: bool = False) -> list[str]:
    return [place_of(finding) for finding in reviewed(tmp_path, "demo", files, store=store, proxy=proxy)[0]]


def reviewed(
    tmp_path: Path, name: str, files: dict[str, str], *, store: MemoryStore | None = None, proxy: bool = False
) -> tuple[list[Finding], Collection | None]:
    folder = tmp_path / name
    folder.mkdir(exist_ok=True)
    for file, content in files.items():
        (folder / file).write_text(content)
    settings = {key: value for key, value in vars(defaults).items() if key.isupper()}
    settings.update(CRAWLSPACE_COLLECTIONS_DIR=str(tmp_path), **read_settings_file(folder))
    return review(name, folder, settings, store=store, proxy=proxy)


def place_of(finding: Finding) -> str:
    return f"{finding.file}:{finding.line}:{finding.column} {finding.level} {finding.code}"
