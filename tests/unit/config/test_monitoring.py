"""Settings on metrics and logs, and how mistakes in them are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.config.collection import load_collection
from crawlspace.errors import SettingError
from crawlspace.settings import MonitoringSettings
from tests.unit.config.conftest import settings

TOKEN = "0123456789abcdef"


def monitoring(folder: Path, **own: object) -> MonitoringSettings:
    return load_collection("demo", settings(folder, **own)).monitoring


@pytest.mark.parametrize("port", [0, "0", "", None])
def test_no_metrics_are_served_by_default(collections: Path, port: object) -> None:
    assert not monitoring(collections).port
    assert not monitoring(collections, CRAWLSPACE_METRICS_PORT=port).port


def test_the_token_is_read(collections: Path, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text(f"{TOKEN}\n")
    found = monitoring(
        collections,
        CRAWLSPACE_METRICS_PORT="8970",
        CRAWLSPACE_METRICS_BIND="0.0.0.0",
        CRAWLSPACE_METRICS_TOKEN=f"file:{secret}",
    )
    assert (found.port, found.bind, found.token) == (8970, "0.0.0.0", TOKEN)


MISTAKES = [  # settings, the sentence begins with
    ({"PORT": 70_000}, "CRAWLSPACE_METRICS_PORT is 70000"),
    ({"PORT": 8970, "BIND": "localhost"}, "CRAWLSPACE_METRICS_BIND is 'localhost'; give an IP address"),
    ({"PORT": 8970, "BIND": "::"}, "CRAWLSPACE_METRICS_BIND is ::, beyond this machine, and CRAWLSPACE_METRICS_TOKEN is not set"),
    ({"PORT": 8970, "TOKEN": TOKEN}, "CRAWLSPACE_METRICS_TOKEN is the token itself"),
    ({"PORT": 8970, "TOKEN": "env:SHORT_TOKEN"}, "CRAWLSPACE_METRICS_TOKEN has 5 characters; make it 16 or more"),
]


@pytest.mark.parametrize(("own", "sentence"), MISTAKES)
def test_mistakes_are_named(collections: Path, monkeypatch: pytest.MonkeyPatch, own: dict[str, object], sentence: str) -> None:
    monkeypatch.setenv("SHORT_TOKEN", "short")
    with pytest.raises(SettingError) as raised:
        monitoring(collections, **{f"CRAWLSPACE_METRICS_{name}": value for name, value in own.items()})
    assert str(raised.value).startswith(sentence)
    assert TOKEN not in str(raised.value)


def test_an_unknown_format_of_the_log_is_a_mistake(collections: Path) -> None:
    with pytest.raises(SettingError, match="CRAWLSPACE_LOG_FORMAT is 'xml'"):
        monitoring(collections, CRAWLSPACE_LOG_FORMAT="xml")
