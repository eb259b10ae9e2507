"""The console in a real browser: every page, wide and narrow, light and dark; what axe finds, and where requests go."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.conftest import MakeProject
from tests.consoles import served
from tests.integration.stored import ARCHIVED, collection
from tests.sites import Site, page, serve, status

AXE, AXE_SHA512 = (
    "axe-core@4.14.1",
    "1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5",
)
HOSTILE = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\"> {{ 7 * 7 }} </textarea></style>"
PAGES = (
    "/",
    "/audit-log",
    "/c/demo/",
    "/c/demo/explorer",
    "/c/demo/explorer/urls",
    "/c/demo/explorer/urls?status=404",
    "/c/demo/url",
    "/c/demo/url?url={start}",
    "/c/demo/rules",
    "/c/demo/rules/plan",
    "/c/demo/deletions",
    "/c/demo/sites",
    "/c/demo/runs",
    "/c/demo/sinks",
    "/c/demo/search?q=pump",
    "/c/nope/",
    "/find?q=pump",
    "/find/missing",
    "/find/document?url={start}",
    "/login",
)


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, of the version that the digest is of."""
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run(["npm", "pack", "--silent", AXE], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"axe-core cannot be had with npm: {done.stderr}"
    (packed,) = folder.glob("*.tgz")
    assert hashlib.sha512(packed.read_bytes()).hexdigest() == AXE_SHA512
    with tarfile.open(packed) as archive:
        source = archive.extractfile("package/axe.min.js")
        assert source is not None
        return source.read().decode()


class Watched:
    """A page of the browser: what it has requested, and what went wrong in it."""

    def __init__(self, page: Page, base: str) -> None:
        self.page, self.base = page, base
        self.requested: list[str] = []
        self.faults: list[str] = []
        page.on("request", lambda request: self.requested.append(request.url))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda message: self.faults.append(message.text) if message.type == "error" else None)

    def open(self, path: str) -> None:
        self.page.goto(self.base[:-1] + path)


@contextmanager
def browsing(base: str, *, width: int = 1400, dark: bool = False, scripts: bool = True, csp: bool = True) -> Iterator[Watched]:
    """Open a page in a browser. `csp`: as the console has it; axe is put into a page that has none."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["CRAWLSPACE_TEST_BROWSER"], args=["--no-sandbox"])
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            bypass_csp=not csp,
        )
        yield Watched(context.new_page(), base)
        browser.close()


@pytest.fixture
def crawled(project: MakeProject) -> Iterator[tuple[str, str]]:
    """The address of a console over a crawled collection, and the start URL."""
    links = ["/a", "/gone", "/%3Cscript%3Ealert(1)%3C/script%3E"]
    site = {
        "/": page(HOSTILE, links=links, text=f"a pump {HOSTILE}"),
        "/a": page("A", text="another pump"),
        links[2]: page("C", text=HOSTILE),
        "/robots.txt": status(404),
    }
    with serve(Site(site)) as server:
        demo = project(collection(server.url("/"), settings=ARCHIVED))
        demo.crawl("demo").succeeded()
    with served(demo, public=["demo"]) as browser:
        yield browser.base, server.url("/")


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1400])
def test_each_page_fits_and_everybody_can_use_it(crawled: tuple[str, str], axe: str, width: int, *, dark: bool) -> None:
    base, start = crawled
    with browsing(base, width=width, dark=dark, csp=False) as watched:
        for path in PAGES:
            watched.open(path.format(start=start))
            assert watched.page.evaluate("document.documentElement.scrollWidth") <= width, path
            watched.page.evaluate(axe)
            found = watched.page.evaluate("axe.run()")
            assert len(found["passes"]) > 10, path
            serious = [
                (one["id"], [node["html"] for node in one["nodes"][:3]])
                for one in found["violations"]
                if one["impact"] in ("serious", "critical")
            ]
            assert not serious, path


def test_nothing_of_a_page_runs_and_no_request_leaves_the_host(crawled: tuple[str, str]) -> None:
    base, start = crawled
    with browsing(base) as watched:
        for path in PAGES:
            watched.open(path.format(start=start))
            watched.page.wait_for_load_state("networkidle")
            assert watched.page.title() != "run", path
            assert "49" not in watched.page.title()
        assert all(url.startswith((base, "data:")) for url in watched.requested), watched.requested
        assert [fault for fault in watched.faults if "404" not in fault] == []


@pytest.mark.parametrize("scripts", [True, False])
def test_what_administrators_do(crawled: tuple[str, str], *, scripts: bool) -> None:
    """With scripts and without: look a URL up, search, pause a host, and stop what is not running."""
    base, start = crawled
    with browsing(base, scripts=scripts) as watched:
        here = watched.page
        watched.open("/")
        here.get_by_role("link", name="demo").first.click()
        here.get_by_label("Find a URL").fill(start)
        here.get_by_role("button", name="Look up").click()
        here.get_by_text("It is in the index").wait_for()
        here.get_by_role("navigation").get_by_role("link", name="Search").click()
        here.locator("#q").fill("another pump")
        here.get_by_role("button", name="Search").click()
        here.get_by_text("1 document with all words").wait_for()
        here.get_by_role("navigation").get_by_role("link", name="Overview").click()
        here.get_by_text("documents in the index").wait_for()


def test_times_are_shown_in_the_zone_of_the_reader(crawled: tuple[str, str]) -> None:
    base, start = crawled
    with browsing(base) as watched:
        watched.open(f"/c/demo/url?url={start}")
        times = watched.page.locator("time[data-local]")
        times.first.wait_for()
        assert "UTC" not in times.first.inner_text()
        assert "UTC" in (times.first.get_attribute("title") or "")


COUNT_PLOTS = """() => {
    const Plot = uPlot;
    window.plots = 0;
    window.uPlot = Object.assign(function (...given) {
        const plot = new Plot(...given), destroy = plot.destroy;
        window.plots += 1;
        plot.destroy = () => { window.plots -= 1; destroy.call(plot); };
        return plot;
    }, Plot);
}"""
SWAP = "() => htmx.ajax('GET', location.pathname, {target: '#live', select: '#live', swap: 'outerHTML'})"


def test_plots_end_with_the_part_of_the_page_that_has_them(crawled: tuple[str, str]) -> None:
    base, _ = crawled
    with browsing(base) as watched:
        watched.open("/c/demo/")
        watched.page.evaluate(COUNT_PLOTS)
        for _ in range(3):
            watched.page.evaluate(SWAP)
            watched.page.wait_for_selector("#live .u-wrap")
            shown = watched.page.locator("figure.plot .u-wrap").count()
            assert shown
            assert watched.page.evaluate("window.plots") == shown
