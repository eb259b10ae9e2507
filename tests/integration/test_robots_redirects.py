"""A robots.txt that is redirected, and answers that are none, over real HTTP."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import pairwise

import pytest

from tests.conftest import MakeProject
from tests.http import Reply
from tests.integration.stored import FAST, collection, statuses, unreachable
from tests.sites import Server, Site, page, redirect, serve, status, text

BARRED = text("User-agent: *\nDisallow: /docs/no\n")

WITHIN = [
    # rules, settings, where on the same host robots.txt lies: none of these is about it
    ("allow prefix {site}docs/\nforbid prefix http://*\n", "", "/robots/main.txt"),
    ("", "CRAWLSPACE_INDEX_ENTIRE_SITE = True\n", "/robots/main.txt"),
    ("", "CRAWLSPACE_EXCLUDE_EXTENSIONS = ['txt']\n", "/robots/main.txt"),
    ("", "CRAWLSPACE_MAX_PATH_DEPTH = 1\n", "/a/b/c/robots.txt"),
    ("", "CRAWLSPACE_FOLLOW_QUERY_STRINGS = False\n", "/robots?x=1"),
]


@pytest.mark.parametrize(("rules", "settings", "target"), WITHIN)
def test_within_its_host_it_is_always_followed(project: MakeProject, rules: str, settings: str, target: str) -> None:
    site = Site({"/robots.txt": redirect(target, 301), target: BARRED})
    site |= {"/docs/": page("Docs", links=["no", "yes"]), "/docs/no": page("No"), "/docs/yes": page("Yes")}
    with serve(site) as server:
        made = project(collection(server.url("/docs/"), rules=rules.format(site=server.url("/")), settings=FAST + settings))
        made.crawl("demo").succeeded()
        assert server.paths() == ["/robots.txt", target, "/docs/", "/docs/yes"]


ADDRESSES = "allow address 127.0.0.0/8\n"
ELSEWHERE = [
    # rules, settings, whether what the robots.txt on the other host says holds
    (ADDRESSES, "", True),
    (ADDRESSES + "forbid prefix http://127.0.1.1:{other}/robots\n", "", True),
    (ADDRESSES, "CRAWLSPACE_EXCLUDE_EXTENSIONS = ['txt']\n", True),
    (ADDRESSES + "forbid domain 127.0.1.1\n", "", False),
    (ADDRESSES + "forbid prefix http://127.0.1.1:{other}/\n", "", False),
    (ADDRESSES, "CRAWLSPACE_FOLLOW_OFFSITE_LINKS = False\n", False),
    ("forbid address 127.0.1.1\nallow address 127.0.0.0/8\n", "", False),
]


@pytest.mark.parametrize(("rules", "settings", "holds"), ELSEWHERE)
def test_to_other_hosts_it_is_followed_where_the_rules_let_us(
    project: MakeProject, rules: str, settings: str, holds: bool
) -> None:
    with serve(Site({"/robots.txt": BARRED}), host="127.0.1.1") as other:
        site = Site({"/robots.txt": redirect(other.url("/robots.txt"))})
        site |= {"/docs/": page("Docs", links=["no", "yes"]), "/docs/no": page("No"), "/docs/yes": page("Yes")}
        with serve(site) as server:
            made = project(collection(server.url("/docs/"), rules=rules.format(other=other.port), settings=FAST + settings))
            made.crawl("demo").succeeded()
            assert server.paths() == ["/robots.txt", "/docs/", *([] if holds else ["/docs/no"]), "/docs/yes"]
            assert other.paths() == ["/robots.txt"] * holds


NO_ANSWERS: list[Reply] = [
    # neither what is forbidden nor that nothing is: the site waits, and is given up for this run
    status(304),
    status(300),
    status(302),
    redirect(""),
    redirect("http://"),
    redirect("http://me:secret@127.0.0.1/robots.txt"),
    redirect("mailto:robots@a.example"),
    # what is no status of HTTP is none of our own codes either
    status(680),
    status(760),
    status(761),
    status(740),
    status(699),
    status(999),
    status(2004),
    status(0),
]


def test_where_no_answer_comes_nothing_is_fetched(project: MakeProject) -> None:
    with ExitStack() as stack:
        sites = [Site({"/robots.txt": reply, "/": page("Home")}) for reply in NO_ANSWERS]
        servers = [stack.enter_context(serve(site, host=f"127.0.0.{number + 2}")) for number, site in enumerate(sites)]
        starts = "\n".join(server.url() for server in servers)
        made = project(collection(starts, settings=f"{FAST}RETRY_TIMES = 1\n"))
        made.crawl("demo")
        asked = {reply: server.paths() for reply, server in zip(map(_described, NO_ANSWERS), servers, strict=True)}
        assert asked == {_described(reply): ["/robots.txt"] * 2 for reply in NO_ANSWERS}
    assert set(statuses(made).values()) == {None}
    assert {runs for _, runs in unreachable(made).values()} == {1}
    assert len(unreachable(made)) == len(NO_ANSWERS)


def _described(reply: Reply) -> str:
    return f"{getattr(reply, 'code', '')} {getattr(reply, 'headers', {}).get('Location')}"


@pytest.mark.full
def test_a_host_with_the_robots_txt_of_many_others_is_requested_at_its_delay(project: MakeProject) -> None:
    delay_s = 0.3
    with ExitStack() as stack:
        shared = stack.enter_context(serve(Site({"/robots.txt": BARRED, "/": page("Shared")}), host="127.0.1.1"))
        others = [stack.enter_context(serve(_redirecting(shared), host=f"127.0.0.{number + 2}")) for number in range(8)]
        starts = "\n".join(server.url() for server in [*others, shared])
        made = project(
            collection(starts, rules=ADDRESSES, settings=f"DOWNLOAD_DELAY = {delay_s}\nCRAWLSPACE_SITEMAP_GUESS = False\n")
        )
        made.crawl("demo").succeeded()
        moments = [request.at for request in shared.requests]
        assert shared.counts() == {"/robots.txt": 9, "/": 1}
        assert all(server.counts() == {"/robots.txt": 1, "/": 1} for server in others), "none was given up, or waited for in vain"
    closest = min(later - earlier for earlier, later in pairwise(moments))
    assert closest > 0.8 * delay_s


def _redirecting(shared: Server) -> Site:
    return Site({"/robots.txt": redirect(shared.url("/robots.txt")), "/": page("Home")})
