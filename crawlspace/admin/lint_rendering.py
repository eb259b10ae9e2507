"""What of the settings and rules about rendering has no effect."""

from __future__ import annotations

from collections.abc import Iterator

from crawlspace.config.collection import Collection
from crawlspace.config.sentences import where_set
from crawlspace.config.sites import NAME as SITES
from crawlspace.config.sites import RENDER, RENDER_HOSTS, WAIT_FOR
from crawlspace.decision import Render
from crawlspace.printable import quoted
from crawlspace.rules.lint.crawl_rules import Finding


def lint_rendering(collection: Collection) -> Iterator[Finding]:
    """Yield the warnings."""
    by_rules = collection.action_rules is not None and collection.action_rules.renders
    of_routes = collection.sites.routes_without_effect(rendered_by_rules=by_rules)
    for setting, what, why in (*_of_the_collection(collection), *_of_sites(collection), *of_routes):
        line, column = where_set(collection.folder, setting)
        file, message = "settings.py" if line else "settings", f"{what} has no effect: {why}"
        yield Finding(file, line, column, "warning", "render-without-effect", message)
    yield from _of_rules(collection)


def _of_the_collection(collection: Collection) -> Iterator[tuple[str, str, str]]:
    """Yield the setting at fault, what has no effect, and why."""
    default = collection.sites.default.rendering
    for setting, value in ((RENDER_HOSTS, default.hosts), (WAIT_FOR, default.wait_for)):
        if value and not collection.renders:
            yield setting, setting, f"no page is rendered; {RENDER} has them rendered"


def _of_sites(collection: Collection) -> Iterator[tuple[str, str, str]]:
    by_rules = collection.action_rules is not None and collection.action_rules.renders
    default = collection.sites.default.rendering
    for pattern, settings in collection.sites.by_pattern.items():
        own, where = settings.rendering, f"{SITES}[{quoted(pattern)}]"
        if own.sets_mode and own.mode is default.mode:
            yield SITES, f"{where}['render']", f"{RENDER} is {own.mode.value}, too"
        if own.mode is Render.NEVER and not by_rules:
            for key, is_set in (("render_hosts", own.sets_hosts), ("render_wait_for", own.wait_for != default.wait_for)):
                if is_set:
                    yield SITES, f"{where}[{quoted(key)}]", "no page of this site is rendered; 'render' has them rendered"


def _of_rules(collection: Collection) -> Iterator[Finding]:
    """Yield the actions that keep pages from being rendered where none is."""
    if collection.action_rules is None or collection.renders:
        return
    for rule in collection.action_rules.rules.rules:
        for action in rule.actions:
            if action.mode is Render.NEVER:
                message = f"'Render never' of {quoted(rule.ref.text)} has no effect: no page is rendered anyway"
                yield Finding(rule.ref.file, action.line, action.column, "warning", "xml-render-without-effect", message)
