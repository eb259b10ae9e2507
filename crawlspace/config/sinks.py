"""The setting CRAWLSPACE_SINKS: the indexes that documents are sent to, by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from ada_url import normalize_url

from crawlspace.config.content import ALL_WHOLE, ReferenceSettings, read_references
from crawlspace.config.secrets import read_secret
from crawlspace.config.sites import read_sites
from crawlspace.errors import SettingError
from crawlspace.index.login_exclusion import REQUIRES_LOGIN, LoginExclusion
from crawlspace.index.search import Searchable
from crawlspace.index.sink import Inventory, Rebuildable, Sink
from crawlspace.parsing import duration, integer, one_of, table
from crawlspace.text import quoted, without_credentials

SINKS = "CRAWLSPACE_SINKS"
EMBEDDED = "embedded"
"""The name of the embedded index in the outbox, independent of the user's name: there is one at most."""
SQLITE = "sqlite"
CLASSES: Mapping[str, str] = {
    SQLITE: "",
    "elasticsearch": "crawlspace.index.opensearch.rebuilding.RebuildableOpenSearch",
    "file": "crawlspace.index.order_log.OrderLog",
    "http": "crawlspace.index.http_push.HttpPush",
    "opensearch": "crawlspace.index.opensearch.rebuilding.RebuildableOpenSearch",
    "solr": "crawlspace.index.solr.rebuilding.RebuildableSolr",
}
"""The classes of sinks by type, by dotted path; a type of the user's own is such a path itself."""
_EXAMPLE = '{"search": {"type": "opensearch", "url": "https://search.example.com:9200", "index": "intranet"}}'
_INCLUDE, _EXCLUDE = "include", "exclude"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


@dataclass(slots=True)
class SinkOptions:
    """The options of one sink, as they are written in the settings; each is read once by the creator of the sink."""

    name: str
    type: str
    given: Mapping[str, object] = field(repr=False)
    collection: str
    data_folder: Path
    """Of the collection."""
    excludes_logins: bool = False
    """Documents of pages behind a log-in are left out."""
    _read: set[str] = field(default_factory=set)

    @property
    def server_index(self) -> str:
        """Return the index on a server that it writes to, as in `intranet at https://search.example.com:9200/`; empty where it has none.

        Two sinks that write to one index have the same, however their URLs are written.
        """
        url, index = self.given.get("url"), self.given.get("index")
        if not isinstance(url, str) or not isinstance(index, str):
            return ""
        return f"{index.strip()} at {normalize_url(url.strip().rstrip('/'))}"

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text that isn't blank; without `default` it must be there. Raises SettingError."""
        value = self._get(key, default)
        if value is None:
            raise SettingError(f"{self.where(key)} is missing; {self._like(key)}")
        if not isinstance(value, str) or (not value.strip() and value != default):
            raise SettingError(f"{self.where(key)} is {quoted(value)}; it must be a text")
        return value.strip()

    def secret(self, key: str) -> str:
        """Return a text, read from the environment or a file if it refers to one; empty where it is not given. Raises SettingError."""
        return self._secret(self.where(key), self._get(key, ""))

    def secret_of(self, key: str, name: str) -> str:
        """Return a text of a dict of texts, read like `secret`. Raises SettingError."""
        return self._secret(self.where(f"{key} → {name}"), self.table(key).get(name))

    def integer(self, key: str, default: int, *, low: int, high: int | None = None) -> int:
        return integer(self.where(key), self._get(key, default), low=low, high=high)

    def seconds(self, key: str, default: float, *, low: float) -> float:
        return duration(self.where(key), self._get(key, default), low=low)

    def table(self, key: str) -> Mapping[str, object]:
        """Return a dict; empty where it is not given. Raises SettingError."""
        value = self._get(key, None)
        if value is not None and not isinstance(value, Mapping):
            raise SettingError(f'{self.where(key)} is {quoted(value)}; it must be a dict, as in {{"a": "b"}}')
        return {str(name): one for name, one in (value or {}).items()}

    def file(self, key: str) -> Path | None:
        """Return a file that is there; None where none is given. Raises SettingError."""
        value = self.text(key, "")
        path = Path(value).expanduser() if value else None
        if path is not None and not path.is_file():
            raise SettingError(f"{self.where(key)} is {quoted(value)}, where there is no file")
        return path

    def url(self, key: str) -> str:
        """Return an http or https URL without a slash at its end. Raises SettingError."""
        value = self.text(key)
        if not re.match(r"https?://[^/\s]", value):
            raise SettingError(
                f"{self.where(key)} is {quoted(without_credentials(value))}; write a URL, as in https://search.example.com:9200"
            )
        if "@" in value.partition("://")[2].partition("/")[0]:
            raise SettingError(
                f'{self.where(key)} holds a user or a password; write them as "user" and "password", which may be env:NAME or file:PATH'
            )
        return value.rstrip("/")

    def refuse_others(self) -> None:
        """Raise SettingError for an unused option."""
        for key in self.given:
            if key not in self._read:
                close = get_close_matches(key, self._read, n=1)
                known = ", ".join(sorted(self._read - {"type"})) or "none"
                meant = f"do you mean {close[0]}?" if close else f"a sink of type {self.type} has {known}"
                raise SettingError(f"{SINKS} gives the sink {self.name} an unknown option {quoted(key)}; {meant}")

    def where(self, key: str) -> str:
        """Return how an option is called in a message."""
        return f"{SINKS}, {key} of the sink {self.name},"

    @staticmethod
    def _secret(where: str, value: object) -> str:
        if not isinstance(value, str):  # without the value: it is a secret all the same
            raise SettingError(f"{where} is no text; write it in quotes")
        return read_secret(where, value.strip()) if value.strip() else ""

    def _like(self, key: str) -> str:
        return f'write it, as in {{"{self.name}": {{"type": "{self.type}", "{key}": "…"}}}}'

    def _get(self, key: str, default: object) -> object:
        self._read.add(key)
        return self.given.get(key, default)


