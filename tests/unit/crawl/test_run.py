"""When a crawl that came to its end exits with 1, and what its summary says first."""

from __future__ import annotations

from collections import Counter

import pytest

from crawlspace.crawl.run import Run, RunCounters, faults_of
from crawlspace.outcome import OutcomeKind

A, B = "a.example:80", "b.example:80"
REFUSED = "connection refused"
ROWS = [
    # by status, documents, errors, sites without an answer, those with documents    what the summary says first
    ("all is well", {200: 3, 404: 1}, 3, 1, {}, (), []),
    ("nothing was due", {}, 0, 0, {}, (), []),
    ("unchanged pages", {304: 2}, 0, 0, {}, (), []),
    ("redirects only", {301: 2}, 0, 0, {}, (), []),
    ("another site is down", {200: 1}, 1, 0, {B: REFUSED}, (B,), []),
    ("the start site is down", {}, 0, 0, {A: REFUSED}, (A,), [f"no start site could be reached: {A} ({REFUSED})"]),
    ("it has failed page by page", {612: 4}, 0, 4, {A: REFUSED}, (), [f"no start site could be reached: {A} ({REFUSED})"]),
    ("only another site was due", {}, 0, 0, {B: REFUSED}, (B,), [f"nothing could be fetched: {B} ({REFUSED})"]),
    ("a dead link was due", {}, 0, 0, {B: REFUSED}, (), []),
    ("robots.txt keeps out of what is indexed", {740: 2}, 0, 0, {}, (), []),
    ("only dead links were due", {404: 2, 410: 1, 680: 1}, 0, 4, {}, (), []),
    ("only pages that fail on a site that answers others were due", {500: 1, 403: 1}, 0, 2, {}, (), []),
    (
        "a site with documents fails page by page",
        {612: 2, 404: 1},
        0,
        3,
        {B: REFUSED},
        (B,),
        [f"nothing could be fetched: {B} ({REFUSED})"],
    ),
    ("dead links to a site without any", {612: 2, 404: 1}, 0, 3, {B: REFUSED}, (), []),
    ("own code", {699: 4}, 0, 4, {}, (), ["every page that was parsed ended in an unexpected error (699), see the log"]),
    (
        "own code, and a dead link",
        {699: 4, 404: 1},
        0,
        5,
        {},
        (),
        ["every page that was parsed ended in an unexpected error (699), see the log"],
    ),
    ("own code fails on one page", {699: 1, 200: 5}, 5, 1, {}, (), []),
    ("own code keeps all others out", {699: 1, 2004: 5}, 0, 1, {}, (), []),
]


