"""The OpenAPI document of the JSON interface: clients that only know the document find nothing else than it says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from crawlspace.console.api.operations import BASE
from crawlspace.console.api.routes import OPERATIONS
from crawlspace.console.api.serving import DESCRIPTION
from crawlspace.console.users import Role
from tests.conftest import Project
from tests.described_api import document
from tests.integration.test_console_api import Api, crawled
from tests.notifications import LONGEST_WAIT_S
from tests.quick import examples

CHECKS = (status_code_conformance, content_type_conformance, response_schema_conformance)
LONGEST_LINE = 8_000
"""Characters of an address. A longer one is refused before the request is read."""
CHANGES = {"start_crawl", "stop_crawl"}
"""Operations that start and end processes: tests of their own call them."""
NAMES = [one.name for one in OPERATIONS if one.name not in CHANGES]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    def project(files: Mapping[str, str]) -> Project:
        return Project(tmp_path_factory.mktemp("described"), files)

    with crawled(project, role=Role.OPERATOR) as made:
        yield made


def test_the_document_is_served(api: Api) -> None:
    got = api.browser.get(DESCRIPTION)
    assert got.json() == document()


def test_each_operation_is_described_once() -> None:
    described = {
        (method.upper(), path, operation["operationId"])
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    }
    assert described == {(one.method, f"{BASE}{one.path}", one.name) for one in OPERATIONS}
    assert len({one.name for one in OPERATIONS}) == len(OPERATIONS)


def known_values(name: str, start: str) -> Mapping[str, st.SearchStrategy[str]]:
    """Values by which something is found, for parameters that would hardly ever have one."""
    urls = st.sampled_from([start, f"{start}a", f"{start}no/x"])
    return {
        "name": st.just("demo"),
        "sink": st.sampled_from(["embedded", ""]),
        "url": urls,
        "after": st.sampled_from([start, ""]),
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.name.lower())
def test_no_answer_is_outside_of_the_document(api: Api, name: str, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_dict(document())
    operation = schema.find_operation_by_id(name)
    cases = operation.as_strategy(generation_mode=mode)
    known = known_values(name, api.start)

    @given(case=cases, data=st.data())
    @settings(
        max_examples=examples(100),
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case: Case[Any], data: st.DataObject) -> None:
        if data.draw(st.booleans()):
            for values in (case.path_parameters, case.query):
                for key in [one for one in values or {} if one in known]:
                    values[key] = data.draw(known[key])
        request = case.as_transport_kwargs(base_url=api.browser.base.rstrip("/"))
        assume(
            len(requests.Request(request["method"], request["url"], params=request["params"]).prepare().url or "") < LONGEST_LINE
        )
        case.call_and_validate(
            base_url=api.browser.base.rstrip("/"), headers=dict(api.browser.headers), checks=list(CHECKS), timeout=LONGEST_WAIT_S
        )

    check()


def test_a_generated_client_works(api: Api, tmp_path: Path) -> None:
    """A program that openapi-python-client makes of the document, in a process of its own."""
    (tmp_path / "openapi.json").write_text(json.dumps(document()), encoding="utf-8")
    made = tmp_path / "client"
    generator = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    # its hooks would format the code
    (tmp_path / "config.yml").write_text("post_hooks: []\n", encoding="utf-8")
    paths = ["--path", str(tmp_path / "openapi.json"), "--output-path", str(made), "--config", str(tmp_path / "config.yml")]
    run = subprocess.run([*generator, *paths], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    program = f"""
from client import AuthenticatedClient
from client.api.collections import explain_urls, get_status, search
from client.models import ExplainBody
with AuthenticatedClient(base_url={api.browser.base.rstrip("/")!r}, token={api.browser.headers["Authorization"].partition(" ")[2]!r}) as asked:
    print(get_status.sync("demo", client=asked).index.documents)
    print(search.sync("demo", client=asked, q="leave", filter_=["language=en"]).hits[0].title)
    print(explain_urls.sync("demo", client=asked, body=ExplainBody(urls=[{api.start!r}])).explanations[0].reason)
    print(get_status.sync("nope", client=asked).error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.stdout.splitlines() == ["2", "Leave", "admitted", "there is no collection 'nope'"], run.stderr
