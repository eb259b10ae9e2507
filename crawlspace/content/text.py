"""Text extraction for plain text and generic XML."""

from __future__ import annotations

from urllib.parse import unquote

from crawlspace.content.charset import decode
from crawlspace.content.markup import collapsed, resolved_text, xml_tokens
from crawlspace.content.page import MAX_TEXT, Page
from crawlspace.document import essence


def extract_text_document(
    body: bytes,
    *,
    url: str,
    content_type: str,
    charset: str | None = None,
    max_text: int = MAX_TEXT,
) -> Page:
    """Return a text or XML document as a page without links; its title is the last segment of the URL's path. Never raises.

    `content_type` may have parameters; `charset` is that of the Content-Type header.
    """
    text, codec = decode(body, charset)
    if is_xml(content_type):
        text = resolved_text(" ".join(before for before, _, _ in xml_tokens(text)))
    words = collapsed(text.replace("\0", " "))
    return Page(
        base=url, title=last_segment(url), text=words[:max_text], charset=codec, text_left_out=max(0, len(words) - max_text)
    )


def is_xml(content_type: str) -> bool:
    """Return whether a type is XML by its name."""
    kind = essence(content_type)
    return kind.endswith("+xml") or kind in ("text/xml", "application/xml")


def last_segment(url: str) -> str:
    """Return the last segment of a URL's path, decoded."""
    path = url.partition("#")[0].partition("?")[0].partition("://")[2].partition("/")[2]
    return unquote(path.rstrip("/").rpartition("/")[2])
