"""Opens what `scrapy reindex --extract` needs: processes with the spider of the collection, and files for the documents they make."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b

from msgspec import Struct, msgpack
from scrapy import Spider
from scrapy.utils.misc import load_object

from crawlspace.admin.extraction import DocumentRebuilder, Extraction
from crawlspace.admin.reindex import Reindexing
from crawlspace.archive.reader import ArchiveReader
from crawlspace.archive.writer import NewDocuments
from crawlspace.clock import SystemClock
from crawlspace.config.collection import load_collection
from crawlspace.content.boilerplate import SiteBlocks
from crawlspace.crawl.outcomes import OutcomePolicy
from crawlspace.crawl.replay import RebuiltDocument
from crawlspace.crawl.startup import build_deletion_limit, build_space, rules_of, use_near_duplicates
from crawlspace.errors import ConfigError, CrawlspaceError
from crawlspace.framing import LENGTH_BYTES, framed
from crawlspace.model import UrlState
from crawlspace.runtime.components.loader import CollectionLoader, source_hash
from crawlspace.runtime.session.boilerplate import learn_blocks
from crawlspace.runtime.session.paths import CollectionPaths, OpenStore, folder_of

MOST_PROCESSES = 64
_COMPONENTS = ("ITEM_PIPELINES", "SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES")


@contextmanager
def extracting(
    reindexing: Reindexing,
    paths: CollectionPaths,
    opened: OpenStore,
    archive: ArchiveReader,
    *,
    processes: int,
    options: dict[str, str],
    report: Callable[[str, str], None],
) -> Iterator[Extraction]:
    """Return a reindex whose documents are rebuilt. `options` are the settings of the command line; `report` is as in Making.

    Raises ConfigError for a collection that could not be crawled either.
    """
    collection = load_collection(paths.name, paths.settings)
    clock = SystemClock()
    try:
        spider = CollectionLoader.from_settings(paths.settings.copy()).load(paths.name)
    except SystemExit as error:  # of the loader, where the code of a spider fails
        raise ConfigError(str(error.code)) from error
    learned = learn_blocks(opened.store, archive, collection.content) if collection.content.boilerplate else {}
    start = ReplayStart(paths.name, options, opened.store.archive_files(), learned)
    use_near_duplicates(opened.store, collection)
    outcomes = OutcomePolicy(
        opened.store, read_health=opened.store.health, clock=clock, deletion_limit=build_deletion_limit(collection)
    )
    makers = ReplayProcesses(processes, start)
    try:
        with closing(NewDocuments(folder_of(paths), opened.store, archive, collection=paths.name, clock=clock)) as kept_in:
            making = DocumentRebuilder(
                begin=lambda states: _RebuiltParts(makers.begin(states)),
                hash=_hash(f"{rules_of(collection, build_space(collection))} {_written(learned)}", paths, spider),
                kept_in=kept_in,
                outcomes=outcomes,
                policy=collection.policy,
                report=report,
            )
            yield Extraction(
                opened.store,
                archive,
                reindexing.index,
                reindexing.now,
                deliver=reindexing.deliver,
                progress=reindexing.progress,
                settle=reindexing.settle,
                making=making,
            )
        makers.close()
    finally:
        makers.kill()


def _hash(rules: str, paths: CollectionPaths, spider: type[Spider]) -> str:
    """Return a hash that changes with the rules, the collection's settings, and the code of the spider and the components of the project."""
    digest = blake2b(f"{rules} {source_hash(spider)}".encode(), digest_size=8)
    with suppress(OSError):
        digest.update((paths.folder / "settings.py").read_bytes())
    for name in _COMPONENTS:
        for component in sorted(map(str, paths.settings.getdict(name))):
            with suppress(Exception):  # one that cannot be imported is reported where it is used
                digest.update(source_hash(load_object(component)).encode())
    return digest.hexdigest()


def _written(learned: Mapping[str, SiteBlocks]) -> str:
    """Return the blocks that were learned as text; empty for none."""
    return repr([(site, sorted(blocks.blocks)) for site, blocks in sorted(learned.items())]) if learned else ""


