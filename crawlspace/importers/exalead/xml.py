"""Read a crawl configuration of Exalead CloudView (CrawlConfig.xml), or its rules alone.

    <CrawlConfig xmlns="exa:com.exalead.mercury.mami.crawl.v21" xmlns:ar="exa:com.exalead.actionrules.v21">
      <Crawler name="…" throttleTimeMS="…" …>
        <Root url="…" site="…" …/>
        <Rules group="…" key="…"> <Rule> a condition, then actions </Rule> … </Rules>
        <CrawlSchedulerConfig/>   <CustomCrawlConfig/>
      </Crawler>
    </CrawlConfig>

Elements are in a namespace that begins with `exa:`, or in none, under any prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from crawlspace.errors import Mistake, RuleFileError, did_you_mean
from crawlspace.importers.reading import XmlReading
from crawlspace.rules.xml.parser import MAX_DEPTH
from crawlspace.text import quoted

COMMENT = "#comment"
"""The name of a comment node; its text is that of the comment."""
OUTERMOST = ("CrawlConfig", "Crawler", "Rules")


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    value: str
    line: int


@dataclass(slots=True)
class ConfigElement:
    """An element, or a comment. `is_foreign`: it is in a foreign namespace."""

    name: str
    line: int
    is_foreign: bool = False
    attributes: dict[str, Attribute] = field(default_factory=dict)
    children: list[ConfigElement] = field(default_factory=list)
    text: str = ""

    @property
    def elements(self) -> list[ConfigElement]:
        return [child for child in self.children if child.name != COMMENT]

    def named(self, name: str) -> Iterator[ConfigElement]:
        """Yield the topmost elements of a name, including this one."""
        if self.name == name and not self.is_foreign:
            yield self
            return
        for child in self.children:
            yield from child.named(name)


@dataclass(frozen=True, slots=True)
class ExaleadCrawler:
    """A crawler of a file; `holders` are the elements that contain the crawlers, `siblings` those next to a crawler or a holder."""

    name: str
    node: ConfigElement
    holders: tuple[ConfigElement, ...] = ()
    siblings: tuple[ConfigElement, ...] = ()
    has_rules_only: bool = False


def read_crawl_config(data: bytes, *, file: str) -> list[ExaleadCrawler]:
    """Return the crawlers of a file; one without a name if it has rules only. Raises RuleFileError."""
    root = _ExaleadReading(data, file=file).result()
    crawlers = list(root.named("Crawler"))
    if not crawlers:
        if not any(root.named("Rules")):
            names = dict.fromkeys(child.name for child in root.elements)
            near = next((hint for name in names if (hint := did_you_mean(name, ("Crawler", "Rules"), cutoff=0.7))), "")
            message = f"the file has neither a Crawler nor Rules, so there is nothing to import{f': {near}' if near else ''}"
            raise RuleFileError([Mistake(file, root.line, 1, message, "")])
        return [ExaleadCrawler("", root, has_rules_only=True)]
    holders = tuple(_holders(root))
    siblings = tuple(child for holder in holders for child in holder.elements if not any(child.named("Crawler")))
    return [ExaleadCrawler(_name(crawler, file), crawler, holders, siblings) for crawler in crawlers]


def _name(crawler: ConfigElement, file: str) -> str:
    name = crawler.attributes.get("name")
    if name is None or not name.value.strip():
        message = 'this Crawler has no name; write it, as in <Crawler name="…">'
        raise RuleFileError([Mistake(file, crawler.line, 1, message, "")])
    return name.value.strip()


def _holders(element: ConfigElement) -> Iterator[ConfigElement]:
    """Yield the elements that hold a crawler, the outermost first."""
    if element.name != "Crawler" and any(element.named("Crawler")):
        yield element
        for child in element.elements:
            yield from _holders(child)


class _ExaleadReading(XmlReading):
    """Builds the tree of the elements."""

    def __init__(self, data: bytes, *, file: str) -> None:
        smaller = "leave crawlers out of it, and import them from a file of their own"
        super().__init__(data, file=file, smaller=smaller, max_depth=MAX_DEPTH, separator=" ")
        self._parser.CommentHandler = self._comment
        self._open: list[ConfigElement] = []
        self._root: ConfigElement | None = None
        self._starts = list(accumulate((len(line) + 1 for line in self.text.text.split("\n")), initial=0))
        """The index of each line's first character."""

    def result(self) -> ConfigElement:
        self.parse()
        assert self._root is not None
        return self._root

    def start(self, name: str, attributes: dict[str, str]) -> None:
        namespace, _, local = name.rpartition(" ")
        node = ConfigElement(local, self.line, bool(namespace) and not namespace.startswith("exa:"))
        lines = self._lines_of_attributes() if attributes else {}
        for key, value in attributes.items():
            _, _, local_key = key.rpartition(" ")
            node.attributes[local_key] = Attribute(local_key, value, lines.get(local_key, node.line))
        if not self._open:
            if node.is_foreign or (not namespace and local not in OUTERMOST):
                meant = did_you_mean(local, OUTERMOST, "is it a file of another product?")
                raise self.error(
                    f"the outermost element of a crawl configuration of Exalead's is CrawlConfig, not {quoted(local)}: {meant}"
                )
            self._root = node
        else:
            self._open[-1].children.append(node)
        self._open.append(node)

    def end(self, name: str) -> None:
        self._open.pop()

    def characters(self, text: str) -> None:
        self._open[-1].text += text

    def _comment(self, text: str) -> None:
        if self._open:
            self._open[-1].children.append(ConfigElement(COMMENT, self.line, text=text))

    def _lines_of_attributes(self) -> dict[str, int]:
        """Return the line of each attribute of the present tag, by its name without a prefix."""
        line = self.line
        at = self._starts[line - 1] + self.column - 1
        found: dict[str, int] = {}
        while (part := _TAG_PART.match(self.text.text, at)) is not None:
            line += part[0].count("\n", 0, part.start(1) - at if part[1] else None)
            if part[1]:
                found[part[1].rpartition(":")[2]] = line
                line += part[0].count("\n", part.start(1) - at)
            at = part.end()
        return found


_TAG_PART = re.compile(r"""<[^\s/>]+|\s+([^\s=>/]+)\s*=\s*(?:"[^"]*"|'[^']*')""")
