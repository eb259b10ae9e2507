"""What assistants may ask of collections by the Model Context Protocol: to search, to read documents, and why a URL is crawled or not.

Nothing is changed, and only the collections that were named are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import zip_longest
from typing import Annotated

from pydantic import Field

from crawlspace.admin.explain import Question
from crawlspace.clock import Clock, iso
from crawlspace.config.collection import load_collection
from crawlspace.document import Document
from crawlspace.errors import CrawlspaceError, UsageError
from crawlspace.index.orders import part_url
from crawlspace.index.search import Hit, read_filter
from crawlspace.runtime.components.explanation_text import decision_lines, known_lines
from crawlspace.runtime.lookups.documents import stored_document
from crawlspace.runtime.session.paths import CollectionPaths
from crawlspace.runtime.session.project import ProjectCollections
from crawlspace.runtime.session.searching import search, without_marks
from crawlspace.runtime.session.url_details import explain_urls
from crawlspace.text import quoted

MOST_CHARACTERS = 50_000
"""Of the content of a document in one answer."""

# The results of tools have no slots: the SDK would take these for defaults of their fields.


@dataclass(frozen=True, slots=True)
class NamedCollection:
    """A collection that may be asked."""

    name: str
    documents: int
    error: str = ""


@dataclass(frozen=True)
class NamedCollections:
    collections: list[NamedCollection]


@dataclass(frozen=True, slots=True)
class PassagePart:
    """A section of a document that has words of the search."""

    part: str
    url: str
    headings: list[str]
    snippet: str


@dataclass(frozen=True, slots=True)
class Passage:
    """A document found. `id` is what `fetch` takes."""

    id: str
    collection: str
    title: str
    url: str
    snippet: str
    language: str
    parts: list[PassagePart] = field(default_factory=list)


@dataclass(frozen=True)
class Passages:
    results: list[Passage]
    total: int
    notes: list[str]
    """Why a collection could not be searched."""


@dataclass(frozen=True)
class FetchedText:
    """A document, or a part of one, as Markdown."""

    id: str
    title: str
    url: str
    date: str | None
    """When its page was fetched last."""
    modified: str
    digest: str
    """SHA-256 of the whole content: it changes when the content does."""
    text: str
    characters: int
    next_start: int | None
    """`start` of the rest; null at the end."""
    parts: list[str]


@dataclass(frozen=True, slots=True)
class UrlAnswer:
    """Whether a URL is crawled, and why."""

    collection: str
    admitted: bool
    reason: str
    sentence: str
    rule: str | None
    explanation: str


@dataclass(frozen=True)
class UrlAnswers:
    answers: list[UrlAnswer]


CollectionName = Annotated[str, Field(description="the name of a collection; empty: all that may be asked")]


class AssistantTools:
    """The tools. Each raises CrawlspaceError with a sentence for whoever asks."""

    def __init__(self, project: ProjectCollections, names: Sequence[str], clock: Clock) -> None:
        """Raises UnknownCollection for a name that no collection has, ConfigError for one that can't be read."""
        self._project = project
        self._names = tuple(dict.fromkeys(names))
        self._clock = clock
        for name in self._names:
            project.paths(name)

    def list_collections(self) -> NamedCollections:
        """List the collections of web pages that can be searched here, with the number of their documents."""
        return NamedCollections([self._row(name) for name in self._names])

    def search(
        self,
        query: Annotated[
            str,
            Field(
                description='words that must all occur; "two words" for adjacent ones, holi* for a beginning', max_length=2_000
            ),
        ],
        collection: CollectionName = "",
        limit: Annotated[int, Field(ge=1, le=50, description="documents at most, for each collection")] = 10,
        filters: Annotated[
            list[str] | None,
            Field(description="conditions such as language=de, host=www.example.com, type=pdf, modified=2026-01-01.."),
        ] = None,
    ) -> Passages:
        """Search in the text of crawled web pages and files, best matches first; of several collections, the best of each, then the second best.

        Read a result as a whole with `fetch` and its id.
        """
        found_in: list[list[Passage]] = []
        total, notes = 0, list[str]()
        conditions = [read_filter(written) for written in filters or ()]
        for name in self._chosen(collection):
            try:
                found = search(self._project.paths(name), query, limit=limit, filters=conditions, only_own=True).result
            except UsageError:
                raise
            except CrawlspaceError as error:
                if collection:
                    raise
                notes.append(f"{name}: {error}")
                continue
            total += found.total
            found_in.append([_passage(name, hit) for hit in found.hits])
        by_rank = zip_longest(*found_in)  # scores of different indexes cannot be compared
        return Passages([one for rank in by_rank for one in rank if one is not None], total, notes)

    def fetch(
        self,
        id: Annotated[str, Field(description="the id of a search result: COLLECTION/URL", max_length=20_000)],
        part: Annotated[str, Field(description="the key of one part of the document; empty: the whole", max_length=1_000)] = "",
        start: Annotated[int, Field(ge=0, description="the first character, for a document that is longer than one answer")] = 0,
    ) -> FetchedText:
        """Read a document, or a part of it, as Markdown, with its URL, the date of its last fetch and a digest of its content."""
        name, _, url = id.partition("/")
        (name,) = self._chosen(name or "/")
        paths = self._project.paths(name)
        with stored_document(paths, url=url) as found:
            if found is None:
                raise UsageError(f"{name} has no document {quoted(url)} in the index")
            document = found.document
            content = _part_of(document, part) if part else found.markdown(lambda: load_collection(name, paths.settings))
            fetched_at = None if found.state is None else found.state.fetched_at
        end = start + MOST_CHARACTERS
        return FetchedText(
            f"{name}/{document.url}",
            document.title,
            document.url if not part else _url_of_part(document, part),
            None if fetched_at is None else iso(fetched_at),
            document.modified,
            sha256(content.encode("utf-8", "replace")).hexdigest(),
            content[start:end],
            len(content),
            end if end < len(content) else None,
            [one.key for one in document.parts],
        )

    def explain_url(
        self,
        url: Annotated[str, Field(description="a URL with its scheme", max_length=20_000)],
        collection: CollectionName = "",
    ) -> UrlAnswers:
        """Explain why a URL is in a collection or not: the rule that decides, what is known of the page, and whether it is in the index."""
        return UrlAnswers([self._explained(self._project.paths(name), url) for name in self._chosen(collection)])

    def _chosen(self, name: str) -> Sequence[str]:
        """Return the collections that are asked. Raises UsageError for one that must not be, whether it exists or not."""
        if not name:
            return self._names
        if name not in self._names:
            raise UsageError(f"there is no collection {quoted(name)} here: there are {', '.join(self._names)}")
        return (name,)

    def _row(self, name: str) -> NamedCollection:
        try:
            with self._project.paths(name).store.reading() as opened:
                return NamedCollection(name, 0 if opened is None else opened.store.counts().indexed)
        except CrawlspaceError as error:
            return NamedCollection(name, 0, str(error))

    def _explained(self, paths: CollectionPaths, url: str) -> UrlAnswer:
        collection = load_collection(paths.name, paths.settings)
        with ExitStack() as stack:
            opened = stack.enter_context(paths.store.reading())
            (answer,) = explain_urls([Question(url)], paths, collection, opened=opened, clock=self._clock)
        decision = answer.decision
        return UrlAnswer(
            paths.name,
            decision.admitted,
            decision.reason.value,
            decision.reason.sentence,
            None if decision.rule is None else str(decision.rule),
            "\n".join((*decision_lines(answer), *known_lines(answer))),
        )


def _passage(name: str, hit: Hit) -> Passage:
    parts = [PassagePart(part.key, part.url, list(part.headings), without_marks(part.snippet)[0]) for part in hit.parts]
    return Passage(f"{name}/{hit.url}", name, hit.title, hit.url, without_marks(hit.snippet)[0], hit.language, parts)


def _part_of(document: Document, key: str) -> str:
    """Return a part as Markdown: the headings that it stands under, and its text. Raises UsageError."""
    part = next((one for one in document.parts if one.key == key), None)
    if part is None:
        raise UsageError(
            f"{document.url} has no part {quoted(key)}: it has {', '.join(one.key for one in document.parts) or 'none'}"
        )
    headings = "".join(f"{'#' * min(level, 6)} {heading}\n\n" for level, heading in enumerate(part.headings, 1))
    return f"{headings}{part.text}"


def _url_of_part(document: Document, key: str) -> str:
    return next(part_url(document.url, one.anchor) for one in document.parts if one.key == key)
