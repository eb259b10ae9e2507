"""What `scrapy lint` and `scrapy explain` print in a project with the add-on: the rules of each spider, without running it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from scrapy.settings import BaseSettings
from scrapy.spiderloader import get_spider_loader
from scrapy.utils.misc import load_object

from crawlspace import settings as defaults
from crawlspace.admin.explain import Explanation, Question, explain_by_rules
from crawlspace.config.files import read_own_rules
from crawlspace.config.limits import read_extensions
from crawlspace.config.proxies import proxies_of_environment
from crawlspace.config.sentences import read_with_defaults
from crawlspace.decision import RuleRef
from crawlspace.errors import ConfigError, UsageError, did_you_mean, first_of_each_file
from crawlspace.lint.crawl_rules import lint_rules, lint_start_urls
from crawlspace.lint.expressions import lint_expressions
from crawlspace.lint.finding import Finding, bounded, findings_of
from crawlspace.lint.rules_xml import lint_action_rules, lint_values
from crawlspace.runtime.components.addon_settings import (
    check_start_urls,
    folder_of_spider,
    read_addon_limits,
    refuse_unknown,
    rules_folder,
    rules_of,
    settings_without_effect,
    start_urls_of,
    values_of,
)
from crawlspace.runtime.components.command import print_json, print_lines, printing, without_options
from crawlspace.runtime.components.explanation_text import decision_lines
from crawlspace.text import printable, quoted

ADDON = "crawlspace.addon.CrawlSpaceRules"


SHARED = ""
"""Stands for the name of a spider where the rules for all are meant."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AddonSpider:
    """A spider of the project; `name` is SHARED for none in particular."""

    name: str
    settings: BaseSettings
    start_urls: Sequence[object]


def addon_spiders(settings: BaseSettings) -> list[AddonSpider]:
    """Return the spiders of a project, by name. Raises UsageError without the add-on, ConfigError if they cannot be imported."""
    if not any(_is_addon(component) for component in settings.getdict("ADDONS")):
        raise UsageError(
            f'this project has no collections, and not the add-on of crawlspace: set ADDONS = {{"{ADDON}": 500}} in its settings.py'
        )
    try:
        loader = get_spider_loader(settings)
        classes = [loader.load(name) for name in sorted(loader.list())]
    except Exception as error:
        raise ConfigError(f"the spiders of the project cannot be imported: {type(error).__name__}: {error}") from error
    found = []
    for spider in classes:
        own = settings.copy()
        spider.update_settings(own)
        start_urls = getattr(spider, "start_urls", None)
        found.append(AddonSpider(spider.name, own, start_urls if isinstance(start_urls, list | tuple) else []))
    return found


def review_project(settings: BaseSettings) -> list[Finding]:
    """Return what is wrong with the rules and settings of the project, and what is suspicious, each once."""
    everybody = AddonSpider(SHARED, settings, [])
    spiders = addon_spiders(settings) or [everybody]
    of_project = set(_of_settings(everybody))
    found: dict[Finding, None] = dict.fromkeys(sorted(of_project, key=str))
    for spider in spiders:
        found.update((replace(one, file=f"spider {spider.name}"), None) for one in _of_settings(spider) if one not in of_project)
        found.update(dict.fromkeys(_of_rules(spider)))
    return list(found)


def explain_url(question: Question, settings: BaseSettings, *, name: str) -> tuple[Explanation, Path]:
    """Return the decision for a URL, and the folder whose rules made it.

    `name` is that of a spider, or SHARED: then it is the only spider, or the rules for all are meant. Raises UsageError, ConfigError.
    """
    spiders = {spider.name: spider for spider in addon_spiders(settings)}
    if name == SHARED and len(spiders) == 1:
        (name,) = spiders
    if name != SHARED and name not in spiders:
        known = ", ".join(spiders) or "the project has none"
        raise UsageError(f"there is no spider {quoted(name)}: {did_you_mean(name, spiders, known)}")
    spider = spiders.get(name) or AddonSpider(SHARED, settings, [])
    for setting in spider.settings:
        refuse_unknown(str(setting))
    rules = rules_of(name, spider.start_urls, spider.settings)
    return explain_by_rules(question, space=rules.space, start_urls=[url.text for url in rules.start_urls]), rules.folder


def _is_addon(component: object) -> bool:
    try:
        loaded = load_object(component) if isinstance(component, str) else component
    except Exception:  # noqa: BLE001 - another add-on, which may raise anything
        return False
    return f"{getattr(loaded, '__module__', '')}.{getattr(loaded, '__qualname__', '')}" == ADDON


