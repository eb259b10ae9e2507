"""The crawler's decisions and memory; knows nothing of Scrapy outside `runtime` and `commands`."""

__version__ = "0.1.0"
