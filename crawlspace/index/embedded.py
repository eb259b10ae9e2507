"""The default index: full-text search in one SQLite file, without installation or server.

Two tables share a row number: `documents` has what results show, and the FTS5 table `words` what is searched, with its text, from
which snippets are made. Plain SQL with 5 KB documents in batches of 200, synchronous=FULL, on two shared cores; one run each. The
same run takes up to three times as long on a busy machine, so only the proportions are meaningful:

    variant                            pushes/s new   replaced   6,000 documents
    words with its own text (this)            6,100      4,600             72 MB
    external content                          6,400      2,250             69 MB
    contentless with deletes                  5,700   1,900 - 4,300        65 MB, and no snippets

A crawler mostly replaces documents. In every variant a larger hash (8 MB, so that a batch is one segment) gave 18 to 27 % more
new documents a second, and merging at 8 segments instead of 4 another 12 to 14 %. The tokenizer is the default: adding `_` or `-`
to the letters would prevent finding `net-income` and `file_name` by their parts. `ideographs` has the storage of languages without spaces,
`embedded_search` the order of hits.

A document belongs to the collection that pushed it last. A collection that pushed it before still counts it as indexed, and it is: the URL
has a document. Only when the owner deletes that document, the other collections have to send theirs again. So the table `overwritten` has a
row for each collection whose document another one has overwritten. It is removed when that collection pushes the document again or deletes
it, and marked as lost when the owner deletes the document: in the transaction of the orders, so that a kill, or a batch that is sent twice,
changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

import apsw

from crawlspace.clock import Clock, SystemClock
from crawlspace.document import Document, IndexOrder, Op, packed_more, unpack_text
from crawlspace.errors import CrawlspaceError, IndexUnavailable, StoreDamaged, StoreError, StoreVersionError
from crawlspace.index.embedded_schema import (
    APPLICATION_ID,
    BY_ID,
    COUNT_LOST,
    COUNT_REPLACED,
    DEVELOPMENT_ID,
    DOCUMENTS,
    INSERT,
    NOT_FOLDED,
    SCHEMA,
    UPDATE,
    VERSION,
    WITHOUT_PARTS,
    add_more,
    has_more,
    rewrite_words,
)
from crawlspace.index.embedded_search import IndexSearch, integer_of
from crawlspace.index.ideographs import joined, separated
from crawlspace.index.marks import BatchMark, read_mark
from crawlspace.index.orders import HALF_SURROGATE, NO_DOCUMENT
from crawlspace.index.search import Filter, SearchResult, day_of
from crawlspace.index.sink import Entry, Refusal, Sent
from crawlspace.private_files import irregular
from crawlspace.urls import document_id

BUSY_TIMEOUT_S = 30.0
MAX_DOCUMENT_BYTES = 50_000_000
_PAGE_BYTES = 16_384
"""Of a new file. Most documents are larger than SQLite's 4 KB, with which sending takes a tenth more CPU."""
_MOST_HITS = 1_000_000_000
"""More than an index has, and less than SQLite's numbers."""


class OrderWriter(Protocol):
    """Writes to the file of an index from elsewhere."""

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None) -> Sent | None:
        """Commit orders as the index does; None where that is not known to have succeeded."""

    def close(self) -> None: ...


