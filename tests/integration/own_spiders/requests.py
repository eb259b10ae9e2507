"""Spiders with requests of their own, as tutorials have them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from scrapy import FormRequest, Request
from scrapy.exceptions import CloseSpider
from scrapy.http import JsonRequest

from spiders.collection import CollectionSpider


class Details(CollectionSpider):
    """A product whose price comes from another request."""

    name = "details"

    def parse(self, response: Any, **kwargs: Any) -> Iterator[Any]:
        for path in response.css("::attr(data-price)").getall():
            item = {"title": response.css("title::text").get()}
            yield response.follow(path, callback=self.parse_price, cb_kwargs={"item": item})

    def parse_price(self, response: Any, item: dict[str, Any]) -> Iterator[Any]:
        item["price"] = response.json()["price"]
        yield item


class Kept(Details):
    """The same, but the page has an item whatever becomes of the request."""

    name = "kept"

    def parse(self, response: Any, **kwargs: Any) -> Iterator[Any]:
        yield from super(Details, self).parse(response)
        for path in response.css("::attr(data-price)").getall():
            yield response.follow(path, self.parse_price, errback=self.no_price, cb_kwargs={"item": {"title": "With price"}})

    def no_price(self, failure: Any) -> None:
        self.logger.warning("no price: %s", type(failure.value).__name__)


class Api(CollectionSpider):
    """Asks an API with a body and headers of its own, in async code."""

    name = "api"

    async def parse(self, response: Any, **kwargs: Any) -> AsyncIterator[Any]:
        asked = {"page": response.css("title::text").get()}
        url = response.urljoin("/api/")
        yield JsonRequest(url, data=asked, headers={"X-Key": "k"}, callback=self.parse_answer, meta=response.meta, priority=1)
        yield JsonRequest(url, data=asked, callback=self.parse_answer)  # the same again is filtered, as in Scrapy
        yield Request(url + "first", callback=self.ignored, priority=7)

    def parse_answer(self, response: Any) -> dict[str, Any]:
        return {"title": response.json()["answer"]}

    def ignored(self, response: Any) -> None:
        assert response.json() == {}


class Quotes(CollectionSpider):
    """The first page of Scrapy's tutorial: several items a page, and the next page."""

    name = "quotes"

    def parse(self, response: Any, **kwargs: Any) -> Iterator[Any]:
        for quote in response.css("li.quote"):
            yield {"text": quote.css("::text").get(), "author": quote.attrib["data-author"]}
        yield from response.follow_all(css="a.next", callback=self.parse)


class LogIn(CollectionSpider):
    """Logs in before anything else."""

    name = "login"

    async def start(self) -> AsyncIterator[Any]:
        yield Request(str(self.settings["LOGIN_URL"]), callback=self.log_in)

    def log_in(self, response: Any) -> Request:
        return FormRequest.from_response(response, formdata={"user": "me"}, callback=self.logged_in)

    def logged_in(self, response: Any) -> Iterator[Any]:
        assert "Welcome" in response.text
        yield {"title": "an item of no page"}
        yield response.follow("/extra")


class Many(CollectionSpider):
    """Goes on and on."""

    name = "many"

    def parse(self, response: Any, number: int = 0, **kwargs: Any) -> Iterator[Any]:
        if not number:
            yield {"title": "Many"}
        yield Request(response.urljoin(f"/data/{number}"), callback=self.go_on, cb_kwargs={"number": number + 1})

    def go_on(self, response: Any, number: int) -> Iterator[Any]:
        yield from self.parse(response, number)


class Closing(CollectionSpider):
    name = "closing"

    def parse(self, response: Any, **kwargs: Any) -> Iterator[Any]:
        yield {"title": "seen"}
        raise CloseSpider("enough")


class Lost(CollectionSpider):
    """Gives a request for a page what cannot be kept."""

    name = "lost"

    def parse(self, response: Any, **kwargs: Any) -> Iterator[Any]:
        yield {"title": response.css("title::text").get()}
        yield response.follow("/next", self.parse, headers={"X": "y"}, cb_kwargs={"z": 1})


class Mistaken(CollectionSpider):
    """Its callback fails."""

    name = "mistaken"

    def parse(self, response: Any, **kwargs: Any) -> Iterator[Any]:
        yield {"title": "Page"}
        yield response.follow("/data", self.parse_data)

    def parse_data(self, response: Any) -> None:
        raise ValueError("a mistake in a callback")
