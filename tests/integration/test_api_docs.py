"""docs/api.md: its table has each address with its parameters, and its examples are answered as they are shown."""

from __future__ import annotations

import json
import re

from crawlspace.console.api.operations import properties
from crawlspace.console.api.routes import OPERATIONS
from crawlspace.console.users import Role
from tests.command_line import ROOT
from tests.conftest import MakeProject
from tests.integration.test_console_api import crawled
from tests.unit.test_docs import plain, rows, shape

TEXT = (ROOT / "docs/api.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```text\n(GET|POST) (\S+)\n(.*?)```\n\n```json\n(.*?)\n```", TEXT, re.DOTALL)


def test_each_address_is_documented() -> None:
    documented = [
        (plain(address), role, re.findall("`([^`]+)`", taken), does)
        for address, role, taken, does in rows("docs/api.md", "Addresses")
    ]
    assert documented == [
        (f"{one.method} {one.path}", one.role.label, list(properties(one.takes)), one.summary) for one in OPERATIONS
    ]


def test_the_examples_are_true(project: MakeProject) -> None:
    assert len(EXAMPLES) >= 4
    with crawled(project, role=Role.OPERATOR) as api:
        for method, path, body, answer in EXAMPLES:
            sent = body.replace("http://www.example.com/", api.start).encode()
            got = api.browser.get(path) if method == "GET" else api.browser.post_body(path, sent, "application/json")
            assert shape(got.json()) == shape(json.loads(answer)), path
            if "error" in json.loads(answer):
                assert got.json() == json.loads(answer)