@pytest.mark.parametrize(
    ("by_status", "documents", "errors", "unreachable", "with_documents", "faults"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
def test_faults(
    by_status: dict[int, int],
    documents: int,
    errors: int,
    unreachable: dict[str, str],
    with_documents: tuple[str, ...],
    faults: list[str],
) -> None:
    fetched = sum(count for code, count in by_status.items() if code != 740)
    progress = RunCounters(fetched=fetched, documents=documents, errors=errors, by_status=Counter(by_status))
    assert (
        faults_of(Run(progress, start_sites={A}, unreachable=unreachable, with_documents=with_documents, has_documents=True))
        == faults
    )


FAILED = [
    # by status, sites that fail as a whole, whether anything is in the index, what the summary says first
    ({500: 2, 404: 1}, (A,), True, ["every page of the run failed: 1 × 404, 2 × 500"]),
    ({403: 20}, (A,), True, ["every page of the run failed: 20 × 403"]),
    ({404: 1}, (), False, ["every page of the run failed: 1 × 404"]),
    ({691: 2}, (), False, ["no page could be read, because of redirect loops: 2 × 691"]),
    ({302: 1, 691: 1}, (A,), True, ["no page could be read, because of redirect loops: 1 × 302, 1 × 691"]),
    ({302: 1, 691: 1}, (), True, []),
    ({200: 1, 302: 1, 691: 1}, (A,), False, []),
    ({302: 1, 404: 1}, (), False, []),
    ({500: 2, 404: 1}, (), True, []),
    ({500: 2, 200: 1}, (A,), True, []),
]


@pytest.mark.parametrize(("by_status", "failing", "has_documents", "faults"), FAILED)
def test_a_run_whose_pages_all_failed(
    by_status: dict[int, int], failing: tuple[str, ...], has_documents: bool, faults: list[str]
) -> None:
    progress = RunCounters(fetched=sum(by_status.values()), by_status=Counter(by_status))
    progress.errors = sum(count for code, count in by_status.items() if code >= 400)
    progress.by_kind[OutcomeKind.REDIRECTED] = by_status.get(302, 0)
    run = Run(progress, start_sites={A}, unreachable={}, with_documents=(), has_documents=has_documents, failing=failing)
    assert faults_of(run) == faults


WHY = "CRAWLSPACE_SITES['a.example'] was refused by a.example:80 (401)"
LOGINS = [
    # fetched, of it shown, sites whose log-in is refused, sites that wait for another reason, what the summary says first
    (0, 0, {A: WHY}, {}, [f"{A} waits for its log-in: {WHY}"]),
    (5, 5, {A: WHY}, {}, [f"{A} waits for its log-in: {WHY}"]),
    (0, 0, {}, {A: "nobody can log in"}, [f"{A} waits for its log-in: nobody can log in"]),
    (2, 0, {}, {A: "nobody can log in"}, [f"{A} waits for its log-in: nobody can log in"]),
    (5, 5, {}, {A: "nobody can log in"}, []),
]


@pytest.mark.parametrize(("fetched", "shown", "refused", "without", "faults"), LOGINS)
def test_sites_that_wait_for_a_log_in(
    fetched: int, shown: int, refused: dict[str, str], without: dict[str, str], faults: list[str]
) -> None:
    progress = RunCounters(fetched=fetched, documents=shown)
    progress.by_kind.update({OutcomeKind.DOCUMENT: shown, OutcomeKind.FAILED: fetched - shown})
    run = Run(
        progress,
        start_sites=(),
        unreachable={},
        with_documents=(),
        has_documents=True,
        refused_logins=refused,
        without_login=without,
    )
    assert faults_of(run) == faults


def test_a_first_crawl_that_robots_txt_keeps_out_of_everything() -> None:
    run = Run(RunCounters(by_status=Counter({740: 1})), start_sites={A}, unreachable={}, with_documents=(), has_documents=False)
    assert faults_of(run) == ["nothing could be fetched: robots.txt forbids every URL"]


def test_of_many_sites_three_are_named() -> None:
    sites = {f"{n}.example:80": REFUSED for n in range(5)}
    (fault,) = faults_of(Run(RunCounters(), start_sites=set(sites), unreachable=sites, with_documents=(), has_documents=False))
    assert fault == (
        f"no start site could be reached: 0.example:80 ({REFUSED}), 1.example:80 ({REFUSED}), 2.example:80 ({REFUSED}) and 2 more"
    )


LOST = (
    "no page gave an item, not even 3 pages that were indexed: look at parse() or document() of the spider, and at ITEM_PIPELINES"
)


@pytest.mark.parametrize(
    ("by_status", "documents", "without_item", "faults"),
    [
        ({2004: 5}, 0, 3, [LOST]),
        ({2004: 5}, 0, 0, []),  # lists of links, which never had an item
        ({2004: 5, 200: 1}, 1, 3, []),
        ({2004: 5, 304: 1}, 0, 3, []),
    ],
)
def test_own_code_that_gives_no_item(by_status: dict[int, int], documents: int, without_item: int, faults: list[str]) -> None:
    progress = RunCounters(fetched=6, documents=documents, by_status=Counter(by_status), without_item=without_item)
    progress.by_kind[OutcomeKind.UNCHANGED] = by_status.get(304, 0)
    assert faults_of(Run(progress, start_sites={A}, unreachable={}, with_documents=(), has_documents=True)) == faults
