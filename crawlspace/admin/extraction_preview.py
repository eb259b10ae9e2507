"""What extraction rules take from one page, rule by rule, with the rule that decides each field: the answer of `scrapy extract`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from crawlspace.config.content import ContentSettings
from crawlspace.config.extraction import ExtractionScope
from crawlspace.content.boilerplate import NO_BLOCKS, SiteBlocks
from crawlspace.content.extraction import NOTHING, Headers, RuledPage, RuleValues, extracted
from crawlspace.content.extraction_rules import Extracted, ExtractionRules, FieldRule, PartRule, TextRule
from crawlspace.content.page import Page
from crawlspace.document import Document, Part, values_of
from crawlspace.text import counted

SHOWN = 5
"""Values of a rule that are shown."""
EXAMPLES = 3
"""Documents that are shown for a field that changes."""
TEXT, PARTS = "text", "parts"


@dataclass(frozen=True, slots=True)
class FieldPreview:
    """What a rule for a field finds by itself."""

    number: int
    """Among the [[field]] of the file, from 1."""
    rule: FieldRule
    applies: bool
    found: RuleValues
    decides: bool
    """It is the first of its field that finds something."""

    def as_json(self) -> dict[str, object]:
        rule, found = self.rule, self.found
        return {
            **_place(self.number, rule),
            "name": rule.name,
            rule.by: rule.expression,
            "take": rule.take,
            "type": rule.type,
            "applies": self.applies,
            "decides": self.decides,
            "found": found.number,
            "values": list(found.values[:SHOWN]),
            "misfits": list(found.misfits[:SHOWN]),
        }


@dataclass(frozen=True, slots=True)
class TextPreview:
    """How many words a rule leaves of the text; None where it finds nothing."""

    number: int
    rule: TextRule
    applies: bool
    words: int | None
    decides: bool

    def as_json(self) -> dict[str, object]:
        return {
            **_place(self.number, self.rule),
            "only": list(self.rule.only),
            "drop": list(self.rule.drop),
            "applies": self.applies,
            "decides": self.decides,
            "words": self.words,
        }


@dataclass(frozen=True, slots=True)
class PartPreview:
    """The keys of the parts that a rule finds by itself."""

    number: int
    rule: PartRule
    applies: bool
    keys: Sequence[str]

    def as_json(self) -> dict[str, object]:
        return {
            **_place(self.number, self.rule),
            "css": self.rule.css,
            "key": self.rule.key,
            "applies": self.applies,
            "found": len(self.keys),
            "keys": list(self.keys[:SHOWN]),
        }


@dataclass(frozen=True, slots=True)
class ExtractionPreview:
    """What all rules of a collection take from a page, and what the page has without them."""

    url: str
    fields: Sequence[FieldPreview]
    texts: Sequence[TextPreview]
    parts: Sequence[PartPreview]
    document: Mapping[str, str]
    """The fields that the rules find."""
    standard: Mapping[str, str]
    """The fields that the page has by itself."""
    words_before: int
    words_after: int
    made: Sequence[Part]
    """The parts of its document."""
    blocks: Sequence[tuple[str, int]]
    """Blocks that are left out of the text, each with the number of pages of the site that have it."""
    pages_read: int
    """Pages of the site that its blocks were learned from."""

    def as_json(self) -> dict[str, object]:
        return {
            "url": self.url,
            "fields": [one.as_json() for one in self.fields],
            "texts": [one.as_json() for one in self.texts],
            "parts": [one.as_json() for one in self.parts],
            "made": [{"key": one.key, "headings": one.headings, "characters": len(one.text)} for one in self.made],
            "document": {name: values_of(value) for name, value in self.document.items()},
            "standard": {name: values_of(value) for name, value in self.standard.items()},
            "blocks": [{"text": text, "pages": pages} for text, pages in self.blocks],
            "pages_read": self.pages_read,
            "words": {"before": self.words_before, "after": self.words_after},
        }


def preview(
    rules: ExtractionRules,
    html: str,
    page: Page,
    *,
    url: str,
    headers: Headers = (),
    content: ContentSettings,
    learned: SiteBlocks = NO_BLOCKS,
) -> ExtractionPreview:
    """Return what rules take from a page, whose standard fields and text are in `page`; `learned` are the blocks of its site."""
    applying = ExtractionScope(rules).of(url)
    ruled = RuledPage(
        html, url=url, base=page.base, headers=headers, exclusion_marks=content.exclusion_marks, boilerplate=learned.blocks
    )
    fields, texts, parts = _fields(applying, rules, ruled), _texts(applying, rules, ruled), _parts(applying, rules, ruled)
    found = extracted(applying, ruled, is_main=content.is_main, part_chars=content.part_chars)
    before = len(page.text.split())
    return ExtractionPreview(
        url,
        fields,
        texts,
        parts,
        found.fields,
        {**page.fields, **({"modified": page.modified} if page.modified else {})},
        before,
        before if found.text is None else len(found.text.split()),
        found.parts,
        [(block.text, learned.blocks[block.number]) for block in ruled.left_out],
        learned.pages,
    )


def _fields(applying: ExtractionRules, rules: ExtractionRules, page: RuledPage) -> list[FieldPreview]:
    decided: set[str] = set()
    shown = []
    for number, rule in enumerate(rules.fields, 1):
        applies = rule in applying.fields
        found = page.values(rule) if applies else NOTHING
        decides = found.finds and rule.name not in decided
        if decides:
            decided.add(rule.name)
        shown.append(FieldPreview(number, rule, applies, found, decides))
    return shown


def _texts(applying: ExtractionRules, rules: ExtractionRules, page: RuledPage) -> list[TextPreview]:
    shown: list[TextPreview] = []
    for number, rule in enumerate(rules.texts, 1):
        applies = rule in applying.texts
        text = page.text(rule) if applies else None
        decides = text is not None and not any(one.decides for one in shown)
        shown.append(TextPreview(number, rule, applies, None if text is None else len(text.split()), decides))
    return shown


def _parts(applying: ExtractionRules, rules: ExtractionRules, page: RuledPage) -> list[PartPreview]:
    shown = []
    for number, rule in enumerate(rules.parts, 1):
        applies = rule in applying.parts
        shown.append(PartPreview(number, rule, applies, [part.key for part in page.parts([rule])] if applies else []))
    return shown


def _place(number: int, rule: FieldRule | TextRule | PartRule) -> dict[str, object]:
    return {"number": number, "line": rule.line, "where": [f"{pattern}*" for pattern in rule.where]}


class FieldChange(NamedTuple):
    """A value of a document before and after; of the text the number of words."""

    url: str
    before: str
    after: str


@dataclass(slots=True)
class ExtractionChanges:
    """What a change of the rules does to documents, by some of them."""

    documents: int = 0
    """How many there are."""
    checked: int = 0
    """Of them, those whose archived pages were read."""
    changed: int = 0
    by_field: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[FieldChange]] = field(default_factory=dict)

    def add(
        self, document: Document, ruled: Extracted, page: Page, *, names: Iterable[str], texts: bool, parts: bool = False
    ) -> None:
        """Compare a document with what the rules take from its page now: these fields, and the text and the parts."""
        self.checked += 1
        found = {
            name: FieldChange(document.url, document.fields.get(name, ""), ruled.fields.get(name) or page.fields.get(name, ""))
            for name in names
        }
        text = page.text if ruled.text is None else ruled.text
        if texts and document.text != text:
            found[TEXT] = FieldChange(document.url, *(counted(len(one.split()), "word") for one in (document.text, text)))
        if parts and document.parts != ruled.parts:
            found[PARTS] = FieldChange(document.url, *(counted(len(one), "part") for one in (document.parts, ruled.parts)))
        differing = {name: change for name, change in found.items() if change.before != change.after or name in (TEXT, PARTS)}
        self.changed += bool(differing)
        for name, change in differing.items():
            self.by_field[name] = self.by_field.get(name, 0) + 1
            if len(examples := self.examples.setdefault(name, [])) < EXAMPLES:
                examples.append(change)

    def as_json(self) -> dict[str, object]:
        fields = {
            name: {"changed": number, "examples": [one._asdict() for one in self.examples[name]]}
            for name, number in sorted(self.by_field.items())
        }
        return {"documents": self.documents, "checked": self.checked, "changed": self.changed, "fields": fields}
