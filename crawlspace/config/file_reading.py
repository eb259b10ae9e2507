"""Read the settings that say how files, such as PDF and office documents, are read."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from crawlspace.content.documents.converters import FILE, command_words, is_server
from crawlspace.errors import SettingError
from crawlspace.parsing import boolean, duration, integer, table
from crawlspace.text import quoted

CONVERTERS = "CRAWLSPACE_CONVERTERS"
_EXAMPLE = '{"application/msword": "antiword -m UTF-8.txt {file}", "image/*": "http://tika.example.com:9998/tika"}'
_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileSettings:
    """How files are read. `converters`: by type, or the beginning of types with a star."""

    processes: int
    max_bytes: int
    timeout_s: float
    memory_bytes: int
    follow_links: bool
    converters: Mapping[str, str]

    def check(self) -> None:
        """Raise SettingError if the program of a converter cannot be run."""
        for kind, converter in self.converters.items():
            program = "" if is_server(converter) else command_words(converter)[0]
            if program and shutil.which(program) is None:
                raise SettingError(
                    f"{CONVERTERS}: the command for {kind} begins with {quoted(program)}, which is no program that can be run;"
                    " install it, or correct its path"
                )

    @property
    def of_contents(self) -> tuple[object, ...]:
        """What makes another document of the same file."""
        return (self.max_bytes, self.timeout_s, self.memory_bytes, self.follow_links, sorted(self.converters.items()))


def read_file_settings(settings: Mapping[str, object]) -> FileSettings:
    """Return the settings of files. Raises SettingError."""
    return FileSettings(
        processes=integer("CRAWLSPACE_FILE_PROCESSES", settings["CRAWLSPACE_FILE_PROCESSES"], low=1, high=64),
        max_bytes=integer("CRAWLSPACE_FILE_MAXSIZE", settings["CRAWLSPACE_FILE_MAXSIZE"], low=1),
        timeout_s=duration("CRAWLSPACE_FILE_TIMEOUT", settings["CRAWLSPACE_FILE_TIMEOUT"], low=1),
        memory_bytes=integer("CRAWLSPACE_FILE_MEMORY", settings["CRAWLSPACE_FILE_MEMORY"], low=64 * _MEBIBYTE),
        follow_links=boolean("CRAWLSPACE_FOLLOW_FILE_LINKS", settings["CRAWLSPACE_FOLLOW_FILE_LINKS"]),
        converters=read_converters(settings[CONVERTERS]),
    )


def read_converters(value: object) -> Mapping[str, str]:
    """Return the converters by type. Raises SettingError for the first that is wrong."""
    found: dict[str, str] = {}
    for key, converter in table(CONVERTERS, value, example=_EXAMPLE).items():
        kind = str(key).strip().lower()
        if kind.count("/") != 1 or "*" in kind[:-1]:
            raise SettingError(
                f"{CONVERTERS} names {quoted(str(key))}, which is no type; write one such as application/msword or image/*"
            )
        if not isinstance(converter, str) or not converter.strip():
            raise SettingError(f"{CONVERTERS} has no command for {kind}; write one, as in {_EXAMPLE}")
        _check(kind, converter)
        found[kind] = converter.strip()
    return found


def _check(kind: str, converter: str) -> None:
    if is_server(converter):
        try:
            has_host = bool(urlsplit(converter).hostname) and urlsplit(converter).port != 0
        except ValueError:
            has_host = False
        if not has_host:
            raise SettingError(
                f"{CONVERTERS}: the URL for {kind} has no host; write one such as http://tika.example.com:9998/tika"
            )
        return
    try:
        words = command_words(converter)
    except ValueError as error:
        raise SettingError(
            f"{CONVERTERS}: the command for {kind} cannot be split into words ({error}); quote it as for a shell"
        ) from None
    if not any(FILE in word for word in words[1:]):
        raise SettingError(
            f"{CONVERTERS}: the command for {kind} does not name {FILE}, in whose place it gets the path of the file;"
            f" write it, as in {_EXAMPLE}"
        )
