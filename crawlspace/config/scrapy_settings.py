"""Checks of those of Scrapy's own settings that a crawl depends on."""

from __future__ import annotations

from collections.abc import Mapping

from crawlspace.config.credential_headers import default_headers
from crawlspace.errors import SettingError
from crawlspace.parsing import integer, seconds
from crawlspace.text import quoted

NEEDED = (
    ("ITEM_PIPELINES", "pipelines.dedupe.Fingerprint"),
    ("ITEM_PIPELINES", "pipelines.state.RecordState"),
    ("ITEM_PIPELINES", "pipelines.index.DrainIndex"),
    ("SPIDER_MIDDLEWARES", "crawlspace.runtime.components.one_outcome.OneOutcome"),
)
"""(setting, component) without which a crawl would not end."""
ITEM_PROCESSOR = "crawlspace.runtime.components.pipelines.PagePipelines"


def check_scrapys_settings(settings: Mapping[str, object]) -> None:
    """Raise SettingError for the first wrong one of Scrapy's own settings, for which Scrapy would end in a traceback."""
    for setting, component in NEEDED:
        there = settings[setting]
        named = {_name_of(key): value for key, value in there.items()} if isinstance(there, Mapping) else {}
        if named.get(component) is None:
            raise SettingError(f"{setting} has no {component}, without which nothing is recorded: leave it in")
    if settings["ITEM_PROCESSOR"] != ITEM_PROCESSOR:
        raise SettingError(
            f"ITEM_PROCESSOR is {quoted(settings['ITEM_PROCESSOR'])}, through which nothing is recorded: remove that setting;"
            " item pipelines of your own go into ITEM_PIPELINES"
        )
    integer("CONCURRENT_REQUESTS", settings["CONCURRENT_REQUESTS"], low=1)
    seconds("DOWNLOAD_TIMEOUT", settings["DOWNLOAD_TIMEOUT"])
    list(default_headers(settings))
    integer("DOWNLOAD_MAXSIZE", settings["DOWNLOAD_MAXSIZE"], low=0)


def _name_of(component: object) -> str:
    return (
        component
        if isinstance(component, str)
        else f"{getattr(component, '__module__', '')}.{getattr(component, '__qualname__', '')}"
    )
