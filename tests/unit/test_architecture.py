"""What holds for the code as a whole, read off the source: which part may import which, and what no file may hold."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.command_line import ROOT

# Imports go one way: a module may import from its own package and from lower floors. Each module of the ground floor, each package of
# crawlspace and each top-level folder is named here, so that none is free by being unknown.
FLOORS: tuple[frozenset[str], ...] = (
    frozenset(
        {
            "cache",
            "clock",
            "cron",
            "decision",
            "document",
            "errors",
            "model",
            "outcome",
            "parsing",
            "private_files",
            "project",
            "content_settings",
            "setting_types",
            "simhash",
            "settings",
            "status",
            "text",
            "urls",
        }
    ),
    frozenset({"rules", "state", "frontier", "content", "index", "archive"}),
    frozenset({"config"}),
    frozenset({"access"}),
    frozenset({"crawl"}),
    frozenset({"lint"}),
    frozenset({"admin", "importers"}),
    frozenset({"distributed"}),
    frozenset({"runtime"}),
    frozenset({"console"}),
    frozenset({"addon", "addon_commands", "commands", "spiders", "middlewares", "pipelines"}),
)
GROUND = FLOORS[0]
ALSO = {("frontier", "state.site_pauses"), ("frontier", "state.store"), ("frontier", "state.views")}
"""Who may import what of its own floor: the frontier is kept by the store."""
MOST_LINES = 600
"""Lines of a module."""
MOST_MODULES = 30
"""Modules in one folder, without its packages."""
MOST_IMPORTS = 20
"""Modules of ours that one module imports."""
MANY_IMPORTS = {
    "crawlspace.admin.explain": "tells what every part of a crawl would do with a URL",
    "crawlspace.lint.collection": "checks every file of a collection",
    "crawlspace.commands.add": "checks a URL against rules, store and sites before it is entered",
    "crawlspace.commands.status": "shows what each part of a store has to report",
    "crawlspace.config.collection": "reads all settings of a collection into one value",
    "crawlspace.crawl.engine": "is the façade of a running crawl",
    "crawlspace.crawl.startup": "brings all parts of a store in line and builds the engine",
    "crawlspace.importers.ibm.collection": "puts all parts of an imported configuration together",
    "crawlspace.runtime.browser.crawl_browser": "connects the browser to the crawl",
    "crawlspace.runtime.components.scheduler": "connects Scrapy to the engine",
    "crawlspace.runtime.session.replay_process": "runs the parts of a crawl in a process of its own",
    "crawlspace.runtime.session.collection_status": "puts the numbers of all parts of a collection together",
    "crawlspace.runtime.session.session": "opens and closes all parts of a crawl",
    "crawlspace.runtime.components.spider": "is what the spiders of a project derive from",
    "crawlspace.runtime.components.responses": "makes an outcome of every kind of response",
    "crawlspace.runtime.session.stores": "opens each kind of store",
    "crawlspace.state.sqlite.store": "is the whole store: each method is, or calls, a function of the module of its subject",
}
"""Modules with more imports, each with its reason."""
SINGLE_MODULES = {
    "middlewares": "binds the rules; what else a project needs is its own",
    "spiders": "is where Scrapy looks for the spiders of a project",
}
"""Packages of one module, each with its reason."""
ONE_MODULE_EACH = frozenset({"crawlspace/commands"})
"""Folders in which Scrapy looks for a module of each name, so that they cannot be divided."""
ENGINE = "crawlspace.crawl.engine"
VALUES_OF_ENGINE = {"collection", "space", "policy", "progress"}
"""What others may read of the engine's attributes: values, with no effect on the crawl."""
KNOWS_SCRAPY = frozenset({"runtime", "addon", "addon_commands", "commands", "spiders", "middlewares", "pipelines"})
SCRAPY_REDIS = {"crawlspace.distributed.connection"}
"""Connects with the settings of scrapy-redis."""
INTERNALS = {"crawlspace.runtime.components.scrapy_internals"}
"""Where private names of libraries are used, each with its reason."""
OF_NAMED_TUPLES = frozenset({"_asdict", "_fields", "_make", "_replace"})

SLOW_REPLIES = {"tests.sites", "tests.hostile.replies"}
"""Servers that are slow on purpose."""
KILLS_AT_RANDOM = {
    "tests.long.crash",
    "tests.long.shared_crash",
    "tests.long.rebuild",
    "tests.long.sink_down",
    "tests.long.sink_faults",
    "tests.long.soak",
}
"""Long tests that look at a crawl, or kill it, at a random moment: real time passes in them."""
MOST_LINES_OWNED = 50
UNSAFE_TO_READ = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "misc", "common"}

OWN_FILES = ("spiders", "middlewares", "pipelines")
"""What each project owns: copied from the wheel, and there to be changed."""
PROJECT = ("crawlspace", *OWN_FILES)
ALL_CODE = (*PROJECT, "tests", "examples", "benchmarks", "collections")


