"""The visible text of elements in a tree of libxml2, with words separated as in `html`. Nothing is done by recursion."""

from __future__ import annotations

from lxml import etree

from crawlspace.content.markup import INLINE, collapsed
from crawlspace.content.selectors import Node

_INLINE = frozenset([*INLINE, "html", "base", "area"])
_NOT_SHOWN = frozenset({"iframe", "noembed", "noframes", "noscript", "script", "style", "template", "title"})
_EVENTS = ("start", "end", "comment", "pi")
_PLAIN = frozenset({"comment", "pi"})


class NodeBudget:
    """How many more nodes of a page may be looked at: elements that are found may be in one another, a thousand deep."""

    __slots__ = ("left",)

    def __init__(self, most: int) -> None:
        self.left = most


def value_of(element: Node, *, most: int, steps: NodeBudget) -> str:
    """Return the first `most` characters of the visible text of an element, which itself may be of a kind that is not shown."""
    parts: list[str] = []
    size = 0
    walker = etree.iterwalk(element, events=_EVENTS)
    for event, node in walker:
        steps.left -= 1
        if steps.left < 0 or size > most:
            break
        text = node.tail if event != "start" and node is not element else None
        if event == "start":
            if node is not element and _is_hidden(node):
                walker.skip_subtree()
            else:
                text = node.text
        if event not in _PLAIN and node.tag not in _INLINE and node is not element:
            parts.append("\n")
        if text:
            parts.append(text)
            size += len(text) if len(text) < most else len(" ".join(text[: 10 * most].split()))
    return collapsed("".join(parts))[:most].rstrip()


def _is_hidden(node: Node) -> bool:
    """Return whether an element is not shown; a template that is a shadow root is."""
    return node.tag in _NOT_SHOWN and not (
        node.tag == "template" and node.get("shadowrootmode", "").lower() in {"open", "closed"}
    )
