"""Documents of crawled and of archived pages have what extract.toml takes from them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.stored import ARCHIVED, collection, shared
from tests.sites import Answer, Site, html, page, serve, text

SHOP = "<title>{title}</title><nav>Menu</nav><h1>{title}</h1><p class=price>{price}</p><div id=content>All about it</div><a href=/wiki>w</a>"


def shop(title: str, price: str, **headers: str) -> Answer:
    return html(SHOP.format(title=title, price=price), headers=headers)


SITE = {
    "/": page("Home", links=["/shop/a", "/shop/b", "/shop/c", "/plain.txt"]),
    "/shop/a": shop("A", "1.234,50 €", **{"X-Team": "Pumps"}),
    "/shop/b": shop("B", "call us"),
    "/shop/c": shop("C", "20"),
    "/plain.txt": text("price: 7"),
    "/wiki": page("Wiki", text="a wiki"),
}
RULES = """
[[field]]
name = "price"
where = "{url}shop/*"
css = ".price::text"
type = "number"
[[field]]
name = "team"
header = "x-team"
[[text]]
where = "{url}shop/"
only = ["#content"]
"""


TEXTS = (("a", "8 words"), ("b", "8 words"), ("c", "7 words"))


def documents(demo: Project) -> dict[str, dict[str, Any]]:
    lines = demo.scrapy("export", "demo", "-O", "-:jsonl").succeeded().stdout.splitlines()
    return {(one := json.loads(line))["title"]: {**one["fields"], "text": one["text"]} for line in lines}


@pytest.mark.parametrize("is_shared", [False, True])
def test_documents_have_what_the_rules_take_and_a_change_needs_no_request(project: MakeProject, *, is_shared: bool) -> None:
    with serve(Site(SITE)) as server:
        url = server.url("/")
        demo = project(collection(url, settings=ARCHIVED) | {"demo/extract.toml": RULES.format(url=url)})
        if is_shared:
            shared(demo)
        crawled = demo.crawl("demo").succeeded()
        found = documents(demo)
        assert found.pop("Home").keys() == found.pop("Wiki").keys() == {"text"}
        assert found == {
            "A": {"price": "1234.5", "team": "Pumps", "text": "All about it"},
            "B": {"text": "All about it"},
            "C": {"price": "20", "text": "All about it"},
            "plain.txt": {"text": "price: 7"},
        }
        warning = "shop/b: 1 value for the field price is not of the type that extract.toml gives it, and left out"
        assert crawled.stderr.count(warning) == 1
        assert "values left out" in demo.scrapy("status", "demo").succeeded().stdout
        asked = len(server.paths())
        file = demo.collections / "demo" / "extract.toml"

        def change(path: str, before: str, after: str) -> dict[str, str]:
            return {"url": url + path, "before": before, "after": after}

        file.write_text(f'[[field]]\nname = "cost"\nwhere = "{url}shop/"\ncss = ".price"\n', encoding="utf-8")
        planned = json.loads(demo.scrapy("plan", "demo", "--json").succeeded().stdout)["extraction"]
        assert planned == {
            "documents": 6,
            "checked": 5,
            "changed": 3,
            "fields": {
                "cost": {
                    "changed": 3,
                    "examples": [change("shop/a", "", "1.234,50 €"), change("shop/b", "", "call us"), change("shop/c", "", "20")],
                },
                "price": {"changed": 2, "examples": [change("shop/a", "1234.5", ""), change("shop/c", "20", "")]},
                "team": {"changed": 1, "examples": [change("shop/a", "Pumps", "")]},
                "text": {"changed": 3, "examples": [change(f"shop/{name}", "3 words", words) for name, words in TEXTS]},
            },
        }
        shown = demo.scrapy("plan", "demo").succeeded().stdout
        assert "of 5 documents whose pages were read from the archive, of 6 in the index, 3 would be" in " ".join(shown.split())
        assert f"  team: 1 document\n    Pumps -> nothing  {url}shop/a\n" in shown
        demo.scrapy("reindex", "demo", "--extract", "--processes", "1").succeeded()
        assert json.loads(demo.scrapy("plan", "demo", "--json").succeeded().stdout)["extraction"]["changed"] == 0
        assert len(server.paths()) == asked
        demo.crawl("demo").succeeded()
        assert json.loads(demo.scrapy("plan", "demo", "--json").succeeded().stdout)["extraction"] is None
    found = documents(demo)
    assert found["A"] == {"cost": "1.234,50 €", "text": "Menu A 1.234,50 € All about it w"}
    assert found["B"]["cost"] == "call us"


def test_a_page_on_which_the_rules_fail_is_indexed_without_them(project: MakeProject) -> None:
    """libxml2 takes minutes for a tag with very many attributes."""
    slow = "<p " + " ".join(f"a{n}=1" for n in range(400_000)) + ">slow</p>"
    with serve(Site({"/": page("Home", links=["/slow", "/next"]), "/slow": html(slow), "/next": page("Next")})) as server:
        own = ARCHIVED + "CRAWLSPACE_FILE_TIMEOUT = 1\n"
        demo = project(
            collection(server.url("/"), settings=own) | {"demo/extract.toml": '[[field]]\nname = "a"\ncss = "title"\n'}
        )
        crawled = demo.crawl("demo").succeeded()
    assert (
        "slow: what extract.toml and the settings take from a page could not be read (timed out after 1 s), and the document is without it"
        in crawled.stderr
    )
    assert documents(demo)["Next"]["a"] == "Next"
    assert {one.get("a") for one in documents(demo).values()} == {"Home", "Next", None}


NAVIGATION = "<nav>Menu one two three</nav>"
NEWS = f"<title>News</title>{NAVIGATION}<main><h1>News</h1><p>The canteen is closed.</p><aside>More</aside></main><footer>Imprint</footer>"


def test_the_text_is_the_main_content_where_that_is_wanted(project: MakeProject) -> None:
    site = {
        "/": html(f"<title>Home</title>{NAVIGATION}<p>Welcome to the intranet of the company</p><a href=/news>news</a>"),
        "/news": html(NEWS),
    }
    with serve(Site(site)) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED + "CRAWLSPACE_MAIN_CONTENT = 'main'\n"))
        demo.crawl("demo").succeeded()
        assert {title: one["text"] for title, one in documents(demo).items()} == {
            "Home": "Welcome to the intranet of the company news",
            "News": "News The canteen is closed. More",
        }
        (demo.collections / "demo" / "settings.py").write_text(ARCHIVED, encoding="utf-8")
        demo.scrapy("reindex", "demo", "--extract", "--processes", "1").succeeded()
    assert documents(demo)["News"]["text"] == "Menu one two three News The canteen is closed. More Imprint"


def test_what_most_pages_of_a_site_have_is_left_out_once_it_is_learned(project: MakeProject) -> None:
    paths = [f"/{n}" for n in range(8)]
    menu = "<div>Our menu</div><p>Own text of {}</p><div><b>The imprint</b></div>"
    links = "".join(f"<a href={path}> </a>" for path in paths)
    site = Site(
        {path: html(f"<title>{path}</title>{menu.format(path)}") for path in paths} | {"/": html(f"<title>/</title>Start{links}")}
    )
    with serve(site) as server:
        own = ARCHIVED + "CRAWLSPACE_BOILERPLATE = 'site'\nCRAWLSPACE_MARKDOWN = True\n"
        demo = project(collection(server.url("/"), settings=own))
        demo.crawl("demo").succeeded()
        assert documents(demo)["/1"]["text"] == "Our menu Own text of /1 The imprint", "nothing is learned yet"
        demo.scrapy("reindex", "demo", "--extract", "--processes", "1").succeeded()
        found = {title: one["text"] for title, one in documents(demo).items()}
        assert found == {path: f"Own text of {path}" for path in paths} | {"/": "Start"}
        shown = demo.scrapy("extract", "demo", server.url("/1"), "--blocks").succeeded().stdout
        assert "of 9 pages of the site have each\n      8  Our menu\n      8  The imprint\n" in shown
        site["/new"] = html(f"<title>/new</title>{menu.format('/new')}")
        site["/"] = html(f"<title>/</title>Start{links}<a href=/new>new</a>")
        demo.scrapy("recrawl", "demo", server.url("/")).succeeded()
        demo.crawl("demo").succeeded()
        assert documents(demo)["/new"]["text"] == "Own text of /new", "and of pages that come later"
        exported = demo.scrapy("export", "demo", "-O", "-:jsonl").succeeded().stdout
        assert "imprint" not in exported
        demo.write({"demo/settings.py": ARCHIVED})
        demo.scrapy("reindex", "demo", "--extract", "--processes", "1").succeeded()
        assert documents(demo)["/1"]["text"] == "Our menu Own text of /1 The imprint"
