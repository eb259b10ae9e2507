"""`scrapy genspider`: Scrapy's command, for the spider class of a collection."""

from __future__ import annotations

import argparse
import keyword
import re
import shlex
import string
import subprocess
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import scrapy
from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.template import string_camelcase

from crawlspace.config.collection import collection_names
from crawlspace.config.files import read_start_urls
from crawlspace.errors import ConfigError, UnknownCollection, UsageError
from crawlspace.runtime.components.command import CollectionCommand
from crawlspace.runtime.components.loader import GENERIC_SPIDER, CollectionLoader
from crawlspace.runtime.session.paths import CollectionPaths
from crawlspace.text import quoted
from crawlspace.urls import MalformedUrl, Url, parse

_EXAMPLE = "scrapy genspider demo"
_DEFAULT = "collection"
_OURS = Path(__file__).parent.parent / "templates" / "spiders"
_SCRAPYS = Path(scrapy.__path__[0]) / "templates" / "spiders"
_ENDING = ".tmpl"


class Command(CollectionCommand):
    usage = "[options] <collection> [<url>]"
    summary = "Generate the spider of a collection from a template"
    explanation = (
        "Write a spider class for a collection, whose document() makes the document of a page. It works as it is, to be edited. The start "
        "URLs are those of the collection; a URL given here, as Scrapy's command wants it, is for templates of your own. These are looked "
        "for in the folder spiders of TEMPLATES_DIR, and have the variables of Scrapy's: $name, $classname, $url, $domain ... "
        "Exit status: 0 written, or listed; 1 the file cannot be written, or a template has a fault; 2 wrong use, or the spider exists."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("-l", "--list", action="store_true", help="list the templates")
        parser.add_argument("-e", "--edit", action="store_true", help="edit the spider then, with EDITOR")
        parser.add_argument("-d", "--dump", metavar="TEMPLATE", help="print a template")
        parser.add_argument(
            "-t", "--template", default=_DEFAULT, help=f"a template, by name or path to a {_ENDING} file; without it {_DEFAULT}"
        )
        parser.add_argument("--force", action="store_true", help="overwrite the file of the spider if it exists")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if opts.list:
            print("Available templates:")
            for name in sorted({file.stem for folder in self._folders() for file in folder.glob(f"*{_ENDING}")}):
                print(f"  {name}")
            return 0
        if opts.dump:
            print(_content(self._template(opts.dump)), end="")
            return 0
        if not 1 <= len(args) <= 2:
            raise UsageError(f"name one collection, as in: {_EXAMPLE} (`scrapy list` shows them)")
        name, url = args[0], _url(args[1]) if len(args) == 2 else None
        self._check_collection(name, url)
        paths = self.paths(name)
        template = self._template(opts.template)
        module = _module(name)
        package, folder = self._package()
        file = folder / f"{module}.py"
        self._check_new(name, f"{package}.{module}", file, force=opts.force)
        _write(file, _filled(template, self._variables(name, module, url)))
        print(f"Created spider {name!r} using template {template.stem!r} in module:\n  {package}.{module}")
        if paths.store.is_shared or paths.state_file.exists():
            print(
                f"Known pages are read with it when they are due; `scrapy recrawl {name} --host HOST` makes those of a host due now."
            )
        if url is not None:
            self._compare(paths, url)
        return _edit(str(self.project_settings()["EDITOR"]), file) if opts.edit else 0

    def _check_collection(self, name: str, url: Url | None) -> None:
        """Raise UnknownCollection, with the way to make it, and UsageError for a name that cannot be written into a template."""
        base = Path(str(self.project_settings()["CRAWLSPACE_COLLECTIONS_DIR"]))
        if name not in collection_names(base):
            start = "URL" if url is None else url.text
            raise UnknownCollection(
                f"no collection {quoted(name)} in {base}: make it with `scrapy startcollection {name} {start}`, then its spider"
            )
        if not name.isprintable() or set('"\\') & set(name):
            raise UsageError(f"the name of the collection {quoted(name)} has a character that no template can hold")

    def _package(self) -> tuple[str, Path]:
        """Return the package for new spiders, and its folder. Raises ConfigError."""
        package = str(self.project_settings()["NEWSPIDER_MODULE"])
        try:
            return package, Path(str(import_module(package).__file__)).parent
        except ImportError as error:
            raise ConfigError(
                f"NEWSPIDER_MODULE is {quoted(package)}, which cannot be imported ({error}): name the package with the spiders of the project"
            ) from error

    def _check_new(self, name: str, module: str, file: Path, *, force: bool) -> None:
        """Raise UsageError if the collection has a spider class or the file exists; with `force`, only for a class in another file."""
        there = CollectionLoader.from_settings(self.project_settings()).own_class(name)
        if there is not None and (there.__module__ != module or not force):
            way_out = "--force writes it again" if there.__module__ == module else "edit it there"
            raise UsageError(f"spider {quoted(name)} exists already, in module {there.__module__}: {way_out}")
        if file.exists() and not force:
            raise UsageError(f"{file} exists already: --force overwrites it")

    def _variables(self, name: str, module: str, url: Url | None) -> Mapping[str, str]:
        """Return the variables of Scrapy's templates."""
        project = str(self.project_settings()["BOT_NAME"])
        return {
            "project_name": project,
            "ProjectName": string_camelcase(project),
            "module": module,
            "name": name,
            "url": "" if url is None else url.text,
            "domain": "" if url is None else url.host,
            "classname": "".join(word.capitalize() for word in module.split("_")) + "Spider",
        }

    def _compare(self, paths: CollectionPaths, url: Url) -> None:
        """Print a note if no start URL has the host of a URL: the crawl does not begin at the URL in a template."""
        try:
            hosts = {start.url.host for start in read_start_urls(paths.folder, paths.settings)}
        except ConfigError:
            hosts = set()  # without start URLs, or with errors that the crawl reports
        if url.host not in hosts:
            print(
                f"{url.host} is the host of no start URL: write {url.text} into {paths.folder / 'start_urls.txt'} to have it crawled"
            )

    def _folders(self) -> list[Path]:
        """Return the folders with templates, those of the project first."""
        settings = self.project_settings()
        is_own = (settings.getpriority("TEMPLATES_DIR") or 0) > SETTINGS_PRIORITIES["default"]
        return [*([Path(str(settings["TEMPLATES_DIR"])) / "spiders"] if is_own else []), _OURS]

    def _template(self, name: str) -> Path:
        """Return the file of a template. Raises UsageError."""
        file_name = name if name.endswith(_ENDING) else f"{name}{_ENDING}"
        for file in (Path(file_name), *(folder / file_name for folder in self._folders())):
            if file.is_file():
                return file
        if (_SCRAPYS / file_name).is_file():
            raise UsageError(
                f"the template {quoted(name)} is Scrapy's, and its spider could not crawl a collection: leave out -t, or name one of --list"
            )
        raise UsageError(f"there is no template {quoted(name)}: --list shows those there are")


def _url(text: str) -> Url:
    """Return the URL of Scrapy's argument, which may be a host alone."""
    try:
        return parse(text if "://" in text else f"https://{text}")
    except MalformedUrl as error:
        raise UsageError(f"{error}; write one like http://www.example.com/") from error


def _module(name: str) -> str:
    """Return the module for a collection's spider."""
    module = re.sub(r"\W", "_", name.lower())
    if not module[0].isalpha():
        module = f"a{module}"
    generic = GENERIC_SPIDER.split(".")[-2]
    return f"{module}_spider" if module == generic or keyword.iskeyword(module) else module


def _content(template: Path) -> str:
    try:
        return template.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the template {template} cannot be read: {error}") from error


def _filled(template: Path, variables: Mapping[str, str]) -> str:
    try:
        return string.Template(_content(template)).substitute(variables)
    except KeyError as error:
        raise ConfigError(f"the template {template} has ${error.args[0]}; there are ${', $'.join(variables)}") from error
    except ValueError as error:
        raise ConfigError(f"the template {template} cannot be filled in: {error}; a $ of its own is written $$") from error


def _write(file: Path, content: str) -> None:
    try:
        file.write_text(content, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from error


def _edit(editor: str, file: Path) -> int:
    """Open a file in an editor, and return its exit status. Raises ConfigError if there is no such editor."""
    try:
        return subprocess.call([*shlex.split(editor), str(file)])
    except (OSError, ValueError) as error:
        raise ConfigError(f"the editor {quoted(editor)} cannot be started ({error}): set EDITOR") from error
