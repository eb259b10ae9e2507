"""Which documents a collection has in its index, for whoever looks after an index that several collections share."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from crawlspace.state.sqlite.file import SqliteFile
from crawlspace.state.sqlite.rows import integers
from crawlspace.urls import url_key


class Having:
    """Answers for the collection whose state file is open."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def __call__(self, urls: Collection[str]) -> set[str]:
        """Return those of the URLs whose documents the collection has in its index, or has on the way to it."""
        with self._file.reading() as db:
            found = db.execute(
                "SELECT url FROM url WHERE indexed AND key IN (SELECT value FROM carray(?))", (integers(map(url_key, urls)),)
            )
            return {url for (url,) in found}.intersection(urls)


@contextmanager
def having(path: Path) -> Iterator[Having]:
    """Open a state file of this version to ask it. Raises StoreError and its kinds."""
    with closing(SqliteFile(path, read_only=True)) as file:
        yield Having(file)
