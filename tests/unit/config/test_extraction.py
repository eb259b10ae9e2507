"""`extract.toml`: its rules, its mistakes with their places, and the pages that rules apply to."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlspace.config import extraction
from crawlspace.config.extraction import ExtractionScope, parse_extraction_rules
from crawlspace.config.files import read_extraction_rules
from crawlspace.content.extraction_rules import NO_RULES, ExtractionRules, FieldRule, PartRule, TextRule
from crawlspace.errors import Mistake, RuleFileError
from tests.unit.lint.linted import RULES, START, reviewed

RULES_OF_A_SHOP = """# fields of a shop
[[field]]
name = "price"
where = "http://Shop.example.com:80/*"
css = "span.price"
type = "number"

[[field]]
name = "price"
where = ["http://shop.example.com/a", "https://*.example.com/b"]
jsonld = "offers.price"
take = "all"
type = "number"
[[field]]
name = "team"
url = '/teams/([a-z]+)/'
[[text]]
drop = ".toc"
[[part]]
css = ".job"
key = "@id"
title = "h2"
"""


def parsed(text: str) -> ExtractionRules:
    return parse_extraction_rules(text, file="extract.toml")


def mistakes_in(text: str) -> list[str]:
    with pytest.raises(RuleFileError) as raised:
        parsed(text)
    return [f"{one.line}:{one.column} {one.message}" for one in raised.value.mistakes]


def test_rules_are_read_in_their_order() -> None:
    assert parsed(RULES_OF_A_SHOP) == ExtractionRules(
        (
            FieldRule("price", "css", "span.price", ("http://shop.example.com/",), "first", "number", 2),
            FieldRule(
                "price", "jsonld", "offers.price", ("http://shop.example.com/a", "https://*.example.com/b"), "all", "number", 8
            ),
            FieldRule("team", "url", "/teams/([a-z]+)/", line=14),
        ),
        (TextRule(drop=(".toc",), line=17),),
        (PartRule(".job", "@id", "h2", line=19),),
    )


FIELD = '[[field]]\nname = "f"\n'

# file -> place and beginning of each mistake, in order
MISTAKES: list[tuple[str, list[str]]] = [
    ("a = ", ["1:5 this is not TOML: Invalid value; texts stand in quotation marks"]),
    ("\n[[field]\n", ["2:8 this is not TOML: Expected ']]'"]),
    (f"a = {'[' * 5000}", ["1:"]),
    ("[[fields]]\n", ["1:1 there is no table 'fields': did you mean 'field'?"]),
    ("x = 1\n", ["1:1 there is no table 'x': there are [[field]], [[text]] and [[part]]"]),
    ('[field]\nname = "a"\n', ["1:1 field is one of several; write [[field]] above its keys"]),
    ('field = "a"\n', ["1:1 field is one of several"]),
    ('[[field]]\ncss = "a"\n', ['1:1 field 1: it has no name; write that of the field, as in name = "price"']),
    ('[[field]]\nname = 3\ncss = "a"\n', ["2:8 field 1: name is 3; it must be a text, in quotation marks"]),
    ('[[field]]\nname = "9a"\ncss = "a"\n', ["2:8 field 1 (9a): name is '9a': a field has letters, digits, _, - and dots"]),
    (
        '[[field]]\nname = "title"\ncss = "a"\n',
        ["2:8 field 1 (title): name is 'title', which a document has of its page; choose another name"],
    ),
    (FIELD, ["1:1 field 1 (f): it has nothing to take its value from; write css, xpath, meta, jsonld, header or url, as in"]),
    (f'{FIELD}css = "a"\nurl = "(a)"\n', ["4:1 field 1 (f): it has css and url, and one of them is to be taken"]),
    (f'{FIELD}css = "a"\ntyp = "text"\n', ["4:1 field 1 (f): there is no key 'typ': did you mean 'type'?"]),
    (f'{FIELD}css = "a"\nselector = "b"\n', ["4:1 field 1 (f): there is no key 'selector': did you mean 'css'?"]),
    (f'{FIELD}css = "a >"\n', ["3:7 field 1 (f): css is 'a >': Expected selector, got <EOF at 3>"]),
    (f'{FIELD}css = "a::before"\n', ["3:7 field 1 (f): css is 'a::before': The pseudo-element ::before is unknown"]),
    (f'{FIELD}css = "svg|a"\n', ["3:7 field 1 (f): css is 'svg|a': the prefix 'svg' is not known"]),
    (f'{FIELD}css = ""\n', ["3:7 field 1 (f): css is ''; it must be a text"]),
    (f'{FIELD}xpath = "//a["\n', ["3:9 field 1 (f): xpath is '//a[': Invalid expression"]),
    (f'{FIELD}xpath = "//a[foo(1)]"\n', ["3:9 field 1 (f): xpath is '//a[foo(1)]': there is no function foo()"]),
    (
        f"{FIELD}xpath = \"//a[contain(., 'b')]\"\n",
        ["3:9 field 1 (f): xpath is \"//a[contain(., 'b')]\": there is no function contain(): did you mean 'contains'?"],
    ),
    (
        f"{FIELD}xpath = \"//a[re:test(., 'b')]\"\n",
        ["3:9 field 1 (f): xpath is \"//a[re:test(., 'b')]\": re:test() is not there"],
    ),
    (f'{FIELD}xpath = "//x:a"\n', ["3:9 field 1 (f): xpath is '//x:a': the prefix 'x' is not known"]),
    (f'{FIELD}xpath = "//a[$b]"\n', ["3:9 field 1 (f): xpath is '//a[$b]': there are no variables, and '$b' is one"]),
    (f'{FIELD}url = "a(b"\n', ["3:7 field 1 (f): url is 'a(b': RE2 cannot use this expression: missing )"]),
    (f"{FIELD}url = '(?=a)(b)'\n", ["3:7 field 1 (f): url is '(?=a)(b)': RE2 cannot use this expression"]),
    (
        f'{FIELD}url = "ab"\n',
        ["3:7 field 1 (f): url is 'ab': it has 0 groups, and exactly one is needed; put what is taken into ( )"],
    ),
    (f'{FIELD}url = "(a)(b)"\n', ["3:7 field 1 (f): url is '(a)(b)': it has 2 groups, and exactly one is needed; write (?: )"]),
    (f'{FIELD}header = "a b"\n', ["3:10 field 1 (f): header is 'a b': that is not the name of a header"]),
    (f'{FIELD}jsonld = "a..b"\n', ["3:10 field 1 (f): jsonld is 'a..b': that is not a path"]),
    (
        f'{FIELD}css = "a"\nwhere = "shop.example.com"\n',
        ["4:9 field 1 (f): where is 'shop.example.com': a prefix target begins with"],
    ),
    (f'{FIELD}css = "a"\nwhere = "*"\n', ["4:9 field 1 (f): where is '*'; leave it out for all pages"]),
    (f'{FIELD}css = "a"\nwhere = []\n', ["4:1 field 1 (f): where is []; it must be a text or a list of texts"]),
    (
        f'{FIELD}css = "a"\nwhere = [\n  "http://a.example/", # fine\n  "a",\n  3,\n]\n',
        ["6:3 field 1 (f): where is 'a': a prefix target", "7:3 field 1 (f): where has 3; its items must be texts"],
    ),
    (f'{FIELD}css = "a"\ntake = "last"\n', ["4:8 field 1 (f): take is 'last': it may be first, all, joined"]),
    (f'{FIELD}css = "a"\ntype = "numbre"\n', ["4:8 field 1 (f): type is 'numbre': did you mean 'number'?"]),
    (
        f'{FIELD}css = "a"\ntype = "url"\ntake = "joined"\n',
        ["5:8 field 1 (f): take is \"joined\", which makes one text, and type is 'url'"],
    ),
    (
        f'{FIELD}css = "a"\ntype = "bool"\ntake = "all"\n',
        ['5:8 field 1 (f): take is "all", and a field of type "bool" has one value'],
    ),
    (
        f'{FIELD}css = "a"\n{FIELD}css = "b"\ntype = "date"\n',
        ["7:8 field 2 (f): its type is 'date', and that of field 1 (f) is 'text'; a field has one type"],
    ),
    ("[[text]]\n", ["1:1 text 1: it has neither only nor drop"]),
    ('[[text]]\nonly = ["a", "b >"]\n', ["2:14 text 1: only is 'b >': Expected selector"]),
    ('[[text]]\ndrop = "a::text"\n', ["2:8 text 1: drop is 'a::text': '::text' is no element"]),
    ('[[text]]\ncss = "a"\n', ["1:1 text 1: it has neither", "2:1 text 1: there is no key 'css'"]),
    ("[[part]]\n", ["1:1 part 1: it has no css", "1:1 part 1: it has no key"]),
    ('[[part]]\ncss = "a"\nkey = "@ b"\n', ["3:7 part 1: key is '@ b', which names no attribute"]),
    (
        '[[field]]\nname = "a"\ncss = "b >"\n\n[[field]]\nnam = "c"\nurl = "x"\ntake = "one"\n',
        [
            "3:7 field 1 (a): css is",
            "5:1 field 2: it has no name",
            "6:1 field 2: there is no key 'nam'",
            "7:7 field 2: url is 'x'",
            "8:8 field 2: take is 'one'",
        ],
    ),
]


@pytest.mark.parametrize(("text", "expected"), MISTAKES)
def test_all_mistakes_are_reported_with_their_places(text: str, expected: list[str]) -> None:
    found = mistakes_in(text)
    assert len(found) == len(expected), found
    for mistake, beginning in zip(found, expected, strict=True):
        assert mistake.startswith(beginning)
        assert "\n" not in mistake


def test_a_mistake_is_shown_with_its_line() -> None:
    with pytest.raises(RuleFileError) as raised:
        parsed(f'{FIELD}css = "a >"\n')
    assert str(raised.value).splitlines()[1:] == ['    css = "a >"', "          ^"]


def test_rules_and_their_length_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "is the most" in mistakes_in(f'{FIELD}css = "{"a" * 6_000}"')[0]
    assert "is the most" in mistakes_in(f'{FIELD}url = "({"a" * 6_000})"')[0]
    monkeypatch.setattr(extraction, "MAX_RULES", 2)
    assert mistakes_in(f'{FIELD}css = "a"\n' * 4) == [
        "7:1 field 3 (f): this is one more than 2, which is the most of a file; one rule may do for many pages"
    ]


@given(st.text("[]{}=\"'#.,\n \\abfieldtext", max_size=60))
@example('field = [{name = "a >", css = "b"}]\n')
@example('"field" = [[1]]\n')
@example('[[field]]\n"name" = """a\n=[b]"""\n')
@example("[[field]]\nwhere = { a = 1 }\n")
def test_no_file_raises_anything_else(text: str) -> None:
    mistakes: tuple[Mistake, ...] = ()
    try:
        parsed(text)
    except RuleFileError as error:
        mistakes = error.mistakes
    assert all(mistake.line >= 1 and mistake.column >= 1 for mistake in mistakes)


# URL -> lines of the rules that apply
SCOPES = [
    ("http://shop.example.com/a/1", [2, 8, 14, 17, 19]),
    ("http://shop.example.com/c", [2, 14, 17, 19]),
    ("https://www.example.com/b", [8, 14, 17, 19]),
    ("http://a.example/", [14, 17, 19]),
]


@pytest.mark.parametrize(("url", "lines"), SCOPES)
def test_rules_apply_where_their_targets_do(url: str, lines: list[int]) -> None:
    found = ExtractionScope(parsed(RULES_OF_A_SHOP)).of(url)
    applying: list[FieldRule | TextRule | PartRule] = [*found.fields, *found.texts, *found.parts]
    assert [rule.line for rule in applying] == lines


def test_a_page_without_rules_has_none() -> None:
    assert ExtractionScope(parsed(f'{FIELD}css = "a"\nwhere = "http://a.example/"')).of("http://b.example/") is NO_RULES


# one file and another one, and whether pages may yield other documents with it
CHANGES = [
    ("", "# nothing\n", False),
    ("", f'{FIELD}css = "a"', True),
    (f'{FIELD}css = "a"', f'# why\n\n{FIELD}css = "a" # what\n', False),
    (f'{FIELD}css = "a"', f'{FIELD}css = "b"', True),
    (f'{FIELD}css = "a"', f'{FIELD}css = "a"\nwhere = "http://a.example/"', True),
    (f'{FIELD}css = "a"', f'{FIELD}css = "a"\ntype = "text"', False),
]


@pytest.mark.parametrize(("one", "other", "changes"), CHANGES)
def test_rules_are_part_of_the_hash_of_the_content(tmp_path: Path, one: str, other: str, *, changes: bool) -> None:
    hashes = []
    for text in (one, other):
        _, collection = reviewed(tmp_path, "demo", {"start_urls.txt": START, "crawl.rules": RULES, "extract.toml": text})
        assert collection is not None
        hashes.append(collection.content_hash)
    assert (hashes[0] != hashes[1]) is changes


def test_without_the_file_nothing_changes(tmp_path: Path) -> None:
    assert read_extraction_rules(tmp_path) is NO_RULES
    _, without = reviewed(tmp_path, "demo", {"start_urls.txt": START, "crawl.rules": RULES})
    _, empty = reviewed(tmp_path, "demo", {"start_urls.txt": START, "crawl.rules": RULES, "extract.toml": ""})
    assert without is not None
    assert empty is not None
    assert without.content_hash == empty.content_hash


def test_a_file_in_another_encoding_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "extract.toml").write_bytes(FIELD.encode() + b'css = "\xe4"\n')
    with pytest.raises(RuleFileError) as raised:
        read_extraction_rules(tmp_path)
    assert re.match(r"extract.toml:3:8: this is not UTF-8", str(raised.value))


@pytest.mark.parametrize("written", ["a{}", "[a{}]", "x = {{a{}}}", "a{} = 1"])
def test_a_key_of_very_many_parts_is_refused_before_it_takes_memory(written: str) -> None:
    text = "\n" + written.format(".b" * 20_000)
    tracemalloc.start()
    with pytest.raises(RuleFileError, match=r"extract.toml:2:\d+: a key has more than 100 parts between dots"):
        parse_extraction_rules(text, file="extract.toml")
    assert tracemalloc.get_traced_memory()[1] < 10 * len(text)
    tracemalloc.stop()
