"""Standard fields of a page: author, published, modified, keywords, site_name, image and type.

They are taken from JSON-LD (schema.org), else from OpenGraph (https://ogp.me), else from meta elements, Dublin Core's (DCMI Metadata Terms)
and those of Highwire Press among them. What is broken or too large is ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from crawlspace.content.dates import written_time
from crawlspace.content.markup import one_spaced, scripts_of_type
from crawlspace.document import packed
from crawlspace.urls import MalformedUrl, join

MAX_JSON_LD = 1_000_000
"""Characters of all JSON-LD of a page; a page with more has none."""
MAX_METAS = 100
"""Meta elements of one name that are read."""
MAX_VALUE = 1_000
MAX_VALUES = 50
MAX_NODES = 1_000
_MAX_URL = 2_083
_MAX_KEYWORDS = 50_000
_MAX_TIME = 100
"""Characters of a text that are read."""

_SEPARATOR = re.compile(r"[,;，、؛،]")
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_CDATA = re.compile(r"\A\s*(?://|/\*)?\s*<!\[CDATA\[(?:\s*\*/)?|(?://|/\*)?\s*\]\]>(?:\s*\*/)?\s*\Z")
_SCHEMA = re.compile(r"(?:https?://(?:www\.)?schema\.org/|schema:)", re.IGNORECASE)
_NO_CONTENT = frozenset(
    "BreadcrumbList ImageObject ItemList ListItem Organization Person Place PostalAddress SearchAction SiteNavigationElement VideoObject"
    " WPFooter WPHeader WPSideBar WebSite".split()
)
"""Types that describe something else than the page's content. One that ends in Organization or Business does, too."""
_PAGES = frozenset("AboutPage CheckoutPage CollectionPage ContactPage ItemPage SearchResultsPage WebPage".split())
"""Types of a page as such: another node of the page says more."""

_OPEN_GRAPH = {
    "author": ("article:author", "book:author"),
    "published": (
        "article:published_time",
        "article:published",
        "book:release_date",
        "og:published_time",
        "og:article:published_time",
    ),
    "modified": ("article:modified_time", "article:modified", "og:updated_time", "og:modified_time", "og:article:modified_time"),
    "keywords": ("article:tag", "book:tag", "video:tag"),
    "site_name": ("og:site_name",),
    "image": ("og:image", "og:image:secure_url", "og:image:url"),
    "type": ("og:type",),
}
_META = {
    "author": "author authors dc.creator dcterms.creator dc.author citation_author parsely-author sailthru.author article_author".split(),
    "published": (
        "dcterms.issued dc.date.issued dc.issued dcterms.created dc.date.created dc.created citation_publication_date citation_date"
        " datepublished date dc.date dcterms.date pubdate publishdate publish-date publish_date publication_date parsely-pub-date"
        " sailthru.date cxenseparse:recs:publishtime article_date_original published_time published-date published_date date_published"
        " publish_time datecreated date_created originalpublicationdate"
    ).split(),
    "modified": (
        "dcterms.modified dc.date.modified dc.modified datemodified last-modified lastmod lastmodified revised modified modified_time"
        " updated_time modificationdate revision_date article_date_updated"
    ).split(),
    "keywords": ("keywords", "news_keywords", "dc.subject", "dcterms.subject", "citation_keywords"),
    "site_name": ("application-name",),
    "image": ("twitter:image", "twitter:image:src", "thumbnail"),
    "type": ("dc.type", "dcterms.type"),
}
KNOWN = frozenset(name for table in (_OPEN_GRAPH, _META) for names in table.values() for name in names)
"""Names of meta elements that are read, in lower case."""

Json = object


MetaFields = Mapping[str, Sequence[str]]
"""Fields of the user's own, with the names of the meta elements that they are taken from, in lower case."""
NO_META_FIELDS: MetaFields = {}


def meta_names(own: MetaFields) -> Collection[str]:
    """Return the names of meta elements that are read, in lower case."""
    return KNOWN.union(*own.values()) if own else KNOWN


def page_fields(metas: Mapping[str, Sequence[str]], html: str, *, base: str, own: MetaFields = NO_META_FIELDS) -> dict[str, str]:
    """Return the standard fields that a page has, and the user's own, several values packed; keywords always are.

    `metas` has the contents of its meta elements by their name or property in lower case, `html` its JSON-LD; `base` is what the URL of
    the image is relative to. A standard field is taken from the user's own names first.
    """
    json_ld = list(scripts_of_type(html, "application/ld+json"))
    if not metas and not json_ld:
        return {}
    graph = _Graph(json_ld if sum(map(len, json_ld)) <= MAX_JSON_LD else ())
    sources = (graph.values, lambda field: _contents(metas, _OPEN_GRAPH[field]), lambda field: _contents(metas, _META[field]))
    fields = {}
    for field, read in _READERS.items():
        for values_of in sources:
            value = read(values_of(field), base)
            if value:
                fields[field] = value
                break
    for field, names in own.items():
        value = _READERS.get(field, _texts)(_contents(metas, names), base)
        if value:
            fields[field] = value
    return fields


