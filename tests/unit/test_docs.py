"""The documentation says what the code does: names and defaults are compared, tables are run, links are followed."""

from __future__ import annotations

import argparse
import ast
import json
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from scrapy.commands import ScrapyCommand
from scrapy.http import HtmlResponse, Request
from scrapy.settings import Settings

import crawlspace.commands
from crawlspace.admin.explain import Question, explain
from crawlspace.admin.report import STATE_LABELS, UrlReport, report
from crawlspace.admin.site_report import SiteReport
from crawlspace.clock import SystemClock
from crawlspace.config.collection import known_names, load_collection
from crawlspace.config.sites import KEYS
from crawlspace.content.html import extract
from crawlspace.crawl.startup import build_space
from crawlspace.decision import Reason
from crawlspace.errors import RuleFileError
from crawlspace.index.search import Hit, SearchResult
from crawlspace.index.search_server.items import ADVICE
from crawlspace.lint.finding import Finding
from crawlspace.model import UrlState
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.parser import parse_rules_xml
from crawlspace.runtime.components.addon_settings import RULES_DIR
from crawlspace.runtime.session.searching import as_json as _result_as_json
from crawlspace.state.unreachable import UnreachableSite
from crawlspace.state.views import Crawler, Share
from crawlspace.status import Status
from crawlspace.urls import parse
from tests.command_line import ROOT
from tests.conftest import assert_same
from tests.scale_tables import FIGURES, Figure
from tests.setting_tables import defaults
from tests.tables import TABLES, written
from tests.unit.admin.extraction_answers import extract_json
from tests.unit.admin.link_answers import link_json, refused_json, sitemaps_json
from tests.unit.admin.test_sites import sites_json

PAGES = sorted(
    path.relative_to(ROOT).as_posix() for pattern in ("*.md", "docs/*.md", "examples/*/*.md") for path in ROOT.glob(pattern)
)


@cache
def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def section(page: str, title: str) -> str:
    """What stands below a heading, up to the next one of its level or above."""
    lines = text(page).splitlines()
    at = next((n for n, line in enumerate(lines) if re.fullmatch(rf"#+ {re.escape(title)}", line)), None)
    assert at is not None, f"{page} has no heading {title!r}"
    level = lines[at].index(" ")
    ends = (n for n, line in enumerate(lines[at + 1 :], at + 1) if re.match(rf"#{{1,{level}}} ", line))
    return "\n".join(lines[at : next(ends, len(lines))])


