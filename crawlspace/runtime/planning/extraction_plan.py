"""What changed extraction rules do to the documents of archived pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from crawlspace.admin.extraction_preview import ExtractionChanges
from crawlspace.archive.reader import ArchiveReader
from crawlspace.config.collection import Collection
from crawlspace.config.extraction import ExtractionScope
from crawlspace.content.boilerplate import NO_BLOCKS
from crawlspace.content.extraction import RuledPage, extracted
from crawlspace.crawl.startup import applied_extraction, learned_blocks
from crawlspace.runtime.components.archived_responses import archived_html
from crawlspace.state.store import Store
from crawlspace.state.views import KnownUrl

_CHECKED = 1_000
"""Archived pages to which changed extraction rules are applied."""
_LONGEST = 1_000_000
"""Characters of such a page: a longer one is left out."""
_AT_ONCE = 1_000


def extraction_changes(collection: Collection, store: Store) -> ExtractionChanges | None:
    """Return what changed extraction rules do to archived documents: all of them, or some that are evenly apart."""
    rules, applied, content = collection.extraction_rules, applied_extraction(store), collection.content
    if applied.content_hash == rules.content_hash:
        return None
    found = ExtractionChanges(documents=store.counts().indexed)
    names = sorted({*applied.fields, *(rule.name for rule in rules.fields)})
    scope, every = ExtractionScope(rules), max(1, found.documents // _CHECKED)
    texts, parts = applied.texts or bool(rules.texts), applied.parts or bool(rules.parts)
    is_main, part_chars = content.is_main and (texts or parts), content.part_chars if texts or parts else 0
    learned = learned_blocks(store) if content.boilerplate and (texts or parts) else {}
    archive = collection.archive
    with closing(ArchiveReader(archive.folder, store.archive_files(), look_up=store.archive_files)) as reader:
        for number, known in enumerate(_indexed(store)):
            fetched = archived_html(known, reader, content) if number % every == 0 else None
            document = None if fetched is None or known.archived is None else reader.document(known.archived, known.url)
            if fetched is None or document is None or len(fetched.html) > _LONGEST:
                continue
            html, headers, page = fetched
            marks = content.exclusion_marks
            ruled = RuledPage(
                html,
                url=known.url,
                base=page.base,
                headers=headers,
                exclusion_marks=marks,
                boilerplate=learned.get(known.site, NO_BLOCKS).blocks,
            )
            taken = extracted(scope.of(known.url), ruled, is_main=is_main, part_chars=part_chars)
            found.add(document, taken, page, names=names, texts=texts, parts=parts)
    return found


def _indexed(store: Store) -> Iterator[KnownUrl]:
    after = 0
    while page := store.scan(after, _AT_ONCE):
        after = page[-1].id
        yield from (known for known in page if known.indexed)