@dataclass(frozen=True, slots=True)
class SinkSettings:
    """The sinks of a collection."""

    options: tuple[SinkOptions, ...]
    index_file: Path
    """The file of the embedded index, where there is one."""
    references: ReferenceSettings = ALL_WHOLE
    """Which documents are sent without their text."""
    exclusion: LoginExclusion | None = None
    """The documents left out of some sinks."""

    def exclusion_of(self, sink: str) -> LoginExclusion | None:
        """Return the exclusion of a sink; None for one that gets all documents."""
        return self.exclusion if any(one.name == sink and one.excludes_logins for one in self.options) else None

    @property
    def has_embedded(self) -> bool:
        """Return whether the embedded index is one of them."""
        return EMBEDDED in self.names

    @property
    def names(self) -> tuple[str, ...]:
        """Return their names in the outbox."""
        return tuple(one.name for one in self.options)

    @property
    def servers(self) -> tuple[SinkOptions, ...]:
        """Return all but the embedded index."""
        return tuple(one for one in self.options if one.type != SQLITE)


def sinks_of(settings: Mapping[str, object], *, collection: str, data_folder: Path) -> SinkSettings:
    """Return the sinks of the settings of a collection. Raises SettingError. Nothing is opened."""
    sinks = read_sinks(settings[SINKS], collection=collection, data_folder=data_folder)
    exclusion = None
    if any(one.excludes_logins for one in sinks.options):
        sites = read_sites(settings)
        exclusion = LoginExclusion(sites.requires_login, sites.logins_hash)
    return replace(sinks, references=read_references(settings, collection), exclusion=exclusion)


