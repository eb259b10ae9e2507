"""Options that fold several spellings of one page's address into one URL: parameters, their order, session ids, slash at the end, `www.`.

They apply after the normal form and before the checks, wherever a candidate becomes a URL. Folding twice is folding once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import unquote_plus

from msgspec import structs

from crawlspace.rules.address import is_address
from crawlspace.text import Glob, compile_glob
from crawlspace.urls import DEFAULT_PORTS, Url, parse

SESSION_SEGMENT = "(S())"
"""Among the path parameters: path segments such as `(S(lit3py55t21z5v55vlm25s55))`, in which ASP.NET without cookies keeps its tickets."""
TICKETS = re.compile(r"\((?:[A-Za-z]\([^()/;]*\))+\)")
"""Such a path segment."""
_WWW = "www."
_CACHED_ORIGINS = 20_000
"""Origins cached at a time."""


class Folding(StrEnum):
    """Whether something is added where it is missing, or removed where it is present."""

    KEEP = "keep"
    ADD = "add"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class UrlOptions:
    """The options of a site. `*` in a name stands for any characters. Case counts in names of the query, but not in those of paths."""

    sort_query: bool = False
    drop_parameters: tuple[str, ...] = ()
    drop_path_parameters: tuple[str, ...] = field(default=(), repr=False)
    trailing_slash: Folding = Folding.KEEP
    www: Folding = Folding.KEEP
    hash_routes: bool = field(default=False, repr=False)
    """Whether routes behind # are URLs of their own, where pages are rendered."""
    _names: frozenset[str] = field(init=False, repr=False, compare=False)
    _beginnings: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Patterns with one star, at the end."""
    _patterns: tuple[Glob, ...] = field(init=False, repr=False, compare=False)
    _path_names: tuple[Glob, ...] = field(init=False, repr=False, compare=False)
    _drops_segments: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = frozenset(name for name in self.drop_parameters if "*" not in name)
        beginnings = tuple(name[:-1] for name in self.drop_parameters if name.find("*") == len(name) - 1)
        patterns = tuple(compile_glob(name) for name in self.drop_parameters if "*" in name[:-1])
        of_paths = tuple(compile_glob(name.lower()) for name in self.drop_path_parameters if name != SESSION_SEGMENT)
        for name, value in (("_names", names), ("_beginnings", beginnings), ("_patterns", patterns), ("_path_names", of_paths)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_drops_segments", SESSION_SEGMENT in self.drop_path_parameters)

    def host(self, host: str) -> str:
        """Return the host with or without `www.`, as `www` sets; an address, and a name without a dot, stay as they are."""
        if self.www is Folding.REMOVE and host.startswith(_WWW) and "." in host[len(_WWW) :]:
            return host[len(_WWW) :]
        if self.www is Folding.ADD and not host.startswith(_WWW) and "." in host and not is_address(host):
            return _WWW + host
        return host

    def path(self, path: str) -> str:
        """Return a path without session ids, and with or without a slash at its end. None is added to what looks like a file; the root stays."""
        if self.drop_path_parameters and (";" in path or "(" in path):
            path = self._without_sessions(path)
        if self.trailing_slash is Folding.REMOVE and path[-1:] == "/":
            return path.rstrip("/") or "/"
        if self.trailing_slash is Folding.ADD and path[-1:] != "/" and not _looks_like_a_file(path):
            return f"{path}/"
        return path

    def query(self, query: str | None) -> str | None:
        """Return a query without dropped parameters, sorted by name; None if nothing is left. Equal names keep their order."""
        if query is None or not (self.sort_query or self.drop_parameters):
            return query
        parts = query.split("&")
        if self.drop_parameters:
            parts = [part for part in parts if not self._drops(_name_of(part))]
        if self.sort_query:
            parts = sorted(filter(None, parts), key=_name_of)
        return "&".join(parts) or None

    def _without_sessions(self, path: str) -> str:
        kept = []
        for segment in path[1:].split("/"):
            one = self._without_parameters(segment) if ";" in segment else segment
            if not (self._drops_segments and one.startswith("(") and TICKETS.fullmatch(one)):
                kept.append(one)
        return "/" + "/".join(kept)

    def _without_parameters(self, segment: str) -> str:
        first, *parameters = segment.split(";")
        kept = [one for one in parameters if not any(name.matches(_name_of(one).lower()) for name in self._path_names)]
        # Without its parameters `..;sid=1` would lead to another folder.
        return segment if first in {".", ".."} and not kept else ";".join((first, *kept))

    def _drops(self, name: str) -> bool:
        return self._is_named(name) or (("%" in name or "+" in name) and self._is_named(unquote_plus(name)))

    def _is_named(self, name: str) -> bool:
        if name in self._names or name.startswith(self._beginnings):
            return True
        return bool(self._patterns) and any(pattern.matches(name) for pattern in self._patterns)


NO_OPTIONS = UrlOptions()


class OriginFolding:
    """Folding options for URLs with one scheme, host and port."""

    __slots__ = (
        "_by_path",
        "_by_query",
        "_host",
        "_keeps_host",
        "_keeps_rest",
        "_keeps_unmarked",
        "_port",
        "_scheme",
        "_written",
        "beginning",
        "options",
        "origin",
    )

    def __init__(self, url: Url, host: str, options: UrlOptions) -> None:
        """`host` is the folded one of a URL with that origin, and `options` are those for its URLs."""
        port = "" if url.port == DEFAULT_PORTS[url.scheme] else f":{url.port}"
        self.beginning = f"{url.scheme}://{host}{port}"
        """The folded URLs up to their path."""
        self._scheme = url.scheme
        self._host = host
        self._port = url.port
        self._written = _as_written(url, host)
        self.origin = self.beginning, self._written
        """With the host as it is written."""
        self._keeps_host = host == url.host
        self.options = options
        self._by_query = options.sort_query or bool(options.drop_parameters)
        self._by_path = bool(options.drop_path_parameters)
        keeps_slash = options.trailing_slash is Folding.KEEP
        self._keeps_rest = keeps_slash and not (self._by_query or self._by_path)
        """Only the host may change."""
        self._keeps_unmarked = self._keeps_host and keeps_slash
        """URLs stay as they are without a query, or a mark of a session id in the path."""

    def stays(self, text: str) -> bool:
        """Return whether a URL with this origin stays as it is, as far as its text shows without parsing."""
        return (
            self._keeps_unmarked and not (self._by_query and "?" in text) and not (self._by_path and (";" in text or "(" in text))
        )

    def folded(self, path: str, query: str | None) -> Url | None:
        """Return the folded URL; None if nothing changes."""
        new_path, new_query = path, query
        if not self._keeps_rest:
            new_path = self.options.path(path)
            new_query = None if query is None else self.options.query(query)
        if self._keeps_host and new_path == path and new_query == query:
            return None
        text = f"{self.beginning}{new_path}" if new_query is None else f"{self.beginning}{new_path}?{new_query}"
        return Url(text, self._scheme, self._host, self._port, new_path, new_query, self._written)


class UrlFolding:
    """The URL options of a collection. The host is folded by the options of its own site, all else by those of the folded one."""

    def __init__(
        self,
        options_of: Callable[[str, int], UrlOptions],
        *,
        of_hosts: str,
        of_the_rest: str,
        of_paths: str = "",
        of_routes: str = "",
        follows_routes: Callable[[Url], bool] | None = None,
        drops_sessions_only: bool = False,
    ) -> None:
        """`options_of` returns the options of a site. `of_hosts` describes what becomes of hosts, `of_the_rest` of all else, both empty
        where there are only the built-in names of path parameters, and `of_paths` those. `drops_sessions_only`: no site has another option.
        `follows_routes` returns whether the routes of a page are followed, as described by `of_routes`; None: those of no page are."""
        self._options_of = options_of
        self.of_hosts = of_hosts
        self.of_the_rest = of_the_rest
        self.of_paths = of_paths
        self.of_routes = of_routes
        self._follows_routes = follows_routes
        self._drops_sessions_only = drops_sessions_only
        self._origins: dict[tuple[str, str, int, str], OriginFolding] = {}

    @property
    def description(self) -> list[str]:
        """Text that changes whenever URLs may be folded otherwise; empty where none is."""
        parts = [self.of_hosts, self.of_the_rest, self.of_paths, *filter(None, [self.of_routes])]
        return parts if any(parts) else []

    @property
    def keeps_routes(self) -> bool:
        """Whether there may be URLs with routes behind #."""
        return self._follows_routes is not None

    def parse(self, text: str, *, host_as_written: str | None = None) -> Url:
        """Return an absolute URL in normal form, with its route if that is followed, and not folded otherwise. Raises MalformedUrl."""
        url = parse(text, host_as_written=host_as_written, routes=self.keeps_routes)
        return url.page if url.fragment and not self._follows(self.fold(url.page)) else url

    def fold(self, url: Url) -> Url:
        """Return the folded URL: the argument itself if nothing changes."""
        if url.fragment:
            return self.folded(url) or url
        if self._drops_sessions_only and ";" not in url.path and "(" not in url.path:
            return url
        return self.folded(url) or url

    def folded(self, url: Url) -> Url | None:
        """Return the folded URL, without a route that is not followed; None if nothing changes."""
        if url.fragment:
            return self._folded_route(url)
        origin = self.origin(url)
        return None if origin is None else origin.folded(url.path, url.query)

    def origin(self, url: Url) -> OriginFolding | None:
        """Return how the URLs with the origin of this one are folded; None for a scheme that is not crawled."""
        key = url.scheme, url.host, url.port, url.host_as_written
        found = self._origins.get(key)
        if found is None and url.scheme in DEFAULT_PORTS:
            if len(self._origins) >= _CACHED_ORIGINS:
                self._origins.clear()
            found = self._origins[key] = OriginFolding(url, *self._site(url.host, url.port))
        return found

    def _folded_route(self, url: Url) -> Url | None:
        page = url.page
        folded = self.fold(page)
        if not self._follows(folded):
            return folded
        return None if folded is page else folded.with_route(url.fragment)

    def _follows(self, page: Url) -> bool:
        return self._follows_routes is not None and self._follows_routes(page)

    def _site(self, host: str, port: int) -> tuple[str, UrlOptions]:
        """Return the folded host, and the options for its URLs."""
        options = self._options_of(host, port)
        folded = options.host(host)
        if folded != host:
            there = self._options_of(folded, port)
            if there.host(folded) == folded:  # else the two sites would fold into each other
                return folded, there
        return host, options

    def as_folder(self, url: Url) -> Url:
        """Return the folder of which a URL is the page, where the slash at its end was removed; else the URL itself."""
        if self._drops_sessions_only:
            return url
        origin = self.origin(url)
        if origin is not None and origin.options.trailing_slash is Folding.REMOVE and not _looks_like_a_file(url.path):
            return structs.replace(url, path=f"{url.path.rstrip('/')}/")
        return url


def _looks_like_a_file(path: str) -> bool:
    return "." in path[path.rfind("/") + 1 :]


def _name_of(part: str) -> str:
    return part.partition("=")[0]


def _as_written(url: Url, host: str) -> str:
    """Return the folded host with the case in which it was written."""
    written = url.host_as_written
    if len(host) > len(url.host):
        return _WWW + written
    return written[len(url.host) - len(host) :]
