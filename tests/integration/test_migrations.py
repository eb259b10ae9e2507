"""The pages about coming from Scrapy and from scrapy-redis: what they show before and after is run, and exports the same items."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.command_line import ROOT, run_scrapy
from tests.conftest import assert_same
from tests.servers import emptied, redis_server
from tests.sites import Answer, Route, Site, html, page, serve

SITE = "http://www.example.com"
REDIS = "redis://127.0.0.1:6379/0"
"""What the pages have in the place of the test's own."""
BLOCK = re.compile(r"^`([^`]+)`[^\n]*:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FAST = "\nDOWNLOAD_DELAY = 0\n"


def lamp(name: str, price: int) -> Answer:
    return html(f'<title>{name}</title><h1>{name}</h1><p>For you <b class="price">{price} EUR</b><a href="print/">print</a>')


ROUTES: dict[str, Route] = {
    "/": page("Home", links=["/list/"]),
    "/list/": page("Lamps", links=["/lamps/desk/", "/list/2", "/about"]),
    "/list/2": page("More lamps", links=["/lamps/floor/", "/list/"]),
    "/lamps/desk/": lamp("Desk lamp", 19),
    "/lamps/desk/print/": lamp("Desk lamp, printed", 19),
    "/lamps/floor/": lamp("Floor lamp", 49),
    "/lamps/floor/print/": lamp("Floor lamp, printed", 49),
    "/about": page("About us"),
}


def files_of(document: str, section: str) -> dict[str, str]:
    """The files that a section of a page shows, by path."""
    found = re.search(
        rf"^## {section}\n(.*?)^## ", (ROOT / "docs" / document).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert found is not None
    return dict(BLOCK.findall(found[1]))


def written(folder: Path, files: dict[str, str], own: dict[str, str]) -> None:
    for name, content in files.items():
        for shown, ours in own.items():
            content = content.replace(shown, ours)  # noqa: PLW2901
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + (FAST if path.name == "settings.py" else ""), encoding="utf-8")


def items_before(folder: Path, document: str, own: dict[str, str]) -> list[dict[str, object]]:
    """Run the project of Scrapy that a page begins with."""
    written(folder, files_of(document, "Before"), own)
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n", encoding="utf-8")
    for package in ("shop", "shop/spiders"):
        (folder / package / "__init__.py").touch()
    return exported(folder)


def items_after(folder: Path, document: str, own: dict[str, str]) -> list[dict[str, object]]:
    """Run the collection that a page ends with, in a project of the files in the wheel."""
    for name in ("scrapy.cfg", "spiders", "middlewares", "pipelines"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        folder.mkdir(exist_ok=True)
        copy(ROOT / name, folder / name)
    written(folder, files_of(document, "After"), own)
    assert run_scrapy(["lint", "lamps"], folder, env={"PYTHONPATH": str(ROOT)}).succeeded().stdout == "no findings\n"
    return exported(folder)


def exported(folder: Path) -> list[dict[str, object]]:
    options = (
        []
        if "FEEDS" in "".join(path.read_text(encoding="utf-8") for path in folder.rglob("settings.py"))
        else ["-O", "lamps.jsonl"]
    )
    run_scrapy(["crawl", "lamps", *options], folder, env={"PYTHONPATH": str(ROOT)}).succeeded()
    return [json.loads(line) for line in (folder / "lamps.jsonl").read_text(encoding="utf-8").splitlines()]


def same(first: list[dict[str, object]], second: list[dict[str, object]]) -> None:
    assert_same((tuple(item.items()) for item in first), (tuple(item.items()) for item in second))


def test_from_scrapy(tmp_path: Path) -> None:
    with serve(Site(ROUTES)) as server:
        own = {SITE: server.url("/").removesuffix("/"), "www.example.com": "127.0.0.1"}  # Scrapy wants it without the port
        before = items_before(tmp_path / "before", "from-scrapy.md", own)
        requested = set(server.paths())  # Scrapy fetches a start URL twice where a page links to it
        server.forget()
        after = items_after(tmp_path / "after", "from-scrapy.md", own)
        assert_same(server.paths(), requested)
        base = server.url("/")
    assert_same(
        (tuple(item.values()) for item in before),
        [(f"{base}lamps/desk/", "Desk lamp", 19.0), (f"{base}lamps/floor/", "Floor lamp", 49.0)],
    )
    same(after, before)


@pytest.mark.full
def test_from_scrapy_redis(tmp_path: Path) -> None:
    document = "from-scrapy-redis.md"
    with serve(Site(ROUTES)) as server:
        own = {
            SITE: server.url("/").removesuffix("/"),
            "www.example.com": server.netloc,
            REDIS: f"redis://127.0.0.1:{redis_server().port}/0",
        }
        client = emptied()
        pushed = re.findall(r"redis-cli LPUSH (\S+) '(.*)'", (ROOT / "docs" / document).read_text(encoding="utf-8"))
        client.lpush(pushed[0][0], pushed[0][1].replace(SITE, own[SITE]))
        before = items_before(tmp_path / "before", document, own)
        client.flushall()
        client.lpush(pushed[1][0], pushed[1][1].replace(f"{SITE}/new/", server.url("/list/2")))
        after = items_after(tmp_path / "after", document, own)
        assert client.llen(pushed[1][0]) == 0
    assert len(before) == 4
    same(after, before)
