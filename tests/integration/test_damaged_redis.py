"""Crawls of a collection whose records in Redis are damaged: each ends by itself, and never in a traceback."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.stored import FAST, collection, make_due, shared
from tests.servers import another_client
from tests.sites import Site, page, serve

PAGES = {"/": page("Home", text="home", links=["/a", "/b"]), "/a": page("A", text="of a"), "/b": page("B", text="of b")}


def no_text(_: bytes) -> bytes:
    return b"\xc1\xff"


def no_record(_: bytes) -> bytes:
    return b"text that is no record"


def no_url(value: bytes) -> bytes:
    return value.replace(b"http://", b"what is")


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return shared(project(collection("http://127.0.0.1:9/")))


DAMAGED = [
    # kind of key, what becomes of its values, what is said; nothing: the crawl goes on
    ("site", no_text, "what Redis keeps of this collection is damaged"),
    ("site_name", no_text, "what Redis keeps of this collection is damaged"),
    ("site_name", no_record, "what Redis keeps of this collection is damaged"),
    ("health", no_text, "what Redis keeps of this collection is damaged"),
    ("meta", no_record, "is damaged"),
    ("url:0", no_text, "they were quarantined"),
    ("url:0", no_url, "they were quarantined"),
    ("document", no_record, ""),
    ("links", no_text, ""),
]


@pytest.mark.full
def test_a_crawl_with_damaged_records_ends_by_itself(demo: Project) -> None:
    with serve(Site(PAGES)) as server, another_client() as client:
        demo.write(collection(server.url(), settings=FAST + f"CRAWLSPACE_STORE_URL = {demo.store_url!r}\n"))
        demo.crawl("demo").succeeded()
        make_due(demo)
        whole = {key: client.dump(key) for key in client.keys("*")}
        files = shutil.copytree(demo.data, demo.folder / "files")
        for kind, damage, sentence in DAMAGED:
            client.flushall()
            for key, value in whole.items():
                client.restore(key, 0, value)
            shutil.rmtree(demo.data)
            shutil.copytree(files, demo.data)  # of the same moment as the store
            spoil(client, f"{{demo}}:{kind}", damage)
            run = demo.crawl("demo")
            assert run.returncode in (0, 1), f"{kind}: {run.stderr}"
            assert "Traceback" not in run.stderr, f"{kind}: {run.stderr}"
            assert sentence in run.stderr, f"{kind}: {run.stderr}"
            assert run.returncode == 1 or not sentence.startswith("what Redis")


def spoil(client: object, key: str, damage: Callable[[bytes], bytes]) -> None:
    values = client.hgetall(key)  # type: ignore[attr-defined]
    assert values, key
    client.hset(key, mapping={field: damage(value) for field, value in values.items()})  # type: ignore[attr-defined]
