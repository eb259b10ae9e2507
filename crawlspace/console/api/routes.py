"""All addresses of the JSON interface."""

from __future__ import annotations

from http import HTTPStatus

from crawlspace.console.api import answers as to
from crawlspace.console.api import changing, deletions, documents, reading
from crawlspace.console.api import parameters as of
from crawlspace.console.api.operations import JSON, LINES, MARKDOWN, Operation, posts, reads
from crawlspace.console.users import Role

_OF_ONE = "/collections/{name}"
_CONFLICT = (HTTPStatus.CONFLICT,)
_ID = {"id": "the id of a document, as `search` gives it"}

OPERATIONS: tuple[Operation, ...] = (
    reads(
        "/collections",
        "list_collections",
        reading.collections,
        takes=of.NoParameters,
        answers=to.CollectionsAnswer,
        summary="List the collections of the project",
    ),
    reads(
        f"{_OF_ONE}/status",
        "get_status",
        reading.status,
        takes=of.NoParameters,
        answers=to.StatusAnswer,
        summary="Show a collection in numbers",
    ),
    reads(
        f"{_OF_ONE}/urls",
        "list_urls",
        reading.urls,
        takes=of.UrlsQuery,
        answers=to.UrlRow,
        summary="List the known URLs, a JSON object a line",
        media=(LINES,),
        errors=_CONFLICT,
    ),
    reads(
        f"{_OF_ONE}/explain",
        "explain_url",
        reading.explain_one,
        takes=of.ExplainQuery,
        answers=to.ExplainAnswer,
        summary="Explain why a URL is crawled or not",
    ),
    posts(
        f"{_OF_ONE}/explain",
        "explain_urls",
        reading.explain_several,
        takes=of.ExplainBody,
        answers=to.ExplanationsAnswer,
        summary="Explain why URLs are crawled or not; changes nothing",
        role=Role.VIEWER,
    ),
    reads(
        f"{_OF_ONE}/search",
        "search",
        documents.search_documents,
        takes=of.SearchQueryParameters,
        answers=to.HitsAnswer,
        summary="Search in the index of a collection",
    ),
    reads(
        f"{_OF_ONE}/documents",
        "get_document_of_url",
        documents.document_of_url,
        takes=of.DocumentByUrlQuery,
        answers=to.DocumentAnswer,
        summary="Return the document of a URL, or the one that represents it",
        media=(JSON, MARKDOWN),
    ),
    reads(
        f"{_OF_ONE}/documents/{{id}}",
        "get_document",
        documents.document,
        takes=of.DocumentQuery,
        answers=to.DocumentAnswer,
        summary="Return the document with an id, from the embedded index",
        media=(JSON, MARKDOWN),
        path_parameters=_ID,
    ),
    reads(
        f"{_OF_ONE}/sinks",
        "list_sinks",
        reading.sinks,
        takes=of.NoParameters,
        answers=to.SinksAnswer,
        summary="Show the sinks of a collection and their waiting orders",
    ),
    reads(
        f"{_OF_ONE}/sinks/{{sink}}/parked",
        "list_parked",
        reading.parked,
        takes=of.NoParameters,
        answers=to.ParkedAnswer,
        summary="List the documents that a sink refuses",
        path_parameters={"sink": "the name of a sink"},
    ),
    reads(
        f"{_OF_ONE}/plan",
        "get_plan",
        changing.plan,
        takes=of.NoParameters,
        answers=to.PlannedAnswer,
        summary="Show what the next start would change, because rules or settings are not as they were; one at a time",
        errors=_CONFLICT,
    ),
    reads(
        f"{_OF_ONE}/audit",
        "audit_sinks",
        changing.audit,
        takes=of.AuditQuery,
        answers=to.AuditAnswer,
        summary="Compare the sinks with the stored state, document by document; one at a time",
        errors=_CONFLICT,
    ),
    posts(
        f"{_OF_ONE}/audit/repair",
        "repair_sinks",
        changing.repair,
        takes=of.AuditQuery,
        answers=to.AuditAnswer,
        summary="Compare the sinks with the stored state, and send what is missing or outdated, delete what is extra",
        errors=_CONFLICT,
    ),
    posts(
        f"{_OF_ONE}/recrawl",
        "recrawl_urls",
        changing.recrawl_urls,
        takes=of.RecrawlBody,
        answers=to.DueAnswer,
        summary="Have URLs fetched again before their time",
        errors=_CONFLICT,
    ),
    posts(
        f"{_OF_ONE}/add",
        "add_urls",
        changing.add_urls,
        takes=of.AddBody,
        answers=to.DueAnswer,
        summary="Enter URLs by hand, if the rules admit them",
    ),
    posts(
        f"{_OF_ONE}/crawl/start",
        "start_crawl",
        changing.start_crawl,
        takes=of.NoParameters,
        answers=to.CrawlAnswer,
        summary="Start a crawl on the machine of the console",
        errors=_CONFLICT,
    ),
    posts(
        f"{_OF_ONE}/crawl/stop",
        "stop_crawl",
        changing.stop_crawl,
        takes=of.NoParameters,
        answers=to.CrawlAnswer,
        summary="Ask the crawl on the machine of the console to end, as Ctrl-C does",
        errors=_CONFLICT,
    ),
    reads(
        f"{_OF_ONE}/deletions",
        "list_deletions",
        deletions.deletions,
        takes=of.DeletionsQuery,
        answers=to.DeletionsAnswer,
        summary="List held deletions, with their numbers by reason",
    ),
    posts(
        f"{_OF_ONE}/deletions/approve",
        "approve_deletions",
        deletions.approve,
        takes=of.DecisionBody,
        answers=to.DecidedAnswer,
        summary="Delete the documents whose deletion is held: all, or those with a reason or of a host",
        errors=_CONFLICT,
    ),
    posts(
        f"{_OF_ONE}/deletions/discard",
        "discard_deletions",
        deletions.discard,
        takes=of.DecisionBody,
        answers=to.DecidedAnswer,
        summary="Drop held deletions: the documents stay until their pages are fetched again",
        errors=_CONFLICT,
    ),
)
