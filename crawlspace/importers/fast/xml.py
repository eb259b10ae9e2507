"""Read a crawl configuration of FAST's web crawler (FAST ESP, FAST Search Server 2010 for SharePoint).

    <CrawlerConfig>
      <DomainSpecification name="…">
        <attrib name="…" type="…"> value </attrib>
        <attrib name="…" type="list-string"> <member> value </member> … </attrib>
        <section name="…"> attribs and sections </section>
        <SubDomain name="…"> … </SubDomain>   <Login name="…"> … </Login>   <Node name="…"> … </Node>

Blanks around values don't count.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from crawlspace.errors import Mistake, RuleFileError, did_you_mean
from crawlspace.importers.reading import WrittenValue, XmlReading
from crawlspace.text import quoted

MAX_DEPTH = 20
"""Maximal depth of nested elements; FAST's own files have five."""
COLLECTION = "DomainSpecification"
PARTS = ("SubDomain", "Login", "Node")
"""Elements of a collection with options of their own."""
_HELD = {
    "": ("CrawlerConfig",),
    "CrawlerConfig": (COLLECTION, "GlobalConfig"),
    COLLECTION: ("attrib", "section", *PARTS),
    "attrib": ("member",),
    "member": (),
}
_OPTIONS = ("attrib", "section")


@dataclass(slots=True)
class FastOption:
    """An `attrib`. Of a list the values are its members, else the one value."""

    name: str
    line: int
    values: list[WrittenValue] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.values[0].text if self.values else ""


@dataclass(slots=True)
class FastSection:
    """A collection (`kind` is DomainSpecification), a section, sub-domain, log-in or node, with its options in order."""

    kind: str
    name: str
    line: int
    options: list[FastOption] = field(default_factory=list)
    sections: list[FastSection] = field(default_factory=list)
    unknown: list[WrittenValue] = field(default_factory=list)
    """Names of elements that are unknown in such a file."""


def read_fast_xml(data: bytes, *, file: str) -> list[FastSection]:
    """Return the collections of a file. Raises RuleFileError; `file` is the name in messages."""
    return _FastReading(data, file=file).result()


class _FastReading(XmlReading):
    def __init__(self, data: bytes, *, file: str) -> None:
        super().__init__(data, file=file, smaller="put long lists into files that it names", max_depth=MAX_DEPTH)
        self._open: list[str] = []
        self._sections: list[FastSection] = []
        """Open sections, the innermost last."""
        self._option: FastOption | None = None
        self._value: list[str] = []
        self._value_line = 0
        self._skipped = 0
        """Depth inside a skipped element."""
        self._found: list[FastSection] = []

    def result(self) -> list[FastSection]:
        self.parse()
        if not self._found:
            raise RuleFileError(
                [Mistake(self.text.file, 1, 1, f"the file has no {COLLECTION}, so there is no collection in it", "")]
            )
        return self._found

    def start(self, name: str, attributes: dict[str, str]) -> None:
        line = self.line
        above = self._open[-1] if self._open else ""
        self._open.append(name)
        if self._skipped:
            self._skipped += 1
            return
        held = _HELD.get(above, (*_OPTIONS, "Login") if above == "SubDomain" else _OPTIONS)
        if name not in held:
            self._strange(name, line, above=above, held=held)
        elif name in {COLLECTION, "section", *PARTS}:
            section = FastSection(name, self._named(name, attributes), line)
            (self._sections[-1].sections if self._sections else self._found).append(section)
            self._sections.append(section)
        elif name == "attrib":
            self._option = FastOption(self._named(name, attributes), line)
            self._sections[-1].options.append(self._option)
            self._value, self._value_line = [], line
        elif name == "member":
            self._value, self._value_line = [], line
        elif name == "GlobalConfig":
            self._skipped = 1

    def _strange(self, name: str, line: int, *, above: str, held: tuple[str, ...]) -> None:
        """Skip an unknown element. Raises RuleFileError if nothing would be left."""
        if not above:
            raise self.error(f"the outermost element of a crawl configuration of FAST's is CrawlerConfig, not {quoted(name)}")
        if not self._sections:
            raise self.error(f"{above} holds {COLLECTION}, not {quoted(name)}: {did_you_mean(name, held, 'remove it')}")
        self._sections[-1].unknown.append(WrittenValue(name, line))
        self._skipped = 1

    def _named(self, element: str, attributes: dict[str, str]) -> str:
        name = attributes.get("name", "").strip()
        if not name:
            raise self.error(f'this {element} has no name; write it, as in <{element} name="…">')
        return name

    def end(self, name: str) -> None:
        self._open.pop()
        if self._skipped:
            self._skipped -= 1
        elif name in {COLLECTION, "section", *PARTS}:
            self._sections.pop()
        elif name in {"attrib", "member"} and self._option is not None:
            text = "".join(self._value).strip()
            if text:
                self._option.values.append(WrittenValue(text, self._value_line))
            self._value = []
            if name == "attrib":
                self._option = None

    def characters(self, text: str) -> None:
        if self._option is not None and not self._skipped:
            self._value.append(text)
        elif text.strip() and not self._skipped:
            raise self.error("text is not allowed here; values are in attrib or member")
