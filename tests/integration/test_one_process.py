"""Two collections crawled at the same time by one process: each by its own address rules."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.command_line import ROOT
from tests.conftest import MakeProject
from tests.integration.stored import FAST, statuses
from tests.notifications import LONGEST_WAIT_S
from tests.sites import Site, page, serve

CRAWL_ALL = """
import sys
from scrapy.crawler import CrawlerProcess
from scrapy.utils.project import get_project_settings

process = CrawlerProcess(get_project_settings())
for name in sys.argv[1:]:
    process.crawl(name)
process.start()
"""


@pytest.mark.parametrize("names", [("strict", "open"), ("open", "strict")])
def test_each_is_crawled_by_its_own_rules(project: MakeProject, names: tuple[str, str]) -> None:
    home, other = Site({}), Site({"/": page("Of the open one")})
    with (
        serve(home, host="127.0.0.2") as first,
        serve(other, host="127.0.0.3") as second,
        serve(Site({"/": page("Secret")}), host="127.0.0.9") as secret,
    ):
        home["/"] = page("Of the strict one", links=[secret.url()])
        settings = FAST + "ROBOTSTXT_OBEY = False\n"
        both = project(
            {
                "strict/start_urls.txt": f"{first.url()}\n",
                "strict/crawl.rules": "allow address 127.0.0.2\nforbid address 0.0.0.0/0\n",
                "strict/settings.py": settings,
                "open/start_urls.txt": f"{second.url()}\n",
                "open/crawl.rules": "allow address 127.0.0.0/8\nforbid address 127.0.0.2\n",
                "open/settings.py": settings,
            }
        )
        environment = {**os.environ, **both.env}
        command = [sys.executable, "-c", CRAWL_ALL, *names]
        subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=LONGEST_WAIT_S, check=True)
        assert (first.paths(), second.paths(), secret.paths()) == (["/"], ["/"], [])
    assert statuses(both, "strict") == {"/": 200, secret.url(): 760}
    assert statuses(both, "open") == {"/": 200}
