"""The only reader of settings and collection files: one frozen, typed, validated value a collection.

Scrapy gives `None` for an unknown setting, so a slip of the pen would go unnoticed; here an unknown `CRAWLSPACE_` name and a value
out of range are errors that say what was meant.
"""

from __future__ import annotations

import re
import runpy
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from crawlspace import settings as defaults
from crawlspace.errors import ConfigError, Mistake, RuleFileError, SettingError, UnknownCollection
from crawlspace.readers import (
    boolean,
    choice_of,
    duration,
    integer,
    optional_boolean,
    optional_integer,
    text,
    words,
)
from crawlspace.rules.crawl_rules import CrawlRules, parse_crawl_rules
from crawlspace.rules.limits import DEFAULT_EXCLUDED_EXTENSIONS, Limits
from crawlspace.site_table import SiteTable, read_sites
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, Url, parse

PREFIX = "CRAWLSPACE_"
_CREDENTIALS = re.compile(r"//[^/?#@\s]*@")
NEEDED = (
    ("ITEM_PIPELINES", "pipelines.dedupe.Fingerprint"),
    ("ITEM_PIPELINES", "pipelines.state.RecordState"),
    ("ITEM_PIPELINES", "pipelines.index.DrainIndex"),
    ("SPIDER_MIDDLEWARES", "middlewares.outcome.OneOutcome"),
)
"""(setting, component) without which a crawl would never end."""
LINK_TAGS = ("a", "area", "frame", "iframe", "link", "meta")


@dataclass(frozen=True, slots=True)
class StartUrl:
    """A start URL with its place in the files, and its shift (-2 first … 2 last)."""

    url: Url
    shift: int
    where: str


@dataclass(frozen=True, slots=True)
class ContentSettings:
    link_tags: frozenset[str]
    max_links: int
    checksum_cut_off: int
    checksum_title: bool
    obey_meta_robots: bool


@dataclass(frozen=True, slots=True)
class Collection:
    """Everything that is configured for one collection. Durations are seconds, sizes bytes."""

    name: str
    folder: Path
    data_folder: Path
    index_file: Path
    start_urls: tuple[StartUrl, ...]
    rules: CrawlRules
    rules_file: Path | None
    limits: Limits
    host_case_sensitive: bool
    sites: SiteTable
    content: ContentSettings
    policy: RecrawlPolicy
    robots_obey: bool
    robots_ttl_s: float
    user_agent: str
    robots_agent: str
    """The name robots.txt is asked with."""
    lease_s: int
    max_redirects: int
    max_backlog: int

    @property
    def store_file(self) -> Path:
        return self.data_folder / "state.db"


def collection_names(folder: str | Path) -> list[str]:
    """The collections, sorted: the folders below CRAWLSPACE_COLLECTIONS_DIR whose names don't begin with "." or "_"."""
    try:
        return sorted(p.name for p in Path(folder).iterdir() if p.is_dir() and p.name[0] not in "._")
    except FileNotFoundError:
        return []


def collection_folder(name: str, settings: Mapping[str, object]) -> Path:
    """Return the folder of a collection. Raises UnknownCollection with the names there are."""
    base = Path(str(settings["CRAWLSPACE_COLLECTIONS_DIR"]))
    folder = base / name
    known = collection_names(base)
    if name in known:
        return folder
    near = get_close_matches(name, known, 1)
    if near:
        way_out = f"did you mean {near[0]!r}?"
    else:
        there = f"there are: {', '.join(known)}" if known else "there are none yet"
        way_out = f"{there}. `scrapy startcollection {name} URL` makes one"
    raise UnknownCollection(f"no collection {name!r} in {base}: {way_out}")


