"""The visible text of elements, and of a page without some of them, with words separated as in `html`. Nothing is done by recursion."""

from __future__ import annotations

from collections.abc import Collection

from lxml import etree

from crawlspace.content.exclusion_marks import BODY, LEFT_OUT, mode_of, switched
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


def text_of(element: Node, *, most: int, steps: NodeBudget) -> str:
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


def page_text(root: Node, only: Collection[Node] | None, drop: Collection[Node], *, marks: frozenset[str], most: int) -> str:
    """Return the text of a page: of the elements in `only` (None: all), without those in `drop` and what exclusion marks leave out."""
    return collapsed("".join(_PageWalk(root, only, drop, marks).parts()))[:most].rstrip()


class _PageWalk:
    """One pass over a page; each element inherits from the one that it is in whether its text counts, and its exclusion mode."""

    def __init__(self, root: Node, only: Collection[Node] | None, drop: Collection[Node], marks: frozenset[str]) -> None:
        self._root = root
        self._only, self._drop, self._marks = only, drop, marks
        self._has_body = "data-pagefind-body" in marks and root.find(".//*[@data-pagefind-body]") is not None
        self._switched_off = False

    def parts(self) -> list[str]:
        parts: list[str] = []
        open_elements = [(self._only is None, 0)]
        walker = etree.iterwalk(self._root, events=_EVENTS)
        for event, node in walker:
            if event == "start":
                counts, mode = open_elements[-1]
                open_elements.append((counts or (self._only is not None and node in self._only), self._mode(node, mode)))
                is_left_out = node in self._drop or (_is_hidden(node) and not (self._only and node in self._only))
                if is_left_out:
                    walker.skip_subtree()
                self._add(parts, node, "" if is_left_out else node.text, open_elements[-1])
            elif event == "end":
                open_elements.pop()
                self._add(parts, node, node.tail, open_elements[-1])
            else:
                if event == "comment" and self._marks and (is_off := switched(node.text or "", self._marks)) is not None:
                    self._switched_off = is_off
                    parts.append("\n")
                self._add(parts, None, node.tail, open_elements[-1])
        return parts

    def _mode(self, node: Node, mode: int) -> int:
        if not self._marks:
            return mode
        if node.tag == "noindex" and "noindex" in self._marks:
            return mode | LEFT_OUT
        found = self._marks.intersection(node.keys())
        return mode_of(found, mode) if found else mode

    def _add(self, parts: list[str], node: Node | None, text: str | None, state: tuple[bool, int]) -> None:
        if node is not None and node.tag not in _INLINE:
            parts.append("\n")
        counts, mode = state
        if text and counts and not (self._switched_off or mode & LEFT_OUT or (self._has_body and not mode & BODY)):
            parts.append(text)
