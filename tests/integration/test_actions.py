"""What a rules.xml makes of a crawl: documents, links, fields, and what a change of it does to what is known already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from crawlspace.index.embedded import EmbeddedIndex
from crawlspace.model import State
from tests.conftest import Project, assert_same
from tests.integration.stored import FAST, collection, make_due, refusals, states, statuses
from tests.sites import Server, Site, page, redirect, serve

Fields = Mapping[str, str]
NOINDEX, NOFOLLOW = ('<meta name="robots" content="noindex">', '<meta name="robots" content="nofollow">')

# --- one crawl ----------------------------------------------------------------------------------------------------

RULES = """\
<Rules group="example" key="auto">
  <Rule> <Path val="/noindex"/> <NoIndex/> <Follow/> </Rule>
  <Rule> <Path val="/nofollow"/> <Index/> <NoFollow/> </Rule>
  <Rule> <Path val="/neither"/> <NoIndex/> <NoFollow/> <Accept/> </Rule>
  <Rule> <Path val="/ignored"/> <NoIndex/> <NoFollow/> <Ignore/> </Rule>
  <Rule> <Path val="/ignored/but"/> <Accept/> <Index/> <Follow/> </Rule>
  <Rule> <Path val="/own"/> <Index/> <Follow/> </Rule>
  <Rule> <Path val="/own/anyway"/> <MetaNoIndex/> <MetaNoFollow/> </Rule>
  <Rule> <Path val="/own/anyway/not"/> <MetaNoIndex mode="obey"/> </Rule>
  <Rule> <Path val="/noindex/anyway"/> <MetaNoIndex/> </Rule>
  <Rule> <Path val="/sales"/> <Source name="intranet"/> <AddMeta name="department" value="sales"/> </Rule>
  <Rule> <Path val="/sales/shop"/> <Source name="shop"/> <AddMeta name="kind" value="offer"/> </Rule>
  <Rule> <Path val="/old"/> <Source name="archive"/> <AddMeta name="age" value="old"/> </Rule>
  <Rule> <Path val="/older"/> <AddMeta name="age" value="older"/> <AddMeta name="paper" value="yellow"/> </Rule>
  <Rule> <And> <Path val="/behind"/> <InQuery val="page="/> </And> <NoIndex/> </Rule>
