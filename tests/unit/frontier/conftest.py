"""What tests of robots.txt share."""

from __future__ import annotations

import pytest
from protego import Protego


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Protego is given to read."""
    texts: list[str] = []
    parse = Protego.parse

    def noted(text: str) -> Protego:
        texts.append(text)
        return parse(text)

    monkeypatch.setattr(Protego, "parse", noted)
    return texts
