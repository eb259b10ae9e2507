"""The add-on in a plain Scrapy project: what is fetched and in which order, start URLs and addresses."""

from __future__ import annotations

import pytest

from crawlspace.decision import Reason
from tests.conftest import assert_same
from tests.integration.plain_project import MIDDLEWARES, SETTINGS, PlainProject, fetched
from tests.sites import Site, binary, page, redirect, serve, status, text

# --- what is fetched, and in which order --------------------------------------------------------------------------

RULES_XML = """\
<Rules xmlns="exa:com.exalead.actionrules.v21" group="shop" key="1">
  <Rule><Path val="/late/"/><Priority shift="2"/></Rule>
  <Rule><Path val="/soon/"/><Priority shift="-2"/></Rule>
  <Rule><Path val="/hub/"/><NoIndex/><Follow/></Rule>
  <Rule><Path val="/leaf/"/><Index/><NoFollow/><Source name="leaves"/><AddMeta name="kind" value="leaf"/></Rule>
  <Rule><Path val="/ignored/"/><Ignore/></Rule>
</Rules>
"""


NO_RULE_MATCHES = {"index": True, "follow": True, "shift": 0, "source": "index_follow", "label": "", "fields": {}}
SHIFTED = ["/plain", "/leaf/1", "/hub/1", "/soon/1", "/late/1"]


@pytest.mark.parametrize("options", [(), ("-s", "DEPTH_PRIORITY=1")], ids=["usual", "by_depth_too"])
def test_the_stock_scheduler_fetches_in_the_order_of_the_rules(plain: PlainProject, options: tuple[str, ...]) -> None:
    """Of the links of one page: index alone first, then index and follow by shift, then those that are only followed."""
    site = Site({"/": page("Home", links=SHIFTED), "/late/1": page("A")}, otherwise=page("Any"))
    plain.write({"rules/rules.xml": RULES_XML})
    with serve(site) as server:
        plain.crawl(server.url("/"), options=options).succeeded()
        assert fetched(server) == ["/", "/leaf/1", "/soon/1", "/plain", "/late/1", "/hub/1"]


def test_the_spider_gets_the_rule_actions_and_links_of_a_nofollow_page_are_dropped(plain: PlainProject) -> None:
    site = Site(
        {
            "/": page("Home", links=["/hub/1", "/leaf/1", "/ignored/1"]),
            "/hub/1": page("Hub", links=["/found"]),
            "/leaf/1": page("Leaf", links=["/never", "/never/2"]),
        },
        otherwise=page("Any"),
    )
    plain.write({"rules/rules.xml": RULES_XML})
    with serve(site) as server:
        plain.crawl(server.url("/")).succeeded()
        assert_same(fetched(server), ["/", "/leaf/1", "/hub/1", "/found"])
        received = plain.rules_of(server)
    assert received == {
        "/": NO_RULE_MATCHES,
        "/found": NO_RULE_MATCHES,
        "/hub/1": {**NO_RULE_MATCHES, "index": False, "source": "follow"},
        "/leaf/1": {**NO_RULE_MATCHES, "follow": False, "source": "index", "label": "leaves", "fields": {"kind": "leaf"}},
    }
    assert plain.stats() == {"refused/rules_xml": 1, "nofollow": 2, "items_of_noindex_pages": 1}


CRAWL_RULES = """\
allow domain 127.0.0.1
forbid domain *
forbid prefix http://127.0.0.1:{port}/private/
"""


LINKS = [
    # a link of the start page; the reason it is refused for, or "" where it is fetched
    ("/a", ""),
    ("/private/b", "prefix"),
    ("/to-private", ""),
    ("/to-elsewhere", ""),
    ("http://other.example/", "domain"),
    ("/picture.jpg", "extension"),
    ("/1/2/3/4", "path_depth"),
    ("/x/x/x/x", "path_depth"),
    ("/a?b=c", ""),
    ("/letter", ""),
    ("/lying", ""),
    ("/gone", ""),
]
"""The reason counts once for a URL, however often it is linked."""


def test_nothing_outside_is_fetched_whatever_leads_there(plain: PlainProject) -> None:
    links = [link for link, _ in LINKS]
    site = Site(
        {
            "/": page("Home", links=links),
            "/a": page("A", links=["/private/b", "/picture.jpg"]),
            "/a?b=c": page("A"),
            "/to-private": redirect("/private/c"),
            "/letter": binary(b"PK\x03\x04" + bytes(100_000), "application/vnd.oasis.opendocument.graphics"),
            "/lying": binary(b"\x89PNG\r\n\x1a\n" + bytes(1000), "text/html"),
            "/gone": status(404),
        },
        otherwise=page("Outside"),
    )
    with serve(site) as server, serve(Site({}, otherwise=page("Elsewhere")), host="127.0.0.2") as elsewhere:
        site["/to-elsewhere"] = redirect(elsewhere.url("/"))
        plain.write(
            {
                "rules/crawl.rules": CRAWL_RULES.format(port=server.port),
                "settings.py": f"{SETTINGS}CRAWLSPACE_MAX_PATH_DEPTH = 2\n",
            }
        )
        run = plain.crawl(server.url("/")).succeeded()
        assert_same(fetched(server), ["/", *(link for link, reason in LINKS if not reason)])
        assert elsewhere.paths() == []  # and its robots.txt was not asked for either
        assert server.counts()["/robots.txt"] == 1
    assert plain.stats("crawlspace/refused/") == {
        "domain": 2,
        "prefix": 2,
        "extension": 1,
        "path_depth": 2,
        "mime_type": 2,
    }
    assert "a prefix rule forbids the URL (crawl.rules:3)" in run.stderr