def tables(markdown: str) -> Iterator[list[list[str]]]:
    """The tables of a text as rows of cells, without their heads."""
    for block in re.findall(r"(?:^\|.*\n?)+", markdown, re.MULTILINE):
        yield [
            [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in block.splitlines()[2:]
        ]


def rows(page: str, title: str) -> list[list[str]]:
    return [row for table in tables(section(page, title)) for row in table]


def plain(cell: str) -> str:
    return cell.strip("`")


def json_in(page: str, title: str) -> list[object]:
    return [json.loads(block) for block in re.findall(r"```json\n(.*?)\n```", section(page, title), re.DOTALL)]


# --- commands -----------------------------------------------------------------------------------------------------

COMMANDS = sorted(module.name for module in pkgutil.iter_modules(crawlspace.commands.__path__))


def options_of(command: ScrapyCommand) -> list[str]:
    """The option strings of a command that not every command has."""
    command.settings = Settings()
    parser, every = argparse.ArgumentParser(), argparse.ArgumentParser()
    command.add_options(parser)
    ScrapyCommand.add_options(command, every)
    return sorted(parser._option_string_actions.keys() - every._option_string_actions.keys())


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_are_documented_with_their_options(name: str) -> None:
    command: ScrapyCommand = import_module(f"crawlspace.commands.{name}").Command()
    documented = section("docs/commands.md", f"scrapy {name}")
    assert command.short_desc()
    assert command.long_desc() != command.short_desc(), "--help says no more than the list of commands"
    statuses = re.search(r"Exit status: .*", command.long_desc())
    assert statuses is not None
    assert statuses[0] in " ".join(documented.split())
    spans = [span for row in rows("docs/commands.md", f"scrapy {name}") for span in re.findall("`([^`]+)`", row[0])]
    assert_same((span.split()[0] for span in spans), options_of(command))


def test_no_command_is_documented_that_is_not_there() -> None:
    assert_same(re.findall(r"^## scrapy ([\w-]+)$", text("docs/commands.md"), re.MULTILINE), COMMANDS)


def shape(value: object) -> object:
    """The keys of a JSON value, all the way down; a list is as its first item."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items() if not str(key).isdigit()}
    if isinstance(value, list):
        return [shape(value[0])] if value and isinstance(value[0], dict) else []
    return None


def test_json_is_documented_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "collections" / "demo"
    folder.mkdir(parents=True)
    (folder / "start_urls.txt").write_text("http://start.test/", encoding="utf-8")
    (folder / "rules.xml").write_text("<Rules><Rule><Domain val='start.test'/><Index/></Rule></Rules>", encoding="utf-8")
    settings = {**defaults(), "CRAWLSPACE_COLLECTIONS_DIR": str(folder.parent)}
    collection = load_collection("demo", settings)
    known = UrlReport(UrlState(1, 1, "http://start.test/", "start.test:80", fetched_at=1), None)
    question = Question("http://start.test/")
    answer = explain(question, collection, space=build_space(collection), store=None, clock=SystemClock())
    worker = Crawler(1, 1, Share("a", 0.0, sites=0, urls=0))
    dead = SiteReport(UnreachableSite("dead.test:80", 612, since=1, runs=1, counted_at=1), documents=1, held=False)
    shared = report("demo", None, crawlers=[worker], is_shared=True, sites=[dead])
    hit = Hit("http://start.test/", "", "", 1.0, "en", {"department": "sales"}, ("http://start.test/b",))
    for title, *values in (
        ("scrapy explain", replace(answer, known=known).as_json()),
        ("scrapy extract", extract_json()),
        ("scrapy lint", [asdict(Finding("crawl.rules", 1, 1, "warning", "code", "message"))]),
        ("scrapy status", report("demo", None).as_json(), shared.as_json()),
        ("scrapy urls", known.as_json()),
        ("scrapy links", link_json(build_space(collection))),
        ("scrapy refused", refused_json()),
        ("scrapy sitemaps", sitemaps_json()),
        ("scrapy sites", sites_json(tmp_path)),
        ("scrapy search", _result_as_json(SearchResult(1, (hit,), {"language": [("en", 1)]}))),
    ):
        documented = json_in("docs/commands.md", title)
        assert documented, f"{title} has no example of its JSON"
        assert [shape(example) for example in documented] == [shape(json.loads(json.dumps(value))) for value in values], title


# --- settings -----------------------------------------------------------------------------------------------------

COMPONENTS = ("DOWNLOAD_HANDLERS", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES", "ITEM_PIPELINES", "EXTENSIONS")


def test_every_setting_is_documented_with_its_default() -> None:
    found = [row for table in tables(text("docs/settings.md")) for row in table if plain(row[0]) not in COMPONENTS]
    assert all(meaning for _, _, meaning in found)
    documented = [(plain(name), repr(ast.literal_eval(plain(default)))) for name, default, _ in found]
    assert_same(documented, [(name, repr(value)) for name, value in defaults().items() if name not in COMPONENTS])
    assert {name for name, _ in documented} >= set(known_names())


def test_every_component_is_documented() -> None:
    expected = []
    for name in COMPONENTS:
        components = defaults()[name]
        assert isinstance(components, dict)
        expected += [(name, path, str(value)) for path, value in components.items()]
    assert_same((tuple(map(plain, row)) for row in rows("docs/settings.md", "Lists of components")), expected)


def test_the_keys_of_single_sites_are_documented() -> None:
    assert_same((plain(key) for key, _ in rows("docs/collections.md", "Single sites")), KEYS)


# --- reasons, status codes, outcomes, findings, stats ---------------------------------------------------------------


def test_every_reason_is_documented_with_its_sentence() -> None:
    documented = [(plain(code), sentence) for code, sentence, _ in rows("docs/reasons.md", "Reasons")]
    assert documented == [(reason.value, reason.sentence) for reason in Reason]


def test_every_status_code_is_documented_with_its_sentence() -> None:
    documented = [(int(code), sentence) for code, sentence, _ in rows("docs/reasons.md", "Status codes")]
    assert documented == [(int(status), status.sentence) for status in Status]


SINKS = (
    "embedded.py",
    "http_push.py",
    "json_client.py",
    "order_log.py",
    "outbox.py",
    "orders.py",
    "opensearch/*.py",
    "solr/*.py",
)
NOT_OF_SENDING = {"contents.py", "marker.py", "rebuilding.py", "search.py"}
"""Modules of a search server that compare, rebuild and search: what they report is the answer to a command."""


def sink_trees() -> Iterator[tuple[Path, ast.Module]]:
    folder = ROOT / "crawlspace/index"
    for pattern in (*SINKS, "search_server/items.py"):
        for path in sorted(folder.glob(pattern)):
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def test_every_fault_of_a_sink_has_its_remedy() -> None:
    """Each message with which a sink accepts nothing, and each advice for a blocked index, is in the table; and no other is."""
    documented = [plain(row[0].split("` ")[0]) for row in rows("docs/sinks.md", "Faults")]
    shapes = [re.compile(".*".join(map(re.escape, message.split("…"))), re.DOTALL) for message in documented]
    raised, written = [*ADVICE], [*ADVICE]
    for path, tree in sink_trees():
        for node in ast.walk(tree):
            written.append((template(node) if isinstance(node, ast.JoinedStr | ast.Constant) else None) or "")
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("IndexUnavailable", "StoreDamaged")
            ):
                message = template(node.args[0])
                if message is not None and path.name not in NOT_OF_SENDING and re.search("[a-z]{3}", message):
                    raised.append(message)
    assert len(raised) > 20
    assert [message for message in raised if not any(shape.fullmatch(message) for shape in shapes)] == []
    of_servers = "mapper_parsing_exception: …"
    rotten = [
        message
        for message, shape in zip(documented, shapes, strict=True)
        if message != of_servers and not any(shape.search(text) for text in written if re.search("[a-z]{3}", text))
    ]
    assert rotten == []


@pytest.mark.parametrize("page", sorted({page for page, _ in TABLES}))
def test_the_tables_are_those_that_tests_run_on(page: str) -> None:
    assert text(page) == written(page, text(page)), "python -m tests.tables writes them again"


def test_every_state_of_a_url_is_documented() -> None:
    words = section("docs/index.md", "Words")
    assert not [label for label in STATE_LABELS if f"`{label}`" not in words]


@cache
def calls(folder: str) -> list[ast.Call]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / folder).rglob("*.py"))]
    return [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]


def test_every_finding_of_lint_is_documented() -> None:
    places = {"_finding": 1, "of_setting": 2, "_of_value": 2, "Finding": 4}  # where the code stands among the arguments
    codes = set()
    for call in calls("crawlspace"):
        if isinstance(call.func, ast.Name) and call.func.id in places and len(call.args) > places[call.func.id]:
            code = call.args[places[call.func.id]]
            if isinstance(code, ast.Constant):
                codes.add(code.value)
    codes.update(re.findall(r'"(xml-[a-z-]+)"', (ROOT / "crawlspace/lint/rules_xml.py").read_text(encoding="utf-8")))
    codes.update(re.findall(r'"(redis-[a-z-]+)"', (ROOT / "crawlspace/distributed/server_check.py").read_text(encoding="utf-8")))
    assert len(codes) >= 12
    assert_same((plain(row[0]) for row in rows("docs/rules.md", "What lint finds")), codes)


def template(node: ast.expr) -> str | None:
    """A text with a star for each part that isn't known before it runs."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in node.values)
    return None


def test_every_stat_is_documented() -> None:
    setters = {"set_value", "inc_value", "max_value", "min_value"}
    names = {
        name
        for folder in ("crawlspace", "spiders", "middlewares", "pipelines")
        for call in calls(folder)
        if isinstance(call.func, ast.Attribute) and call.func.attr in setters and (name := template(call.args[0])) is not None
    }
    assert "crawlspace/status/*" in names
    assert_same((re.sub(r"\b[A-Z]+\b", "*", plain(row[0])) for row in rows("docs/stats.md", "Stats")), names)


# --- rules --------------------------------------------------------------------------------------------------------


def rules_of(cell: str) -> str:
    return "" if cell == "—" else "\n".join(plain(rule.strip()) for rule in cell.split("<br>"))


def space_of(rules: str, *, start: str = "http://start.test/") -> CrawlSpace:
    return CrawlSpace(parse_crawl_rules(rules, file="crawl.rules"), Limits(), [parse(start)])


def line_of(cell: str) -> int | None:
    return None if cell == "—" else int(cell)


URL_ROWS = [row for title in ("How rules decide", "Domain rules", "Prefix rules") for row in rows("docs/rules.md", title)]


@pytest.mark.parametrize(("rules", "url", "answer", "line"), URL_ROWS)
def test_rules_decide_as_documented(rules: str, url: str, answer: str, line: str) -> None:
    if answer == "error":
        with pytest.raises(RuleFileError) as raised:
            space_of(rules_of(rules))
        assert [mistake.line for mistake in raised.value.mistakes] == [line_of(line)]
        return
    decision = space_of(rules_of(rules)).decide(plain(url))[1]
    assert ("admitted" if decision.admitted else "refused") == answer
    assert (decision.rule.line if decision.rule is not None else None) == line_of(line)


@pytest.mark.parametrize(("rules", "host", "address", "answer", "line"), rows("docs/rules.md", "Address rules"))
def test_addresses_are_judged_as_documented(rules: str, host: str, address: str, answer: str, line: str) -> None:
    decision = space_of(rules_of(rules)).at_connect(plain(host), 80, plain(address))
    assert ("admitted" if decision.admitted else "refused") == answer
    assert (decision.rule.line if decision.rule is not None else None) == line_of(line)


@pytest.mark.parametrize(("setting", "url", "answer", "reason"), rows("docs/rules.md", "Limits"))
def test_limits_decide_as_documented(tmp_path: Path, setting: str, url: str, answer: str, reason: str) -> None:
    folder = tmp_path / "collections" / "demo"
    folder.mkdir(parents=True)
    (folder / "start_urls.txt").write_text("http://start.test/docs/", encoding="utf-8")
    settings = {**defaults(), "CRAWLSPACE_COLLECTIONS_DIR": str(folder.parent)}
    if setting != "—":
        name, _, value = plain(setting).partition(" = ")
        settings[name] = ast.literal_eval(value)
    decision = build_space(load_collection("demo", settings)).decide(plain(url))[1]
    assert (answer, plain(reason)) == ("admitted" if decision.admitted else "refused", decision.reason.value)


def test_checks_are_made_in_the_documented_order() -> None:
    rules = parse_rules_xml(b"<Rules><Rule><Path val='/'/><Index/></Rule></Rules>", file="rules.xml")
    actions = CompiledActions(rules, accept=True, index=True, follow=True)
    limits = Limits(max_link_depth=9, max_urls_per_host=9)
    space = CrawlSpace(parse_crawl_rules("", file="crawl.rules"), limits, [], actions=actions)
    trace = space.decide("http://start.test/", depth=0, host_count=0)[1].trace
    documented = re.findall(r"^\d+\. `(\w+)`$", section("docs/rules.md", "Order of checks"), re.MULTILINE)
    assert documented == [str(step.check) for step in trace]


def test_the_example_of_rules_and_of_mistakes_is_true() -> None:
    grammar, mistakes = section("docs/rules.md", "Grammar"), section("docs/rules.md", "Mistakes")
    example = "\n".join(re.findall(r"^ {4}((?:allow|forbid) .*)$", grammar, re.MULTILINE))
    assert len(parse_crawl_rules(example, file="crawl.rules").domain) == 3
    lines = re.findall(r"^ {8}(\w+ .*)$", mistakes, re.MULTILINE)
    with pytest.raises(RuleFileError) as raised:
        parse_crawl_rules("\n".join(lines), file="crawl.rules")
    assert str(raised.value) in re.sub(r"^ {4}", "", mistakes, flags=re.MULTILINE)


# --- the pages ----------------------------------------------------------------------------------------------------


def test_the_example_of_own_parsing_works() -> None:
    code = re.search(r"```python\n(.*?)```", section("docs/collections.md", "Own parsing"), re.DOTALL)
    assert code is not None
    names: dict[str, type] = {}
    exec(code[1], names)
    spider = names["Lamps"](name="lamps")
    request = Request("http://www.example.com/")
    for body, expected in (
        (b"<title>Lamp</title><p>A lamp. <b class=price>19 EUR</b>", "19 EUR"),
        (b"<title>About</title><p>Us", None),
    ):
        response = HtmlResponse(request.url, body=body, encoding="utf-8", request=request)
        item = spider.document(response, extract(body, url=request.url))
        assert (item["price"] if isinstance(item, dict) else None) == expected


def test_the_example_of_rules_in_python_works() -> None:
    code = re.search(r"```python\n(.*?)```", section("docs/api-python.md", "Rules"), re.DOTALL)
    assert code is not None
    exec(code[1], {})


def test_the_python_interfaces_are_where_the_page_says() -> None:
    named = re.findall(r"`([A-Z]\w+)`\s+of\s+`(crawlspace[\w.]*)`", text("docs/api-python.md"))
    assert len(named) >= 10
    assert not [(name, module) for name, module in named if not hasattr(import_module(module), name)]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.what)
