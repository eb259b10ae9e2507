"""What a crawl imports, for the process that commands are forked from."""

from __future__ import annotations

import gc
import importlib
import io
import pkgutil
import sys
from contextlib import redirect_stdout, suppress

from scrapy.cmdline import execute
from scrapy.settings import Settings, default_settings

from tests.quick_start import entry_points

for package in ("scrapy.commands", "crawlspace", "middlewares", "pipelines", "spiders"):
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        importlib.import_module(module.name)
for components in (
    default_settings.DOWNLOADER_MIDDLEWARES_BASE,
    default_settings.EXTENSIONS_BASE,
    default_settings.SPIDER_MIDDLEWARES_BASE,
):
    for component in components:
        importlib.import_module(component.rpartition(".")[0])
for name in ("scrapy.utils.engine", "twisted.conch.telnet", "uvloop"):
    importlib.import_module(name)
# Each command begins with a search for all commands, half of what a small one takes; the second search finds most of it in caches.
settings = Settings()
settings.setmodule("crawlspace.settings", priority="project")
with redirect_stdout(io.StringIO()), suppress(SystemExit):
    execute(["scrapy", "version", "--verbose"], settings)
entry_points(group="scrapy.commands")
if "twisted.internet.reactor" in sys.modules:
    raise RuntimeError("a reactor was imported: each process chooses its own")
gc.freeze()
