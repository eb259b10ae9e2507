"""A page divided into parts: by its headings, and by the elements of rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content import parts
from crawlspace.content.extraction import RuledPage, extracted
from crawlspace.content.extraction_rules import ExtractionRules, PartRule, TextRule
from crawlspace.content.parts import MAX_KEY, MAX_PARTS, heading_parts
from crawlspace.content.tree import page_tree
from crawlspace.document import Part
from tests.growth import is_linear
from tests.unit.content.test_tree import PIECES

MOST = 40


def sections(html: str, most: int = MOST) -> list[Part]:
    return heading_parts([page_tree(html)], most=most)


def shown(parts: list[Part]) -> list[tuple[str, str, str]]:
    """Key, headings and text of parts; a key that is a digest is shown as #, with the number that is added to it."""
    return [(_key(part), " > ".join(part.headings), part.text) for part in parts]


def _key(part: Part) -> str:
    key, sign, number = part.key.partition("~")
    return ("#" if len(key) == 16 and set(key) <= set("0123456789abcdef") else key) + sign + number


# HTML -> key, headings and text of each part
SECTIONS: dict[str, tuple[str, list[tuple[str, str, str]]]] = {
    "sections": (
        "<p>a<h1 id=m>M</h1><p>b<h2 id=s>S</h2><p>c<h3 id=t>T</h3>d<h2 id=u>U</h2>e",
        [("top", "", "a"), ("m", "M", "b"), ("s", "M > S", "c"), ("t", "M > S > T", "d"), ("u", "M > U", "e")],
    ),
    "a page without headings": ("a<p>b", [("top", "", "a\n\nb")]),
    "a page without text": ("<h1>A</h1><h2> </h2><p> ", []),
    "headings with further headings only": ("<h1 id=a>A</h1><h2 id=b>B</h2>c", [("b", "A > B", "c")]),
    "a level that is left out": ("<h1 id=a>A</h1><h4 id=b>B</h4>c<h2 id=d>D</h2>e", [("b", "A > B", "c"), ("d", "A > D", "e")]),
    "a first heading that is no h1": ("<h3 id=a>A</h3>b<h1 id=c>C</h1>d", [("a", "A", "b"), ("c", "C", "d")]),
    "headings without anchors": ("<h1>A</h1>b<h2>C</h2>d", [("#", "A", "b"), ("#", "A > C", "d")]),
    "equal headings": ("<h2>A</h2>b<h2>A</h2>c", [("#", "A", "b"), ("#~2", "A", "c")]),
    "equal anchors": ("<h2 id=a>A</h2>b<h2 id=a>B</h2>c", [("a", "A", "b"), ("a~2", "B", "c")]),
    "an anchor that is a key with a number": (
        "<h2 id=a>A</h2>b<h2 id='a~2'>B</h2>c<h2 id=a>C</h2>d",
        [("a", "A", "b"), ("a~2", "B", "c"), ("a~3", "C", "d")],
    ),
    "no markup": (
        "<h2 id=a><code>A</code> <i>b</i></h2>x*y <b>c</b> <a href=/d>d</a> <code>e</code>",
        [("a", "A b", "x*y c d e")],
    ),
    "lists": ("<ul><li>a<ul><li>b</ul><li>c</ul><ol><li>d<li>e</ol>", [("top", "", "- a\n  - b\n- c\n\n1. d\n2. e")]),
    "a table": ("<table><tr><th>a<th>b<tr><td>c<td>d</table>", [("top", "", "| a | b |\n| --- | --- |\n| c | d |")]),
    "code": ("<pre>a\n  b</pre>c", [("top", "", "a\n  b\n\nc")]),
    "line breaks": ("a<br> b", [("top", "", "a\nb")]),
    "images": ("<img alt='a pump' src=p.png> b", [("top", "", "a pump b")]),
    # longer than 40 characters
    "paragraphs that do not fit together": (
        "<p>twenty characters 20<p>twenty characters 20<p>ten charac",
        [("top", "", "twenty characters 20"), ("top~2", "", "twenty characters 20\n\nten charac")],
    ),
    "a paragraph that is too long": (
        "<h2 id=a>A</h2>This is one. Here is another one! Is it? It is, says Dr. Who (e.g. here). End.",
        [("a", "A", "This is one. Here is another one! Is it?"), ("a~2", "A", "It is, says Dr. Who (e.g. here). End.")],
    ),
    "sentences without spaces": (
        "これは最初の文であり、かなり長いものです。これは二番目の文であり、やはり長いものです。",
        [
            ("top", "", "これは最初の文であり、かなり長いものです。"),
            ("top~2", "", "これは二番目の文であり、やはり長いものです。"),
        ],
    ),
    "a sentence that is too long": (
        "one two three four five six seven eight nine ten",
        [("top", "", "one two three four five six seven eight"), ("top~2", "", "nine ten")],
    ),
    "a word that is too long": ("x" * 50, [("top", "", "x" * 40), ("top~2", "", "x" * 10)]),
    "code that is too long": (
        f"a<pre>{'x ' * 30}y</pre>b",
        [("top", "", "a"), ("top~2", "", "x " * 30 + "y"), ("top~3", "", "b")],
    ),
}


