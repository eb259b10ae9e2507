"""`scrapy extract`: what the rules of extract.toml take from archived pages and from files, rule by rule."""

from __future__ import annotations

import json

from tests.conftest import MakeProject
from tests.integration.stored import ARCHIVED, collection
from tests.sites import Site, html, page, serve, text

ITEM = """<html><head><title>A pump</title><meta name="author" content="Ann"></head><body><nav>Home Shop</nav>
<p class="price">call us</p><p class="price">1.234,50 €</p><p class="old">20</p><div id="more">Two words</div></body></html>"""

RULES = """
[[field]]
name = "price"
where = "{url}item"
css = ".none"
type = "number"

[[field]]
name = "price"
css = ".price"
take = "all"
type = "number"

[[field]]
name = "price"
css = ".old"
type = "number"

[[field]]
name = "team"
header = "X-Team"

[[field]]
name = "elsewhere"
where = "http://shop.example.com/"
css = "p"

[[text]]
drop = ["nav"]
"""

EXPECTED = """{url}item

field 1 (price)  extract.toml:2
  css = '.none', take first, type number
  finds nothing

field 2 (price)  extract.toml:8
  css = '.price', take all, type number
  finds 2 values
  takes 1234.5
  1 value left out, not of type number: call us
  decides this field

field 3 (price)  extract.toml:14
  css = '.old', take first, type number
  finds 1 value, but a rule before it decides this field
  takes 20

field 4 (team)  extract.toml:19
  header = 'X-Team', take first, type text
  finds 1 value
  takes sales
  decides this field

field 5 (elsewhere)  extract.toml:23
  css = 'p', take first, type text
  does not apply to this URL: where is http://shop.example.com/*

text 1  extract.toml:28
  leaves 7 words, and decides the text

fields by these rules
  price: 1234.5
  team: sales

fields of the page itself
  author: Ann

text         9 words of the page, 7 by these rules
"""


def test_what_is_taken_from_a_page_is_shown_rule_by_rule(project: MakeProject) -> None:
    item = html(ITEM, headers={"X-Team": "sales"})
    with serve(Site({"/": page("Home", links=["/item", "/plain"]), "/item": item, "/plain": text("no page")})) as server:
        url = server.url("/")
        demo = project({**collection(url, settings=ARCHIVED), "demo/extract.toml": RULES.replace("{url}", url)})
        assert "is not known: crawl it" in demo.scrapy("extract", "demo", f"{url}item").stderr
        demo.crawl("demo").succeeded()
    assert demo.scrapy("extract", "demo", f"{url}item").succeeded().stdout == EXPECTED.replace("{url}", url)
    answer = json.loads(demo.scrapy("extract", "demo", f"{url}item", "--json").succeeded().stdout)
    assert answer["document"] == {"price": ["1234.5"], "team": "sales"}
    assert [(rule["line"], rule["applies"], rule["decides"]) for rule in answer["fields"]] == [
        (2, True, False),
        (8, True, True),
        (14, True, False),
        (19, True, True),
        (23, False, False),
    ]
    assert answer["words"] == {"before": 9, "after": 7}
    plain = demo.scrapy("extract", "demo", f"{url}plain")
    assert (plain.returncode, "has no HTML page in the archive on this machine: crawl it" in plain.stderr) == (1, True)


def test_a_page_in_a_file_needs_no_crawl(project: MakeProject) -> None:
    demo = project(collection("http://shop.example.com/"))
    file = demo.folder / "page.html"
    file.write_text(ITEM, encoding="utf-8")
    arguments = ("extract", "demo", "http://shop.example.com/item", "--file", str(file))
    shown = demo.scrapy(*arguments).succeeded().stdout
    assert "there are no rules" in shown
    assert "author: Ann" in shown
    demo.write({"demo/extract.toml": '[[field]]\nname = "pump"\nurl = "/(item)"\n[[part]]\ncss = "p"\nkey = "@id"\n'})
    shown = demo.scrapy(*arguments).succeeded().stdout
    assert "pump: item" in shown
    assert "part 1  extract.toml:4\n  css = 'p', key = '@id'\n  finds " in shown
    assert not list(demo.data.iterdir())


# arguments -> exit status, a part of the sentence
WRONG = [
    (("extract", "demo"), 2, "name a collection and a URL"),
    (("extract", "demo", "nonsense"), 2, "is not a valid URL"),
    (("extract", "demo", "http://a.example/"), 1, "or give its page with --file PATH"),
    (("extract", "demo", "http://a.example/", "--file", "/no/such"), 1, "/no/such cannot be read"),
    (("extract", "none", "http://a.example/"), 2, "no collection 'none'"),
]


def test_wrong_use_ends_with_a_sentence(project: MakeProject) -> None:
    demo = project(collection("http://shop.example.com/"))
    for arguments, exit_status, sentence in WRONG:
        ended = demo.scrapy(*arguments)
        assert (ended.returncode, sentence in ended.stderr) == (exit_status, True), ended.stderr
        assert "Traceback" not in ended.stderr


def test_mistakes_of_the_file_keep_all_commands_from_going_on(project: MakeProject) -> None:
    wrong = '[[field]]\nname = "price"\ncss = "span >"\ntake = "frist"\n'
    demo = project({**collection("http://127.0.0.1:9/"), "demo/extract.toml": wrong})
    for arguments in (("crawl", "demo"), ("extract", "demo", "http://a.example/")):
        ended = demo.scrapy(*arguments)
        assert ended.returncode == 1
        assert "extract.toml:3:7: field 1 (price): css is 'span >': Expected selector" in ended.stderr
        assert "extract.toml:4:8: field 1 (price): take is 'frist': did you mean 'first'?" in ended.stderr
        assert "Traceback" not in ended.stderr
    found = demo.scrapy("lint", "demo")
    assert found.returncode == 1
    assert "extract.toml:3:7: error: field 1 (price)" in found.stdout
