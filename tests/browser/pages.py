"""Sites whose pages are made by scripts, and where those may lead."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tests.sites import Answer, Site, binary, html, page, text

APP = """
const data = await (await fetch('/data' + location.pathname + '.json')).json();
document.title = data.title;
document.getElementById('app').innerHTML =
  `<h1>${data.title}</h1><p>${data.text}</p>` + data.links.map((link) => `<a href="${link}">${link}</a>`).join(' ');
"""
PLAIN_TEXT = "This page has all of its words in the HTML itself, and it needs no script at all to be read by anybody. " * 3


def script(code: str, *, headers: dict[str, str] | None = None) -> Answer:
    return binary(code.encode(), "text/javascript", headers=headers)


def data(found: object) -> Answer:
    return binary(json.dumps(found).encode(), "application/json")


def scripted(code: str, *, body: str = "", head: str = "") -> Answer:
    """A page with next to no text, and a script in it."""
    return html(f"<!doctype html><html><head>{head}</head><body>{body}<div id=app></div><script>{code}</script></body></html>")


SHELL = html(
    '<!doctype html><html><head><script type="module" src="/app.js"></script></head><body><div id="app"></div></body></html>'
)


def words_of(path: str) -> str:
    return f"the words of {path} were brought by a script"


def app(pages: int, *, every: int = 1) -> Site:
    """A site of which each `every`-th page is made by a script; each page leads to five others."""
    site = Site({"/robots.txt": text(""), "/app.js": script(APP)})
    for number in range(pages):
        path = "/" if not number else f"/p/{number}"
        links = [f"/p/{other}" for other in range(5 * number + 1, 5 * number + 6) if other < pages]
        if number % every == every - 1:
            site[path] = SHELL
            site[f"/data{path}.json"] = data({"title": f"Page {number}", "text": words_of(path), "links": links})
        else:
            site[path] = page(f"Page {number}", text=f"{words_of(path)}. {PLAIN_TEXT}", links=links)
    return site


def paths(pages: int) -> Sequence[str]:
    return ["/", *(f"/p/{number}" for number in range(1, pages))]
