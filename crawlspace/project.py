"""`crawlspace init`: makes the folder of a project, and brings the files of one up to date with the installed version.

The folder has a manifest: the version, and the SHA-256 of each file as it was delivered. Files that still have it are replaced, those of
the user's never are. Each file is written as a whole and the manifest last, so that a command that was killed is run again.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from io import TextIOWrapper
from pathlib import Path, PurePosixPath

import msgspec

from crawlspace import __version__
from crawlspace.errors import ConfigError, CrawlspaceError, UsageError
from crawlspace.private_files import irregular, replace_file
from crawlspace.text import escaped, quoted

COLLECTIONS = "collections"
MANIFEST = ".crawlspace.json"
SCRAPY_CFG = "scrapy.cfg"

_COMMAND = "init"
_UPGRADE = f"`crawlspace {_COMMAND} --upgrade`"
_ADOPT = f"`crawlspace {_COMMAND} --adopt`"
_UNFINISHED = re.compile(r"\.(?P<name>.+)\.[a-z0-9_]{8}\.new")
"""Names of files that `replace_file` had not finished when it was killed."""

_SCRAPY_CFG = """\
# Makes this folder a project: `scrapy` looks for this file here and above.
[settings]
default = settings
"""

_GIT_IGNORE = """\
/data/
__pycache__/
"""

SETTINGS = '''\
"""Settings of all collections: those of Scrapy and of crawlspace. The settings.py of a collection overrides them."""

from crawlspace.settings import *

# Shows the owners of the sites who crawls, and whom to contact.
#USER_AGENT = "crawlspace (+http://www.example.com/about-our-crawler; crawler@example.com)"

# Seconds between two requests to a site.
#DOWNLOAD_DELAY = 1

# How often pages are fetched again: more often the more often they change.
#CRAWLSPACE_REFRESH_MIN = "1d"
#CRAWLSPACE_REFRESH_MAX = "30d"

# Where documents are sent; without it, to an index in the data folder.
#CRAWLSPACE_SINKS = {"search": {"type": "opensearch", "url": "http://127.0.0.1:9200", "index": "crawlspace"}}

# States, indexes and logs; without it, the folder data of this project.
#CRAWLSPACE_DATA_DIR = "/var/lib/crawlspace"

# The log as lines of JSON, and the metrics of a crawl for Prometheus.
#CRAWLSPACE_LOG_FORMAT = "json"
#CRAWLSPACE_METRICS_PORT = 8970
'''


class ProjectManifest(msgspec.Struct, frozen=True):
    """Which version the files of a project are of, and their SHA-256 as delivered, by path."""

    version: str
    files: dict[str, str]


def version_difference(folder: Path, installed: str = __version__) -> str:
    """Return a sentence where the files of a project are not of the installed version; empty where they are, or no manifest is there."""
    try:
        manifest = _read_manifest(folder)
    except ConfigError as error:
        return str(error)
    if manifest is None or manifest.version == installed:
        return ""
    if _is_later(manifest.version, installed):
        return _made_later(folder, manifest, installed)
    return (
        f"the files of this project are of crawlspace {manifest.version}, and {installed} is installed:"
        f" {_UPGRADE} in its folder brings them up to date"
    )


def delivered_files() -> dict[str, bytes]:
    """Return the files of a project of the installed version, by path. Raises ConfigError in the source folder, whose wheel has them."""
    package = Path(__file__).parent
    files = package / "project_files"
    if not files.is_dir():
        raise ConfigError(
            f"crawlspace runs from its source folder {package.parent}, which is a project itself:"
            " run scrapy there, or install the wheel that `make dist` builds to have projects elsewhere"
        )
    texts = {SCRAPY_CFG: _SCRAPY_CFG, "settings.py": SETTINGS, ".gitignore": _GIT_IGNORE}
    modules = {path.relative_to(files).as_posix(): path.read_bytes() for path in sorted(files.rglob("*.py"))}
    return {**{name: text.encode() for name, text in texts.items()}, **modules}


def make_project(folder: Path, delivered: Mapping[str, bytes], version: str = __version__) -> None:
    """Write the files of a project into a folder that is new or empty, or where this was stopped before. Raises ConfigError."""
    with _as_sentences(folder):
        if (folder / MANIFEST).is_file():
            raise ConfigError(f"{folder} is a project already: {_UPGRADE} in it brings its files up to date")
        if not folder.is_dir() and os.path.lexists(folder):
            raise ConfigError(f"{folder} is no folder: name a new one, or an empty one")
        folder.mkdir(parents=True, exist_ok=True)
        other = next(_of_others(folder, delivered), "")
        if other:
            raise ConfigError(f"{folder} is not empty, it has {quoted(other)}: name a new folder, or an empty one")
        (folder / COLLECTIONS).mkdir(exist_ok=True)
        for name, content in delivered.items():
            _write(folder / name, content)
        _write_manifest(folder, delivered, version)


def upgrade_project(
    folder: Path, delivered: Mapping[str, bytes], version: str = __version__, *, is_adopted: bool = False
) -> list[str]:
    """Bring the files of a project up to date, and return a line for each that was written, removed or left; none if nothing was to do.

    `is_adopted`: there is no manifest yet, so whatever differs from what is delivered is the user's. Raises ConfigError.
    """
    with _as_sentences(folder):
        manifest = _manifest_of(folder, version, is_adopted=is_adopted)
        lines: list[str] = []
        for name, content in delivered.items():
            lines += _upgraded(folder, name, content, before=manifest.files.get(name))
        for name in manifest.files.keys() - delivered.keys():
            lines += _removed(folder, name, before=manifest.files[name])
        if manifest != _manifest(delivered, version):
            _write_manifest(folder, delivered, version)
            lines = lines or ["no file has changed between the versions"]
        return sorted(lines)


def _upgraded(folder: Path, name: str, content: bytes, *, before: str | None) -> Iterator[str]:
    """Write a delivered file where it is missing, or unchanged since it was delivered, else beside the user's."""
    path = folder / name
    has, new = _hash_of(path), _hash(content)
    if has == new:
        return
    if has is None or has == before:
        _write(path, content)
        yield f"{'written' if has is None else 'replaced'}: {name}"
    elif new != before:
        _write(folder / f"{name}.new", content)
        yield f"yours was left: {name}; the file of this version is {name}.new: take over what you need of it, and remove it"