def read_settings_file(folder: Path) -> dict[str, object]:
    """Run a collection's settings.py and return its upper-case names. Raises ConfigError naming file and line."""
    path = folder / "settings.py"
    if not path.exists():
        return {}
    try:
        names = runpy.run_path(str(path))
    except SyntaxError as error:
        raise ConfigError(f"{path}:{error.lineno}: {error.msg}") from error
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        raise ConfigError(f"{path}:{lines[-1] if lines else 1}: {type(error).__name__}: {error}") from error
    return {name: value for name, value in names.items() if name.isupper()}


def load_collection(name: str, settings: Mapping[str, object]) -> Collection:
    """Read and check everything a collection is configured with.

    `settings` are the project's, already overlaid with the collection's settings.py and the command line.
    Raises UnknownCollection, SettingError, ConfigError, RuleFileError.
    """
    folder = collection_folder(name, settings)
    refuse_unknown_names(settings)
    data_folder = Path(str(settings["CRAWLSPACE_DATA_DIR"])) / name
    index_file = str(settings["CRAWLSPACE_INDEX_FILE"] or "")
    rules, rules_file = read_rules(folder)
    limits = _limits(settings)
    _check_scrapys(settings)
    robots_obey = boolean("ROBOTSTXT_OBEY", settings["ROBOTSTXT_OBEY"])
    meta_robots = optional_boolean("CRAWLSPACE_META_ROBOTS", settings["CRAWLSPACE_META_ROBOTS"])
    return Collection(
        name=name,
        folder=folder,
        data_folder=data_folder,
        index_file=Path(index_file) if index_file else data_folder / "index.db",
        start_urls=read_start_urls(folder, settings),
        rules=rules,
        rules_file=rules_file,
        limits=limits,
        host_case_sensitive=boolean("CRAWLSPACE_HOST_CASE_SENSITIVE", settings["CRAWLSPACE_HOST_CASE_SENSITIVE"]),
        sites=read_sites(settings, limits),
        content=ContentSettings(
            link_tags=frozenset(choice_of("CRAWLSPACE_LINK_TAGS", settings["CRAWLSPACE_LINK_TAGS"], LINK_TAGS)),
            max_links=integer("CRAWLSPACE_MAX_LINKS", settings["CRAWLSPACE_MAX_LINKS"], low=1),
            checksum_cut_off=integer("CRAWLSPACE_CHECKSUM_CUT_OFF", settings["CRAWLSPACE_CHECKSUM_CUT_OFF"], low=0),
            checksum_title=boolean("CRAWLSPACE_CHECKSUM_TITLE", settings["CRAWLSPACE_CHECKSUM_TITLE"]),
            obey_meta_robots=robots_obey if meta_robots is None else meta_robots,
        ),
        policy=_policy(settings),
        robots_obey=robots_obey,
        robots_ttl_s=duration("CRAWLSPACE_ROBOTS_TTL", settings["CRAWLSPACE_ROBOTS_TTL"], low=60),
        user_agent=text("USER_AGENT", settings["USER_AGENT"]),
        robots_agent=_robots_agent(settings),
        lease_s=round(duration("CRAWLSPACE_LEASE_S", settings["CRAWLSPACE_LEASE_S"], low=10)),
        max_redirects=_redirects(settings),
        max_backlog=integer("CRAWLSPACE_MAX_BACKLOG", settings["CRAWLSPACE_MAX_BACKLOG"], low=100),
    )


def known_names() -> list[str]:
    """Every setting of ours, as `crawlspace/settings.py` has them."""
    return sorted([*(name for name in vars(defaults) if name.startswith(PREFIX)), "CRAWLSPACE_START_URLS"])


def refuse_unknown_names(names: Iterable[str]) -> None:
    """Raise SettingError for a CRAWLSPACE_ name that doesn't exist, with the nearest one that does."""
    known = known_names()
    for name in names:
        if name.startswith(PREFIX) and name not in known:
            near = get_close_matches(name, known, 1, cutoff=0.75)
            meant = f"did you mean {near[0]}?" if near else "docs/settings.md lists them all"
            raise SettingError(f"unknown setting {name}: {meant}")