@dataclass(frozen=True, slots=True)
class _RebuiltParts:
    """Documents that several processes are rebuilding, each a part."""

    parts: Sequence[Future[list[RebuiltDocument]]]

    def is_complete(self, *, within_s: float) -> bool:
        return not wait(self.parts, within_s).not_done

    def made(self) -> Mapping[int, RebuiltDocument]:
        return {one.id: one for part in self.parts for one in part.result()}


# --- processes -----------------------------------------------------------------------------------------------------


_COMMAND = (sys.executable, "-m", "crawlspace.runtime.session.replay_process")
END_S = 60.0


class ReplayProcesses:
    """So many processes, which run until `close`."""

    def __init__(self, number: int, start: ReplayStart) -> None:
        with ExitStack() as unless_started:
            self._processes = []
            for _ in range(number):
                process = _ReplayProcess(start)
                self._processes.append(process)
                unless_started.callback(process.kill)
            unless_started.pop_all()

    def begin(self, states: Sequence[UrlState]) -> list[Future[list[RebuiltDocument]]]:
        """Start rebuilding documents of pages, after those of earlier calls. The result raises CrawlspaceError."""
        number = len(self._processes)
        return [process.begin(list(states[at::number])) for at, process in enumerate(self._processes) if states[at::number]]

    def close(self) -> None:
        """Wait until all have ended, with the pipelines of the project closed. Raises CrawlspaceError."""
        for process in self._processes:
            process.end()

    def kill(self) -> None:
        """End all at once."""
        for process in self._processes:
            process.kill()


class _ReplayProcess:
    def __init__(self, start: ReplayStart) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - this Python
                [*_COMMAND, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,  # Ctrl-C is for the command, which ends this process
            )
        self._socket = ours
        self._stream = ours.makefile("rb")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="replay")
        ours.sendall(framed(start))

    def begin(self, states: list[UrlState]) -> Future[list[RebuiltDocument]]:
        return self._thread.submit(self._ask, states)

    def end(self) -> None:
        self._thread.shutdown()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise CrawlspaceError(
                f"a process that rebuilds documents did not end within {END_S:g} s: see the pipelines and extensions of the project"
            ) from None
        self._close()

    def kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._thread.shutdown(cancel_futures=True)
        self._close()

    def _close(self) -> None:
        self._stream.close()
        self._socket.close()

    def _ask(self, states: list[UrlState]) -> list[RebuiltDocument]:
        with suppress(OSError):  # it has ended, and perhaps said why
            self._socket.sendall(framed(Pages(states)))
        return [self._answer() for _ in states]

    def _answer(self) -> RebuiltDocument:
        try:
            length = self._stream.read(LENGTH_BYTES)
            body = self._stream.read(int.from_bytes(length, "big"))
        except OSError:
            body = b""
        if not body:
            raise self._ended()
        answer = answer_of(body)
        if isinstance(answer, Fault):
            raise CrawlspaceError(answer.sentence)
        return answer.rebuilt

    def _ended(self) -> CrawlspaceError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        status = self._process.returncode
        how = "" if status is None else f" (signal {-status})" if status < 0 else f" (exit status {status})"
        return CrawlspaceError(
            f"a process that rebuilds documents has ended{how}: the log says why, if the code of the project ended it"
        )


# --- messages ------------------------------------------------------------------------------------------------------


class ReplayStart(Struct, frozen=True):
    """The collection of the pages: the first message to a process."""

    collection: str
    options: dict[str, str]
    """Settings of the command line."""
    archive_files: dict[int, str]
    """The names of the files of the archive, by number."""
    boilerplate: dict[str, SiteBlocks]
    """Blocks that are left out of pages, by site."""


class Pages(Struct, frozen=True):
    """Pages that documents are to be made of."""

    states: list[UrlState]


class Fault(Struct, frozen=True, tag="fault"):
    """Why nothing can be made of any page."""

    sentence: str


class PageAnswer(Struct, frozen=True, tag="page"):
    """The result for one page."""

    rebuilt: RebuiltDocument


_starts = msgpack.Decoder(ReplayStart)
_pages = msgpack.Decoder(Pages)
_answers: msgpack.Decoder[PageAnswer | Fault] = msgpack.Decoder(PageAnswer | Fault)


def start_of(body: bytes) -> ReplayStart:
    return _starts.decode(body)


def pages_of(body: bytes) -> Pages:
    return _pages.decode(body)


def answer_of(body: bytes) -> PageAnswer | Fault:
    return _answers.decode(body)