@pytest.mark.parametrize("name", SECTIONS)
def test_sections_are_parts(name: str) -> None:
    html, expected = SECTIONS[name]
    assert shown(sections(html)) == expected


# a heading with an anchor -> the anchor of its part
ANCHORS: dict[str, tuple[str, str]] = {
    "its own": ("<h2 id=a>A</h2>b", "a"),
    "of an element in it": ("<h2><span id=a></span>A</h2>b", "a"),
    "by name": ("<h2><a name=a>A</a></h2>b", "a"),
    "right before it": ("<p>x</p><a name=a></a><h2>A</h2>b", "a"),
    "of the section that it begins": ("<section id=a><div><h2>A</h2>b</div></section>", "a"),
    "not of what has more before it": ("<section id=a>x<h2>A</h2>b</section>", ""),
    "not of text before it": ("<a id=a>x</a><h2>A</h2>b", ""),
    "of the section around": ("<h1 id=a>A</h1>x<h2>B</h2>b", "a"),
    "of nothing": ("<h2>A</h2>b", ""),
    "too long": (f"<h2 id={'a' * (MAX_KEY + 1)}>A</h2>b", ""),
    "in other letters": ("<h2 id='Größe 1'>A</h2>b", "Größe 1"),
}


@pytest.mark.parametrize("name", ANCHORS)
def test_a_part_has_the_anchor_of_its_section(name: str) -> None:
    html, expected = ANCHORS[name]
    assert sections(html)[-1].anchor == expected


@pytest.mark.full
def test_the_time_is_proportional_to_the_page_where_parts_are_large_too() -> None:
    assert is_linear(lambda number: sections("<p>a" * number, 1_000_000), 20_000)


def test_keys_of_sections_stay_when_others_come_and_go() -> None:
    before = sections("<h1>M</h1>m<h2>A</h2>a<h2>B</h2>b")
    after = sections("<h1>M</h1>m<h2>New</h2>n<h2>B</h2>b")
    assert [part.key for part in after if part.title != "New"] == [part.key for part in before if part.title != "A"]


@pytest.mark.full
def test_a_page_has_a_limited_number_of_parts() -> None:
    assert len(sections("<h2>A</h2>b" * 100_000)) == MAX_PARTS


def test_parts_have_a_limited_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MAX_TEXT", 1_000)
    assert sum(len(part.text) for part in sections("<p>some words " * 1_000)) <= 1_000
    deep = "<blockquote>" * 20 + "<pre>" + "a\n" * 1_000
    assert sections(deep) == [], "a block of code is whole"
    long = "<h1>" + "x" * 1_000 + "</h1>" + "<h2>y</h2>z" * 1_000
    assert sum(len(part.text) + sum(map(len, part.headings)) for part in sections(long)) <= 1_000


@pytest.mark.parametrize(
    "piece", ["<h2>A</h2>b", "<section id=a>", "<h2>", "<a name=a></a>", "word. ", "word ", "x", "<p>a", "<div id=a><h2>b</h2>"]
)
def test_the_time_is_proportional_to_the_page(piece: str) -> None:
    assert is_linear(lambda number: sections(piece * number), 2_000)


