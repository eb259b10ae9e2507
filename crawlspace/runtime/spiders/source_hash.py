"""The hash of a spider's code, which tells whether pages yield something else than at the last start."""

from __future__ import annotations

import ast
import inspect
from hashlib import blake2b
from typing import TYPE_CHECKING

from crawlspace.crawl.rule_changes.rediscovery import SpiderCode

if TYPE_CHECKING:
    from scrapy import Spider

_NOT_OF_THE_PROJECT = ("crawlspace", "scrapy", "builtins")


def spider_code(spider: type[Spider]) -> SpiderCode:
    """Return what a start has to know of the code of a collection's spider."""
    parses = str(getattr(spider.parse, "__module__", "")).partition(".")[0] not in _NOT_OF_THE_PROJECT
    return SpiderCode(source_hash(spider), follows_links=not parses)


def source_hash(spider: type) -> str:
    """Return a hexadecimal hash of the modules that hold a class, as that of a spider, and its bases, other than Scrapy's and ours.

    Comments and the layout of the text do not count. Empty where the code of one can't be read.
    """
    digest = blake2b(digest_size=16)
    modules = {
        one.__module__: one for one in reversed(spider.__mro__) if one.__module__.partition(".")[0] not in _NOT_OF_THE_PROJECT
    }
    for one in modules.values():
        try:
            digest.update(ast.unparse(ast.parse(_source_of_module(one))).encode())
        except (OSError, TypeError, SyntaxError):  # made by a program, or changed since it was imported
            return ""
    return digest.hexdigest()


def _source_of_module(spider: type) -> str:
    module = inspect.getmodule(spider)
    if module is None:
        raise OSError(f"no module of {spider}")
    return inspect.getsource(module)