@cache
def modules(*folders: str) -> dict[str, Path]:
    """Python files by dotted name."""
    paths = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """Millions of nodes, which the garbage collector would look at in each later test."""
    yield
    nodes.cache_clear()


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of all that a file imports, wherever in it; `from a import b` counts as a.b."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            yield from ((node.lineno, f"{node.module}.{name.name}") for name in node.names)


def part(name: str) -> str:
    """The part a module or an imported name belongs to: `crawlspace.rules.space.Space` is in rules."""
    first, _, rest = name.partition(".")
    return rest.partition(".")[0] if first == "crawlspace" and rest else first


def floor(name: str) -> int | None:
    """The floor of a module or an imported name; None where it is named nowhere."""
    return next((number for number, parts in enumerate(FLOORS) if part(name) in parts), None)


def forbidden(importer: str, imported: str) -> bool:
    """Whether a module of the project, by dotted name, may not import a dotted name."""
    package = imported.partition(".")[0]
    if package not in PROJECT:
        return package in {"tests", "examples", "benchmarks"}  # the project works without its tests and examples
    if part(importer) == part(imported) or imported == "crawlspace.__version__":
        return False
    if any(part(importer) == who and imported.startswith(f"crawlspace.{what}.") for who, what in ALSO):
        return False
    own, other = floor(importer), floor(imported)
    if own is None or other is None:
        return True
    return other > own or (other == own and own > 0)


def cycles(graph: Mapping[str, Collection[str]]) -> list[list[str]]:
    """The groups of modules each of which imports, by way of others, all of its group (Tarjan's strongly connected components)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for other in graph.get(name, ()):
            if other not in number:
                visit(other)
            if other in stack:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == number[name]:
            group = [stack.pop()]
            while group[-1] != name:
                group.append(stack.pop())
            if len(group) > 1:
                found.append(sorted(group))

    for name in graph:
        if name not in number:
            visit(name)
    return sorted(found)


@cache
def import_graph() -> dict[str, set[str]]:
    """By module of the project, the modules that it imports wherever in it, for the type checker's eyes only or in a function."""
    known = modules(*PROJECT)

    def module_of(imported: str) -> str:
        while imported and imported not in known:
            imported = imported.rpartition(".")[0]
        return imported

    return {name: {module_of(imported) for _, imported in imports(path)} - {"", name} for name, path in known.items()}


