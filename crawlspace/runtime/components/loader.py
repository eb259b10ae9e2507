"""Makes each collection a spider: `scrapy list`, `scrapy crawl <collection>` and all other users of Scrapy's spider loader see collections."""

from __future__ import annotations

import ast
import builtins
import inspect
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

from scrapy import Request, Spider
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, Settings
from scrapy.spiderloader import SpiderLoader
from scrapy.utils.conf import closest_scrapy_cfg
from scrapy.utils.misc import load_object

from crawlspace import settings as defaults
from crawlspace.config.collection import collection_folder, collection_names, load_collection, read_settings_file
from crawlspace.crawl.rule_changes.rediscovery import SpiderCode
from crawlspace.crawl.startup import build_space
from crawlspace.errors import ConfigError, SettingError, UnknownCollection
from crawlspace.parsing import duration
from crawlspace.runtime.components.setting_kinds import COMPONENTS, check_kinds
from crawlspace.text import printable_message, quoted

GENERIC_SPIDER = "spiders.collection.CollectionSpider"
BASE_SPIDER = "crawlspace.runtime.components.spider.FrontierSpider"


class CollectionLoader(SpiderLoader):
    """A collection's spider is the class in `spiders/` of that name, else the generic one."""

    def __init__(self, settings: BaseSettings) -> None:
        try:
            super().__init__(settings)
        except Exception as error:  # noqa: BLE001 - whatever the code of a project raises when it is imported
            raise SystemExit(_import_failure(error, settings)) from None
        self._settings = settings

    def _of_no_collection(self, name: str) -> str | None:
        found = self._spiders.get(name)
        if found is None:
            return None
        file = Path(*found.__module__.split(".")).with_suffix(".py")
        return (
            f"{quoted(name)} is the name of a spider in {file}, and of no collection: `scrapy runspider {file}` runs it by itself,"
            f" `scrapy startcollection {name} URL` makes a collection for it"
        )

    def load(self, spider_name: str) -> type[Spider]:
        """Return the spider class of a collection. Raises KeyError with a sentence, as Scrapy expects."""
        try:
            collection_folder(spider_name, self._settings)
        except UnknownCollection as error:
            raise KeyError(self._of_no_collection(spider_name) or str(error)) from None
        except ConfigError as error:
            raise SystemExit(str(error)) from None
        generic = _generic_spider(self._settings)
        found = self._spiders.get(spider_name)
        if found is not None:
            if not issubclass(found, generic):
                raise SystemExit(
                    f"the spider {found.__module__}.{found.__qualname__} has the name of the collection {quoted(spider_name)} and cannot crawl it:"
                    f" derive it from {GENERIC_SPIDER}, or give it another name"
                )
            return found
        of_the_file = {"__module__": generic.__module__}  # for `scrapy edit`
        return type("CollectionSpider", (generic,), {"name": spider_name, **of_the_file})

    def own_class(self, name: str) -> type[Spider] | None:
        """Return the class in the project's spiders with a name, whatever its base; None without one."""
        return self._spiders.get(name)

    def find_by_request(self, request: Request) -> builtins.list[str]:
        """Return the collections that admit a URL: Scrapy's `parse`, `shell` and `fetch` take the spider of the only one."""
        return [name for name in self.list() if self._admits(name, request.url)]

    def _admits(self, name: str, url: str) -> bool:
        try:
            collection = load_collection(name, collection_settings(self._settings, name))
        except ConfigError:  # `lint` says what is wrong with it
            return False
        return build_space(collection).decide(url)[1].admitted

    def list(self) -> builtins.list[str]:
        try:
            return collection_names(str(self._settings["CRAWLSPACE_COLLECTIONS_DIR"]))
        except ConfigError as error:
            raise SystemExit(str(error)) from None


def _generic_spider(settings: BaseSettings) -> type[Spider]:
    """Return the project's CollectionSpider. Raises SystemExit with a sentence where its file is missing or has no such class."""
    module, _, name = GENERIC_SPIDER.rpartition(".")
    try:
        generic = getattr(import_module(module), name, None)  # by name, because spiders are above this package
    except Exception as error:  # noqa: BLE001 - whatever the code of a project raises when it is imported
        raise SystemExit(_import_failure(error, settings)) from None
    base = load_object(BASE_SPIDER)  # by name, because its module imports this one
    if isinstance(generic, type) and issubclass(generic, base):
        return generic
    raise SystemExit(
        f"spiders/collection.py in {project_folder()} has no class CollectionSpider derived from {BASE_SPIDER},"
        f" so no collection can be crawled: give it one, or rename the file: {RESTORE}"
    )


RESTORE = "`crawlspace init --upgrade` in that folder writes files that are missing"


