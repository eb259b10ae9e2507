"""A file as a page."""

from __future__ import annotations

import re
from contextlib import suppress
from email.message import Message
from urllib.parse import unquote_to_bytes

from crawlspace.content.charset import codec_of
from crawlspace.content.documents.contents import MAX_TITLE, FileContents
from crawlspace.content.documents.text_buffer import one_line
from crawlspace.content.page import Page
from crawlspace.content.text import last_segment

_PARAMETER = re.compile(r';\s*([^\s=;"]++)\s*=\s*(?:"((?:[^"\\]|\\.)*+)"|([^\s;"]*+))')


def page_of(contents: FileContents, *, url: str, disposition: str = "", follow_links: bool = False) -> Page:
    """Return the page of a file. `disposition`: its Content-Disposition header, which may name it."""
    fields = {
        "author": contents.author,
        "created": contents.created,
        "pages": str(contents.pages or ""),
        "text_status": contents.status.value if contents.status is not None else "",
    }
    hrefs = contents.hrefs if follow_links else ()
    return Page(
        base=url,
        title=contents.title or file_name(url, disposition) or url,
        language=contents.language,
        headings=contents.headings,
        text=contents.text,
        hrefs=hrefs,
        tags=("a",) * len(hrefs),
        text_left_out=int(contents.text_left_out),
        fields={name: value for name, value in fields.items() if value},
        modified=contents.modified,
    )


def file_name(url: str, disposition: str) -> str:
    """Return the name of a file: by the Content-Disposition header (RFC 6266), else the last segment of its URL's path."""
    message = Message()
    message["Content-Disposition"] = disposition.replace("\r", " ").replace("\n", " ")
    name = _extended_name(disposition) or message.get_filename() or ""
    with suppress(UnicodeError):  # the header comes as latin-1, and many send UTF-8
        name = name.encode("latin-1").decode("utf-8")
    return one_line(name)[:MAX_TITLE] or last_segment(url)


def _extended_name(disposition: str) -> str:
    """Return the `filename*` of a Content-Disposition header (RFC 8187); empty if it is missing or unreadable."""
    for name, quoted, plain in _PARAMETER.findall(disposition):
        charset, _, rest = (quoted or plain).partition("'")
        codec = codec_of(charset)
        if name.lower() == "filename*" and codec is not None:
            with suppress(UnicodeDecodeError):
                return unquote_to_bytes(rest.partition("'")[2]).decode(codec)
    return ""
