"""Mistakes in a rules.xml: each is named with its place, and shown where it stands."""

from __future__ import annotations

from html import unescape

import pytest

from crawlspace.rules.xml.parser import MAX_DEPTH, MAX_SIZE
from tests.unit.rules.xml.parsed import RULE, mistakes, read
from tests.unit.rules.xml.test_parser import V21

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
    ('<Or>¦<Index/><Path val="/a"/></Or><Index/>', "Index is an action and belongs after the condition, not in it"),
    ('<Path val="/a">¦<Index/></Path><Follow/>', "Path holds no elements"),
    ('<Path val="/a"/><Index>¦<Follow/></Index>', "Index holds no elements"),
    ('<Path val="/a"/>¦<Rule/>', "Rule is not allowed in Rule; is a </Rule> missing"),
    ('<Path val="/a"/>¦<x:Index xmlns:x="urn:x"/>', "in the namespace 'urn:x'; elements of rules are in " + V21),
    ('<Path val="/a"/>  ¦Index', "text is not allowed in Rule"),
    ('<Path val="/a">¦/a</Path><Index/>', "text is not allowed in Path"),
    ('<Path val="/a"/><Index><![CDATA[¦yes]]></Index>', "text is not allowed in Index"),
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
    ('<Path val="/a"/><Index/>¦<Index/>', "Index is twice in this rule"),
    ('<Path val="/a"/><Source name="a"/>¦<Source name="b"/>', "Source is twice"),
    ('<Path val="/a"/><AddMeta name="a" value="b"/>¦<AddMeta name="a" value="b"/>', "AddMeta 'a' is twice in this rule with the"),
    # attributes
    ('¦<Or val="a"><Path val="/a"/></Or><Index/>', "attribute 'val' is not known; Or has none"),
    ('<Path val="/a"/>¦<Index now="a"/>', "Index has none"),
    ('¦<Path Val="a" val="/a"/><Index/>', "Path has val, value, norm, literal, litteral; did you mean val?"),
    ('¦<Path val="/a" kind="exact"/><Index/>', "attribute 'kind' is not known"),
    ('¦<Path val="/a" x:val="b" xmlns:x="urn:x"/><Index/>', "attribute 'val' is not known"),
    ("¦<Path/><Index/>", 'Path needs val="…"'),
    ('¦<Atom value="a"/><Index/>', 'Atom needs field="…"'),
    ('¦<Atom field="url"/><Index/>', 'Atom needs value="…"'),
    ('¦¦<Atom field="url" val="a"/><Index/>', ("did you mean value?", 'needs value="…"')),
    ('¦<Path val="/a" value="/a"/><Index/>', "value is another word for val; Path has one of them"),
    ('¦<Path val="/a" literal="true" litteral="true"/><Index/>', "litteral is another word for literal"),
    ('¦<Path val="/a" literal="yes"/><Index/>', "literal is true or false, not 'yes'"),
    ('¦<Atom field="Host" value="a"/><Index/>', "it is url, scheme, host, path, query or fragment; did you mean host?"),
    ('¦<Atom field="url" kind="contains" value="a"/><Index/>', "exact, prefix, suffix, inside or length"),
    ('¦<Path norm="non" val="a"/><Index/>', "norm 'non' is not known; it is norm, lower or none"),
    ('¦<Length field="paht" val="[1]"/><Index/>', "did you mean path?"),
    ('<Path val="/a"/>¦<Source/>', 'Source needs name="…"'),
    ('<Path val="/a"/>¦<Source name=""/>', 'the name of Source is empty; write <Source name="…"/>, or leave it off'),
    ('<Path val="/a"/>¦<AddMeta value="" name=""/>', 'the name of AddMeta is empty; write <AddMeta name="…" value="…"/>'),
    ('<Path val="/a"/>¦<Priority shift=""/>', "the shift is a whole number from -2 (first) to 2 (last), not ''"),
    ("<Or>¦...</Or><Index/>", '... stands for conditions; write them in its place, as in <Or><Path val="/a/"/></Or>'),
    ('<Path val="/a"/>¦<AddMeta value="a"/>', 'AddMeta needs name="…"'),
    ('<Path val="/a"/>¦<AddMeta name="a"/>', 'AddMeta needs value="…"'),
    ('<Path val="/a"/>¦<AddMeta name=" " value="a"/>', "the name of AddMeta is empty"),
    *(
        (
            f'<Path val="/a"/>¦<AddMeta name="{name}" value="a"/>',
            f"{name!r} is a field that every document has; AddMeta adds others than url, title, de",
        )
        for name in ("url", "title", "description", "language", "text", "headings", "content_type", "modified", "duplicates")
    ),
    ('<Path val="/a"/>¦<AddMeta name="source" value="a"/>', "'source' is the field that Source sets; write <Source name="),
    ('<Path val="/a"/>¦<Priority shift="3"/>', "the shift is a whole number from -2 (first) to 2 (last), not '3'"),
    ('<Path val="/a"/>¦<Priority shift="high"/>', "not 'high'"),
    ('<Path val="/a"/>¦<Priority shift="-1.5"/>', "not '-1.5'"),
    ('<Path val="/a"/>¦<Priority/>', 'Priority needs shift="…"'),
    ('<Path val="/a"/>¦<Render mode="sometimes"/>', "mode 'sometimes' is not known; it is never, always or auto"),
    ('<Path val="/a"/>¦<MetaNoIndex mode="never"/>', "mode 'never' is not known; it is obey or ignore"),
    ('<Path val="/a"/>¦<ConditionalGet mode="on"/>', "mode 'on' is not known; it is usual or never"),
    ('<Path val="/a"/><MetaNoFollow/>¦<MetaNoFollow mode="obey"/>', "MetaNoFollow is twice in this rule"),
    ('<Path val="/a"/>¦<Render mode="alway"/>', "did you mean always?"),
    ('<Path val="/a"/><Render/>¦<Render mode="auto"/>', "Render is twice in this rule"),
    ('<Path val="/a"/>¦<Render when="auto"/>', "attribute 'when' is not known; Render has mode"),
    # several at once
    ('¦<Nott/>¦<Indx/>¦<Priority shift="9"/>', ("did you mean Not?", "did you mean Index?", "not '9'")),
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
    ("Path", r"/\[a¦^\]", "'^' is %5E in URLs and so cannot be between"),
    ("Path", r"/\[\^¦^\]", "'^' is %5E in URLs and so cannot be between"),
    ("Path", r"/\[a¦ä\]", "'ä' is %C3%A4 in URLs and so cannot be between"),
    ("Host", r"\[¦ä\]", "'ä' is xn--… in URLs"),
    ("Path", r"¦\*a", r"there is nothing before \* that it could repeat"),
    ("Path", r"\(¦\+a\)", r"nothing before \+"),
    ("Path", r"a\|¦\?", r"nothing before \?"),
    ("Path", r"¦\{2\}", r"nothing before \{"),
    ("Path", r"a\*¦\*", r"\* comes after another repetition"),
    ("Path", r"a\*\?¦\?", r"\? comes after another repetition"),
    ("Path", r"a¦\{b\}", r"after \{ come one or two numbers"),
    ("Path", r"a¦\{2", r"after \{ come one or two numbers"),
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
    ("Path", "/a¦\\", "a backslash is allowed only before one of ^$.*+?[](){}|"),
    ("Path", r"\[a¦\d\]", "a backslash is allowed only before one of"),
    ("Path", r"a¦\^b", r"\^ is allowed only at the beginning of a value"),
    ("Path", r"a¦\$b", r"\$ is allowed only at the end of a value"),
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
def test_a_mistake_in_a_value_names_the_character(element: str, value: str, words: str) -> None:
    attribute = "value" if element.startswith("Atom") else "val"
    [mistake] = mistakes(f'<Rules><Rule>\n <{element} {attribute}="{value.replace("¦", "")}"/><Index/></Rule></Rules>')
    before = len(unescape(value.partition("¦")[0]))
    assert (mistake.line, mistake.column) == (2, 2)
    assert words in mistake.message
    assert mistake.message.endswith(f" (character {before + 1} of {attribute})") == (before > 0)


