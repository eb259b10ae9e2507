"""The answers of the JSON interface: what is sent, and what the OpenAPI document describes, are these declarations.

The values of most of them are what the commands print with `--json`, so the names are the same there and here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from crawlspace.runtime.operations.disk_use import DiskUse

Time = Annotated[str, Meta(description="RFC 3339, in UTC", examples=["2026-11-26T09:45:45Z"])]
Place = Annotated[str, Meta(description="file and line", examples=["crawl.rules:5"])]
ByKind = Mapping[str, int]
OneOrMore = str | Sequence[str]


Answered = TypeVar("Answered", bound=Struct)


def answered(value: object, answer: type[Answered]) -> Answered:
    """Return what a use-case gives for programs as the interface declares it."""
    return msgspec.convert(value, answer)


class Failure(Struct):
    """Why a request was not answered."""

    error: Annotated[str, Meta(description="a sentence with what is wrong and what can be done")]


# --- collections -----------------------------------------------------------------------------------------------------


class CollectionRow(Struct):
    """A collection of the project. One that can't be read has only its name and an error."""

    name: str
    crawling: bool = False
    crawled: Annotated[bool, Meta(description="whether it was ever crawled")] = False
    urls: Annotated[int, Meta(description="known URLs")] = 0
    documents: Annotated[int, Meta(description="documents in the index")] = 0
    notices: Annotated[Sequence[str], Meta(description="what needs attention")] = ()
    error: str = ""


class CollectionsAnswer(Struct):
    """All collections of the project."""

    collections: Sequence[CollectionRow]


class WorkerRow(Struct):
    """A process that crawls a shared collection."""

    host: str
    process: int
    since: Time
    silent_s: Annotated[float, Meta(description="seconds since its last report")]
    sites: int
    urls: int
    fetched: int
    errors: int
    documents: int
    per_second: float


class ErrorRow(Struct):
    """An example of the errors with a status."""

    status: int
    url: str
    detail: str


class UnreachableSiteRow(Struct):
    """A site that cannot be reached."""

    site: str
    status: int
    cause: str
    since: Time
    runs: int
    documents: int
    held: bool


class TrapRow(Struct):
    """URLs that grow without new documents."""

    site: str
    pattern: str
    pages: int
    example: str
    stopped_by: str


class RoutesRow(Struct):
    """Links to routes behind # that are not fetched."""

    count: int
    example: str


class RenderingNumbers(Struct):
    """The costs of rendering in all runs."""

    pages: int
    samples: int
    gained: int
    failed: int
    requests: int
    seconds: float
    groups_needing_it: int


class IndexNumbers(Struct):
    """Numbers of documents."""

    documents: int
    duplicates: int
    left_to_others: int
    lost: int
    outbox: int
    held: int
    parked: int


class StandstillRow(Struct):
    """Since when a sink accepts nothing, and why."""

    since: Time
    why: str


class SinkRow(Struct):
    """A sink and its waiting orders."""

    name: str
    type: str
    waiting: Annotated[int, Meta(description="orders that it has not accepted yet")]
    parked: Annotated[int, Meta(description="documents that it refuses")]
    lacks_documents: Annotated[bool, Meta(description="whether all documents are being sent to it")]
    is_former: Annotated[bool, Meta(description="whether the settings do not name it any more")]
    server: str
    server_warning: str
    standstill: StandstillRow | None
    left_out: Annotated[int, Meta(description="documents that it does not get, because their pages are behind a log-in")]


class RefusedLoginRow(Struct):
    """A log-in that a site refuses."""

    entry: str
    site: str
    why: str
    since: Time


class WaitingLoginRow(Struct):
    """A log-in that has failed and is tried again."""

    entry: str
    why: str
    since: Time


class SessionRow(Struct):
    """A log-in that is in use."""

    entry: str
    since: Time
    expires: Time | None
    log_ins: int
    next_log_in: Time | None


class PauseRow(Struct):
    """Who has paused a host, and why."""

    by: str
    since: Time
    reason: str


class SlowSiteRow(Struct):
    """A site whose fetches take long."""

    site: str
    fetches: int
    mean_s: float


class RunningRow(Struct):
    """The run that crawls now."""

    run: int
    began: Time
    fetched: int
    per_second: Annotated[float, Meta(description="fetches per second in the last minute")]
    outcomes: ByKind
    status: Annotated[ByKind, Meta(description="fetches by status code")]
    p50_s: float | None
    p95_s: float | None
    slowest: Sequence[SlowSiteRow]


