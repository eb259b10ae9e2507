"""The metrics of a running crawl over HTTP, and its log as JSON."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from crawlspace.runtime.monitoring.metrics import OF_CRAWL
from tests.command_line import ROOT
from tests.conftest import MakeProject
from tests.integration.stored import FAST, collection
from tests.notifications import LONGEST_WAIT_S
from tests.servers import free_port
from tests.sites import Site, page, serve, status

TOKEN = "0123456789abcdef-token"
CONTINUOUS = f"{FAST}CRAWLSPACE_CONTINUOUS = True\n"


def get(port: int, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, str]:
    """The status and the text of an answer; 0 where nobody listens yet."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=dict(headers or {}))
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except OSError:
        return 0, ""


def get_until(port: int, holds: Callable[[dict[tuple[str, ...], float]], bool]) -> dict[tuple[str, ...], float]:
    """The metrics of a crawl that serves them, once they are as they have to be."""
    give_up_at = time.monotonic() + LONGEST_WAIT_S
    while not holds(found := samples(get(port, "/metrics")[1])):
        assert time.monotonic() < give_up_at, found
    return found


def samples(text: str) -> dict[tuple[str, ...], float]:
    """The samples of metrics, by name and values of labels."""
    return {
        (one.name, *one.labels.values()): one.value for family in text_string_to_metric_families(text) for one in family.samples
    }


def test_a_crawl_without_a_port_does_not_load_the_library_of_metrics() -> None:
    """That takes a tenth of a second, and Scrapy loads the extension for each crawl."""
    code = "import sys, crawlspace.runtime.monitoring.crawl; print('prometheus_client' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_crawl_exports_its_counters(project: MakeProject) -> None:
    port = free_port()
    pages = {"/": page("Home", links=["/a", "/gone", "/b.jpg"]), "/a": page("A"), "/robots.txt": status(404)}
    with serve(Site(pages)) as server:
        demo = project(collection(server.url("/"), settings=f"{CONTINUOUS}CRAWLSPACE_METRICS_PORT = {port}\n"))
        crawl = demo.start("crawl", "demo")
        demo.until(lambda: f"metrics are at http://127.0.0.1:{port}/metrics" in demo.output())
        found = get_until(port, lambda found: found.get(("crawlspace_fetch_seconds_count", "demo")) == 3)
        statuses = {key[2]: count for key, count in found.items() if key[0] == "crawlspace_fetches_total"}
        assert statuses == {"200": 2, "404": 1}
        assert found[("crawlspace_fetch_seconds_bucket", "demo", "+Inf")] == 3
        assert found[("crawlspace_bytes_total", "demo")] > 100
        assert found[("crawlspace_login_failures_total", "demo")] == 0
        assert all(labels[1] == "demo" for labels in found)
        assert get(port, "/live") == (200, "alive\n")
        assert get(port, "/ready") == (200, "ready\n")
        assert get(port, "/other")[0] == 404
        assert get(port, "/metrics", {"Host": "evil.example"})[0] == 421, "a name that leads here is not ours"
        accepting = {"Accept": "application/openmetrics-text; version=1.0.0"}
        assert get(port, "/metrics", accepting)[1].endswith("# EOF\n")
        families = {family.name for family in text_string_to_metric_families(get(port, "/metrics")[1])}
        assert families == {one.name.removesuffix("_total") for one in OF_CRAWL}
        crawl.send_signal(signal.SIGINT)
        assert crawl.wait() == 0
        assert get(port, "/live") == (0, "")


def test_metrics_need_the_token(project: MakeProject, tmp_path: Path) -> None:
    port, secret = free_port(), tmp_path / "token"
    secret.write_text(f"{TOKEN}\n")
    settings = f'{CONTINUOUS}CRAWLSPACE_METRICS_PORT = {port}\nCRAWLSPACE_METRICS_TOKEN = "file:{secret}"\n'
    with serve(Site({"/": page("Home"), "/robots.txt": status(404)})) as server:
        demo = project(collection(server.url("/"), settings=settings))
        demo.start("crawl", "demo")
        demo.until(lambda: "metrics are at" in demo.output())
        assert get(port, "/live")[0] == 200
        assert get(port, "/metrics")[0] == 401
        assert get(port, "/metrics", {"Authorization": "Bearer other"})[0] == 401
        assert get(port, "/metrics", {"Authorization": f"Bearer {TOKEN}", "Host": "crawler.example:9"})[0] == 200


def test_a_taken_port_does_not_keep_a_crawl_from_its_work(project: MakeProject) -> None:
    with serve(Site({"/": page("Home"), "/robots.txt": status(404)})) as server, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        demo = project(collection(server.url("/"), settings=f"{FAST}CRAWLSPACE_METRICS_PORT = {port}\n"))
        done = demo.crawl("demo")
        done.succeeded()
        assert f"the metrics cannot be served at 127.0.0.1, port {port}: Address already in use" in done.stderr


def test_the_log_is_json(project: MakeProject) -> None:
    with serve(Site({"/": page("Home"), "/robots.txt": status(404)})) as server:
        demo = project(collection(f"{server.url('/')}\nhttp://refused.example/", rules="forbid domain refused.example\n"))
        (demo.collections / "demo" / "settings.py").write_text(f'{FAST}CRAWLSPACE_LOG_FORMAT = "json"\n')
        for options in ([], ["-L", "DEBUG"]):
            done = demo.crawl("demo", *options)
            done.succeeded()
            records = [json.loads(line) for line in done.stderr.splitlines()]
            assert all(one["labels.collection"] == "demo" and one["service.name"] == "crawlspace" for one in records)
            refused = next(one for one in records if "refused.example" in one["message"])
            assert (refused["log.level"], refused["log.logger"][:10]) == ("warning", "crawlspace")
            assert refused["@timestamp"].endswith("Z")
            assert records[-1]["message"].startswith("demo: done")
        done = demo.crawl("demo", "--logfile", str(demo.folder / "crawl.log"))
        done.succeeded()
        lines = (demo.folder / "crawl.log").read_text().splitlines()
        assert [json.loads(line)["labels.collection"] for line in lines] == ["demo"] * len(lines)
        (demo.collections / "demo" / "crawl.rules").write_text("forbid nonsense\n")
        failed = demo.crawl("demo")
        assert failed.returncode == 1
        assert json.loads(failed.stderr)["log.level"] == "error"


def test_faults_are_records_too(project: MakeProject) -> None:
    demo = project(collection("http://127.0.0.1:9/", settings=f'{FAST}CRAWLSPACE_LOG_FORMAT = "json"\n'))
    for options, level in (([], "error"), (["-L", "CRITICAL"], "critical")):
        done = demo.crawl("demo", *options)
        assert done.returncode == 1
        last = json.loads(done.stderr.splitlines()[-1])
        assert (last["log.level"], last["message"][:38]) == (level, "demo: no start site could be reached: ")
    assert demo.crawl("demo", "--nolog").stderr.startswith("demo: no start site could be reached: ")