def test_a_mistake_in_a_tag_of_several_lines_is_at_its_beginning() -> None:
    [mistake] = mistakes("<Rules>\n<Rule><Path\n  norm='norm'\n val='/a\\('/><Index/></Rule></Rules>")
    assert str(mistake).splitlines() == [
        r"rules.xml:2:7: \( is not closed by \) (character 3 of val)",
        "    <Rule><Path",
        "          ^",
    ]


WRONG_FILES = [
    # the second line of a file with ¦ before the place pointed at, words of the message
    ("¦<rules/>", "the outermost element of a rules.xml is Rules, not rules; did you mean Rules?"),
    ("¦<html/>", "the outermost element of a rules.xml is Rules, not html"),
    (f"¦{RULE}", "a Rule belongs inside Rules"),
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
        "a Rule belongs inside Rules, and its conditions and actions inside it",
    ),
    ("¦<Ignore/>", "a Rule belongs inside Rules, and its conditions and actions inside it; put <Rules> around all rules"),
    ("¦<CrawlConfig><Crawler/></CrawlConfig>", "there is no Rules element in this file; without rules it holds <Rules/>"),
    ("¦<CrawlConfig><rules/></CrawlConfig>", "rules of line 2 is another name, for capitals count"),
    ("¦<Rules name='a'/>", "attribute 'name' is not known; Rules has group, key"),
    ("<Rules>¦<Index/></Rules>", "Index belongs in a Rule, after the condition"),
    ("<Rules>¦<Path val='/'/></Rules>", "Path is a condition and belongs in a Rule"),
    ("<Rules>¦<rule/></Rules>", "rule is not known; Rules holds Rule, Rules; did you mean Rule?"),
    ("<Rules>¦<Rule/></Rules>", "this Rule is empty; it holds a condition, then actions"),
    ("<Rules>¦<Rule><Index/></Rule></Rules>", "this Rule has no condition; known are And, Or"),
    ("<Rules>¦<Rule><Path val='/'/></Rule></Rules>", "this Rule has no action; known are Accept, Ignore"),
    ("<Rules>¦text</Rules>", "text is not allowed in Rules"),
    (
        "<CrawlConfig><Crawler name='a'><Rules/></Crawler>¦<Crawler name='b'><Rules/></Crawler></CrawlConfig>",
        "the file has rules of 2 crawlers, 'a', 'b'; a collection has the rules of one",
    ),
    ("<!DOCTYPE Rules¦><Rules/>", "a rules.xml has no DOCTYPE"),
    ("<!DOCTYPE Rules SYSTEM 'http://h/a.dtd'¦><Rules/>", "a rules.xml has no DOCTYPE"),
    ("<!DOCTYPE Rules ¦[<!ENTITY a SYSTEM 'file:///etc/passwd'>]><Rules>&a;</Rules>", "a rules.xml has no DOCTYPE"),
    (
        "<!DOCTYPE Rules ¦[<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;&a;'><!ENTITY c '&b;&b;&b;&b;'>]><Rules group='&c;'/>",
        "a rules.xml has no DOCTYPE, and so no entities of its own",
    ),
    (f"{'<Rules>' * MAX_DEPTH}¦<Rules>", "more than 100 elements are inside each other"),
    # not well-formed: the parser's place and sentence
    (f"<Rules>{RULE}<Rule><Path val='/'></¦Rule></Rules>", "the file is not well-formed XML: mismatched tag"),
    ("<Rules></¦rules>", "mismatched tag"),
    (
        "<Rules><Rule>¦<Url val='http://h/wiki><Index/></Rule></Rules>",
        "val has no ' at its end; write <Url val='http://h/wiki'/>",
    ),
    ("<Rules><Rule>¦<Url val='http://h/wiki>", "val has no ' at its end; write <Url val='http://h/wiki'/>"),
    ('<Rules><Rule><Not>¦<Path norm="none" val="/a/> </Not>', 'val has no " at its end; write <Path norm="none" val="/a"/>'),
    ("<Rules><Rule><Url val='a¦<b'/></Rule></Rules>", "in a value, & is written &amp; and < is written &lt;"),
    ('<Rules><Rule><Url val="a norm="¦none"/></Rule></Rules>', "is a quotation mark missing before it?"),
    ("<Rules><Rule><Url val='a'¦</Rule></Rules>", "the tag before it has no end, which is written /> or >"),
    ("<Rules>¦<Rule group='a", "the value of group has no ' at its end; write <Rule group='a'>"),
    ("<Rules>¦<Rule ", "unclosed token"),
    ("<Rules><Rule><Url val='http://h/?a=b&c¦=d'/></Rule></Rules>", "& is written &amp;"),
    ("<Rules>¦&nbsp;</Rules>", "undefined entity"),
    ("<Rules><Rule>¦<ar:Atom field='url' value='a'/></Rule></Rules>", 'the prefix ar: is not declared; write xmlns:ar="exa:'),
    ("<Rules><Rule>¦<Atom x:field='url' value='a'/></Rule></Rules>", "the prefix x: is not declared"),
    ("<Rules group='a' ¦group='b'/>", "duplicate attribute"),
    ("<Rules/>¦<Rules/>", "junk after document element"),
    ("<Rules>¦\x01</Rules>", "invalid token); no file of XML has this character"),
    ("¦<?xml version='1.0'?><Rules/>", "XML or text declaration not at start of entity"),
    ("¦allow domain *", "syntax error"),
]