class StatusAnswer(Struct):
    """A collection in numbers, as `scrapy status --json`."""

    collection: str
    crawling: Annotated[int | None, Meta(description="the process that crawls it now")]
    since: Time | None
    urls: Annotated[ByKind, Meta(description="known URLs by state")]
    orphaned: int
    status: Annotated[ByKind, Meta(description="known URLs by status code")]
    errors: Sequence[ErrorRow]
    refused: Annotated[ByKind, Meta(description="refused links by reason")]
    index: IndexNumbers
    held: Annotated[ByKind, Meta(description="held deletions by reason")]
    hosts: int
    unreachable: Sequence[UnreachableSiteRow]
    paused: Annotated[Mapping[str, PauseRow], Meta(description="hosts that a person has paused")]
    sitemaps: ByKind
    traps: Sequence[TrapRow]
    hash_routes: Mapping[str, RoutesRow]
    sinks: Sequence[SinkRow]
    refused_logins: Sequence[RefusedLoginRow]
    waiting_logins: Sequence[WaitingLoginRow]
    sessions: Sequence[SessionRow]
    wanted_logins: Mapping[str, Sequence[str]]
    disk: Annotated[DiskUse | None, Meta(description="bytes of its files by part, what is free, and how that changes")]
    run: RunningRow | None
    workers: Sequence[WorkerRow] | UnsetType = UNSET
    rendering: RenderingNumbers | UnsetType = UNSET


class SinksAnswer(Struct):
    """The sinks of a collection."""

    sinks: Sequence[SinkRow]


class ParkedRow(Struct):
    """A document that a sink refuses."""

    order: Annotated[str, Meta(description="push or delete")]
    url: str
    reason: str


class ParkedAnswer(Struct):
    """The documents that a sink refuses."""

    parked: Sequence[ParkedRow]


# --- URLs ------------------------------------------------------------------------------------------------------------


class FetchRow(Struct):
    """An earlier fetch of a URL."""

    at: Time
    status: int | None
    took_s: float | None
    document: Annotated[str | None, Meta(description="new, changed or unchanged")]


class PausedRow(PauseRow):
    """The pause of the site of a URL."""

    pattern: str


class UrlRow(Struct):
    """A known URL, as a line of `scrapy urls --format jsonl`."""

    url: str
    state: str
    status: int | None
    depth: Annotated[int, Meta(description="links from a start URL")]
    orphaned: bool
    source: str
    shift: int
    priority: int
    errors: Annotated[int, Meta(description="errors in a row")]
    last_fetch: Time | None
    next_fetch: Time | None
    indexed: bool
    indexed_at: Time | None
    left_to_others: bool
    lost: bool
    held: str | None
    duplicate_of: str | None
    detail: str | None
    fetches: Annotated[Sequence[FetchRow], Meta(description="the last ten, the newest first")]
    text_status: str | UnsetType = UNSET
    referrers: Annotated[Sequence[str], Meta(description="pages that link to it, the first of them")] | UnsetType = UNSET
    referrers_total: int | UnsetType = UNSET


class TraceRow(Struct):
    """A check of a URL."""

    check: str
    verdict: Annotated[str, Meta(description="pass, allow or refuse")]
    rule: Place | None


class ActionRow(Struct):
    """A rule of rules.xml that matches."""

    rule: Place
    changed: Sequence[str]
    without_effect: Sequence[str]


class LearnedRow(Struct):
    """What was learned about the pages like one."""

    group: str
    needs: str
    rendered: int
    gained: int


class RefusedHostRow(Struct):
    """A host from which pages must not load."""

    host: str
    why: str


class PageRenderingAnswer(Struct):
    """Whether a page is rendered, and why."""

    mode: str
    setting: str | None
    rule: Place | None
    learned: LearnedRow | None
    refused: Sequence[RefusedHostRow]


class ExplainAnswer(Struct):
    """Why a URL is crawled or not, as `scrapy explain --json`."""

    url: str
    normalized: str | None
    folded_from: str | None
    admitted: bool
    reason: str
    rule: Place | None
    trace: Sequence[TraceRow]
    actions: Sequence[ActionRow]
    fields: Mapping[str, str]
    index: bool
    follow: bool
    source: str
    shift: int
    priority: int
    addresses: Sequence[str]
    looked_up: Time | None
    unreachable: UnreachableSiteRow | None
    access: str
    waits_for_login: str | None
    paused: PausedRow | None
    proxy: str
    seen_on: Sequence[str]
    rendering: PageRenderingAnswer | None
    start_url: str | None
    excluded_extensions: Sequence[str]
    named_by: Sequence[str]
    state: UrlRow | None


class ExplanationsAnswer(Struct):
    """The explanations of several URLs, in their order."""

    explanations: Sequence[ExplainAnswer]


# --- search and documents --------------------------------------------------------------------------------------------


class FoundPartRow(Struct):
    """A part of a document that has words of the search."""

    id: str
    key: str
    url: str
    headings: Sequence[str]
    snippet: str
    found: Sequence[Sequence[int]]