def _contents(metas: Mapping[str, Sequence[str]], names: Iterable[str]) -> list[str]:
    """Return the contents of the first of these names that has some."""
    return next((list(metas[name]) for name in names if name in metas), [])


# --- values --------------------------------------------------------------------------------------------------------


def _names(values: Sequence[str], _base: str) -> str:
    """Return who has written a page; a profile's URL, as OpenGraph has it, is no name."""
    return _texts([value for value in values if not _ADDRESS.match(value)], _base)


def _texts(values: Sequence[str], _base: str) -> str:
    found = _distinct(values)
    return found[0] if len(found) == 1 else packed(found) if found else ""


def _time(values: Sequence[str], _base: str) -> str:
    return next((time for value in values if (time := written_time(value[:_MAX_TIME]))), "")


def _keywords(values: Sequence[str], _base: str) -> str:
    found = _distinct(word for value in values for word in _SEPARATOR.split(value[:_MAX_KEYWORDS]))
    return packed(found) if found else ""


def _name(values: Sequence[str], _base: str) -> str:
    return next(iter(_distinct(values)), "")


def _image(values: Sequence[str], base: str) -> str:
    for value in values:
        if url := absolute(base, value.strip()):
            return url
    return ""


def absolute(base: str, href: str) -> str:
    """Return an http or https URL that is relative to a base; empty if it is none, or too long."""
    try:
        url = join(base, href) if len(href) <= _MAX_URL else ""
    except MalformedUrl:
        return ""
    return url if _ADDRESS.match(url) and len(url) <= _MAX_URL else ""


_READERS = {
    "author": _names,
    "published": _time,
    "modified": _time,
    "keywords": _keywords,
    "site_name": _name,
    "image": _image,
    "type": _name,
}


def _distinct(values: Iterable[str]) -> list[str]:
    """Return the first different values, in one line each and cut to the maximal length."""
    cut = (one_spaced(value[: 2 * MAX_VALUE])[:MAX_VALUE] for value in values)
    return list(islice(dict.fromkeys(value for value in cut if value), MAX_VALUES))


# --- JSON-LD -------------------------------------------------------------------------------------------------------


class _Graph:
    """The nodes of a page's JSON-LD."""

    def __init__(self, texts: Iterable[str]) -> None:
        found = list(islice((node for text in texts for node in nodes_in(json_of(text))), MAX_NODES))
        self._by_id = {id: node for node in found if isinstance(id := node.get("@id"), str) and len(node) > 1}
        self._site_names = [name for node in found if "WebSite" in types_of(node) for name in self._texts(node, "name")]
        self._content = sorted((node for node in found if _rank(node) != _OTHER), key=_rank)

    def values(self, field: str) -> list[str]:
        """Return the values of a field in the first node of the content that has it."""
        if field == "site_name" and self._site_names:
            return self._site_names
        for node in self._content:
            values = types_of(node) if field == "type" else self._texts(node, *_PROPERTIES[field])
            if values:
                return values
        return []

    def _texts(self, node: Mapping[str, Json], *names: str) -> list[str]:
        """Return the values of the first of these properties that has some."""
        for name in names:
            value = node.get(name)
            found = [text for one in (value if isinstance(value, list) else [value]) if (text := self._text(one, name))]
            if found:
                return found
        return []

    def _text(self, value: Json, name: str) -> str:
        """Return the text of a value: itself, or a node's name; the URL of an image."""
        if isinstance(value, dict):
            node = self._by_id.get(str(value.get("@id")), value)
            keys = ("url", "contentUrl", "@id") if name in _IMAGES else ("name", "@value")
            value = next((node[key] for key in keys if isinstance(node.get(key), str)), "")
        return value if isinstance(value, str) else ""


_CONTENT, _PAGE, _OTHER = 0, 1, 2
_IMAGES = ("image", "thumbnailUrl", "primaryImageOfPage")
_PROPERTIES = {
    "author": ("author", "creator"),
    "published": ("datePublished", "dateCreated", "uploadDate"),
    "modified": ("dateModified",),
    "keywords": ("keywords",),
    "site_name": ("isPartOf", "publisher"),
    "image": _IMAGES,
}


def json_of(text: str) -> Json:
    """Return the JSON of a script; None if it is broken."""
    try:
        return json.loads(_CDATA.sub("", text), strict=False)
    except (ValueError, RecursionError):
        return None


def nodes_in(value: Json) -> Iterator[dict[str, Json]]:
    """Yield the nodes of a document: it may be one, a list, or have a graph."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += reversed(value)
        elif isinstance(value, dict):
            yield value
            waiting += [
                value[name] for name in ("mainEntity", "mainEntityOfPage", "@graph") if isinstance(value.get(name), (dict, list))
            ]


def types_of(node: Mapping[str, Json]) -> list[str]:
    """Return the types of a node, those of schema.org without its address."""
    value = node.get("@type")
    return [_SCHEMA.sub("", one) for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]


def _rank(node: Mapping[str, Json]) -> int:
    types = types_of(node)
    if not types or any(name in _NO_CONTENT or name.endswith(("Organization", "Business")) for name in types):
        return _OTHER
    return _PAGE if _PAGES.issuperset(types) else _CONTENT