@pytest.mark.parametrize(
    ("importer", "imported", "wrong"),
    [
        ("crawlspace.rules.space", "crawlspace.rules.domain.Domains", False),
        ("crawlspace.rules.space", "crawlspace.decision.Decision", False),
        ("crawlspace.rules.space", "crawlspace.state.store.Store", True),
        ("crawlspace.rules.space", "crawlspace.crawl.engine.Engine", True),
        ("crawlspace.rules.space", "crawlspace.nowhere.Thing", True),
        ("crawlspace.nowhere", "crawlspace.rules.space.CrawlSpace", True),
        ("crawlspace.config.collection", "crawlspace.rules.limits.Limits", False),
        ("crawlspace.crawl.engine", "crawlspace.admin.report.report", True),
        ("crawlspace.distributed.worker", "crawlspace.runtime.session.session.Session", True),
        ("crawlspace.frontier.frontier", "crawlspace.state.store.Store", False),
        ("crawlspace.frontier.frontier", "crawlspace.state.sqlite.store.SqliteStore", True),
        ("crawlspace.crawl.engine", "crawlspace.state.sqlite.store.SqliteStore", False),
        ("crawlspace.crawl.engine", "crawlspace.runtime.bridge.Bridge", True),
        ("crawlspace.crawl.engine", "crawlspace.config.collection.Config", False),
        ("crawlspace.model", "crawlspace.decision.Reason", False),
        ("crawlspace.model", "crawlspace.rules", True),
        ("crawlspace.commands.explain", "crawlspace.runtime.bridge.Bridge", False),
        ("crawlspace.commands.explain", "crawlspace.__version__", False),
        ("spiders.collection", "crawlspace.crawl.engine.Engine", False),
        ("spiders.collection", "pipelines.state.RecordState", True),
        ("crawlspace.runtime.components.loader", "spiders.collection.CollectionSpider", True),
        ("crawlspace.crawl.engine", "tests.sites.serve", True),
        ("crawlspace.crawl.engine", "lxml.html", False),
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


def test_each_package_has_its_floor() -> None:
    assert sorted({part(name) for name in modules(*PROJECT)} - {"crawlspace"}) == sorted(set.union(*map(set, FLOORS)))
    assert not [name for name in modules("crawlspace") if part(name) in GROUND and name.count(".") > 1], "a module, not a package"


def test_the_search_for_cycles() -> None:
    graph = {"a": ["b"], "b": ["c", "d"], "c": ["a"], "d": ["e"], "e": ["d"], "f": ["a", "e"]}
    assert cycles(graph) == [["a", "b", "c"], ["d", "e"]]


def test_no_modules_import_each_other() -> None:
    assert cycles(import_graph()) == []


def test_folders_can_be_taken_in_at_a_glance() -> None:
    sizes = Counter(path.parent for path in modules(*PROJECT).values() if path.name != "__init__.py")
    folders = {folder.relative_to(ROOT).as_posix(): size for folder, size in sizes.items()}
    assert {name: size for name, size in folders.items() if size > MOST_MODULES and name not in ONE_MODULE_EACH} == {}


def test_packages_have_several_modules() -> None:
    paths = modules(*PROJECT).values()
    sizes = Counter(path.parent for path in paths if path.name != "__init__.py")
    with_packages = {path.parent.parent for path in paths}
    single = {folder.relative_to(ROOT).as_posix() for folder, size in sizes.items() if size == 1 and folder not in with_packages}
    assert single - SINGLE_MODULES.keys() == set()


def test_modules_have_few_imports_of_ours() -> None:
    counts = {name: len(imported) for name, imported in import_graph().items()}
    assert {name: count for name, count in counts.items() if count > MOST_IMPORTS and name not in MANY_IMPORTS} == {}


@cache
def parts_of_engine() -> frozenset[str]:
    """Return the names of what the engine is made of, public or not."""
    tree = ast.parse(modules("crawlspace")[ENGINE].read_text(encoding="utf-8"))
    targets = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    return frozenset(node.attr for node in targets if ast.unparse(node.value) == "self") - VALUES_OF_ENGINE


def reached_through_engine(node: ast.AST) -> bool:
    """Return whether a node reads an attribute of a part of the engine."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Attribute):
        return False
    whose = ast.unparse(node.value.value).rpartition(".")[2]
    return whose in {"engine", "_engine"} and node.value.attr in parts_of_engine()


@pytest.mark.parametrize(
    ("code", "reaches"),
    [
        ("engine.frontier.wake_in()", True),
        ("session.engine.deliveries.hold_up", True),
        ("self._engine.clock.now()", True),
        ("engine.wake_in()", False),
        ("session.engine.collection.name", False),
        ("Scheduler(session.engine.frontier)", False),
        ("self._clock = engine.clock", False),
        ("crawler.engine.downloader.slots", False),
    ],
)
def test_the_search_for_what_is_reached_through_the_engine(code: str, *, reaches: bool) -> None:
    assert any(map(reached_through_engine, ast.walk(ast.parse(code)))) is reaches


def test_nobody_reaches_through_the_engine() -> None:
    """What runs a crawl calls the engine; what it is made of is handed over when others are made."""
    reaching = {name for name, path in modules(*PROJECT).items() if any(map(reached_through_engine, nodes(path)))}
    assert reaching == set()


def test_only_the_adapters_know_scrapy() -> None:
    assert not [
        f"{path.relative_to(ROOT)}:{line}: imports {imported}"
        for name, path in modules("crawlspace").items()
        if part(name) not in KNOWS_SCRAPY and name not in SCRAPY_REDIS
        for line, imported in imports(path)
        if imported.partition(".")[0] in {"scrapy", "scrapy_redis", "twisted"}
    ]


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


@cache
def own_names() -> frozenset[str]:
    """The private names that the project itself defines."""
    own = [node for path in modules(*PROJECT).values() for node in nodes(path)]
    functions = {node.name for node in own if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    attributes = {node.attr for node in own if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    return frozenset(functions | attributes | OF_NAMED_TUPLES)


def private_names_of_others(path: Path) -> Iterator[str]:
    """Names of libraries that begin with an underscore: imported, read or set from outside, or called on a base class."""
    for line, imported in imports(path):
        if imported.partition(".")[0] not in PROJECT and any(map(is_private, imported.split("."))):
            yield f"{line}: {imported}"
    for node in nodes(path):
        if not isinstance(node, ast.Attribute) or not is_private(node.attr):
            continue
        whose = ast.unparse(node.value)
        if whose == "super()" or (whose not in {"self", "cls"} and node.attr not in own_names()):
            yield f"{node.lineno}: {whose}.{node.attr}"


def test_private_names_of_scrapy_and_twisted_are_used_in_one_module() -> None:
    used = {name: found for name, path in modules(*PROJECT).items() if (found := [*private_names_of_others(path)])}
    used = {name: found for name, found in used.items() if part(name) in KNOWS_SCRAPY}
    assert set(used) == INTERNALS, used


def long_files(*folders: str) -> set[str]:
    """Return the dotted names of the Python files that are longer than MOST_LINES."""
    return {name for name, path in modules(*folders).items() if len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES}


def test_modules_are_short() -> None:
    assert not long_files(*PROJECT)


def test_test_files_are_short() -> None:
    assert not long_files("tests")


def test_what_a_project_owns_is_thin() -> None:
    """What is long must be the same in every project, and is corrected by a new version: it belongs to crawlspace/runtime."""
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules(*OWN_FILES).items()}
    assert {name for name, length in lengths.items() if length > MOST_LINES_OWNED} == set()


def test_modules_are_named_for_what_they_do() -> None:
    assert not [name for name in modules(*ALL_CODE) if VAGUE_NAMES & set(name.split("."))]


def test_no_two_classes_have_one_name() -> None:
    """But for the commands, which Scrapy finds by their modules."""
    names = Counter(
        node.name for path in modules("crawlspace").values() for node in nodes(path) if isinstance(node, ast.ClassDef)
    )
    assert {name for name, times in names.items() if times > 1} == {"Command"}


def test_nothing_is_unpickled() -> None:
    assert not [
        f"{path.relative_to(ROOT)}:{line}: {imported}"
        for path in modules(*ALL_CODE).values()
        for line, imported in imports(path)
        if imported.partition(".")[0] in UNSAFE_TO_READ
    ]


def waits_for_time(node: ast.AST) -> bool:
    """Whether a node waits for real time: a sleep, an event that nobody can set, or a loop that looks at a process again and again."""
    if isinstance(node, ast.While):
        return any(isinstance(part, ast.Attribute) and part.attr == "poll" for part in ast.walk(node))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
        return False
    if ast.unparse(node.func).rpartition(".")[2] == "sleep":
        return [ast.unparse(argument) for argument in node.args] != ["0"]  # asyncio.sleep(0) is a turn of the loop
    called = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "wait" else None
    return isinstance(called, ast.Call) and ast.unparse(called.func).rpartition(".")[2] in {"Event", "Condition"}


@pytest.mark.parametrize(
    ("code", "waits"),
    [
        ("time.sleep(1)", True),
        ("sleep(0.1)", True),
        ("await asyncio.sleep(self.every_s)", True),
        ("await asyncio.sleep(0)", False),
        ("threading.Event().wait(0.02)", True),
        ("event.wait(10)", False),
        ("process.wait(timeout=30)", False),
        ("while not served():\n    assert process.poll() is None", True),
        ("assert process.poll() is None", False),
    ],
)
def test_the_search_for_waits(code: str, *, waits: bool) -> None:
    assert any(map(waits_for_time, ast.walk(ast.parse(code)))) is waits


def test_tests_wait_for_events_and_not_for_time() -> None:
    """See `tests/notifications.py`."""
    waiting = {name for name, path in modules("tests").items() if any(map(waits_for_time, nodes(path)))}
    assert waiting == SLOW_REPLIES | KILLS_AT_RANDOM


def sets_private_name(node: ast.AST) -> bool:
    """Whether a node sets or deletes a private attribute of something else than the object that it is in."""
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        return is_private(node.attr) and ast.unparse(node.value) not in {"self", "cls"}
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in {"setattr", "delattr"}:
        names = [argument.value for argument in node.args[:2] if isinstance(argument, ast.Constant)]
        return any(isinstance(name, str) and is_private(name.rpartition(".")[2]) for name in names)
    return False


@pytest.mark.parametrize(
    ("code", "is_set"),
    [
        ("self._left = 3", False),
        ("store._left = 3", True),
        ("store._left += 3", True),
        ("del store._left", True),
        ("store.left = engine._left", False),
        ("error.__cause__ = cause", False),
        ("monkeypatch.setattr(module, '_BATCH', 3)", True),
        ("monkeypatch.setattr('crawlspace.runtime.session.session._end', end)", True),
        ("monkeypatch.setattr(module, 'BATCH', 3)", False),
        ("setattr(handler, '_pool', pool)", True),
    ],
)
def test_the_search_for_private_names_that_are_set(code: str, *, is_set: bool) -> None:
    assert any(map(sets_private_name, ast.walk(ast.parse(code)))) is is_set


def test_tests_set_no_private_names() -> None:
    setting = {name for name, path in modules("tests").items() if any(map(sets_private_name, nodes(path)))}
    assert setting == set()


def test_nothing_sleeps() -> None:
    """Waits belong to the event loop, and time in tests to a clock; measurements may wait."""
    assert not [
        str(path.relative_to(ROOT))
        for name, path in modules(*ALL_CODE).items()
        if not name.startswith("benchmarks") and name not in KILLS_AT_RANDOM
        if any(imported == "time.sleep" for _, imported in imports(path))
        or any(
            isinstance(node, ast.Attribute) and node.attr == "sleep" and ast.unparse(node) == "time.sleep" for node in nodes(path)
        )
    ]