def _removed(folder: Path, name: str, *, before: str) -> Iterator[str]:
    """Remove a file that is no longer delivered, unless the user has changed it."""
    has = _hash_of(folder / name)
    if has == before:
        (folder / name).unlink()
        yield f"removed: {name}"
    elif has is not None:
        yield f"yours was left: {name}; it is no longer part of a project: remove it if you don't need it"


def _manifest_of(folder: Path, version: str, *, is_adopted: bool) -> ProjectManifest:
    """Return the manifest of a project to be upgraded or adopted. Raises ConfigError where neither is possible."""
    manifest = _read_manifest(folder)
    if manifest is not None:
        if _is_later(manifest.version, version):
            raise ConfigError(_made_later(folder, manifest, version))
        if is_adopted:
            raise ConfigError(f"{folder} has a manifest already, {MANIFEST}: use {_UPGRADE}")
        return manifest
    if not (folder / SCRAPY_CFG).is_file():
        raise ConfigError(
            f"{folder} is no project, it has no {SCRAPY_CFG}: name the folder of one, or make one with `crawlspace {_COMMAND} DIR`"
        )
    if not is_adopted:
        raise ConfigError(
            f"{folder} has no manifest, {MANIFEST}, so nobody knows which of its files you have changed:"
            f" {_ADOPT} writes one, keeps all your files, and puts NAME.new beside those that differ from the delivered ones"
        )
    return ProjectManifest("0", {})


def _read_manifest(folder: Path) -> ProjectManifest | None:
    """Return the manifest of a folder; None without one. Raises ConfigError for one that cannot be read."""
    path = folder / MANIFEST
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=ProjectManifest)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise ConfigError(f"{folder} is a file: name the folder of a project") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}; make it readable for you") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(path, str(error)) from error
    if not _VERSION.fullmatch(manifest.version):
        raise _damaged(path, f"{quoted(manifest.version)} is no version")
    for name in manifest.files:
        parts = PurePosixPath(name).parts
        if not parts or PurePosixPath(name).is_absolute() or ".." in parts:
            raise _damaged(path, f"{quoted(name)} is no file of a project")
    return manifest


_VERSION = re.compile(r"\d{1,9}(\.\d{1,9})*([a-z]+\d{1,9})?")
"""As the package has them: 1.2.3, and 1.2.3rc1 before that."""


def _damaged(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"{path} is damaged ({why}): restore it from a backup, or remove it and run {_ADOPT}, which writes it again"
    )


def _made_later(folder: Path, manifest: ProjectManifest, installed: str) -> str:
    return (
        f"the files of the project {folder} are of crawlspace {manifest.version}, a later version than {installed}, which is installed:"
        " upgrade the package (`pip install --upgrade crawlspace`)"
    )


def _is_later(version: str, other: str) -> bool:
    return _order(version) > _order(other)


def _order(version: str) -> tuple[tuple[int, ...], bool, tuple[str, int]]:
    """Return a key that puts versions in their order: 1.2rc1, 1.2, 1.10."""
    release, letters, number = re.fullmatch(r"([\d.]+)([a-z]*)(\d*)", version).groups()  # type: ignore[union-attr]
    numbers = tuple(map(int, release.split(".")))
    return numbers, not letters, (letters, int(number or 0))


def _write_manifest(folder: Path, delivered: Mapping[str, bytes], version: str) -> None:
    """Remove what earlier calls, killed, have left unfinished, and write the manifest."""
    for place in {(folder / name).parent for name in delivered} | {folder}:
        for path in place.iterdir():
            if _is_unfinished(path, folder, delivered):
                path.unlink()
    _write(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(_manifest(delivered, version)), indent=2) + b"\n")


def _manifest(delivered: Mapping[str, bytes], version: str) -> ProjectManifest:
    return ProjectManifest(version, {name: _hash(content) for name, content in sorted(delivered.items())})


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()


