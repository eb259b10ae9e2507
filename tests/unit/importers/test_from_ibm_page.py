"""The page about IBM says what the importer does: its example is imported, and its tables name the options that are known."""

from __future__ import annotations

import re
from pathlib import Path

from crawlspace.config.collection import load_collection, read_settings_file
from crawlspace.crawl.startup import build_space
from crawlspace.importers.files import ImportedCollection, write_files
from crawlspace.importers.ibm.collection import translate_ibm
from crawlspace.importers.ibm.folder import list_folder
from crawlspace.importers.ibm.options import BY_NAME, PROXY
from crawlspace.urls import parse
from tests.conftest import assert_same
from tests.unit.importers.ibm_imports import DEFAULTS
from tests.unit.test_docs import plain, rows, tables, text

PAGE = "docs/from-ibm.md"
EXAMPLE = text(PAGE).partition("\n## An example\n")[2].partition("\n## Options\n")[0]
"""Not by `section`: the comments in it look like headings."""


def example(base: Path) -> ImportedCollection:
    folder = base / "col1.WEB1"
    folder.mkdir()
    for name, content in re.findall(r"`([\w.]+)`:\n\n```\n(.*?)```", EXAMPLE, re.DOTALL):
        (folder / name).write_text(content, encoding="utf-8")
    assert len([*folder.iterdir()]) == 5
    return translate_ibm(list_folder(folder), folder=folder.name, name="intranet", defaults=DEFAULTS)


def shown(what: str) -> str:
    found = re.search(rf"<!-- example: {what} -->\n```\n(.*?)```", text(PAGE), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_is_as_shown(tmp_path: Path) -> None:
    made = example(tmp_path)
    assert "".join(f"{line}\n" for line in made.report.lines()) == shown("report")
    assert made.files["settings.py"].partition("\n\n")[2] == shown("settings")


def test_the_example_decides_as_shown(tmp_path: Path) -> None:
    write_files(tmp_path / "intranet", example(tmp_path).files)
    settings = {**DEFAULTS, **read_settings_file(tmp_path / "intranet"), "CRAWLSPACE_COLLECTIONS_DIR": str(tmp_path)}
    read = load_collection("intranet", settings)
    space = build_space(read)
    assert read.action_rules is not None
    [decisions] = tables(EXAMPLE)
    assert len(decisions) == 16
    for url, answer, index, follow in decisions:
        admitted = space.decide_url(parse(plain(url)), depth=1).admitted
        actions = read.action_rules.evaluate(parse(plain(url)))
        flags = ["yes" if flag else "no" for flag in (actions.index, actions.follow)] if admitted else ["", ""]
        assert [url, "admitted" if admitted else "refused", *flags] == [url, answer, index, follow]


def test_every_option_is_on_the_page() -> None:
    documented = [name for row in rows(PAGE, "Options") for name in re.findall("`([^`]+)`", row[0])]
    assert_same(documented, [*BY_NAME, *PROXY])
