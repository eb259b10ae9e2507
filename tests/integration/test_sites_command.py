"""`scrapy sites`: what it shows of each site; hosts that a person pauses and resumes, while they are crawled and between crawls."""

from __future__ import annotations

import getpass
import json
import signal
from collections import Counter
from typing import Any

import pytest

from crawlspace.crawl.sites import ROBOTS_TXT, SITES
from tests.conftest import MakeProject, Project, assert_same
from tests.integration.conftest import Run
from tests.integration.stored import FAST, collection, make_due, opened, shared, states
from tests.integration.workers import MakeTeam, tree
from tests.sites import Site, held, page, redirect, serve, status, text

PAGES = 30
ME = getpass.getuser()


class Gates:
    """A site that is crawled in three parts, each until its gate is released."""

    def __init__(self) -> None:
        self.site = Site({"/": page("Home", links=["/one", "/two"])}, otherwise=page("Any"))
        self.one, self.two = held(page("One", links=[f"/{n}" for n in range(5)])), held(page("Two"))
        self.site |= {"/one": self.one, "/two": self.two, "/robots.txt": status(404)}


def held_site() -> tuple[Site, held]:
    """A site with its first page held."""
    site = tree(PAGES)
    site["/0"] = gate = held(page("Zero", links=[f"/{n}" for n in range(1, 7)]))
    site["/"] = page("Home", links=["/0"])
    return site, gate


def forget_robots(project: Project) -> None:
    """Have each robots.txt be read again."""
    with opened(project) as store:
        store.forget_robots(read_after=0)


def sites_of(project: Project, *options: str) -> dict[str, dict[str, Any]]:
    answered = json.loads(project.scrapy("sites", "demo", "--json", *options).succeeded().stdout)
    return {one["site"]: one for one in answered["sites"]}


def test_a_host_is_paused_and_resumed_while_it_is_crawled(project: MakeProject) -> None:
    gates, (paused, gate) = Gates(), held_site()
    with serve(gates.site) as other, serve(paused) as server:
        demo = project(collection(f"{other.url('/')}\n{server.url('/')}"))
        crawl = demo.start("crawl", "demo")
        demo.until(lambda: "/0" in server.paths() and {"/one", "/two"} <= {*other.paths()})
        done = demo.scrapy("sites", "demo", "--pause", server.netloc, "--reason", "moves").succeeded()
        assert f"{server.netloc} is paused: the running crawl stops within seconds" in done.stdout
        demo.until(lambda: f"{server.netloc} is paused by {ME} since" in demo.output())
        gate.release()
        gates.one.release()
        demo.until(lambda: "/4" in other.paths())
        assert_same(server.paths(), ["/robots.txt", "/", "/0"])
        demo.scrapy("sites", "demo", "--resume", server.netloc).succeeded()
        demo.until(lambda: f"/{PAGES - 1}" in server.paths())
        gates.two.release()
        assert crawl.wait() == 0, demo.output()
        assert Counter(server.paths()).most_common(1)[0][1] == 1, "nothing was fetched twice"
        assert {state.status for state in states(demo).values()} == {200}


@pytest.mark.parametrize("kind", ["file", "server"])
def test_a_paused_host_is_left_alone_until_it_is_resumed(project: MakeProject, kind: str) -> None:
    """Neither pages nor robots.txt are requested, nothing is deleted, and the crawl ends."""
    with serve(tree(8)) as other, serve(tree(8)) as server:
        demo = project(collection(f"{other.url('/')}\n{server.url('/')}"))
        demo = shared(demo) if kind == "server" else demo
        demo.crawl("demo").succeeded()
        before = states(demo)
        forget_robots(demo)
        make_due(demo)
        demo.scrapy("sites", "demo", "--pause", server.netloc, "--reason", "moves").succeeded()
        for one in (other, server):
            one.forget()
        crawled = demo.crawl("demo").succeeded()
        assert "demo: done. " in crawled.stderr
        assert f"  {server.netloc} is paused by {ME} since " in crawled.stderr
        assert f": moves; nothing of it is requested  (scrapy sites demo --resume {server.netloc})" in crawled.stderr
        assert server.paths() == []
        assert len(other.paths()) >= 8
        after = states(demo)
        theirs = {url for url, state in before.items() if state.site == server.netloc}
        assert {url for url, state in after.items() if state.site == server.netloc} == theirs
        assert all(
            after[url].indexed == before[url].indexed and after[url].fetched_at == before[url].fetched_at for url in theirs
        )
        assert json.loads(demo.scrapy("status", "demo", "--json").succeeded().stdout)["unreachable"] == []
        shown = demo.scrapy("explain", "demo", server.url("/1")).succeeded().stdout
        assert f"paused by {ME} since" in shown
        assert f"`scrapy sites demo --resume {server.netloc}`" in " ".join(shown.split())
        assert "Hosts that are paused: 1 (scrapy sites demo --paused" in demo.scrapy("status", "demo").succeeded().stdout
        assert list(sites_of(demo, "--paused")) == [server.netloc]
        demo.scrapy("sites", "demo", "--resume", server.netloc).succeeded()
        demo.crawl("demo").succeeded()
        assert len(server.paths()) >= 8


