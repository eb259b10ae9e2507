"""Faults of real crawls, and what the alert rules say of the metrics that a console exports for two hours afterwards: the right alert, and no other.

The console has a clock of the test. Each of its answers becomes samples of a test for promtool, which evaluates the rules over them.
"""

from __future__ import annotations

import json
import resource
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from crawlspace.clock import FakeClock
from tests.command_line import start_scrapy
from tests.conftest import MakeProject, Project
from tests.consoles import Browser, served
from tests.integration.stored import FAST, collection
from tests.integration.test_crawl_metrics import CONTINUOUS, get, get_until
from tests.integration.test_logins import BASIC, KINDS, PASSWORD, REFUSED, RULES, settings, wiki
from tests.integration.workers import MakeTeam, tree
from tests.real_servers.test_prometheus import FOLDER, promtool
from tests.servers import Server, free_port
from tests.sites import Site, held, page, serve, status

EVERY_S, SAMPLES = 240, 31
"""Two hours. Prometheus takes a sample for the value of the five minutes after it."""
FROM_ZERO = "crawlspace_last_success_timestamp_seconds"
"""What the rules compare with the time, which promtool begins at 0."""
Series = defaultdict[str, list[str]]
PAGES = {"/robots.txt": status(404), "/": page("Home", links=[f"/{n}" for n in range(20)])}
PAGES |= {f"/{n}": page(f"Page {n}", text=f"the page {n}") for n in range(20)}


def metrics_after(demo: Project, *, of_crawl: Callable[[], str] = str, until: Callable[[Browser], object] = bool) -> Series:
    """Scrape the console of a project for two hours, once `until` has returned; `of_crawl` returns what a crawl exports meanwhile."""
    began = time.time()
    clock, series = FakeClock(began), Series(list)
    with served(demo, clock=clock) as browser:
        until(browser)
        for number in range(SAMPLES):
            for job, text in (("console", browser.get("/metrics").text), ("crawl", of_crawl())):
                for one in (one for family in text_string_to_metric_families(text) for one in family.samples):
                    labels = {"job": f"crawlspace-{job}", "instance": "staged", **one.labels}
                    name = ", ".join(f"{label}={json.dumps(value)}" for label, value in labels.items())
                    values = series[f"{one.name}{{{name}}}"]
                    values += ["_"] * (number - len(values))
                    values.append(str(one.value - began if one.name == FROM_ZERO else one.value))
            clock.advance(EVERY_S)
    return series


def assert_fires(series: Series, *alerts: str, folder: Path) -> None:
    """Fail the test unless these alerts fire at some time, and no other."""
    fired = {
        "expr": f'group by (alertname) (max_over_time(ALERTS{{alertstate="firing"}}[{SAMPLES * EVERY_S}s]))',
        "eval_time": f"{SAMPLES * EVERY_S}s",
        "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(alerts)],
    }
    given = [{"series": name, "values": " ".join(values)} for name, values in series.items()]
    assert any(name.startswith("crawlspace_up{") for name in series)
    test = {"interval": f"{EVERY_S}s", "input_series": given, "promql_expr_test": [fired]}
    file = folder / "staged.json"  # JSON is YAML
    file.write_text(json.dumps({"rule_files": [str(FOLDER / "alerts.yml")], "evaluation_interval": "1m", "tests": [test]}))
    assert "SUCCESS" in promtool("test", "rules", str(file))


def test_all_is_well(project: MakeProject, tmp_path: Path) -> None:
    with serve(Site(PAGES)) as server:
        demo = project(collection(server.url("/")))
        demo.crawl("demo").succeeded()
        series = metrics_after(demo)
    assert_fires(series, folder=tmp_path)
    with pytest.raises(AssertionError, match="CrawlspaceOverdue"):
        assert_fires(series, "CrawlspaceOverdue", folder=tmp_path)


def test_a_host_is_down(project: MakeProject, tmp_path: Path) -> None:
    with serve(Site(PAGES)) as server:
        others = {path: page(f"Other {path}", text=f"another page {path}") for path in PAGES if path != "/robots.txt"}
        with serve(Site({**PAGES, **others, "/": PAGES["/"]}), host="127.0.0.2") as other:
            demo = project(collection(f"{server.url('/')}\n{other.url('/')}", rules=RULES))
            demo.crawl("demo").succeeded()
        for host in ("127.0.0.1", "127.0.0.2"):
            demo.scrapy("recrawl", "demo", "--host", host).succeeded()
        demo.crawl("demo").succeeded()
        series = metrics_after(demo)
    assert_fires(series, "CrawlspaceSitesUnreachable", folder=tmp_path)


