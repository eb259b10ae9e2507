"""Alert rules and dashboard: what they read is exported, and each alert is explained and tested."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import yaml  # type: ignore[import-untyped]

from crawlspace.runtime.monitoring.metrics import OF_CRAWL, OF_STORES, PREFIX
from tests.command_line import ROOT
from tests.conftest import assert_same

FOLDER = ROOT / "examples" / "monitoring"
NAME = re.compile(rf"\b{PREFIX}\w+")
SELECTED = re.compile(rf"\b({PREFIX}\w+){{([^}}]*)}}")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
METRICS = {one.name: one for one in (*OF_CRAWL, *OF_STORES)}
BUCKETS = {f"{one.name}_{part}" for one in OF_CRAWL if one.kind == "histogram" for part in ("bucket", "count", "sum")}
SECTION_PARTS = ("**Means**: ", "**Causes**: ", "**Look**: ", "**Do**: ")


def alerts() -> list[dict[str, str]]:
    rules = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))
    return [rule for group in rules["groups"] for rule in group["rules"]]


def queries() -> Iterator[tuple[str, str]]:
    """The place and the text of each query."""
    for alert in alerts():
        yield alert["alert"], alert["expr"]
    for panel in json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def test_what_is_read_is_exported() -> None:
    wrong = [(place, name) for place, query in queries() for name in NAME.findall(query) if name not in {*METRICS, *BUCKETS}]
    assert wrong == []


def test_labels_that_are_selected_by_are_there() -> None:
    wrong = [
        (place, name, label)
        for place, query in queries()
        for name, selected in SELECTED.findall(query)
        for label in LABEL.findall(selected)
        if name in METRICS and label not in ("collection", *METRICS[name].labels)
    ]
    assert wrong == []


def test_the_dashboard_shows_every_metric() -> None:
    text = (FOLDER / "dashboard.json").read_text(encoding="utf-8")
    assert_same({name.removesuffix("_bucket") for name in NAME.findall(text)}, [*METRICS])


def test_each_alert_is_explained() -> None:
    page = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
    sections = {section.partition("\n")[0]: section for section in page.partition("\n## Alerts\n")[2].split("\n### ")[1:]}
    assert_same([*sections], (alert["alert"] for alert in alerts()))
    lacking = [(name, part) for name, section in sections.items() for part in SECTION_PARTS if f"\n{part}" not in section]
    assert lacking == []
    links = {alert["alert"]: alert["annotations"]["runbook_url"] for alert in alerts()}  # type: ignore[index]
    assert links == {name: f"docs/runbook.md#{name.lower()}" for name in sections}


def test_each_alert_is_tested() -> None:
    tests = yaml.safe_load((FOLDER / "alerts_test.yml").read_text(encoding="utf-8"))["tests"]
    tested = {test["name"] for test in tests if "promql_expr_test" in test}
    assert_same(tested, (alert["alert"] for alert in alerts()))