</Rules>
"""
HERE = "allow domain 127.0.0.1\nforbid domain *\n"
NONE: Fields = {}
SALES: Fields = {"department": "sales", "source": "intranet"}
SHOP: Fields = {"department": "sales", "kind": "offer", "source": "shop"}

PAGES: list[tuple[str, str, int | None, Fields | None, bool]] = [
    # path, in its head, its status, fields of its document (None: not indexed), whether its link is followed
    ("/plain",             "",       200,  NONE,  True),
    ("/noindex",           "",       2004, None,  True),
    ("/nofollow",          "",       200,  NONE,  False),
    ("/neither",           "",       2004, None,  False),
    ("/ignored",           "",       None, None,  False),
    ("/ignored/but",       "",       200,  NONE,  True),
    # what the page says itself holds on top
    ("/own/noindex",       NOINDEX,  2004, None,  True),
    ("/own/nofollow",      NOFOLLOW, 200,  NONE,  False),
    ("/noindex/nofollow",  NOFOLLOW, 2004, None,  False),
    ("/nofollow/noindex",  NOINDEX,  2004, None,  False),
    # unless a rule has it ignored, which indexes nothing that another rule keeps out
    ("/own/anyway",        NOINDEX + NOFOLLOW, 200, NONE, True),
    ("/own/anyway/not",    NOINDEX + NOFOLLOW, 2004, None, True),
    ("/noindex/anyway",    NOINDEX,  2004, None,  True),
    # labels and fields
    ("/sales",             "",       200,  SALES, True),
    ("/sales/shop",        "",       200,  SHOP,  True),
]  # fmt: skip

BEHIND: list[tuple[str, Fields]] = [
    # what links and redirects lead to, the fields of its document
    ("/behind/plain",        NONE),
    ("/behind/noindex",      NONE),
    ("/behind/ignored/but",  NONE),
    ("/behind/own/noindex",  NONE),
    ("/behind/own/anyway",   NONE),
    ("/behind/own/anyway/not", NONE),
    ("/behind/noindex/anyway", NONE),
    ("/behind/sales",        {"department": "sales"}),                                  # fields are inherited along links, labels are not
    ("/behind/sales/shop",   {"department": "sales", "kind": "offer"}),
    ("/further",             NONE),                                                     # one link far
    ("/new",                 {"age": "old", "source": "archive"}),                      # along redirects all of it is handed
    ("/newest",              {"age": "old", "source": "archive", "paper": "yellow"}),   # from one redirect to the next, the later word holds
]  # fmt: skip
ALONG_LINKS = {"/behind/sales", "/behind/sales/shop"}

SITE = Site(
    {
        "/": page("Home", links=["/old", "/older", *(path for path, *_ in PAGES)]),
        **{path: page(path, text=path, head=head, links=[f"/behind{path}"]) for path, head, *_ in PAGES},
        **{f"/behind{path}": page(path, text=f"behind {path}", links=["/further"]) for path, *_ in PAGES},
        **{path: page(path, text=path) for path in ("/further", "/new", "/newest")},
        "/old": redirect("/new"),
        "/older": redirect("/old/still"),
        "/old/still": redirect("/newest"),
    }
)


LINTED = [
    # what a known URL makes of the rules: the only one that line 5 matches is let in by line 6
    ("rules.xml", "5", "[xml-action-overridden]"),
    ("rules.xml", "5", "[xml-action-overridden]"),
    ("rules.xml", "15", "[xml-rule-unused]"),
]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Project:
    with serve(SITE) as server:
        project = Project(tmp_path_factory.mktemp("actions"), collection(server.url(), rules=HERE) | {"demo/rules.xml": RULES})
        project.crawl("demo", "-O", str(project.folder / "items.jsonl")).succeeded()
        assert [path for path, state in states(project).items() if state.state is State.PENDING] == []
        assert max(server.counts().values()) == 1
        return project


def test_what_becomes_of_a_page(crawled: Project) -> None:
    known = statuses(crawled)
    assert_same(
        [(path, known.get(path), f"/behind{path}" in known) for path, *_ in PAGES],
        [(path, status, followed) for path, _, status, _, followed in PAGES],
    )
    assert refusals(crawled) == {"rules_xml": 1}


def test_fields_of_the_documents_in_the_index(crawled: Project) -> None:
    expected = [(path, fields) for path, _, _, fields, _ in PAGES if fields is not None] + BEHIND
    assert_same(
        map(repr, fields_in_index(crawled).items()), [repr((path, dict(fields))) for path, fields in [("/", NONE), *expected]]
    )


def test_fields_of_the_items_that_are_exported(crawled: Project) -> None:
    added = {"department", "kind", "source", "age", "paper"}
    lines = (crawled.folder / "items.jsonl").read_text(encoding="utf-8").splitlines()
    items = {path_of(item["url"]): item for item in map(json.loads, lines)}
    found = {path: {name: item["fields"][name] for name in sorted(added & item["fields"].keys())} for path, item in items.items()}
    assert found == fields_in_index(crawled)


def test_a_search_shows_the_fields(crawled: Project) -> None:
    found = crawled.scrapy("search", "demo", "sales shop").succeeded().stdout
    assert "/sales/shop\n    department: sales, kind: offer, source: shop\n" in found


def test_lint_names_rules_that_no_known_url_needs(crawled: Project) -> None:
    linted = crawled.scrapy("lint", "demo")
    findings = [(*finding.split(":")[:2], finding.rpartition(" ")[2]) for finding in linted.stdout.splitlines()]
    assert (linted.returncode, findings) == (1, LINTED)


def test_fields_are_inherited_along_links_only_if_that_is_set(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serve(SITE) as server:
        settings = FAST + "CRAWLSPACE_METADATA_ALONG_LINKS = False\n"
        project = Project(
            tmp_path_factory.mktemp("links"), collection(server.url(), settings=settings) | {"demo/rules.xml": RULES}
        )
        project.crawl("demo").succeeded()
    fields = fields_in_index(project)
    assert {path: fields[path] for path, _ in BEHIND} == {
        path: NONE if path in ALONG_LINKS else dict(own) for path, own in BEHIND
    }


# --- a change of the rules ----------------------------------------------------------------------------------------

ALL = ["/", "/a", "/b", "/c", "/d", "/under-a", "/under-b", "/under-c"]
LINKS = {"/": ["/a", "/b", "/c", "/d"], **{path: [f"/under-{path[1:]}"] for path in ("/a", "/b", "/c")}}
REMOVED = [f'<Path val="{path}"/><{action}/>' for path, action in (("/b", "NoIndex"), ("/c", "NoFollow"), ("/d", "Ignore"))]
RED, BLUE = (f'<Path val="/a"/><AddMeta name="colour" value="{colour}"/>' for colour in ("red", "blue"))
LAST = '<Path val="/a"/><Priority shift="2"/>'
ELSEWHERE = '<Path val="/nowhere"/><AddMeta name="colour" value="grey"/>'


def rules(*each: str) -> str:
    return f"<Rules>{''.join(f'<Rule>{rule}</Rule>' for rule in each)}</Rules>"


def but(*paths: str) -> list[str]:
    return [path for path in ALL if path not in paths]


HISTORY: list[tuple[str, str | None, bool, list[str], list[str], dict[str, int], dict[str, str], int]] = [
    # what is new, the rules, whether all is due; what is asked for whole, what only if it has changed; the status of what has no document;
    # colours of documents; how many are pushed to the index
    ("all of it", None, False, ALL, [], {}, {}, 8),
    ("a rule file without rules", rules(), True, [], ALL, {}, {}, 0),
    ("three are treated otherwise", rules(*REMOVED), False, ["/", "/b"], [], {"/b": 2004, "/d": 760}, {}, 0),
    ("they are as before, but one has a field", rules(RED), False, ["/", "/b", "/d"], [], {}, {}, 2),
    ("its next fetch adds it, there and where its link leads", rules(RED), True, but("/", "/b", "/d"), ["/", "/b", "/d"], {}, {"/a": "red", "/under-a": "red"}, 2),
    ("which is lasting", rules(RED), True, [], ALL, {}, {"/a": "red", "/under-a": "red"}, 0),
    ("a rule on something else", rules(RED, LAST), True, ALL, [], {}, {"/a": "red", "/under-a": "red"}, 0),
    ("another field", rules(BLUE, LAST), True, ALL, [], {}, {"/a": "blue", "/under-a": "blue"}, 2),
    ("nothing more comes of it", rules(BLUE, LAST), True, [], ALL, {}, {"/a": "blue", "/under-a": "blue"}, 0),
    ("a field elsewhere", rules(BLUE, LAST, ELSEWHERE), False, [], [], {}, {"/a": "blue", "/under-a": "blue"}, 0),
    ("takes none away", rules(BLUE, LAST, ELSEWHERE), True, ALL, [], {}, {"/a": "blue", "/under-a": "blue"}, 0),
    ("no field any more", rules(LAST), True, ALL, [], {}, {}, 2),
]  # fmt: skip


class Start(NamedTuple):
    """What came of one start."""

    whole: list[str]
    conditional: list[str]
    status: Mapping[str, int | None]
    colours: Mapping[str, str]
    pushed: int


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> list[Start]:
    site = Site({path: page(path, text=path, links=LINKS.get(path, []), headers={"ETag": f'"{path}"'}) for path in ALL})
    with serve(site) as server:
        project = Project(tmp_path_factory.mktemp("history"), collection(server.url()))
        return [start(project, server, rules, due=due) for _, rules, due, *_ in HISTORY]


def start(project: Project, server: Server, rules: str | None, *, due: bool) -> Start:
    file = project.collections / "demo" / "rules.xml"
    file.unlink(missing_ok=True)
    if rules is not None:
        file.write_text(rules, encoding="utf-8")
    if due:
        make_due(project)
    server.forget()
    reported = project.crawl("demo").succeeded().stderr
    documents = fields_in_index(project)
    asked = {request.path: "if-none-match" in request.headers for request in server.requests if request.path != "/robots.txt"}
    return Start(
        sorted(path for path, conditionally in asked.items() if not conditionally),
        sorted(path for path, conditionally in asked.items() if conditionally),
        {path: status for path, status in statuses(project).items() if path not in documents},
        {path: fields["colour"] for path, fields in documents.items() if "colour" in fields},
        int(reported.partition(" pushed, ")[0].rpartition("(")[2]),
    )


@pytest.mark.parametrize("number", range(len(HISTORY)), ids=[row[0] for row in HISTORY])
def test_a_start_with_other_rules(history: list[Start], number: int) -> None:
    assert history[number] == Start(*HISTORY[number][3:])


def fields_in_index(project: Project) -> dict[str, dict[str, str]]:
    """What rules and spiders have added, by path."""
    with closing(EmbeddedIndex(project.data / "demo" / "index.db", read_only=True)) as index:
        documents = [index.get(url) for url in index.urls()]
    return {path_of(document.url): document.fields for document in documents if document is not None}


def path_of(url: str) -> str:
    return urlsplit(url).path
