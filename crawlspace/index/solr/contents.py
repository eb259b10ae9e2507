"""The documents in a core or collection: versions of single ones, and all of them in pages, without the remains of deleted ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from crawlspace.errors import IndexUnavailable
from crawlspace.index.json_client import Client, Reply, items, shown, table
from crawlspace.index.sink import Entry
from crawlspace.index.solr.documents import refused_whole
from crawlspace.urls import document_id

NOT_DELETED = "-deleted:true"
_PAGE = 1_000
_WHOLE_PAGE = 100
"""Documents with their texts in one request."""
_MAX_IDS = 10_000
_SOFT_COMMIT = {"commit": {"softCommit": True}}
_FIELDS = "id,url,version,collection,deleted"


class SolrContents:
    """The contents of one core or collection. All methods raise IndexUnavailable."""

    def __init__(self, client: Client, server: str, index: str) -> None:
        """`server` is the URL of the server, for messages."""
        self._client = client
        self._server = server
        self._index = index

    def look_up(self, urls: Sequence[str]) -> dict[str, Entry]:
        by_id = {document_id(url): url for url in urls}
        stored = self._client.run(self.versions(list(by_id)))
        return {by_id[id]: Entry(by_id[id], version, owner) for id, (version, owner) in stored.items() if owner is not None}

    def sources(self, urls: Sequence[str], *, only: str = "") -> dict[str, Mapping[str, object]]:
        """Return the stored documents of URLs, or one field of each."""
        by_id = {document_id(url): url for url in urls}
        found: dict[str, Mapping[str, object]] = {}
        for first in range(0, len(by_id), _WHOLE_PAGE):
            ids = list(by_id)[first : first + _WHOLE_PAGE]
            for _ in range(2):  # see `versions`
                for one in self._client.run(self.get(ids, f"{_FIELDS},{only}" if only else "*")):
                    found[by_id[str(one.get("id"))]] = one
        return {url: one for url, one in found.items() if not one.get("deleted")}

    def duplicates_of(self, urls: Sequence[str]) -> dict[str, list[str]]:
        found = self.sources(urls, only="duplicates")
        return {url: list(map(str, items(source.get("duplicates")))) for url, source in found.items()}

    def entries(self, *, owner: str | None, except_for: str | None = None) -> Iterator[Sequence[Entry]]:
        self._commit()
        cursor, before = "*", ""
        while cursor != before:
            query = {
                "query": "*:*",
                "filter": _filter(owner, except_for),
                "sort": "id asc",
                "limit": _PAGE,
                "fields": ["url", "version", "collection"],
                "params": {"defType": "lucene", "cursorMark": cursor, "wt": "json"},
            }
            body = self._client.run(self._select(query, "nextCursorMark"))
            page = [Entry(str(one.get("url", "")), version_of(one), str(one.get("collection", ""))) for one in documents_of(body)]
            if page:
                yield page
            before, cursor = cursor, str(body["nextCursorMark"])

    def count(self, *, owner: str | None) -> int:
        self._commit()
        return self._client.run(self.count_found(owner))

    async def count_found(self, owner: str | None) -> int:
        """Return the number of documents of a collection, or of all, that a search finds."""
        query = {"query": "*:*", "filter": _filter(owner, None), "limit": 0, "params": {"defType": "lucene", "wt": "json"}}
        number = table((await self._select(query, "response"))["response"]).get("numFound")
        return number if isinstance(number, int) else 0

    async def ids_of_all(self, prefix: str) -> list[str]:
        """Return the ids with a prefix, those of deleted documents included."""
        self._answered(await self._client.request("POST", f"/{self._index}/update", body=_SOFT_COMMIT))
        domain = {"query": f"{{!prefix f=id}}{prefix}"}
        ids = {"ids": {"type": "terms", "field": "id", "limit": _MAX_IDS, "domain": domain}}
        query = {"query": "*:*", "limit": 0, "facet": ids, "params": {"defType": "lucene", "wt": "json"}}
        found = table(table((await self._select(query, "facets"))["facets"]).get("ids"))
        return [str(one.get("val")) for one in map(table, items(found.get("buckets")))]

    async def versions(self, ids: Sequence[str]) -> dict[str, tuple[int, str | None]]:
        """Return version and owner of documents, committed or not; no owner: it is deleted.

        Solr misses documents that are committed while it looks up many, because it continues with the searcher that it began with
        (RealTimeGetComponent). The second look-up finds them.
        """
        found = await self.look_up_once(ids)
        for id, entry in (await self.look_up_once(ids)).items():
            found[id] = max(found.get(id, entry), entry, key=itemgetter(0))
        return found

    async def look_up_once(self, ids: Sequence[str]) -> dict[str, tuple[int, str | None]]:
        """Return the same after one look-up: a missing document may be there."""
        found: dict[str, tuple[int, str | None]] = {}
        for first in range(0, len(ids), _PAGE):
            for one in await self.get(ids[first : first + _PAGE], _FIELDS):
                owner = None if one.get("deleted") else str(one.get("collection", ""))
                found[str(one.get("id"))] = version_of(one), owner
        return found

    async def get(self, ids: Sequence[str], fields: str) -> list[Mapping[str, object]]:
        """Return documents as they are at this moment, deleted ones included."""
        if not ids:
            return []
        parameters = {"ids": ",".join(ids), "fl": fields, "wt": "json"}
        reply = await self._client.request("POST", f"/{self._index}/get", body={"params": parameters})
        return documents_of(self._answered(reply, "response"))

    async def _select(self, query: Mapping[str, object], part: str) -> Mapping[str, object]:
        return self._answered(await self._client.request("POST", f"/{self._index}/select", body=query), part)

    def _commit(self) -> None:
        """Let searches find documents sent before."""
        self._answered(self._client.run(self._client.request("POST", f"/{self._index}/update", body=_SOFT_COMMIT)))

    def _answered(self, reply: Reply, part: str = "responseHeader") -> Mapping[str, object]:
        return answered(reply, f"{self._index} at {self._server}", part)


def answered(reply: Reply, where: str, part: str = "responseHeader") -> Mapping[str, object]:
    """Return an answer that has a part. Raises IndexUnavailable for any other, and for one without some shards."""
    if not reply.is_ok:
        raise IndexUnavailable(f"{where}: {refused_whole(reply.status, reply.body).why}")
    body = table(reply.body)
    if part not in body or table(body.get("responseHeader")).get("partialResults"):
        raise IndexUnavailable(f"{where} does not answer in full: {shown(reply.body)}")
    return body


def documents_of(body: Mapping[str, object]) -> list[Mapping[str, object]]:
    return list(map(table, items(table(body.get("response")).get("docs"))))


def pair_of(written: object) -> tuple[str, str]:
    """Return name and value of a value of the field `fields`, as `color=red`."""
    name, _, value = str(written).partition("=")
    return name, value


def version_of(document: Mapping[str, object]) -> int:
    version = document.get("version")
    return version if isinstance(version, int) else 0


def _filter(owner: str | None, except_for: str | None) -> list[object]:
    filters: list[object] = [NOT_DELETED]
    if owner is not None:
        filters.append(f"{{!term f=collection}}{owner}")
    if except_for is not None:
        filters += ["url:*", {"bool": {"must": "*:*", "must_not": {"term": {"f": "collection", "query": except_for}}}}]
    return filters