class HitRow(Struct):
    """A document found, as `scrapy search --json`."""

    id: Annotated[str, Meta(description="the id of the document, for `documents`")]
    url: str
    title: str
    snippet: str
    found: Annotated[Sequence[Sequence[int]], Meta(description="first and last index (exclusive) of each match in the snippet")]
    has_all_words: bool
    score: float
    language: str
    fields: Mapping[str, OneOrMore]
    duplicates: Sequence[str]
    parts: Sequence[FoundPartRow] | UnsetType = UNSET


class FacetRow(Struct):
    """A value of a field, and how many of the documents have it."""

    value: str
    count: int


class HitsAnswer(Struct):
    """The best matches. `total` counts the documents that have all words."""

    total: int
    hits: Sequence[HitRow]
    facets: Mapping[str, Sequence[FacetRow]]


class PartRow(Struct):
    """A part of a document."""

    id: str
    key: str
    url: str
    title: str
    headings: Sequence[str]
    text: str
    fields: Mapping[str, OneOrMore]


class DocumentAnswer(Struct):
    """A document as it is in the index."""

    id: str
    url: str
    title: str
    description: str
    language: str
    content_type: str
    modified: str
    last_fetch: Time | None
    headings: Sequence[str]
    text: str
    fields: Mapping[str, OneOrMore]
    duplicates: Sequence[str]
    parts: Sequence[PartRow]


# --- plans, deletions, audits ----------------------------------------------------------------------------------------


class FieldExampleRow(Struct):
    """A document whose field other extraction rules change."""

    url: str
    before: str
    after: str


class ChangedFieldRow(Struct):
    """A field that other extraction rules change."""

    changed: Annotated[int, Meta(description="documents")]
    examples: Sequence[FieldExampleRow]


class ExtractionNumbers(Struct):
    """Documents that other extraction rules change."""

    documents: int
    checked: Annotated[int, Meta(description="those whose pages were read from the archive")]
    changed: int
    fields: Mapping[str, ChangedFieldRow]


class PlannedAnswer(Struct):
    """What the next start would change, as `scrapy plan --json`."""

    changed: bool
    known: int
    indexed: int
    excluded: int
    kept: int
    returned: int
    unindexed: int
    due: int
    judged: int
    folded: int
    folded_into: int
    deletions: int
    held: int
    by_rule: Mapping[str, ByKind]
    by_host: Mapping[str, ByKind]
    examples: Mapping[str, Sequence[str]]
    rules: Mapping[str, str]
    fields_changed: bool
    content_changed: bool
    extraction: ExtractionNumbers | None
    hosts_without_addresses: Sequence[str]
    failed_tests: Sequence[str]


class DeletionRow(Struct):
    """A held deletion, or with `site` those of a whole site that cannot be reached."""

    reason: str
    url: str | None = None
    site: str | None = None
    status: int | None = None
    last_fetch: Time | None = None
    documents: int = 1
    cause: str = ""
    since: Time | None = None


class DeletionsAnswer(Struct):
    """Held deletions: their numbers by reason, and some of them."""

    total: int
    by_reason: ByKind
    deletions: Sequence[DeletionRow]
    next: Annotated[str, Meta(description="`after` of the next page; empty at the end")] = ""


class DecidedAnswer(Struct):
    """What was approved or discarded."""

    changed: Annotated[int, Meta(description="held deletions that were approved or discarded")]
    fetched_now: Annotated[int, Meta(description="those whose page is being fetched at this moment")]
    notes: Annotated[Sequence[str], Meta(description="sentences about what follows")] = ()


class DueAnswer(Struct):
    """URLs that are due now."""

    due: int
    new: Annotated[int, Meta(description="those of them that were not known before")]
    crawling: Annotated[bool, Meta(description="whether a running crawl fetches them; else the next one does")]
    refused: Annotated[Sequence[str], Meta(description="a sentence for each URL that was refused")] = ()
    notes: Sequence[str] = ()


class CrawlAnswer(Struct):
    """A crawl that was started or asked to end."""

    sentence: str
    processes: Sequence[int] = ()
    log: str = ""


class DifferenceRow(Struct):
    """A document that differs between a sink and the stored state."""

    kind: Annotated[str, Meta(description="missing, extra or outdated")]
    url: str


class AuditRow(Struct):
    """A sink compared with the stored state, as `scrapy audit --json`."""

    sink: str
    documents: int
    missing: int
    extra: int
    outdated: int
    waiting: int
    refused: int
    of_others: int
    left_out: int
    fetched: int
    differences: Sequence[DifferenceRow]


class AuditAnswer(Struct):
    """The sinks of a collection compared with its stored state."""

    sinks: Sequence[AuditRow]
    notes: Sequence[str] = ()
