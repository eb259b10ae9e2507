"""The page about Exalead says what the importer does: its example is imported, and its tables name the options that are known."""

from __future__ import annotations

import re
from pathlib import Path

from crawlspace.crawl.startup import build_space
from crawlspace.importers.exalead.collection import OWN_OPTIONS, PARTS
from crawlspace.importers.exalead.options import OPTIONS
from crawlspace.urls import parse
from tests.conftest import assert_same
from tests.unit.importers.exalead_imports import collection, findings, imported_from
from tests.unit.test_docs import plain, rows, section, tables, text

PAGE = "docs/from-exalead.md"


def test_the_example_is_as_shown(tmp_path: Path) -> None:
    example = re.search(r"```xml\n(.*?)```", text(PAGE), re.DOTALL)
    assert example is not None
    found = imported_from(example[1].encode(), "news")
    shown = re.search(r"`crawl.rules` then has:\n\n((?: {4}.*\n)+)", text(PAGE))
    assert shown is not None
    assert re.sub("^ {4}", "", shown[1], flags=re.MULTILINE) == found.files["crawl.rules"].partition("\n\n")[2]
    assert (found.report.lost, findings("news", tmp_path, found)) == (0, [])
    read = collection("news", tmp_path, found)
    space = build_space(read)
    decisions = next(iter(tables(section(PAGE, "Rules"))))
    assert len(decisions) == 10
    for url, answer in decisions:
        assert read.action_rules is not None
        actions = read.action_rules.evaluate(parse(plain(url)))
        flags = ", ".join(["index"] * actions.index + ["follow"] * actions.follow)
        assert (flags if space.decide_url(parse(plain(url))).admitted else "refused") == answer, url


def test_every_option_is_on_the_page() -> None:
    documented = [name for row in rows(PAGE, "Options") for name in re.findall("`([^`]+)`", row[0])]
    assert_same(documented, [*OPTIONS, *OWN_OPTIONS, *PARTS, "Fetcher"])