def test_the_projects_own_middlewares_see_what_they_saw_before(plain: PlainProject) -> None:
    site = Site({"/": page("Home", links=["/a", "/b", "/no.zip"])}, otherwise=page("Any"))
    plain.write({"rules/crawl.rules": ""})
    with serve(site) as server:
        plain.crawl(server.url("/")).succeeded()
        seen = plain.stats("seen/")
        assert_same(seen["requests"], [server.url(path) for path in server.paths()])
        assert_same(seen["links"], map(server.url, ["/a", "/b", "/no.zip"]))


def test_a_document_that_is_not_taken_is_stopped_at_its_header(plain: PlainProject) -> None:
    site = Site({"/": page("Home", links=["/video"]), "/video": binary(bytes(8_000_000), "application/x-video")})
    plain.write({"rules/crawl.rules": ""})
    with serve(site) as server:
        run = plain.crawl(server.url("/")).succeeded()
        assert fetched(server) == ["/", "/video"]
    assert plain.stats("downloader/")["response_bytes"] < 1_000_000
    assert plain.stats() == {"refused/mime_type": 1}
    assert "the document's type is not among CRAWLSPACE_MIME_TYPES" in run.stderr


def test_what_was_stopped_at_its_header_is_not_kept_by_scrapys_cache(plain: PlainProject) -> None:
    site = Site({"/": page("Home", links=["/sheet"]), "/sheet": binary(b"BEGIN:VCALENDAR\n", "text/calendar")})
    plain.write({"rules/crawl.rules": "", "settings.py": f"{SETTINGS}HTTPCACHE_ENABLED = True\n"})
    with serve(site) as server:
        plain.crawl(server.url("/")).succeeded()
        plain.crawl(server.url("/"), options=("-s", "CRAWLSPACE_MIME_TYPES=text/*")).succeeded()
        assert server.counts()["/sheet"] == 2
        assert server.counts()["/"] == 1


def test_a_spider_may_set_priorities_of_its_own_and_free_a_request_from_the_rules(plain: PlainProject) -> None:
    site = Site({"/": page("Home"), "/free/of/all/rules.zip": binary(b"zip", "application/zip")}, otherwise=page("Any"))
    plain.write({"rules/rules.xml": RULES_XML})
    with serve(site) as server:
        plain.crawl(server.url("/"), spider="own_ways").succeeded()
        assert fetched(server) == ["/", "/first", "/soon/1", "/free/of/all/rules.zip"]
        assert {"url": server.url("/free/of/all/rules.zip"), "type": "application/zip"} in plain.left()["items"]


def test_pages_a_host(plain: PlainProject) -> None:
    site = Site({"/": page("Home", links=[f"/{n}" for n in range(9)])}, otherwise=page("Any"))
    plain.write({"rules/crawl.rules": "", "settings.py": f"{SETTINGS}CRAWLSPACE_MAX_URLS_PER_HOST = 4\n"})
    with serve(site) as server:
        plain.crawl(server.url("/")).succeeded()
        assert len(fetched(server)) == 4
    assert plain.stats() == {"refused/urls_per_host": 6}


ROBOTS = [
    # where robots.txt redirects to; whether what it says there holds
    ("/moved/robots.txt", True),
    ("http://127.0.0.2:{other}/robots.txt", False),
]


@pytest.mark.parametrize(("target", "holds"), ROBOTS)
def test_robots_txt_passes_within_its_host_and_leads_nowhere_else(plain: PlainProject, target: str, holds: bool) -> None:
    """A prefix rule need not name robots.txt for it to be read."""
    rules = text("User-agent: *\nDisallow: /docs/no\n")
    site = Site({"/docs/": page("Docs", links=["no", "yes"]), "/moved/robots.txt": rules}, otherwise=page("Any"))
    with serve(site) as server, serve(Site({}, otherwise=rules), host="127.0.0.2") as other:
        site["/robots.txt"] = redirect(target.format(other=other.port))
        plain.write({"rules/crawl.rules": f"allow prefix {server.url('/docs/')}\nforbid prefix http://*\n"})
        plain.crawl(server.url("/docs/")).succeeded()
        assert "/robots.txt" in server.paths()
        assert ("/docs/no" in server.paths()) is not holds
        assert other.paths() == []


