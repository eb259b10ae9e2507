"""The grammar of rules.xml: what is read, and what is said, and where, of what can't be."""

from __future__ import annotations

import re

import pytest

from crawlspace.errors import Mistake, RuleFileError
from crawlspace.rules.xml.model import ActionRuleSet, And, Condition, Expression, Not, Or, Range
from crawlspace.rules.xml.parser import MAX_DEPTH, MAX_SIZE, parse_rules_xml
from tests.command_line import ROOT

V21 = "exa:com.exalead.actionrules.v21"


def read(text: str | bytes) -> ActionRuleSet:
    return parse_rules_xml(text if isinstance(text, bytes) else text.encode(), file="rules.xml")


def mistakes(text: str | bytes) -> tuple[Mistake, ...]:
    with pytest.raises(RuleFileError) as caught:
        read(text)
    return caught.value.mistakes


def shown(condition: Condition) -> str:
    """`host suffix .foo.com`; an expression stands between slashes, an empty value is ''."""
    if isinstance(condition, And | Or):
        return f"{type(condition).__name__}({', '.join(map(shown, condition.parts))})"
    if isinstance(condition, Not):
        return f"Not({shown(condition.part)})"
    value = condition.value
    if isinstance(value, Expression):
        text = f"/{value.source}/"
    elif isinstance(value, Range):
        text = f"{value.low}..{'' if value.high is None else value.high}"
    else:
        text = value or "''"
    norm = f" {condition.norm}" if condition.norm != "norm" else ""
    return f"{condition.field} {condition.kind} {text}{norm}"


CONDITIONS = [
    # the table of rule keys, row by row
    ('<Atom field="path" kind="prefix" norm="none" value="/watch" />', "path prefix /watch none"),
    ('<Domain val="foo.com" />', "Or(host suffix .foo.com, host exact foo.com)"),
    (
        '<Or><Atom field="host" kind="suffix" value=".foo.com" /><Atom field="host" kind="exact" value="foo.com" /></Or>',
        "Or(host suffix .foo.com, host exact foo.com)",
    ),
    ('<Path val="/cgi-bin" />', "path prefix /cgi-bin"),
    ('<Ext val=".gif" />', "path suffix .gif"),
    ('<Host val="www.wikipedia.org" />', "host exact www.wikipedia.org"),
    ('<Url val="http://en.wikipedia.org/wiki"/>', "url exact http://en.wikipedia.org/wiki"),
    ('<Scheme val="http" />', "scheme exact http"),
    ('<Scheme val="https" />', "scheme exact https"),
    ('<Query val="q=foo" />', "query exact q=foo"),
    ('<InQuery val="q=foo" />', "query inside q=foo"),
    ('<Length field="path" val="[30:]" />', "path length 30.."),
    # what may be left off
    ('<Atom field="url" value="x"/>', "url exact x"),
    ('<Length val="[:10]"/>', "path length 0..10"),
    ('<Length field="url" val="[11:12]"/>', "url length 11..12"),
    ('<Length field="query" value=" [ 9 ] "/>', "query length 9..9"),
    ('<Length val="[0:0]"/>', "path length 0..0"),
    ('<Atom field="host" kind="length" value="[:10]"/>', "host length 0..10"),
    ('<Atom field="fragment" kind="inside" value="a"/>', "fragment inside a"),
    ('<Path value="/a"/>', "path prefix /a"),
    ('<Path val="/a" norm="lower"/>', "path prefix /a lower"),
    ('<Query val=""/>', "query exact ''"),
    # conditions in conditions
    ('<Not><Path val="/a"/></Not>', "Not(path prefix /a)"),
    ('<And><Path val="/a"/><Not><Or><Ext val=".b"/></Or></Not></And>', "And(path prefix /a, Not(Or(path suffix .b)))"),
    ('<Or><!-- one --><Ext val=".b"/><?two three?></Or>', "Or(path suffix .b)"),
    ('<Path xml:space="preserve" val="/a"></Path>', "path prefix /a"),
    # text and expressions
    ('<Path val="/a.b*c(d)[e]$"/>', "path prefix /a.b*c(d)[e]$"),
    (r'<InQuery val="foo\.\*bar"/>', "query inside /foo.*bar/"),
    (r'<InQuery val="foo.*bar\.x"/>', r"query inside /foo\.\*bar.x/"),
    (r'<InQuery val="foo\\bar"/>', "query inside foo\\bar"),
    (r'<InQuery val="a\\\.b"/>', r"query inside /a\\.b/"),
    (r'<InQuery literal="true" val="foo\.\*bar"/>', r"query inside foo\.\*bar"),
    (r'<InQuery litteral="true" val="a\b"/>', r"query inside a\b"),
    (r'<InQuery literal="false" val="a\.b"/>', "query inside /a.b/"),
    (r'<InQuery val="\(a\|b\)c"/>', "query inside /(?:a|b)c/"),
    (r'<InQuery val="\(\?:a\|b\)\+?"/>', r"query inside /(?:a|b)+\?/"),
    (r'<InQuery val="a\+\?b\{2,3\}c\{4\}d\{5,\}"/>', "query inside /a+?b{2,3}c{4}d{5,}/"),
    (r'<InQuery val="\[a-z_.-\]\*"/>', r"query inside /[a-z_.\-]*/"),
    (r'<InQuery val="\[\^^\\\[\]x"/>', r"query inside /[^\^\\\[]x/"),
    (r'<InQuery val="\[a^*\]"/>', r"query inside /[a\^*]/"),
    (r'<Domain val="a.com\|b.com"/>', r"Or(host suffix /\.(?:a\.com|b\.com)/, host exact /a\.com|b\.com/)"),
    (r'<Scheme val="https\?"/>', "scheme exact /https?/"),
    (r'<Path val="/a&amp;b&#46;c"/>', "path prefix /a&b.c"),
    # the beginning and end of a comparison are its kind
    (r'<Path val="\^/a"/>', "path prefix /a"),
    (r'<Path val="/a\$"/>', "path exact /a"),
    (r'<InQuery val="\^a\.b"/>', "query prefix /a.b/"),
    (r'<InQuery val="a\$"/>', "query suffix a"),
    (r'<InQuery val="\^\(a\|b\)\$"/>', "query exact /(?:a|b)/"),
    (r'<InQuery val="\^\$"/>', "query exact ''"),
    (r'<Ext val="\^/a"/>', "path exact /a"),
    # the spelling that URLs in normal form have
    ('<Path val="/ä b"/>', "path prefix /%C3%A4%20b"),
    ('<Path val="/ä" norm="lower"/>', "path prefix /%c3%a4 lower"),
    ('<Path val="/%7ea%c3%2f"/>', "path prefix /~a%C3%2F"),
    ('<Path val="/100%"/>', "path prefix /100%"),
    ('<InQuery val="a\'ä{"/>', "query inside a%27%C3%A4{"),
    ('<Path val="/a\'ä{" literal="true"/>', "path prefix /a'%C3%A4%7B"),
    (r'<Path val="/ä\+a b\.ö\{2\}"/>', "path prefix //(?:%C3%A4)+a%20b.(?:%C3%B6){2}/"),
    ('<Host val="bücher.example"/>', "host exact xn--bcher-kva.example"),
    ('<Domain val="bücher.example"/>', "Or(host suffix .xn--bcher-kva.example, host exact xn--bcher-kva.example)"),
    (r'<Host val="\.\*.bücher.example"/>', r"host exact /.*\.xn--bcher-kva\.example/"),
    (
        '<Atom field="url" kind="prefix" value="https://bücher.example/ä"/>',
        "url prefix https://xn--bcher-kva.example/%C3%A4",
    ),
    ('<Url val="http://en.wikipedia.org"/>', "url exact http://en.wikipedia.org/"),
    ('<Url val="HTTP://En.Wikipedia.org:80/a/../B#c"/>', "url exact http://en.wikipedia.org/B"),
    ('<Url val="http://en.wikipedia.org" norm="none"/>', "url exact http://en.wikipedia.org none"),
    ('<Url val="mailto:a"/>', "url exact mailto:a"),
    ('<Url val="http://me:secret@h"/>', "url exact http://me:secret@h"),
]


