"""`scrapy export NAME --markdown DIR`: a file for each document, and only what differs is written again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import MakeProject, Project
from tests.integration.stored import ARCHIVED, collection, make_due
from tests.sites import Site, html, page, serve, text

ARTICLE = """<title>Pumps: "all" of them</title><meta name=author content="Ann Lee"><meta name=keywords content="a, b"><nav><a href=/x>x</a></nav>
<main><h1 id=top>Pumps</h1><p>How to <b>choose</b> one, see <a href="b?n=1">the list</a>.</p><ul><li>big<li>small</ul></main>"""
SITE = {
    "/": page("Home", links=["/docs/pumps", "/docs/b?n=1", "/docs/B?n=1", "/plain.txt"]),
    "/docs/pumps": html(ARTICLE),
    "/docs/b?n=1": page("Small", text="small"),
    "/docs/B?n=1": page("Large", text="large"),
    "/plain.txt": text("just a text"),
}
PUMPS = """---
url: "{url}docs/pumps"
id: "{id}"
title: "Pumps: \\"all\\" of them"
language: "en"
content_type: "text/html"
"author": "Ann Lee"
"keywords": ["a", "b"]
---

# Pumps

How to **choose** one, see [the list]({url}docs/b?n=1).

- big
- small
"""


@pytest.fixture
def demo(project: MakeProject) -> Project:
    """One that has been crawled."""
    with serve(Site({"/": page("Home")})) as server:
        made = project(collection(server.url("/"), settings=ARCHIVED))
        made.crawl("demo").succeeded()
    return made


def manifest(folder: Path) -> dict[str, dict[str, str]]:
    return {
        (one := json.loads(line))["file"]: one for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()
    }


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def export(demo: Project, folder: Path) -> str:
    return demo.scrapy("export", "demo", "--markdown", str(folder)).succeeded().stderr.replace(str(folder), "DIR")


def test_documents_are_files_that_are_brought_up_to_date(project: MakeProject, tmp_path: Path) -> None:
    site, folder = Site(SITE), tmp_path / "new" / "out"
    with serve(site) as server:
        url = server.url("/")
        host = url.removeprefix("http://").strip("/").replace(":", "_")
        demo = project(collection(url, settings=ARCHIVED + "CRAWLSPACE_MAIN_CONTENT = 'main'\n"))
        demo.crawl("demo").succeeded()
        assert export(demo, folder) == "demo: 5 documents in DIR, 5 written, 0 as before, 0 removed\n"
        first = manifest(folder)
        (other,) = [name for name in first if "B_n=1-" in name or "b_n=1-" in name]  # whatever the case, a file of its own
        names = {f"{host}/{name}" for name in ("index.md", "docs/pumps.md", "plain.txt.md")}
        assert files(folder) - names - {other, "manifest.jsonl"} <= {f"{host}/docs/b_n=1.md", f"{host}/docs/B_n=1.md"}
        shown = (folder / host / "docs" / "pumps.md").read_text(encoding="utf-8")
        assert shown == PUMPS.format(url=url, id=first[f"{host}/docs/pumps.md"]["id"])
        assert (folder / host / "plain.txt.md").read_text(encoding="utf-8").endswith("---\n\njust a text\n")
        assert export(demo, folder) == "demo: 5 documents in DIR, 0 written, 5 as before, 0 removed\n"
        assert manifest(folder) == first
        site |= {"/plain.txt": text("another text"), "/docs/pumps": page("Pumps have moved", text="elsewhere")}
        make_due(demo)
        demo.crawl("demo").succeeded()
        assert export(demo, folder) == "demo: 5 documents in DIR, 2 written, 3 as before, 0 removed\n"
    changed = {name for name, one in manifest(folder).items() if one != first[name]}
    assert changed == {f"{host}/docs/pumps.md", f"{host}/plain.txt.md"}
    demo.scrapy("forget", "demo", f"{url}docs/pumps", "--yes")
    (folder / ".manifest.new").write_text(json.dumps({"file": f"{host}/left/of/a/kill.md"}) + '\n{"file": "cu', encoding="utf-8")
    (folder / host / "left" / "of" / "a").mkdir(parents=True)
    (folder / host / "left" / "of" / "a" / "kill.md").touch()
    assert export(demo, folder).endswith("1 removed\n")
    assert not (folder / host / "left").exists()
    assert ".manifest.new" not in files(folder)


WRONG = [
    # what is in the folder, exit status, message
    ({"mine.txt": "x"}, 2, "DIR has files that are of no export: name a new or empty folder"),
    (
        {"manifest.jsonl": "nonsense\n"},
        2,
        "DIR/manifest.jsonl:1: 'nonsense' is no entry of an export: remove the folder, or name another",
    ),
    ({"manifest.jsonl": '{"file": "../../x"}\n'}, 2, "is no entry of an export"),
]


@pytest.mark.parametrize(("there", "status", "message"), WRONG, ids=[str(row[0])[:40] for row in WRONG])
def test_other_folders_are_refused(demo: Project, tmp_path: Path, there: dict[str, str], status: int, message: str) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    for name, content in there.items():
        (folder / name).write_text(content, encoding="utf-8")
    run = demo.scrapy("export", "demo", "--markdown", str(folder))
    assert (run.returncode, message in run.stderr.replace(str(folder), "DIR")) == (status, True), run.stderr
    assert files(folder) == there.keys()


def test_a_folder_that_cannot_be_written(demo: Project, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    run = demo.scrapy("export", "demo", "--markdown", str(tmp_path / "file" / "out"))
    assert run.returncode == 1
    assert "cannot be written: Not a directory" in run.stderr
    assert demo.scrapy("export", "demo", "--markdown", str(tmp_path / "out"), "-O", "x.jsonl").returncode == 2
