"""Where a wrong setting stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.config.sentences import placed, where_set
from crawlspace.errors import SettingError


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("DOWNLOAD_DELAY = 0\n", (1, 1)),
        ('DOWNLOAD_DELAY = 0\n# a comment\nDOWNLOAD_DELAY = "abc"\n', (3, 1)),
        ("if True:\n    DOWNLOAD_DELAY = 1\n", (2, 5)),
        ("DOWNLOAD_DELAYS = 1\n", (0, 0)),
        ("", (0, 0)),
    ],
)
def test_the_last_line_that_sets_it(tmp_path: Path, text: str, place: tuple[int, int]) -> None:
    (tmp_path / "settings.py").write_text(text)
    assert where_set(tmp_path, "DOWNLOAD_DELAY") == place
    error = placed(SettingError("DOWNLOAD_DELAY is 'abc'"), tmp_path)
    assert str(error) == (f"{tmp_path / 'settings.py'}:{place[0]}: " if place[0] else "") + "DOWNLOAD_DELAY is 'abc'"