@pytest.mark.parametrize("fragment,meaning", CONDITIONS, ids=[fragment for fragment, _ in CONDITIONS])
def test_a_condition_means(fragment: str, meaning: str) -> None:
    [rule] = read(f"<Rules><Rule>{fragment}<Index/></Rule></Rules>").rules
    assert shown(rule.condition) == meaning


ACTIONS = [
    # the table of actions, row by row
    ("<Index/><Follow/><Accept/>", "Index, Follow, Accept"),
    ("<Index/><NoFollow/><Accept/>", "Index, NoFollow, Accept"),
    ("<NoIndex/><Follow/><Accept/>", "NoIndex, Follow, Accept"),
    ("<Index/><Accept/>", "Index, Accept"),
    ("<Follow/><Accept/>", "Follow, Accept"),
    ("<NoIndex/>", "NoIndex"),
    ("<NoFollow/>", "NoFollow"),
    ("<NoIndex/><NoFollow/><Ignore/>", "NoIndex, NoFollow, Ignore"),
    ('<Source name="intranet"/>', "Source intranet"),
    ('<AddMeta value="sales" name="dept"/>', "AddMeta dept=sales"),
    ('<AddMeta value="" name="dept"/><AddMeta value="b" name="c"/>', "AddMeta dept=, AddMeta c=b"),
    *((f'<Priority shift="{shift}"/>', f"Priority {shift}") for shift in (-2, -1, 0, 1, 2)),
    ('<Priority shift="+1"/>', "Priority 1"),
]


@pytest.mark.parametrize("fragment,meaning", ACTIONS, ids=[fragment for fragment, _ in ACTIONS])
def test_actions_mean(fragment: str, meaning: str) -> None:
    [rule] = read(f'<Rules><Rule><Path val="/a"/>{fragment}</Rule></Rules>').rules
    assert rule.ref.text == f"Path /a: {meaning}"


