"""Read the settings of content: what a page yields, how files are read, what is archived, and what is sent without its text."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from msgspec import structs

from crawlspace.config.sentences import read
from crawlspace.content.documents.converters import FILE, command_words, is_server
from crawlspace.content.exclusion_marks import EXCLUSION_MARKS
from crawlspace.content.links import ANY
from crawlspace.content.metadata import MetaFields
from crawlspace.content.page import EXTRACTION, has_trafilatura
from crawlspace.content.page_reader import PageReader
from crawlspace.content.sitemaps import SitemapLimits
from crawlspace.content_settings import ArchiveSection, ContentSection, FileSettings, SitemapSection
from crawlspace.document import field_fault
from crawlspace.errors import SettingError, did_you_mean
from crawlspace.parsing import table
from crawlspace.rules.url_options import UrlFolding
from crawlspace.settings import IndexSection, OfScrapySection, SitesSection
from crawlspace.text import quoted
from crawlspace.urls import MalformedUrl, Url, document_id, parse

CONVERTERS = "CRAWLSPACE_CONVERTERS"
_SITEMAPS = "CRAWLSPACE_SITEMAPS"
_META_FIELDS = "CRAWLSPACE_META_FIELDS"
_META_EXAMPLE = '{"audience": "DC.audience", "team": ["team", "department"]}'
_TAGS, _URL = "CRAWLSPACE_LINK_TAGS", "CRAWLSPACE_CONTENT_URL"
_PAIR = re.compile(r"""(\*|[a-z][^\s"'<>/=@*]*)@([^\s"'<>/=@*]+)""")
_SAME = {("a", "href"): "a", ("area", "href"): "area"}
"""What is written as a pair, and is meant by the name of the element."""
_LISTS = frozenset({"srcset", "imagesrcset"})
"""Attributes with several URLs, each with a size."""
_CONVERTER = '{"application/msword": "antiword -m UTF-8.txt {file}", "image/*": "http://tika.example.com:9998/tika"}'
_DOCUMENT_URL = "https://console.example.com/content/{id}"
_NAMES = ("collection", "id", "url")
_MOST_BYTES_OF_A_CHARACTER = 4


@dataclass(frozen=True, slots=True)
class ContentSettings:
    link_tags: frozenset[str]
    """Names of elements."""
    link_pairs: frozenset[tuple[str, str]]
    """Elements and attributes of the user's own that hold links."""
    max_links: int
    truncates: bool
    """Of a page that is too large, the beginning is read."""
    meta_fields: MetaFields
    exclusion_marks: frozenset[str]
    is_main: bool
    """The text is that of the main content."""
    boilerplate: bool
    """Blocks that were learned are left out."""
    markdown: bool
    """Documents have their content as Markdown."""
    part_chars: int
    """Characters of a part made of a section; 0: sections are no parts."""
    checksum_cut_off: int
    checksum_title: bool
    near_duplicates: int
    """The distance between the simhashes of near duplicates; 0: there are none."""
    obey_meta_robots: bool

    def page_reader(self, agent_names: tuple[str, ...] = ()) -> PageReader:
        """Return the reader of a collection's pages. `agent_names`: names of meta elements to obey besides `robots`."""
        return PageReader(self.link_tags, self.link_pairs, self.max_links, agent_names, self.exclusion_marks, self.meta_fields)

    @property
    def extraction(self) -> tuple[int, list[str]]:
        """The version of what is taken from pages, and what links are taken from, sorted: `a`, `img@src`."""
        return EXTRACTION, sorted([*self.link_tags, *map("@".join, self.link_pairs)])

    @property
    def text_and_fields(self) -> tuple[object, ...]:
        """What text and fields are taken from, sorted; empty with the defaults."""
        left = sorted(set(EXCLUSION_MARKS) - self.exclusion_marks)
        return tuple(filter(None, [left, sorted(self.meta_fields.items()), "main" if self.is_main else "", self._further]))

    @property
    def _further(self) -> list[object]:
        """What documents have besides text and fields, and signatures; empty with the defaults."""
        given = (
            ("boilerplate", self.boilerplate),
            ("markdown", self.markdown),
            (f"parts {self.part_chars}", self.part_chars),
            (f"near duplicates {self.near_duplicates}", self.near_duplicates),
        )
        return [name for name, value in given if value]


def read_content(settings: Mapping[str, object], *, robots_obey: bool) -> ContentSettings:
    """Return the settings of content; meta robots are obeyed as robots.txt is, unless set separately. Raises SettingError."""
    given, meta_robots = read(ContentSection, settings), read(SitesSection, settings).CRAWLSPACE_META_ROBOTS
    tags, pairs = _link_tags(given, follows_refreshes=read(OfScrapySection, settings).METAREFRESH_ENABLED)
    return ContentSettings(
        link_tags=tags,
        link_pairs=pairs,
        max_links=given.CRAWLSPACE_MAX_LINKS,
        truncates=given.CRAWLSPACE_TRUNCATE_PAGES,
        meta_fields=read_meta_fields(given.CRAWLSPACE_META_FIELDS),
        exclusion_marks=_exclusion_marks(given.CRAWLSPACE_EXCLUSION_MARKS),
        is_main=_is_main(given.CRAWLSPACE_MAIN_CONTENT),
        boilerplate=bool(given.CRAWLSPACE_BOILERPLATE),
        markdown=given.CRAWLSPACE_MARKDOWN,
        part_chars=given.CRAWLSPACE_PART_MAX_CHARS if given.CRAWLSPACE_PARTS else 0,
        checksum_cut_off=given.CRAWLSPACE_CHECKSUM_CUT_OFF,
        checksum_title=given.CRAWLSPACE_CHECKSUM_TITLE,
        near_duplicates=given.CRAWLSPACE_NEAR_DUPLICATES,
        obey_meta_robots=robots_obey if meta_robots is None else meta_robots,
    )


def _link_tags(given: ContentSection, *, follows_refreshes: bool) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """Return the elements and the pairs of element and attribute that links are taken from. Raises SettingError."""
    found = [word.lower() for word in given.CRAWLSPACE_LINK_TAGS]
    if not found:
        raise SettingError(f"{_TAGS} is empty; {_MAY_HOLD}")
    pairs = {_pair(word) for word in found if "@" in word}
    tags = {word for word in found if "@" not in word}.union(_SAME[pair] for pair in pairs if pair in _SAME)
    for tag in sorted(tags.difference(_ELEMENTS)):
        raise SettingError(f"{_TAGS} has {quoted(tag)}: {_meant(tag)}")
    if not follows_refreshes:
        tags.discard("meta")
    return frozenset(tags), frozenset(pairs.difference(_SAME))


_ELEMENTS = ContentSection().CRAWLSPACE_LINK_TAGS
_MAY_HOLD = (
    f"it may hold {', '.join(_ELEMENTS)}, and pairs of element and attribute, as in img@src, or *@data-url for any element"
)


def _meant(tag: str) -> str:
    if re.fullmatch(r"[a-z][a-z0-9-]*", tag):
        return did_you_mean(tag, _ELEMENTS, f"name the attribute that has the link, as in {tag}@src; {_MAY_HOLD}")
    return _MAY_HOLD


def _pair(word: str) -> tuple[str, str]:
    """Raises SettingError."""
    match = _PAIR.fullmatch(word)
    if match is None:
        is_path = re.fullmatch(r"[^/@]+/@[^/@]+", word)
        meant = f"did you mean {quoted(word.replace('/@', '@'))}?" if is_path else _MAY_HOLD
        raise SettingError(f"{_TAGS} has {quoted(word)}: {meant}")
    element, attribute = match.groups()
    if attribute in _LISTS:
        instead = f"{element}@src" if element != ANY else "img@src"
        raise SettingError(
            f"{_TAGS} has {quoted(word)}, and links are not taken from {attribute}, which holds several with their sizes; leave it out, or"
            f" take {quoted(instead)}"
        )
    return element, attribute


def _exclusion_marks(words: Sequence[str]) -> frozenset[str]:
    """Raises SettingError."""
    found = [word.lower() for word in words]
    for word in found:
        if word not in EXCLUSION_MARKS:
            meant = did_you_mean(word, EXCLUSION_MARKS, f"it may hold {', '.join(EXCLUSION_MARKS)}")
            raise SettingError(f"CRAWLSPACE_EXCLUSION_MARKS has {quoted(word)}: {meant}")
    return frozenset(found)


def _is_main(content: str) -> bool:
    """Raises SettingError."""
    if content == "main" and not has_trafilatura():
        raise SettingError(
            'CRAWLSPACE_MAIN_CONTENT is "main", and trafilatura, which finds the content of pages that do not mark it, is not installed:'
            " pip install 'crawlspace[article]', or trafilatura itself"
        )
    return content == "main"


def read_meta_fields(value: object) -> MetaFields:
    """Return the names of meta elements, in lower case, by the field that is taken from them. Raises SettingError."""
    found: dict[str, Sequence[str]] = {}
    for key, names in table(_META_FIELDS, value, example=_META_EXAMPLE).items():
        name = str(key)
        if fault := field_fault(name):
            raise SettingError(f"{_META_FIELDS} names {quoted(name)}{fault}")
        written = [names] if isinstance(names, str) else names
        if (
            not isinstance(written, (list, tuple))
            or not written
            or not all(isinstance(one, str) and one.strip() for one in written)
        ):
            raise SettingError(
                f"{_META_FIELDS} has {quoted(repr(names))} for {name}; write names of meta elements, as in {_META_EXAMPLE}"
            )
        found[name] = [one.strip().lower() for one in written]
    return found


@dataclass(frozen=True, slots=True)
class SitemapSettings:
    """Where sitemaps are looked for, besides robots.txt and links, and their limits."""

    urls: tuple[Url, ...]
    """Those of CRAWLSPACE_SITEMAPS."""
    guess: bool
    limits: SitemapLimits
    max_per_host: int


def read_sitemaps(
    settings: Mapping[str, object], folding: UrlFolding, *, are_read: Callable[[str, int], bool]
) -> SitemapSettings:
    """Return the settings of sitemaps and feeds; `are_read`: whether those of a host and port are. Raises SettingError."""
    given = read(SitemapSection, settings)
    urls: list[Url] = []
    for text in given.CRAWLSPACE_SITEMAPS:
        try:
            url = parse(text)
        except MalformedUrl as error:
            raise SettingError(
                f"{_SITEMAPS} has {quoted(text)}, which is no URL ({error}); write one such as http://www.example.com/sitemap.xml"
            ) from None
        if not are_read(url.host, url.port):
            raise SettingError(
                f'{_SITEMAPS} has {quoted(text)}, and for its site CRAWLSPACE_FOLLOW is "links": write "both" or "sitemaps"'
            )
        urls.append(folding.fold(url))
    return SitemapSettings(
        urls=tuple(urls),
        guess=given.CRAWLSPACE_SITEMAP_GUESS,
        limits=SitemapLimits(given.CRAWLSPACE_SITEMAP_MAX_ENTRIES, given.CRAWLSPACE_SITEMAP_MAXSIZE),
        max_per_host=given.CRAWLSPACE_MAX_SITEMAPS_PER_HOST,
    )


def read_file_settings(settings: Mapping[str, object]) -> FileSettings:
    """Return the settings of files, with the converters by type, or the beginning of types with a star. Raises SettingError."""
    given = read(FileSettings, settings)
    return structs.replace(given, converters=read_converters(given.converters))


def check_converters(files: FileSettings) -> None:
    """Raise SettingError if the program of a converter cannot be run."""
    for kind, converter in files.converters.items():
        program = "" if is_server(converter) else command_words(converter)[0]
        if program and shutil.which(program) is None:
            raise SettingError(
                f"{CONVERTERS}: the command for {kind} begins with {quoted(program)}, which is no program that can be run; install it, or"
                " correct its path"
            )


def read_converters(value: object) -> Mapping[str, str]:
    """Return the converters by type. Raises SettingError for the first that is wrong."""
    found: dict[str, str] = {}
    for key, converter in table(CONVERTERS, value, example=_CONVERTER).items():
        kind = str(key).strip().lower()
        if kind.count("/") != 1 or "*" in kind[:-1]:
            raise SettingError(
                f"{CONVERTERS} names {quoted(str(key))}, which is no type; write one such as application/msword or image/*"
            )
        if not isinstance(converter, str) or not converter.strip():
            raise SettingError(f"{CONVERTERS} has no command for {kind}; write one, as in {_CONVERTER}")
        _check_converter(kind, converter)
        found[kind] = converter.strip()
    return found


def _check_converter(kind: str, converter: str) -> None:
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
            f" write it, as in {_CONVERTER}"
        )


@dataclass(frozen=True, slots=True)
class ReferenceSettings:
    """`is_archived`: without an archive, there is nothing to refer to."""

    is_archived: bool = False
    max_bytes: int | None = None
    """Of the text of a document that is sent whole; None: no limit."""
    url: str = ""
    """Template of the URL of a document; empty: it has none."""
    collection: str = ""

    def is_too_large(self, text: str) -> bool:
        """Return whether a text has more bytes than are sent."""
        most = self.max_bytes
        if most is None or len(text) * _MOST_BYTES_OF_A_CHARACTER <= most:
            return False
        return len(text) > most or len(text.encode("utf-8", "surrogatepass")) > most

    def url_of(self, url: str) -> str:
        """Return the URL that the document of a URL can be had at; empty where there is none."""
        if not self.url:  # as for most collections: nothing is computed for each document then
            return ""
        values = {"collection": self.collection, "id": document_id(url), "url": url}
        return re.sub(r"\{(\w+)\}", lambda found: quote(values[found[1]], safe=""), self.url)


ALL_WHOLE = ReferenceSettings()
"""All documents are sent with their text."""


def read_references(settings: Mapping[str, object], collection: str) -> ReferenceSettings:
    """Return the settings of a collection. Raises SettingError."""
    archive, index = read(ArchiveSection, settings), read(IndexSection, settings)
    return ReferenceSettings(
        is_archived=archive.CRAWLSPACE_ARCHIVE,
        max_bytes=index.CRAWLSPACE_INLINE_MAX_BYTES,
        url=_template(index.CRAWLSPACE_CONTENT_URL),
        collection=collection,
    )


def _template(value: str) -> str:
    """Return the template of the URL of a document. Raises SettingError."""
    if not value:
        return ""
    if not re.match(r"https?://[^/\s]\S*$", value):
        raise SettingError(f"{_URL} is {quoted(value)}; write a URL with {{id}} or {{url}}, as in {_DOCUMENT_URL}")
    names = re.findall(r"\{(\w*)\}", value)
    unknown = [name for name in names if name not in _NAMES]
    if unknown or re.search(r"[{}]", re.sub(r"\{\w*\}", "", value)):
        what = f"holds {{{unknown[0]}}}" if unknown else "has a brace of its own"
        raise SettingError(
            f"{_URL} is {quoted(value)} and {what}; there are {{id}}, {{url}} and {{collection}}, as in {_DOCUMENT_URL}"
        )
    if not {"id", "url"}.intersection(names):
        raise SettingError(
            f"{_URL} is {quoted(value)}, which is one URL for all documents; write {{id}} or {{url}} into it, as in {_DOCUMENT_URL}"
        )
    return value


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """`folder` is that of the collection, whether it is archived or not."""

    is_on: bool
    folder: Path
    max_bytes: int | None
    """None: no limit."""


def read_archive(settings: Mapping[str, object], data_folder: Path) -> ArchiveSettings:
    """Return the settings of a collection with that data folder. Raises SettingError."""
    given = read(ArchiveSection, settings)
    return ArchiveSettings(
        is_on=given.CRAWLSPACE_ARCHIVE,
        folder=archive_folder(settings, data_folder),
        max_bytes=given.CRAWLSPACE_ARCHIVE_MAX_BYTES,
    )


def archive_folder(settings: Mapping[str, object], data_folder: Path) -> Path:
    """Return the folder with the files of a collection; elsewhere they are in a folder of its name, so that collections may share it."""
    elsewhere = read(ArchiveSection, settings).CRAWLSPACE_ARCHIVE_DIR
    return Path(elsewhere) / data_folder.name if elsewhere else data_folder / "archive"