# --- start URLs ---------------------------------------------------------------------------------------------------


def test_a_refused_start_url_is_reported_with_its_rule(plain: PlainProject) -> None:
    plain.write({"rules/crawl.rules": "allow domain 127.0.0.1\nforbid domain *\n"})
    with serve(Site({"/": page("Home")})) as server:
        run = plain.crawl(server.url("/"), "http://other.example/").succeeded()
        assert fetched(server) == ["/"]
    reported = "the start URL http://other.example/ is refused: a domain rule forbids the host (crawl.rules:2: forbid domain *)"
    assert reported in run.stderr
    assert "nothing is crawled" not in run.stderr


def test_no_start_url_within_the_rules(plain: PlainProject) -> None:
    plain.write({"rules/crawl.rules": "forbid domain *\n"})
    run = plain.crawl("http://other.example/").succeeded()
    assert "no start URL is within the rules, so nothing is crawled" in run.stderr


def test_offsite_links_and_folders_are_those_of_the_spiders_start_urls(plain: PlainProject) -> None:
    settings = f"{SETTINGS}CRAWLSPACE_FOLLOW_OFFSITE_LINKS = False\nCRAWLSPACE_INDEX_ENTIRE_SITE = True\n"
    plain.write({"rules/crawl.rules": "", "settings.py": settings})
    site = Site({"/docs/": page("Docs", links=["a", "/b", "http://other.example/"])}, otherwise=page("Any"))
    with serve(site) as server:
        plain.crawl(server.url("/docs/")).succeeded()
        assert fetched(server) == ["/docs/", "/docs/a"]
    assert plain.stats("crawlspace/refused/") == {"folder": 1, "offsite": 1}


# --- addresses ----------------------------------------------------------------------------------------------------

OWN_HANDLER = ("-s", 'DOWNLOAD_HANDLERS={"http": "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler"}')
OWN_RESOLVER = ("-s", "TWISTED_DNS_RESOLVER=scrapy.resolver.CachingThreadedResolver")
REACTORS = [
    # options; whether address rules hold, and for look-ups only
    ((), True, False),
    (("-s", "FORCE_CRAWLER_PROCESS=1"), True, False),
    (OWN_RESOLVER, True, False),
    (OWN_HANDLER, True, True),
    ((*OWN_HANDLER, *OWN_RESOLVER), False, False),
]


@pytest.mark.parametrize(
    ("options", "hold", "look_ups"), REACTORS, ids=["usual", "crawler_process", "own_resolver", "own_handler", "both"]
)
def test_address_rules_apply_at_connect_time_or_a_warning_reports_that_they_do_not(
    plain: PlainProject, options: tuple[str, ...], hold: bool, look_ups: bool
) -> None:
    plain.write({"rules/crawl.rules": "forbid address 127.0.0.2\n"})
    site = Site({"/a": page("A")})
    with serve(site) as server, serve(Site({"/": page("Other")}), host="127.0.0.2") as other:
        site["/"] = page("Home", links=["/a", other.url("/")])
        run = plain.crawl(server.url("/"), options=options).succeeded()
        assert_same(fetched(server), ["/", "/a"])
        assert (fetched(other) == []) is hold
    assert ("address rules of crawl.rules do NOT hold" in run.stderr) is not hold
    assert ("hold for the look-ups of names only" in run.stderr) is look_ups
    assert ("an address rule forbids every address of the host (crawl.rules:1)" in run.stderr) is hold
    assert plain.stats("retry/") == {}


def test_with_address_rules_private_addresses_are_for_hosts_that_are_meant(plain: PlainProject) -> None:
    plain.write({"rules/crawl.rules": "forbid address 10.0.0.0/8\n"})
    site = Site({}, otherwise=page("Any"))
    with serve(site) as server:
        site["/"] = page("Home", links=["/a", f"http://localhost:{server.port}/b"])
        run = plain.crawl(server.url("/")).succeeded()
        assert_same(fetched(server), ["/", "/a"])
    assert plain.stats() == {"refused/private_address": 1}
    assert Reason.PRIVATE_ADDRESS.sentence in run.stderr


BY_PROXY = """\


class ByProxy:
    def process_request(self, request):
        request.meta["proxy"] = "http://localhost:{port}"
"""


def test_a_spiders_address_rules_do_not_stop_what_else_the_process_connects_to(plain: PlainProject) -> None:
    """Here a proxy that the project's own middleware sets."""
    with serve(Site({}, otherwise=page("By proxy"))) as proxy:
        plain.write(
            {
                "rules/crawl.rules": "forbid address 127.0.0.0/8\nforbid address ::1\n",
                "middlewares.py": MIDDLEWARES + BY_PROXY.format(port=proxy.port),
                "settings.py": f"{SETTINGS}DOWNLOADER_MIDDLEWARES['middlewares.ByProxy'] = 544\n",
            }
        )
        plain.crawl("http://site.example/").succeeded()
        assert "http://site.example/" in proxy.paths()
