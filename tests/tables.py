"""The tables that tests run on, written into the documentation, so that both say the same.

python -m tests.tables          # writes them again
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import partial

from crawlspace.content.page import Page
from crawlspace.content_settings import ArchiveSection, ContentSection, FileSettings
from crawlspace.decision import Decision, RuleRef, Step
from crawlspace.document import Document, IndexOrder, Part
from crawlspace.index.sink import Options, Sent, Sink
from crawlspace.outcome import OutcomeKind
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.runtime.components.scrapy_effects import SPIDER_ATTRIBUTES, WITH_DIFFERENCES, WITHOUT_EFFECT
from crawlspace.runtime.components.spider import FrontierSpider
from crawlspace.runtime.monitoring.metrics import OF_CRAWL, OF_STORES, Metric
from crawlspace.settings import (
    BoundsSection,
    BrowserSettings,
    DelaysSection,
    DeletionsSection,
    FinishSection,
    IndexSection,
    LifecycleSection,
    MonitoringSettings,
    PathsSection,
    RenderingSection,
    RequestsSection,
    RulesXmlSection,
    RunsSection,
    ScrapySection,
    SitesSection,
    SpaceLimitsSection,
    SpellingsSection,
    UrlBoundsSection,
)
from crawlspace.urls import Url
from tests.command_line import ROOT
from tests.integration.test_scrapy_components import WORKS
from tests.integration.test_tutorials import ADAPTIONS
from tests.integration.test_two_collections import CASES
from tests.python_interfaces import interface_rows
from tests.scale_tables import figure_rows, projection_rows
from tests.setting_tables import setting_rows
from tests.unit.runtime.http.test_failures import TABLE as FAILURES
from tests.unit.state.test_lifecycle import DAY, FORGOTTEN
from tests.unit.state.test_lifecycle import TABLE as OUTCOMES

Rows = Iterator[Sequence[str]]
_KINDS = {OutcomeKind.GONE: "permanent", OutcomeKind.FAILED: "temporary", OutcomeKind.EXCLUDED: "kept out"}


def outcomes() -> Rows:
    """What becomes of a URL."""
    yield ("what came", "state and status after", "fetched again after", "order to the index", "deletion held")
    for what, _, _, _, after, wait, order, held in OUTCOMES:
        state = FORGOTTEN if isinstance(after, str) else f"{after[0].label}, {int(after[1])}"
        yield (what, state, _after(wait, state), order.value if order else "none", f"`{held.label}`" if held else "")


def failures() -> Rows:
    """What a failed download counts as."""
    yield ("what happened", "code", "kind", "may be the host's")
    for what, _, _, status, kind, may_be_the_hosts in FAILURES:
        yield (what, str(int(status)), _KINDS[kind], "yes" if may_be_the_hosts else "")


def global_space() -> Rows:
    """What becomes of a known URL that the rules now exclude."""
    yield ("a known URL is now excluded by", "status", "its document")
    for what, _, _, status, stays in CASES:
        yield (what, str(status), "stays: another crawler has it" if stays else "leaves the index")


def metric_rows(metrics: Sequence[Metric]) -> Rows:
    """The metrics of one place."""
    yield ("metric", "type", "labels besides `collection`", "meaning")
    for one in metrics:
        yield (f"`{one.name}`", one.kind, ", ".join(f"`{label}`" for label in one.labels), one.meaning)


def settings_without_effect() -> Rows:
    """What nothing in a collection reads."""
    yield ("setting", "instead")
    for name, effect in sorted(WITHOUT_EFFECT.items()):
        yield (f"`{name}`", effect.instead)


def settings_with_differences() -> Rows:
    """What works otherwise than in Scrapy."""
    yield ("setting", "in a collection")
    for name, difference in sorted(WITH_DIFFERENCES.items()):
        yield (f"`{name}`", difference)


def spider_attributes() -> Rows:
    """What nothing reads of a spider class."""
    yield ("attribute or method", "instead")
    for name, instead in sorted(SPIDER_ATTRIBUTES.items()):
        yield (f"`{name}`", instead)


def adaptions() -> Rows:
    """What a spider of a tutorial needs in a collection."""
    yield ("in a tutorial", "in a collection")
    for tutorial, needs, _ in ADAPTIONS:
        yield (tutorial, needs)


def components() -> Rows:
    """What components of a user's own may do."""
    yield ("component", "what it does", "in a collection")
    for component, what, becomes, _ in WORKS:
        yield (component, what, becomes)


OF_PAGE = (
    *("base", "title", "description", "language", "headings", "text", "hrefs", "followed", "links", "canonical"),
    *("modified", "fields", "markdown", "parts"),
)
OF_DECISION = ("admitted", "reason", "rule", "trace", "index", "follow", "shift")
OF_URL = ("text", "scheme", "host", "port", "path", "query", "site")
OF_LIMITS = tuple(one.name for one in fields(Limits))
"""What is stable of values that have more."""

