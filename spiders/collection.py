"""The spider of a collection: makes a document of each page.

A collection with its own parsing has a class here with its name:

    class Products(CollectionSpider):
        name = "products"

        def document(self, response, page):
            return {"title": page.title, "text": page.text, "price": response.css(".price::text").get()}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawlspace.document import Document
from crawlspace.runtime.components.spider import FrontierSpider

if TYPE_CHECKING:
    from scrapy.http import Response

    from crawlspace.content.page import Page


class CollectionSpider(FrontierSpider):
    """Crawls the collection it is named after."""

    def document(self, response: Response, page: Page) -> Any:
        """Return the item for a page: a `Document`, or an item of any type Scrapy knows, or None to keep it out of the index.

        Fields named title, description, language, text, headings, content_type and modified are the document's own; what is
        missing or empty of them is taken from the page. All others are kept as its extra fields.
        """
        return Document(
            url=response.request.url,  # type: ignore[union-attr]
            title=page.title,
            description=page.description,
            language=page.language,
            text=page.text,
            headings=list(page.headings),
        )
