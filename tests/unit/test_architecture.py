"""What holds for the code as a whole, read off the source: which part may import which, and what no file may hold."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.command_line import ROOT

# Imports go one way, from the right to the left. A part is a module or package of crawlspace, or one of the top-level folders;
# parts of `values` and of `engine` may import each other, the others keep to themselves. What is named nowhere is of the engine.
LEVELS = ("values", "middle", "engine", "runtime", "outer")
PARTS = {
    **dict.fromkeys(
        (
            "model",
            "decision",
            "urls",
            "clock",
            "errors",
            "content_type",
            "counted",
            "printable",
            "private_files",
            "readers",
            "recent",
        ),
        "values",
    ),
    **dict.fromkeys(("rules", "state", "frontier", "content", "index"), "middle"),
    "runtime": "runtime",
    **dict.fromkeys(("addon", "commands", "spiders", "middlewares", "pipelines"), "outer"),
}
ALSO = {("frontier", "state.store")}

LONGER_THAN_400_LINES: set[str] = set()
UNSAFE_TO_READ = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "misc", "common"}

PROJECT = ("crawlspace", "spiders", "middlewares", "pipelines")
ALL_CODE = (*PROJECT, "tests", "examples", "benchmarks", "collections")


@cache
def modules(*folders: str) -> dict[str, Path]:
    """Python files by dotted name."""
    paths = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of all that a file imports, wherever in it; `from a import b` counts as a.b."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            yield from ((node.lineno, f"{node.module}.{name.name}") for name in node.names)


def part(name: str) -> str:
    """The part a module or an imported name belongs to: `crawlspace.rules.space.Space` is in rules."""
    first, _, rest = name.partition(".")
    return rest.partition(".")[0] if first == "crawlspace" and rest else first


def level(name: str) -> str:
    return PARTS.get(part(name), "engine")


def forbidden(importer: str, imported: str) -> bool:
    """Whether a module of the project, by dotted name, may not import a dotted name."""
    package = imported.partition(".")[0]
    if package not in PROJECT:
        return package in {"tests", "examples", "benchmarks"}  # the project works without its tests and examples
    if part(importer) == part(imported) or imported == "crawlspace.__version__":
        return False
    if any(part(importer) == who and imported.startswith(f"crawlspace.{what}.") for who, what in ALSO):
        return False
    own, other = LEVELS.index(level(importer)), LEVELS.index(level(imported))
    return other > own or (other == own and LEVELS[own] not in {"values", "engine"})


@pytest.mark.parametrize(
    ("importer", "imported", "wrong"),
    [
        ("crawlspace.rules.space", "crawlspace.rules.domain.Domains", False),
        ("crawlspace.rules.space", "crawlspace.decision.Decision", False),
        ("crawlspace.rules.space", "crawlspace.state.store.Store", True),
        ("crawlspace.rules.space", "crawlspace.engine.Engine", True),
        ("crawlspace.frontier.frontier", "crawlspace.state.store.Store", False),
        ("crawlspace.frontier.frontier", "crawlspace.state.sqlite.SqliteStore", True),
        ("crawlspace.engine", "crawlspace.state.sqlite.SqliteStore", False),
        ("crawlspace.engine", "crawlspace.runtime.bridge.Bridge", True),
        ("crawlspace.engine", "crawlspace.config.Config", False),
        ("crawlspace.model", "crawlspace.decision.Reason", False),
        ("crawlspace.model", "crawlspace.rules", True),
        ("crawlspace.commands.explain", "crawlspace.runtime.bridge.Bridge", False),
        ("crawlspace.commands.explain", "crawlspace.__version__", False),
        ("spiders.collection", "crawlspace.engine.Engine", False),
        ("spiders.collection", "pipelines.state.RecordState", True),
        ("crawlspace.runtime.loader", "spiders.collection.CollectionSpider", True),
        ("crawlspace.engine", "tests.sites.serve", True),
        ("crawlspace.engine", "lxml.html", False),
    ],
)
def test_the_rule_for_imports(importer: str, imported: str, *, wrong: bool) -> None:
    assert forbidden(importer, imported) is wrong


def test_imports_go_one_way() -> None:
    assert not [
        f"{path.relative_to(ROOT)}:{line}: {name} may not import {imported}"
        for name, path in modules(*PROJECT).items()
        if name != "crawlspace"
        for line, imported in imports(path)
        if forbidden(name, imported)
    ]


def test_only_the_runtime_knows_scrapy() -> None:
    assert not [
        f"{path.relative_to(ROOT)}:{line}: imports {imported}"
        for name, path in modules("crawlspace").items()
        if level(name) not in {"runtime", "outer"}
        for line, imported in imports(path)
        if imported.partition(".")[0] in {"scrapy", "scrapy_redis", "twisted"}
    ]


def test_modules_are_short() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in modules(*PROJECT).values()
    }
    assert {name for name, length in lengths.items() if length > 400} == LONGER_THAN_400_LINES


def test_modules_are_named_for_what_they_do() -> None:
    assert not [name for name in modules(*ALL_CODE) if VAGUE_NAMES & set(name.split("."))]


def test_nothing_is_unpickled() -> None:
    assert not [
        f"{path.relative_to(ROOT)}:{line}: {imported}"
        for path in modules(*ALL_CODE).values()
        for line, imported in imports(path)
        if imported.partition(".")[0] in UNSAFE_TO_READ
    ]


def test_nothing_sleeps() -> None:
    """Waits belong to the event loop, and time in tests to a clock; measurements may wait."""
    assert not [
        str(path.relative_to(ROOT))
        for name, path in modules(*ALL_CODE).items()
        if not name.startswith("benchmarks")
        if any(imported == "time.sleep" for _, imported in imports(path))
        or any(isinstance(node, ast.Attribute) and ast.unparse(node) == "time.sleep" for node in ast.walk(tree(path)))
    ]


# --- all files of the repository ----------------------------------------------------------------------------------


@cache
def texts() -> dict[str, str]:
    """Every text file that git keeps, or would keep once it is added, by its path."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert listed.returncode == 0, f"the files of the project cannot be listed: {listed.stderr}"
    found = {}
    for name in filter(None, listed.stdout.split("\0")):
        raw = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b""
        if b"\0" not in raw:
            found[name] = raw.decode("utf-8")
    return found