def test_an_action_knows_its_place_and_values() -> None:
    [rule] = read('<Rules>\n<Rule><Path val="/"/>\n  <AddMeta name="a" value="b"/><Priority shift="-2"/></Rule>\n</Rules>').rules
    assert [(a.kind, a.name, a.value, a.shift, a.line, a.column) for a in rule.actions] == [
        ("AddMeta", "a", "b", 0, 3, 3),
        ("Priority", "", "", -2, 3, 32),
    ]


SAID = [
    ('<Domain val="foo.com"/><NoIndex/><Follow/>', "Domain foo.com: NoIndex, Follow"),
    ('<Or><Path val="/a"/><Ext val=".pdf"/></Or><Ignore/>', "Or(Path /a, Ext .pdf): Ignore"),
    ('<Not><Length val="[30:]"/></Not><Ignore/>', "Not(Length [30:]): Ignore"),
    ('<Length field="url" val="[30:]"/><Ignore/>', "Length url [30:]: Ignore"),
    (
        '<Atom litteral="true" value="http://x/" norm="none" kind="prefix" field="url"/><Index/><Follow/><Accept/>',
        "Atom url prefix http://x/ none literal: Index, Follow, Accept",
    ),
    ('<Atom field="path" value="/ä"/><Index/>', "Atom path exact /ä: Index"),
    (r'<Query val=""/><Source name="a&#10;b"/>', "Query '': Source a b"),
    (f'<Path val="/{"a" * 300}"/><Index/>', f"Path /{'a' * 193}…"),
]


@pytest.mark.parametrize("fragment,text", SAID, ids=[text for _, text in SAID])
def test_a_rule_is_said_in_one_line(fragment: str, text: str) -> None:
    [rule] = read(f"<Rules>\n\n<Rule>{fragment}</Rule></Rules>").rules
    assert (rule.ref.file, rule.ref.line, rule.ref.text) == ("rules.xml", 3, text)
    assert len(rule.ref.text) <= 200


# --- the file as a whole ----------------------------------------------------------------------------------------------

RULE = '<Rule><Path val="/a"/><Index/></Rule>'
EXPORT = f"""<?xml version="1.0" encoding="UTF-8"?>
<CrawlConfig xmlns="exa:com.exalead.mercury.mami.crawl.v20" xmlns:ar="{V21}" xmlns:bee="exa:exa.bee">
  <Crawler name="web" nthreads="10">
    <Root><Url val="http://www.example.com/"/></Root>
    <bee:KeyValue key="a" value="b"/>
    <Rules group="example" key="auto">
      <Rule>
        <ar:Atom litteral="true" value="http://www.example.com/"
           norm="none" kind="prefix" field="url"/>
        <Index/>
        <Follow/>
        <Accept/>
      </Rule>
    </Rules>
    <Fetcher><Timeout>5</Timeout></Fetcher>
  </Crawler>
</CrawlConfig>
"""


def test_an_export_is_read_as_it_is() -> None:
    rules = read(EXPORT)
    [rule] = rules.rules
    assert shown(rule.condition) == "url prefix http://www.example.com/ none"
    assert rule.ref.text == "Atom url prefix http://www.example.com/ none literal: Index, Follow, Accept"
    assert (rule.ref.line, rule.group, rule.key) == (7, "example", "auto")
    assert rules.passed_over == ((4, 5, "Root"), (5, 5, "KeyValue"), (15, 5, "Fetcher"))


FILES = [
    # file, (group, key) of each rule
    ("<Rules/>", []),
    ("<Rules></Rules>", []),
    ("<CrawlConfig><Crawler><Rules/></Crawler></CrawlConfig>", []),
    (f'<Rules group="a" key="b">{RULE}{RULE}</Rules>', [("a", "b"), ("a", "b")]),
    (
        f'<Rules group="a" key="b">{RULE}<Rules group="c">{RULE}</Rules><Rules key="d">{RULE}</Rules>{RULE}</Rules>',
        [("a", "b"), ("c", "b"), ("a", "d"), ("a", "b")],
    ),
    (f'<CrawlConfig><a><Rules group="a">{RULE}</Rules></a><Rules key="b">{RULE}</Rules></CrawlConfig>', [("a", ""), ("", "b")]),
    (f'<Rules xmlns="{V21}">{RULE}</Rules>', [("", "")]),
    (f'<Rules xmlns="exa:com.exalead.actionrules.v10">{RULE}</Rules>', [("", "")]),
    (f'<x:Rules xmlns:x="{V21}"><x:Rule><x:Path val="/a"/><x:Index/></x:Rule></x:Rules>', [("", "")]),
    (f'<Crawler name="a" xmlns="exa:b"><Rules>{RULE}</Rules><Rules>{RULE}</Rules></Crawler>', [("", "")] * 2),
]


@pytest.mark.parametrize("text,groups", FILES, ids=[text[:60] for text, _ in FILES])
def test_a_file_holds(text: str, groups: list[tuple[str, str]]) -> None:
    assert [(rule.group, rule.key) for rule in read(text).rules] == groups


