"""Files that each version has written are opened by this one, and crawled on; those of a later version are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

import apsw
import pytest

from tests.conftest import MakeProject, Project, assert_same
from tests.integration.stored import make_due, shared
from tests.search_server import search_server
from tests.servers import another_client
from tests.upgrade import kept
from tests.upgrade.scene import BLOG, HOME, Scene, served

NOWHERE = {"type": "opensearch", "url": "http://127.0.0.1:9", "index": "kept"}
of_each = pytest.mark.parametrize("version", kept.VERSIONS)
on_each = pytest.mark.parametrize("place", kept.PLACES)


@contextmanager
def unpacked(
    project: MakeProject, version: str, place: str, *, sink: Mapping[str, object] = NOWHERE
) -> Iterator[tuple[Project, Scene]]:
    """Put the files of a version into a project whose sites and rules are as when the files were made."""
    with served() as scene:
        demo = shared(project({})) if place == "redis" else project({})
        scene.configure(demo, sink)
        scene.change(demo)
        kept.unpack(version, demo)
        yield demo, scene


def test_files_of_the_present_formats_are_kept() -> None:
    assert kept.FORMATS in [kept.expected(version)["formats"] for version in kept.VERSIONS], (
        'a format has changed: see "Files of earlier versions" in CONTRIBUTING.md'
    )
    for folder in map(kept.FOLDER.joinpath, kept.VERSIONS):
        assert sum(file.stat().st_size for file in folder.iterdir()) < kept.ALLOWED_BYTES, folder


# URL -> what `explain` reports of it
EXPLAINED = [
    ("near/22", f"nearly the same as {HOME}near/1"),
    ("old/1", "in the index, its deletion held: a change of the rules would delete too many documents"),
    ("loop", "it redirects to itself"),
]
# words -> the first hit
SEARCHED = [("管理者", "japanese"), ("บริษัท", "thai"), ("old/3 report", "old/3")]


@of_each
@on_each
def test_what_was_stored_is_found(project: MakeProject, version: str, place: str) -> None:
    with unpacked(project, version, place) as (demo, _):
        assert not kept.differences(kept.found(demo), kept.expected(version))
        for path, sentence in EXPLAINED:
            assert sentence in " ".join(kept.printed(demo, "explain", "demo", HOME + path).split())
        for words, path in SEARCHED:
            hits = json.loads(kept.printed(demo, "search", "demo", words, "--json"))["hits"]
            assert hits[0]["url"] == HOME + path
        assert "2 files are sound, and each location has its record" in kept.printed(demo, "archive", "demo", "--verify")
        assert "fetched: 200, new document" in kept.printed(demo, "history", "demo", HOME)


@pytest.mark.full
@of_each
@on_each
def test_a_crawl_goes_on_to_the_result_of_a_new_one(project: MakeProject, version: str, place: str) -> None:
    with search_server() as search, unpacked(project, version, place, sink=search.options()) as (demo, scene):
        demo.scrapy("sites", "demo", "--resume", BLOG).succeeded()
        demo.scrapy("deletions", "demo", "--approve").succeeded()
        make_due(demo)
        demo.crawl("demo").succeeded()
        found = kept.found(demo)
        new = project({})
        scene.configure(new, NOWHERE)
        scene.change(new)
        new.crawl("demo").succeeded()
        expected = kept.found(new)
        assert_same(list(search.documents()), list(expected["documents"]))
    assert not kept.differences(comparable(found), comparable(expected))
    assert found["waiting"] == {"embedded": 0, "search": 0}


def comparable(found: dict[str, object]) -> dict[str, object]:
    """Leave out what an earlier crawl leaves behind: URLs that failed more than once, or that nothing leads to any more."""
    urls = found["urls"]
    assert isinstance(urls, dict)
    settled = {url: one for url, one in urls.items() if one["state"] in ("done", "redirected")}
    return {name: found[name] for name in ("documents", "refused")} | {"urls": settled}


def raise_user_version(name: str) -> None:
    """Have a database be of the next version."""
    with closing(apsw.Connection(name)) as db:
        db.pragma("user_version", int(db.pragma("user_version")) + 1)
        db.pragma("wal_checkpoint(truncate)")


# the file whose version is raised, the command, and what it reports
LATER = [
    (
        "state.db",
        "status",
        f"(state version {kept.FORMATS['state'] + 1}, this one reads {kept.FORMATS['state']}): use that version",
    ),
    (
        "state.db",
        "crawl",
        f"(state version {kept.FORMATS['state'] + 1}, this one reads {kept.FORMATS['state']}): use that version",
    ),
    ("index.db", "crawl", f"(version {kept.FORMATS['index'] + 1}, this one reads {kept.FORMATS['index']}): use that version"),
    ("redis", "status", f"(format {kept.FORMATS['redis'] + 1}, this one reads {kept.FORMATS['redis']}): use that version"),
    ("redis", "crawl", f"(format {kept.FORMATS['redis'] + 1}, this one reads {kept.FORMATS['redis']}): use that version"),
]


@pytest.mark.parametrize(("what", "command", "sentence"), LATER)
def test_files_of_a_later_version_are_refused_and_not_changed(
    project: MakeProject, what: str, command: str, sentence: str
) -> None:
    with unpacked(project, kept.VERSIONS[-1], "redis" if what == "redis" else "sqlite") as (demo, scene):
        if what == "redis":
            with closing(another_client()) as client:
                client.incr("{demo}:format")
        else:
            raise_user_version(str(demo.data / "demo" / what))
        before = content(demo, what)
        ended = demo.scrapy(command, "demo")
        assert (ended.returncode, sentence in ended.stderr, "Traceback" in ended.stderr) == (1, True, False), ended.stderr
        assert content(demo, what) == before
        assert scene.www.paths() == []


def content(demo: Project, what: str) -> bytes:
    """Return a file, or the keys on the server."""
    if what != "redis":
        return (demo.data / "demo" / what).read_bytes()
    with closing(another_client()) as client:
        return kept.dumped_keys(client)
