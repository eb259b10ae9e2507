"""What a rules.xml means: conditions, actions, the examples of docs/rules_xml.md, and exports of Exalead CloudView."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from crawlspace.config.collection import load_collection
from crawlspace.errors import ConfigError, Mistake, RuleFileError
from crawlspace.lint.collection import lint_collection
from crawlspace.rules.xml.parser import parse_rules_xml, what_is_not_read
from tests.command_line import ROOT
from tests.unit.lint.linted import DEFAULTS
from tests.unit.rules.xml.parsed import RULE, mistakes, read, shown

V21 = "exa:com.exalead.actionrules.v21"


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
    (
        '<AddMeta value="b" name="a"/><AddMeta value="c" name="d"/><AddMeta value="é" name="a"/>',
        "AddMeta a=b, AddMeta d=c, AddMeta a=é",
    ),
    *((f'<Priority shift="{shift}"/>', f"Priority {shift}") for shift in (-2, -1, 0, 1, 2)),
    ('<Priority shift="+1"/>', "Priority 1"),
    ("<Render/>", "Render always"),
    ("<MetaNoIndex/>", "MetaNoIndex ignore"),
    ('<MetaNoFollow mode="obey"/>', "MetaNoFollow obey"),
    ("<ConditionalGet/>", "ConditionalGet never"),
    ('<ConditionalGet mode="usual"/>', "ConditionalGet usual"),
    *((f'<Render mode="{mode}"/>', f"Render {mode}") for mode in ("always", "auto", "never")),
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
def test_a_rule_is_shown_in_one_line(fragment: str, text: str) -> None:
    [rule] = read(f"<Rules>\n\n<Rule>{fragment}</Rule></Rules>").rules
    assert (rule.ref.file, rule.ref.line, rule.ref.text) == ("rules.xml", 3, text)
    assert len(rule.ref.text) <= 200


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
    assert [one[:3] for one in rules.siblings] == [(4, 5, "Root"), (5, 5, "KeyValue"), (15, 5, "Fetcher")]
    assert [one[:4] for one in rules.around] == [
        (3, 3, "Crawler", (("name", "web"), ("nthreads", "10"))),
        (2, 1, "CrawlConfig", ()),
    ]


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
    assert [(one.line, one.element) for one in read(text).siblings] == [(1, "b"), (1, "c"), (2, "Crawler"), (2, "f")]


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
def test_a_file_is_decoded_as_declared(encoding: str, declaration: str) -> None:
    letter = "語" if encoding == "shift_jis" else "é"
    text = f'{declaration}\n<Rules><Rule>\n<Path val="/{letter}"/><AddMeta name="a" value="{letter}"/></Rule></Rules>'
    [rule] = read(text.encode(encoding)).rules
    assert rule.actions[0].value == letter
    [mistake] = mistakes(text.replace('"a"', '""').encode(encoding))
    assert (mistake.line, mistake.column, mistake.text) == (3, 17, text.split("\n")[2].replace('"a"', '""'))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_lines_may_end_in_any_way(end: str) -> None:
    lines = ["<Rules>", "<Rule>", '<Path val="/a"/>', '  <Priority shift="3"/>', "</Rule>", "</Rules>"]
    [mistake] = mistakes(end.join(lines))
    assert (mistake.line, mistake.column, mistake.text) == (4, 3, lines[3])


# --- docs/rules_xml.md ------------------------------------------------------------------------------------------------

PAGE = (ROOT / "docs" / "rules_xml.md").read_text(encoding="utf-8")


DOCUMENTED = [
    (condition.replace("\\|", "|"), meaning.replace("\\|", "|"))
    for condition, meaning in re.findall(r"^\| `(<.*?/>)` \| `([^`]*)` \|$", PAGE, re.MULTILINE)
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
    [received] = [block for block in BLOCKS if "rules.xml:4:" in block]
    lines = [line.removeprefix("    ") for line in received.strip("\n").splitlines()]
    [mistake] = mistakes(f"<Rules>\n<Rule>\n\n{lines[1].removeprefix('    ')}<Index/></Rule></Rules>")
    assert str(mistake).replace("<Index/></Rule></Rules>", "").splitlines() == lines


# --- exports of Exalead CloudView -----------------------------------------------------------------------------------


RULES = '<Rules><Rule><Path val="/a/"/><NoIndex/></Rule><Rule><Path val="/"/><Accept/></Rule></Rules>'
ROOT_ELEMENT = '<Root url="http://www.example.com/"/>'

NARROWER: list[tuple[str, str, str, dict[str, object], list[str]]] = [
    # attributes of the Crawler, what is beside the rules, crawl.rules, settings, what is refused
    ('defaultAccept="false"', "", "", {}, ["defaultAccept='false' of Crawler"]),
    ('defaultAccept="no"', "", "", {}, ["defaultAccept='no' of Crawler"]),
    ('defaultAccept=" FALSE "', "", "", {}, ["defaultAccept=' FALSE ' of Crawler"]),
    ('defaultAccept="perhaps"', "", "", {}, ["defaultAccept='perhaps' of Crawler"]),
    ('defaultAccept="false"', "", "allow domain a\nforbid domain *", {}, ["defaultAccept='false' of Crawler"]),
    ('defaultAccept="false"', "", "", {"CRAWLSPACE_DEFAULT_ACCEPT": "False"}, []),
    ('defaultAccept="false"', "", "", {"CRAWLSPACE_DEFAULT_ACCEPT": False}, []),
    ('defaultAccept="true"', "", "", {}, []),
    ('defaultIndex="false"', "", "", {}, ["defaultIndex='false' of Crawler"]),
    ('defaultIndex="false"', "", "", {"CRAWLSPACE_DEFAULT_INDEX": False}, []),
    ('defaultFollow="0" name="x"', "", "", {}, ["defaultFollow='0' of Crawler"]),
    ('defaultFollow="0"', "", "", {"CRAWLSPACE_DEFAULT_FOLLOW": False}, []),
    ('ignoreRobotsTxt="false"', "", "", {"ROBOTSTXT_OBEY": False}, ["ignoreRobotsTxt='false' of Crawler"]),
    ('ignoreRobotsTxt="false"', "", "", {}, []),
    ('mimeTypes="text/html"', "", "", {}, ["mimeTypes='text/html' of Crawler"]),
    ('mimeTypes="text/html"', "", "", {"CRAWLSPACE_MIME_TYPES": ["text/html"]}, []),
    ('mimeTypes=""', "", "", {}, []),
    ("", ROOT_ELEMENT * 2, "", {}, ["the roots of this export (2)"]),
    ("", ROOT_ELEMENT, "allow domain www.example.com\nforbid domain *", {}, []),
    ("", ROOT_ELEMENT, "allow prefix http://www.example.com/\nforbid prefix http://*", {}, []),
    ("", ROOT_ELEMENT, "", {"CRAWLSPACE_FOLLOW_OFFSITE_LINKS": False}, []),
    ("", ROOT_ELEMENT, "", {"CRAWLSPACE_INDEX_ENTIRE_SITE": True}, []),
    ("", f'{ROOT_ELEMENT}<Root url="http://b/" site="false"/>', "", {}, []),
    (
        'defaultAccept="false" defaultIndex="false"',
        ROOT_ELEMENT,
        "",
        {},
        ["defaultAccept='false' of Crawler", "defaultIndex='false' of Crawler", "the roots of this export (1)"],
    ),
    ('nthreads="4" throttleTimeMS="10" userAgent="x"', "<Fetcher/>", "", {}, []),
]


@pytest.mark.parametrize(("attributes", "siblings", "rules", "settings", "refused"), NARROWER)
def test_what_narrows_the_crawl_space_stops_the_start(
    tmp_path: Path, attributes: str, siblings: str, rules: str, settings: dict[str, object], refused: list[str]
) -> None:
    folder = collection(tmp_path, f"<CrawlConfig>\n<Crawler {attributes}>{siblings}{RULES}</Crawler></CrawlConfig>", rules)
    values = {**DEFAULTS, "CRAWLSPACE_COLLECTIONS_DIR": str(tmp_path), **settings}
    mistakes: list[Mistake] = []
    try:
        load_collection("demo", values)
    except RuleFileError as error:
        mistakes += error.mistakes
    found = [mistake.message for mistake in mistakes]
    assert {(mistake.file, mistake.line) for mistake in mistakes} <= {("rules.xml", 2)}
    assert all("scrapy import-exalead" in message for message in found)
    assert [message.partition(" has no effect")[0].partition(" keep the crawl")[0] for message in found] == refused
    findings, _ = lint_collection(
        folder, {**DEFAULTS, "CRAWLSPACE_COLLECTIONS_DIR": str(tmp_path), **settings}, DEFAULTS, store=None
    )
    assert [one.message for one in findings if one.level == "error"] == found


MANY = " ".join(f"a{number}='x'" for number in range(25))
NOT_READ = [
    # file, what is named
    (RULES, ""),
    (f"<Crawler name='a'>{RULES}</Crawler>", ""),
    (f"<Crawler xmlns:x='urn:x' x:a='1'>{RULES}</Crawler>", ""),
    (f"<Crawler nthreads='4'>{RULES}</Crawler>", "nthreads of Crawler"),
    (f"<CrawlConfig version='1'><Crawler name='a' nthreads='4'>{RULES}</Crawler></CrawlConfig>", "nthreads of Crawler, version of CrawlConfig"),
    (f"<Crawler defaultAccept='true'>{ROOT_ELEMENT}{ROOT_ELEMENT}{RULES}<Fetcher password='x'/></Crawler>", "defaultAccept of Crawler, Root (2), Fetcher"),
    (f"<CrawlConfig><Crawler>{RULES}</Crawler><Crawler name='b'/></CrawlConfig>", "Crawler"),
    (
        f"<Crawler {MANY}>{RULES}</Crawler>",
        ", ".join(f"a{number} of Crawler" for number in range(20)) + " and 5 more",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "named"), NOT_READ, ids=[named[:40] for _, named in NOT_READ])
def test_what_is_not_read_is_named(tmp_path: Path, text: str, named: str) -> None:
    sentence = what_is_not_read(parse_rules_xml(text.encode(), file="rules.xml"))
    assert sentence.partition(" without ")[2].partition(";")[0] == named
    folder = collection(tmp_path, text, "allow domain a\nforbid domain *")
    findings, _ = lint_collection(folder, {**DEFAULTS, "CRAWLSPACE_COLLECTIONS_DIR": str(tmp_path)}, DEFAULTS, store=None)
    assert [one.message for one in findings if one.code == "xml-export"] == ([sentence] if named else [])


def test_a_start_that_is_refused_names_place_and_way_out(tmp_path: Path) -> None:
    collection(tmp_path, f'<Crawler\n defaultAccept="false">{RULES}</Crawler>', "")
    with pytest.raises(ConfigError) as raised:
        load_collection("demo", {**DEFAULTS, "CRAWLSPACE_COLLECTIONS_DIR": str(tmp_path)})
    assert str(raised.value).startswith(
        "rules.xml:1:1: defaultAccept='false' of Crawler has no effect here, so that more would be crawled; "
        "set CRAWLSPACE_DEFAULT_ACCEPT = False, or leave it out of this file; "
        "`scrapy import-exalead` makes a collection of the whole export"
    )


def collection(folder: Path, text: str, rules: str) -> Path:
    own = folder / "demo"
    own.mkdir()
    (own / "start_urls.txt").write_text("http://www.example.com/\n")
    (own / "rules.xml").write_text(text)
    (own / "crawl.rules").write_text(rules)
    return own
