"""A server that answers as Solr does, as far as our sink asks it: for tests that have no Java.

What it does was seen of Solr 9.10.1, and the same tests run on that one (`make test-servers`): versions by
DocBasedVersionConstraintsProcessorFactory, errors by TolerantUpdateProcessorFactory, what is left of deleted documents, real-time get,
commits, `cursorMark`, and cores that are made, exchanged and unloaded. Its fields are those of the schema that we ship.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from xml.etree import ElementTree as ET

from crawlspace.index.solr.sink import CONF

MOST_BYTES = 32_766
"""Of a string."""
_NO_CORE = "<html><h2>HTTP ERROR 404 Can not find: %s</h2></html>"


class SolrError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Schema:
    fields: dict[str, tuple[str, bool]]
    """Type, and whether it takes several values; by name, which may begin with *."""

    @classmethod
    def of_ours(cls) -> Schema:
        root = ET.parse(CONF / "schema.xml").getroot()
        found = [one for one in root if one.tag in ("field", "dynamicField")]
        return cls({one.attrib["name"]: (one.attrib["type"], one.get("multiValued") == "true") for one in found})

    @classmethod
    def bare(cls) -> Schema:
        return cls({"id": ("string", False), "_version_": ("plong", False)})

    def check(self, document: Mapping[str, Any]) -> None:
        """Raise SolrError for a value that has no place."""
        id = document["id"]
        for name, value in document.items():
            found = self.fields.get(name) or next((self.fields[one] for one in self.fields if fnmatchcase(name, one)), None)
            if found is None:
                raise SolrError(400, f"ERROR: [doc={id}] unknown field '{name}'")
            kind, takes_several = found
            values = value if isinstance(value, list) else [value]
            if len(values) > 1 and not takes_several:
                raise SolrError(400, f"ERROR: [doc={id}] multiple values encountered for non multiValued field {name}: {values}")
            for one in values:
                self._check(id, name, kind, one)

    @staticmethod
    def _check(id: str, name: str, kind: str, value: Any) -> None:
        if kind == "pdate" and not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(value)):
            raise SolrError(400, f"ERROR: [doc={id}] Error adding field '{name}'='{value}' msg=Invalid Date String:'{value}'")
        if kind == "plong" and not (isinstance(value, int) and abs(value) < 1 << 63):
            raise SolrError(400, f"Invalid Number: {value}")
        if kind == "string" and len(str(value).encode()) > MOST_BYTES:
            why = f'Document contains at least one immense term in field="{name}"'
            raise SolrError(400, f"Exception writing document id {id} to the index; possible analysis error: {why}")


@dataclass
class Core:
    schema: Schema
    chains: frozenset[str]
    folder: str = ""
    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    """As they are at this moment."""
    committed: dict[str, dict[str, Any]] = field(default_factory=dict)
    """As a search finds them."""
    commit_at: float | None = None

    def add(self, document: dict[str, Any], *, has_chain: bool) -> None:
        """Add a document, by our chain one with a version above the present one. Raises SolrError."""
        if not isinstance(document.get("version"), int):
            raise SolrError(500, "Doc does not have versionField: version")
        if document["version"] >= 1 << 63:
            raise SolrError(400, f"Invalid Number: {document['version']}")
        there = self.documents.get(document["id"])
        if has_chain and there is not None and there["version"] >= document["version"]:
            raise SolrError(409, f"user version is not high enough: [{document['version']}]")
        self.schema.check(document)
        self.documents[document["id"]] = {
            name: value for name, value in document.items() if name != "address"
        }  # it is not stored

    def commit(self) -> None:
        self.committed = dict(self.documents)
        self.commit_at = None

    def found(self) -> Iterator[dict[str, Any]]:
        """What a search finds, by id."""
        if self.commit_at is not None and time.monotonic() >= self.commit_at:
            self.commit()
        return (self.committed[id] for id in sorted(self.committed))


class SolrStandIn:
    """Cores `intranet`, as we ship it, and `bare`, which has neither our fields nor our chain. A core that is unloaded is empty afterwards."""

    def __init__(self) -> None:
        self.cores = {
            "intranet": Core(Schema.of_ours(), frozenset({"crawlspace"}), "intranet"),
            "bare": Core(Schema.bare(), frozenset(), "bare"),
        }
        self.configured = {"intranet", "configsets/crawlspace"}
        """The folders that have a configuration."""
        self._unloaded: dict[str, Core] = {}
        self._lock = Lock()
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def _serve(self) -> None:
                parts = urlsplit(self.path)
                text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                status, answer = stand_in.answer(parts.path, dict(parse_qsl(parts.query)), text)
                data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/html" if isinstance(answer, str) else "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = _serve  # noqa: N815 - the names that http.server calls

            def log_message(self, *_: object) -> None:
                """It says nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/solr"
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, parameters: dict[str, str], text: str) -> tuple[int, Any]:
        """Return status and body of an answer; text is that of a page."""
        with self._lock:
            try:
                return self._answer(path.removeprefix("/solr"), parameters, text)
            except SolrError as error:
                return error.status, _failed(error, {})

    def _answer(self, path: str, parameters: dict[str, str], text: str) -> tuple[int, Any]:
        if path == "/admin/info/system":
            return 200, _ok() | {"mode": "std", "lucene": {"solr-spec-version": "9.10.1"}}
        if path == "/admin/cores":
            return 200, self._admin(parameters)
        _, name, rest = path.split("/", 2)
        core = self.cores.get(name)
        if core is None:
            return 404, _NO_CORE % path
        if rest == "admin/luke":
            return 200, _ok() | {"schema": _luke(core.schema)}
        try:
            body = json.loads(text)
        except ValueError as error:
            raise SolrError(400, f"Cannot parse provided JSON: {error}") from error
        match rest:
            case "update":
                return _update(core, parameters, body)
            case "get":
                asked = body["params"]
                if not asked["ids"]:
                    return 200, {}
                there = [core.documents[id] for id in asked["ids"].split(",") if id in core.documents]
                return 200, {"response": _documents(there, asked.get("fl", "*").split(","))}
            case "select":
                return 200, _ok() | _select(core, body)
        return 404, _NO_CORE % path

    def _admin(self, parameters: dict[str, str]) -> dict[str, Any]:
        """Do what CoreAdmin does."""
        name = parameters.get("core") or parameters.get("name", "")
        match parameters["action"]:
            case "STATUS":
                return _ok() | {"status": {name: {"instanceDir": f"/home/{one.folder}"} for name, one in self.cores.items()}}
            case "UNLOAD":
                unloaded = self.cores.pop(name)
                if parameters.get("deleteIndex") != "true":
                    self._unloaded[name] = unloaded
            case "SWAP":
                other = parameters["other"]
                self.cores[name], self.cores[other] = self.cores[other], self.cores[name]
            case "CREATE" if name in self._unloaded:
                self.cores[name] = self._unloaded.pop(name)
            case "CREATE":
                configuration = (
                    f"configsets/{parameters['configSet']}" if "configSet" in parameters else parameters["instanceDir"]
                )
                if configuration not in self.configured:
                    raise SolrError(400, f"Error CREATEing SolrCore '{name}': Can't find resource in '/home/{configuration}'")
                assert name not in self.cores
                assert parameters["instanceDir"] not in {one.folder for one in self.cores.values()}
                self.cores[name] = Core(Schema.of_ours(), frozenset({"crawlspace"}), parameters["instanceDir"])
        return _ok()


