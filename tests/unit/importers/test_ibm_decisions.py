"""A collection of IBM's decides about URLs as IBM's crawler did: through the files as they are written, read by a crawl."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from crawlspace.crawl.startup import build_global_space, build_space
from crawlspace.rules.exclusion import KnownUrlDecisions
from crawlspace.status import Status
from crawlspace.urls import parse
from tests.unit.importers.ibm_imports import CORPUS, imported
from tests.unit.importers.imports import admitted, collection, findings

# folder of the corpus -> URLs that are crawled, and that are not
DECISIONS = {
    "seeds": (
        [
            "http://www.ibm.com/",
            "https://www.ibm.com:8443/a/b/c/d/e/f/g/h",
            "http://www.ibm.com/a/x/a/x/a/x/a/x/a/",
            "http://www.ibm.com/?a=b",
            "http://sales.ibm.com/public/",
            "http://sales.ibm.com/public/xfs/a",
            "https://sales.ibm.com/private/",
            "http://sales.ibm.com:9080/private/",
        ],
        [
            "http://WWW.ibm.com/",
            "http://ibm.com/",
            "http://server1.ibm.com/",
            "http://w3.ibm.com/",
            "http://sales.ibm.com/",
            "http://sales.ibm.com/xfs/a",
            "http://sales.ibm.com/Public/",
            "http://[2001:db8:0:1::1]/",
            "http://example.com/",
        ],
    ),
    "intranet": (
        [
            "http://w3.ibm.com/",
            "https://w3.ibm.com/hr/salaries",
            "http://w3.ibm.com:9080/",
            "http://joe.user.ibm.com/",
            "http://mary.smith.user.ibm.com/",
            "http://lists.ibm.com/",
            "http://www.lotus.com/a.pdf",
            "http://9.12.4.5/a",
            "https://sales.example.com/a",
            "http://w3.ibm.com/hr/public/a",
            "http://w3.ibm.com/archive/index.html",
            "http://w3.ibm.com/a?x=1",
            "http://w3.ibm.com/css/a.css",
            "http://w3.ibm.com/a/b/c/d/e/f/g",
            "https://mail.lotus.community.ibm.com/",
            "http://wiki.ibm.com/edit/",
        ],
        [
            "http://joe.user.IBM.com/",
            "http://server.ibm.com/",
            "http://server.raleigh.ibm.com/",
            "http://a.test.ibm.com/",
            "http://bugs.raleigh.ibm.com/",
            "http://lists.ibm.com:8080/",
            "http://ibm.com/",
            "http://sales.example.com/",
            "http://9.12.4.6/",
            "http://w3.ibm.com/hr/",
            "http://w3.ibm.com/archive/2010/",
            "http://w3.ibm.com/a/b?print=1",
            "http://w3.ibm.com/nfs/a",
            "http://w3.ibm.com/a/b/afs/c",
            "http://w3.ibm.com/cgi-bin/a",
            "https://mail.lotus.com/a",
            "http://wiki.ibm.com/page/x/edit/1",
            "http://w3.ibm.com/a.gif",
            "http://w3.ibm.com/a/b/c/d/e/f/g/h",
            "ftp://w3.ibm.com/",
        ],
    ),
    "partition": (
        ["http://w3.ibm.com/", "http://old.ibm.com/"],
        ["http://research.ibm.com/", "http://www.lotus.com/", "http://w3.ibm.com/private/a"],
    ),
    "xml_properties": (
        ["http://anything.example.com/a/b/c", "http://anything.example.com/a.gif", "http://anything.example.com/?a=b"],
        ["http://anything.example.com/a/b/c/d", "http://anything.example.com/a.pdf", "http://anything.example.com/a.ZIP"],
    ),
}  # fmt: skip
# URLs of the folder follow_index -> whether they are indexed, and whether their links are followed
FLAGS = [
    ("http://w3.ibm.com/", True, True),
    ("http://w3.ibm.com/docs/a", False, False),
    ("http://w3.ibm.com/docs/public/a", True, False),
    ("http://W3.ibm.com:80/docs/a", False, False),
    ("http://w3.ibm.com/Docs/a", True, True),
    ("http://w3.ibm.com/docs/drafts/2020/a", False, False),
    ("http://w3.ibm.com/cal/a", True, False),
    ("http://w3.ibm.com/cal/current/a", True, True),
    ("http://w3.ibm.com/x/y/Archive/z/list2", True, False),
    ("http://w3.ibm.com/x/Archive/a?b/list", True, False),
    ("http://w3.ibm.com/x/archive/list", True, True),
    ("http://w3.ibm.com/Archive/list", True, True),
    ("http://joe.user.ibm.com/Private/a", False, True),
    ("http://JOE.user.ibm.com/Private/a", False, True),
    ("http://joe.user.ibm.com/private/a", True, True),
    ("http://w3.ibm.com/search?q=a", False, True),
    ("http://w3.ibm.com/search", True, True),
    ("http://w3.ibm.com/search/?q=a", True, True),
    ("http://w3.ibm.com/list?Sort=a", False, True),
    ("http://w3.ibm.com/list?sort=a", True, True),
    ("https://w3.ibm.com/a", False, True),
    ("http://server1.ibm.com/a", False, True),
    ("https://Server1.ibm.com:8443/a", False, True),
    ("http://server.open.ibm.com/a", True, True),
    ("https://ports.ibm.com/a", True, False),
    ("https://ports.ibm.com:8080/a", True, False),
    ("http://ports.ibm.com/a", True, True),
    ("http://old1.ports.ibm.com:8080/a", True, False),
    ("http://old1.ports.ibm.com/a:8080/", True, True),
]
# URLs of that folder -> whether the directives of a page itself are ignored, about index and about follow
OVERRIDES = [
    ("http://w3.ibm.com/docs/public/a", True, True),
    ("http://w3.ibm.com/docs/a", False, True),
    ("http://server.open.ibm.com/a", True, False),
    ("http://server1.ibm.com/a", False, False),
]
# known URLs of the folder partition that have left the crawl space -> their status
LEFT = [
    ("http://research.ibm.com/", Status.EXCLUDED_HERE),
    ("http://www.lotus.com/a", Status.EXCLUDED_HERE),
    ("http://www.example.com/", Status.EXCLUDED),
    ("http://w3.ibm.com/private/a", Status.EXCLUDED),
]
ADDRESSES = [
    ("9.1.2.3", True),
    ("10.33.0.1", True),
    ("10.64.0.1", False),
    ("192.168.7.0", True),
    ("192.168.7.1", False),
    ("93.184.216.34", False),
    ("2001:db8::1", False),
]
# what lint finds in a collection, and is as the files of IBM have it
FINDINGS: dict[str, Sequence[str]] = {
    "intranet": ["star-crosses-slashes", "plain-login", "unused-login"],
    "seeds": ["never-applies", "star-crosses-slashes"],
    "xml_properties": ["no-domain-rules"],
}


@pytest.mark.parametrize("name", DECISIONS)
def test_decisions_are_those_of_ibm(name: str, tmp_path: Path) -> None:
    read = collection(name, tmp_path, imported(CORPUS / name, name))
    crawled, refused = DECISIONS[name]
    assert admitted(read, *crawled, *refused) == {**dict.fromkeys(crawled, True), **dict.fromkeys(refused, False)}


def test_what_is_indexed_and_followed_is_as_with_ibm(tmp_path: Path) -> None:
    read = collection("follow_index", tmp_path, imported(CORPUS / "follow_index", "follow_index"))
    assert read.action_rules is not None
    flags = [(url, read.action_rules.evaluate(parse(url))) for url, _, _ in FLAGS]
    assert [(url, actions.index, actions.follow) for url, actions in flags] == FLAGS
    actions_of = [(url, read.action_rules.evaluate(parse(url))) for url, _, _ in OVERRIDES]
    assert [(url, actions.ignores_noindex, actions.ignores_nofollow) for url, actions in actions_of] == OVERRIDES


@pytest.mark.parametrize(("url", "status"), LEFT)
def test_what_has_left_is_deleted_or_left_to_others_as_by_ibm(url: str, status: Status, tmp_path: Path) -> None:
    read = collection("partition", tmp_path, imported(CORPUS / "partition", "partition"))
    bulk = KnownUrlDecisions(build_space(read), build_global_space(read))
    exclusion = bulk.decide(url, site=parse(url).site, depth=1, host_as_written=None).exclusion
    assert exclusion is not None
    assert exclusion.status is status


@pytest.mark.parametrize(("address", "allowed"), ADDRESSES)
def test_addresses_are_judged_as_by_ibm(address: str, allowed: bool, tmp_path: Path) -> None:
    space = build_space(collection("intranet", tmp_path, imported(CORPUS / "intranet", "intranet")))
    assert space.at_connect("w3.ibm.com", 80, address).admitted is allowed


@pytest.mark.parametrize("path", sorted(path for path in CORPUS.iterdir()), ids=lambda path: path.name)
def test_what_is_written_passes_lint(path: Path, tmp_path: Path) -> None:
    reported = findings(path.name, tmp_path, imported(path, path.name))
    assert [finding.code for finding in reported] == FINDINGS.get(path.name, []), [*map(str, reported)]
