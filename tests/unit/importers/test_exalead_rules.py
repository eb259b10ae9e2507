"""The rules of an Exalead configuration: what is kept as it is, what is left out, and what is said of it."""

from __future__ import annotations

import pytest

from crawlspace.importers.exalead.rules import flipped
from crawlspace.importers.files import ImportedCollection
from crawlspace.importers.translation import Fate
from crawlspace.rules.xml.model import RegexSyntax
from crawlspace.rules.xml.parser import parse_rules_xml
from tests.unit.importers.exalead_imports import imported_from
from tests.unit.rules.xml.parsed import shown


def rules(inside: str, syntax: RegexSyntax | None = None) -> ImportedCollection:
    """Rules whose content begins in line 2."""
    return imported_from(f'<Rules group="g" key="k">\n{inside}</Rules>'.encode(), syntax=syntax)


def texts(found: ImportedCollection, syntax: RegexSyntax = RegexSyntax.ESCAPED) -> list[str]:
    """The rules that were written, each in one line."""
    return [rule.ref.text for rule in parse_rules_xml(found.files["rules.xml"].encode(), file="", syntax=syntax).rules]


# what is between <Rules> and </Rules> -> the rules that are written, and what is reported: line, option after "Rules g/k", sentence
LEFT_OUT = [
    # actions alone are left out
    ('<Rule><Path val="/a"/><Source name=""/><Index/></Rule>', ["Path /a: Index"], [(2, "/Rule/Source", "the name of Source is empty")]),
    ('<Rule><Path val="/a"/><AddMeta value="" name=""/></Rule>', [], [(2, "/Rule/AddMeta", "the name of AddMeta is empty"), (2, "/Rule", "this Rule has no action")]),
    ('<Rule><Path val="/a"/>\n<Priority shift=""/><Follow/></Rule>', ["Path /a: Follow"], [(3, "/Rule/Priority", "from -2 (first) to 2 (last), not ''")]),
    ('<Rule><Path val="/a"/><AddMeta name="title" value="x"/><Follow/></Rule>', ["Path /a: Follow"], [(2, "/Rule/AddMeta", "'title' is a field that every document has")]),
    ('<Rule><Path val="/a"/>\n<DataModelClass name="c"/>\n<Follow/></Rule>', ["Path /a: Follow"], [(3, "/Rule/DataModelClass", "DataModelClass is not known")]),
    ('<Rule><Path val="/a"/><Ignore now="1"/></Rule>', ["Path /a: Ignore"], [(2, "/Rule/Ignore", "attribute 'now' is not known")]),
    ('<Rule><Path val="/a"/><Index/><Index/></Rule>', ["Path /a: Index"], [(2, "/Rule/Index", "Index is twice in this rule")]),
    ('<Rule><Path val="/a"/><Index/>\n<NoIndex/></Rule>', ["Path /a: Index"], [(3, "/Rule/NoIndex", "NoIndex contradicts Index of line 2")]),
    ('<Rule><Index/><Path val="/a"/></Rule>', ["Path /a: Index"], []),
    # a rule whose condition cannot be read is
    ('<Rule><Paht val="/a"/>\n<Ignore/></Rule>', [], [(2, "/Rule", "did you mean Path?; the rule is left out, so that what only it keeps out is crawled or indexed")]),
    ('<Rule>\n<Path val="/a\\("/><Index/></Rule>', [], [(3, "/Rule", "\\( is not closed by \\) (character 3 of val); the rule is left out")]),
    ("<Rule>\n<Or>...</Or><Index/></Rule>", [], [(3, "/Rule", "... stands for conditions; write them in its place")]),
    ('<Rule><Atom field="" kind="" norm="" value="" /><Index/></Rule>', [], [(2, "/Rule", "field '' is not known"), (2, "/Rule", "kind '' is not known"), (2, "/Rule", "norm '' is not known")]),
    ('<Rule><Path val="/a"/><Path val="/b"/><Index/></Rule>', [], [(2, "/Rule", "put both into And or Or")]),
    ("<Rule/>", [], [(2, "/Rule", "this Rule is empty")]),
    ('<Rule><o:Path xmlns:o="urn:x" val="/a"/><Index/></Rule>', [], [(2, "/Rule", "Path is in the namespace 'urn:")]),
    # what is no rule
    ('<Rul/>\n<Rule><Path val="/a"/><Index/></Rule>', ["Path /a: Index"], [(2, "/Rul", "'Rul' is not known: did you mean 'Rule'?")]),
    ("text", [], [(1, "", "text is not allowed in Rules")]),
    # the others are not concerned
    ('<Rule><Path val="/a"/><Index/></Rule>\n<Rule><Path/><Index/></Rule>\n<Rule><Path val="/b"/><Index/></Rule>', ["Path /a: Index", "Path /b: Index"], [(3, "/Rule", 'Path needs val="…"')]),
    ('<Rule><Length field="path" val="[30:]" /><NoFollow/></Rule>', ["Length path [30:]: NoFollow"], []),
]  # fmt: skip


