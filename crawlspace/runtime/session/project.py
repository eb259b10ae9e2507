"""The collections of a project, for a process that looks at many of them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import NamedTuple

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from crawlspace.clock import Clock, SystemClock
from crawlspace.config.collection import collection_folder, collection_names
from crawlspace.errors import UnknownCollection
from crawlspace.runtime.components.loader import collection_settings
from crawlspace.runtime.session.paths import CollectionPaths, collection_paths
from crawlspace.text import quoted

_LONGEST_S = 5.0
"""A settings.py may depend on other files, so that it is run again after a while, even if it is unchanged."""


class _Loaded(NamedTuple):
    """A collection whose settings.py was run. `stamp` tells whether that is the present one."""

    paths: CollectionPaths
    stamp: tuple[int, ...]
    until: float


class ProjectCollections:
    """The collections as their files are at the moment of each call. May be used from several threads.

    A collection's settings are kept for a few seconds: to run its settings.py takes as much time as to answer most questions about it.
    """

    def __init__(self, settings: BaseSettings, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._settings = settings
        self._loading = threading.Lock()
        self._loaded: dict[str, _Loaded] = {}
        self.folder = Path(str(settings["CRAWLSPACE_COLLECTIONS_DIR"]))
        self.data_folder = Path(str(settings["CRAWLSPACE_DATA_DIR"]))

    def names(self) -> list[str]:
        """Return the names of all collections. Raises ConfigError."""
        return collection_names(str(self._settings["CRAWLSPACE_COLLECTIONS_DIR"]))

    def paths(self, name: str) -> CollectionPaths:
        """Return where a collection's files are. Raises UnknownCollection, and ConfigError for a settings.py that doesn't run."""
        if name not in self.names():  # before a path is made of what a browser sent
            raise UnknownCollection(f"there is no collection {quoted(name)}")
        folder = collection_folder(name, self._settings)
        stamp, now = _stamp(folder), self._clock.monotonic()
        with self._loading:  # spiders may be imported
            loaded = self._loaded.get(name)
            if loaded is None or loaded.stamp != stamp or loaded.until < now:
                paths = collection_paths(name, folder, collection_settings(self._settings, name))
                loaded = self._loaded[name] = _Loaded(paths, stamp, now + _LONGEST_S)
            return loaded.paths

    def command_line(self) -> dict[str, str]:
        """Return the settings of the command line, for another process of the project."""
        least = SETTINGS_PRIORITIES["cmdline"]
        return {name: str(value) for name, value in self._settings.items() if (self._settings.getpriority(name) or 0) >= least}


def _stamp(folder: Path) -> tuple[int, ...]:
    """Return what differs when a collection's folder or its settings.py has changed."""
    found: list[int] = []
    for path in (folder, folder / "settings.py"):
        try:
            status = path.stat()
        except OSError:
            found.append(0)
        else:
            found += (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
    return tuple(found)
