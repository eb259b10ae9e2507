"""The documents in an index: versions of single ones, and all of them in pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from crawlspace.errors import IndexUnavailable
from crawlspace.index.json_client import Client, Reply, items, table
from crawlspace.index.opensearch.bulk import cause_of, refused_whole
from crawlspace.index.sink import Entry
from crawlspace.urls import document_id

_PAGE = 1_000
_FIELDS = ["url", "collection"]
_TEXT_SORTED = "Text fields are not optimised"
"""The beginning of the error of both servers for sorting by a text."""


class IndexContents:
    """The contents of one index, or of the one behind an alias. All methods raise IndexUnavailable."""

    def __init__(self, client: Client, server: str, index: str) -> None:
        """`server` is the URL of the server, for messages."""
        self._client = client
        self._server = server
        self._index = index

    def look_up(self, urls: Sequence[str]) -> dict[str, Entry]:
        return {url: entry for url, (entry, _) in self._found(urls, ",".join(_FIELDS)).items()}

    def sources(self, urls: Sequence[str]) -> dict[str, tuple[Entry, Mapping[str, object]]]:
        """Return the entries of URLs with their stored documents."""
        return self._found(urls, "true")

    def duplicates_of(self, urls: Sequence[str]) -> dict[str, list[str]]:
        found = self._found(urls, ",".join(["duplicates", *_FIELDS]))
        return {url: list(map(str, items(source.get("duplicates")))) for url, (_, source) in found.items()}

    def entries(self, *, owner: str | None, except_for: str | None = None) -> Iterator[Sequence[Entry]]:
        self._ask("_refresh")
        after: object = None
        while True:
            body: dict[str, object] = {
                "size": _PAGE,
                "version": True,
                "_source": _FIELDS,
                "query": _query(owner, except_for),
                "sort": [{"id": {"order": "asc", "unmapped_type": "keyword"}}],
            }
            if after is not None:
                body["search_after"] = after
            hits = hits_of(self._ask("_search", body))
            if not hits:
                return
            yield [_entry(hit) for hit in hits]
            after = hits[-1].get("sort")

    def count(self, *, owner: str | None) -> int:
        self._ask("_refresh")
        number = self._ask("_count", {"query": _query(owner, None)}).get("count")
        return number if isinstance(number, int) else 0

    async def get(self, ids: Sequence[str], source: str) -> dict[str, tuple[Entry, Mapping[str, object]]]:
        """Return the entries of stored documents by id, with the fields that `source` names."""
        found: dict[str, tuple[Entry, Mapping[str, object]]] = {}
        for first in range(0, len(ids), _PAGE):
            body = {"ids": ids[first : first + _PAGE]}
            reply = await self._client.request("POST", f"/{self._index}/_mget", body=body, parameters={"_source": source})
            for one in map(table, items(self._answered(reply).get("docs"))):
                if one.get("found"):
                    found[str(one.get("_id"))] = _entry(one), table(one.get("_source"))
        return found

    def _found(self, urls: Sequence[str], source: str) -> dict[str, tuple[Entry, Mapping[str, object]]]:
        by_id = {document_id(url): url for url in urls}
        return {by_id[id]: found for id, found in self._client.run(self.get(list(by_id), source)).items()}

    def _ask(self, action: str, body: object = None) -> Mapping[str, object]:
        return self._answered(self._client.run(self._client.request("POST", f"/{self._index}/{action}", body=body)))

    def _answered(self, reply: Reply) -> Mapping[str, object]:
        if not reply.is_ok:
            why = cause_of(reply.body) or refused_whole(reply.status, reply.body).why
            if _TEXT_SORTED in why:
                why = "its documents cannot be put in order; the template must have the field id as keyword"
            raise cannot_read(self._index, self._server, why)
        return table(reply.body)


def cannot_read(index: str, server: str, why: str) -> IndexUnavailable:
    """Return the error for an index whose documents cannot be read."""
    return IndexUnavailable(f"{server} does not return the documents of {index}: {why}")


def hits_of(answer: object) -> list[Mapping[str, object]]:
    """Return the hits in the answer to a search."""
    return list(map(table, items(table(table(answer).get("hits")).get("hits"))))


def _query(owner: str | None, except_for: str | None) -> dict[str, object]:
    filters: list[object] = [{"exists": {"field": "url"}}]
    if owner is not None:
        filters.append({"term": {"collection": owner}})
    without = [] if except_for is None else [{"term": {"collection": except_for}}]
    return {"bool": {"filter": filters, "must_not": without}}


def _entry(hit: Mapping[str, object]) -> Entry:
    source, version = table(hit.get("_source")), hit.get("_version")
    return Entry(str(source.get("url", "")), version if isinstance(version, int) else 0, str(source.get("collection", "")))
