"""What a crawl imports, for the process that commands are forked from."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import sys

for package in ("scrapy.commands", "crawlspace", "middlewares", "pipelines", "spiders"):
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        importlib.import_module(module.name)
if "twisted.internet.reactor" in sys.modules:
    raise RuntimeError("a reactor was imported: each process chooses its own")
gc.freeze()
