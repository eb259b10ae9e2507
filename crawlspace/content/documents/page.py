"""A file as a page: its contents, or what is known of a file that has no text."""

from __future__ import annotations

from email.message import Message

from crawlspace.content.documents.contents import MAX_TITLE, FileContents
from crawlspace.content.documents.text_buffer import one_line
from crawlspace.content.page import Page
from crawlspace.content.text import last_segment


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
    return one_line(message.get_filename() or "")[:MAX_TITLE] or last_segment(url)
