"""What is taken from the pages of a collection: a value that can be sent to a process that reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from crawlspace.content.exclusion_marks import EXCLUSION_MARKS
from crawlspace.content.html import LINK_TAGS, extract
from crawlspace.content.links import LinkAttributes
from crawlspace.content.metadata import MetaFields
from crawlspace.content.mime import HTML_TYPES
from crawlspace.content.page import Page
from crawlspace.content.text import extract_text_document


@dataclass(frozen=True, slots=True)
class PageReader:
    """Reads pages and text documents. `agent_names`: names of meta elements to obey besides `robots`."""

    link_tags: frozenset[str] = LINK_TAGS
    link_pairs: frozenset[tuple[str, str]] = frozenset()
    """Elements and attributes of the user's own that hold links."""
    max_links: int = 10_000
    agent_names: tuple[str, ...] = ()
    exclusion_marks: frozenset[str] = frozenset(EXCLUSION_MARKS)
    meta_fields: MetaFields = field(default_factory=dict)

    def read(self, body: bytes, *, url: str, mime: str, charset: str | None) -> Page:
        """Return a page; `charset` is that of its Content-Type header. Never raises, for any body."""
        if mime not in HTML_TYPES:
            return extract_text_document(body, url=url, content_type=mime, charset=charset)
        return extract(
            body,
            url=url,
            charset=charset,
            max_links=self.max_links,
            link_tags=self.link_tags,
            link_attributes=_attributes_of(self.link_pairs),
            agent_names=self.agent_names,
            exclusion_marks=self.exclusion_marks,
            meta_fields=self.meta_fields,
            xhtml=mime != "text/html",
        )


@lru_cache(maxsize=8)
def _attributes_of(pairs: frozenset[tuple[str, str]]) -> LinkAttributes:
    return LinkAttributes(pairs)
