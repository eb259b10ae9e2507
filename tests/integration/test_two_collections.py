"""Two collections, one index, one global crawl space: what a URL goes through when it moves from one crawler to the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawlspace.index.embedded import EmbeddedIndex
from tests.conftest import MakeProject, Project, assert_same
from tests.integration.stored import FAST, opened, shared, statuses
from tests.quick import some
from tests.sites import Server, Site, page, serve

PAGES = ["/", "/a", "/sub/b"]
OFFSITE, FOLDER = "CRAWLSPACE_FOLLOW_OFFSITE_LINKS = False\n", "CRAWLSPACE_INDEX_ENTIRE_SITE = True\n"


def site(name: str) -> Site:
    return Site(
        {
            "/": page(f"Home of {name}", text=name, links=["/a", "/sub/b"]),
            "/a": page(f"A of {name}", text=f"a {name}"),
            "/sub/b": page(f"B of {name}", text=f"b {name}"),
        }
    )


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    with serve(site("intranet"), host="127.0.0.1") as first, serve(site("shop"), host="127.0.0.2") as second:
        yield first, second


def searchable(index: Path) -> set[str]:
    opened = EmbeddedIndex(index, read_only=True)
    try:
        return set(opened.urls())
    finally:
        opened.close()


def both(make: MakeProject, servers: tuple[Server, Server], tmp_path: Path, *, global_rules: str | None) -> tuple[Project, Path]:
    first, second = servers
    index = tmp_path / "shared.db"
    settings = settings_of(index)
    files = {
        "intranet/start_urls.txt": f"{first.url()}\n{second.url()}\n",
        "intranet/crawl.rules": f"allow domain {first.netloc}\nallow domain {second.netloc}\nforbid domain *\n",
        "intranet/settings.py": settings,
        "shop/start_urls.txt": f"{second.url()}\n",
        "shop/crawl.rules": f"allow domain {second.netloc}\nforbid domain *\n",
        "shop/settings.py": settings,
    }
    if global_rules is not None:
        files["global.rules"] = global_rules
    return make(files), index


def settings_of(index: Path) -> str:
    return (
        FAST + f"CRAWLSPACE_SINKS = {{'local': {{'type': 'sqlite', 'file': {str(index)!r}}}}}\nCRAWLSPACE_MAX_DELETIONS = 100\n"
    )


def urls(server: Server) -> set[str]:
    return {server.url(path) for path in PAGES}


CASES: list[tuple[str, str, str | None, int, bool]] = [
    # a page of the shop, now excluded by   the intranet's rules then        global.rules            status  stays in the index
    ("a prefix rule",                       "forbid prefix http://{shop}/",  "allow domain {shop}",  760,    False),
    ("a domain rule, no global space",      "forbid domain {shop}",          None,                   760,    False),
    ("a domain rule, allowed by global",    "forbid domain {shop}",          "allow domain {shop}",  761,    True),
    ("a domain rule, not allowed by global", "forbid domain {shop}",         "allow domain other",   760,    False),
]  # fmt: skip
GIVEN_AWAY: list[tuple[str, str, bool, int]] = [
    # the intranet's rules without the line that allowed the shop, which has a private address; its settings; whether global.rules
    # allows the shop; the status of its pages
    ("allow domain {intranet}\nforbid domain *",                                "",      True,  761),
    ("allow domain {intranet}\nforbid domain *",                                "",      False, 760),
    ("allow domain {intranet}",                                                 "",      True,  761),
    ("allow domain {intranet}",                                                 "",      False, 760),
    ("allow domain {intranet}\nallow domain *",                                 "",      True,  761),
    ("allow domain {intranet}\nforbid domain *",                                OFFSITE, True,  761),
    ("allow domain {intranet}",                                                 OFFSITE, True,  761),
    ("allow domain {intranet}",                                                 FOLDER,  True,  761),
    ("allow domain {intranet}\nallow domain {shop}",                            OFFSITE, True,  760),
    ("allow domain {intranet}\nforbid domain *\nforbid address 127.0.0.2",      "",      True,  760),
    ("allow domain {intranet}\nforbid domain *\nforbid prefix http://{shop}/",  "",      True,  760),
]  # fmt: skip


@pytest.mark.parametrize(("what", "rules", "global_rules", "status", "stays"), CASES, ids=[row[0] for row in CASES])
def test_the_four_cases(
    project: MakeProject,
    servers: tuple[Server, Server],
    tmp_path: Path,
    what: str,
    rules: str,
    global_rules: str | None,
    status: int,
    stays: bool,
) -> None:
    first, second = servers
    spelled = None if global_rules is None else global_rules.format(shop=second.netloc)
    made, index = both(project, servers, tmp_path, global_rules=spelled)
    assert made.crawl("intranet").returncode == 0
    assert_same(searchable(index), urls(first) | urls(second))
    made.write({"intranet/crawl.rules": rules.format(shop=second.netloc) + "\n"})
    second.forget()
    assert made.crawl("intranet").returncode == 0
    assert {statuses(made, "intranet")[second.url(path)] for path in PAGES} == {status}
    assert_same(searchable(index), urls(first) | (urls(second) if stays else set()))
    assert second.paths() == [], "what is excluded is not asked for"
    made.write({"global.rules": "forbid domain *\n"})
    planned = made.scrapy("plan", "intranet").stdout
    assert (f"and {len(PAGES)} left for another collection (761)" in planned) is (status == 761)
    assert (f"{len(PAGES)} documents leave the index" in planned) is (status == 761)


@pytest.mark.parametrize("on_redis", some([False, True], 1), ids=["sqlite", "redis"])
@pytest.mark.parametrize(("rules", "setting", "is_shared", "status"), some(GIVEN_AWAY, 3))
def test_a_host_with_a_private_address_is_given_away(
    project: MakeProject,
    servers: tuple[Server, Server],
    tmp_path: Path,
    rules: str,
    setting: str,
    *,
    is_shared: bool,
    status: int,
    on_redis: bool,
) -> None:
    first, second = servers
    names = {"intranet": first.netloc, "shop": second.netloc}
    made, index = both(project, servers, tmp_path, global_rules=f"allow domain {second.netloc if is_shared else 'other'}")
    if on_redis:
        shared(made)
    made.crawl("intranet").succeeded()
    made.write(
        {
            "intranet/start_urls.txt": first.url(),
            "intranet/crawl.rules": rules.format(**names),
            "intranet/settings.py": settings_of(index) + setting,
        }
    )
    planned = made.scrapy("plan", "intranet").stdout
    assert (f"{len(PAGES)} documents leave the index" in planned) is (status == 760)
    explained = json.loads(made.scrapy("explain", "intranet", second.url(), "--json").stdout)
    assert not explained["admitted"]
    second.forget()
    made.crawl("intranet").succeeded()
    with opened(made, "intranet") as store:
        assert {int(state.status or 0) for state in store.urls() if state.url.startswith(second.url())} == {status}
    assert_same(searchable(index), urls(first) | (urls(second) if status == 761 else set()))
    assert second.paths() == [], "what is excluded is not asked for"


@pytest.mark.parametrize(("is_shared", "status"), [(True, 761), (False, 760)])
def test_an_address_that_is_known_only_when_a_connection_is_made(
    project: MakeProject, servers: tuple[Server, Server], tmp_path: Path, *, is_shared: bool, status: int
) -> None:
    first, second = servers
    local = f"localhost:{first.netloc.rpartition(':')[2]}"
    made, index = both(project, servers, tmp_path, global_rules=f"allow domain {local if is_shared else 'other'}")
    made.write(
        {"intranet/start_urls.txt": f"http://{local}/\n{second.url()}\n", "intranet/crawl.rules": f"allow domain {local}\n"}
    )
    made.crawl("intranet").succeeded()
    with opened(made, "intranet") as store:
        store.set_meta("addresses:localhost", "")
    made.write({"intranet/start_urls.txt": f"{second.url()}\n", "intranet/crawl.rules": f"allow domain {second.netloc}\n"})
    made.scrapy("recrawl", "intranet", f"http://{local}/")
    made.crawl("intranet").succeeded()
    with opened(made, "intranet") as store:
        state = store.get(f"http://{local}/")
    assert state is not None
    assert state.status == status
    assert (f"http://{local}/" in searchable(index)) is is_shared


def test_a_host_that_moves_from_one_collection_to_the_other_is_searchable_all_the_time(
    project: MakeProject, servers: tuple[Server, Server], tmp_path: Path
) -> None:
    first, second = servers
    made, index = both(project, servers, tmp_path, global_rules=f"allow domain {first.netloc}\nallow domain {second.netloc}\n")
    everything = urls(first) | urls(second)
    made.crawl("intranet")
    assert_same(searchable(index), everything)
    made.write({"intranet/crawl.rules": f"allow domain {first.netloc}\nforbid domain *\n"})
    made.crawl("intranet")
    assert_same(searchable(index), everything)
    made.crawl("shop")
    assert_same(searchable(index), everything)
    assert set(statuses(made, "shop").values()) == {200}
    made.write(
        {
            "intranet/crawl.rules": f"allow domain {first.netloc}\nforbid prefix {second.url()}\n",
            "global.rules": "forbid domain *\n",
        }
    )
    made.crawl("intranet")
    assert_same(searchable(index), everything)  # what the other one has taken over is not for this one to delete
    made.write({"intranet/crawl.rules": f"allow domain {first.netloc}\nallow domain {second.netloc}\nforbid domain *\n"})
    made.crawl("intranet")
    assert {statuses(made, "intranet")[second.url(path)] for path in PAGES} == {200}, (
        "what comes back into the space is crawled again"
    )


def test_a_global_rule_that_is_no_domain_rule_stops_the_start_and_changes_nothing(
    project: MakeProject, servers: tuple[Server, Server], tmp_path: Path
) -> None:
    first, second = servers
    made, index = both(project, servers, tmp_path, global_rules=None)
    made.crawl("intranet")
    before = statuses(made, "intranet")
    made.write(
        {
            "global.rules": f"allow domain {second.netloc}\nallow prefix http://x/\n",
            "intranet/crawl.rules": "forbid domain 127.0.0.2\n",
        }
    )
    run = made.crawl("intranet")
    assert run.returncode == 1
    assert "global.rules:2:" in run.stderr
    assert "Traceback" not in run.stderr
    assert statuses(made, "intranet") == before
    assert_same(searchable(index), urls(first) | urls(second))


def test_a_document_that_the_other_collection_deletes_is_reported_and_sent_again(
    project: MakeProject, servers: tuple[Server, Server], tmp_path: Path
) -> None:
    first, second = servers
    made, index = both(project, servers, tmp_path, global_rules=None)
    everything = urls(first) | urls(second)
    made.crawl("intranet")
    made.crawl("shop")
    lost = second.url("/a")
    made.write({"shop/crawl.rules": f"allow domain {second.netloc}\nforbid prefix {lost}\nforbid domain *\n"})
    made.crawl("shop")
    assert_same(searchable(index), everything - {lost})
    status = made.scrapy("status", "intranet").stdout
    assert "lost                         1   of the documents, deleted there by another collection" in status
    assert json.loads(made.scrapy("status", "intranet", "--json").stdout)["index"]["lost"] == 1
    assert "not in the index at present: another collection deleted it" in made.scrapy("explain", "intranet", lost).stdout
    listed = map(json.loads, made.scrapy("urls", "intranet", "--json").stdout.splitlines())
    assert [one["url"] for one in listed if one["lost"]] == [lost]
    first.forget()
    second.forget()
    run = made.crawl("intranet").succeeded()
    assert "1 document was deleted from the shared index by another collection" in run.stderr
    assert (first.paths(), [path for path in second.paths() if path != "/robots.txt"]) == ([], ["/a"])
    assert_same(searchable(index), everything)
    for name in ("shop", "intranet"):
        second.forget()
        made.crawl(name).succeeded()
        assert second.paths() == []
    assert_same(searchable(index), everything)
    assert "\n  lost " not in made.scrapy("status", "intranet").stdout