def test_a_sink_is_down(project: MakeProject, tmp_path: Path) -> None:
    sinks = (
        f"CRAWLSPACE_SINKS = {{'search': {{'type': 'opensearch', 'url': 'http://127.0.0.1:{free_port()}', 'index': 'pages'}}}}\n"
    )
    with serve(Site(PAGES)) as server:
        demo = project(collection(server.url("/"), settings=FAST + sinks))
        print(demo.crawl("demo").stderr)
        series = metrics_after(demo)
    assert_fires(series, "CrawlspaceOrdersWait", folder=tmp_path)


def test_the_server_of_the_store_is_away(project: MakeProject, tmp_path: Path) -> None:
    redis = Server(tmp_path / "redis")
    with serve(Site(PAGES)) as server:
        demo = project(collection(server.url("/")))
        demo.store_url = f"redis://127.0.0.1:{redis.port}/0"
        demo.crawl("demo").succeeded()
        redis.kill()
        series = metrics_after(demo)
    assert_fires(series, "CrawlspaceStoreUnreadable", folder=tmp_path)


def fill_the_disk() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))


def test_the_disk_is_full(project: MakeProject, tmp_path: Path) -> None:
    with serve(Site(PAGES)) as server:
        demo = project(collection(server.url("/")))
        crawl = start_scrapy(["crawl", "demo"], output=tmp_path / "output.txt", env=demo.env, first=fill_the_disk)
        assert crawl.wait() == 1
        series = metrics_after(demo)
    assert_fires(series, "CrawlspaceRunFailed", folder=tmp_path)


def test_a_crawl_is_killed(project: MakeProject, tmp_path: Path) -> None:
    late = held(page("Late"))
    with serve(Site({**PAGES, "/19": late})) as server:
        demo = project(collection(server.url("/")))
        crawl = demo.start("crawl", "demo")
        demo.until(lambda: "/19" in server.paths())
        crawl.kill()
        crawl.wait()
        late.release()
        series = metrics_after(demo)
    assert_fires(series, "CrawlspaceRunFailed", folder=tmp_path)


def test_a_rule_excludes_too_much(project: MakeProject, tmp_path: Path) -> None:
    with serve(Site(PAGES)) as server:
        demo = project(collection(server.url("/"), settings=f"{FAST}CRAWLSPACE_MAX_DELETIONS = 1\n"))
        demo.crawl("demo").succeeded()
        demo.write({"demo/crawl.rules": f"forbid prefix {server.url('/1')}\n"})
        demo.crawl("demo").succeeded()
        series = metrics_after(demo)
    assert_fires(series, "CrawlspaceDeletionsHeld", folder=tmp_path)


def test_a_log_in_is_refused(project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", PASSWORD)
    port, site = free_port(), wiki(BASIC, links=[])
    with serve(site) as server:
        more = f"{CONTINUOUS}CRAWLSPACE_METRICS_PORT = {port}\n"
        demo = project(collection(server.url("/"), settings=settings(server, KINDS[0][0]).replace(FAST, more)))
        demo.start("crawl", "demo")
        before = get_until(port, lambda found: found.get(("crawlspace_fetch_seconds_count", "demo"), 0) >= 3)
        assert before[("crawlspace_login_failures_total", "demo")] == 0
        texts = [get(port, "/metrics")[1]]
        for path in ("/", "/a", "/b"):
            site[path] = REFUSED
        demo.scrapy("recrawl", "demo", "--host", "127.0.0.1").succeeded()
        get_until(port, lambda found: found[("crawlspace_login_failures_total", "demo")] > 0)
        texts += [get(port, "/metrics")[1]] * (SAMPLES - 1)
        refused = 'crawlspace_sites_paused{collection="demo",reason="login_refused"} 1.0'
        series = metrics_after(
            demo,
            of_crawl=lambda: texts.pop(0),
            until=lambda browser: browser.get_until("/metrics", lambda got: refused in got.text),
        )
    assert_fires(series, "CrawlspaceLoginRefused", folder=tmp_path)


def test_a_worker_is_killed_while_another_crawls_on(team: MakeTeam, tmp_path: Path) -> None:
    site = tree(30)
    site["/7"] = late = held(page("Late"))
    with serve(site) as server:
        shared = team(server.url("/"))
        first = shared.start()
        shared.until(lambda: "/7" in server.paths())
        shared.start()
        shared.until_shared(0, 1)
        first.kill()
        first.wait()
        shared.expire(first)
        series = metrics_after(shared.project)
        late.release()
        shared.wait()
    assert_fires(series, "CrawlspaceWorkerSilent", folder=tmp_path)
