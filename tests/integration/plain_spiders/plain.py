"""A spider of Scrapy's that has the name of a collection."""

from __future__ import annotations

import scrapy


class Plain(scrapy.Spider):
    name = "demo"
