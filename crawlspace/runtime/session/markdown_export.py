"""`scrapy export NAME --markdown DIR`: each document as a file of Markdown, with its fields in front, in a folder for its host.

The folder has a manifest with a line of JSON for each file: its URL, the id of its document, and its digest. Another export to the same
folder writes only what differs, and removes the files of documents that have left the index: two manifests show what has changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from crawlspace.config.content import ContentSettings
from crawlspace.config.extraction import ExtractionScope
from crawlspace.content.boilerplate import NO_BLOCKS, SiteBlocks
from crawlspace.content.extraction import RuledPage
from crawlspace.content.extraction_rules import ExtractionRules
from crawlspace.document import FOR_PROGRAMS, Document, with_values
from crawlspace.errors import StoreError, UsageError
from crawlspace.runtime.components.archived_responses import FetchedHtml
from crawlspace.text import printable, quoted
from crawlspace.urls import document_id, parse

MANIFEST = "manifest.jsonl"
_JOURNAL = ".manifest.new"
"""The files of the export that is under way, after those of the one before: what a killed one has written is known to the next."""
_UNSAFE = re.compile(r"[^\w.~@+,=-]+")
_LONGEST_NAME = 55
"""Characters, of four bytes each at most: names of files may have 255 bytes."""
_DEEPEST = 20
"""Folders in each other."""


class MarkdownOf:
    """Returns the content of archived pages as Markdown, as a crawl with the present settings and extraction rules would."""

    def __init__(self, content: ContentSettings, rules: ExtractionRules, learned: Mapping[str, SiteBlocks]) -> None:
        """`learned` are the blocks that are left out, by site."""
        self._content = content
        self._learned = learned
        self._scope = ExtractionScope(rules)

    def __call__(self, url: str, fetched: FetchedHtml) -> str:
        marks = self._content.exclusion_marks
        blocks = self._learned.get(parse(url).site, NO_BLOCKS).blocks if self._learned else ()
        page = RuledPage(fetched.html, url=url, base=fetched.page.base, exclusion_marks=marks, boilerplate=blocks)
        _, elements = page.content(self._scope.of(url).texts, is_main=self._content.is_main)
        return page.markdown(elements)


class MarkdownFiles(NamedTuple):
    """The result of an export."""

    written: int
    unchanged: int
    removed: int


def export_markdown(
    documents: Iterable[Document], folder: Path, *, page_of: Callable[[str], FetchedHtml | None], markdown: MarkdownOf
) -> MarkdownFiles:
    """Write documents to a folder, which is made where it is missing. `page_of` returns the archived page of a URL, if it is HTML.

    A document that has its content as Markdown is written with that. Raises UsageError for a folder with other files, and StoreError if it cannot be written.
    """
    try:
        return _exported(documents, folder, page_of, markdown)
    except OSError as error:
        raise StoreError(f"the export to {printable(str(folder))} cannot be written: {error.strerror or error}") from error


def _exported(
    documents: Iterable[Document], folder: Path, page_of: Callable[[str], FetchedHtml | None], markdown: MarkdownOf
) -> MarkdownFiles:
    before = _known_files(folder)
    folder.mkdir(parents=True, exist_ok=True)
    after: set[str] = set()
    lower: set[str] = set()
    written = 0
    with (folder / _JOURNAL).open("a", encoding="utf-8") as journal:
        journal.truncate(0)
        journal.writelines(f"{json.dumps({'file': name}, ensure_ascii=False)}\n" for name in sorted(before))
        for document in documents:
            name = _free(_name_of(document.url), document.url, lower)
            fetched = None if document.markdown else page_of(document.url)
            content = document.markdown or (document.text if fetched is None else markdown(document.url, fetched))
            body = markdown_file(document, content)
            print(
                json.dumps(_entry(name, document, body), ensure_ascii=False), file=journal, flush=True
            )  # before the file, for a kill
            after.add(name)
            path = folder / name
            if not path.exists() or path.read_bytes() != body:
                path.parent.mkdir(parents=True, exist_ok=True)
                _replace(path, body)
                written += 1
    for name in before - after:
        _remove(folder, name)
    _finish(folder, number=len(after))
    return MarkdownFiles(written, len(after) - written, len(before - after))


def _entry(name: str, document: Document, body: bytes) -> dict[str, str]:
    return {"file": name, "url": document.url, "id": document_id(document.url), "digest": sha256(body).hexdigest()}


def _finish(folder: Path, *, number: int) -> None:
    """Make the manifest of the last lines of the journal, sorted by file."""
    journal = folder / _JOURNAL
    lines = sorted(journal.read_text(encoding="utf-8").splitlines()[-number:]) if number else []
    _replace(folder / MANIFEST, "".join(f"{line}\n" for line in lines).encode())
    journal.unlink()


def _known_files(folder: Path) -> set[str]:
    """Return the files of earlier exports. Raises UsageError for a folder that has files and no manifest."""
    found: set[str] = set()
    for name in (MANIFEST, _JOURNAL):
        path = folder / name
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if path.exists() else ():
            try:
                file = str(json.loads(line)["file"])
            except (ValueError, TypeError, KeyError):
                file = ""
            if not file or file.startswith("/") or ".." in file.split("/"):
                if name == _JOURNAL:  # cut by a kill
                    continue
                raise UsageError(
                    f"{printable(str(path))}:{number}: {quoted(line)} is no entry of an export: remove the folder, or name another"
                )
            found.add(file)
    if not any((folder / name).exists() for name in (MANIFEST, _JOURNAL)) and folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{printable(str(folder))} has files that are of no export: name a new or empty folder")
    return found


def _replace(path: Path, body: bytes) -> None:
    """Write a file so that it is there as a whole or not at all."""
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(body)
    new.replace(path)


def _remove(folder: Path, name: str) -> None:
    """Remove a file, and the folders that are empty then."""
    path = folder / name
    path.unlink(missing_ok=True)
    for above in path.parents:
        if above == folder or not above.exists() or any(above.iterdir()):
            return
        above.rmdir()


# --- names ---------------------------------------------------------------------------------------------------------


def _name_of(url: str) -> str:
    """Return the name of the file of a URL, made of host, path and query."""
    parts = urlsplit(url)
    host = _safe(parts.netloc.replace(":", "_")) or "host"
    *folders, last = [_safe(unquote(segment)) for segment in parts.path.split("/")[1:]] or [""]
    more = "".join(f"{sign}{_safe(unquote(rest))}" for sign, rest in (("_", parts.query), ("_", parts.fragment)) if rest)
    name = f"{last or 'index'}{more}"[:_LONGEST_NAME]
    return "/".join(
        [host, *(f"{one or '_'}_" if one.endswith(".md") else one or "_" for one in folders[:_DEEPEST]), f"{name}.md"]
    )


def _safe(segment: str) -> str:
    """Return a segment of a path as the name of a file: without what some file system cannot have, and never hidden."""
    return _UNSAFE.sub("_", segment)[:_LONGEST_NAME].lstrip(".") if segment.strip(".") else segment.replace(".", "_")


def _free(name: str, url: str, taken: set[str]) -> str:
    """Return a name that no other document has, whatever the case: the first keeps its own, the others have the id of their document."""
    if name.lower() in taken:
        name = f"{name.removesuffix('.md')}-{document_id(url)[:12]}.md"
    taken.add(name.lower())
    return name


# --- files ---------------------------------------------------------------------------------------------------------


def markdown_file(document: Document, content: str) -> bytes:
    """Return a document as Markdown with its fields in front, as YAML (whose texts and lists JSON is)."""
    front = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in _front_of(document))
    return f"---\n{front}---\n\n{content.strip()}\n".encode("utf-8", "replace")


def _front_of(document: Document) -> Iterator[tuple[str, object]]:
    of_document: dict[str, object] = {
        "url": document.url,
        "id": document_id(document.url),
        "title": document.title,
        "description": document.description,
        "language": document.language,
        "modified": document.modified,
        "content_type": document.content_type,
        "duplicates": document.duplicates,
    }
    fields = {name: value for name, value in with_values(document.fields).items() if name not in FOR_PROGRAMS}
    for name, value in (of_document | {json.dumps(name, ensure_ascii=False): value for name, value in fields.items()}).items():
        if value:
            yield name, value
