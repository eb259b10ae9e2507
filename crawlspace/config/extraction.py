"""`extract.toml`: the extraction rules of a collection, with all mistakes of the file, and the pages that each rule applies to.

    [[field]]
    name = "price"
    where = "http://shop.example.com/*"
    css = "span.price"
    type = "number"

What the rules find is in `crawlspace/content/extraction.py`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import re2

from crawlspace.config.toml_places import TomlPlace, TomlPlaces
from crawlspace.content.extraction import MAX_ELEMENTS, MAX_VALUES, url_options
from crawlspace.content.extraction_rules import (
    NO_RULES,
    SOURCES,
    TAKES,
    TYPES,
    By,
    ExtractionRules,
    FieldRule,
    PartRule,
    Take,
    TextRule,
    ValueType,
)
from crawlspace.content.selectors import BadSelector, css_selector, element_selector, xpath_selector
from crawlspace.document import field_fault
from crawlspace.errors import Mistake, RuleFileError, did_you_mean
from crawlspace.rules.target_lists import TargetLists
from crawlspace.rules.targets import BadTarget, prefix_target
from crawlspace.text import counted, quoted

MAX_SIZE = 4 * 1024 * 1024
"""Maximal bytes of the file."""
MAX_RULES = 1_000
"""Maximal rules of each kind: all that apply to a page are applied one by one."""
MAX_PATTERN = 5_000
"""Maximal characters of a regular expression."""
MAX_EXPRESSION = 1_000
"""Maximal characters of the name of a meta element or header, or of a path."""

MAX_PARTS = 100
"""Maximal parts of a dotted key."""
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MAX_PARTS}}}")

_KEYS: Mapping[str, tuple[str, ...]] = {
    "field": ("name", "where", *SOURCES, "take", "type"),
    "text": ("where", "only", "drop"),
    "part": ("where", "css", "key", "title"),
}
_OTHER_WORDS = {"selector": "css", "json-ld": "jsonld", "json_ld": "jsonld", "regex": "url", "pattern": "url", "exclude": "drop"}
_SOURCES = f"{', '.join(SOURCES[:-1])} or {SOURCES[-1]}"
_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)\s*\Z")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_JSON_PATH = re.compile(r"[^.\s][^.]*(?:\.[^.\s][^.]*)*")
Rule = TypeVar("Rule")
Choice = TypeVar("Choice", bound=str)
_ATTRIBUTE = re.compile(r"@[A-Za-z_][\w.:-]*")


class ExtractionScope:
    """Which rules apply to a URL; one look-up where none does."""

    __slots__ = ("_known", "_lists", "_rules")

    def __init__(self, rules: ExtractionRules) -> None:
        self._rules = rules
        every: tuple[FieldRule | TextRule | PartRule, ...] = (*rules.fields, *rules.texts, *rules.parts)
        self._lists = TargetLists([rule.where for rule in every])
        self._known: dict[tuple[int, ...], ExtractionRules] = {(): NO_RULES}

    def of(self, url: str) -> ExtractionRules:
        """Return the rules that apply to a URL, given as its text in normal form; NO_RULES for none."""
        applying = self._lists.applying(url)
        found = self._known.get(applying)
        return self._chosen(applying) if found is None else found

    def _chosen(self, applying: tuple[int, ...]) -> ExtractionRules:
        fields, texts = len(self._rules.fields), len(self._rules.texts)
        found = ExtractionRules(
            tuple(self._rules.fields[at] for at in applying if at < fields),
            tuple(self._rules.texts[at - fields] for at in applying if fields <= at < fields + texts),
            tuple(self._rules.parts[at - fields - texts] for at in applying if fields + texts <= at),
        )
        if len(self._known) < MAX_RULES:
            self._known[applying] = found
        return found


def parse_extraction_rules(text: str, *, file: str) -> ExtractionRules:
    """Return the rules of a file. Raises RuleFileError with all mistakes; `file` is the name in messages."""
    long = _LONG_KEY.search(text)
    if long is not None:  # tomllib takes memory that grows with the square of their number
        line, column = text.count("\n", 0, long.start()) + 1, long.start() - text.rfind("\n", 0, long.start())
        message = f'a key has more than {MAX_PARTS} parts between dots; keys are plain words, as in css = "span.price"'
        raise RuleFileError([Mistake(file, line, column, message, text.split("\n")[line - 1][:200])])
    try:
        tables: Mapping[str, object] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise RuleFileError([_not_toml(error, text, file)]) from error
    reader = _ExtractReader(tables, TomlPlaces(text), file)
    rules = reader.rules()
    if reader.mistakes:
        raise RuleFileError(sorted(reader.mistakes, key=lambda mistake: (mistake.line, mistake.column)))
    return rules


def _not_toml(error: Exception, text: str, file: str) -> Mistake:
    lines = text.split("\n")
    message = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
    found = _AT.search(message)
    line, column = (int(found[1]), int(found[2])) if found is not None and found[1] else (len(lines), len(lines[-1]) + 1)
    message = (
        f"this is not TOML: {_AT.sub('', message)}; texts stand in quotation marks, and tables begin with [[field]] or [[text]]"
    )
    return Mistake(file, line, column, message, lines[min(line, len(lines)) - 1])


class _ExtractReader:
    """Reads the tables of one file, and records their mistakes."""

    def __init__(self, tables: Mapping[str, object], places: TomlPlaces, file: str) -> None:
        self.mistakes: list[Mistake] = []
        self._tables = tables
        self._places = places
        self._file = file
        self._types: dict[str, tuple[ValueType, str]] = {}
        """Of each field, with the entry that has it first."""

    def rules(self) -> ExtractionRules:
        """Return the rules, without those that have mistakes."""
        for table, value in self._tables.items():
            if table not in _KEYS:
                found = did_you_mean(table, _KEYS, "there are [[field]], [[text]] and [[part]]")
                at = self._places.table(table)
                self._mistake(at, f"there is no table {quoted(table)}: {found}")
            elif not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
                self._mistake(self._places.table(table), f"{table} is one of several; write [[{table}]] above its keys")
        return ExtractionRules(self._read("field", self._field), self._read("text", self._text), self._read("part", self._part))

    def _read(self, table: str, read: Callable[[_RuleTable], Rule | None]) -> tuple[Rule, ...]:
        entries = self._tables.get(table)
        found: list[Rule] = []
        for number, values in enumerate(entries if isinstance(entries, list) else ()):
            if not isinstance(values, dict):
                continue
            entry = _RuleTable(self._mistake, self._places, table, number=number, values=values)
            if number >= MAX_RULES:
                entry.fault(
                    "", f"this is one more than {MAX_RULES:,}, which is the most of a file; one rule may do for many pages"
                )
                break
            before = len(self.mistakes)
            entry.refuse_unknown_keys()
            rule = read(entry)
            if rule is not None and len(self.mistakes) == before:
                found.append(rule)
        return tuple(found)

    def _field(self, entry: _RuleTable) -> FieldRule | None:
        name = entry.text("name")
        if "name" not in entry.values:
            entry.fault("", 'it has no name; write that of the field, as in name = "price"')
        elif name and (fault := field_fault(name)):
            entry.fault("name", f"name is {quoted(name)}{fault}")
        where = entry.where()
        by, expression = entry.source()
        take: Take = entry.one_of("take", TAKES, "first")
        kind: ValueType = entry.one_of("type", TYPES, "text")
        if take == "joined" and kind != "text":
            entry.fault(
                "take", f'take is "joined", which makes one text, and type is {quoted(kind)}; write take = "all" or "first"'
            )
        elif take == "all" and kind == "bool":
            entry.fault("take", 'take is "all", and a field of type "bool" has one value; leave take out')
        first_type, first = self._types.setdefault(name, (kind, entry.title))
        if name and first_type != kind and entry.values.get("type", kind) == kind:
            entry.fault("type", f"its type is {quoted(kind)}, and that of {first} is {quoted(first_type)}; a field has one type")
        return FieldRule(name, by, expression, where, take, kind, entry.line) if by else None

    def _text(self, entry: _RuleTable) -> TextRule | None:
        if not {"only", "drop"} & entry.values.keys():
            entry.fault("", "it has neither only nor drop; write which elements have the text, or which are left out of it")
        only, drop = entry.elements("only"), entry.elements("drop")
        return TextRule(only, drop, entry.where(), entry.line)

    def _part(self, entry: _RuleTable) -> PartRule | None:
        for key, what in (("css", "the elements that are parts"), ("key", 'what names each part, as in key = "@id"')):
            if key not in entry.values:
                entry.fault("", f"it has no {key}; write {what}")
        css, title = entry.element("css"), entry.element("title")
        key = entry.text("key")
        if key.startswith("@"):
            if not _ATTRIBUTE.fullmatch(key):
                entry.fault("key", f"key is {quoted(key)}, which names no attribute; write one such as @id, or CSS")
        elif key:
            key = entry.element("key")
        return PartRule(css, key, title, entry.where(), entry.line)

    def _mistake(self, at: TomlPlace, message: str) -> None:
        self.mistakes.append(Mistake(self._file, at.line, at.column, message, self._places.written(at.line)))


class _RuleTable:
    """One table of an array, with its values."""

    def __init__(
        self,
        record: Callable[[TomlPlace, str], None],
        places: TomlPlaces,
        table: str,
        *,
        number: int,
        values: Mapping[str, object],
    ) -> None:
        self._record = record
        self._places = places
        self._table = table
        self._number = number
        self.values = values
        name = values.get("name")
        self.title = f"{table} {number + 1}" + (f" ({name[:100]})" if isinstance(name, str) and name else "")
        self.line = self._places.table(table, number).line

    def fault(self, key: str, message: str, *, item: int = 0, at_key: bool = False) -> None:
        """Record a mistake at the value of a key; at the table for one that is not there."""
        place = self._places.table(self._table, self._number)
        if key in self.values and at_key:
            place = self._places.key(self._table, self._number, key)
        elif key in self.values:
            place = self._places.value(self._table, self._number, key, item=item)
        self._record(place, f"{self.title}: {message}")

    def refuse_unknown_keys(self) -> None:
        known = _KEYS[self._table]
        for key in self.values:
            if key not in known:
                word = _OTHER_WORDS.get(key.lower(), key)
                meant = did_you_mean(word, known, f"there are {', '.join(known)}")
                self.fault(key, f"there is no key {quoted(key)}: {meant}", at_key=True)

    def text(self, key: str) -> str:
        """Return a text without blanks around it; empty if there is none, or after a mistake."""
        value = self.values.get(key)
        if value is None:
            return ""
        if not isinstance(value, str) or not value.strip():
            self.fault(key, f"{key} is {quoted(value)}; it must be a text, in quotation marks")
            return ""
        return value.strip()

    def texts(self, key: str, example: str) -> tuple[str, ...]:
        """Return one text or several, an empty one in the place of each that is wrong; none if there are none."""
        value = self.values.get(key)
        if value is None:
            return ()
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not found:
            self.fault(key, f"{key} is {quoted(value)}; it must be a text or a list of texts, as in {key} = {example}")
            return ()
        for item, one in enumerate(found):
            if not isinstance(one, str) or not one.strip():
                self.fault(key, f"{key} has {quoted(one)}; its items must be texts, as in {key} = {example}", item=item)
        return tuple(one.strip() if isinstance(one, str) else "" for one in found)

    def where(self) -> tuple[str, ...]:
        """Return the compiled targets."""
        patterns: list[str] = []
        for item, target in enumerate(self.texts("where", '"http://www.example.com/news/*"')):
            if not target:
                continue
            if not target.strip("*"):
                self.fault("where", f"where is {quoted(target)}; leave it out for all pages", item=item)
                continue
            try:
                patterns.append(prefix_target(target))
            except BadTarget as error:
                self.fault("where", f"where is {quoted(target)}: {error}", item=item)
        return tuple(patterns)

    def one_of(self, key: str, known: Sequence[Choice], default: Choice) -> Choice:
        word = self.text(key)
        found = next((one for one in known if one == word), None)
        if word and found is None:
            meant = did_you_mean(word, known, f"it may be {', '.join(known)}")
            self.fault(key, f"{key} is {quoted(word)}: {meant}")
        return found or default

    def elements(self, key: str) -> tuple[str, ...]:
        """Return CSS selectors of elements."""
        found = self.texts(key, '["#content"]')
        for item, css in ((item, css) for item, css in enumerate(found) if css):
            self._check(key, css, lambda one: element_selector(one, most=MAX_ELEMENTS), item=item)
        return found

    def element(self, key: str) -> str:
        css = self.text(key)
        if css:
            self._check(key, css, lambda one: element_selector(one, most=MAX_ELEMENTS))
        return css

    def source(self) -> tuple[By | None, str]:
        """Return what the values are taken from, and the expression; None after a mistake."""
        given = [source for source in SOURCES if source in self.values]
        if not given:
            self.fault("", f'it has nothing to take its value from; write {_SOURCES}, as in css = "span.price"')
            return None, ""
        if len(given) > 1:
            self.fault(
                given[1],
                f"it has {' and '.join(given)}, and one of them is to be taken; write a [[field]] of the same name for the other",
                at_key=True,
            )
        by = given[0]
        expression = self.text(by)
        if expression:
            self._check(by, expression, _CHECKS[by])
        return by, expression

    def _check(self, key: str, expression: str, check: Callable[[str], object], *, item: int = 0) -> None:
        try:
            check(expression)
        except BadSelector as error:
            self.fault(key, f"{key} is {quoted(expression)}: {error}", item=item)


def _check_url(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN:
        raise BadSelector(f"it has {len(pattern):,} characters, and {MAX_PATTERN:,} is the most")
    try:
        groups = int(re2.compile(pattern, url_options()).groups)
    except re2.error as error:
        why = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error.args[0])
        raise BadSelector(f"RE2 cannot use this expression: {why[:200]}") from error
    if groups != 1:
        way_out = "put what is taken into ( )" if groups == 0 else "write (?: ) for what only belongs together"
        raise BadSelector(f"it has {counted(groups, 'group')}, and exactly one is needed; {way_out}")


def _check_name(name: str) -> None:
    if len(name) > MAX_EXPRESSION:
        raise BadSelector(f"it has {len(name):,} characters, and {MAX_EXPRESSION:,} is the most")


def _check_header(name: str) -> None:
    _check_name(name)
    if not _HEADER_NAME.fullmatch(name):
        raise BadSelector("that is not the name of a header; write one such as X-Department")


def _check_path(path: str) -> None:
    _check_name(path)
    if not _JSON_PATH.fullmatch(path):
        raise BadSelector("that is not a path; write the names of properties with dots between them, as in offers.price")


_CHECKS: Mapping[By, Callable[[str], object]] = {
    "css": lambda css: css_selector(css, most=MAX_VALUES),
    "xpath": lambda xpath: xpath_selector(xpath, most=MAX_VALUES),
    "meta": _check_name,
    "jsonld": _check_path,
    "header": _check_header,
    "url": _check_url,
}
