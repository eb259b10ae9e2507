"""Learn from the archive which blocks stand on most pages of a site."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappush, heappushpop

from lxml.html import HtmlElement

from crawlspace.archive.reader import ArchiveReader
from crawlspace.config.content import ContentSettings
from crawlspace.content.boilerplate import BlockCounter, SiteBlocks
from crawlspace.content.tree import page_tree
from crawlspace.crawl.startup import set_learned_blocks
from crawlspace.document import essence
from crawlspace.runtime.components.archived_responses import FetchedHtml, archived_html
from crawlspace.state.store import Store
from crawlspace.state.views import KnownUrl

MAX_SITES = 1_000
"""Sites of which blocks are learned: the first that are found."""
PAGES_READ = 200
"""Pages of a site that they are learned from."""
_LONGEST = 1_000_000
"""Characters of such a page: a longer one is left out."""
_AT_ONCE = 1_000


def learn_blocks(store: Store, archive: ArchiveReader, content: ContentSettings) -> dict[str, SiteBlocks]:
    """Learn the blocks of all sites from archived pages, and store them; return those of sites that have any."""
    found: dict[str, SiteBlocks] = {}
    for site, pages in sorted(_samples(store).items()):
        counter = BlockCounter()
        for known in pages:
            fetched = archived_html(known, archive, content)
            if fetched is not None and len(fetched.html) <= _LONGEST:
                counter.add(_tree_of(fetched, content))
        if (learned := counter.learned()).blocks:
            found[site] = learned
    set_learned_blocks(store, found)
    return found


def _tree_of(fetched: FetchedHtml, content: ContentSettings) -> HtmlElement:
    declared = next((value for name, value in fetched.headers if name.lower() == "content-type"), None)
    is_xhtml = essence(declared) == "application/xhtml+xml"
    return page_tree(fetched.html, xhtml=is_xhtml, exclusion_marks=content.exclusion_marks)


def _samples(store: Store) -> Mapping[str, list[KnownUrl]]:
    """Return some archived pages of each site: those with the smallest keys, which are as good as drawn, and the same each time."""
    heaps: dict[str, list[tuple[int, int, KnownUrl]]] = {}
    after = 0
    while page := store.scan(after, _AT_ONCE):
        after = page[-1].id
        for known in page:
            if not known.has_document or known.archived is None or (known.site not in heaps and len(heaps) == MAX_SITES):
                continue
            heap = heaps.setdefault(known.site, [])
            (heappush if len(heap) < PAGES_READ else heappushpop)(heap, (-known.key, known.id, known))
    return {site: [known for _, _, known in sorted(heap, reverse=True)] for site, heap in heaps.items()}