def read_sinks(value: object, *, collection: str, data_folder: Path) -> SinkSettings:
    """Return the sinks; without any in the settings, the embedded index alone. Raises SettingError. Nothing is opened."""
    written = table(SINKS, value, example=_EXAMPLE) or {EMBEDDED: {"type": SQLITE}}
    found: list[SinkOptions] = []
    index_file = data_folder / "index.db"
    for name, given in written.items():
        one = _read_one(name, given, collection, data_folder)
        if one.type == SQLITE:
            if EMBEDDED in [other.name for other in found]:
                raise SettingError(f"{SINKS} has two sinks of type sqlite; a collection has one embedded index at most")
            file = one.text("file", "")
            index_file = Path(file).expanduser() if file else index_file
            one.refuse_others()
            one.name = EMBEDDED
        elif one.name == EMBEDDED:
            raise SettingError(
                f"{SINKS} has a sink of type {one.type} named {EMBEDDED}, which is the name of the embedded index; give it another"
            )
        else:
            wanted = one.text(REQUIRES_LOGIN, _INCLUDE)
            one.excludes_logins = one_of(one.where(REQUIRES_LOGIN), wanted, (_INCLUDE, _EXCLUDE)) == _EXCLUDE
        found.append(one)
    return SinkSettings(tuple(found), index_file)


def _read_one(name: object, given: object, collection: str, data_folder: Path) -> SinkOptions:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SettingError(
            f"{SINKS} has a sink named {quoted(name)}; a name has up to 40 small letters, digits, hyphens and underscores"
        )
    if not isinstance(given, Mapping):
        raise SettingError(f"{SINKS} gives the sink {name} {quoted(given)}; write its options as a dict, as in {_EXAMPLE}")
    kind = given.get("type")
    if not isinstance(kind, str) or not (kind in CLASSES or "." in kind):
        types: Sequence[str] = sorted(CLASSES)
        shown = "no type" if kind is None else f"the type {quoted(kind)}"
        raise SettingError(f"{SINKS} gives the sink {name} {shown}; there are {', '.join(types)}, or the dotted path of a class")
    options = SinkOptions(name, kind, {str(key): value for key, value in given.items()}, collection, data_folder)
    options.text("type")
    return options


def class_of(options: SinkOptions) -> type:
    """Return the class of a sink. Raises SettingError for a path that leads to none."""
    path = CLASSES.get(options.type, options.type)
    module, _, name = path.rpartition(".")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingError(
            f"{SINKS}: the type of the sink {options.name}, {quoted(options.type)}, cannot be loaded: {error}"
        ) from error
    if not isinstance(found, type) or not hasattr(found, "from_options"):
        raise SettingError(
            f"{SINKS}: the type of the sink {options.name}, {quoted(options.type)}, is no class with from_options()"
        )
    return found


def is_searchable(options: SinkOptions) -> bool:
    """Return whether a sink can be searched. Raises SettingError as `class_of`."""
    return options.type == SQLITE or issubclass(class_of(options), Searchable)


def tells_what_it_has(options: SinkOptions) -> bool:
    """Return whether a sink can be compared with the stored state. Raises SettingError as `class_of`."""
    return options.type == SQLITE or issubclass(class_of(options), Inventory)


def is_rebuildable(options: SinkOptions) -> bool:
    """Return whether a new index can be built for a sink while the present one is used. Raises SettingError as `class_of`."""
    return options.type != SQLITE and issubclass(class_of(options), Rebuildable)


def check_options(sinks: SinkSettings) -> None:
    """Raise SettingError for options that a sink does not know or cannot use. No server is contacted."""
    for one in sinks.servers:
        made(one).close()


def made(options: SinkOptions) -> Sink:
    """Return the sink that options describe, which is not connected yet. Raises SettingError."""
    sink: Sink = class_of(options).from_options(options)  # type: ignore[attr-defined]
    options.refuse_others()
    if sink.name != options.name:
        raise SettingError(
            f"{SINKS}: the class {options.type} named its sink {quoted(sink.name)}, and the orders are for {options.name}"
        )
    return sink
