"""Translate the Rules of a crawler to our rules.xml, each with a comment with its line.

Parts that our rules.xml would refuse are reported. An invalid action alone is left out; a rule with an invalid condition is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from xml.sax.saxutils import quoteattr

from crawlspace.errors import Mistake, RuleFileError, did_you_mean
from crawlspace.importers.exalead.xml import COMMENT, Attribute, ConfigElement
from crawlspace.importers.files import xml_comment
from crawlspace.importers.translation import Fate, ImportReport
from crawlspace.rules.xml.elements import ACTIONS, CONDITIONS
from crawlspace.rules.xml.model import RegexSyntax
from crawlspace.rules.xml.parser import parse_rules_xml
from crawlspace.rules.xml.values import SPECIAL
from crawlspace.text import counted, quoted

_ESCAPE = re.compile(rf"\\([{re.escape(SPECIAL)}\\])|([{re.escape(SPECIAL)}])")
_OF_LINE = re.compile(r"of line (\d+)")
_FLAGS = frozenset({"Accept", "Ignore", "Index", "NoIndex", "Follow", "NoFollow"})
"""Actions without attributes."""
_WHOLE = "DisableConditionalGet"
_FORBIDDING = frozenset({"Ignore", "NoIndex", "NoFollow"})


def flipped(value: str) -> str:
    """Return a value with a backslash before each special character that had none, and none before the others.

    It means the same in the other syntax.
    """
    return _ESCAPE.sub(lambda found: rf"\{found[2]}" if found[2] else (r"\\" if found[1] == "\\" else found[1]), value)


def imported_rules(rules: Sequence[ConfigElement], report: ImportReport, *, syntax: RegexSyntax) -> list[str]:
    """Return the lines of rules.xml for the Rules of a crawler, and report their fate."""
    importing = _RulesImport(report, syntax)
    return [line for one in rules for line in importing.lines(one, indent="  ")]


@dataclass(slots=True)
class _RulesImport:
    _report: ImportReport
    _syntax: RegexSyntax

    def lines(self, rules: ConfigElement, indent: str) -> list[str]:
        """Return the lines for a Rules element, with nested ones."""
        name = _named(rules)
        known: dict[str, Attribute] = {}
        for key, attribute in rules.attributes.items():
            if key in {"group", "key"}:
                known[key] = attribute
            else:
                self._lose(
                    attribute.line,
                    f"{name}/{key}",
                    f"{quoted(key)} is not known: {did_you_mean(key, ('group', 'key'), 'Rules has group and key')}",
                )
        if rules.text.strip():
            self._lose(rules.line, name, "text is not allowed in Rules")
        found: list[str] = []
        kept = 0
        waiting: list[str] = []
        for child in rules.children:
            if child.name == COMMENT:
                waiting.append(f"{indent}  {xml_comment(child.text.strip())}")
            elif child.name == "Rules" and not child.is_foreign:
                found += [*waiting, *self.lines(child, f"{indent}  ")]
                waiting = []
            elif child.name == "Rule" and not child.is_foreign:
                rule = self._usable(child, name)
                if rule is not None:
                    kept += 1
                    origin = f"{indent}  {xml_comment(f'{self._report.file}:{child.line}')}"
                    found += [*waiting, origin, *(f"{indent}  {line}" for line in _written(rule))]
                else:
                    found += [*waiting, f"{indent}  {xml_comment(f'{self._report.file}:{child.line}: a Rule that is left out')}"]
                waiting = []
            else:
                meant = did_you_mean(child.name, ("Rule", "Rules"), "Rules holds Rule")
                self._lose(child.line, f"{name}/{child.name}", f"{quoted(child.name)} is not known: {meant}")
        is_group = not kept and any(child.name == "Rules" for child in rules.elements)
        text = "a group of rules.xml, with those inside it" if is_group else f"{counted(kept, 'rule')} of rules.xml"
        self._report.add(rules.line, name, Fate.TRANSLATED, text)
        return [f"{indent}{_tag('Rules', known)}>", *found, *waiting, f"{indent}</Rules>"]

    # --- one rule ----------------------------------------------------------------------------------------------------

    def _usable(self, rule: ConfigElement, within: str) -> ConfigElement | None:
        """Return a rule as far as our rules.xml accepts it, and report the rest; None if its condition cannot be used."""
        rule = self._with_conditional_get(self._with_expressions(rule, within), within)
        if not self._mistakes(rule):
            return rule
        conditions: list[ConfigElement] = []
        others: list[ConfigElement] = []
        for child in rule.elements:
            is_action = child.name in ACTIONS or (conditions and child.name not in CONDITIONS)
            if not is_action:
                conditions.append(child)
            else:
                others += self._usable_action(child, others, within)
        usable = replace(rule, children=[*conditions, *others])
        mistakes = self._mistakes(usable)
        ending = "; the rule is left out"
        if any(child.name in _FORBIDDING for child in rule.elements):
            ending += ", so that what only it keeps out is crawled or indexed"
        for mistake in mistakes:
            self._lose(mistake.line, f"{within}/Rule", f"{mistake.message}{ending}")
        return None if mistakes else usable

    def _usable_action(self, action: ConfigElement, before: Sequence[ConfigElement], within: str) -> list[ConfigElement]:
        """Return an action as far as it can be used together with the previous ones: in a list, empty if unusable."""
        first = min(one.line for one in (*before, action))
        always = ConfigElement("Path", first, attributes={"val": Attribute("val", "/", first)})
        mistakes = self._mistakes(ConfigElement("Rule", first, children=[always, *before, action]))
        for mistake in mistakes:
            self._lose(action.line, f"{within}/Rule/{action.name}", mistake.message)
        if not mistakes:
            return [action]
        bare = ConfigElement(action.name, action.line)
        is_usable = action.name in _FLAGS and not self._mistakes(ConfigElement("Rule", first, children=[always, *before, bare]))
        return [bare] if is_usable else []

    def _with_conditional_get(self, rule: ConfigElement, within: str) -> ConfigElement:
        """Return the rule with our action in place of the one that has pages requested whole."""
        children = []
        for child in rule.children:
            if child.name.lower() != _WHOLE.lower() or child.attributes:
                children.append(child)
                continue
            children.append(
                ConfigElement("ConditionalGet", child.line, attributes={"mode": Attribute("mode", "never", child.line)})
            )
            text = '<ConditionalGet mode="never"/>'
            self._report.add(child.line, f"{within}/Rule/{child.name}", Fate.TRANSLATED, text, is_recalled=True)
        return replace(rule, children=children)

    def _with_expressions(self, rule: ConfigElement, within: str) -> ConfigElement:
        """Return the rule with values marked literal that are expressions.

        The console of CloudView writes `litteral="true"` with each value, and an expression in it with backslashes.
        """
        children = []
        for child in rule.children:
            one = self._with_expressions(child, within) if child.children else child
            literal = [key for key in ("litteral", "literal") if key in one.attributes and one.attributes[key].value == "true"]
            values = [key for key in ("val", "value") if key in one.attributes]
            if literal and values and one.name in CONDITIONS and _is_expression(one.attributes[values[0]].value):
                one = self._as_expression(one, literal[0], values[0])
                attribute = child.attributes[values[0]]
                text = f"an expression, {quoted(one.attributes[values[0]].value)}: {literal[0]} is left off"
                self._report.add(attribute.line, f"{within}/Rule/{one.name}", Fate.TRANSLATED, text, is_recalled=True)
            children.append(one)
        return replace(rule, children=children)

    def _as_expression(self, element: ConfigElement, literal: str, value: str) -> ConfigElement:
        attributes = {key: one for key, one in element.attributes.items() if key != literal}
        if self._syntax is RegexSyntax.STANDARD:
            attributes[value] = replace(attributes[value], value=flipped(attributes[value].value))
        return replace(element, attributes=attributes)

    def _mistakes(self, rule: ConfigElement) -> Sequence[Mistake]:
        """Return the mistakes of a rule by our rules.xml; lines are those of the imported file."""
        text = "<Rules>"
        line = rule.line
        for at, part in _parts(rule):
            text += "\n" * (at - line) + part
            line = max(at, line)
        try:
            parse_rules_xml(f"{text}</Rules>".encode(), file=self._report.file, syntax=self._syntax)
        except RuleFileError as error:
            return [_moved(mistake, rule.line - 1) for mistake in error.mistakes]
        return ()

    def _lose(self, line: int, name: str, reason: str) -> None:
        self._report.add(line, name, Fate.NO_COUNTERPART, reason)


def _is_expression(value: str) -> bool:
    return re.search(rf"\\[{re.escape(SPECIAL)}]", value) is not None


def _moved(mistake: Mistake, lines: int) -> Mistake:
    message = _OF_LINE.sub(lambda found: f"of line {int(found[1]) + lines}", mistake.message)
    return replace(mistake, line=mistake.line + lines, message=message)


def _named(rules: ConfigElement) -> str:
    names = [rules.attributes[key].value for key in ("group", "key") if key in rules.attributes and rules.attributes[key].value]
    return " ".join(["Rules", "/".join(names)]).strip()


def _tag(name: str, attributes: Mapping[str, Attribute]) -> str:
    return f"<{name}{''.join(f' {key}={quoteattr(one.value)}' for key, one in attributes.items())}"


def _parts(element: ConfigElement) -> Iterator[tuple[int, str]]:
    """Yield the tags of an element with their lines."""
    foreign = ' xmlns="urn:other"' if element.is_foreign else ""
    start = f"{_tag(element.name, element.attributes)}{foreign}"
    if element.text.strip():
        yield element.line, f"{start}>{xml_comment('')}{_text(element.text)}"
    elif not element.elements:
        yield element.line, f"{start}/>"
        return
    else:
        yield element.line, f"{start}>"
    for child in element.elements:
        yield from _parts(child)
    yield element.line, f"</{element.name}>"


def _text(text: str) -> str:
    return text.strip().replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _written(element: ConfigElement, indent: str = "") -> Iterator[str]:
    """Yield the lines of a rule, with its comments."""
    if element.name == COMMENT:
        yield f"{indent}{xml_comment(element.text.strip())}"
    elif not element.children:
        yield f"{indent}{_tag(element.name, element.attributes)}/>"
    else:
        yield f"{indent}{_tag(element.name, element.attributes)}>"
        for child in element.children:
            yield from _written(child, f"{indent}  ")
        yield f"{indent}</{element.name}>"


# --- The hosts that accepting rules name. crawl.rules allows them by name, because only such hosts may have private addresses ---

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
    """Yield the hosts that a condition names, without negated ones."""
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
