"""A page as Markdown: a table for each kind of block, and what another program reads from the result."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from crawlspace.content.markdown import MAX_NESTING, markdown_of
from crawlspace.content.tree import page_tree
from tests.growth import is_linear
from tests.quick import some
from tests.unit.content.test_tree import PIECES

BASE = "http://a.example/b/page.html"

MARKDOWN: dict[str, tuple[str, str]] = {
    "headings": ("<h1>A</h1><h2>B</h2><p>c<h6>D<br>E</h6>", "# A\n\n## B\n\nc\n\n###### D E"),
    "permalinks": ("<h1>A<a href='#a'>¶</a></h1><h2><a href=#b></a>B</h2><a href=#x><b><i>c</i></b></a> <a href=#y>&lt;|></a>", f"# A\n\n## B\n\n[***c***]({BASE}#x) [<|>]({BASE}#y)"),
    "an empty heading": ("<h1> </h1><h2><a id=x></a></h2>a", "a"),
    "a button in a heading": ("<h1>a<button><img src=x alt=copy></button> b</h1>", "# a ![copy](http://a.example/b/x) b"),
    "a heading in a link": ("<a href=x><h2>A</h2><p>b</p></a>", "## [A](http://a.example/b/x)\n\nb"),
    "a heading that ends with a sign": ("<h2>C#</h2><h2>a #</h2>", "## C\\#\n\n## a \\#"),
    "paragraphs": ("<p>a\n b<p>c<div>d<div>e</div></div>f", "a b\n\nc\n\nd\n\ne\n\nf"),
    "line breaks": ("a<br>b <br><br> c<br>", "a\\\nb\n\nc"),
    "a rule": ("a<hr>b", "a\n\n___\n\nb"),
    "a quote": ("<blockquote>a<p>b</blockquote>c", "> a\n>\n> b\n\nc"),
    "two quotes": ("<blockquote>a</blockquote><blockquote>b</blockquote>", "> a\n\n> b"),
    # lists
    "a list": ("<ul><li>a<li><b>b</b></ul>", "- a\n- **b**"),
    "a list in a list": ("<ul><li>a<ul><li>b<li>c</ul><li>d</ul>", "- a\n  - b\n  - c\n- d"),
    "a list of paragraphs": ("<ul><li><p>a<li><p>b<p>c</ul>", "- a\n\n- b\n\n  c"),
    "an ordered list": ("<ol start=9><li>a<li>b<li value=20>c</ol>", "9. a\n10. b\n20. c"),
    "a start that is no number": ("<ol start=x><li>a</ol>", "1. a"),
    "an ordered list in a list": ("<ul><li>a<ol><li>b</ol></ul>", "- a\n  1. b"),
    "lists side by side": ("<ul><li>a</ul><ul><li>b</ul><ol><li>c</ol>", "- a\n\n* b\n\n1. c"),
    "an empty item": ("<ol><li>a<li> <li>b</ol>", "1. a\n2. b"),
    "a definition list": ("<dl><dt>a<dd>b<dt>c<dd>d<dd>e</dl>", "- a\n\n  b\n\n- c\n\n  d\n\n  e"),
    "a code block in an item": ("<ul><li>a<pre>b\n\nc</pre></ul>", "- a\n\n  ```\n  b\n\n  c\n  ```"),
    "an item outside a list": ("<li>a", "a"),
    # tables
    "a table": ("<table><tr><th>a<th>b<tr><td>c|d<td><code>e|f</code></table>", "| a | b |\n| --- | --- |\n| c\\|d | `e\\|f` |"),
    "a table without a header": ("<table><tr><td>a<td>b<tr><td>c<td>d</table>", "|  |  |\n| --- | --- |\n| a | b |\n| c | d |"),
    "a header in thead": ("<table><thead><tr><td>a<td>b<tbody><tr><td>c<td>d</table>", "| a | b |\n| --- | --- |\n| c | d |"),
    "a cell over two columns": ("<table><tr><th colspan=2>a<tr><td>b<td>c</table>", "| a |  |\n| --- | --- |\n| b | c |"),
    "a cell over two rows": ("<table><tr><th>a<th>b<tr><td rowspan=2>c<td>d<tr><td>e</table>", "| a | b |\n| --- | --- |\n| c | d |\n|  | e |"),
    "a caption": ("<table><caption>t</caption><tr><th>a<th>b<tr><td>c<td>d</table>", "t\n\n| a | b |\n| --- | --- |\n| c | d |"),
    "blocks in a cell": ("<table><tr><th>a<th>b<tr><td><p>c<p>d<td><ul><li>e<li>f<br>g</ul></table>", "| a | b |\n| --- | --- |\n| c d | e f g |"),
    "a table of one row": ("<table><tr><td>a<td><pre>b</pre></table>", "a\n\n```\nb\n```"),
    "a table in a table": (
        "<table><tr><td>n<td><table><tr><th>a<th>b<tr><td>c<td>d</table><tr><td>x<td>y</table>",
        "n\n\n| a | b |\n| --- | --- |\n| c | d |\n\nx\n\ny",
    ),
    "a table for the layout": ("<table role=presentation><tr><td>a<td>b<tr><td>c<td>d</table>", "a\n\nb\n\nc\n\nd"),
    "an empty table": ("a<table><tr><td> <td><tr><td><td></table>", "a"),
    "numbers of lines": ("<table><tr><td class=linenos><pre>1\n2</pre><td><pre>a\nb</pre></table>", "```\na\nb\n```"),
    # code
    "code": ("<code>a_b*</code> and <code>c`d</code> and <code>`</code>", "`a_b*` and ``c`d`` and `` ` ``"),
    "code side by side": ("<tt>a</tt><tt>b</tt>", "`ab`"),
    "code in a link, a link in code": (
        "<a href=/x><code>a</code></a><code>b<a href=/y>c</a></code>",
        "[`a`](http://a.example/x)`b`[`c`](http://a.example/y)",
    ),
    "a code block": ("<pre>\n  a\n\n <b>b</b>&lt;\n</pre>", "```\n  a\n\n b<\n```"),
    "a fence in a code block": ("<pre>````</pre>", "`````\n````\n`````"),
    "a language": ("<pre><code class='x language-c++'>a</code></pre>", "```c++\na\n```"),
    "a language of Sphinx": ("<div class='highlight-python notranslate'><div class=highlight><pre>a</pre></div></div>", "```python\na\n```"),
    "no language": ("<div class='highlight-default notranslate'><div class=highlight><pre>a</pre></div></div>", "```\na\n```"),
    "code of Doxygen": ("<div class=fragment><div class=line>a</div><div class=line><span class=lineno>2</span> b</div></div>", "```\na\n b\n```"),
    # links and images
    "links": ("<a href='x y(1).html'>a [b]</a> <a href='#c'>c</a>", f"[a \\[b\\]](http://a.example/b/x%20y\\(1\\).html) [c]({BASE}#c)"),
    "links to nowhere": ("<a name=x>a</a> <a href='javascript:go()'>b</a> <a href=''>c</a> <a href=x> </a>", "a b c"),
    "a link in a link": ("<a href=x>a<div><a href=y>b</a></div></a>", "[a](http://a.example/b/x)\n\n[b](http://a.example/b/y)"),
    "an image": ("<img src=/i.png alt='a\n]b'>", "![a \\]b](http://a.example/i.png)"),
    "an image in a link": ("<a href=/x><img src=/i.png alt=''></a>", "[![](http://a.example/i.png)](http://a.example/x)"),
    "images that say nothing": ("<img src=/i.png alt=''><img>a<img src='data:x' alt=b>", "ab"),
    # emphasis
    "emphasis": ("a <b>b</b> <i>c <strong>d</strong></i> <em>e</em>f", "a **b** *c **d*** *e*f"),
    "spaces in emphasis": ("a<b> b </b>c", "a **b** c"),
    "emphasis side by side": ("<b>a</b><b>b</b><i>c</i>", "**ab**c"),
    "emphasis that Markdown cannot express": ("<b>a.</b>b c<b>(d)</b>", "a.b c(d)"),
    "emphasis of nothing": ("a<b></b><i> </i>b", "a b"),
    "emphasis of blocks": ("<b>a<p>b</p></b>", "**a**\n\nb"),
    # text
    "no Markdown": ("*a* _b_ c_d [e](f) `g` &lt;h> &amp;amp; \\*", "\\*a\\* \\_b\\_ c_d [e\\](f) \\`g\\` \\<h> \\&amp; \\\\\\*"),
    "no blocks": ("# a<p>- b<p>1. c<p>> d<p>---<p>| e<p>=<br>==", "\\# a\n\n\\- b\n\n1\\. c\n\n\\> d\n\n\\---\n\n| e\n\n\\=\\\n\\=="),
    "plain text stays plain": ("#a 1.5 -b a-b 2 &lt; 3 &amp; [c] x|y!", "#a 1.5 -b a-b 2 < 3 & [c] x|y\\!"),
    "nothing": (" <p> <script>no</script>", ""),
}  # fmt: skip


@pytest.mark.parametrize(("html", "expected"), MARKDOWN.values(), ids=MARKDOWN)
def test_markdown(html: str, expected: str) -> None:
    assert markdown(html).removesuffix("\n") == expected


TEXTS = st.text(alphabet="ab1 \\`*_[](){}<>#+-.!|~&;:='\"/^$\n", max_size=40)
READER = MarkdownIt("commonmark").enable("table")


@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_any_text_is_read_as_that_text(texts: list[str]) -> None:
    html = "".join("<p>" + text.replace("&", "&amp;").replace("<", "&lt;") + "</p>" for text in texts)
    tokens = READER.parse(markdown(html))
    assert {token.type for token in tokens} <= {"paragraph_open", "inline", "paragraph_close"}
    read = [" ".join(seen(token.children) for token in tokens[at : at + 1]) for at in range(1, len(tokens), 3)]
    assert read == [" ".join(text.split()) for text in texts if text.split()]


@given(TEXTS, TEXTS, TEXTS)
def test_any_text_is_read_in_links_cells_headings_and_code(first: str, second: str, third: str) -> None:
    a, b, c = (text.replace("&", "&amp;").replace("<", "&lt;") for text in (first, second, third))
    html = (
        f"<h2>x{a}x</h2><p><a href=/x>x{b}x</a><ul><li>x{c}x</ul><table><tr><th>x{a}x<th><code>x{b}x</code><tr><td><a href=/y>x{c}x</a>"
        f"<td>x{a}x</table><pre>x{c}x</pre>"
    )
    tokens = READER.parse(markdown(html))
    texts = [seen(token.children) for token in tokens if token.type == "inline"]
    one, two, three = (" ".join(f"x{text}x".split()) for text in (first, second, third))
    assert texts == [one, two, three, one, two, three, one]
    assert [token.content for token in tokens if token.type == "fence"] == [f"x{third}x\n"]
    links = [child.attrs["href"] for token in tokens for child in token.children or () if child.type == "link_open"]
    assert links == ["http://a.example/x", "http://a.example/y"]


def test_lists_and_quotes_are_indented_no_further_than_the_limit() -> None:
    lines = markdown("<ul><li>x" * 80 + "<pre>" + "y\n" * 10_000 + "</pre>").splitlines()
    assert max(map(len, lines)) <= 2 * MAX_NESTING + 3
    assert lines.count(" " * 2 * MAX_NESTING + "y") == 10_000


WIDE = "<table><tr><th>a<th>b<tr>" + "<td rowspan=1000 colspan=100>x" * 1_000 + "<tr><td>y" * 1_000 + "</table>"


def test_cells_that_span_much_take_bounded_space() -> None:
    assert len(markdown(WIDE)) < 10 * 100 * 1_000 + 1_000 * MAX_COLUMNS_WRITTEN


MAX_COLUMNS_WRITTEN = 5 * 1_300


@pytest.mark.parametrize(
    "piece",
    some(
        [
            "<h2>x</h2>",
            "<ul><li>x",
            "<li>x",
            "<blockquote>x",
            "<table><tr><td>x<td>y<tr><td>z</table>",
            "<table><tr><td>",
            "<a href=x>",
            "<b>x</b>",
            "<i>x<b>y</i>",
            "<code>`",
            "<pre>x",
            "<br>x",
            "<dl><dt>x",
            "<img src=x>",
            "*_[",
            "\\",
        ],
        1,
    ),
)
def test_a_megabyte_of_one_piece_takes_no_more_than_its_length(piece: str) -> None:
    pages = {size: page_tree(piece * (size // len(piece))).find("body") for size in (100_000, 400_000)}
    assert is_linear(lambda size: markdown_of([pages[size]], BASE), 100_000)


BLOCKS = st.sampled_from(
    "<h2> </h2> <pre> </pre> <code> </code> <i> </i> <a%href=/x> <dl> <dt> <dd> </dl> <ol> </ol> <blockquote> </blockquote> <th> <tr>"
    " <table> </table> <td%rowspan=3> <td%colspan=2> <hr> <img%src=x> x * # | ` - 1. \n".replace("%", "\t").split(" ")
)


@given(st.lists(PIECES | BLOCKS, max_size=60), st.booleans())
def test_any_markup_is_written(pieces: list[str], xhtml: bool) -> None:
    READER.parse(markdown_of([page_tree("".join(pieces), xhtml=xhtml).find("body")], BASE))


@given(st.text(max_size=200))
def test_any_text_is_written(html: str) -> None:
    markdown(html)


def markdown(html: str) -> str:
    return markdown_of([page_tree(html).find("body")], BASE)


def seen(tokens: list | None) -> str:  # type: ignore[type-arg]
    """Return the text that a reader sees of inline tokens."""
    assert all(
        token.type in ("text", "text_special", "code_inline", "softbreak", "link_open", "link_close") for token in tokens or ()
    )
    return " ".join("".join(token.content or " " * (token.type == "softbreak") for token in tokens or ()).split())
