"""The copies of an index in Solr: which one is what, after a kill at any request too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crawlspace.errors import IndexUnavailable
from crawlspace.index.sink import Copies
from crawlspace.index.solr.rebuilding import CONFIGSET, Note
from tests.fault_proxy import Fault, FaultProxy, answers
from tests.search_server import sink_of
from tests.solr_server import INDEX, SolrServer, rebuildable_solr, remove_beside
from tests.unit.index.faulty import delete, push

CUT = Fault(cut=True)
PASSED = Fault()
MOST_REQUESTS = 40


@dataclass
class Scene:
    server: SolrServer
    folder: Path
    proxy: FaultProxy
    opened: ExitStack

    def sink(self, collection: str = "demo") -> Any:
        made = sink_of(self.folder, {**self.server.options(), "url": self.proxy.url}, collection=collection)
        self.opened.callback(made.close)
        return made

    def copies(self) -> Copies:
        copies: Copies = self.sink().copies()
        return copies

    def rebuilt(self, name: str, version: int) -> None:
        """Have an index be searched that has one document."""
        sink = self.sink()
        sink.begin_next()
        sink.next_copy().send([push(name, version)])
        sink.switch()

    def found(self) -> str:
        return "".join(sorted(url[-1] for url in self.server.documents()))

    def names(self) -> set[str]:
        """All copies, but the one that is searched."""
        return self.server.beside()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        server = stack.enter_context(rebuildable_solr())
        proxy = stack.enter_context(closing(FaultProxy(server.url, path="")))
        yield Scene(server, tmp_path, proxy, stack)


def test_a_note_is_read_as_it_was_written() -> None:
    for note in (Note(), Note("a", "b", "c"), Note(previous="b")):
        assert Note.of(note.document()) == note
    assert Note.of({"fields": ["color=red", "next"]}) == Note()


def test_a_note_is_no_document_and_outlives_what_is_left_of_deleted_ones() -> None:
    note = Note("a").document()
    assert (note["deleted"], "pushed_at" in note) == (True, False)


def killed_at(scene: Scene, action: str, number: int, *, on_previous: bool = False) -> bool:
    """Begin something, and cut what is asked from a request on; return whether it was done before."""
    sink = scene.sink()
    scene.proxy.faults, scene.proxy.rest = [PASSED] * number, CUT
    try:
        sink.begin_next(on_previous=on_previous) if action == "begin" else getattr(sink, action)()
    except IndexUnavailable:
        return False
    finally:
        scene.proxy.faults, scene.proxy.rest = [], None
    return True


def test_building_killed_at_any_request_goes_on(scene: Scene) -> None:
    scene.sink().send([push("a", 1)])
    for number in range(MOST_REQUESTS):
        is_done = killed_at(scene, "begin", number)
        assert scene.sink().send([push("b", number + 2)]).later == []
        assert scene.found() == "ab"
        scene.sink().begin_next()
        copies = scene.copies()
        assert (bool(copies.next), copies.previous, scene.names()) == (True, "", {copies.next})
        assert killed_at(scene, "give_up_next", MOST_REQUESTS)
        assert (scene.copies().next, scene.names()) == ("", set())
        if is_done:
            return
    pytest.fail("it is never done")


@pytest.mark.full
def test_a_switch_killed_at_any_request_is_done_or_not(scene: Scene) -> None:
    scene.sink().send([push("a", 1)])
    scene.rebuilt("b", 2)
    outcomes = []
    for number in range(MOST_REQUESTS):
        before, name = scene.found(), "cd"[number % 2]
        sink = scene.sink()
        sink.begin_next()
        assert not sink.next_copy().send([push(name, 3)]).later
        is_done = killed_at(scene, "switch", number)
        has_switched = scene.found() == name
        assert has_switched or scene.found() == before
        assert has_switched is (scene.copies().next == "")
        outcomes.append(has_switched)
        scene.sink().give_up_next()  # it finishes what was begun
        copies = scene.copies()
        assert (copies.next, scene.names()) == ("", {copies.previous})
        assert {url[-1] for url in scene.server.documents(copies.previous)} != {name}
        if has_switched:
            assert {url[-1] for url in scene.server.documents(copies.previous)} == set(before)
        if is_done:
            break
    assert outcomes == sorted(outcomes), "from some request on"
    assert set(outcomes) == {False, True}


@pytest.mark.full
def test_the_way_back_killed_at_any_request(scene: Scene) -> None:
    scene.sink().send([push("a", 1)])
    scene.rebuilt("b", 2)
    for number in range(MOST_REQUESTS):
        before = scene.found()
        after = "ab".replace(before, "")
        begun = killed_at(scene, "begin", number, on_previous=True)
        assert scene.found() == before
        scene.sink().begin_next(on_previous=True)
        assert scene.copies().next == scene.copies().previous
        done = killed_at(scene, "switch", number)
        assert scene.found() in (before, after)
        scene.sink().give_up_next()
        copies = scene.copies()
        assert (copies.next, scene.names()) == ("", {copies.previous})
        assert {url[-1] for url in scene.server.documents(copies.previous)} == set("ab".replace(scene.found(), ""))
        if begun and done:
            return
    pytest.fail("it is never done")


def test_what_is_sent_goes_to_both(scene: Scene) -> None:
    sink, other = scene.sink(), scene.sink("other")
    other.send([push("o", 5)])
    sink.send([push("a", 1), push("b", 2)])
    scene.sink().begin_next()
    sink.send([push("c", 3), delete("a", 4), delete("o", 6)])
    name = scene.copies().next
    assert {url[-1] for url in scene.server.documents(name)} == {"c"}
    built = scene.sink().next_copy()
    built.carry_over([f"http://a.example/{one}" for one in "abcox"])
    assert {url[-1]: one["version"] for url, one in scene.server.documents(name).items()} == {"b": 2, "c": 3, "o": 5}
    assert (built.count(owner="demo"), built.count(owner=None), scene.sink().count(owner="demo")) == (2, 3, 2)
    assert [[entry.url[-1] for entry in page] for page in built.entries_of_others("demo")] == [["o"]]
    assert [[entry.url[-1] for entry in page] for page in built.entries(owner="demo")] in ([["b", "c"]], [["c", "b"]])
    built.remove(built.look_up(["http://a.example/o"]).values())
    assert list(built.entries_of_others("demo")) == []
    assert scene.found() == "bco"
    scene.sink().switch()
    sink.send([push("d", 7)])
    assert scene.found() == "bcd"
    assert {url[-1] for url in scene.server.documents(scene.copies().previous)} == set("bco")


def test_an_index_that_was_being_built_and_is_gone(scene: Scene) -> None:
    scene.sink().begin_next()
    remove_next(scene)
    with pytest.raises(
        IndexUnavailable, match=r"which was being built, does not exist any more: give it up by .*--sink search --discard"
    ):
        scene.sink().send([push("a", 1)])
    scene.sink().give_up_next()
    assert scene.sink().send([push("a", 1)]).later == []


def remove_next(scene: Scene) -> None:
    name = scene.copies().next
    if scene.server.is_cloud:
        scene.server.ask("/admin/collections", action="DELETE", name=name)
    else:
        remove_beside(scene.server)


def test_no_next_index(scene: Scene) -> None:
    sink = scene.sink()
    for call in (sink.switch, sink.next_copy):
        with pytest.raises(IndexUnavailable, match="no new index is being built for"):
            call()
    with pytest.raises(IndexUnavailable, match="there is no previous index of"):
        sink.begin_next(on_previous=True)
    sink.give_up_next()


def test_a_user_without_the_permission(scene: Scene) -> None:
    scene.sink().send([push("a", 1)])
    scene.proxy.faults = [PASSED] * 4
    scene.proxy.rest = answers(403, {})
    with pytest.raises(IndexUnavailable, match=r"the permissions (core|collection)-admin-read and (core|collection)-admin-edit"):
        scene.sink().begin_next()


def test_a_core_that_the_server_does_not_make(scene: Scene) -> None:
    server = scene.server
    there = {Path(folder).name for folder in server.cores().values()}
    free = [name for name in (INDEX, f"{INDEX}_copy1", f"{INDEX}_copy2") if name not in there]
    configset = f"configsets/{CONFIGSET}"
    hidden = [name for name in (*free, configset) if server.move_configuration(name, f"hidden/{name}")]
    try:
        with pytest.raises(IndexUnavailable) as raised:
            scene.sink().begin_next()
        asked = f"copy conf, in the folder {server.searched()} of Solr, to {configset}/conf, or to {free[-1]}/conf, both in"
        assert asked in str(raised.value)
        assert scene.sink().send([push("a", 1)]).later == []
        server.move_configuration(f"hidden/{configset}", free[-1])
        scene.sink().begin_next()
        assert Path(server.cores()[scene.copies().next]).name == free[-1]
        scene.sink().give_up_next()
        assert scene.names() == set()
    finally:
        server.move_configuration(free[-1], f"hidden/{configset}")
        for name in hidden:
            server.move_configuration(f"hidden/{name}", name)
