"""Opens the two stores between which a collection is moved, as the command line names them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from crawlspace import private_files
from crawlspace.config.secrets import is_elsewhere, is_server, shown
from crawlspace.distributed.connection import connected
from crawlspace.errors import ConfigError, StoreError, UsageError
from crawlspace.parsing import duration
from crawlspace.state.sqlite.dump import SqliteSide
from crawlspace.text import quoted

if TYPE_CHECKING:
    from crawlspace.runtime.session.paths import CollectionPaths
    from crawlspace.state.redis.dump import RedisSide


FILE = "file"


_FILES = (FILE, "sqlite")


def read_place(word: str) -> str:
    """Return where a store is, as `file`, `redis` or the URL of a server. Raises UsageError."""
    if word in _FILES:
        return FILE
    if is_server(word) or is_elsewhere(word):
        return word
    raise UsageError(
        f"{quoted(shown(word))} is no store: write file, redis, or the URL of a Redis server, as in redis://localhost:6379/0"
    )


@contextmanager
def opened(
    paths: CollectionPaths, where: str, *, writes: bool = False, during_crawl: bool = False
) -> Iterator[SqliteSide | RedisSide]:
    """Open one of the stores of a collection, to read it or to copy it there. Nobody may crawl the collection there, but for a file that is
    read `during_crawl`.

    Raises StoreError and its kinds, and ConfigError.
    """
    if where == FILE:
        with closing(_file(paths, writes=writes, during_crawl=during_crawl)) as file:
            yield file
        return
    from crawlspace.state.redis.dump import RedisSide  # noqa: PLC0415 - with the client half a second

    timeout_s = duration("CRAWLSPACE_WORKER_TIMEOUT", paths.settings["CRAWLSPACE_WORKER_TIMEOUT"], low=5)
    client = connected({**paths.settings, "CRAWLSPACE_STORE_URL": where}, fills=writes)
    try:
        yield RedisSide(client, paths.name, timeout_s=timeout_s)
    finally:
        client.close()


def _file(paths: CollectionPaths, *, writes: bool, during_crawl: bool) -> SqliteSide:
    file = paths.state_file
    if not writes:
        if not file.exists():
            raise StoreError(f"{paths.name} has never been crawled with a file: there is no {file}")
        return SqliteSide(file, during_crawl=during_crawl)
    try:
        private_files.make_folder(file.parent)
    except OSError as error:
        raise ConfigError(
            f"{file.parent} cannot be made: {error.strerror}; set CRAWLSPACE_DATA_DIR to a folder that can be written"
        ) from error
    return SqliteSide(file, writes=True)
