"""What the memory store keeps of the archive."""

from __future__ import annotations


class MemoryArchiveFiles:
    """The names of its files, by number."""

    def __init__(self) -> None:
        super().__init__()
        self._archive_files: dict[int, str] = {}

    def archive_files(self) -> dict[int, str]:
        return dict(self._archive_files)

    def add_archive_file(self, name: str) -> int:
        for number, known in self._archive_files.items():
            if known == name:
                return number
        self._archive_files[len(self._archive_files) + 1] = name
        return len(self._archive_files)