def _hash_of(path: Path) -> str | None:
    """Return the hash of a file of a project; None if it is missing. Raises ConfigError if it is no file."""
    if kind := irregular(path):
        raise ConfigError(f"{path} is {kind}, where a file of the project belongs: rename it")
    with suppress(FileNotFoundError, NotADirectoryError):
        return _hash(path.read_bytes())
    return None


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content, mode=0o644)


def _of_others(folder: Path, delivered: Mapping[str, bytes]) -> Iterator[str]:
    """Yield what a folder has besides files that `make_project` writes, by path: what was there before."""
    places = {parent.as_posix() for name in delivered for parent in PurePosixPath(name).parents} | {COLLECTIONS}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if (name in places and path.is_dir()) or _is_unfinished(path, folder, delivered):
            continue
        if not path.is_file() or delivered.get(name) != path.read_bytes():
            yield name


def _is_unfinished(path: Path, folder: Path, delivered: Iterable[str]) -> bool:
    found = _UNFINISHED.fullmatch(path.name)
    name = "" if found is None else (path.parent / found["name"]).relative_to(folder).as_posix()
    return name.removesuffix(".new") in {*delivered, MANIFEST} and path.is_file()


@contextmanager
def _as_sentences(folder: Path) -> Iterator[None]:
    """Turn errors of the file system into sentences."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"{error.filename or folder}: {error.strerror}; correct that and run the same command again: it goes on from where it was stopped"
        ) from error


# --- command line ---------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a character that the terminal cannot show is no reason to fail
    try:
        for line in _answer(list(sys.argv[1:] if arguments is None else arguments)):
            sys.stdout.write(f"{escaped(line, keep_lines=True)}\n")
        sys.stdout.flush()
    except CrawlspaceError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_status
    except OSError as error:  # of the output alone: those of the project are sentences
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # whose reader has read enough, as `head` does
            sys.stderr.write(f"what was done cannot be printed: {error.strerror}\n")
            return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _answer(arguments: Sequence[str]) -> list[str]:
    """Do what the command line orders, and return the lines to print. Raises CrawlspaceError, and SystemExit for --help."""
    command = next((word for word in arguments if not word.startswith("-")), _COMMAND)
    if command != _COMMAND:
        raise UsageError(
            f"crawlspace has no command {quoted(command)}: it has init, which makes the folder of a project;"
            " all others are Scrapy's, and run in that folder, as in `scrapy crawl NAME` (`scrapy --help` lists them)"
        )
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.command is None:
        parser.print_usage(sys.stderr)
        raise UsageError("give a command, as in: crawlspace init site (--help has more)")
    if given.upgrade or given.adopt:
        folder = Path(given.folder or ".")
        lines = upgrade_project(folder, delivered_files(), is_adopted=given.adopt)
        done = f"The files of {_shown(folder)} are those of crawlspace {__version__}" + (
            " now" if lines else "; nothing was to do"
        )
        return [*lines, f"{done}."]
    if not given.folder:
        raise UsageError("name the folder of the new project, as in: crawlspace init site")
    folder = Path(given.folder)
    make_project(folder, delivered_files())
    steps = [
        *([] if folder.resolve() == Path.cwd() else [f"cd {shlex.quote(str(folder))}"]),
        "scrapy startcollection handbook http://www.example.com/",
        "scrapy crawl handbook",
    ]
    return [f"{_shown(folder)} is a project of crawlspace {__version__}. Next:", *(f"  {step}" for step in steps)]


def _shown(folder: Path) -> str:
    return str(folder) if folder.name else str(folder.absolute())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="crawlspace",
        description="Make the folder of a crawler, or bring its files up to date. Everything else is a command of Scrapy's, run in that folder.",
        epilog="In a project: scrapy startcollection, lint, plan, crawl, status, search, console ...; scrapy --help lists all, "
        "and scrapy COMMAND --help explains one. "
        "Exit status: 0 done; 1 a folder or file is not as it should be, or cannot be written; 2 wrong use.",
    )
    parser.add_argument("--version", action="version", version=f"crawlspace {__version__}")
    commands = parser.add_subparsers(dest="command", metavar=_COMMAND)
    explained = "Make the folder of a project: scrapy.cfg, settings.py, spiders, middlewares, pipelines and an empty folder for collections."
    init = commands.add_parser(
        _COMMAND,
        help="make the folder of a project, or upgrade one",
        description=f"{explained} With --upgrade, bring those of a project up to date with the installed version: files that you have not "
        "changed are replaced, beside changed ones NAME.new is written where the delivered file has changed, and unchanged files that "
        "are no longer delivered are removed. What was stopped or killed is done by the same command again.",
    )
    init.add_argument(
        "folder",
        nargs="?",
        metavar="DIR",
        help="a new or empty folder; with --upgrade or --adopt a project (default: this folder)",
    )
    kinds = init.add_mutually_exclusive_group()
    kinds.add_argument("--upgrade", action="store_true", help="bring the files of a project up to date")
    kinds.add_argument(
        "--adopt",
        action="store_true",
        help=f"the same for a project that has no manifest ({MANIFEST}): all files that differ count as yours",
    )
    return parser
