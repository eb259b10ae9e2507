"""What an index on OpenSearch or Elasticsearch has: versions of single documents, and all of them in pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from crawlspace.errors import IndexUnavailable
from crawlspace.index.json_client import Client, Reply, items, table
from crawlspace.index.opensearch.bulk import cause_of, refused_whole
from crawlspace.index.sink import Entry
from crawlspace.urls import document_id

PAGE = 1_000
_KEPT = ["url", "collection"]
_TEXT_SORTED = "Text fields are not optimised"
"""How both servers begin to refuse to sort by a text."""


class IndexContents:
    """The contents of one index, or of the one behind an alias. All raise IndexUnavailable."""

    def __init__(self, client: Client, server: str, index: str) -> None:
        """`server` is the URL of the server, for messages."""
        self._client = client
        self._server = server
        self._index = index

    def look_up(self, urls: Sequence[str]) -> dict[str, Entry]:
        """Return the entries of those URLs that have a document, as they are at this moment."""
        return {url: entry for url, (entry, _) in self._found(urls, ",".join(_KEPT)).items()}

    def sources(self, urls: Sequence[str], *, only: str = "") -> dict[str, tuple[Entry, Mapping[str, object]]]:
        """Return entries with all that is stored of them, or with one field."""
        return self._found(urls, ",".join([only, *_KEPT]) if only else "true")

    def entries(self, *, owner: str | None, except_for: str | None = None) -> Iterator[Sequence[Entry]]:
        """Yield the entries of a collection, of all, or of all but one collection."""
        self._answered(self._client.run(self._client.request("POST", f"/{self._index}/_refresh")))
        after: object = None
        while True:
            body: dict[str, object] = {
                "size": PAGE,
                "version": True,
                "_source": _KEPT,
                "query": _query(owner, except_for),
                "sort": [{"id": {"order": "asc", "unmapped_type": "keyword"}}],
            }
            if after is not None:
                body["search_after"] = after
            reply = self._answered(self._client.run(self._client.request("POST", f"/{self._index}/_search", body=body)))
            hits = list(map(table, items(table(table(reply.body).get("hits")).get("hits"))))
            if not hits:
                return
            yield [_entry(hit) for hit in hits]
            after = hits[-1].get("sort")

    def count(self, *, owner: str | None) -> int:
        """Return how many documents a collection has there, or all have, once what was written is visible."""
        self._answered(self._client.run(self._client.request("POST", f"/{self._index}/_refresh")))
        body = {"query": _query(owner, None)}
        reply = self._answered(self._client.run(self._client.request("POST", f"/{self._index}/_count", body=body)))
        number = table(reply.body).get("count")
        return number if isinstance(number, int) else 0

    async def get(self, ids: Sequence[str], source: str) -> dict[str, tuple[Entry, Mapping[str, object]]]:
        """Return those documents that are there, by id, each with the fields that `source` names."""
        found: dict[str, tuple[Entry, Mapping[str, object]]] = {}
        for first in range(0, len(ids), PAGE):
            body = {"ids": ids[first : first + PAGE]}
            reply = self._answered(
                await self._client.request("POST", f"/{self._index}/_mget", body=body, parameters={"_source": source})
            )
            for one in map(table, items(table(reply.body).get("docs"))):
                if one.get("found"):
                    found[str(one.get("_id"))] = _entry(one), table(one.get("_source"))
        return found

    def _found(self, urls: Sequence[str], source: str) -> dict[str, tuple[Entry, Mapping[str, object]]]:
        names = {document_id(url): url for url in urls}
        return {names[id]: found for id, found in self._client.run(self.get(list(names), source)).items()}

    def _answered(self, reply: Reply) -> Reply:
        if not reply.is_ok:
            why = cause_of(reply.body) or refused_whole(reply.status, reply.body).why
            if _TEXT_SORTED in why:
                why = "its documents cannot be put in order; the template must have the field id as keyword"
            raise IndexUnavailable(f"{self._server} does not tell what {self._index} has: {why}")
        return reply


def _query(owner: str | None, except_for: str | None) -> dict[str, object]:
    filters: list[object] = [{"exists": {"field": "url"}}]
    if owner is not None:
        filters.append({"term": {"collection": owner}})
    without = [] if except_for is None else [{"term": {"collection": except_for}}]
    return {"bool": {"filter": filters, "must_not": without}}


def _entry(hit: Mapping[str, object]) -> Entry:
    source, version = table(hit.get("_source")), hit.get("_version")
    return Entry(str(source.get("url", "")), version if isinstance(version, int) else 0, str(source.get("collection", "")))