def test_what_is_passed_over_is_listed_once_for_its_topmost_element() -> None:
    text = f"<CrawlConfig><a><b/><Rules>{RULE}</Rules><c><Rules2/><d/></c></a>\n<Crawler name='x'><e/></Crawler><f>x</f></CrawlConfig>"
    assert [(one.line, one.element) for one in read(text).passed_over] == [(1, "b"), (1, "c"), (2, "Crawler"), (2, "f")]


ENCODED = [
    ("utf-8", ""),
    ("utf-8-sig", ""),
    ("utf-8-sig", '<?xml version="1.0" encoding="UTF-8"?>'),
    ("utf-16", '<?xml version="1.0" encoding="UTF-16"?>'),
    ("utf-16-le", ""),
    ("utf-16-be", ""),
    ("latin-1", '<?xml version="1.0" encoding="ISO-8859-1"?>'),
    ("cp1252", "<?xml version='1.0' encoding='windows-1252' standalone='yes'?>"),
    ("shift_jis", '<?xml version="1.0" encoding="Shift_JIS"?>'),
]


@pytest.mark.parametrize("encoding,declaration", ENCODED, ids=[f"{encoding} {declaration}" for encoding, declaration in ENCODED])
def test_a_file_is_decoded_as_it_says(encoding: str, declaration: str) -> None:
    letter = "語" if encoding == "shift_jis" else "é"
    text = f'{declaration}\n<Rules><Rule>\n<Path val="/{letter}"/><AddMeta name="a" value="{letter}"/></Rule></Rules>'
    [rule] = read(text.encode(encoding)).rules
    assert rule.actions[0].value == letter
    [mistake] = mistakes(text.replace('"a"', '""').encode(encoding))
    assert (mistake.line, mistake.column, mistake.text) == (3, 32, text.split("\n")[2].replace('"a"', '""'))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_lines_may_end_in_any_way(end: str) -> None:
    lines = ["<Rules>", "<Rule>", '<Path val="/a"/>', '  <Priority shift="3"/>', "</Rule>", "</Rules>"]
    [mistake] = mistakes(end.join(lines))
    assert (mistake.line, mistake.column, mistake.text) == (4, 20, lines[3])


# --- mistakes ---------------------------------------------------------------------------------------------------------


def marked(text: str) -> tuple[str, list[int]]:
    """The text without its marks ¦, and the columns of the characters behind them."""
    parts = text.split("¦")
    return "".join(parts), [len("".join(parts[:number])) + 1 for number in range(1, len(parts))]


def assert_told(before: str, line: str, after: str, words: tuple[str, ...]) -> None:
    clean, columns = marked(line)
    found = mistakes(f"{before}\n{clean}\n{after}")
    assert [(m.file, m.line, m.column, m.text) for m in found] == [("rules.xml", 2, column, clean) for column in columns]
    for mistake, part in zip(found, words, strict=True):
        assert part in mistake.message


