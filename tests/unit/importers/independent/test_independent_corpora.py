"""Collections made of the files of older crawlers decide as those did, by tables written without a look at the importers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from scrapy.cmdline import execute

from crawlspace.admin.explain import Explanation, Question, explain
from crawlspace.clock import SystemClock
from crawlspace.config.collection import Collection, load_collection
from crawlspace.crawl.startup import build_global_space, build_space
from crawlspace.runtime.components.loader import collection_settings
from crawlspace.urls import parse
from tests.command_line import ROOT, CompletedRun
from tests.integration.conftest import settings_with
from tests.quick import some
from tests.unit.importers.independent.tables import EXPECTED, HERE, KINDS, VARIANTS, Row, Table, copy, read_lines, read_table

SYSTEMS = ("fast", "ibm", "exalead", "fdse")
"""Those with a command; also written: "ibm", "exalead"."""


@dataclass(frozen=True, slots=True)
class Source:
    """What is imported: a file or folder of `system` with the files beside it, as the collection `name` of it."""

    system: str
    path: str
    name: str
    table: str

    @property
    def is_on(self) -> bool:
        return self.system in SYSTEMS


SOURCES = [
    Source("fast", "fast/intranet.xml", "intranet", "fast/intranet.expected"),
    Source("fast", "fast/techdocs.xml", "TechDocs", "fast/techdocs.expected"),
    Source("fast", "fast/portal.xml", "falk_portal", "fast/portal.expected"),
    Source("fast", "fast/public.xml", "PublicWeb", "fast/public.PublicWeb.expected"),
    Source("fast", "fast/public.xml", "Extranet", "fast/public.Extranet.expected"),
    Source("ibm", "ibm/seed", "seed", "ibm/seed.expected"),
    Source("ibm", "ibm/harbour", "harbour", "ibm/harbour.expected"),
    Source("ibm", "ibm/sales", "sales", "ibm/sales.expected"),
    Source("exalead", "exalead/seed.xml", "seed", "exalead/seed.expected"),
    Source("exalead", "exalead/intranet.xml", "intranet", "exalead/intranet.expected"),
    Source("exalead", "exalead/rules.xml", "rules", "exalead/rules.expected"),
]
HISTORIES = [["seed"], ["first"], ["second"], ["first", "second"], ["second", "first"]]


@dataclass(frozen=True, slots=True)
class Imports:
    """A project in a folder of the test; commands run in its process."""

    folder: Path

    def run(self, *arguments: str) -> CompletedRun:
        places = {
            "CRAWLSPACE_COLLECTIONS_DIR": str(self.folder / "collections"),
            "CRAWLSPACE_DATA_DIR": str(self.folder / "data"),
        }
        out, err = StringIO(), StringIO()
        with pytest.raises(SystemExit) as ended, redirect_stdout(out), redirect_stderr(err):
            execute(["scrapy", *arguments], settings_with(places))
        return CompletedRun(int(ended.value.code or 0), out.getvalue(), err.getvalue())

    def imported(self, source: Source, variant: str, given_starts: tuple[str, ...]) -> CompletedRun:
        """Import a source written as a variant."""
        original = HERE / source.path
        inside = original if original.is_dir() else original.parent
        files = [path for path in sorted(inside.iterdir()) if path.suffix in {".xml", ".txt", ".rules"}]
        original_name = source.path.rpartition("/")[2]
        below = f"{original_name}/" if original.is_dir() else ""
        copy({str(path.relative_to(HERE)): f"{below}{path.name}" for path in files}, self.folder / "old", variant)
        done = self.run(f"import-{source.system}", str(self.folder / "old" / original_name), source.name)
        starts = self.folder / "collections" / source.name / "start_urls.txt"
        if given_starts:
            with starts.open("a", encoding="utf-8") as file:
                file.write("".join(f"{url}\n" for url in given_starts))
        return done

    def collection(self, name: str) -> Collection:
        places = {
            "CRAWLSPACE_COLLECTIONS_DIR": str(self.folder / "collections"),
            "CRAWLSPACE_DATA_DIR": str(self.folder / "data"),
        }
        found = collection_settings(settings_with(places), name)
        # The older crawlers judged URLs with their session ids; here these are dropped first, and rules against them see none.
        return load_collection(name, {**found, "CRAWLSPACE_URL_DROP_PATH_PARAMETERS": []})


@pytest.fixture
def imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Imports:
    monkeypatch.chdir(ROOT)
    (tmp_path / "collections").mkdir()
    (tmp_path / "data").mkdir()
    return Imports(tmp_path)


def differences(collection: Collection, table: Table) -> Iterator[str]:
    """Yield each row that the collection decides in another way than its table."""
    space, global_space = build_space(collection), build_global_space(collection)
    starts = {start.url.text for start in collection.start_urls}
    for row in table.rows:
        depth = row.facts.get("depth")
        question = Question(row.url, address=row.facts.get("address"), depth=None if depth is None else int(depth))
        answer = explain(question, collection, space=space, store=None, clock=SystemClock())
        found = {"start": "yes" if answer.url is not None and answer.url.text in starts else "no"}
        if not answer.decision.admitted:
            url = parse(row.url) if answer.url is not None else None
            is_shared = url is not None and global_space is not None and global_space.allows(url) is not None
            is_kept = is_shared and url is not None and space.is_refused_by_domain_only(url, answer.decision)
            found["status"] = "761" if is_kept else "760"
        else:
            found["index"] = _yes(answer.decision.index)
            found["follow"] = _yes(answer.decision.follow)
            found["shift"] = str(answer.shift)
        yield from _difference(row, answer, found)


def _difference(row: Row, answer: Explanation, found: dict[str, str]) -> Iterator[str]:
    decision = answer.decision
    rule = "" if decision.rule is None else f" ({decision.rule}: {decision.rule.text.strip()})"
    got = f"{decision.reason}{rule}"
    if row.admitted is not None and decision.admitted != row.admitted:
        yield f"{row.place}: {row.url:.100} is {got}: {row.why}"
    elif row.admitted is False and row.kind != "-" and decision.reason.value not in KINDS[row.kind]:
        yield f"{row.place}: {row.url:.100} is refused for {got}, not {row.kind}: {row.why}"
    else:
        wrong = {name: value for name, value in row.facts.items() if name in EXPECTED and found.get(name) != value}
        if wrong:
            now = {name: found.get(name) for name in wrong}
            yield f"{row.place}: {row.url:.100} has {now}, not {wrong}{rule}: {row.why}"


def pending_collection(imports: Imports) -> None:
    collection = imports.folder / "collections" / "hanse"
    collection.mkdir()
    (collection / "start_urls.txt").write_text("http://www.hanse.example/\n", encoding="utf-8")


def _yes(value: bool) -> str:
    return "yes" if value else "no"


@pytest.mark.parametrize("variant", some(VARIANTS, 1))
@pytest.mark.parametrize(
    "source", [source for source in SOURCES if source.is_on], ids=lambda source: f"{source.system}-{source.name}"
)
def test_decisions_are_those_of_the_older_crawler(source: Source, variant: str, imports: Imports) -> None:
    table = read_table(source.table)
    done = imports.imported(source, variant, table.given_starts)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    wrong = list(differences(imports.collection(source.name), table))
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.mark.parametrize(
    "source", [source for source in SOURCES if source.is_on], ids=lambda source: f"{source.system}-{source.name}"
)
def test_lint_finds_no_error_in_what_is_imported(source: Source, imports: Imports) -> None:
    """Warnings are allowed: some of these crawl spaces were open."""
    imports.imported(source, "as it is", read_table(source.table).given_starts)
    found = imports.run("lint", source.name, "--json")
    assert [one["message"] for one in json.loads(found.stdout) if one["level"] == "error"] == []


@pytest.mark.parametrize("variant", ["as it is", "CR LF", "byte order mark"])
@pytest.mark.parametrize("history", HISTORIES, ids="-".join)
def test_a_pending_file_has_the_numbers_of_fdse_after_its_import(history: list[str], variant: str, imports: Imports) -> None:
    pending_collection(imports)
    for name in history:
        copy({f"fdse/{name}.pending": f"{name}.pending"}, imports.folder, variant)
        imports.run("import-pending", "hanse", str(imports.folder / f"{name}.pending")).succeeded()
    written = imports.run("urls", "hanse", "--format", "pending").succeeded()
    assert written.stdout.splitlines() == read_lines(f"fdse/{'-'.join(history)}.expected")


def test_a_pending_file_that_ends_within_a_line_is_not_imported(imports: Imports) -> None:
    """FDSE ends every line [C D2], so the last number may be cut off."""
    pending_collection(imports)
    copy({"fdse/first.pending": "first.pending"}, imports.folder, "tight")
    done = imports.run("import-pending", "hanse", str(imports.folder / "first.pending"))
    assert (done.returncode, done.stdout) == (1, "")
    assert imports.run("urls", "hanse", "--format", "pending").stdout == ""


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: f"{source.system}-{source.name}")
def test_tables_are_well_formed(source: Source) -> None:
    """Also those that have no command yet."""
    rows = read_table(source.table).rows
    assert (HERE / source.path).exists()
    assert len({(row.url, *sorted(row.facts.items())) for row in rows}) == len(rows)


@pytest.mark.parametrize("system", ["fast", "ibm", "exalead"])
def test_each_system_has_its_thirty_urls(system: str) -> None:
    decided = {
        row.url
        for source in SOURCES
        if source.system == system
        for row in read_table(source.table).rows
        if row.admitted is not None
    }
    assert len(decided) >= 30
