"""Address rules and the check of private networks where some sites are requested through a proxy: they hold for the others."""

from __future__ import annotations

import json
from contextlib import ExitStack

from tests.conftest import MakeProject, assert_same
from tests.forward_proxy import forward_proxy
from tests.integration.stored import FAST, indexed, statuses
from tests.sites import Site, page, serve

WARNING = "the address rules do not hold for localhost: they are requested through a proxy, and only that sees the addresses"
ADDRESSES = "forbid address 127.0.0.0/8\nforbid address ::1\n"
DOMAINS = "allow domain localhost\nallow domain 127.0.0.1\nforbid domain *\n"


def test_a_change_of_the_proxy_takes_effect_at_the_next_start(project: MakeProject) -> None:
    """`plan` tells what it changes; sites without a proxy are still judged by address."""
    with ExitStack() as stack:
        named = stack.enter_context(serve(Site({"/": page("Named", links=["/a"]), "/a": page("A")})))
        direct = stack.enter_context(serve(Site({"/": page("Direct", text="direct")})))
        proxy = stack.enter_context(forward_proxy({f"localhost:{named.port}": named.netloc}))
        home = f"http://localhost:{named.port}/"
        settings = FAST + "CRAWLSPACE_SHARE_ADDRESS_DELAY = True\nROBOTSTXT_OBEY = False\n"
        proxied = settings + f"CRAWLSPACE_SITES = {{'localhost': {{'proxy': {proxy.url!r}}}}}\n"
        made = project(
            {"demo/start_urls.txt": f"{home}\n{direct.url()}", "demo/crawl.rules": DOMAINS, "demo/settings.py": settings}
        )
        made.crawl("demo").succeeded()
        assert len(indexed(made)) == 3
        made.write({"demo/crawl.rules": DOMAINS + ADDRESSES, "demo/settings.py": proxied})
        plan = json.loads(made.scrapy("plan", "demo", "--json").succeeded().stdout)
        assert (plan["excluded"], plan["deletions"]) == (1, 1)
        run = made.crawl("demo", "-s", "CRAWLSPACE_REFRESH_MIN=1s", "-s", "CRAWLSPACE_REFRESH_MAX=1s")
        assert WARNING in run.stderr
        assert statuses(made) == {"/": 200, "/a": 200, direct.url(): 760}
        assert_same(indexed(made), ["/", "/a"])
        explained = json.loads(made.scrapy("explain", "demo", home, "--json").stdout)
        assert (explained["admitted"], explained["proxy"]) == (True, f"{proxy.url} (CRAWLSPACE_SITES['localhost']['proxy'])")
        assert not json.loads(made.scrapy("explain", "demo", direct.url(), "--json").stdout)["admitted"]
        assert json.loads(made.scrapy("plan", "demo", "--json").stdout)["excluded"] == 0
        made.write({"demo/settings.py": settings})
        plan = json.loads(made.scrapy("plan", "demo", "--json").succeeded().stdout)
        assert (plan["excluded"], plan["deletions"]) == (2, 2)
        asked = len(named.requests)
        run = made.crawl("demo")
        assert WARNING not in run.stderr
        assert set(statuses(made).values()) == {760}
        assert indexed(made) == []
        made.write({"demo/settings.py": proxied})
        made.crawl("demo")
        assert statuses(made)["/"] == statuses(made)["/a"] == 200
        assert len(named.requests) > asked
        assert set(proxy.targets()) == {home, f"{home}a"}


def test_a_page_on_the_host_of_the_proxy_is_checked_as_others_are(project: MakeProject) -> None:
    with ExitStack() as stack:
        beside = stack.enter_context(serve(Site({"/": page("Beside the proxy")})))
        site = stack.enter_context(serve(Site({"/": page("Home", links=[beside.url()])}), host="127.0.0.2"))
        proxy = stack.enter_context(forward_proxy({"wiki.invalid:80": site.netloc}))
        settings = FAST + f"CRAWLSPACE_PROXY = {proxy.url!r}\nCRAWLSPACE_NO_PROXY = '127.0.0.1'\nROBOTSTXT_OBEY = False\n"
        made = project(
            {"demo/start_urls.txt": "http://wiki.invalid/", "demo/crawl.rules": "allow domain *\n", "demo/settings.py": settings}
        )
        made.crawl("demo").succeeded()
        assert statuses(made) == {"/": 200, beside.url(): 760}
        made.write({"demo/settings.py": FAST + "ROBOTSTXT_OBEY = False\n"})
        made.env.update({"http_proxy": proxy.url, "no_proxy": "127.0.0.1"})
        made.crawl("demo")
    assert beside.requests == []
