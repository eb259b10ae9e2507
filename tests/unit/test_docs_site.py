"""The pages as a site: it is built without a warning, loads nothing from elsewhere, and a broken link fails the build."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import ROOT
from tests.conftest import assert_same
from tests.notifications import LONGEST_WAIT_S

pytestmark = pytest.mark.full

PICTURE = "```mermaid\nflowchart LR\n    accTitle: Two boxes\n    a --> b\n```\n"
LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']([^\"']*)|<link\b[^>]*\bhref=[\"']([^\"']*)")
IN_STYLES = re.compile(r"url\([\"']?([^)\"']*)|@import +[\"']([^\"']*)")


def build(pages: Path, site: Path) -> tuple[int, str]:
    """Build a folder of pages as `make docs` does; return the exit status and what was reported."""
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--doctree-dir", str(site.parent / "doctrees")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "sphinx", *options, str(pages), str(site)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_WAIT_S,
    )
    return done.returncode, done.stdout + done.stderr


def test_make_docs_has_these_options() -> None:
    """So that what the tests see is what `make docs` does."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    command = re.search(r"^docs:.*\n\t@\$\(RUN\) -m sphinx (.*) --doctree-dir", makefile, re.MULTILINE)
    assert command is not None
    assert command[1] == "--fail-on-warning --keep-going --quiet"


def test_the_site_has_every_page_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    site = tmp_path / "site"
    status, reported = build(ROOT / "docs", site)
    assert (status, reported) == (0, "")
    pages = {path.stem for path in site.glob("*.html")}
    assert_same(pages, {path.stem for path in (ROOT / "docs").glob("*.md")} | {"search"})
    assert (site / "searchindex.js").exists()
    loaded = [
        (path.name, found)
        for pattern, places in (("*.html", LOADED), ("*.css", IN_STYLES), ("*.svg", IN_STYLES))
        for path in site.rglob(pattern)
        for groups in places.findall(path.read_text(encoding="utf-8"))
        for found in groups
        if re.match(r"\w+:|//", found) and not found.startswith("data:")
    ]
    assert loaded == []


@pytest.mark.parametrize(
    ("page", "reported"),
    [
        ("[there](page.md#place) and [here](#a-page)", ""),
        (PICTURE, ""),
        ("[there](pge.md)", "pge.md"),
        ("[there](page.md#plce)", "plce"),
        ("[here](#nowhere)", "nowhere"),
        ("![a picture](images/none.png)", "images/none.png"),
        ("```python\nif so:\nprint 'not indented'\n```\n```{nothing}\n```", "nothing"),
        (PICTURE.replace("    accTitle: Two boxes\n", ""), "a picture needs a line `accTitle"),
        (PICTURE.replace("-->", "-->>>|"), "the picture cannot be drawn"),
    ],
)
def test_a_mistake_on_a_page_fails_the_build(tmp_path: Path, page: str, reported: str) -> None:
    pages = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", pages, ignore=shutil.ignore_patterns("*.md", "images", "__pycache__"))
    (pages / "index.md").write_text("# Site\n\n## All\n\n| page |\n|---|\n| [a](a.md) |\n| [page](page.md) |\n", encoding="utf-8")
    (pages / "page.md").write_text("# Page\n\n## Place\n", encoding="utf-8")
    (pages / "a.md").write_text(f"# A page\n\n{page}\n", encoding="utf-8")
    status, printed = build(pages, tmp_path / "site")
    assert status == (1 if reported else 0), printed
    assert reported in printed


def test_a_page_that_the_index_does_not_name_fails_the_build(tmp_path: Path) -> None:
    pages = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", pages, ignore=shutil.ignore_patterns("*.md", "images", "__pycache__"))
    (pages / "index.md").write_text("# Site\n", encoding="utf-8")
    (pages / "forgotten.md").write_text("# Forgotten\n", encoding="utf-8")
    status, printed = build(pages, tmp_path / "site")
    assert status == 1
    assert "forgotten.md" in printed
