"""Prometheus: the rules of `examples/monitoring` by promtool, and a server that scrapes a console and a crawl."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crawlspace.console.guard import Access
from crawlspace.console.users import Role, Users
from tests.command_line import ROOT
from tests.conftest import MakeProject
from tests.consoles import served
from tests.integration.stored import collection
from tests.integration.test_crawl_metrics import CONTINUOUS, get
from tests.notifications import LONGEST_WAIT_S
from tests.servers import free_port
from tests.sites import Site, page, serve, status

PROMETHEUS = os.environ["CRAWLSPACE_TEST_PROMETHEUS"]
PROMTOOL = str(Path(PROMETHEUS).with_name("promtool"))
FOLDER = ROOT / "examples" / "monitoring"
CONFIGURATION = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [{folder}/alerts.yml]
scrape_configs:
  - job_name: crawlspace-console
    authorization: {{credentials: {token}}}
    static_configs: [{{targets: ["{console}"]}}]
  - job_name: crawlspace-crawl
    static_configs: [{{targets: ["127.0.0.1:{crawl}"]}}]
"""


def promtool(*arguments: str, text: str = "") -> str:
    done = subprocess.run([PROMTOOL, *arguments], cwd=FOLDER, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("arguments", ["check rules alerts.yml", "test rules alerts_test.yml", "check config prometheus.yml"])
def test_the_examples_are_right(arguments: str) -> None:
    assert "SUCCESS" in promtool(*arguments.split())


def test_prometheus_takes_each_query_of_the_dashboard() -> None:
    panels = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
    queries = [target["expr"].replace("$__rate_interval", "5m") for panel in panels for target in panel["targets"]]
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries)]
    assert "SUCCESS" in promtool("check", "rules", "/dev/stdin", text=json.dumps({"groups": [{"name": "all", "rules": rules}]}))


@contextmanager
def prometheus(folder: Path, configuration: str) -> Iterator[int]:
    """Start a server; yield its port."""
    (folder / "prometheus.yml").write_text(configuration)
    port = free_port()
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                PROMETHEUS,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        yield port
    finally:
        process.kill()
        process.wait()


def value(port: int, query: str) -> list[tuple[dict[str, str], str]]:
    """What Prometheus answers to a query; nothing before it has started."""
    code, text = get(port, f"/api/v1/query?{urllib.parse.urlencode({'query': query})}")
    return [(one["metric"], one["value"][1]) for one in json.loads(text)["data"]["result"]] if code == 200 else []


def test_a_console_and_a_crawl_are_scraped(project: MakeProject, tmp_path: Path) -> None:
    crawl_port = free_port()
    pages = {"/": page("Home", links=["/a", "/gone"]), "/a": page("A"), "/robots.txt": status(404)}
    settings = f"{CONTINUOUS}CRAWLSPACE_METRICS_PORT = {crawl_port}\n"
    with serve(Site(pages)) as server:
        demo = project(collection(server.url("/"), settings=settings))
        token = Users(demo.data / "console-users").add_token("prometheus", Role.VIEWER)
        demo.start("crawl", "demo")
        demo.until(lambda: "metrics are at" in demo.output())
        access = Access(Users(demo.data / "console-users"), hosts=frozenset(), is_local=False)
        with served(demo, access=access) as browser:
            for text in (
                get(crawl_port, "/metrics")[1],
                browser.get("/metrics", {"Authorization": f"Bearer {token}"}).text,
            ):
                assert promtool("check", "metrics", text=text) == ""
            configuration = CONFIGURATION.format(
                folder=FOLDER, token=token, console=urllib.parse.urlsplit(browser.base).netloc, crawl=crawl_port
            )
            with prometheus(tmp_path, configuration) as port:
                wait_for(port, "crawlspace_documents == 2", tmp_path)
                wait_for(port, 'crawlspace_fetches_total{status="200"} == 2', tmp_path)
                wait_for(port, "histogram_quantile(0.9, sum by (le) (crawlspace_fetch_seconds_bucket)) > 0", tmp_path)
                up = {labels["job"]: number for labels, number in value(port, "up")}
    assert up == {"crawlspace-console": "1", "crawlspace-crawl": "1"}


def wait_for(port: int, query: str, folder: Path) -> None:
    """Wait until a query has an answer."""
    give_up_at = time.monotonic() + LONGEST_WAIT_S
    while not value(port, query):
        assert time.monotonic() < give_up_at, (query, (folder / "prometheus.log").read_text()[-3_000:])
