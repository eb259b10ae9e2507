"""The collections of a project, for a process that looks at many of them."""

from __future__ import annotations

import threading
from pathlib import Path

from scrapy.settings import BaseSettings

from crawlspace.config.collection import collection_folder, collection_names
from crawlspace.errors import UnknownCollection
from crawlspace.runtime.components.loader import collection_settings
from crawlspace.runtime.session.paths import CollectionPaths, collection_paths
from crawlspace.text import quoted


class ProjectCollections:
    """The collections as their files are at the moment of each call. May be used from several threads."""

    def __init__(self, settings: BaseSettings) -> None:
        self._settings = settings
        self._loading = threading.Lock()
        self.data_folder = Path(str(settings["CRAWLSPACE_DATA_DIR"]))

    def names(self) -> list[str]:
        """Return the names of all collections. Raises ConfigError."""
        return collection_names(str(self._settings["CRAWLSPACE_COLLECTIONS_DIR"]))

    def paths(self, name: str) -> CollectionPaths:
        """Return where a collection's files are. Raises UnknownCollection, and ConfigError for a settings.py that doesn't run."""
        if name not in self.names():  # before a path is made of what a browser sent
            raise UnknownCollection(f"there is no collection {quoted(name)}")
        folder = collection_folder(name, self._settings)
        with self._loading:  # spiders may be imported
            settings = collection_settings(self._settings, name)
        return collection_paths(name, folder, settings)
