"""The spiders of short programs as Scrapy's documentation and tutorials have them. Comments say what had to be adapted.

In all of them the base class is `CollectionSpider`, not `scrapy.Spider`; `name` is that of the collection, and the start URLs are in its
`start_urls.txt`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from itemloaders.processors import MapCompose, TakeFirst
from scrapy import Field, FormRequest, Item, Request
from scrapy.exceptions import CloseSpider
from scrapy.http import JsonRequest
from scrapy.loader import ItemLoader
from scrapy.spidermiddlewares.httperror import HttpError

from spiders.collection import CollectionSpider


class Author(Item):
    name = Field()
    born = Field()
    text = Field()


class AuthorLoader(ItemLoader):
    default_item_class = Author
    default_output_processor = TakeFirst()
    name_in = MapCompose(str.strip, str.title)


class UnchangedAuthors(CollectionSpider):
    """A list whose entries have a callback of their own. Nothing but the base class is adapted."""

    name = "unchanged_authors"

    def parse(self, response: Any, **kwargs: Any) -> Iterator[Any]:
        yield from response.follow_all(css="a.author", callback=self.parse_author)
        yield from response.follow_all(css="a.next", callback=self.parse)

    def parse_author(self, response: Any) -> Iterator[Any]:
        loader = AuthorLoader(response=response)
        loader.add_css("name", "h1::text")
        loader.add_css("born", ".born::text")
        loader.add_css("text", ".about::text")
        yield loader.load_item()


class Authors(UnchangedAuthors):
    """Adapted: `parse()` is called for the linked pages too, and does there what their callback does. Links need no request."""

    name = "authors"

    def parse(self, response: Any, **kwargs: Any) -> Iterator[Any]:
        if response.css(".about"):
            yield from self.parse_author(response)


class Products(CollectionSpider):
    """An item that is completed by the answer of an API. Nothing but the base class is adapted."""

    name = "products"

    def parse(self, response: Any, **kwargs: Any) -> Iterator[Any]:
        sku = response.css("::attr(data-sku)").get()
        if sku is None:
            return
        item = {"title": response.css("h1::text").get(), "sku": sku}
        yield JsonRequest(response.urljoin("/api/stock"), data={"sku": sku}, callback=self.parse_stock, cb_kwargs={"item": item})

    def parse_stock(self, response: Any, item: dict[str, Any]) -> Iterator[Any]:
        item["stock"] = response.json()["stock"]
        yield item


class UnchangedMembers(CollectionSpider):
    """A log-in whose form is the start URL. Nothing but the base class is adapted, and cookies turned on."""

    name = "unchanged_members"
    custom_settings = {"COOKIES_ENABLED": True}  # noqa: RUF012 - as Scrapy's documentation has it

    def parse(self, response: Any, **kwargs: Any) -> Any:
        return FormRequest.from_response(response, formdata={"username": "john"}, callback=self.after_login)

    def after_login(self, response: Any) -> Iterator[Any]:
        yield response.follow("/", callback=self.parse_members)

    def parse_members(self, response: Any) -> Iterator[Any]:
        yield {"title": response.css("h1::text").get(), "user": response.css(".user::text").get()}


class Members(CollectionSpider):
    """Logs in first.

    Adapted: the page with the form is requested by `start()`, not as a start URL, so that no page is fetched before; and cookies are off
    in a collection unless it turns them on.
    """

    name = "members"
    custom_settings = {"COOKIES_ENABLED": True}  # noqa: RUF012

    async def start(self) -> AsyncIterator[Any]:
        yield Request(self.settings["SITE"] + "login", callback=self.log_in)

    def log_in(self, response: Any) -> Request:
        return FormRequest.from_response(response, formdata={"username": "john", "password": "secret"}, callback=self.after_login)

    def after_login(self, response: Any) -> None:
        if "authentication failed" in response.text:
            raise CloseSpider("login failed")

    def parse(self, response: Any, **kwargs: Any) -> Iterator[Any]:
        yield {"title": response.css("h1::text").get(), "user": response.css(".user::text").get()}


class Shop(CollectionSpider):
    """What the item pipelines of `components` work on. Nothing but the base class is adapted."""

    name = "shop"

    def parse(self, response: Any, **kwargs: Any) -> Iterator[Any]:
        if response.css(".product"):
            yield {
                "id": response.css("::attr(data-id)").get(),
                "name": response.css("h1::text").get(),
                "price": response.css(".price::text").get(),
            }


class Manuals(CollectionSpider):
    """Downloads the files that pages link. Nothing but the base class is adapted."""

    name = "manuals"
    custom_settings = {"ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1}}  # noqa: RUF012

    def parse(self, response: Any, **kwargs: Any) -> Iterator[Any]:
        urls = [response.urljoin(href) for href in response.css("a.download::attr(href)").getall()]
        if urls:
            yield {"title": response.css("h1::text").get(), "file_urls": urls}


class Tagged(CollectionSpider):
    """An argument, an export of its own, an errback and `closed()`.

    Adapted: the host is in `start_urls.txt`, for without it no host is crawled.
    """

    name = "tagged"
    custom_settings = {  # noqa: RUF012
        "FEEDS": {"%(folder)s/%(tag)s.csv": {"format": "csv", "fields": ["title", "tag"], "overwrite": True}},
    }

    def __init__(self, tag: str = "all", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tag = tag
        self.broken: list[str] = []

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{self.settings['SITE']}tag/{self.tag}")
        yield Request(f"{self.settings['SITE']}broken", callback=self.parse, errback=self.failed_request)
        yield Request(f"{self.settings['SITE']}unavailable", callback=self.parse_status, errback=self.failed_request)

    def parse(self, response: Any, **kwargs: Any) -> Iterator[Any]:
        yield {"title": response.css("h1::text").get(), "tag": self.tag, "length": len(response.body)}

    def parse_status(self, response: Any) -> None:
        self.logger.info("status page: %s", response.text)

    def failed_request(self, failure: Any) -> None:
        if failure.check(HttpError):
            self.broken.append(f"{failure.value.response.status} {failure.request.url}")

    def closed(self, reason: str) -> None:
        self.logger.info("closed: %s; broken: %s", reason, self.broken)
