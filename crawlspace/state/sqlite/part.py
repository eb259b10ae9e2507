"""What each part of the SQLite store stands on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager

import apsw

from crawlspace.state.sqlite.file import SqliteFile


class SqlitePart(ABC):
    """Methods of the store that concern one thing, over its file."""

    _file: SqliteFile

    @abstractmethod
    def _writing(self) -> AbstractContextManager[apsw.Connection]:
        """One transaction of the store."""
