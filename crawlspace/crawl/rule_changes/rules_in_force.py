"""The rule files that were in force from each start on, kept as text: which rules decided about a URL in the past.

A start with other rule files than the start before it writes one file: `rules-in-force/SECONDS-RUN.json.gz` in the data folder of the collection.
Of settings.py, which may have passwords, and of files that are large, a digest is kept alone.
"""

from __future__ import annotations

import gzip
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec

from crawlspace import private_files
from crawlspace.config.collection import Collection
from crawlspace.config.files import GLOBAL_RULES, RULES_XML
from crawlspace.content.extraction_rules import EXTRACT_TOML

logger = logging.getLogger(__name__)

FOLDER = "rules-in-force"
MOST_KEPT = 200
"""Versions that are kept; then the oldest are removed."""
MOST_BYTES = 1_000_000
"""Bytes of a file whose text is kept."""
SETTINGS = "settings.py"
_NAMES = ("crawl.rules", RULES_XML, "start_urls.txt", EXTRACT_TOML)
_ENDING = ".json.gz"


class RulesInForce(msgspec.Struct, frozen=True):
    """The rule files of a collection from a start on, by name; those of the global crawl space under `global.rules`."""

    since: int
    digests: dict[str, str]
    """Of all files that were there, settings.py included."""
    texts: dict[str, bytes]
    """Of those whose text is kept."""
    run: int = 0
    """The number of the run that began then; 0 where runs are not kept."""

    @property
    def incomplete(self) -> list[str]:
        """The rule files that were there and whose text was too large to be kept."""
        return sorted(self.digests.keys() - self.texts.keys() - {SETTINGS})


def present_rules(collection: Collection, *, since: int, run: int = 0) -> RulesInForce:
    """Return the rule files of a collection as they are on disk now. Raises OSError."""
    digests, texts = {}, {}
    for name, path in _files(collection):
        with suppress(FileNotFoundError):
            data = path.read_bytes()
            digests[name] = blake2b(data, digest_size=16).hexdigest()
            if name != SETTINGS and len(data) <= MOST_BYTES:
                texts[name] = data
    return RulesInForce(since, digests, texts, run)


def keep_rules(collection: Collection, *, now: int, run: int) -> None:
    """Keep the rule files if they are others than at the last start. A failure is logged: the crawl does not need them."""
    folder = collection.data_folder / FOLDER
    try:
        present = present_rules(collection, since=now, run=run)
        kept = _kept_files(folder)
        newest = _read(kept[-1]) if kept else None
        if newest is not None and newest.digests == present.digests:
            return
        private_files.make_folder(folder)
        private_files.replace_file(folder / f"{now:010}-{run:06}{_ENDING}", gzip.compress(msgspec.json.encode(present), mtime=0))
        for path in kept[: len(kept) + 1 - MOST_KEPT]:
            path.unlink(missing_ok=True)
    except OSError as error:
        logger.warning("The rules of this start are not kept for `scrapy history`: %s", error)


def kept_rules(data_folder: Path) -> list[RulesInForce]:
    """Return the kept versions, the oldest first; those that cannot be read are left out."""
    return [found for path in _kept_files(data_folder / FOLDER) if (found := _read(path)) is not None]


def in_force_at(kept: Sequence[RulesInForce], at: float, *, run: int | None = None) -> RulesInForce | None:
    """Return the version that was in force at a time, or in a run, where that is known; None before the first one."""
    return next((one for one in reversed(kept) if (one.run <= run if run and one.run else one.since <= at)), None)


def _files(collection: Collection) -> Iterator[tuple[str, Path]]:
    for name in (*_NAMES, SETTINGS):
        yield name, collection.folder / name
    if collection.global_file is not None:
        yield GLOBAL_RULES, collection.global_file


def _kept_files(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{_ENDING}"))


def _read(path: Path) -> RulesInForce | None:
    try:
        return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=RulesInForce)
    except (OSError, EOFError, msgspec.MsgspecError, ValueError):
        return None