@given(
    st.lists(PIECES | st.sampled_from(["<h1>", "</h1>", "<h2 id=a>", "</h2>", "One. Two! ", "。"]), max_size=40),
    st.integers(1, 30),
)
def test_no_word_is_lost_and_no_key_comes_twice(pieces: list[str], most: int) -> None:
    found = sections("".join(pieces), most)
    whole = sections("".join(pieces), 10_000)
    assert "".join("".join(part.text.split()) for part in found) == "".join("".join(part.text.split()) for part in whole)
    assert len({part.key for part in found}) == len(found)
    assert all(part.text for part in found)


# --- rules ---------------------------------------------------------------------------------------------------------

JOBS = """<nav>Menu</nav><h1>Jobs</h1><div class=job id=a><h2>Welder</h2><p>Welds. <i>Well.</i></div>
<div class=job id=b><h2>Fitter</h2>Fits.<div class=job id=c><h2>Inner</h2>x</div></div><div class=job> </div>
<div class=job><h2>Nobody</h2>Waits.</div><div class=job id=a><h2>Second</h2>Again.</div>"""


def parts_of(*rules: PartRule | TextRule, part_chars: int = 0, is_main: bool = False) -> list[Part]:
    of_kind = ExtractionRules(
        texts=tuple(rule for rule in rules if isinstance(rule, TextRule)),
        parts=tuple(rule for rule in rules if isinstance(rule, PartRule)),
    )
    return extracted(of_kind, RuledPage(JOBS, url="http://a.example/"), part_chars=part_chars, is_main=is_main).parts


# rules -> key, headings and text of each part
RULED: dict[str, tuple[tuple[PartRule | TextRule, ...], list[tuple[str, str, str]]]] = {
    "elements, the outermost of those in each other": (
        (PartRule(".job", "@id", "h2"),),
        [
            ("a", "Welder", "Welder\n\nWelds. Well."),
            ("b", "Fitter", "Fitter\n\nFits.\n\nInner\n\nx"),
            ("#", "Nobody", "Nobody\n\nWaits."),
            ("a~2", "Second", "Second\n\nAgain."),
        ],
    ),
    "a key by CSS": ((PartRule("#a.job", "h2"),), [("Welder", "", "Welder\n\nWelds. Well."), ("Second", "", "Second\n\nAgain.")]),
    "a key that is not there": ((PartRule("#b", "h5"),), [("b", "", "Fitter\n\nFits.\n\nInner\n\nx")]),
    "several rules": ((PartRule("#c", "@id"), PartRule("h1", "@id")), [("c", "", "Inner\n\nx"), ("#", "", "Jobs")]),
    "sections where none finds anything": (
        (PartRule(".none", "@id"),),
        [
            ("top", "", "Menu"),
            ("a", "Jobs > Welder", "Welds. Well."),
            ("b", "Jobs > Fitter", "Fits."),
            ("c", "Jobs > Inner", "x"),
            ("#", "Jobs > Nobody", "Waits."),
            ("a~2", "Jobs > Second", "Again."),
        ],
    ),
    "rules for the text, too": ((TextRule(only=("#a",)), PartRule("#c", "@id")), [("c", "", "Inner\n\nx")]),
}


@pytest.mark.parametrize("name", RULED)
def test_rules_make_parts(name: str) -> None:
    rules, expected = RULED[name]
    found = shown(parts_of(*rules, part_chars=1_000))
    assert found == expected


def test_sections_are_those_of_the_text() -> None:
    assert shown(parts_of(TextRule(only=("#b",), drop=("#c",)), part_chars=99)) == [("b", "Fitter", "Fits.")]
    assert [part.title for part in parts_of(part_chars=99)][:2] == ["", "Welder"], "the navigation is in it"
    assert [part.title for part in parts_of(part_chars=99, is_main=True)][:1] == ["Welder"]


def test_markdown_is_that_of_the_text() -> None:
    page = RuledPage(JOBS, url="http://a.example/")
    rules = ExtractionRules(texts=(TextRule(only=("#b",), drop=("#c h2",)),))
    assert extracted(rules, page, markdown=True).markdown == "## Fitter\n\nFits.\n\nx\n"
    assert extracted(ExtractionRules(), RuledPage("<p>a<b>b</b>", url="http://a.example/"), markdown=True).markdown == "a**b**\n"
