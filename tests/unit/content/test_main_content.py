"""The main content of a page: which of its elements are taken, and what is left out of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content import main_content
from crawlspace.content.main_content import main_elements, text_of
from crawlspace.content.tree import page_tree
from tests.growth import is_linear
from tests.quick import some
from tests.unit.content.test_tree import PIECES

DOXYGEN_TITLE = "<div class=headertitle><div class=title>a</div></div>"
NAV = "<nav><a href=/>Home</a> <a href=/all>All</a></nav>"
MAIN: dict[str, tuple[str, str]] = {
    # html; "x" words are left out
    "main": ("x<main>a b</main>x", "a b"),
    "role main": ("x<div role=main>a b</div>x", "a b"),
    "main with navigation in it": ("<main><nav>x</nav>a <div role=search>x</div>b <footer>x</footer></main>x", "a b"),
    "main with a list of its own parts": (
        "<main><h1>a</h1><ul><li><a href=#a>x</a><li><a href=#b>x</a><li><a href=#c>x</a></ul>b</main>",
        "a b",
    ),
    "the title of that list": (
        "<main>a<p>Contents:</p><ul><li><a href=#a>x</a><li><a href=#b>x</a><li><a href=#c>x</a></ul>b</main>",
        "a b",
    ),
    "main with a list of other pages": ("<main>a <ul><li><a href=1>b</a><li><a href=2>c</a><li><a href=3>d</a></ul></main>x", "a b c d"),
    "a list of footnotes": (
        "<main>a <ol><li>b c d <a href=#a>e</a><li>f g <a href=#b>h</a><li>i j k <a href=#c>l</a></ol></main>",
        "a b c d e f g h i j k l",
    ),
    "an aside in main is content": ("<main>a <aside class=note>b</aside></main>", "a b"),
    "a header in main has the title": ("<header>x</header><main><header><h1>a</h1></header>b</main>", "a b"),
    "two mains": ("<main>a</main>x<main hidden>b</main>", "a b"),
    "an empty main": ("<main></main><p>a b c", "a b c"),
    "a main with next to nothing": ("<main>a</main>" + "<p>b</p>" * 20, "a" + " b" * 20),
    "an article": ("x<article>a b c</article>x", "a b c"),
    "several articles": ("<h1>x</h1><article>a b</article><article>c d</article>", "a b c d"),
    "an article in an article": ("<article>a b <article>c</article></article>x", "a b c"),
    "teasers beside the content": ("<div>a b c d e f g h i</div><article>j</article>", "a b c d e f g h i j"),
    "articles of an aside": ("<p>a b c</p><aside><article>x x x x x x</article></aside>", "a b c"),
    "neither": (f"<header>x</header>{NAV}<p>a b</p><aside>x</aside><footer>x</footer>", "a b"),
    "roles": ("<div role=banner>x</div><p>a b<div role=contentinfo>x</div><div role=complementary>x</div>", "a b"),
    "the only title in the header": ("<header><h1>a</h1></header><p>b</p><footer>x</footer>", "a b"),
    "a cookie box": ("<p>a b<div class='cookie-banner show'>x <button>x</button></div><div id=onetrust-consent-sdk>x</div>", "a b"),
    "a text about cookies": ("<main><section id=cookie-consent><h1>a</h1>b</section></main>", "a b"),
    "signs of permalinks": ("<main><h1>a<a href=#a>¶</a></h1><a class=skip href=#m>x x</a>b</main>", "a b"),
    "nothing but navigation": (NAV, "Home All"),
    "an empty page": ("", ""),
    # generators
    "Sphinx": ("<div class=related>x</div><div class=document><div class=body>a b</div></div><div class=sphinxsidebar>x</div>", "a b"),
    "Doxygen": (
        f"<div id=top>x</div><div class=header><div class=summary>x</div>{DOXYGEN_TITLE}</div><div class=contents>b c</div>",
        "a b c",
    ),
    "DocBook": ("<div class=navheader>x</div><div class=sect1><div class=titlepage><h2>a</h2></div>b</div><div class=navfooter>x</div>", "a b"),
    "AsciiDoc": ("<div id=header><h1>a</h1></div><div id=content>b c</div><div id=footer>x</div>", "a b c"),
    "GTK-Doc": ("<table class=navigation><tr><td>x</table><div class=refentry>a b</div><div class=footer>x</div>", "a b"),
    "Texinfo": ("<div class=section><div class=nav-panel>x</div><h2>a</h2>b</div>", "a b"),
    "Pod2HTML": ("<ul id=index><li><a href=#a>x</a><li><a href=#b>x</a><li><a href=#c>x</a></ul><h1 id=a>a</h1>b", "a b"),
    "Haddock": ("<div id=package-header>x</div><div id=content><div class=top>a b</div><div class=top>c</div></div>", "a b c"),
    "a menu with the name of content": (
        "<div class=contents><a href=1>b</a> <a href=2>c</a> <a href=3>d</a></div><p>a e f g",
        "b c d a e f g",
    ),
    "LaTeX2HTML": ("<div class=navigation>x</div><h1>a</h1>b<div class=navigation>x</div>", "a b"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _without_trafilatura(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_content, "has_trafilatura", lambda: False)


@pytest.mark.parametrize(("html", "text"), MAIN.values(), ids=MAIN)
def test_main_content(html: str, text: str) -> None:
    assert main_text(html) == text


TEXT = (
    ("th<b>re</b>e <i>w</i>ords h<wbr>ere", "three words here"),
    ("<td>a</td><td>b</td>c<br>d", "a b c d"),
    ("<my-card>a</my-card><my-card>b</my-card>", "a b"),
)


@pytest.mark.parametrize(("html", "text"), TEXT)
def test_text_breaks_words_where_a_browser_does(html: str, text: str) -> None:
    assert text_of([page_tree(html).find("body")]) == text


def test_a_page_without_elements_for_its_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_content, "has_trafilatura", lambda: True)
    links = "".join(f"<a href={number}>Link {number}</a> | " for number in range(20))
    paragraphs = "".join(
        f"<p>The report number {number} says, at some length, what has been found in this year, and why.</p>"
        for number in range(20)
    )
    found = main_text(f"<div><div>{links}</div><div><h1>Report</h1>{paragraphs}</div></div>")
    assert found.startswith("Report The report number 0 says")


def test_a_page_with_navigation_has_further_menus(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are left out where trafilatura finds the content, and next to nothing but links is beside it."""
    monkeypatch.setattr(main_content, "has_trafilatura", lambda: True)
    paragraphs = "".join(
        f"<p>The report number {n} says, at some length, what was found this year, and why.</p>" for n in range(20)
    )
    popular = "".join(f"<li><a href={n}>Popular text number {n}</a>" for n in range(30))
    page = "<nav>Menu</nav><div><h1>Report</h1><div class=story>{}</div></div><div class=popular><ul>{}</ul></div>"
    found = main_text(page.format(paragraphs, popular))
    assert found.startswith("Report The report number 0 says")
    assert found.endswith("and why.")
    beside = "".join(f"<p>A table of results, with the number {n} and more of it.</p>" for n in range(30))
    assert main_text(page.format(paragraphs, beside)).endswith("more of it."), "what is no list of links stays"


