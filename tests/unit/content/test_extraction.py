"""What extraction rules find in a page."""

from __future__ import annotations

import time
import tracemalloc

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content.extraction import MAX_JOINED, MAX_VALUE, MAX_VALUES, RuledPage, extracted
from crawlspace.content.extraction_rules import Extracted, ExtractionRules, FieldRule, TextRule
from crawlspace.content.html import extract
from crawlspace.document import Values, values_of
from tests.quick import some

URL = "http://shop.example.com/item/42/a%20b"
HEADERS = [("Content-Type", "text/html"), ("X-Team", "sales"), ("x-team", "support")]
PAGE = """<html><head><title>The shop</title><base href="/base/">
<meta name="Price" content=" 12,50 "><meta property="og:price" content="13"><meta name=tag content=a><meta name=TAG content=b>
<script type="application/ld+json">{"@graph": [
 {"@type": "WebSite", "name": "Shop"},
 {"@type": ["Product", "Thing"], "name": "Pump", "@id": "#p", "brand": {"@type": "Brand", "name": "Acme"},
  "offers": [{"@id": "#o1"}, {"price": 1.234, "available": true, "valid": ["2024-05-01", "2024-06-01"]}]},
 {"@id": "#o1", "price": "1,100.00"}]}</script>
<script type="application/ld+json">{"broken": </script></head>
<body><h1>A p<b>um</b>p</h1><p class=price> 1.234,50&nbsp;€ </p><p class=price>call us</p><p class=price>20</p>
<ul><li>one<li>two<li>one<li> </ul><table><tr><td>x</td><td>y</td></tr></table>
<a class=more href="more?x=1">More</a><img class=photo src="/p.png"><time datetime="2024-05-01T12:00:00Z">1 May</time>
<span class=stock></span><span class=sale>No</span><div class=deep>seen<script>var hidden</script><style>b</style><br>too</div>
<svg><path class=d d="M0"/></svg><!-- comment --></body></html>"""


def field(by: str, expression: str, type: str = "text", take: str = "first") -> FieldRule:  # noqa: A002
    return FieldRule("f", by, expression, take=take, type=type)  # type: ignore[arg-type]


def of_page(*rules: FieldRule, html: str = PAGE) -> Extracted:
    return extracted(ExtractionRules(rules), RuledPage(html, url=URL, base="http://shop.example.com/base/", headers=HEADERS))


# rule -> value of the field; None: the field is left out
FOUND: list[tuple[FieldRule, Values | None]] = [
    (field("css", "h1"), "A pump"),
    (field("css", "h1::text"), "A p"),
    (field("css", "h1 b::text"), "um"),
    (field("css", "h1::text", take="joined"), "A p p"),
    (field("css", "title"), "The shop"),
    (field("css", "tr"), "x y"),
    (field("css", ".deep"), "seen too"),
    (field("css", "h2"), None),
    (field("css", "h2, h1"), "A pump"),
    (field("css", "a:contains('More')::attr(href)"), "more?x=1"),
    (field("css", "li"), "one"),
    (field("css", "li", take="all"), ["one", "two"]),
    (field("css", "li", take="joined"), "one two one"),
    (field("css", ".price", "number"), "1234.5"),
    (field("css", ".price", "number", "all"), ["1234.5", "20"]),
    (field("css", ".price:nth-child(3)", "number"), None),
    (field("css", ".more", "url"), "http://shop.example.com/base/more?x=1"),
    (field("css", ".photo", "url"), "http://shop.example.com/p.png"),
    (field("css", ".more::attr(class)", "url"), "http://shop.example.com/base/more"),
    (field("css", "time", "date"), "2024-05-01T12:00:00Z"),
    (field("css", "time"), "1 May"),
    (field("css", ".stock", "bool"), "true"),
    (field("css", ".sale", "bool"), "false"),
    (field("css", ".none", "bool"), None),
    (field("css", "meta[property='og:price']", "number"), "13"),
    (field("css", "path::attr(d)"), "M0"),
    (field("xpath", "//li[2]"), "two"),
    (field("xpath", "//li/text()", take="all"), ["one", "two"]),
    (field("xpath", "//a/@href"), "more?x=1"),
    (field("xpath", "string(//h1)"), "A pump"),
    (field("xpath", "count(//li)", "number"), "4"),
    (field("xpath", "count(//li) > 1", "bool"), "true"),
    (field("xpath", "1 div 0", "number"), None),
    (field("xpath", "//comment()"), None),
    (field("xpath", "//*[has-class('sale')]"), "No"),
    (field("meta", "price", "number"), "12.5"),
    (field("meta", "OG:Price"), "13"),
    (field("meta", "tag", take="all"), ["a", "b"]),
    (field("meta", "absent"), None),
    (field("jsonld", "name"), "Shop"),
    (field("jsonld", "Product.name"), "Pump"),
    (field("jsonld", "Thing.brand"), "Acme"),
    (field("jsonld", "offers.price", "number"), "1100"),
    (field("jsonld", "offers.price", "number", "all"), ["1100", "1.234"]),
    (field("jsonld", "offers.available", "bool"), "true"),
    (field("jsonld", "offers.valid", "date", "all"), ["2024-05-01", "2024-06-01"]),
    (field("jsonld", "offers.price.unit"), None),
    (field("header", "x-team"), "sales"),
    (field("header", "X-Team", take="all"), ["sales", "support"]),
    (field("header", "X-None"), None),
    (field("url", r"/item/(\d+)/", "number"), "42"),
    (field("url", r"/item/\d+/([^/]+)"), "a b"),
    (field("url", r"/(nothing)/"), None),
]