WRONG_RULES = [
    # what stands in a Rule, with ¦ before each place pointed at; words of the message
    ('¦<path val="/a"/><Index/>', "path is not known; Rule holds And, Or, Not, Atom"),
    ('¦<path val="/a"/><Index/>', "did you mean Path?"),
    ('<Path val="/a"/>¦<Noindex/>', "did you mean NoIndex?"),
    ('<Path val="/a"/>¦<No-Index/>', "did you mean NoIndex?"),
    ('<Or>¦<Paht val="/a"/></Or><Index/>', "Or holds And, Or, Not, Atom, Domain"),
    ('<Or>¦<Index/><Path val="/a"/></Or><Index/>', "Index is an action and stands behind the condition, not in it"),
    ('<Path val="/a">¦<Index/></Path><Follow/>', "Path holds no elements"),
    ('<Path val="/a"/><Index>¦<Follow/></Index>', "Index holds no elements"),
    ('<Path val="/a"/>¦<Rule/>', "Rule cannot stand in Rule; is a </Rule> missing"),
    ('<Path val="/a"/>¦<x:Index xmlns:x="urn:x"/>', "in the namespace 'urn:x'; elements of rules are in " + V21),
    ('<Path val="/a"/>  ¦Index', "text cannot stand in Rule"),
    ('<Path val="/a">¦/a</Path><Index/>', "text cannot stand in Path"),
    ('<Path val="/a"/><Index><![CDATA[¦yes]]></Index>', "text cannot stand in Index"),
    # order and number
    ('¦<Index/><Path val="/a"/>', "Index is an action, and the condition comes before the actions"),
    ('<Path val="/a"/><Index/>¦<Path val="/b"/>', "one condition, and this one has Path; put both into And or Or"),
    ("¦<Or/><Index/>", "Or is empty"),
    ("<Or>¦<And></And></Or><Index/>", "And is empty"),
    ("¦<Not/><Index/>", "Not is empty; it holds a condition"),
    ('<Not><Path val="/a"/>¦<Path val="/b"/></Not><Index/>', "Not holds one condition"),
    ('<Path val="/a"/><Index/><Follow/>¦<NoIndex/>', "NoIndex contradicts Index of line 2"),
    ('<Path val="/a"/><Ignore/>¦<Accept/>', "Accept contradicts Ignore"),
    ('<Path val="/a"/><NoFollow/>¦<Follow/>', "Follow contradicts NoFollow"),
    ('<Path val="/a"/><Index/>¦<Index/>', "Index stands twice in this rule"),
    ('<Path val="/a"/><Source name="a"/>¦<Source name="b"/>', "Source stands twice"),
    ('<Path val="/a"/><AddMeta name="a" value="b"/>¦<AddMeta name="a" value="c"/>', "AddMeta 'a' stands twice"),
    # attributes
    ('<Or ¦val="a"><Path val="/a"/></Or><Index/>', "attribute 'val' is not known; Or has none"),
    ('<Path val="/a"/><Index ¦now="a"/>', "Index has none"),
    ('<Path ¦Val="a" val="/a"/><Index/>', "Path has val, value, norm, literal, litteral; did you mean val?"),
    ('<Path val="/a" ¦kind="exact"/><Index/>', "attribute 'kind' is not known"),
    ('<Path val="/a" ¦x:val="b" xmlns:x="urn:x"/><Index/>', "attribute 'val' is not known"),
    ("¦<Path/><Index/>", 'Path needs val="…"'),
    ('¦<Atom value="a"/><Index/>', 'Atom needs field="…"'),
    ('¦<Atom field="url"/><Index/>', 'Atom needs value="…"'),
    ('¦<Atom field="url" ¦val="a"/><Index/>', ('needs value="…"', "did you mean value?")),
    ('<Path val="/a" ¦value="/a"/><Index/>', "value is another word for val; Path has one of them"),
    ('<Path val="/a" literal="true" ¦litteral="true"/><Index/>', "litteral is another word for literal"),
    ('<Path val="/a" literal="¦yes"/><Index/>', "literal is true or false, not 'yes'"),
    ('<Atom field="¦Host" value="a"/><Index/>', "it is url, scheme, host, path, query or fragment; did you mean host?"),
    ('<Atom field="url" kind="¦contains" value="a"/><Index/>', "exact, prefix, suffix, inside or length"),
    ('<Path norm="¦non" val="a"/><Index/>', "norm 'non' is not known; it is norm, lower or none"),
    ('<Length field="¦paht" val="[1]"/><Index/>', "did you mean path?"),
    ('<Path val="/a"/>¦<Source/>', 'Source needs name="…"'),
    ('<Path val="/a"/><Source name="¦"/>', "the name of Source is empty"),
    ('<Path val="/a"/>¦<AddMeta value="a"/>', 'AddMeta needs name="…"'),
    ('<Path val="/a"/>¦<AddMeta name="a"/>', 'AddMeta needs value="…"'),
    ('<Path val="/a"/><AddMeta name="¦ " value="a"/>', "the name of AddMeta is empty"),
    *(
        (
            f'<Path val="/a"/><AddMeta name="¦{name}" value="a"/>',
            f"{name!r} is a field that every document has; AddMeta adds others than url, title, de",
        )
        for name in ("url", "title", "description", "language", "text", "headings", "content_type", "modified", "duplicates")
    ),
    ('<Path val="/a"/><AddMeta name="¦source" value="a"/>', "'source' is the field that Source sets; write <Source name="),
    ('<Path val="/a"/><Priority shift="¦3"/>', "the shift is a whole number from -2 (first) to 2 (last), not '3'"),
    ('<Path val="/a"/><Priority shift="¦high"/>', "not 'high'"),
    ('<Path val="/a"/><Priority shift="¦-1.5"/>', "not '-1.5'"),
    ('<Path val="/a"/>¦<Priority/>', 'Priority needs shift="…"'),
    # several at once
    ('¦<Nott/>¦<Indx/><Priority shift="¦9"/>', ("did you mean Not?", "did you mean Index?", "not '9'")),
]


@pytest.mark.parametrize("fragment,words", WRONG_RULES, ids=[fragment for fragment, _ in WRONG_RULES])
def test_a_mistake_in_a_rule_is_named(fragment: str, words: str | tuple[str, ...]) -> None:
    assert_told("<Rules><Rule>", fragment, "</Rule></Rules>", (words,) if isinstance(words, str) else words)


