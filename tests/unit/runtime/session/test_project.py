"""The collections of a project: when their settings are read again."""

from __future__ import annotations

import os
from pathlib import Path

from scrapy.settings import Settings

from crawlspace.clock import FakeClock
from crawlspace.runtime.session.project import ProjectCollections


def test_settings_are_read_again_when_they_have_changed_or_are_old(tmp_path: Path) -> None:
    folder = tmp_path / "collections" / "demo"
    folder.mkdir(parents=True)
    (folder / "start_urls.txt").write_text("http://a.test/\n", encoding="utf-8")
    other, own = tmp_path / "delay.txt", folder / "settings.py"
    other.write_text("1", encoding="utf-8")
    own.write_text(f"from pathlib import Path\nDOWNLOAD_DELAY = float(Path({str(other)!r}).read_text())\n", encoding="utf-8")
    settings = Settings()
    settings.setmodule("crawlspace.settings", priority="project")
    settings.set("CRAWLSPACE_COLLECTIONS_DIR", str(folder.parent), priority="cmdline")
    settings.set("CRAWLSPACE_DATA_DIR", str(tmp_path / "data"), priority="cmdline")
    clock = FakeClock()
    project = ProjectCollections(settings, clock)

    def delay() -> float:
        return project.paths("demo").settings.getfloat("DOWNLOAD_DELAY")

    assert delay() == 1
    other.write_text("2", encoding="utf-8")
    assert delay() == 1, "what settings.py reads is read again after a while"
    clock.advance(6)
    assert delay() == 2
    own.write_text("DOWNLOAD_DELAY = 3\n", encoding="utf-8")
    assert delay() == 3
    (folder / "new.py").write_text("DOWNLOAD_DELAY = 4\n", encoding="utf-8")
    (folder / "new.py").replace(own)
    os.utime(own, ns=(0, 0))
    assert delay() == 4
