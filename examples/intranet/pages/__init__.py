"""The pages of the intranet, a module a site; this one holds what they are written with."""

from __future__ import annotations

from dataclasses import dataclass

Headers = tuple[tuple[str, str], ...]

HTML: Headers = (("Content-Type", "text/html; charset=utf-8"),)
HTML_WITHOUT_CHARSET: Headers = (("Content-Type", "text/html"),)

_NAVIGATION = """<nav><a href="http://127.0.0.1:8941/">Home</a> <a href="http://127.0.0.1:8941/handbook/">Handbook</a>
<a href="http://127.0.0.1:8941/people/">People</a> <a href="http://127.0.0.1:8941/news/">News</a>
<a href="http://127.0.0.2:8942/">Products</a> <a href="http://localhost:8943/">Support</a></nav>"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server says to one path. `text` is encoded when it is sent, after the ports have been put in."""

    text: str = ""
    status: int = 200
    headers: Headers = HTML
    charset: str = "utf-8"
    raw: bytes | None = None
    """Sent instead of the text."""
    times: int | None = None
    """Given for the first so many requests only; then `afterwards`."""
    afterwards: Answer | None = None
    reset: bool = False
    """The connection is reset instead of an answer."""


def page(
    title: str,
    body: str,
    *,
    lang: str = "en",
    head: str = "",
    charset: str = "utf-8",
    headers: Headers = HTML,
) -> Answer:
    """Return an ordinary page of the intranet; one in another charset declares it in a meta element only."""
    if charset != "utf-8":
        head = f'<meta charset="{charset}">{head}'
        headers = HTML_WITHOUT_CHARSET
    text = (
        f'<!doctype html>\n<html lang="{lang}"><head>{head}<title>{title}</title></head>\n'
        f"<body>{_NAVIGATION}\n<h1>{title}</h1>\n{body}\n<footer>Halden Pumps, for employees only</footer></body></html>\n"
    )
    return Answer(text, headers=headers, charset=charset)


def redirect(target: str, status: int = 302) -> Answer:
    return Answer(status=status, headers=(("Location", target),))


def error(status: int, sentence: str, headers: Headers = ()) -> Answer:
    return Answer(f"<!doctype html><title>{status}</title><p>{sentence}</p>", status, HTML + headers)


def binary(content: bytes, content_type: str) -> Answer:
    return Answer(raw=content, headers=(("Content-Type", content_type),))
