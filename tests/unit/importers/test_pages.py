"""The pages about FAST, IBM and Exalead: their examples are imported, and their tables name the options that are known."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from crawlspace.config.collection import Collection
from crawlspace.crawl.startup import build_space
from crawlspace.importers.exalead import collection as exalead
from crawlspace.importers.exalead.options import OPTIONS as EXALEAD_OPTIONS
from crawlspace.importers.fast import collection as fast
from crawlspace.importers.fast.options import OPTIONS as FAST_OPTIONS
from crawlspace.importers.fast.options import READERS, SECTIONS
from crawlspace.importers.fast.rules import LISTS
from crawlspace.importers.fast.xml import PARTS, read_fast_xml
from crawlspace.importers.files import ImportedCollection
from crawlspace.importers.ibm.collection import translate_ibm
from crawlspace.importers.ibm.folder import list_folder
from crawlspace.importers.ibm.options import BY_NAME, PROXY
from crawlspace.urls import parse
from tests.conftest import assert_same
from tests.unit.importers.exalead_imports import imported_from
from tests.unit.importers.imports import DEFAULTS, collection, findings
from tests.unit.test_docs import plain, rows, section, tables, text

FAST, IBM, EXALEAD = "docs/from-fast.md", "docs/from-ibm.md", "docs/from-exalead.md"
IBM_EXAMPLE = text(IBM).partition("\n## An example\n")[2].partition("\n## Options\n")[0]
"""Not by `section`: the comments in it look like headings."""
PLACES = ["start_uris", "start_uri_files", *LISTS, *READERS, *SECTIONS, *PARTS, *fast.OWN_SECTIONS]
KNOWN = [
    (FAST, [*FAST_OPTIONS, *fast.OWN_OPTIONS, *PLACES]),
    (IBM, [*BY_NAME, *PROXY]),
    (EXALEAD, [*EXALEAD_OPTIONS, *exalead.OWN_OPTIONS, *exalead.PARTS, "Fetcher"]),
]


@pytest.mark.parametrize(("page", "known"), KNOWN, ids=[row[0] for row in KNOWN])
def test_every_option_is_on_the_page(page: str, known: Iterable[str]) -> None:
    assert_same([name for row in rows(page, "Options") for name in re.findall("`([^`]+)`", row[0])], known)


def example(page: str, base: Path) -> ImportedCollection:
    """What is made of the file or folder that a page shows."""
    if page == IBM:
        folder = base / "col1.WEB1"
        folder.mkdir()
        for name, content in re.findall(r"`([\w.]+)`:\n\n```\n(.*?)```", IBM_EXAMPLE, re.DOTALL):
            (folder / name).write_text(content, encoding="utf-8")
        assert len([*folder.iterdir()]) == 5
        return translate_ibm(list_folder(folder), folder=folder.name, name="intranet", defaults=DEFAULTS)
    file = shown(page, r"```xml\n(.*?)```").encode()
    if page == EXALEAD:
        return imported_from(file, "news")
    [found] = read_fast_xml(file, file="news.xml")
    return fast.translate_fast(found, file="news.xml", folder=base, name="news", defaults=DEFAULTS)


def shown(page: str, pattern: str) -> str:
    found = re.search(pattern, text(page), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("page", [FAST, EXALEAD])
def test_the_rules_of_the_example_are_as_shown(page: str, tmp_path: Path) -> None:
    found = example(page, tmp_path)
    rules = shown(page, r"`crawl.rules` then has:\n\n((?: {4}[^\n]*\n)+)")
    assert re.sub("^ {4}", "", rules, flags=re.MULTILINE) == found.files["crawl.rules"].partition("\n\n")[2]
    if page == EXALEAD:
        assert (found.report.lost, findings("news", tmp_path, found)) == (0, [])


def test_the_report_and_settings_of_the_example_of_ibm_are_as_shown(tmp_path: Path) -> None:
    made = example(IBM, tmp_path)
    assert "".join(f"{line}\n" for line in made.report.lines()) == shown(IBM, r"<!-- example: report -->\n```\n(.*?)```")
    assert made.files["settings.py"].partition("\n\n")[2] == shown(IBM, r"<!-- example: settings -->\n```\n(.*?)```")


def decided(read: Collection, link: str) -> tuple[bool, bool, bool]:
    """Whether a URL is admitted, indexed and followed."""
    url = parse(plain(link))
    assert read.action_rules is not None
    actions = read.action_rules.evaluate(url)
    return build_space(read).decide_url(url, depth=1).admitted, actions.index, actions.follow


def test_the_example_of_fast_decides_as_shown(tmp_path: Path) -> None:
    read = collection("news", tmp_path, example(FAST, tmp_path))
    decisions = list(tables(section(FAST, "Include and exclude lists")))[1]
    assert len(decisions) == 7
    assert [[url, "admitted" if decided(read, url)[0] else "refused"] for url, _ in decisions] == decisions


def test_the_example_of_ibm_decides_as_shown(tmp_path: Path) -> None:
    read = collection("intranet", tmp_path, example(IBM, tmp_path))
    [decisions] = tables(IBM_EXAMPLE)
    assert len(decisions) == 16
    for row in decisions:
        admitted, *flags = decided(read, row[0])
        words = ["yes" if flag else "no" for flag in flags] if admitted else ["", ""]
        assert [row[0], "admitted" if admitted else "refused", *words] == row


def test_the_example_of_exalead_decides_as_shown(tmp_path: Path) -> None:
    read = collection("news", tmp_path, example(EXALEAD, tmp_path))
    decisions = next(iter(tables(section(EXALEAD, "Rules"))))
    assert len(decisions) == 10
    for url, answer in decisions:
        admitted, index, follow = decided(read, url)
        assert (", ".join(["index"] * index + ["follow"] * follow) if admitted else "refused") == answer, url
