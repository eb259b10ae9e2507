"""URL options: what becomes of a URL, the same for all spellings of a page, and once and for all."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.decision import Reason
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.exclusion import KnownUrlDecisions
from crawlspace.rules.limits import Limits
from crawlspace.rules.space import CrawlSpace
from crawlspace.rules.url_options import NO_OPTIONS, Folding, UrlFolding, UrlOptions
from crawlspace.urls import MalformedUrl, Url, parse

SORT = UrlOptions(sort_query=True)
DROP = UrlOptions(drop_parameters=("a[]", "sid", "utm_*"))
BOTH = UrlOptions(sort_query=True, drop_parameters=("sid", "utm_*"))
PATHS = UrlOptions(drop_path_parameters=("(S())", "aspsessionid*", "jsessionid", "sid"))
NO_SEGMENTS = UrlOptions(drop_path_parameters=("sid",))
BOTH_PATHS = UrlOptions(drop_path_parameters=("sid", "(S())"), trailing_slash=Folding.REMOVE, drop_parameters=("sid",))
ADD, REMOVE = UrlOptions(trailing_slash=Folding.ADD), UrlOptions(trailing_slash=Folding.REMOVE)
ADD_WWW, NO_WWW = UrlOptions(www=Folding.ADD), UrlOptions(www=Folding.REMOVE)

FOLDED = [
    # options, URL, URL as it is folded; None: it stays as it is
    (SORT, "http://h.example/?b=2&a=1", "http://h.example/?a=1&b=2"),
    (SORT, "http://h.example/?a=2&b=1&a=1", "http://h.example/?a=2&a=1&b=1"),
    (SORT, "http://h.example/?b&&a=", "http://h.example/?a=&b"),
    (SORT, "http://h.example/?&", "http://h.example/"),
    (SORT, "http://h.example/?a=1&b=2", None),
    (SORT, "http://h.example/", None),
    (DROP, "http://h.example/p?utm_source=x&id=1&utm_medium=y", "http://h.example/p?id=1"),
    (DROP, "http://h.example/p?id=1&sid=", "http://h.example/p?id=1"),
    (DROP, "http://h.example/p?sid", "http://h.example/p"),
    (DROP, "http://h.example/p?a%5B%5D=1&a[]=2&b=3", "http://h.example/p?b=3"),
    (DROP, "http://h.example/p?SID=1&xutm_a=2&id=sid", None),
    (DROP, "http://h.example/p?b=2&a=1", None),
    (BOTH, "http://h.example/?utm_a=1&z=1&sid=2&b=3", "http://h.example/?b=3&z=1"),
    (PATHS, "http://h.example/a;jsessionid=1F2E!7", "http://h.example/a"),
    (PATHS, "http://h.example/a;JSESSIONID=1?x=1", "http://h.example/a?x=1"),
    (PATHS, "http://h.example/a;jsessionid", "http://h.example/a"),
    (PATHS, "http://h.example/a;%6Asessionid=1", "http://h.example/a"),
    (PATHS, "http://h.example/;sid=1", "http://h.example/"),
    (PATHS, "http://h.example/a;sid=1/b;sid=2/c.html", "http://h.example/a/b/c.html"),
    (PATHS, "http://h.example/a;v=1;sid=2;w=3", "http://h.example/a;v=1;w=3"),
    (PATHS, "http://h.example/a;ASPSESSIONIDABCD=1", "http://h.example/a"),
    (PATHS, "http://h.example/(S(lit3py55t21z5v55vlm25s55))/a.aspx", "http://h.example/a.aspx"),
    (PATHS, "http://h.example/app/(X(1)S(ab)F(c-d_e))/", "http://h.example/app/"),
    (PATHS, "http://h.example/(A(1))", "http://h.example/"),
    (PATHS, "http://h.example/(S(1));sid=2/a", "http://h.example/a"),
    (PATHS, "http://h.example/a;v=1", None),
    (PATHS, "http://h.example/a;mysid=1;sids=2;x=sid", None),
    (PATHS, "http://h.example/a?b;sid=1", None),
    (PATHS, "http://h.example/a%3Bsid=1", None),
    (PATHS, "http://h.example/(a)/Foo_(S(x))/S(1)/(S())x/(S(1", None),
    (PATHS, "http://h.example/wiki/Mercury_(planet)", None),
    (PATHS, "http://h.example/a/..;sid=1/b", None),
    (PATHS, "http://h.example/a/.;sid=1", None),
    (PATHS, "http://h.example/a/..;sid=1;v=2/b", "http://h.example/a/..;v=2/b"),
    (NO_SEGMENTS, "http://h.example/(S(1))/a;sid=1", "http://h.example/(S(1))/a"),
    (BOTH_PATHS, "http://h.example/(S(1))/a/;sid=1?sid=2", "http://h.example/a"),
    (ADD, "http://h.example/a", "http://h.example/a/"),
    (ADD, "http://h.example/a?x=1", "http://h.example/a/?x=1"),
    (ADD, "http://h.example/a.html", None),
    (ADD, "http://h.example/v1.2", None),
    (ADD, "http://h.example/a.b/c", "http://h.example/a.b/c/"),
    (ADD, "http://h.example/", None),
    (REMOVE, "http://h.example/a/", "http://h.example/a"),
    (REMOVE, "http://h.example/a//?x=1", "http://h.example/a?x=1"),
    (REMOVE, "http://h.example/", None),
    (REMOVE, "http://h.example/?x=/", None),
    (NO_WWW, "http://www.h.example/a?x", "http://h.example/a?x"),
    (NO_WWW, "https://www.h.example:8443/", "https://h.example:8443/"),
    (NO_WWW, "http://www.example/", "http://www.example/"),
    (NO_WWW, "http://www2.h.example/", None),
    (ADD_WWW, "http://h.example/a", "http://www.h.example/a"),
    (ADD_WWW, "http://h.example:8080/a", "http://www.h.example:8080/a"),
    (ADD_WWW, "http://www.h.example/a", None),
    (ADD_WWW, "http://localhost/a", None),
    (ADD_WWW, "http://127.0.0.1/a", None),
    (ADD_WWW, "http://[::1]/a", None),
    (NO_WWW, "mailto:me@www.h.example", None),
]


def folding(default: UrlOptions, sites: Mapping[str, UrlOptions] | None = None) -> UrlFolding:
    return UrlFolding(lambda host, _: (sites or {}).get(host, default), of_hosts="", of_the_rest="")


@pytest.mark.parametrize(("options", "url", "folded"), FOLDED)
def test_what_becomes_of_a_url(options: UrlOptions, url: str, folded: str | None) -> None:
    before = parse(url)
    after = folding(options).fold(before)
    assert after.text == (folded or before.text)
    assert after == (parse(folded) if folded else before)


HOME, NEWS = "http://h.example/", "http://www.h.example/news/"
FOLLOWED = [
    # options, whether the page is rendered, URL, URL as it is folded
    (NO_OPTIONS, True, f"{HOME}#/a", f"{HOME}#/a"),
    (NO_OPTIONS, True, f"{HOME}#!a", f"{HOME}#!a"),
    (NO_OPTIONS, True, f"{HOME}#top", HOME),
    (NO_OPTIONS, False, f"{HOME}#/a", HOME),
    (NO_OPTIONS, True, "http://other.example/#/a", "http://other.example/"),
    (NO_WWW, True, f"{NEWS}#/a", "http://h.example/news/#/a"),
    (NO_WWW, False, f"{NEWS}#/a", "http://h.example/news/"),
    (REMOVE, True, f"{HOME}b/#/a/", f"{HOME}b#/a/"),
    (BOTH, True, f"{HOME}?z&sid=1&b#/a?z&sid=1&b", f"{HOME}?b&z#/a?z&sid=1&b"),
    (PATHS, True, f"{HOME}b;sid=1#/a;sid=1", f"{HOME}b#/a;sid=1"),
]


@pytest.mark.parametrize("drops_sessions_only", [False, True])
@pytest.mark.parametrize(("options", "renders", "url", "folded"), FOLLOWED)
def test_routes_behind_a_hash(options: UrlOptions, renders: bool, url: str, folded: str, drops_sessions_only: bool) -> None:
    def follows(page: Url) -> bool:
        assert not page.fragment
        return renders and page.host == "h.example"

    if drops_sessions_only and options not in (NO_OPTIONS, PATHS):
        return
    found = UrlFolding(
        lambda *_: options,
        of_hosts="",
        of_the_rest="",
        of_routes="some",
        follows_routes=follows,
        drops_sessions_only=drops_sessions_only,
    )
    for after in (found.fold(found.parse(url)), found.fold(parse(url, routes=True))):
        assert (after.text, after) == (folded, parse(folded, routes=True))
        assert found.folded(after) is None
    none = folding(options)
    assert none.fold(none.parse(url)).text == none.fold(parse(url, routes=True)).text == folded.partition("#")[0]


def test_routes_that_are_followed_change_the_description() -> None:
    def described(of_routes: str, of_paths: str = "") -> list[str]:
        return UrlFolding(lambda *_: NO_OPTIONS, of_hosts="", of_the_rest="", of_paths=of_paths, of_routes=of_routes).description

    assert (described(""), described("", "sid"), described("a", "sid")) == ([], ["", "", "sid"], ["", "", "sid", "a"])


SPACE = """\
forbid prefix http://h.example/private
forbid prefix http://*secret
"""
DECIDED = [
    # URL, why it is refused
    (f"{HOME}#/a", Reason.ADMITTED),
    (f"{HOME}#/secret", Reason.ADMITTED),
    (f"{HOME}#/a.zip", Reason.ADMITTED),
    (f"{HOME}#/?x/a/a/a/a/a", Reason.ADMITTED),
    (f"{HOME}private#/a", Reason.PREFIX),
    (f"{HOME}a.zip#/a", Reason.EXTENSION),
    (f"{HOME}#/{'a' * 60}", Reason.URL_LENGTH),
    (f"{HOME}private#/{'a' * 60}", Reason.PREFIX),
    ("ftp://h.example/#/a", Reason.SCHEME),
]


@pytest.mark.parametrize(("url", "reason"), DECIDED)
def test_a_route_has_the_decision_of_its_page(url: str, reason: Reason) -> None:
    limits = Limits(max_url_length=60, follow_query_strings=False, max_path_depth=1)
    follows = UrlFolding(lambda *_: NO_OPTIONS, of_hosts="", of_the_rest="", follows_routes=lambda _: True)
    space = CrawlSpace(parse_crawl_rules(SPACE, file="crawl.rules"), limits, [], folding=follows)
    found, decision = space.decide(url)
    assert found is not None
    assert (found.text, decision.reason) == (url if url.startswith("http") else url.partition("#")[0], reason)
    refused = KnownUrlDecisions(space, None).decide(url, site="h.example:80", depth=1, host_as_written=None).exclusion
    assert (Reason.ADMITTED if refused is None else refused.reason) is reason
    relative = f"#{url.partition('#')[2]}"
    assert space.decide(relative, base=url.partition("#")[0])[1].reason is reason


HOSTS = [
    # options, host as written, host as written afterwards
    (NO_WWW, "WWW.H.Example", "H.Example"),
    (ADD_WWW, "H.Example", "www.H.Example"),
]


@pytest.mark.parametrize(("options", "written", "folded"), HOSTS)
def test_the_case_of_a_host_stays_for_domain_rules(options: UrlOptions, written: str, folded: str) -> None:
    assert folding(options).fold(parse(f"http://{written}/")).host_as_written == folded


def test_the_options_of_the_folded_host_hold_for_all_but_the_host() -> None:
    sites = {"www.h.example": UrlOptions(www=Folding.REMOVE, sort_query=True), "h.example": REMOVE}
    assert folding(NO_OPTIONS, sites).fold(parse("http://www.h.example/a/?b&a")).text == "http://h.example/a?b&a"


def test_two_sites_are_not_folded_into_each_other() -> None:
    one = folding(NO_OPTIONS, {"www.h.example": NO_WWW, "h.example": ADD_WWW})
    assert [one.fold(parse(url)).text for url in ("http://www.h.example/", "http://h.example/")] == [
        "http://www.h.example/",
        "http://h.example/",
    ]


OPTIONS = st.builds(
    UrlOptions,
    sort_query=st.booleans(),
    drop_parameters=st.sampled_from([(), ("a",), ("b*", "*c"), ("*",)]),
    drop_path_parameters=st.sampled_from([(), ("a",), ("b*", "(S())"), ("*",)]),
    trailing_slash=st.sampled_from(Folding),
    www=st.sampled_from(Folding),
)
TEXTS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["http://www.h.example", "http://h.example", "https://www.h.example:8443", "http://www.www.h.example"]),
    st.text("/ab.%;=()S", max_size=12).map("/{}".format),
    st.text("abc=&%+?", max_size=12).map("?{}".format),
)


@given(OPTIONS, OPTIONS, TEXTS)
def test_folding_twice_is_folding_once_and_gives_a_url_in_normal_form(options: UrlOptions, other: UrlOptions, text: str) -> None:
    fold = folding(options, {"h.example": other}).fold
    try:
        once = fold(parse(text))
    except MalformedUrl:
        return
    assert fold(once) == once
    assert parse(once.text) == once


def space(options: UrlOptions, rules: str = "", starts: tuple[str, ...] = (), **limits: object) -> CrawlSpace:
    made = folding(options)
    urls: list[Url] = [made.fold(parse(url)) for url in starts]
    return CrawlSpace(parse_crawl_rules(rules, file="crawl.rules"), Limits(**limits), urls, folding=made)  # type: ignore[arg-type]


CHECKED = [
    # options, rules, limits, link, reason
    (DROP, "", {"follow_query_strings": False}, "http://h.example/a?sid=1", Reason.ADMITTED),
    (DROP, "", {"follow_query_strings": False}, "http://h.example/a?id=1", Reason.QUERY_STRING),
    (REMOVE, "forbid prefix http://h.example/a/", {}, "http://h.example/a/", Reason.ADMITTED),
    (ADD, "forbid prefix http://h.example/a/", {}, "http://h.example/a", Reason.PREFIX),
    (NO_WWW, "forbid domain h.example", {}, "http://www.h.example/", Reason.DOMAIN),
    (NO_WWW, "forbid domain H.example", {}, "http://www.H.example/", Reason.DOMAIN),
    (NO_WWW, "forbid domain H.example", {}, "http://www.h.example/", Reason.ADMITTED),
    (NO_WWW, "", {"follow_offsite_links": False}, "http://www.h.example/a", Reason.ADMITTED),
    (REMOVE, "", {"index_entire_site": True}, "http://h.example/docs/", Reason.ADMITTED),
    (REMOVE, "", {"index_entire_site": True}, "http://h.example/docs/a/b/", Reason.ADMITTED),
    (REMOVE, "", {"index_entire_site": True}, "http://h.example/other/", Reason.FOLDER),
    (ADD, "", {"index_entire_site": True}, "http://h.example/docs", Reason.ADMITTED),
    (ADD, "", {"index_entire_site": True}, "http://h.example/other", Reason.FOLDER),
]


@pytest.mark.parametrize(("options", "rules", "limits", "link", "reason"), CHECKED)
def test_rules_and_limits_see_the_folded_url(
    options: UrlOptions, rules: str, limits: dict[str, object], link: str, reason: Reason
) -> None:
    _, decision = space(options, rules, ("http://h.example/docs/",), **limits).decide(link)
    assert decision.reason is reason


def test_a_change_of_the_options_is_a_change_of_the_rules() -> None:
    plain = CrawlSpace(parse_crawl_rules("", file="crawl.rules"), Limits(), [])
    described = UrlFolding(lambda *_: SORT, of_hosts="", of_the_rest="sort")
    sorts = CrawlSpace(parse_crawl_rules("", file="crawl.rules"), Limits(), [], folding=described)
    assert plain.content_hash != sorts.content_hash


@given(OPTIONS, TEXTS, st.sampled_from([None, "Www.h.example", "H.example"]), st.booleans())
def test_a_folded_known_url_is_decided_about_as_any_other(
    options: UrlOptions, text: str, host_as_written: str | None, queries: bool
) -> None:
    rules = "forbid domain H.example\nforbid prefix http://*/a"
    verdicts, others = (
        KnownUrlDecisions(space(options, rules, follow_query_strings=queries, max_url_length=30), None) for _ in range(2)
    )
    try:
        known = parse(text, host_as_written=host_as_written)
    except MalformedUrl:
        return
    into = verdicts.folded(known.text, host_as_written=known.host_as_written)
    if into is not None:
        asked = {"site": into.site, "depth": 0, "host_as_written": into.host_as_written}
        assert verdicts.decide(into.text, **asked) == others.decide(into.text, **asked)  # type: ignore[arg-type]
