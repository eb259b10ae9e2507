"""The settings of what is taken from pages and files, and kept; `crawlspace.settings` has them with all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, field

from crawlspace.setting_types import Count, Listed, Section, Whole, Words, seconds


class ContentSection(Section, frozen=True):
    """Content."""

    CRAWLSPACE_LINK_TAGS: Words = ("a", "area", "frame", "iframe", "link", "meta")
    """Elements whose links are followed. `link` is for next, prev, alternate and canonical, without alternates for programs
    such as feeds; the canonical page of a `Link` header too; `meta` is its refresh. Pairs such as `img@src` add [attributes
    of your own](collections.md#links-in-other-attributes)."""
    CRAWLSPACE_MAX_LINKS: Count = 10_000
    """Links taken from one page; the others are left out."""
    CRAWLSPACE_TRUNCATE_PAGES: bool = False
    """`True`: of a page with more than `DOWNLOAD_MAXSIZE` bytes, so many are read and indexed, instead of none (615); its document
    has the field `text_status` with the value `cut`. Files are not cut: see `CRAWLSPACE_FILE_MAXSIZE`."""
    CRAWLSPACE_META_FIELDS: object = field(default_factory=dict)
    """Fields that are taken from `meta` elements of pages: `{"audience": "DC.audience", "team": ["team", "department"]}`; see
    [fields of a page](collections.md#fields-of-a-page)."""
    CRAWLSPACE_EXCLUSION_MARKS: Words = (
        *("googleoff", "noindex", "data-nosnippet", "data-elastic-exclude", "data-elastic-include"),
        *("data-pagefind-ignore", "data-pagefind-body"),
    )
    """[Marks](collections.md#parts-that-a-page-leaves-out) by which pages leave parts of themselves out of the index. Empty: all
    is taken."""
    CRAWLSPACE_MAIN_CONTENT: Literal["all", "main"] = "all"
    """What the text of a page is taken from: all of it, or its [main content](collections.md#main-content), without navigation,
    header and footer. `"main"` needs trafilatura, the [extra](install.md#extras) `article`."""
    CRAWLSPACE_BOILERPLATE: Literal["", "site"] = ""
    """`"site"`: blocks on more than half of a site's pages are [left out](collections.md#boilerplate) of their text."""
    CRAWLSPACE_MARKDOWN: bool = False
    """Whether documents have the content of their page as [Markdown](collections.md#markdown), too."""
    CRAWLSPACE_PARTS: Literal["", "headings"] = ""
    """`"headings"`: the sections of a page are [parts](collections.md#parts-of-a-page) of its document, each found by itself."""
    CRAWLSPACE_PART_MAX_CHARS: Annotated[int, Meta(ge=200, le=1_000_000)] = 2_000
    """Characters of such a part. A longer section is several parts."""
    CRAWLSPACE_CHECKSUM_CUT_OFF: Whole = 0
    """Bytes from the start of the text that count when pages are compared. 0: all."""
    CRAWLSPACE_CHECKSUM_TITLE: bool = True
    """Whether pages with the same text and different titles are different documents. A title that changes is sent to the index
    either way."""
    CRAWLSPACE_NEAR_DUPLICATES: Literal[0, 3, 6] = 0
    """Whether pages with nearly the same text are [duplicates](collections.md#near-duplicates): `3` if about 0.2 % of their words
    differ at most, `6` if about 1 % do. 0: only pages with the same text are."""


class SitemapSection(Section, frozen=True):
    """Sitemaps and feeds."""

    CRAWLSPACE_FOLLOW: Literal["links", "sitemaps", "both"] = "both"
    """Where URLs are found: in the links of pages, in [sitemaps and feeds](sitemaps.md), or in both."""
    CRAWLSPACE_SITEMAPS: Listed = ()
    """Sitemaps and feeds in addition to those that robots.txt and pages name, as a list or separated by commas."""
    CRAWLSPACE_SITEMAP_GUESS: bool = True
    """Whether `/sitemap.xml` is requested at a site whose robots.txt names no sitemap."""
    CRAWLSPACE_SITEMAP_REFRESH: Annotated[float, seconds(1)] | None = None
    """The time until a sitemap or feed is fetched again. `None`: `CRAWLSPACE_REFRESH_MIN`. At most `CRAWLSPACE_REFRESH_MAX`."""
    CRAWLSPACE_SITEMAP_MAX_ENTRIES: Count = 50_000
    """URLs taken from one sitemap or feed, and sitemaps from one index file; the others are left out."""
    CRAWLSPACE_SITEMAP_MAXSIZE: Count = 100 * 1024 * 1024
    """Bytes read of a sitemap, after decompression; the rest is left out. `CRAWLSPACE_FILE_MAXSIZE` is for what is sent."""
    CRAWLSPACE_MAX_SITEMAPS_PER_HOST: Count = 1_000
    """Sitemaps that index files of one host may name in a run."""


class FileSettings(Section, frozen=True):
    """Files."""

    max_bytes: Count = field(default=100 * 1024 * 1024, name="CRAWLSPACE_FILE_MAXSIZE")
    """Bytes of a file. A larger one is found by its name only. `DOWNLOAD_MAXSIZE` is for pages."""
    processes: Annotated[int, Meta(ge=1, le=64)] = field(default=1, name="CRAWLSPACE_FILE_PROCESSES")
    """Processes that read files."""
    timeout_s: Annotated[float, seconds(1)] = field(default=30.0, name="CRAWLSPACE_FILE_TIMEOUT")
    """The longest that reading one file may take."""
    memory_bytes: Annotated[int, Meta(ge=64 * 1024 * 1024)] = field(default=512 * 1024 * 1024, name="CRAWLSPACE_FILE_MEMORY")
    """Bytes of memory that such a process may take for reading."""
    follow_links: bool = field(default=False, name="CRAWLSPACE_FOLLOW_FILE_LINKS")
    """Whether hyperlinks in files are followed."""
    converters: Mapping[str, str] = field(default_factory=dict, name="CRAWLSPACE_CONVERTERS")
    """What reads other types: `{"application/msword": "antiword -m UTF-8.txt {file}"}`; see [converters](files.md#converters)."""


class ArchiveSection(Section, frozen=True):
    """Archive."""

    CRAWLSPACE_ARCHIVE: bool = True
    """Whether what is fetched is kept as WARC files."""
    CRAWLSPACE_ARCHIVE_DIR: str = ""
    """Folder that holds a folder with the files of each collection, such as one that several machines share. Empty: `archive`
    in the collection's data folder."""
    CRAWLSPACE_ARCHIVE_MAX_BYTES: Annotated[int, Meta(ge=1_000_000)] | None = None
    """Bytes of the archive of a collection. Above it, superseded records are dropped, then the oldest pages. `None`: no limit."""
