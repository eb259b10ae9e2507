"""No secret is found in what a crawl leaves behind: a small version of `tests/long/secrets.py`."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from tests.conftest import MakeProject
from tests.planted.scene import SENT, planted
from tests.planted.search import count

SECRET = "a secret/+?é"
WRITTEN = (
    SECRET,
    quote(SECRET),
    quote(SECRET, safe=""),
    json.dumps({"a": SECRET}),
    *(base64.b64encode(f"{'u' * n}:{SECRET}:".encode()).decode() for n in range(3)),
    base64.urlsafe_b64encode(SECRET.encode()).decode(),
    base64.b64encode(f"user:{quote(SECRET, safe='')}".encode()).decode(),
)


@pytest.mark.parametrize("written", WRITTEN)
def test_a_secret_is_found_however_it_is_written(written: str) -> None:
    assert count({"log": [f"DEBUG: {written} …".encode()]}, {"it": SECRET, "another": "b" + SECRET}) == {("log", "it"): 1}


@pytest.mark.full
def test_none_is_found(project: MakeProject) -> None:
    with planted(project({}), shares=False, is_brief=True) as scene:
        assert scene.unwanted() == {}
        assert scene.used >= SENT
        assert scene.found()["data folder", "link"], "the archive is searched"
        assert {place for place, contents in scene.places.items() if any(contents)} >= {"log", "commands", "data folder", "sinks"}
