"""The page of an archived response, read again with the present settings, for commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crawlspace.content.mime import SNIFFED_BYTES, sniff
from crawlspace.runtime.archived_responses import response_of
from crawlspace.runtime.http.errors import UndecodableBody
from crawlspace.runtime.http.headers import declared_type
from crawlspace.runtime.spiders.responses import HTML_TYPES, PageReader

if TYPE_CHECKING:
    from crawlspace.archive.reader import ArchiveReader
    from crawlspace.config.content import ContentSettings
    from crawlspace.content.page import Page
    from crawlspace.model import UrlState


def archived_page(state: UrlState, archive: ArchiveReader, content: ContentSettings) -> Page | None:
    """Return the page of a URL as it was archived; None where the archive has none, or no HTML."""
    stored = None if state.archived is None else archive.response(state.archived, state.url)
    if stored is None or not 200 <= stored.status < 300:
        return None
    try:
        response = response_of(stored)
    except UndecodableBody:
        return None
    declared = declared_type(response.headers)
    mime = sniff(declared, response.body[:SNIFFED_BYTES])
    if mime not in HTML_TYPES:
        return None
    return PageReader.of(content).read(response, mime=mime, declared=declared, url=state.url)
