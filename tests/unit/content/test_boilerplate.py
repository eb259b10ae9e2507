"""Blocks on most pages of a site: learned, and left out of pages."""

from __future__ import annotations

import pytest

from crawlspace.content.boilerplate import FEWEST_PAGES, MAX_BLOCKS, BlockCounter, Blocks, blocks_in, leave_out
from crawlspace.content.main_content import text_of
from crawlspace.content.markdown import markdown_of
from crawlspace.content.tree import page_tree
from tests.growth import is_linear

MENU = "<nav><ul><li><a href=/>Home</a><ul><li><a href=/a>About us</a></ul></ul></nav>"
FOOTER = "<div class=footer>Imprint <b>2026</b> <img src=logo.png alt=Logo><p>Contact</div>"


def learned(pages: list[str]) -> Blocks:
    counter = BlockCounter()
    for html in pages:
        counter.add(page_tree(html))
    return counter.learned().blocks


def left(html: str, blocks: Blocks) -> str:
    root = page_tree(html)
    leave_out(root, blocks)
    return text_of([root.find("body")])


# HTML -> the texts of its blocks
BLOCKS: tuple[tuple[str, list[str]], ...] = (
    ("a<p>b <b>c</b> d<p>e", ["a", "b c d", "e"]),
    (MENU, ["Home", "About us"]),
    ("<div>a<p>b</p>c</div>d", ["a", "b", "c", "d"]),
    ("<table><tr><td>a<td><i>b</i><br>c</table>", ["a", "b c"]),
    ("<p> <p><img alt=x>", []),
    (FOOTER, ["Imprint 2026", "Contact"]),
)


@pytest.mark.parametrize(("html", "expected"), BLOCKS)
def test_blocks_are_texts_between_borders_of_elements(html: str, expected: list[str]) -> None:
    assert [block.text for block in blocks_in(page_tree(html))] == expected


def test_what_most_pages_have_is_left_out_and_nothing_else() -> None:
    pages = [f"{MENU}<h1>Page {n}</h1><p>Own text {n}.<p>{'Often' if n < 5 else 'Seldom'}{FOOTER}" for n in range(10)]
    blocks = learned(pages)
    assert [left(page, blocks) for page in pages[4:6]] == ["Page 4 Own text 4. Often", "Page 5 Own text 5. Seldom"]
    pages.append(pages[0])
    blocks = learned(pages)
    assert left(pages[0], blocks) == "Page 0 Own text 0.", "it stands on six of eleven pages"
    assert left(f"<p>{MENU}<p>Own text 1.</p><p>Contact</p>", blocks) == "Own text 1. Contact", "at another place"
    root = page_tree(pages[1])
    leave_out(root, blocks)
    assert markdown_of([root], "http://a.example/") == "# Page 1\n\nOwn text 1.\n", "images go with their block"


def test_a_block_counts_once_a_page() -> None:
    assert learned([f"<p>{n}<p>twice<p>twice<p>{n}a" for n in range(3)] + [f"<p>{n}" for n in range(3, 9)]) == {}


@pytest.mark.parametrize(("pages", "number"), [(FEWEST_PAGES - 1, 0), (FEWEST_PAGES, 2)])
def test_few_pages_show_nothing(pages: int, number: int) -> None:
    assert len(learned([f"{MENU}<p>{n}" for n in range(pages)])) == number


def test_a_page_is_never_emptied() -> None:
    blocks = learned([f"{MENU}<p>{n}" for n in range(9)])
    assert left(MENU, blocks) == "Home About us"
    assert left(f"{MENU}<p>x", blocks) == "x"


def test_a_limited_number_of_blocks_is_known() -> None:
    page = "".join(f"<p>{n}" for n in range(3 * MAX_BLOCKS))
    assert len(learned([page] * 9)) == MAX_BLOCKS


@pytest.mark.parametrize("piece", ["<p>a", "<div>", "a ", "<b>a</b>", "<li>a<ul>"])
def test_the_time_is_proportional_to_the_page(piece: str) -> None:
    assert is_linear(lambda number: list(blocks_in(page_tree(piece * number))), 3_000)


def test_a_long_name_of_an_element_takes_no_more_than_its_length() -> None:
    assert is_linear(lambda number: list(blocks_in(page_tree(f"<{'x' * 4 * number}>" + "<p>a" * number))), 3_000)