def _update(core: Core, parameters: dict[str, str], body: Any) -> tuple[int, Any]:
    chain = parameters.get("update.chain")
    if chain is not None and chain not in core.chains:
        raise SolrError(400, f"unknown UpdateRequestProcessorChain: {chain}")
    if isinstance(body, dict):
        if "delete" in body:  # it passes without a version
            if "id" in body["delete"]:
                core.documents.pop(body["delete"]["id"])
            else:
                assert body["delete"] == {"query": "*:*"}
                core.documents.clear()
        if "commit" in body:
            core.commit()
        return 200, _ok()
    most = int(parameters.get("maxErrors", "-1"))
    errors: list[dict[str, str]] = []
    header: dict[str, Any] = {"errors": errors, "maxErrors": most}
    for document in body:
        try:
            core.add(document, has_chain=chain is not None)
        except SolrError as error:
            errors.append({"type": "ADD", "id": document["id"], "message": str(error)})
            if 0 <= most < len(errors):
                return error.status, _failed(error, header)
    if "commitWithin" in parameters:
        at = time.monotonic() + int(parameters["commitWithin"]) / 1000
        core.commit_at = min(at, core.commit_at or at)
    if parameters.get("commit") == "true":
        core.commit()
    return 200, _ok(header)


def _select(core: Core, body: dict[str, Any]) -> dict[str, Any]:
    assert body["query"] == "*:*", "it cannot search for words"
    found = [one for one in core.found() if not one.get("deleted")]
    for condition in body.get("filter", []):
        if isinstance(condition, dict) and "term" in condition:
            of = condition["term"]
            found = [one for one in found if one.get(of["f"]) == of["query"]]
        elif isinstance(condition, dict):
            without = condition["bool"]["must_not"]["term"]
            found = [one for one in found if one.get(without["f"]) != without["query"]]
        elif condition == "-deleted:true":
            continue  # it is so anyway
        elif condition == "url:*":
            found = [one for one in found if "url" in one]
        else:
            parser, name, value = re.fullmatch(r"\{!(terms?) f=(\w+)\}(.*)", condition, re.DOTALL).groups()  # type: ignore[union-attr]
            wanted = set(value.split(",")) if parser == "terms" else {value}
            found = [one for one in found if wanted & set(one[name] if isinstance(one.get(name), list) else [one.get(name)])]
    count, mark = len(found), body.get("params", {}).get("cursorMark")
    if mark is not None:
        assert body["sort"] == "id asc"
        found = [one for one in found if mark == "*" or one["id"] > mark]
    found = found[: body["limit"]]
    ids = body.get("facet", {}).get("ids", {}).get("domain", {}).get("query", "")
    beginning = ids.removeprefix("{!prefix f=id}")
    facets = [{"val": id, "count": 1} for id in core.committed if id.startswith(beginning)]
    last = {"nextCursorMark": found[-1]["id"] if found else mark} if mark is not None else {}
    answer = {"response": _documents(found, body.get("fields", ["*"])) | {"numFound": count}} | last
    return answer | ({"facets": {"ids": {"buckets": facets}}} if ids else {})


def _documents(found: list[dict[str, Any]], names: list[str]) -> dict[str, Any]:
    docs = [{name: value for name, value in one.items() if "*" in names or name in names} for one in found]
    return {"numFound": len(docs), "start": 0, "docs": docs}


def _luke(schema: Schema) -> dict[str, Any]:
    kinds = {name: {"type": kind} for name, (kind, _) in schema.fields.items()}
    return {
        "fields": {name: kind for name, kind in kinds.items() if "*" not in name},
        "dynamicFields": {name: kind for name, kind in kinds.items() if "*" in name},
    }


def _ok(header: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"responseHeader": {**(header or {}), "status": 0, "QTime": 1}}


def _failed(error: SolrError, header: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "responseHeader": {**header, "status": error.status, "QTime": 1},
        "error": {"metadata": {}, "msg": str(error), "code": error.status},
    }
