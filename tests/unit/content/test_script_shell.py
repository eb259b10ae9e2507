"""Which pages are reported because they may need a browser."""

from __future__ import annotations

import pytest

from crawlspace.content.html import extract

SHELL = '<div id="root"></div><script src="/app.js"></script>'
ANALYTICS = "<script>track()</script>"
SENTENCE = "<p>The canteen is closed on Friday, 4 July.</p>"

PAGES: list[tuple[str, str, bool]] = [
    ("an empty element and a script", SHELL, True),
    ("with a title, a style and a canonical URL", f'<title>Shop</title><style>p{{}}</style><link rel=canonical href=/>{SHELL}', True),
    ("with a word while it loads", f"<p>Loading, please wait …</p>{SHELL}", True),
    ("it asks to enable scripts", f"<noscript>You need to enable JavaScript to run this app, please do so.</noscript>{SHELL}", True),
    ("with a link for those without scripts", f"<noscript><a href=/help>?</a></noscript>{SHELL}", True),
    ("with the frame of a tag manager", f"<noscript><iframe src=https://tags.example/></iframe></noscript>{SHELL}", True),
    ("a script in capitals, and a comment in it", "<div></div><SCRIPT><!-- go() --></SCRIPT>", True),
    ("a script that does not end", "<div></div><script>go()", True),
    ("a page that is no plain markup", f"<div>1 < 2</div>{SHELL}", True),
    ("an empty page", "", False),
    ("a short page without scripts", "<p>It works!</p>", False),
    ("a style is no script", "<style>p{}</style><p>It works!</p>", False),
    ("a short text and a script that counts visits", f"{SENTENCE}{ANALYTICS}", False),
    ("links to routes of its own program", f"<a href='#/a'>A</a><a href='#!b'>B</a><a href='#/c&amp;d'>C</a>{ANALYTICS}", True),
    ("a list of links and a script", f"<a href=a>A</a><a href=b>B</a>{ANALYTICS}", False),
    ("a form to log in", f"<form><input name=user></form>{ANALYTICS}", False),
    ("a frame set", "<script>go()</script><frameset><frame src=menu.html></frameset>", False),
    ("it leads elsewhere by itself", f'<meta http-equiv=refresh content="0; url=/new">{ANALYTICS}', False),
    ("a script in a comment", "<p>It works!</p><!-- <script></script> -->", False),
]  # fmt: skip


@pytest.mark.parametrize(("what", "html", "expected"), PAGES, ids=[row[0] for row in PAGES])
def test_which_pages_may_need_a_browser(what: str, html: str, expected: bool) -> None:
    page = extract(f"<html><body>{html}</body></html>".encode(), url="http://www.example.com/", charset="utf-8")
    assert page.may_need_browser is expected