WRONG_VALUES = [
    # element without its value, the value with ¦ before the character pointed at, words of the message
    ("Path", r"/a\(b¦\(c", r"\( is not closed by \)"),
    ("Path", r"¦\(c", r"\( is not closed by \)"),
    ("Path", r"/a&amp;b¦\(c", r"\( is not closed by \)"),
    ("Path", r"/&lt;&#228;&#xE4;&quot;¦\(c", r"\( is not closed by \)"),
    ("Path", r"/ä𝒳¦\)", r"there is no \( before this \)"),
    ("Path", r"/a¦\]", r"there is no \[ before this \]"),
    ("Path", r"/a¦\}", r"there is no \{ before this \}"),
    ("Path", r"/a¦\[bc", r"\[ is not closed by \]"),
    ("Path", r"/a¦\[\]", r"no character between \[ and \]"),
    ("Path", r"/\[a¦z-b\]", "z-b runs backwards"),
    ("Path", r"/\[¦^a\]", r"'none of these characters' is written \[\^ \]; a plain ^ is %5E in URLs"),
    ("Path", r"/\[a¦^\]", "'^' is %5E in URLs and so cannot stand between"),
    ("Path", r"/\[\^¦^\]", "'^' is %5E in URLs and so cannot stand between"),
    ("Path", r"/\[a¦ä\]", "'ä' is %C3%A4 in URLs and so cannot stand between"),
    ("Host", r"\[¦ä\]", "'ä' is xn--… in URLs"),
    ("Path", r"¦\*a", r"there is nothing before \* that it could repeat"),
    ("Path", r"\(¦\+a\)", r"nothing before \+"),
    ("Path", r"a\|¦\?", r"nothing before \?"),
    ("Path", r"¦\{2\}", r"nothing before \{"),
    ("Path", r"a\*¦\*", r"\* stands behind another repetition"),
    ("Path", r"a\*\?¦\?", r"\? stands behind another repetition"),
    ("Path", r"a¦\{b\}", r"behind \{ stand one or two numbers"),
    ("Path", r"a¦\{2", r"behind \{ stand one or two numbers"),
    ("Path", r"a\{¦3,2\}", "3 is above 2"),
    ("Path", r"a\{¦1001\}", "RE2 repeats nothing more than 1,000 times"),
    ("Path", r"\(a\{100\}\)¦\{100\}", "repetitions inside each other make more than 1,000"),
    ("Path", r"a¦\(\?=b\)", "looking ahead or behind is not supported, because it can hold a crawl up"),
    ("Path", r"a¦\(\?!b\)", "looking ahead or behind"),
    ("Path", r"a¦\(\?&lt;=b\)", "looking ahead or behind"),
    ("Host", r"a¦\(\?&lt;!b\)", "looking ahead or behind"),
    ("Path", r"¦\(\?P&lt;n&gt;b\)", "they have no names and no flags"),
    ("Path", r"¦\(\?i\)b", "they have no names and no flags"),
    ("Path", r"\(a\)¦\1", "back references are not supported"),
    ("Path", r"/¦\d", r"a digit is \[0-9\]"),
    ("Path", r"C:¦\temp", r"a plain backslash is written \\"),
    ("Path", "/a¦\\", "a backslash stands before one of ^$.*+?[](){}|"),
    ("Path", r"\[a¦\d\]", "a backslash stands before one of"),
    ("Path", r"a¦\^b", r"\^ stands only at the beginning of a value"),
    ("Path", r"a¦\$b", r"\$ stands only at the end of a value"),
    ("Path", r"\^a¦\|b", r"which \| divides here"),
    ("Path", r"¦\^", "the value is empty"),
    ("Path", "¦", "the value is empty, so this holds for every URL"),
    ("Path", f"¦/{'a' * 10_000}", "the value has 10,001 characters, and 10,000 is the most; put several conditions into Or"),
    ("Domain", "¦", "the value is empty"),
    ("Domain", r"¦\^a", r"Domain is of whole host names"),
    ("Host", r"¦bü\*", "'bü' is not a whole part of a host name; write its xn-- form"),
    ("Host", "www.¦bü/cher", "'bü/cher' is no part of a host name"),
    ("Scheme", "¦ftp", "'ftp' is no scheme that is crawled; expected http or https"),
    ("Scheme", "¦http:", "no scheme that is crawled"),
    ('Scheme norm="none"', "¦HTTP", "no scheme that is crawled"),
    ("Length", "[¦9:3]", "9 is above 3"),
    ("Length", "[¦]", "a number is missing"),
    ("Length", "[¦:]", "a number is missing"),
    ("Length", "[¦-1:3]", "a length is never negative"),
    ("Length", "¦30", "'30' is no range of lengths; ranges are written [3:9], [:9], [3:] or [9]"),
    ("Length", "[3:¦x]", "is no range of lengths"),
    ("Length", "[3:9¦", "is no range of lengths"),
    ("Length", "[3:9] ¦&gt;", "is no range of lengths"),
    ("Length", "¦", "is no range of lengths"),
    ('Atom field="url" kind="length"', "[¦9:3]", "9 is above 3"),
]


@pytest.mark.parametrize(
    "element,value,words", WRONG_VALUES, ids=[f"{element} {value:.60}" for element, value, _ in WRONG_VALUES]
)
def test_a_mistake_in_a_value_is_pointed_at(element: str, value: str, words: str) -> None:
    attribute = "value" if element.startswith("Atom") else "val"
    assert_told("<Rules><Rule>", f'<{element} {attribute}="{value}"/><Index/>', "</Rule></Rules>", (words,))


def test_a_value_is_pointed_at_wherever_it_stands() -> None:
    text = (
        "<Rules>\n<Rule><x:Path\n  norm='norm' literal = \"false\"\n\tval\n='/>a\\('\n xmlns:x='exa:x'/><Index/></Rule></Rules>"
    )
    [mistake] = mistakes(text)
    assert (mistake.line, mistake.column) == (5, 6)
    assert str(mistake).splitlines()[1:] == ["    ='/>a\\('", "         ^"]