def read_rules(folder: Path) -> tuple[CrawlRules, Path | None]:
    """Read crawl.rules; a collection without one has no rules."""
    path = folder / "crawl.rules"
    if not path.exists():
        return parse_crawl_rules("", file=path.name), None
    return parse_crawl_rules(_read_text(path), file=path.name), path


def read_start_urls(folder: Path, settings: Mapping[str, object]) -> tuple[StartUrl, ...]:
    """Read start_urls.txt (one a line, `#` comments, `shift=-2` … `shift=2` behind) and CRAWLSPACE_START_URLS.

    Raises RuleFileError with every line that is wrong, ConfigError when there is none at all.
    """
    found: list[StartUrl] = []
    mistakes: list[Mistake] = []
    path = folder / "start_urls.txt"
    if path.exists():
        for number, line in enumerate(_read_text(path).splitlines(), 1):
            if line.strip() and not line.lstrip().startswith("#"):
                _read_start_url(line, path.name, number, found, mistakes)
    extra = words("CRAWLSPACE_START_URLS", settings.get("CRAWLSPACE_START_URLS") or [])
    for number, line in enumerate(extra, 1):
        _read_start_url(line, "CRAWLSPACE_START_URLS", number, found, mistakes)
    if mistakes:
        raise RuleFileError(mistakes)
    if not found:
        raise ConfigError(f"collection {folder.name!r} has no start URL: write one a line into {path}")
    return tuple(found)


def _read_start_url(line: str, file: str, number: int, found: list[StartUrl], mistakes: list[Mistake]) -> None:
    line = _CREDENTIALS.sub(
        lambda match: "//" + "*" * (len(match[0]) - 3) + "@", line
    )  # they must not be shown; there they are wrong anyway

    def mistake(column: int, message: str) -> None:
        mistakes.append(Mistake(file, number, column, message, line))

    parts = line.split()
    column = line.index(parts[0]) + 1
    if not parts[0].lower().startswith(tuple(f"{scheme}://" for scheme in DEFAULT_PORTS)):
        return mistake(column, f"a start URL begins with http:// or https://, as in http://{parts[0].split('://')[-1]}")
    try:
        url = parse(parts[0])
    except MalformedUrl as error:
        return mistake(column, f"{error}; a start URL is like http://www.example.com/")
    shift = 0
    for word in parts[1:]:
        if word not in {f"shift={n}" for n in range(-2, 3)}:
            return mistake(line.rindex(word) + 1, f"unexpected {word!r}; only shift=-2 (first) to shift=2 (last) may follow")
        shift = int(word.removeprefix("shift="))
    found.append(StartUrl(url, shift, f"{file}:{number}"))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error


def _check_scrapys(settings: Mapping[str, object]) -> None:
    """Scrapy reads these itself, and would end with a traceback."""
    for setting, component in NEEDED:
        there = settings[setting]
        named = {_name_of(key): value for key, value in there.items()} if isinstance(there, Mapping) else {}
        if named.get(component) is None:
            raise SettingError(
                f"{setting} has no {component}, without which nothing is recorded; add to the setting, don't replace it"
            )
    integer("CONCURRENT_REQUESTS", settings["CONCURRENT_REQUESTS"], low=1)
    integer("DOWNLOAD_TIMEOUT", settings["DOWNLOAD_TIMEOUT"], low=1)
    integer("DOWNLOAD_MAXSIZE", settings["DOWNLOAD_MAXSIZE"], low=0)


def _name_of(component: object) -> str:
    return (
        component
        if isinstance(component, str)
        else f"{getattr(component, '__module__', '')}.{getattr(component, '__qualname__', '')}"
    )


def _redirects(settings: Mapping[str, object]) -> int:
    most = integer("REDIRECT_MAX_TIMES", settings["REDIRECT_MAX_TIMES"], low=0)
    return most if boolean("REDIRECT_ENABLED", settings.get("REDIRECT_ENABLED", True)) else 0


