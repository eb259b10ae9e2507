"""The page about FAST says what the importer does: its example is imported, and its tables name the options that are known."""

from __future__ import annotations

import re
from pathlib import Path

from crawlspace.importers.fast.collection import OWN_OPTIONS, translate_fast
from crawlspace.importers.fast.options import OPTIONS, READERS, SECTIONS
from crawlspace.importers.fast.rules import LISTS
from crawlspace.importers.fast.xml import PARTS, read_fast_xml
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.parser import parse_rules_xml
from tests.conftest import assert_same
from tests.unit.importers.fast_imports import DEFAULTS
from tests.unit.test_docs import plain, rows, section, tables, text

PAGE = "docs/from-fast.md"


def test_the_example_is_as_shown(tmp_path: Path) -> None:
    example = re.search(r"```xml\n(.*?)```", text(PAGE), re.DOTALL)
    assert example is not None
    [found] = read_fast_xml(example[1].encode(), file="news.xml")
    imported = translate_fast(found, file="news.xml", folder=tmp_path, name="news", defaults=DEFAULTS)
    shown = re.search(r"`crawl.rules` then has:\n\n((?: {4}.*\n)+)", text(PAGE))
    assert shown is not None
    assert re.sub("^ {4}", "", shown[1], flags=re.MULTILINE) == imported.files["crawl.rules"].partition("\n\n")[2]
    actions = CompiledActions(
        parse_rules_xml(imported.files["rules.xml"].encode(), file=""), accept=True, index=True, follow=True
    )
    space = CrawlSpace(parse_crawl_rules(imported.files["crawl.rules"], file=""), Limits(), [], actions=actions)
    decisions = list(tables(section(PAGE, "Include and exclude lists")))[1]
    assert len(decisions) == 7
    assert [[url, "admitted" if space.decide(plain(url))[1].admitted else "refused"] for url, _ in decisions] == decisions


def test_every_option_is_on_the_page() -> None:
    documented = [name for row in rows(PAGE, "Options") for name in re.findall("`([^`]+)`", row[0])]
    known = [*OPTIONS, *OWN_OPTIONS, "start_uris", "start_uri_files", *LISTS, *READERS, *SECTIONS, *PARTS, "passwd", "crawlmode"]
    assert_same(documented, known)