@pytest.mark.parametrize("line,words", WRONG_FILES, ids=[line[:80] for line, _ in WRONG_FILES])
def test_a_mistake_in_a_file_is_named(line: str, words: str) -> None:
    assert_told("<!-- ä -->", line, "", (words,))


WRONG_BYTES = [
    # file, line, column, words of the message
    (b"", 1, 1, "the file is not well-formed XML: no element found"),
    (b"<Rules>\n<Rule>\n", 3, 1, "the file is not well-formed XML: no element found"),
    (b"<Rules>\r\n \xe4</Rules>", 2, 2, "not UTF-8; save the file as UTF-8, or name its encoding in the first line, as in <?xml"),
    ("<Rules/>".encode("utf-32"), 1, 1, "the file is in UTF-32; save it as UTF-8"),
    ("\ufeff<Rules/>".encode("utf-32-be"), 1, 1, "the file is in UTF-32; save it as UTF-8"),
    ("<Rules/>".encode("utf-32-le"), 1, 1, "the file is in UTF-32; save it as UTF-8"),
    ("<Rules/>".encode("utf-32-be"), 1, 1, "the file is in UTF-32; save it as UTF-8"),
    (b"\xff\xfe<\x00R\x00\x00\xd8", 1, 3, "not UTF-16-LE"),
    (b'<?xml version="1.0" encoding="UTF-16"?><Rules/>', 1, 31, "cannot be read as 'UTF-16', the encoding that it names"),
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


def test_mistakes_are_reported_in_the_order_of_the_file_up_to_a_hundred() -> None:
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