def holding(pattern: str, found: dict[str, str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, content in found.items()
        for number, line in enumerate(content.splitlines(), 1)
        if re.search(pattern, line)
    ]


def test_no_file_holds_a_path_of_a_machine() -> None:
    here = "|".join(re.escape(f"{path}/") for path in {ROOT, Path.home()} if len(path.parts) > 1)
    someones = r"/home/[\w.-]+/|/Users/[\w.-]+/|[A-Z]:\\Users\\"
    assert not holding(rf"(?<![\w.])(?:{here}|{someones})", texts())


def test_no_file_names_a_package_registry() -> None:
    assert not holding(r"https?://[^/]+/(simple|packages)/|--(extra-)?index-url [a-z]|--find-links [a-z]", texts())


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt", "requirements-fuzz.txt"])
def test_requirements_are_versions_and_hashes_and_nothing_else(name: str) -> None:
    pinned = r"[a-z0-9.-]+==[\w.]+( ; [^\\]+)? \\"
    digest = r" {4}--hash=sha256:[0-9a-f]{64}( \\)?"
    assert not [line for line in texts()[name].splitlines() if not re.fullmatch(rf"#.*|{pinned}|{digest}", line)]


def test_the_other_requirements_hold_the_users() -> None:
    users, developers, fuzzers = (
        {line for line in texts()[name].splitlines() if "==" in line}
        for name in ("requirements.txt", "requirements-dev.txt", "requirements-fuzz.txt")
    )
    assert users < developers
    assert users < fuzzers


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads(texts()["pyproject.toml"])["project"]
    for declared, name in (
        (project["dependencies"], "requirements.txt"),
        (project["optional-dependencies"]["dev"], "requirements-dev.txt"),
        (project["optional-dependencies"]["fuzz"], "requirements-fuzz.txt"),
    ):
        wanted = {re.split(r"[<>=;\s]", line)[0] for line in declared}
        pinned = {line.partition("==")[0] for line in texts()[name].splitlines()}
        assert wanted <= pinned, "run make lock"