def _of_settings(spider: AddonSpider) -> list[Finding]:
    """Return the findings about settings alone."""
    errors: list[ConfigError] = []
    for setting in list(spider.settings):
        _attempt(lambda setting=setting: refuse_unknown(str(setting)), errors)  # type: ignore[misc]
    read = _attempt(lambda: read_with_defaults(read_addon_limits, values_of(spider.settings), vars(defaults)), errors)
    errors += read[1] if read is not None else []
    found = [finding for error in errors for finding in findings_of(error, Path("settings"))]
    if not errors:
        extensions = read_extensions(values_of(spider.settings)).warnings()
        found += [Finding("settings", 0, 0, "warning", "extension-without-effect", sentence) for sentence in extensions]
        idle = settings_without_effect(spider.settings)
        found += [Finding("settings", 0, 0, "warning", "without-effect", sentence) for sentence in idle]
    return found


def _of_rules(spider: AddonSpider) -> Iterator[Finding]:
    """Yield the findings about the rules that hold for a spider, with their folder as seen from here."""
    errors: list[ConfigError] = []
    folder = _attempt(lambda: folder_of_spider(spider.name, rules_folder(spider.settings)), errors)
    own = None if folder is None else _attempt(lambda: read_own_rules(folder, values_of(spider.settings)), errors)
    whose = f"spider {spider.name}" if spider.name else "rules"
    for error in errors:
        for finding in findings_of(error, Path(whose)):
            yield _in_folder(finding, folder)
    read = read_with_defaults(read_addon_limits, values_of(spider.settings), vars(defaults))[0]
    if own is None or read is None:
        return
    rules, _, actions = own
    variables = proxies_of_environment(is_on=spider.settings.getbool("HTTPPROXY_ENABLED"))
    proxied = f"all sites ({variables})" if variables else ""
    findings = list(lint_rules(rules, read.limits, host_case_sensitive=read.host_case_sensitive, proxied=proxied))
    compiled = read.actions(actions)
    if compiled is not None:
        findings += lint_action_rules(compiled.rules, accept=compiled.accept)
        findings += lint_values(compiled.rules)
        findings += lint_expressions(compiled.rules)
    yield from (_in_folder(finding, folder) for finding in findings)
    start_urls = start_urls_of(spider.start_urls, values_of(spider.settings))
    try:
        check_start_urls(start_urls, read.limits)
    except ConfigError as error:  # it may have them once it runs
        yield Finding(whose, 0, 0, "warning", "no-start-urls", str(error))
        return
    places = [RuleRef(whose, 0, "")] * len(start_urls)
    yield from lint_start_urls(read.space(rules, actions, start_urls), start_urls, places)


def _attempt(read: Callable[[], T], errors: list[ConfigError]) -> T | None:
    try:
        return read()
    except ConfigError as error:
        errors.append(error)
        return None


def _in_folder(finding: Finding, folder: Path | None) -> Finding:
    """Return a finding in a file of rules with the folder of that file."""
    return finding if folder is None or not finding.line else replace(finding, file=os.path.relpath(folder / finding.file))


def lint(args: Sequence[str], settings: BaseSettings, *, as_json: bool) -> int:
    """Print the findings of a project; return the exit status."""

    def answer() -> int:
        if without_options(args):
            raise UsageError(
                "a project with the add-on has no collections: scrapy lint, without a name, checks the rules of all spiders"
            )
        findings = review_project(settings)
        if as_json:
            print_json([finding.as_json() for finding in bounded(findings)])
        else:
            print_lines(list(first_of_each_file(findings)) or ["no findings"])
        return 1 if findings else 0

    return printing(answer)


def explain(args: Sequence[str], settings: BaseSettings, *, as_json: bool, options: Mapping[str, str | None]) -> int:
    """Print the decision for a URL; return the exit status."""

    def answer() -> int:
        named = without_options(args)
        if len(named) not in (1, 2):
            raise UsageError("name a URL, or a spider and a URL, as in: scrapy explain products http://www.example.com/page.html")
        question = Question(named[-1], address=options["address"], mime=options["mime"], page=options["page"])
        explanation, folder = explain_url(question, settings, name=named[0] if len(named) > 1 else SHARED)
        if as_json:
            print_json(explanation.as_json())
        else:
            print_lines([*decision_lines(explanation), f"{'rules':<12} {printable(os.path.relpath(folder))}"])
        return 0

    return printing(answer)