@pytest.mark.parametrize(("rule", "value"), FOUND)
def test_what_a_rule_finds(rule: FieldRule, value: Values | None) -> None:
    found = of_page(rule).fields.get("f")
    assert (None if found is None else values_of(found)) == value


# rules of one field -> value, number of values that do not fit
SEVERAL: list[tuple[list[FieldRule], str | None, int]] = [
    ([field("css", ".none", "number"), field("meta", "price", "number"), field("css", ".price", "number")], "12.5", 0),
    ([field("css", "h1", "number"), field("meta", "price", "number")], None, 1),
    ([field("css", ".price", "number", "all")], '["1234.5", "20"]', 1),
    ([field("css", "li:last-child", "number"), field("meta", "price", "number")], "12.5", 0),
]


@pytest.mark.parametrize(("rules", "value", "misfits"), SEVERAL)
def test_the_first_rule_that_finds_something_decides(rules: list[FieldRule], value: str | None, misfits: int) -> None:
    found = of_page(*rules)
    assert (found.fields.get("f"), found.misfits.get("f", 0)) == (value, misfits)


NESTED = """<title>T</title><header>head</header><div id=content>Th<b>re</b>e <nav>menu</nav><p>one<p>two<script>x</script></div>
<div class=toc>list <i class=in>in it</i></div><aside>side</aside> end"""

# only, drop -> text; None: the text stays that of the page
TEXTS: list[tuple[tuple[str, ...], tuple[str, ...], str | None]] = [
    (("#content",), (), "Three menu one two"),
    (("#content",), ("nav",), "Three one two"),
    (("#content", ".toc"), ("nav", "p"), "Three list in it"),
    (("#content", "p"), (), "Three menu one two"),
    ((".toc", ".in"), (), "list in it"),
    (("#none", ".toc"), (), "list in it"),
    (("#none",), ("nav",), None),
    (("#content",), ("#content",), None),
    ((".in",), (".toc",), None),
    ((), ("header", "nav", ".toc", "aside"), "Three one two end"),
    ((), ("*",), None),
]


@pytest.mark.parametrize(("only", "drop", "text"), TEXTS)
def test_the_text_of_some_elements_without_others(only: tuple[str, ...], drop: tuple[str, ...], text: str | None) -> None:
    assert extracted(ExtractionRules(texts=(TextRule(only, drop),)), RuledPage(NESTED, url=URL)).text == text


def test_signs_of_links_from_a_heading_to_itself_are_no_text() -> None:
    html = "<body><div id=content><h1 id=a>One<a href='#a'>¶</a></h1>two <a href='#a'>back</a></div>"
    for rule in (TextRule(("#content",)), TextRule(drop=("nav",))):
        assert extracted(ExtractionRules(texts=(rule,)), RuledPage(html, url=URL)).text == "One two back"