class EmbeddedIndex:
    """The index in the file `path`, which is created unless `read_only`. Several processes may use one file.

    A document belongs to the collection, the `owner`, that pushed it last; deletions by another owner are ignored. So a URL can move from
    one collection to another without leaving the index.

    Raises StoreDamaged for a file that is not our index, StoreVersionError for one of another version, and StoreError for one
    that cannot be opened; the file is not changed then.
    """

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        name: str = "embedded",
        owner: str = "",
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        max_document_bytes: int = MAX_DOCUMENT_BYTES,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self.path = path
        self._owner = owner
        self._clock = clock or SystemClock()
        self._max_document_bytes = max_document_bytes
        if read_only and not path.exists():
            raise StoreError(f"there is no index at {path}: crawl the collection first")
        if found := irregular(path):
            raise StoreError(f"the index {path} cannot be opened, because it is {found}: move it away, or name another file")
        flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        try:
            self._db = apsw.Connection(str(path), flags=flags)
        except (apsw.CantOpenError, apsw.IOError) as error:
            raise StoreError(f"the index {path} cannot be opened ({error}): check that its folder exists and is yours") from error
        try:
            with self._our_errors():
                self._db.set_busy_timeout(round(busy_timeout_s * 1000))
                self._open(create=not read_only)
        except BaseException:
            self._db.close()
            raise
        self._search = IndexSearch(self._db)
        self._writer: OrderWriter | None = None

    def write_by(self, writer: OrderWriter) -> None:
        """Have orders committed by a writer from now on; what that fails to commit is committed here."""
        self._writer = writer

    # the sink
    def mark(self) -> BatchMark | None:
        """Return the mark of the last batch of this owner; None if there is none."""
        with self._our_errors():
            return read_mark(self._db.execute("SELECT mark FROM mark WHERE owner = ?", (self._owner,)).get)

    def set_mark(self, mark: BatchMark) -> None:
        """Replace the mark, so that index and store agree again."""
        with self._our_errors():
            self._db.execute("INSERT OR REPLACE INTO mark VALUES (?, ?)", (self._owner, mark.written()))

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        """Commit the orders in one transaction.

        Raises IndexUnavailable if the disk is full or the file is locked or not writable: nothing has changed then.
        """
        if self._writer is not None and (sent := self._writer.send(orders, mark)) is not None:
            return sent
        refusals: list[Refusal] = []
        now = int(self._clock.now())
        with self._our_errors(), self._transaction():
            for order in orders:
                reason = self._apply(order, now)
                if reason:
                    refusals.append(Refusal(order, reason))
            if mark is not None and mark.may_follow(self.mark()):
                self.set_mark(mark)
        return Sent(refusals)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._db.close()

    # reading
    def search(
        self,
        words: str,
        *,
        limit: int = 10,
        offset: int = 0,
        marks: tuple[str, str] = ("[", "]"),
        filters: Sequence[Filter] = (),
        facets: Sequence[str] = (),
    ) -> SearchResult:
        """Return the best matches, see `Searchable`. Raises UsageError for a text without words."""
        with self._our_errors():
            return self._search.search(
                words,
                limit=min(max(limit, 0), _MOST_HITS),
                offset=min(max(offset, 0), _MOST_HITS),
                marks=marks,
                filters=filters,
                facets=facets,
            )

    def count(self, *, of: str | None = None) -> int:
        """Return the number of documents, or of those of one owner."""
        with self._our_errors():
            if of is not None:
                return integer_of(self._db.execute("SELECT count(*) FROM documents WHERE owner = ?", (of,)).get)
            return integer_of(self._db.execute("SELECT count(*) FROM documents").get)

    def count_pushed(self) -> int:
        """Return the number of documents that this owner has pushed, including those that another owner has overwritten since."""
        with self._our_errors():
            return self.count(of=self._owner) + integer_of(self._db.execute(COUNT_REPLACED, (self._owner,)).get)

    def urls_of(self, owner: str, *, after: str, limit: int) -> list[str]:
        """Return the next URLs of documents of an owner, sorted, after a given one."""
        with self._our_errors():
            rows = self._db.execute(
                "SELECT url FROM documents WHERE url > ? AND owner = ? ORDER BY url LIMIT ?", (after, owner, limit)
            )
            return [str(url) for (url,) in rows]

    def look_up(self, urls: Sequence[str]) -> dict[str, Entry]:
        """Return the entries of those URLs that have a document; without versions."""
        with self._our_errors():
            rows = ((url, self._row_of(url)) for url in urls)
            return {url: Entry(url, 0, row[1]) for url, row in rows if row is not None}

    def entries(self, *, owner: str) -> Iterator[Sequence[Entry]]:
        """Yield the entries of a collection, a page at a time."""
        after = ""
        while urls := self.urls_of(owner, after=after, limit=1_000):
            yield [Entry(url, 0, owner) for url in urls]
            after = urls[-1]

    def lost(self, *, after: str = "", limit: int) -> list[str]:
        """Return the next URLs of which this owner had a document that another one has overwritten and then deleted, sorted."""
        with self._our_errors():
            rows = self._db.execute(
                "SELECT url FROM overwritten WHERE owner = ? AND lost AND url > ? ORDER BY url LIMIT ?",
                (self._owner, after, limit),
            )
            return [str(url) for (url,) in rows]

    def count_lost(self) -> int:
        """Return the number of those documents."""
        with self._our_errors():
            return integer_of(self._db.execute(COUNT_LOST, (self._owner,)).get)

    def is_lost(self, url: str) -> bool:
        """Return whether the document of a URL is one of those."""
        with self._our_errors():
            found = self._db.execute("SELECT lost FROM overwritten WHERE url = ? AND owner = ?", (url, self._owner)).fetchone()
            return found is not None and bool(found[0])

    def give_up_lost(self, urls: Sequence[str]) -> None:
        """Forget that this owner has lost these documents, because it does not want them any more."""
        with self._our_errors(), self._transaction():
            for url in urls:
                self._forget_overwritten(url)

    def urls(self) -> Iterator[str]:
        """Yield the URLs of all documents, sorted."""
        with self._our_errors():
            for (url,) in self._db.execute("SELECT url FROM documents ORDER BY url"):
                yield str(url)

    def get(self, url: str) -> Document | None:
        """Return the document of a URL in normal form; None without one."""
        with self._our_errors():
            row = self._db.execute(f"{DOCUMENTS} WHERE d.url = ?", (url,)).fetchone()
        return None if row is None else _document(row)

    def own_document(self, *, id: str = "", url: str = "") -> Document | None:
        """Return the document of this owner with an id, or else of a URL in normal form; None without one."""
        column, value = ("id", id) if id else ("url", url)
        with self._our_errors():
            row = self._db.execute(f"{DOCUMENTS} WHERE d.{column} = ? AND d.owner = ?", (value, self._owner)).fetchone()
        return None if row is None else _document(row)

    def documents(self, owner: str) -> Iterator[Document]:
        """Yield the documents of an owner as they are when the first is read, in the order in which they were first pushed."""
        with self._our_errors():
            for row in self._db.execute(f"{DOCUMENTS} WHERE d.owner = ? ORDER BY d.number", (owner,)):
                yield _document(row)

    # writing
    def _apply(self, order: IndexOrder, now: int) -> str:
        """Apply one order; return why it is refused, or an empty text."""
        document = order.document
        if order.op is Op.DELETE:
            self._delete(order.url)
            return ""
        if document is None:
            return NO_DOCUMENT
        # Refused before anything is written, so that the index keeps the URL's old document.
        try:
            more = packed_more(document)
            size = len("".join(_stored(order.url, document)).encode()) + len(more.encode())
        except UnicodeEncodeError:
            return HALF_SURROGATE
        if size > self._max_document_bytes:
            return f"the document has {size:,} bytes, and the index accepts up to {self._max_document_bytes:,}"
        self._push(order.url, document, more, now)
        return ""

    def _push(self, url: str, document: Document, more: str, now: int) -> None:
        headings = json.dumps(document.headings) if document.headings else "[]"
        fields = json.dumps(document.fields) if document.fields else "{}"
        duplicates = json.dumps(document.duplicates) if document.duplicates else "[]"
        modified = document.modified
        shown = (document.language, document.content_type, modified, day_of(modified), headings, fields, duplicates, now)
        address = url.partition("://")[2]
        there = self._row_of(url)
        if there is None:
            self._db.execute(INSERT, (url, document_id(url), address.partition("/")[0], *shown, self._owner))
            number = self._db.last_insert_rowid()
            if self._db.execute("SELECT 1 FROM overwritten WHERE url = ?", (url,)).fetchone() is not None:
                self._forget_overwritten(url)
                self._db.execute("UPDATE overwritten SET lost = 0 WHERE url = ?", (url,))
        else:
            number, owner = there
            if owner != self._owner:
                self._forget_overwritten(url)
                self._db.execute("INSERT INTO overwritten VALUES (?, ?, 0)", (url, owner))
            self._db.execute(UPDATE, (*shown, self._owner, number))
            self._db.execute("DELETE FROM words WHERE rowid = ?", (number,))
            self._db.execute("DELETE FROM more WHERE number = ?", (number,))
        if more:
            self._db.execute("INSERT INTO more VALUES (?, ?)", (number, more))
        self._db.execute(
            "INSERT INTO words (rowid, title, headings, url, description, text) VALUES (?, ?, ?, ?, ?, ?)",
            (
                number,
                separated(document.title),
                separated("\n".join(document.headings)),
                separated(unquote(address)),
                separated(document.description),
                separated(document.text.replace("\0", " ")),
            ),
        )

    def _delete(self, url: str) -> None:
        there = self._row_of(url)
        if there is None or there[1] != self._owner:
            self._forget_overwritten(url)
            return
        number, _ = there
        self._db.execute("DELETE FROM words WHERE rowid = ?", (number,))
        self._db.execute("DELETE FROM documents WHERE number = ?", (number,))
        self._db.execute("DELETE FROM more WHERE number = ?", (number,))
        self._db.execute("UPDATE overwritten SET lost = 1 WHERE url = ?", (url,))

    def _forget_overwritten(self, url: str) -> None:
        """Remove the row of this collection: it has its own document again, or wants none."""
        self._db.execute("DELETE FROM overwritten WHERE url = ? AND owner = ?", (url, self._owner))

    def _row_of(self, url: str) -> tuple[int, str] | None:
        """Return row number and owner of the document of a URL."""
        row = self._db.execute("SELECT number, owner FROM documents WHERE url = ?", (url,)).fetchone()
        return None if row is None else (integer_of(row[0]), str(row[1]))

    # the file
    def _open(self, *, create: bool) -> None:
        application, version = self._format()
        if application == 0 and version == 0 and not self._tables():
            if not create:
                raise StoreError(f"the index {self.path} is empty: crawl the collection first")
            self._db.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._create()
            application, version = self._format()
        is_development = application == DEVELOPMENT_ID
        if application != APPLICATION_ID and not is_development:
            raise StoreDamaged(f"{self.path} is not an index of crawlspace: move it away or choose another file")
        if is_development or version not in (NOT_FOLDED, WITHOUT_PARTS, VERSION):
            found = f"{version} of development" if is_development else version
            raise StoreVersionError(
                f"the index {self.path} was written by another version of crawlspace (version {found}, this one reads {VERSION}): use that"
                " version, or move the file away, and `scrapy reindex` of its collections creates it again"
            )
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA cache_size = -32000")
        if create and version != VERSION:
            add_more(self._db, self._transaction)
        if create and version == NOT_FOLDED:
            rewrite_words(self._db, self._transaction)
        if create:
            self._db.execute(BY_ID)
        if not has_more(self._db):  # opened only to be read
            self._db.execute("CREATE TEMP TABLE more (number INTEGER PRIMARY KEY, packed TEXT NOT NULL)")

    def _create(self) -> None:
        with self._transaction():
            if not self._tables():  # another process may have been first
                self._db.execute(SCHEMA)
                self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                self._db.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Commit at the end; roll back on an exception."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            with suppress(apsw.Error):  # after some errors SQLite has rolled back already
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
            raise

    def _format(self) -> tuple[int, int]:
        return integer_of(self._db.execute("PRAGMA application_id").get), integer_of(self._db.execute("PRAGMA user_version").get)

    def _tables(self) -> int:
        return integer_of(self._db.execute("SELECT count(*) FROM sqlite_schema").get)

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        """Convert SQLite's errors to ours."""
        try:
            yield
        except apsw.Error as error:
            raise self._as_ours(error) from error

    def _as_ours(self, error: apsw.Error) -> CrawlspaceError:
        match error:
            case apsw.FullError():
                return IndexUnavailable(f"the disk of the index {self.path} is full: free space, and the waiting orders are sent")
            case apsw.BusyError() | apsw.LockedError():
                return IndexUnavailable(f"the index {self.path} is locked by another process: the orders wait until it is free")
            case apsw.NotADBError() | apsw.CorruptError():
                return StoreDamaged(
                    f"the index {self.path} is damaged ({error}): move it away, and `scrapy reindex` of its collections creates it again, or restore a backup"
                )
            case apsw.ReadOnlyError():
                return IndexUnavailable(
                    f"the index {self.path} cannot be written: check the permissions of the file and its folder"
                )
            case apsw.IOError() | apsw.CantOpenError() | apsw.NoMemError():
                return IndexUnavailable(f"the index {self.path} cannot be read or written ({error}): check its disk")
        return StoreError(f"the index {self.path} cannot be used: {error}")


def _stored(url: str, document: Document) -> Iterable[str]:
    """Return all text of a document that is stored unescaped; the rest is ASCII."""
    return (
        url,
        document.title,
        document.description,
        document.text,
        document.language,
        document.content_type,
        document.modified,
        *document.headings,
    )


def _document(row: Sequence[object]) -> Document:
    url, title, description, language, text, headings, content_type, modified, fields, duplicates, more = map(str, row)
    document = Document(
        url=url,
        title=joined(title),
        description=joined(description),
        language=language,
        headings=json.loads(headings),
        content_type=content_type,
        modified=modified,
        fields=json.loads(fields),
        duplicates=json.loads(duplicates),
    )
    unpack_text(document, joined(text) + more)
    return document
