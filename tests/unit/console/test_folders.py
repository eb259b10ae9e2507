"""The folders of URLs, and how many URLs each has."""

from __future__ import annotations

import random

import pytest

from crawlspace.console.snapshot.folders import MOST_LEVELS, FolderCounter, FolderCounts, Mark, UrlEntry, folder_of, parents_of
from crawlspace.model import State

HOST = "https://www.example.com/"


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        (HOST, HOST),
        (f"{HOST}a", HOST),
        (f"{HOST}a/", f"{HOST}a/"),
        (f"{HOST}a/b.html", f"{HOST}a/"),
        (f"{HOST}a?x=/y/z", HOST),
        (f"{HOST}a/?next=http://other.example/", f"{HOST}a/"),
        (f"{HOST}app#/route/of/it", HOST),
        (f"{HOST}a//b", f"{HOST}a//"),
        ("http://www.example.com:8080/a/b", "http://www.example.com:8080/a/"),
        ("https://[::1]/a/", "https://[::1]/a/"),
        (HOST + "x/" * 100, HOST + "x/" * (MOST_LEVELS - 1)),
        ("mailto:someone", "mailto:someone"),
    ],
)
def test_the_folder_of_a_url(url: str, folder: str) -> None:
    assert folder_of(url) == folder


@pytest.mark.parametrize(
    ("folder", "parents"),
    [
        ("", []),
        (HOST, [(HOST, HOST)]),
        (f"{HOST}a/b/", [(HOST, HOST), (f"{HOST}a/", "a/"), (f"{HOST}a/b/", "b/")]),
        (f"{HOST}a//", [(HOST, HOST), (f"{HOST}a/", "a/"), (f"{HOST}a//", "/")]),
        ("nothing of ours", [("nothing of ours", "nothing of ours")]),
    ],
)
def test_what_is_above_a_folder(folder: str, parents: list[tuple[str, str]]) -> None:
    assert parents_of(folder) == parents


def test_each_folder_has_the_numbers_of_what_is_below_it() -> None:
    """Random URLs, counted folder by folder and one by one."""
    draw = random.Random(7)
    urls = sorted(
        {
            f"http{draw.choice(('', 's'))}://h{draw.randrange(3)}.example/"
            + "".join(f"{draw.choice('ab.?%')}/" for _ in range(draw.randrange(4)))
            + draw.choice(("", "a", "b?x=/y", "a-", "a.b"))
            for _ in range(400)
        }
    )
    entries = [
        UrlEntry(url, number, draw.choice(list(State)), 200, draw.choice((0, Mark.INDEXED, Mark.OVERDUE)))
        for number, url in enumerate(urls)
    ]
    counter, whole, found = FolderCounter(), dict[int, str](), list[FolderCounts]()
    for entry in entries:
        whole[counter.add(entry)] = folder_of(entry.url)
        found += counter.complete()
    total = counter.end()
    found += counter.complete()
    names = {one.id: one for one in found}

    def prefix_of(one: FolderCounts) -> str:
        return (prefix_of(names[one.parent]) if one.parent else "") + one.name

    by_prefix = {prefix_of(one): one for one in found}
    assert len(by_prefix) == len(found), "each folder once"
    assert total.urls == len(urls)
    assert {whole[one.id] for one in found if one.id in whole} == {folder_of(url) for url in urls}
    for prefix, one in by_prefix.items():
        below = [entry for entry in entries if entry.url.startswith(prefix)]
        assert one.urls == len(below)
        assert [entry.url for entry in entries[one.first : one.first + one.urls]] == [entry.url for entry in below]
        assert one.direct == sum(folder_of(entry.url) == prefix for entry in below)
        assert one.folders == sum(other.parent == one.id for other in found)
        states = [entry.state for entry in below]
        assert one.waiting == states.count(State.PENDING)
        assert one.done == states.count(State.DONE)
        assert one.redirected == states.count(State.REDIRECTED)
        assert one.errors == states.count(State.GONE) + states.count(State.FAILED)
        assert one.excluded == states.count(State.EXCLUDED)
        assert one.indexed == sum(entry.marks == Mark.INDEXED for entry in below)
        assert one.overdue == sum(entry.marks == Mark.OVERDUE for entry in below)
