"""Opens what `scrapy reindex --extract` needs: processes with the spider of the collection, and files for the documents they make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from scrapy.utils.misc import load_object

from crawlspace.admin.extraction import Extraction, Making
from crawlspace.archive.new_documents import NewDocuments
from crawlspace.clock import SystemClock
from crawlspace.config.collection import load_collection
from crawlspace.crawl.outcomes import OutcomePolicy
from crawlspace.crawl.startup import build_deletion_limit, build_space, rules_of
from crawlspace.errors import ConfigError
from crawlspace.runtime.loader import CollectionLoader
from crawlspace.runtime.replay.messages import ReplayStart
from crawlspace.runtime.replay.processes import ReplayProcesses
from crawlspace.runtime.spiders.source_hash import source_hash
from crawlspace.runtime.stores.archive import folder_of

if TYPE_CHECKING:
    from scrapy import Spider

    from crawlspace.admin.reindex import Reindexing
    from crawlspace.archive.reader import ArchiveReader
    from crawlspace.crawl.replay import Remade
    from crawlspace.runtime.command import Place
    from crawlspace.runtime.stores.places import OpenStore

MOST_PROCESSES = 64
_COMPONENTS = ("ITEM_PIPELINES", "SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES")


@contextmanager
def extracting(
    reindexing: Reindexing,
    place: Place,
    opened: OpenStore,
    archive: ArchiveReader,
    *,
    processes: int,
    options: dict[str, str],
    report: Callable[[str, str], None],
) -> Iterator[Extraction]:
    """Return a reindex whose documents are made anew. `options` are the settings of the command line; `report` is as in Making.

    Raises ConfigError for a collection that could not be crawled either.
    """
    collection = load_collection(place.name, place.settings)
    clock = SystemClock()
    try:
        spider = CollectionLoader.from_settings(place.settings.copy()).load(place.name)
    except SystemExit as error:  # of the loader, where the code of a spider fails
        raise ConfigError(str(error.code)) from error
    start = ReplayStart(place.name, options, opened.store.archive_files())
    outcomes = OutcomePolicy(
        opened.store, read_health=opened.store.health, clock=clock, deletion_limit=build_deletion_limit(collection)
    )
    makers = ReplayProcesses(processes, start)
    try:
        with closing(NewDocuments(folder_of(place), opened.store, archive, collection=place.name, clock=clock)) as kept_in:
            making = Making(
                begin=lambda states: _Begun(makers.begin(states)),
                hash=_hash(rules_of(collection, build_space(collection)), place, spider),
                kept_in=kept_in,
                outcomes=outcomes,
                policy=collection.policy,
                report=report,
            )
            yield Extraction(
                opened.store,
                archive,
                reindexing.index,
                reindexing.now,
                deliver=reindexing.deliver,
                progress=reindexing.progress,
                settle=reindexing.settle,
                making=making,
            )
        makers.close()
    finally:
        makers.kill()


def _hash(rules: str, place: Place, spider: type[Spider]) -> str:
    """Return a hash that changes with the rules, the collection's settings, and the code of the spider and the components of the project."""
    digest = blake2b(f"{rules} {source_hash(spider)}".encode(), digest_size=8)
    with suppress(OSError):
        digest.update((place.folder / "settings.py").read_bytes())
    for name in _COMPONENTS:
        for component in sorted(map(str, place.settings.getdict(name))):
            with suppress(Exception):  # one that cannot be imported is reported where it is used
                digest.update(source_hash(load_object(component)).encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class _Begun:
    """What several processes make, each a part."""

    parts: Sequence[Future[list[Remade]]]

    def is_made(self, *, within_s: float) -> bool:
        return not wait(self.parts, within_s).not_done

    def made(self) -> Mapping[int, Remade]:
        return {one.id: one for part in self.parts for one in part.result()}
