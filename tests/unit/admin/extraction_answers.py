"""Answers of `scrapy extract`, as tests of the docs and of the command compare them."""

from __future__ import annotations

from crawlspace.admin.extraction_preview import preview
from crawlspace.config.content import read_content
from crawlspace.config.extraction import parse_extraction_rules
from crawlspace.content.boilerplate import SiteBlocks, blocks_in
from crawlspace.content.html import extract
from crawlspace.content.tree import page_tree

URL = "http://shop.example.com/pump"
RULES = """
[[field]]
name = "price"
css = "b"
[[text]]
only = "b"
[[part]]
css = "b"
key = "@id"
"""


def extract_json() -> dict[str, object]:
    """The answer for a page with a rule of each kind."""
    html = "<meta name=author content='Ann Lee'><b>1</b> two<p>Imprint"
    learned = SiteBlocks(9, {block.number: 8 for block in blocks_in(page_tree(html)) if block.text == "Imprint"})
    rules = parse_extraction_rules(RULES, file="extract.toml")
    return preview(
        rules, html, extract(html.encode(), url=URL), url=URL, content=read_content({}, robots_obey=True), learned=learned
    ).as_json()