def _import_failure(error: Exception, settings: BaseSettings) -> str:
    """Return the sentence for an error that importing the project's spiders has raised."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {error.msg}; nothing can be crawled until the spider is corrected"
    package, _, _ = GENERIC_SPIDER.partition(".")
    if isinstance(error, ModuleNotFoundError) and error.name in (package, GENERIC_SPIDER.rpartition(".")[0]):
        return f"spiders/collection.py is missing in {project_folder()}, so no collection can be crawled: {RESTORE}"
    modules = settings.getlist("SPIDER_MODULES")
    packages = tuple(f"{name}." for name in (package, *modules))
    own = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if f"{frame.f_globals.get('__name__')}.".startswith(packages)
    ]
    sentence = printable_message(" ".join(f"{type(error).__name__}: {error}".split()))
    if own:
        return f"{own[-1]}: {sentence}; nothing can be crawled until the spider is corrected"
    return (
        f"SPIDER_MODULES is {modules}, which cannot be imported ({sentence}): name the packages with the spiders of the project"
    )


def project_folder() -> Path:
    """Return the folder of the project that the working folder is in."""
    return Path(closest_scrapy_cfg() or "scrapy.cfg").absolute().parent


@contextmanager
def adding_components(settings: BaseSettings) -> Iterator[None]:
    """Let component settings that are set inside add to those of the project instead of replacing them; None removes one."""
    check_kinds(settings, COMPONENTS)
    before = {name: settings.getdict(name) for name in COMPONENTS}
    yield
    for name, components in before.items():
        now = settings.getdict(name)
        if now != components:
            settings.set(name, {**components, **now}, priority=settings.getpriority(name) or 0)


def add_to_ours(settings: BaseSettings) -> None:
    """Add the components that a project or the command line sets to ours; None removes one. Raises SettingError."""
    check_kinds(settings, COMPONENTS)
    for name in COMPONENTS:
        now, ours = settings.getdict(name), getattr(defaults, name)
        if not ours.keys() <= now.keys():
            settings.set(name, {**ours, **now}, priority=_above(settings, name))


def _above(settings: BaseSettings, name: str) -> int:
    """Return one more than the priority of a setting, because Scrapy applies the settings of the process once more."""
    return (settings.getpriority(name) or 0) + 1


def overlay_collection(settings: BaseSettings, name: str) -> None:
    """Apply a collection's settings.py over the project's; the command line has priority. Raises ConfigError."""
    own = read_settings_file(collection_folder(name, settings))
    check_kinds(own, own)
    check_kinds(settings, settings)
    _overlay(settings, own)


def _overlay(settings: BaseSettings, own: Mapping[str, object]) -> None:
    with adding_components(settings):
        settings.setdict(own, priority="spider")
    delay = settings["DOWNLOAD_DELAY"]
    if isinstance(delay, str):  # Scrapy itself knows no units
        settings.set("DOWNLOAD_DELAY", duration("DOWNLOAD_DELAY", delay, low=0), priority=_above(settings, "DOWNLOAD_DELAY"))


def collection_settings(settings: BaseSettings, name: str) -> BaseSettings:
    """Return a copy of the settings as they are for one collection. Raises ConfigError."""
    own = settings.copy()
    own.frozen = False  # those of a process that runs are
    try:
        spider = CollectionLoader.from_settings(own).load(name)
    except SystemExit:  # of a spider that cannot be imported; `lint` and `crawl` report it, other commands do without
        overlay_collection(own, name)
    else:
        spider.update_settings(own)
    return own


def settings_and_faults(
    settings: BaseSettings, name: str, *, spider: type[Spider] | None = None
) -> tuple[BaseSettings, list[SettingError]]:
    """Return as `collection_settings`, without those that Scrapy could not read, and the error of each of these. Raises ConfigError."""
    own, laid = read_settings_file(collection_folder(name, settings)), settings.copy()
    defaults = default_values()
    custom = custom_settings_of(spider)
    errors: list[SettingError] = []
    for setting in [*settings, *custom, *own]:
        for values in (laid, custom, own):
            try:
                if setting in values:
                    check_kinds(values, [setting])
                    if setting == "DOWNLOAD_DELAY" and isinstance(values[setting], str):
                        duration(setting, values[setting], low=0)
            except SettingError as error:
                errors.append(error)
                if isinstance(values, dict):
                    del values[setting]
                else:
                    laid.set(setting, defaults.get(setting), priority="cmdline")
    add_to_ours(laid)
    with adding_components(laid):
        laid.setdict(custom, priority="spider")
    _overlay(laid, own)
    add_start_urls(laid, spider)
    return laid, list({str(error): error for error in errors}.values())


def custom_settings_of(spider: type[Spider] | None) -> dict[str, object]:
    """Return the `custom_settings` of a spider class."""
    return dict(getattr(spider, "custom_settings", None) or {})


def add_start_urls(settings: BaseSettings, spider: type[Spider] | None) -> None:
    """Have the `start_urls` of a spider class be start URLs of its collection."""
    own_starts = getattr(spider, "start_urls", None)
    if own_starts:
        settings.set("CRAWLSPACE_START_URLS", list(own_starts), priority="spider")


def default_values() -> dict[str, object]:
    """Return the default of every setting."""
    return {**Settings().copy_to_dict(), **{name: value for name, value in vars(defaults).items() if name.isupper()}}


def throttle_other_requests(settings: BaseSettings, sites: dict[Any, Any], *, slot: str, requests: object) -> None:
    """Fill Scrapy's DOWNLOAD_SLOTS: one slot without a delay for leased URLs, because the frontier keeps the delays,
    and one for each host of CRAWLSPACE_SITES, for requests that do not come from the frontier."""
    slots: dict[str, dict[str, Any]] = {
        host: {key: values[key] for key in ("delay", "concurrency") if key in values}
        for host, values in sites.items()
        if isinstance(host, str) and "*" not in host and ":" not in host and isinstance(values, dict)
    }
    slots.update(settings.getdict("DOWNLOAD_SLOTS"))
    at_once = int(str(requests)) if str(requests).isdigit() else 1  # a wrong value is reported where it is read
    slots[slot] = {"delay": 0, "concurrency": at_once, "jitter": 0}
    settings.set("DOWNLOAD_SLOTS", slots, priority=SETTINGS_PRIORITIES["cmdline"])


# --- source hash ---------------------------------------------------------------------------------------------------


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
