"""`rules.xml`: the file of action rules, in the format of Exalead CloudView.

    <Rules group="…" key="…">
      <Rule> a condition, then actions </Rule>
    </Rules>

Elements are in the namespace exa:com.exalead.actionrules.v21 or another one of `exa:`, or in none: in an exported configuration,
Rules and actions are in the configuration's namespace. Of such a configuration the Rules are read; the rest is
reported. A file with mistakes gives no rules; all its mistakes are reported.

Parsing has bounded cost: there is no DOCTYPE, so no entities, and size and depth are limited.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from xml.parsers.expat import ExpatError, ParserCreate

from crawlspace.errors import Mistake, RuleFileError
from crawlspace.parsing import boolean, words
from crawlspace.rules.crawl_rules import CrawlRules
from crawlspace.rules.limits import Limits
from crawlspace.rules.xml.elements import ACTIONS, COMBINED, CONDITIONS, RuleReader, check_attributes, meant
from crawlspace.rules.xml.model import NAMESPACE, ActionRule, ActionRuleSet, NotRead, RegexSyntax
from crawlspace.rules.xml.positions import Element, Mistakes, XmlText, decode, not_well_formed
from crawlspace.text import printable, quoted

MAX_SIZE = 10 * 1024 * 1024
"""Maximal bytes of a file."""
MAX_DEPTH = 100
"""Maximal depth of nested elements."""
WRAPPERS = ("CrawlConfig", "Crawler")
"""Elements without a namespace that may enclose Rules."""


def parse_rules_xml(data: bytes, *, file: str, syntax: RegexSyntax = RegexSyntax.ESCAPED) -> ActionRuleSet:
    """Return the rules of a file. Raises RuleFileError with all mistakes; `file` is the name in messages."""
    refuse_size(len(data), file=file)
    return _Reading(XmlText(decode(data, file=file), file=file), syntax).result()


def refuse_size(size: int, *, file: str) -> None:
    """Raise RuleFileError if a file is too large."""
    if size > MAX_SIZE:
        has, limit = (f"{count / 1024 / 1024:,.1f} MiB" for count in (size, MAX_SIZE))
        message = f"the file has {has}, and {limit} is the most that is read; an expression can take the place of many values"
        raise RuleFileError([Mistake(file, 1, 1, message, "")])


class _Role(Enum):
    """The role of an element by its position."""

    OUTSIDE = auto()
    RULES = auto()
    RULE = auto()
    COMBINED = auto()
    """A condition that contains others."""
    SINGLE = auto()
    """A condition or action that contains nothing."""
    SKIPPED = auto()
    """A mistake, with everything in it."""


@dataclass(slots=True)
class _Open:
    """An element that is not closed yet."""

    element: Element
    role: _Role
    group: str = ""
    key: str = ""
    leads_to_rules: bool = False
    siblings: int = 0
    """Number of elements next to the rules before it."""


class _Reading:
    """Parses a file in one pass; a Rule is read at its end tag."""

    def __init__(self, text: XmlText, syntax: RegexSyntax) -> None:
        self._text = text
        self._syntax = syntax
        self._mistakes = Mistakes(text)
        self._rule_reader = RuleReader(text.file, self._mistakes, syntax=syntax)
        self._parser = ParserCreate(namespace_separator=" ")
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._open: list[_Open] = []
        self._rules: list[ActionRule] = []
        self._around: list[NotRead] = []
        self._siblings: list[NotRead] = []
        self._crawlers: list[Element] = []
        self._found_rules = False
        self._almost_rules: Element | None = None

    def result(self) -> ActionRuleSet:
        try:
            self._parser.Parse(self._text.text, True)  # noqa: FBT003 - the parser's own signature
        except ExpatError as error:
            raise not_well_formed(error, self._text) from error
        self._check_crawlers()
        if self._mistakes:
            raise self._mistakes.error()
        return ActionRuleSet(tuple(self._rules), tuple(self._around), tuple(self._siblings), self._syntax)

    # --- handlers of the parser --------------------------------------------------------------------------------------

    def _doctype(self, name: str, system: str | None, public: str | None, has_subset: int) -> None:
        line, column = self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1
        message = "a rules.xml has no DOCTYPE, and so no entities of its own; remove it"
        raise RuleFileError([self._text.mistake(line, column, message)])

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        namespace, _, local = name.rpartition(" ")
        if attributes:
            attributes = {key: value for key, value in attributes.items() if not key.startswith(_XML)}
        element = Element(local, namespace, attributes, self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1)
        if len(self._open) == MAX_DEPTH:
            message = f"more than {MAX_DEPTH} elements are inside each other here; write the conditions flatter"
            raise RuleFileError([self._text.mistake(element.line, element.column, message)])
        above = self._open[-1] if self._open else None
        if above is None or above.role is _Role.OUTSIDE:
            self._open.append(self._outside(element))
        elif above.role is _Role.SKIPPED:
            self._open.append(_Open(element, _Role.SKIPPED))
        else:
            self._open.append(self._inside(element, above))

    def _end(self, name: str) -> None:
        ended = self._open.pop()
        element = ended.element
        if ended.role is _Role.RULE:
            above = self._open[-1]
            rule = self._rule_reader.rule(element, group=above.group, key=above.key)
            if rule is not None:
                self._rules.append(rule)
        elif ended.role is _Role.OUTSIDE and ended.leads_to_rules:
            self._around.append(self._not_read(element))
        elif ended.role is _Role.OUTSIDE:
            del self._siblings[ended.siblings :]
            self._siblings.append(self._not_read(element))
        if not self._open and not self._found_rules and ended.role is _Role.OUTSIDE:
            self._mistakes.at(element, _WITHOUT_RULES if element.name in _OF_RULES else _no_rules(self._almost_rules))

    def _characters(self, text: str) -> None:
        above = self._open[-1]
        if above.role in {_Role.OUTSIDE, _Role.SKIPPED} or not text.strip():
            return
        if not above.element.spoiled:
            column = self._parser.CurrentColumnNumber + 1 + len(text) - len(text.lstrip())
            message = _text_in(above.element.name, text.strip())
            self._mistakes.at_place(self._parser.CurrentLineNumber, column, message)
            above.element.spoiled = True

    # --- roles of elements -------------------------------------------------------------------------------------------

    def _outside(self, element: Element) -> _Open:
        """Return the outermost element, or an element inside skipped ones."""
        if element.name == "Rules" and _is_ours(element):
            self._found_rules = True
            for one in self._open:
                one.leads_to_rules = True
            crawler = next((one.element for one in reversed(self._open) if one.element.name == "Crawler"), None)
            if crawler is not None and (not self._crawlers or self._crawlers[-1] is not crawler):
                self._crawlers.append(crawler)
            return self._rules_element(element, group="", key="")
        if not self._open and not _is_wrapper(element):
            self._mistakes.at(element, _not_outermost(element))
            return _Open(element, _Role.SKIPPED)
        if element.name.lower() == "rules":
            self._almost_rules = element
        return _Open(element, _Role.OUTSIDE, siblings=len(self._siblings))

    def _not_read(self, element: Element) -> NotRead:
        attributes = tuple((name, value) for name, value in element.attributes.items() if " " not in name)
        text = self._text.mistake(element.line, element.column, "").text
        return NotRead(element.line, element.column, element.name, attributes, text)

    def _inside(self, element: Element, above: _Open) -> _Open:
        """Return an element inside Rules."""
        if not _is_ours(element):
            self._mistakes.at(element, _foreign(element))
        elif above.role is _Role.RULES and element.name == "Rules":
            return self._rules_element(element, group=above.group, key=above.key)
        elif above.role is _Role.RULES and element.name == "Rule":
            return _Open(element, _Role.RULE)
        elif element.name in _HELD.get(above.role, ()):
            above.element.children.append(element)
            return _Open(element, _Role.COMBINED if element.name in COMBINED else _Role.SINGLE)
        else:
            self._mistakes.at(element, "" if self._mistakes.full else _misplaced(element.name, above))
        above.element.spoiled = True
        return _Open(element, _Role.SKIPPED)

    def _rules_element(self, element: Element, *, group: str, key: str) -> _Open:
        check_attributes(element, ("group", "key"), self._mistakes)
        attributes = element.attributes
        return _Open(element, _Role.RULES, group=attributes.get("group", group), key=attributes.get("key", key))

    def _check_crawlers(self) -> None:
        if len(self._crawlers) > 1:
            names = [repr(crawler.attributes.get("name", "")) for crawler in self._crawlers[:10]]
            more = ["…"] * (len(self._crawlers) > len(names))
            message = (
                f"the file has rules of {len(self._crawlers):,} crawlers, {', '.join(names + more)}; "
                "a collection has the rules of one, so leave the others out"
            )
            self._mistakes.at(self._crawlers[1], message)


_XML = "http://www.w3.org/XML/1998/namespace "
_NAMESPACES = f"elements of rules are in {NAMESPACE} or another namespace of exa:, or in none"
_OF_RULES = frozenset({"Rule", *CONDITIONS, *ACTIONS})
_WITHOUT_RULES = "a Rule belongs inside Rules, and its conditions and actions inside it; put <Rules> around all rules"
_HELD = {_Role.RULES: ("Rule", "Rules"), _Role.RULE: (*CONDITIONS, *ACTIONS), _Role.COMBINED: CONDITIONS}


def _is_ours(element: Element) -> bool:
    """Return whether an element may be part of the rules; an export has them in a namespace of its own."""
    return not element.namespace or element.namespace.startswith("exa:")


def _is_wrapper(element: Element) -> bool:
    return element.namespace.startswith("exa:") or (not element.namespace and element.name in WRAPPERS)


def _not_outermost(element: Element) -> str:
    """Return what is wrong with an outermost element that is neither Rules nor a wrapper."""
    name = element.name
    if not _is_ours(element) and name in {"Rules", *WRAPPERS, *_OF_RULES}:
        return _foreign(element)
    if name in _OF_RULES:
        return _WITHOUT_RULES
    return f"the outermost element of a rules.xml is Rules, not {name}{meant(name, ['Rules'])}"


def _no_rules(near: Element | None) -> str:
    hint = ""
    if near is not None and near.name == "Rules":
        hint = f"; that of line {near.line} is in the namespace {near.namespace!r}, and {_NAMESPACES}"
    elif near is not None:
        hint = f"; {near.name} of line {near.line} is another name, for capitals count"
    return f"there is no Rules element in this file{hint}; without rules it holds <Rules/>"


def _text_in(name: str, text: str) -> str:
    """Return what is wrong with text in an element. The dots of a printed example are among it."""
    if text in {"...", "…"} and name in COMBINED:
        return f'{text} stands for conditions; write them in its place, as in <{name}><Path val="/a/"/></{name}>'
    return f"text is not allowed in {name}; values are attributes, and comments are written <!-- -->"


def _foreign(element: Element) -> str:
    return f"{element.name} is in the namespace {quoted(element.namespace)}; {_NAMESPACES}"


def _misplaced(name: str, above: _Open) -> str:
    """Return what is wrong with an element at a wrong position."""
    holder = above.element.name
    held = _HELD.get(above.role, ())
    if not held:
        return f"{holder} holds no elements; is it meant to end before {name}, as in <{holder} …/>?"
    if name in ACTIONS:
        where = (
            "belongs in a Rule, after the condition"
            if above.role is _Role.RULES
            else "is an action and belongs after the condition, not in it"
        )
        return f"{name} {where}"
    if name in CONDITIONS:
        return f"{name} is a condition and belongs in a Rule"
    if name in {"Rule", "Rules"}:
        return f"{name} is not allowed in {holder}; is a </{holder}> missing before it?"
    return f"{name} is not known; {holder} holds {', '.join(held)}{meant(name, held)}"


# --- What an export of Exalead CloudView has besides its rules -------------------------
# Only its rules are read. What would narrow the crawl space is an error, unless the collection narrows it itself: without it the crawl
# would go where the export does not. All else is a warning.

IMPORT = "`scrapy import-exalead` makes a collection of the whole export"
_MOST_NAMES = 20
_TYPES = "CRAWLSPACE_MIME_TYPES"
_SWITCHES: tuple[tuple[str, str, bool], ...] = (
    # an attribute that is off narrows the crawl space; the setting with the value that does the same
    ("defaultAccept", "CRAWLSPACE_DEFAULT_ACCEPT", False),
    ("defaultIndex", "CRAWLSPACE_DEFAULT_INDEX", False),
    ("defaultFollow", "CRAWLSPACE_DEFAULT_FOLLOW", False),
    ("ignoreRobotsTxt", "ROBOTSTXT_OBEY", True),
)
_ON, _OFF = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})


def narrowing(rules: ActionRuleSet, own: CrawlRules, settings: Mapping[str, object], *, file: str) -> Iterator[Mistake]:
    """Yield a mistake for each part of an export that narrows the crawl space, and for which the collection has nothing.

    Raises SettingError for a wrong value of a setting that is compared.
    """
    for wrapper in rules.around:
        found = dict(wrapper.attributes)
        for name, setting, wanted in _SWITCHES:
            if (
                name in found
                and found[name].strip().lower() not in _ON
                and boolean(setting, settings.get(setting, True)) is not wanted
            ):
                shown = f"{name}={quoted(found[name])}"
                yield _mistake(wrapper, file, f"{shown} of {wrapper.element} has no effect here", f"set {setting} = {wanted}")
        types = settings.get(_TYPES, Limits().mime_types)
        if found.get("mimeTypes", "").strip() and tuple(words(_TYPES, types)) == Limits().mime_types:
            what = f"mimeTypes={quoted(found['mimeTypes'])} of {wrapper.element} has no effect here"
            yield _mistake(wrapper, file, what, f"set {_TYPES}")
    roots = [one for one in rules.siblings if one.element == "Root"]
    is_site_only = roots and not any(dict(root.attributes).get("site", "").strip().lower() in _OFF for root in roots)
    if is_site_only and not _keeps_to_hosts(own, settings):
        what = f"the roots of this export ({len(roots):,}) keep the crawl to their sites, and that has no effect here"
        yield _mistake(roots[0], file, what, "write domain rules into crawl.rules")


def what_is_not_read(rules: ActionRuleSet) -> str:
    """Return a sentence that names what of an export is not read; empty for a file with nothing but rules."""
    names = [f"{name} of {one.element}" for one in rules.around for name, _ in one.attributes if name != "name"]
    names += [
        name if count == 1 else f"{name} ({count:,})" for name, count in Counter(one.element for one in rules.siblings).items()
    ]
    if not names:
        return ""
    shown = ", ".join(printable(name) for name in names[:_MOST_NAMES])
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return f"of an export of Exalead CloudView only the rules are read, without {shown}{more}; {IMPORT}"


def first_not_read(rules: ActionRuleSet) -> NotRead:
    """Return the first thing that is not read; there is one wherever `what_is_not_read` returns a sentence."""
    return min((*(one for one in rules.around if one.attributes), *rules.siblings), key=lambda one: (one.line, one.column))


def _keeps_to_hosts(own: CrawlRules, settings: Mapping[str, object]) -> bool:
    offsite, folder = "CRAWLSPACE_FOLLOW_OFFSITE_LINKS", "CRAWLSPACE_INDEX_ENTIRE_SITE"
    if own.domain or own.prefix or not boolean(offsite, settings.get(offsite, True)):
        return True
    return boolean(folder, settings.get(folder, False))


def _mistake(at: NotRead, file: str, what: str, way_out: str) -> Mistake:
    message = f"{what}, so that more would be crawled; {way_out}, or leave it out of this file; {IMPORT}"
    return Mistake(file, at.line, at.column, message, at.text)