@pytest.mark.parametrize("kind", ["file", "server"])
def test_a_continuous_crawl_waits_for_a_paused_host(project: MakeProject, kind: str) -> None:
    """It has nothing else to do, and fetches again as soon as the host is resumed."""
    paused, gate = held_site()
    with serve(paused) as server:
        demo = project(collection(server.url("/"), settings=f"{FAST}CRAWLSPACE_CONTINUOUS = True\n"))
        demo = shared(demo) if kind == "server" else demo
        crawl = demo.start("crawl", "demo")
        demo.until(lambda: "/0" in server.paths())
        demo.scrapy("sites", "demo", "--pause", "127.0.0.1").succeeded()
        demo.until(lambda: f"127.0.0.1 is paused by {ME} since" in demo.output())
        gate.release()
        demo.scrapy("sites", "demo", "--resume", "127.0.0.1").succeeded()
        demo.until(lambda: f"/{PAGES - 1}" in server.paths())
        crawl.send_signal(signal.SIGINT)
        assert crawl.wait() == 0, demo.output()


def test_two_workers_leave_a_paused_host_alone(team: MakeTeam) -> None:
    gates, (paused, gate) = Gates(), held_site()
    with serve(gates.site) as other, serve(paused) as server:
        shared = team(other.url("/"), server.url("/"))
        for _ in range(2):
            shared.start()
        shared.until_in_redis(lambda: len(shared.names()) == 2, "workers")
        shared.until(lambda: "/0" in server.paths() and {"/one", "/two"} <= {*other.paths()})
        shared.run("sites", "demo", "--pause", server.netloc).succeeded()
        shared.until(lambda: all(f"{server.netloc} is paused by {ME}" in shared.output(number) for number in range(2)))
        gate.release()
        gates.one.release()
        shared.until(lambda: "/4" in other.paths())
        gates.two.release()
        shared.wait()
        assert_same(server.paths(), ["/robots.txt", "/", "/0"])
        for number in range(2):
            assert f"{server.netloc} is paused by {ME} since" in shared.output(number).split("demo: done.")[1]
        shared.run("sites", "demo", "--resume", server.netloc).succeeded()
        shared.start()
        shared.wait()
        assert {f"/{n}" for n in range(PAGES)} <= {*server.paths()}
        assert {state.status for state in shared.states().values()} == {200}


def test_a_site_whose_robots_txt_is_at_a_paused_host_waits(project: MakeProject) -> None:
    """Its rules are not known; robots.txt of the paused host is not requested for it, and it is no failure of either."""
    first = Site({"/": page("Home"), "/robots.txt": text("")})
    with serve(first) as other, serve(Site({"/": page("Home"), "/robots.txt": text("User-agent: *\nDisallow: /no")})) as server:
        demo = project(collection(f"{other.url('/')}\n{server.url('/')}"))
        demo.crawl("demo").succeeded()
        first["/robots.txt"] = redirect(server.url("/robots.txt"))
        forget_robots(demo)
        make_due(demo)
        demo.scrapy("sites", "demo", "--pause", server.netloc).succeeded()
        server.forget()
        crawled = demo.crawl("demo").succeeded()
        assert (
            f"nothing of {other.netloc} is fetched for now: its robots.txt is at {server.netloc}, which is paused"
            in crawled.stderr
        )
        assert server.paths() == []
        assert json.loads(demo.scrapy("status", "demo", "--json").succeeded().stdout)["unreachable"] == []


# --- what it shows -------------------------------------------------------------------------------------------------


@pytest.fixture(params=["file", "server"])
def demo(project: MakeProject, request: pytest.FixtureRequest) -> Any:
    """Two sites that were crawled: one with a delay in its robots.txt, one with a delay of its own and with errors."""
    first = tree(5)
    first["/robots.txt"] = text("User-agent: *\nCrawl-delay: 0.01\n")
    second = Site(
        {"/": page("Home", links=["/down", "/gone"]), "/down": status(500), "/gone": status(404), "/robots.txt": status(404)}
    )
    with serve(first) as one, serve(second) as two:
        own = f"RETRY_TIMES = 0\nCRAWLSPACE_SITES = {{'{two.netloc}': {{'delay': 0.02}}}}\n"
        made = project(collection(f"{one.url('/0')}\n{two.url('/')}", settings=FAST + own))
        made = shared(made) if request.param == "server" else made
        made.crawl("demo").succeeded()
        made.servers = one, two  # type: ignore[attr-defined]
        yield made