def test_figures_of_scale_are_those_that_were_measured(figure: Figure) -> None:
    title = f"`{figure.section}`" if figure.page == "benchmarks.md" else figure.section
    found = [row for table in tables(section(f"docs/{figure.page}", title)) for row in table if figure.row in " ".join(row)]
    number = rf"(?<![\d.,]){re.escape(figure.shown)}(?![\d])"
    assert [row for row in found if re.search(number, " ".join(row))], found


def test_the_two_commands_of_the_readme_are_targets() -> None:
    shown = re.findall(r"^ {4}make ([\w-]+)", text("README.md"), re.MULTILINE)
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"demo", "test"} <= set(shown) <= set(targets)


def test_every_command_that_is_shown_is_there() -> None:
    scrapys = {"list", "shell", "fetch", "parse"}
    shown = {
        (page, command)
        for page in PAGES
        for command in re.findall(r"(?:^ {4}(?:\$ )?|`)scrapy ([a-z-]+)\b", text(page), re.MULTILINE)
    }
    assert not sorted((page, command) for page, command in shown if command not in {*COMMANDS, *scrapys})


def test_every_setting_that_is_named_is_there() -> None:
    named = {(page, name) for page in PAGES for name in re.findall(r"\bCRAWLSPACE_[A-Z_]*[A-Z]\b", text(page))}
    slips = {"CRAWLSPACE_MAX_PATH_DEPHT", RULES_DIR, "CRAWLSPACE_TEST_ES_URL"}  # an error; of the add-on alone; of our tests
    assert not sorted((page, name) for page, name in named if name not in {*known_names(), *slips})


def anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text(page), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text(page)):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        path = (ROOT / page).parent / file if file else ROOT / page
        if not path.exists() or (anchor and anchor not in anchors(path.resolve().relative_to(ROOT.resolve()).as_posix())):
            dead.append(target)
    assert not dead


def test_every_page_is_on_the_map() -> None:
    linked = re.findall(r"\]\(([\w-]+\.md)\)", text("docs/index.md"))
    assert_same(linked, [Path(page).name for page in PAGES if page.startswith("docs/") and page != "docs/index.md"])


def test_the_contributors_guide_names_files_that_exist() -> None:
    named = re.findall(r"`((?:crawlspace|tests)/[\w./-]+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(named) > 40
    assert not [name for name in named if "NAME" not in name and not (ROOT / name).exists()]