def test_the_text_of_what_is_nested_too_deep_for_libxml2() -> None:
    html = f"<body><nav>menu</nav><div id=content>{'<div>' * 5_000}deep{'</div>' * 5_000}</div>after"
    for rule, text in ((TextRule(("#content",)), "deep"), (TextRule(drop=("nav",)), "deep after")):
        assert extracted(ExtractionRules(texts=(rule,)), RuledPage(html, url=URL)).text == text


def test_the_first_rule_that_leaves_text_decides_it() -> None:
    rules = (TextRule(("#none",)), TextRule((".toc",)), TextRule(("#content",)))
    assert extracted(ExtractionRules(texts=rules), RuledPage(NESTED, url=URL)).text == "list in it"


# a page and what exclusion marks leave of it
MARKED = [
    "<p>a<!--googleoff: all-->b<!--googleon: all-->c",
    "<p>a <!--googleoff: snippet-->b",
    "a <noindex>b</noindex> c",
    "a<!--noindex--> b <!--/noindex-->c",
    "<div data-elastic-exclude>a <p data-elastic-include>b</p></div>c",
    "<div data-pagefind-body>a <p data-pagefind-ignore>b</p></div>c",
    "<p>th<b>re</b>e<td>x<td>y<my-card>z</my-card><template>no</template><noscript>no</noscript>",
    "<div><template shadowrootmode=open>seen</template></div>",
]


@pytest.mark.parametrize("html", MARKED)
def test_words_and_exclusion_marks_are_as_in_the_text_of_the_page(html: str) -> None:
    whole = extracted(ExtractionRules(texts=(TextRule(drop=("i",)),)), RuledPage(f"<body>{html}</body>", url=URL))
    assert whole.text == extract(f"<body>{html}</body>".encode(), url=URL).text


def test_values_are_bounded() -> None:
    html = "".join(f"<p>{number} {'x' * 200}</p>" for number in range(20_000)) + f"<b>{'word ' * 20_000}</b>"
    many = values_of(of_page(field("css", "p", take="all"), html=html).fields["f"])
    assert isinstance(many, list)
    assert len(many) == MAX_VALUES
    assert len(of_page(field("css", "p", take="joined"), html=html).fields["f"]) == MAX_JOINED
    assert MAX_VALUE - 10 < len(of_page(field("css", "b"), html=html).fields["f"]) <= MAX_VALUE
    assert MAX_VALUE - 10 < len(of_page(field("css", "b::text"), html=html).fields["f"]) <= MAX_VALUE


BROAD = ExtractionRules(
    (field("css", "*", take="all"), field("xpath", "//text()", "number", "all"), field("css", "p, i", take="joined")),
    (TextRule(("p",), ("i",)),),
)
LARGE = {
    "many elements": "<p>a" * 200_000,
    "nested": f"{'<div>' * 2_000}x{'</div>' * 2_000}",
    "nested too deep": "<div>" * 200_000 + "x",
    "inline, nested too deep": "<b>" * 200_000 + "x",
    "attributes": f"<p {' '.join(f'a{number}=b' for number in range(20_000))}>x",
    "one text": f"<p>{'a ' * 2_000_000}",
    "references": "&amp;" * 500_000,
    "comments": "<!-- -->" * 300_000,
    "JSON-LD": f'<script type="application/ld+json">{"[" * 400_000}</script>',
}


@pytest.mark.parametrize("name", some(LARGE, 1), ids=LARGE)
def test_large_pages_take_bounded_time_and_memory(name: str) -> None:
    tracemalloc.start()
    started = time.process_time()
    extracted(BROAD, RuledPage(LARGE[name], url=URL))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert time.process_time() - started < 600  # of seconds on any machine: what takes quadratic time takes hours
    assert peak < 400 * 2**20


@given(st.text("<>/!-&;\"'= \0\ud800abdip[]{}:,", max_size=80))
def test_no_page_raises(html: str) -> None:
    rules = ExtractionRules(tuple(rule for rule, _ in FOUND), (TextRule(("p",), ("b",)), TextRule(drop=("i",))))
    extracted(rules, RuledPage(html, url=URL, headers=HEADERS))


def test_rules_can_be_sent_to_another_process() -> None:
    rules = ExtractionRules((field("css", "a"),), (TextRule(("p",), where=("http://a.example/",)),))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(rules), type=ExtractionRules) == rules