TABLES: dict[tuple[str, str], Callable[[], Rows]] = {
    ("docs/reasons.md", "outcomes"): outcomes,
    ("docs/reasons.md", "failures"): failures,
    ("docs/rules.md", "global-space"): global_space,
    ("docs/scale.md", "figures"): figure_rows,
    ("docs/scale.md", "projections"): projection_rows,
    ("docs/scrapy.md", "adapting"): adaptions,
    ("docs/scrapy.md", "components"): components,
    ("docs/scrapy.md", "without-effect"): settings_without_effect,
    ("docs/scrapy.md", "with-differences"): settings_with_differences,
    ("docs/scrapy.md", "spider-attributes"): spider_attributes,
    ("docs/api-python.md", "python-spider"): partial(interface_rows, FrontierSpider, "document", "parse", "start", "session"),
    ("docs/api-python.md", "python-page"): partial(interface_rows, Page, *OF_PAGE),
    ("docs/api-python.md", "python-document"): partial(interface_rows, Document),
    ("docs/api-python.md", "python-part"): partial(interface_rows, Part),
    ("docs/api-python.md", "python-sink"): partial(interface_rows, Sink),
    ("docs/api-python.md", "python-options"): partial(interface_rows, Options),
    ("docs/api-python.md", "python-order"): partial(interface_rows, IndexOrder),
    ("docs/api-python.md", "python-sent"): partial(interface_rows, Sent),
    ("docs/api-python.md", "python-space"): partial(interface_rows, CrawlSpace, "decide", "decide_url"),
    ("docs/api-python.md", "python-parse-rules"): partial(interface_rows, parse_crawl_rules),
    ("docs/api-python.md", "python-decision"): partial(interface_rows, Decision, *OF_DECISION),
    ("docs/api-python.md", "python-step"): partial(interface_rows, Step),
    ("docs/api-python.md", "python-rule"): partial(interface_rows, RuleRef, "file", "line", "text"),
    ("docs/api-python.md", "python-url"): partial(interface_rows, Url, *OF_URL),
    ("docs/api-python.md", "python-limits"): partial(interface_rows, Limits, *OF_LIMITS),
    ("docs/settings.md", "paths"): partial(setting_rows, PathsSection),
    ("docs/settings.md", "space-limits"): partial(setting_rows, SpaceLimitsSection),
    ("docs/settings.md", "spellings"): partial(setting_rows, SpellingsSection),
    ("docs/settings.md", "sites"): partial(setting_rows, SitesSection),
    ("docs/settings.md", "rendering"): partial(setting_rows, RenderingSection, BrowserSettings),
    ("docs/settings.md", "rules-xml"): partial(setting_rows, RulesXmlSection),
    ("docs/settings.md", "lifecycle"): partial(setting_rows, LifecycleSection),
    ("docs/settings.md", "finish"): partial(setting_rows, FinishSection),
    ("docs/settings.md", "runs"): partial(setting_rows, RunsSection),
    ("docs/settings.md", "monitoring"): partial(setting_rows, MonitoringSettings),
    ("docs/monitoring.md", "metrics-crawl"): partial(metric_rows, OF_CRAWL),
    ("docs/monitoring.md", "metrics-stores"): partial(metric_rows, OF_STORES),
    ("docs/settings.md", "deletions"): partial(setting_rows, DeletionsSection),
    ("docs/settings.md", "content"): partial(setting_rows, ContentSection),
    ("docs/settings.md", "files"): partial(setting_rows, FileSettings),
    ("docs/settings.md", "archive"): partial(setting_rows, ArchiveSection),
    ("docs/settings.md", "index"): partial(setting_rows, IndexSection),
    ("docs/settings.md", "requests"): partial(setting_rows, RequestsSection, DelaysSection),
    ("docs/settings.md", "bounds"): partial(setting_rows, BoundsSection, UrlBoundsSection),
    ("docs/settings.md", "scrapy"): partial(setting_rows, ScrapySection),
}
"""By page and the name in its markers."""


def written(page: str, text: str) -> str:
    """Return a page with its tables as they are to be. Raises ValueError when a marker is missing."""
    for (of, name), rows in TABLES.items():
        if of == page:
            begin, end = f"<!-- table: {name}, from a test -->\n", "<!-- end -->"
            before, found, rest = text.partition(begin)
            if not found or end not in rest:
                raise ValueError(f"{page} has no {begin.strip()} … {end}")
            text = before + begin + _table(rows()) + rest[rest.index(end) :]
    return text


def _table(rows: Rows) -> str:
    head, *body = rows
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in body)]
    return "\n".join(lines) + "\n"


def _after(wait: float | None, state: str) -> str:
    if wait is None:
        return "" if state == FORGOTTEN else "never"
    days = "a day" if wait == DAY else f"{wait / DAY:g} days"
    return days if wait >= DAY else f"{wait:g} seconds"


if __name__ == "__main__":
    for page in sorted({of for of, _ in TABLES}):
        path = ROOT / page
        path.write_text(written(page, path.read_text(encoding="utf-8")), encoding="utf-8")
        print(page)