@pytest.mark.parametrize(("inside", "written", "lost"), LEFT_OUT, ids=[row[0][:60] for row in LEFT_OUT])
def test_what_cannot_be_used_is_reported_and_nothing_else_is_lost(
    inside: str, written: list[str], lost: list[tuple[int, str, str]]
) -> None:
    found = rules(inside)
    assert texts(found) == written
    reported = [one for one in found.report.options if one.fate is Fate.NO_COUNTERPART and one.option != "Root"]
    assert [(one.line, one.option) for one in reported] == [(line, f"Rules g/k{name}") for line, name, _ in lost]
    assert all(part in one.text for one, (_, _, part) in zip(reported, lost, strict=True)), [one.text for one in reported]


def test_comments_and_groups_are_kept() -> None:
    found = rules(
        "<!-- one -- ish -->".replace(" -- ", " - ")
        + '<Rules key="n">\n<Rule><!-- two --><Path val="/a&amp;&quot;&lt;"/><Index/></Rule></Rules>'
    )
    assert found.files["rules.xml"].splitlines()[2:] == [
        "<Rules>",
        '  <Rules group="g" key="k">',
        "    <!-- one - ish -->",
        '    <Rules key="n">',
        "      <!-- demo.xml:3 -->",
        "      <Rule>",
        "        <!-- two -->",
        """        <Path val='/a&amp;"&lt;'/>""",
        "        <Index/>",
        "      </Rule>",
        "    </Rules>",
        "  </Rules>",
        "</Rules>",
    ]


CONSOLE = (
    r'<Rule><Atom field="url" kind="exact" norm="none" value="http://a.b/\.\+/\[0-9\]\{7\}?c" litteral="true"/><Index/></Rule>'
)


@pytest.mark.parametrize(
    ("syntax", "meaning"),
    [
        (RegexSyntax.ESCAPED, r"url exact /http://a\.b/.+/[0-9]{7}\?c/ none"),
        (RegexSyntax.STANDARD, r"url exact /http://a\.b/.+/[0-9]{7}\?c/ none"),
    ],
)
def test_an_expression_that_the_console_calls_literal_is_one(syntax: RegexSyntax, meaning: str) -> None:
    found = rules(CONSOLE, syntax)
    [rule] = parse_rules_xml(found.files["rules.xml"].encode(), file="", syntax=syntax).rules
    assert shown(rule.condition) == meaning
    [reported] = [one for one in found.report.options if one.option == "Rules g/k/Rule/Atom"]
    assert (reported.line, reported.is_recalled, "litteral is left off" in reported.text) == (2, True, True)


def test_a_literal_without_an_expression_stays_as_it_is() -> None:
    found = rules(r'<Rule><Url val="http://a.b/c?d" literal="true"/><Index/></Rule>')
    assert texts(found) == ["Url http://a.b/c?d literal: Index"]


@pytest.mark.parametrize(
    ("escaped", "standard"),
    [(r"a.b\.\*", r"a\.b.*"), (r"\(a\|b\)", "(a|b)"), (r"a\\b", r"a\\b"), ("/x", "/x"), (r"\[\^0-9\]+", r"[^0-9]\+")],
)
def test_values_change_between_the_syntaxes(escaped: str, standard: str) -> None:
    assert (flipped(escaped), flipped(standard)) == (standard, escaped)


def test_expressions_are_read_as_asked_for() -> None:
    inside = r'<Rule><Path val="/\d+"/><Index/></Rule>'
    assert texts(rules(inside, RegexSyntax.STANDARD), RegexSyntax.STANDARD) == [r"Path /\d+: Index"]
    assert texts(rules(inside)) == []
