"""A process that makes documents anew of archived pages: `python -m crawlspace.runtime.replay.process DESCRIPTOR`.

It talks on the socket that it inherits, and ends when the other side closes that. It has the spider of the collection, with the project's
middlewares and pipelines, and neither store nor index.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import TYPE_CHECKING, Any

import scrapy.core.downloader.contextfactory  # noqa: F401 - before all else, as in crawlspace/commands/__init__.py
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from scrapy.utils.misc import load_object
from scrapy.utils.project import get_project_settings

from crawlspace.errors import CrawlspaceError
from crawlspace.framing import framed, received
from crawlspace.printable import printable
from crawlspace.runtime.command import reduce_garbage_collection
from crawlspace.runtime.loader import CollectionLoader
from crawlspace.runtime.replay.messages import Fault, ReplayStart, start_of
from crawlspace.runtime.replay.session import ReplaySession

if TYPE_CHECKING:
    from scrapy.settings import Settings

_SCHEDULER = "crawlspace.runtime.replay.scheduler.ReplayScheduler"
_HANDLER = "crawlspace.runtime.replay.no_network.NoNetwork"
_WITHOUT_EFFECT = (
    "crawlspace.runtime.progress.Progress",
    "scrapy.extensions.telnet.TelnetConsole",
    "scrapy.extensions.remote_control.RemoteControl",
    "scrapy.extensions.spiderstate.SpiderState",
)
_LIMITS = ("TIMEOUT", "TIMEOUT_NO_ITEM", "ITEMCOUNT", "PAGECOUNT", "PAGECOUNT_NO_ITEM", "ERRORCOUNT")
"""They end a crawl early: no process that makes documents may end before it has made them all."""


def main(descriptor: int) -> int:
    """Make documents anew until the other side closes the socket."""
    with socket.socket(fileno=descriptor) as channel:
        start = start_of(received(channel))
        try:
            _run(start, channel)
        except CrawlspaceError as error:
            channel.sendall(framed(Fault(str(error))))
            return error.exit_status
        except SystemExit as error:  # of the loader, where the code of a spider fails
            channel.sendall(framed(Fault(str(error.code))))
            return 1
    return 0


def _run(start: ReplayStart, channel: socket.socket) -> None:
    settings = _settings(start)
    own = settings.copy()
    CollectionLoader.from_settings(own).load(start.collection).update_settings(own)
    session = ReplaySession(start.collection, own, archive_files=start.archive_files, channel=channel)
    if settings[
        "ASYNCIO_EVENT_LOOP"
    ]:  # else Scrapy makes one of the default kind first, and drops it, which may print a traceback at the end
        asyncio.set_event_loop(load_object(settings["ASYNCIO_EVENT_LOOP"])())
    process: Any = (AsyncCrawlerProcess if settings.getbool("TWISTED_REACTOR_ENABLED") else CrawlerProcess)(settings)
    reduce_garbage_collection()
    crawl = process.crawl(process.create_crawler(start.collection), session=session)
    process.start(install_signal_handlers=False)
    if isinstance(crawl, asyncio.Future) and crawl.done() and (error := crawl.exception()) is not None:
        raise CrawlspaceError(f"the spider could not be set up: {printable(str(error))}; see your settings and components")


def _settings(start: ReplayStart) -> Settings:
    settings = get_project_settings()
    settings.setdict({"LOG_LEVEL": "WARNING"}, priority="command")
    settings.setdict(start.options, priority="cmdline")
    without_effect = dict.fromkeys(_WITHOUT_EFFECT)
    ours = {
        "SCHEDULER": _SCHEDULER,
        "DOWNLOAD_HANDLERS": dict.fromkeys(("http", "https"), _HANDLER),
        "FEEDS": {},
        "EXTENSIONS": {**settings.getdict("EXTENSIONS"), **without_effect},
        "HTTPCACHE_ENABLED": False,
        **{f"CLOSESPIDER_{limit}": 0 for limit in _LIMITS},
    }
    settings.setdict(ours, priority="cmdline")
    return settings


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
