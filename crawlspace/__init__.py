"""The decisions and the state of the crawler; imports Scrapy in `runtime` and `commands` only."""

__version__ = "1.0.0"