def test_each_site_is_shown_with_its_numbers(demo: Any, run: Run) -> None:
    one, two = (server.netloc for server in demo.servers)
    answered = json.loads(run("sites", "demo", "--json").succeeded().stdout)
    assert (answered["total"], answered["pauses"], [site["site"] for site in answered["sites"]]) == (2, {}, sorted([one, two]))
    found = {site["site"]: site for site in answered["sites"]}
    shown = {site: {name: found[site][name] for name in ("documents", "pending", "delay_s", "delay_from")} for site in found}
    assert shown == {
        one: {"documents": 5, "pending": 0, "delay_s": 0.01, "delay_from": ROBOTS_TXT},
        two: {"documents": 1, "pending": 0, "delay_s": 0.02, "delay_from": SITES},
    }
    assert [(robots["status"], robots["bytes"]) for site in (one, two) for robots in found[site]["robots"]] == [
        (200, 32),
        (404, 0),
    ]
    assert found[two]["last_fetches"] == {"count": 3, "failed": 1, "missing": 1}
    assert json.loads(run("sites", "demo", "--errors", "--json").succeeded().stdout)["sites"] == [found[two]]
    lines = run("sites", "demo").succeeded().stdout.splitlines()
    assert lines[0] == "2 sites"
    assert [line.split()[0] for line in lines[3:]] == sorted([one, two])
    cut = run("sites", "demo", "--limit", "1", "--sort", "errors").succeeded().stdout
    assert cut.splitlines()[3].split()[0] == two
    assert "and 1 more" in cut


def test_all_of_one_site(demo: Any, run: Run) -> None:
    one, two = (server.netloc for server in demo.servers)
    shown = run("sites", "demo", "--host", one, "--robots-txt").succeeded().stdout
    assert shown.splitlines()[0] == one
    assert "delay         0.01 s, one request at a time (robots.txt)" in shown
    assert "robots.txt    http: 200 OK, 32 bytes, read " in shown
    assert "    Crawl-delay: 0.01" in shown
    assert "1 of the last 3 fetches failed; 1 of the last 3 fetches found nothing" in run("sites", "demo", "--host", two).stdout
    answered = json.loads(run("sites", "demo", "--host", one, "--json").succeeded().stdout)
    assert answered["sites"][0]["robots"][0]["text"] == "User-agent: *\nCrawl-delay: 0.01\n"


def test_pausing_and_resuming(demo: Any, run: Run) -> None:
    one, two = (server.netloc for server in demo.servers)
    assert (
        "127.0.0.1 is paused: crawls leave it out; scrapy sites demo --resume 127.0.0.1"
        in run("sites", "demo", "--pause", "127.0.0.1", "--reason", "no\x1b[2J").succeeded().stdout
    )
    again = run("sites", "demo", "--pause", "127.0.0.1").succeeded().stdout
    assert f"(before, it was paused by {ME} since " in again
    listed = run("sites", "demo", "--paused").succeeded().stdout
    assert listed.splitlines()[0] == "2 sites, 1 host paused"
    assert listed.count("when it is resumed") == 2
    wrong = run("sites", "demo", "--resume", one)
    assert (wrong.returncode, wrong.stderr) == (2, f"{one} is not paused by itself; 127.0.0.1 is: --resume '127.0.0.1'\n")
    assert (
        f"127.0.0.1 is not paused any more (it was paused by {ME} since "
        in run("sites", "demo", "--resume", "127.0.0.1").succeeded().stdout
    )
    assert run("sites", "demo", "--paused").succeeded().stdout == "0 sites\n"
    assert two not in run("sites", "demo", "--paused", "--json").succeeded().stdout


# arguments -> a part of the sentence
WRONG = [
    ((), "name one collection"),
    (("demo", "--pause", "nowhere.example"), "nowhere.example is no host that demo knows: `scrapy sites demo` lists them"),
    (("demo", "--pause", "http://127.0.0.1/"), "is no host; write one as in www.example.com"),
    (("demo", "--pause", "*e*"), "is no host; write one as in www.example.com"),
    (("demo", "--pause", "127.0.0.1", "--reason", "x" * 201), "the reason has 201 characters; write at most 200"),
    (("demo", "--pause", "a", "--resume", "b"), "--pause or --resume, not both"),
    (("demo", "--reason", "because"), "use it with --pause"),
    (("demo", "--resume", "127.0.0.1"), "127.0.0.1 is not paused; `scrapy sites demo --paused` lists what is"),
    (("demo", "--host", "nowhere.example"), "nowhere.example is no host that demo knows"),
    (("demo", "--robots-txt"), "name it with --host"),
    (("demo", "--limit", "0"), "show at least one site"),
    (("demo", "--sort", "mood"), "mood"),
]


@pytest.mark.parametrize("demo", ["file"], indirect=True)
def test_wrong_use(demo: Any, run: Run) -> None:
    for arguments, sentence in WRONG:
        ended = run("sites", *arguments)
        assert (ended.returncode, ended.stdout) == (2, ""), arguments
        assert sentence in ended.stderr
    assert demo.store_url == ""


def test_a_collection_that_was_never_crawled(project: MakeProject) -> None:
    new = project(collection("http://www.example.com/"))
    assert "demo has never been crawled" in new.scrapy("sites", "demo").succeeded().stdout
    paused = new.scrapy("sites", "demo", "--pause", "www.example.com")
    assert (paused.returncode, paused.stderr) == (1, "demo has never been crawled: `scrapy crawl demo` does\n")