WRONG_FILES = [
    # the second line of a file with ¦ before the place pointed at, words of the message
    ("¦<rules/>", "the outermost element of a rules.xml is Rules, not rules; did you mean Rules?"),
    ("¦<html/>", "the outermost element of a rules.xml is Rules, not html"),
    (f"¦{RULE}", "a Rule stands inside Rules"),
    (
        '¦<Rules xmlns="urn:x"/>',
        f"Rules is in the namespace 'urn:x'; elements of rules are in {V21} or another namespace of exa:, or in none",
    ),
    ('¦<CrawlConfig xmlns="urn:x"/>', "CrawlConfig is in the namespace 'urn:x'"),
    ('¦<html xmlns="urn:x"/>', "the outermost element of a rules.xml is Rules, not html"),
    ('<Rules>¦<Rule xmlns="urn:x"/></Rules>', "Rule is in the namespace 'urn:x'"),
    (
        '¦<CrawlConfig><Rules xmlns="urn:x"/></CrawlConfig>',
        "no Rules element in this file; that of line 2 is in the namespace 'urn:x', and",
    ),
    (
        f'¦<foo:Rule xmlns:foo="{V21}"><foo:Path val="/a"/></foo:Rule>',
        "a Rule stands inside Rules, and its conditions and actions in it",
    ),
    ("¦<Ignore/>", "a Rule stands inside Rules, and its conditions and actions in it; put <Rules> around all rules"),
    ("¦<CrawlConfig><Crawler/></CrawlConfig>", "there is no Rules element in this file; without rules it holds <Rules/>"),
    ("¦<CrawlConfig><rules/></CrawlConfig>", "rules of line 2 is another name, for capitals count"),
    ("<Rules ¦name='a'/>", "attribute 'name' is not known; Rules has group, key"),
    ("<Rules>¦<Index/></Rules>", "Index stands in a Rule, behind the condition"),
    ("<Rules>¦<Path val='/'/></Rules>", "Path is a condition and stands in a Rule"),
    ("<Rules>¦<rule/></Rules>", "rule is not known; Rules holds Rule, Rules; did you mean Rule?"),
    ("<Rules>¦<Rule/></Rules>", "this Rule is empty; it holds a condition, then actions"),
    ("<Rules>¦<Rule><Index/></Rule></Rules>", "this Rule has no condition; known are And, Or"),
    ("<Rules>¦<Rule><Path val='/'/></Rule></Rules>", "this Rule has no action; known are Accept, Ignore"),
    ("<Rules>¦text</Rules>", "text cannot stand in Rules"),
    (
        "<CrawlConfig><Crawler name='a'><Rules/></Crawler>¦<Crawler name='b'><Rules/></Crawler></CrawlConfig>",
        "the file has rules of 2 crawlers, 'a', 'b'; a collection has the rules of one",
    ),
    ("¦<!DOCTYPE Rules><Rules/>", "a rules.xml has no DOCTYPE"),
    ("¦<!DOCTYPE Rules SYSTEM 'http://h/a.dtd'><Rules/>", "a rules.xml has no DOCTYPE"),
    ("¦<!DOCTYPE Rules [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><Rules>&a;</Rules>", "a rules.xml has no DOCTYPE"),
    (
        "¦<!DOCTYPE Rules [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;&a;'><!ENTITY c '&b;&b;&b;&b;'>]><Rules group='&c;'/>",
        "a rules.xml has no DOCTYPE, and so no entities of its own",
    ),
    (f"{'<Rules>' * MAX_DEPTH}¦<Rules>", "more than 100 elements stand inside each other"),
    # not well-formed: the parser's place and sentence
    (f"<Rules>{RULE}<Rule><Path val='/'></¦Rule></Rules>", "the XML parser reports: mismatched tag"),
    ("<Rules></¦rules>", "mismatched tag"),
    ("<Rules><Rule><Url val='http://h/wiki>¦<Index/></Rule></Rules>", "invalid token); in a value, & is written &amp; and < is"),
    ("<Rules>¦<Rule group='a", "unclosed token"),
    ("<Rules><Rule><Url val='http://h/?a=b&c¦=d'/></Rule></Rules>", "& is written &amp;"),
    ("<Rules>¦&nbsp;</Rules>", "undefined entity"),
    ("<Rules><Rule>¦<ar:Atom field='url' value='a'/></Rule></Rules>", "unbound prefix"),
    ("<Rules group='a' ¦group='b'/>", "duplicate attribute"),
    ("<Rules/>¦<Rules/>", "junk after document element"),
    ("<Rules>¦\x01</Rules>", "invalid token"),
    ("¦<?xml version='1.0'?><Rules/>", "XML or text declaration not at start of entity"),
    ("¦allow domain *", "syntax error"),
]


@pytest.mark.parametrize("line,words", WRONG_FILES, ids=[line[:80] for line, _ in WRONG_FILES])
def test_a_mistake_in_a_file_is_named(line: str, words: str) -> None:
    assert_told("<!-- ä -->", line, "", (words,))


