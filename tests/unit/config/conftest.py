"""The folder of a collection."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def collections(tmp_path: Path) -> Path:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "start_urls.txt").write_text("# comment\nhttp://a.example/  shift=-1\n\nhttp://[2001:db8::1]:8080/x\n")
    (tmp_path / "demo" / "crawl.rules").write_text("allow domain *.example\nforbid domain *\n")
    return tmp_path
