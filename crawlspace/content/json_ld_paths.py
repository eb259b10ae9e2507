"""Values of a page's JSON-LD by a path of properties, such as `offers.price` or `Product.offers.price`.

A path begins at each node of the page: a script's own, those of a list and of `@graph`, and the main entity of a page. Lists on the way are
gone through, and a reference to another node (`@id`) is followed. A first part with a capital letter is a type, and only nodes
of it count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import isfinite

from crawlspace.content.markup import scripts_of_type
from crawlspace.content.metadata import MAX_JSON_LD, MAX_NODES, Json, json_of, nodes_in, types_of

_AS_TEXT = ("@value", "name", "url", "@id")
"""Properties of a node that stand for it, where a text is needed; the first that is one."""


class JsonLdPaths:
    """The JSON-LD of one page."""

    def __init__(self, html: str) -> None:
        scripts = list(scripts_of_type(html, "application/ld+json"))
        scripts = scripts if sum(map(len, scripts)) <= MAX_JSON_LD else []
        self._nodes = list(islice((node for script in scripts for node in nodes_in(json_of(script))), MAX_NODES))
        self._by_id = {name: node for node in self._nodes if isinstance(name := node.get("@id"), str) and len(node) > 1}

    def values(self, path: str, *, most: int) -> list[str]:
        """Return the first values at a path, as text: numbers and truth values as in JSON, a node by its value, name or URL."""
        parts = path.split(".")
        nodes: Sequence[Mapping[str, Json]] = self._nodes
        if parts[0][:1].isupper():
            nodes = [node for node in nodes if parts[0] in types_of(node)]
            parts = parts[1:]
        current: list[Json] = list(nodes)
        for part in parts:
            steps = (node[part] for node in self._flat(current) if isinstance(node, dict) and part in node)
            current = list(islice(steps, MAX_NODES))
        return list(islice(filter(None, map(self._text, self._flat(current))), most))

    def _flat(self, values: Sequence[Json]) -> Iterator[Json]:
        """Yield the values, those of lists one by one, and nodes in the place of references to them."""
        waiting = list(reversed(values))
        while waiting:
            value = waiting.pop()
            if isinstance(value, list):
                waiting += reversed(value)
            elif isinstance(value, dict):
                yield self._by_id.get(str(value["@id"]), value) if len(value) == 1 and "@id" in value else value
            else:
                yield value

    @staticmethod
    def _text(value: Json) -> str:
        if isinstance(value, dict):
            value = next((value[key] for key in _AS_TEXT if isinstance(value.get(key), str | int | float)), "")
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return str(value) if abs(value) < 10**30 else ""
        if isinstance(value, float):
            return repr(value) if isfinite(value) else ""
        return value if isinstance(value, str) else ""