WRONG_BYTES = [
    # file, line, column, words of the message
    (b"", 1, 1, "the XML parser reports: no element found"),
    (b"<Rules>\n<Rule>\n", 3, 1, "the XML parser reports: no element found"),
    (b"<Rules>\r\n \xe4</Rules>", 2, 2, "not UTF-8; save the file as UTF-8, or name its encoding in the first line, as in <?xml"),
    ("<Rules/>".encode("utf-32"), 1, 1, "the file is in UTF-32; save it as UTF-8"),
    ("\ufeff<Rules/>".encode("utf-32-be"), 1, 1, "the file is in UTF-32; save it as UTF-8"),
    ("<Rules/>".encode("utf-32-le"), 1, 1, "the file is in UTF-32; save it as UTF-8"),
    ("<Rules/>".encode("utf-32-be"), 1, 1, "the file is in UTF-32; save it as UTF-8"),
    (b"\xff\xfe<\x00R\x00\x00\xd8", 1, 3, "not UTF-16-LE"),
    (b'<?xml version="1.0" encoding="UTF-16"?><Rules/>', 1, 31, "cannot be read as 'UTF-16', which it says it is"),
    (b'<?xml version="1.0" encoding="klingon"?><Rules/>', 1, 31, "cannot be read as 'klingon'"),
    (b'<?xml version="1.0" encoding="unicode_escape"?><Rules/>', 1, 31, "cannot be read as 'unicode_escape'"),
    (b" " * 50 * 1024 * 1024, 1, 1, "the file has 50.0 MiB, and 10.0 MiB is the most that is read"),
]


@pytest.mark.parametrize("data,line,column,words", WRONG_BYTES, ids=[words[:40] for *_, words in WRONG_BYTES])
def test_a_file_that_is_no_text_is_refused(data: bytes, line: int, column: int, words: str) -> None:
    [mistake] = mistakes(data)
    assert (mistake.line, mistake.column) == (line, column)
    assert words in mistake.message


def test_the_largest_file_is_read() -> None:
    text = f"<Rules>{RULE}</Rules>"
    assert len(read(text + " " * (MAX_SIZE - len(text))).rules) == 1
    assert "10.0 MiB is the most" in mistakes(text + " " * (MAX_SIZE - len(text) + 1))[0].message


def test_the_deepest_file_is_read() -> None:
    deep = f"{'<Not>' * (MAX_DEPTH - 3)}<Path val='/'/>{'</Not>' * (MAX_DEPTH - 3)}"
    assert len(read(f"<Rules><Rule>{deep}<Index/></Rule></Rules>").rules) == 1


def test_mistakes_are_told_in_the_order_of_the_file_and_a_hundred_of_them() -> None:
    wrong = "<Rule><Index/>\n<Priority shift='3'/></Rule>\n" * 2
    assert [mistake.line for mistake in mistakes(f"<Rules>{wrong}</Rules>")] == [1, 2, 3, 4]
    *listed, last = mistakes("<Rules>\n" + "<Rule a='b'/>\n<x/>\n" * 500 + "</Rules>")
    assert (len(listed), last.line, last.message) == (100, listed[-1].line, "1,400 more mistakes are not shown")


def test_a_file_of_one_long_line_is_not_shown_over_and_over() -> None:
    found = mistakes(f"<Rules>{'<x/>' * 100}{' ' * 600_000}</Rules>")
    assert (len(found), found[-1].message) == (3, "98 more mistakes are not shown")


def test_a_file_that_is_no_xml_has_that_mistake_only() -> None:
    [mistake] = mistakes("<Rules><Rule><Indx/></Rule></Rulez>")
    assert "mismatched tag" in mistake.message


# --- docs/rules_xml.md ------------------------------------------------------------------------------------------------

PAGE = (ROOT / "docs" / "rules_xml.md").read_text(encoding="utf-8")
DOCUMENTED = [
    (condition.replace("\\|", "|"), meaning.replace("\\|", "|"))
    for condition, meaning in re.findall(r"^\| `(<.*?/>)` \| `(.*)` \|$", PAGE, re.MULTILINE)
]
BLOCKS = re.findall(r"(?:^(?: {4}.*)?\n)+", PAGE, re.MULTILINE)


@pytest.mark.parametrize("fragment,meaning", DOCUMENTED, ids=[fragment for fragment, _ in DOCUMENTED])
def test_a_condition_means_what_is_documented(fragment: str, meaning: str) -> None:
    [rule] = read(f"<Rules><Rule>{fragment}<Index/></Rule></Rules>").rules
    assert shown(rule.condition) == meaning


def test_the_documented_examples_are_read() -> None:
    assert len(DOCUMENTED) == 21
    examples = [block for block in BLOCKS if "<Rules>" in block]
    assert [[rule.ref.text for rule in read(example.strip()).rules] for example in examples] == [
        ["And(Domain example.com, Path /archive/): NoIndex, Follow", "Ext .pdf: AddMeta format=document, Priority 1"],
        ["Atom path prefix /Watch none: Index"],
    ]
    [told] = [block for block in BLOCKS if "rules.xml:4:" in block]
    lines = [line.removeprefix("    ") for line in told.strip("\n").splitlines()]
    [mistake] = mistakes(f"<Rules>\n<Rule>\n\n{lines[1].removeprefix('    ')}<Index/></Rule></Rules>")
    assert str(mistake).replace("<Index/></Rule></Rules>", "").splitlines() == lines
