"""The limits of a collection; `space.py` checks them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass

from crawlspace.document import essence
from crawlspace.settings import SpaceLimitsSection
from crawlspace.urls import DEFAULT_PORTS, Url

DEFAULT_EXCLUDED_EXTENSIONS = frozenset(
    # images
    "ai apng avif bmp cr2 cur dng dxf eps gif heic heif ico icns jfif jp2 jpe jpeg jpg nef orf pbm pgm png pnm ppm ps psd svg svgz tga "
    "tif tiff webp xbm xcf xpm "
    # audio
    "aac aif aiff amr au flac m3u m3u8 m4a m4b mid midi mka mp2 mp3 mpga oga ogg opus ra ram snd wav weba wma "
    # video
    "3g2 3gp asf avi divx f4v flv m2ts m2v m4v mkv mov mp4 mpe mpeg mpg ogv qt rm rmvb swf ts vob webm wmv "
    # archives and disk images
    "7z ace arj bz2 cab cpio dmg gz hqx img iso jar lha lz lz4 lzh lzma nupkg rar sit sitx tar tbz tbz2 tgz txz vhd vmdk war whl xz z zip "
    "zst "
    # programs
    "apk app appimage bin class deb dll dylib ear elf exe hlp ipa lib msi msix msp msu o obj pkg pyc pyd rpm scr so sys vsix xpi "
    # fonts
    "eot fnt fon otf pfb pfm ttc ttf woff woff2 "
    # styles
    "css less sass scss "
    # scripts
    "bat cjs cmd coffee js jsx map mjs ps1 vbs wasm".split()
)
"""In lower case, without the dot."""

DEFAULT_SCHEMES = frozenset(DEFAULT_PORTS)
DEFAULT_MAX_URL_LENGTH = 2083
DEFAULT_MAX_REPEATED_SEGMENTS = 3


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a crawl space besides its rules; None means no limit."""

    schemes: frozenset[str] = DEFAULT_SCHEMES
    """Lower case."""
    max_url_length: int = DEFAULT_MAX_URL_LENGTH
    """Characters of a URL in normal form."""
    follow_query_strings: bool = True
    """Whether URLs with a `?` are crawled."""
    exclude_extensions: frozenset[str] = DEFAULT_EXCLUDED_EXTENSIONS
    """Lower case, without the dot."""
    mime_types: tuple[str, ...] = SpaceLimitsSection().CRAWLSPACE_MIME_TYPES
    """Types of documents that are taken; `*` stands for any type or subtype."""
    max_path_depth: int | None = None
    """Slashes in the path, after the first."""
    max_link_depth: int | None = None
    """Maximal number of links from a start URL, which is at depth 0."""
    follow_offsite_links: bool = True
    """Whether hosts are crawled that have no start URL."""
    index_entire_site: bool = False
    """Whether only the folders of the start URLs are crawled, and what is below them."""
    max_repeated_segments: int | None = DEFAULT_MAX_REPEATED_SEGMENTS
    """How often a segment may come in a path."""
    max_urls_per_host: int | None = None
    """Admitted URLs of a host."""

    def as_json(self) -> dict[str, object]:
        """Return the limits by name, for a hash: equal for equal limits, in each process."""
        return {name: sorted(value) if isinstance(value, frozenset) else value for name, value in asdict(self).items()}


def extension(path: str) -> str:
    """Return the file extension of a URL's path in lower case, without the dot; empty if it has none.

    It is that of the last path segment, without path parameters: `/a.b/Photo.JPG;size=2` has `jpg`. That of compressed XML, such as
    `/sitemap.xml.gz`, is `xml`.
    """
    name = path[path.rfind("/") + 1 :]
    if ";" in name:
        name = name[: name.index(";")]
    name = name.lower()
    if name.endswith(".xml.gz"):
        return "xml"
    dot = name.rfind(".")
    return name[dot + 1 :] if dot >= 0 else ""


def changes_of_built_in(excluded: frozenset[str]) -> list[str]:
    """Return what makes the built-in list into another one, as in `+log`, `-ps`: what is added, then what is taken away."""
    added, taken = excluded - DEFAULT_EXCLUDED_EXTENSIONS, DEFAULT_EXCLUDED_EXTENSIONS - excluded
    return [*(f"+{name}" for name in sorted(added)), *(f"-{name}" for name in sorted(taken))]


def path_depth(path: str) -> int:
    """Return the number of slashes after the site root: 0 for `/` and `/a`, 2 for `/a/b/c.html`."""
    return max(path.count("/") - 1, 0)


def repeats_segments(path: str, most: int) -> bool:
    """Return whether a path segment occurs more than `most` times in the path.

    This includes repeated sequences: five repetitions contain each segment five times. An empty segment between two slashes
    counts; the empty end of a path that ends in a slash doesn't. Segments are case-sensitive.
    """
    if path.count("/") <= most:
        return False
    segments = path.strip("/").split("/") if "//" not in path else path.removeprefix("/").removesuffix("/").split("/")
    if len(segments) - len(set(segments)) < most:
        return False
    return max(Counter(segments).values()) > most


def site_of(url: Url) -> str:
    """Return the host, with the port unless it is the scheme's default: http and https of a host are one site here."""
    return url.host if DEFAULT_PORTS.get(url.scheme) == url.port else f"{url.host}:{url.port}"


def folders(urls: Iterable[Url]) -> frozenset[str]:
    """Return site and path up to the last slash of each URL, for `in_folders`."""
    return frozenset(site_of(url) + url.path[: url.path.rfind("/") + 1] for url in urls)


def in_folders(url: Url, allowed: frozenset[str]) -> bool:
    """Return whether a URL is in one of the folders or below; the cost depends on the depth of its path only."""
    site, path = site_of(url), url.path
    end = path.find("/") + 1
    while end > 0:
        if site + path[:end] in allowed:
            return True
        end = path.find("/", end) + 1
    return False


def mime_allowed(mime_types: Collection[str], declared: str | None) -> bool:
    """Return whether a type is allowed; `text/*` and `application/vnd.a.*` allow all types with that beginning.

    True if no type is declared.
    """
    mime_type = essence(declared)
    if not mime_type or mime_type in mime_types:
        return True
    return any(_is_of(mime_type, allowed.strip().lower()) for allowed in mime_types)


def _is_of(mime_type: str, allowed: str) -> bool:
    if allowed in {"*", "*/*"}:
        return True
    return mime_type.startswith(allowed[:-1]) if allowed.endswith("*") else mime_type == allowed
