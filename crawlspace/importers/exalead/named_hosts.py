"""The hosts that accepting rules name. crawl.rules allows them by name, because only such hosts may have private addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from crawlspace.importers.exalead.xml import ConfigElement

_HOST = re.compile(r"[\w.-]+", re.ASCII)
_SITE = re.compile(r"https?://([\w.-]+)(?::\d+)?/", re.ASCII | re.IGNORECASE)


def accepted_hosts(rules: Sequence[ConfigElement]) -> list[str]:
    """Return the targets of domain rules for the hosts that rules with Accept name, each once."""
    return list(dict.fromkeys(host for one in rules for host in _of_rules(one)))


def _of_rules(rules: ConfigElement) -> Iterator[str]:
    for child in rules.elements:
        if child.name == "Rules":
            yield from _of_rules(child)
        elif child.name == "Rule" and any(one.name == "Accept" for one in child.elements):
            for condition in child.elements:
                yield from _of_condition(condition)


def _of_condition(condition: ConfigElement) -> Iterator[str]:
    """Yield the hosts that a condition names, and not those that it leaves out."""
    values = [condition.attributes[key].value for key in ("val", "value") if key in condition.attributes]
    attributes = {key: one.value for key, one in condition.attributes.items()}
    if condition.name in {"And", "Or"}:
        for child in condition.elements:
            yield from _of_condition(child)
    elif condition.name == "Domain" and values and _HOST.fullmatch(values[0]):
        yield from (values[0].lower(), f"*.{values[0].lower()}")
    elif condition.name == "Host" or (condition.name == "Atom" and attributes.get("field") == "host"):
        is_whole = attributes.get("kind", "exact") == "exact"
        yield from (value.lower() for value in values if is_whole and _HOST.fullmatch(value))
    elif condition.name == "Url" or (condition.name == "Atom" and attributes.get("field") == "url"):
        is_beginning = attributes.get("kind", "exact") in {"exact", "prefix"}
        yield from (site[1].lower() for value in values if is_beginning and (site := _SITE.match(value)))
