"""One class for each collection of `test_own_spiders.py`."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any

import attrs
from scrapy import Field, Item, Request, signals
from scrapy.exceptions import StopDownload
from scrapy.exporters import JsonLinesItemExporter
from scrapy.http import Response

from crawlspace.content.page import Page
from crawlspace.document import Part
from crawlspace.errors import StoreError
from crawlspace.state.changes import Change
from spiders.collection import CollectionSpider

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class Extra(CollectionSpider):
    name = "extra"

    def document(self, response: Response, page: Page) -> Any:
        return {"title": page.title, "text": page.text, "price": 7, "half": "\ud800", "words": len(page.text)}


class Yielding(CollectionSpider):
    """Yields items and requests as any Scrapy spider does."""

    name = "yielding"

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield {"url": response.url}
        yield response.follow("/next")


class Deeper(CollectionSpider):
    name = "deeper"

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Any]:
        yield from super().parse(response)
        yield response.follow("/" + "x" * len(response.url))


class Adding(CollectionSpider):
    """Sets components the way Scrapy spiders do."""

    name = "adding"
    custom_settings = {"ITEM_PIPELINES": {"tests.integration.own_spiders.spiders.DropAll": 1000}}  # noqa: RUF012


class Broken(CollectionSpider):
    name = "broken"

    def document(self, response: Response, page: Page) -> Any:
        raise ValueError("a slip in somebody's parsing")


class DropAll:
    """An item pipeline that loses every page before it is recorded."""

    def process_item(self, item: Any) -> Any:
        from scrapy.exceptions import DropItem

        raise DropItem("not wanted")


class FullDisk(JsonLinesItemExporter):
    """An exporter whose disk is full after the first document."""

    def export_item(self, item: Any) -> None:
        if self.file.tell():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().export_item(item)


class Picky:
    """An extension that has a shared store break on documents with the title "breaks", and refuse to be used on the crawl's thread."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Picky:
        store = crawler.spider.session.engine._results  # type: ignore[union-attr]
        record = store.record

        def picky(changes: Sequence[Change], **given: Any) -> Any:
            if current_thread() is main_thread():
                raise StoreError("recorded beside the other calls of the worker")
            if any(change.document is not None and change.document.title == "breaks" for change in changes):
                raise TypeError("it cannot be packed")
            return record(changes, **given)

        store.record = picky
        return cls()


class StopsPage:
    """An extension that stops the download of /page as soon as its headers are there."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> StopsPage:
        extension = cls()
        crawler.signals.connect(extension.headers_received, signal=signals.headers_received)
        return extension

    def headers_received(self, request: Request) -> None:
        if request.url.endswith("/page"):
            raise StopDownload(fail=False)


class Catalogue(CollectionSpider):
    """Gives each product as the kind of item that its path names, without title and text."""

    name = "catalogue"

    def document(self, response: Response, page: Page) -> Any:
        kind = response.url.rpartition("/")[2]
        if not kind:
            return None
        values = {"sku": kind, "price": 9.5, "sizes": ["S", "M"], "maker": {"name": "Müller"}}
        return {"dict": dict, "item": ScrapyProduct, "dataclass": DataProduct, "attrs": AttrsProduct}[kind](**values)


class ScrapyProduct(Item):
    sku = Field()
    price = Field()
    sizes = Field()
    maker = Field()


@dataclass
class DataProduct:
    sku: str
    price: float
    sizes: list[str]
    maker: dict[str, str]
    title: str = ""


@attrs.define
class AttrsProduct:
    sku: str
    price: float
    sizes: list[str]
    maker: dict[str, str]
    text: str | None = None


class WrongKind(CollectionSpider):
    """Returns several items without keys."""

    name = "wrongkind"

    def document(self, response: Response, page: Page) -> Any:
        return ({"title": part} for part in page.text.split())


class Repriced(CollectionSpider):
    """Takes a price from a header, so that it changes while the page's text stays."""

    name = "repriced"

    def document(self, response: Response, page: Page) -> Any:
        return {"price": (response.headers.get("X-Price") or b"").decode()}


class Priced(CollectionSpider):
    """Gives each page the price that it names, if it names one."""

    name = "priced"

    def document(self, response: Response, page: Page) -> Any:
        price = response.xpath("//p/text()").re_first(r"costs (\d+)")
        return {"title": page.title, "text": page.text, **({"price": int(price)} if price else {})}


class Pictured(CollectionSpider):
    """Has the files that a page names in `data-file` fetched."""

    name = "pictured"

    def document(self, response: Response, page: Page) -> Any:
        return {"title": page.title, "text": page.text, "file_urls": response.css("::attr(data-file)").getall()}


class Authors(CollectionSpider):
    """Names the author of a file in its title."""

    name = "authors"

    def document(self, response: Response, page: Page) -> Any:
        return {"title": f"{page.title} ({page.fields.get('author', 'nobody')})", "text": page.text}


class Lamps(CollectionSpider):
    """Gives a page, and a part for each lamp on it; several pages, or none, where the URL says so."""

    name = "lamps"

    def document(self, response: Response, page: Page) -> Iterator[Any]:
        if response.url.endswith("/none"):
            return
        if response.url.endswith("/two"):
            yield {"title": "Two"}
        if not response.url.endswith("/alone"):
            yield {"title": f"Own {page.title}"}
        for lamp in response.css("li"):
            key = lamp.attrib["id"]
            yield {"key": key, "title": lamp.css("::text").get(), "text": "a lamp", "price": 3, "url": f"#{key}"}
        yield Part("given", text="given")
