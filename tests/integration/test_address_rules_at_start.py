"""A change of address rules takes effect at the start, for hosts that were looked up before; `plan` and `explain` show it."""

from __future__ import annotations

import json

import pytest

from tests.conftest import MakeProject
from tests.integration.stored import FAST, indexed, opened, shared, statuses
from tests.sites import Site, page, serve


@pytest.mark.parametrize("on_redis", [False, True])
def test_pages_at_a_forbidden_address_leave(project: MakeProject, *, on_redis: bool) -> None:
    with serve(Site({"/": page("Home", links=["/a"]), "/a": page("A")})) as site:
        home = f"http://localhost:{site.netloc.rpartition(':')[2]}/"
        demo = project(
            {
                "demo/start_urls.txt": home,
                "demo/crawl.rules": "allow domain localhost\nforbid domain *\n",
                "demo/settings.py": FAST,
            }
        )
        if on_redis:
            shared(demo)
        demo.scrapy("crawl", "demo").succeeded()
        assert len(indexed(demo)) == 2
        shown = json.loads(demo.scrapy("explain", "demo", home, "--json").succeeded().stdout)
        assert "127.0.0.1" in shown["addresses"]
        assert shown["looked_up"]
        assert "127.0.0.1" in demo.scrapy("explain", "demo", home).succeeded().stdout
        rules = demo.collections / "demo" / "crawl.rules"
        rules.write_text(f"{rules.read_text()}forbid address 127.0.0.0/8\nforbid address ::1\n")
        plan = json.loads(demo.scrapy("plan", "demo", "--json").succeeded().stdout)
        assert (plan["excluded"], plan["deletions"], plan["hosts_without_addresses"]) == (2, 2, [])
        with opened(demo) as store:
            store.set_meta("addresses:localhost", "")
        plan = json.loads(demo.scrapy("plan", "demo", "--json").succeeded().stdout)
        assert (plan["excluded"], plan["hosts_without_addresses"]) == (0, ["localhost"])
        assert "the address of localhost is not known yet" in " ".join(demo.scrapy("plan", "demo").stdout.split())
        with opened(demo) as store:
            store.set_meta("addresses:localhost", "1750000000 127.0.0.1")
        asked = len(site.requests)
        demo.scrapy("crawl", "demo")
        assert set(statuses(demo).values()) == {760}
        assert indexed(demo) == []
        assert len(site.requests) == asked