@pytest.mark.parametrize(
    "piece",
    some(
        [
            "<div>x",
            "<ul><li><a href=#>x</a>",
            "<main>",
            "<article>x",
            "<nav>x</nav>",
            "<a href=#>¶</a>",
            "<p class=toc>x",
            "<div class=content>x",
        ],
        3,
    ),
)
def test_a_megabyte_of_one_piece_takes_no_more_than_its_length(piece: str) -> None:
    assert is_linear(lambda size: main_elements(page_tree(piece * (size // len(piece)))), 50_000)


ELEMENTS = st.sampled_from(
    "<main> </main> <article> </article> <nav> </nav> <header> </header> <footer> <aside> <div%class=contents> <div%role=banner>"
    " <ul><li><a%href=#>x</a><a%href=#>x</a><a%href=#>x</a></ul> <a%href=#>¶</a> x".replace("%", "\t").split(" ")
)


@given(st.lists(PIECES | ELEMENTS, max_size=40))
def test_any_page_has_main_content_if_it_has_text(pieces: list[str]) -> None:
    html = "".join(pieces)
    whole = text_of([page_tree(html).find("body")]).split()
    assert len(main_text(html).split()) >= 0.05 * len(whole)


def main_text(html: str) -> str:
    return text_of(main_elements(page_tree(html)))