def _robots_agent(settings: Mapping[str, object]) -> str:
    own = settings.get("ROBOTSTXT_USER_AGENT")
    return text("ROBOTSTXT_USER_AGENT", own) if own else text("USER_AGENT", settings["USER_AGENT"])


def _limits(settings: Mapping[str, object]) -> Limits:
    extensions = words("CRAWLSPACE_EXCLUDE_EXTENSIONS", settings["CRAWLSPACE_EXCLUDE_EXTENSIONS"], separators="|, ")
    if not extensions:
        excluded = DEFAULT_EXCLUDED_EXTENSIONS
    elif extensions == ["none"]:
        excluded = frozenset()
    else:
        excluded = frozenset(word.lstrip(".").lower() for word in extensions)
    return Limits(
        schemes=frozenset(choice_of("CRAWLSPACE_SCHEMES", settings["CRAWLSPACE_SCHEMES"], tuple(DEFAULT_PORTS))),
        max_url_length=integer("URLLENGTH_LIMIT", settings["URLLENGTH_LIMIT"], low=16, high=65_536),
        follow_query_strings=boolean("CRAWLSPACE_FOLLOW_QUERY_STRINGS", settings["CRAWLSPACE_FOLLOW_QUERY_STRINGS"]),
        exclude_extensions=excluded,
        mime_types=tuple(w.lower() for w in words("CRAWLSPACE_MIME_TYPES", settings["CRAWLSPACE_MIME_TYPES"], separators="|, ")),
        max_path_depth=optional_integer("CRAWLSPACE_MAX_PATH_DEPTH", settings["CRAWLSPACE_MAX_PATH_DEPTH"], low=0),
        max_link_depth=integer("DEPTH_LIMIT", settings["DEPTH_LIMIT"], low=0) or None,
        follow_offsite_links=boolean("CRAWLSPACE_FOLLOW_OFFSITE_LINKS", settings["CRAWLSPACE_FOLLOW_OFFSITE_LINKS"]),
        index_entire_site=boolean("CRAWLSPACE_INDEX_ENTIRE_SITE", settings["CRAWLSPACE_INDEX_ENTIRE_SITE"]),
        max_repeated_segments=integer("CRAWLSPACE_MAX_REPEATED_SEGMENTS", settings["CRAWLSPACE_MAX_REPEATED_SEGMENTS"], low=1),
        max_urls_per_host=optional_integer("CRAWLSPACE_MAX_URLS_PER_HOST", settings["CRAWLSPACE_MAX_URLS_PER_HOST"], low=1),
    )


def _policy(settings: Mapping[str, object]) -> RecrawlPolicy:
    low = round(duration("CRAWLSPACE_REFRESH_MIN", settings["CRAWLSPACE_REFRESH_MIN"], low=1))
    high = round(duration("CRAWLSPACE_REFRESH_MAX", settings["CRAWLSPACE_REFRESH_MAX"], low=1))
    if low > high:
        raise SettingError(f"CRAWLSPACE_REFRESH_MIN ({low} s) is above CRAWLSPACE_REFRESH_MAX ({high} s); make it smaller")
    retries = boolean("RETRY_ENABLED", settings.get("RETRY_ENABLED", True))
    return RecrawlPolicy(
        refresh_min_s=low,
        refresh_max_s=high,
        retry_times=integer("RETRY_TIMES", settings["RETRY_TIMES"], low=0, high=100) if retries else 0,
        retry_wait_s=duration("CRAWLSPACE_RETRY_WAIT", settings["CRAWLSPACE_RETRY_WAIT"], low=0),
        max_temporary_errors=integer("CRAWLSPACE_MAX_TEMPORARY_ERRORS", settings["CRAWLSPACE_MAX_TEMPORARY_ERRORS"], low=1),
    )
