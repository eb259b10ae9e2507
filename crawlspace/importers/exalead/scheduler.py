"""The weights of the crawler's queues ("fifos") as CRAWLSPACE_SOURCE_WEIGHTS.

How a CrawlSchedulerConfig is written is not documented. What is understood: an attribute or element that is named after a queue,
with its weight, and elements that have the name or number of a queue beside a weight.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from crawlspace.errors import SettingError
from crawlspace.frontier.source_weights import DEFAULT_WEIGHTS, NAME, read_weights
from crawlspace.importers.exalead.xml import ConfigElement
from crawlspace.importers.outcomes import Translation, WrongValue, lost, whole
from crawlspace.importers.report import Fate
from crawlspace.model import Source
from crawlspace.text import quoted

_NAMING = frozenset({"name", "fifo", "source", "key", "id", "number", "type"})
_WEIGHING = frozenset({"weight", "priority", "value"})
_BY_NAME = {source.label.replace("_", ""): source for source in Source}
_BY_NUMBER = {str(number): source for number, source in enumerate(Source)}


class Weight(NamedTuple):
    line: int
    option: str
    translation: Translation


def queue_weights(config: ConfigElement) -> tuple[list[Weight], Mapping[str, int]]:
    """Return what becomes of each attribute and element, and CRAWLSPACE_SOURCE_WEIGHTS; empty if all are as here."""
    found: list[Weight] = []
    weights: dict[str, int] = {}
    for line, option, source, text in _named(config, config.name):
        if source is None:
            found.append(
                Weight(line, option, lost("it names no queue that is known with its weight: set CRAWLSPACE_SOURCE_WEIGHTS"))
            )
            continue
        try:
            weight = whole([text.strip()])
            read_weights({**weights, source.label: weight})
        except (WrongValue, SettingError) as error:
            found.append(Weight(line, option, lost(f"its value cannot be used: {error}")))
            continue
        is_default = weight == DEFAULT_WEIGHTS[source]
        if not is_default:
            weights[source.label] = weight
        fate = Fate.DEFAULT if is_default else Fate.TRANSLATED
        found.append(Weight(line, option, Translation(fate, f"{quoted(source.label)}: {weight} in {NAME}")))
    return found, weights


def _named(element: ConfigElement, path: str) -> Iterator[tuple[int, str, Source | None, str]]:
    """Yield line, name, queue and weight of what an element has, and those inside it; None where no queue is named."""
    attributes = dict(element.attributes)
    whose = next((source for key in attributes if key.lower() in _NAMING and (source := _source(attributes[key].value))), None)
    whose = whose or _source(element.name)
    weight = next((one for key, one in attributes.items() if key.lower() in _WEIGHING), None)
    text = element.text.strip()
    if whose is not None and (weight is not None or text):
        yield element.line, f"{path} {whose.label}", whose, weight.value if weight is not None else text
        attributes = {key: one for key, one in attributes.items() if one is not weight and _source(one.value) is not whose}
    elif text:
        yield element.line, path, None, text
    for one in attributes.values():
        yield one.line, f"{path}/{one.name}", _source(one.name), one.value
    for child in element.elements:
        yield from _named(child, f"{path}/{child.name}")


def _source(name: str) -> Source | None:
    """Return the queue of a name such as `index_follow`, `fifo:indexFollow`, `indexFollowWeight`, or of a number."""
    plain = re.sub(r"fifo|weight|priority|source|queue|smart|[^a-z0-9]", "", name.lower())
    return _BY_NAME.get(plain) or _BY_NUMBER.get(name.strip())
