"""Which server answers: OpenSearch or Elasticsearch, its version, and whether that one was ever tried."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from crawlspace.errors import IndexUnavailable
from crawlspace.index.json_client import Reply, shown, table

TESTED: Mapping[str, tuple[str, ...]] = {"OpenSearch": ("2.19.1",), "Elasticsearch": ("7.10.2",)}
"""The versions that `make test-servers` runs the tests on. One that differs in its last number alone counts as tried."""
_OLDEST = {"OpenSearch": (1, 0), "Elasticsearch": (7, 10)}


@dataclass(frozen=True, slots=True)
class Product:
    """What a server says that it is."""

    name: str
    number: str
    """Its version, as it is written."""

    def __str__(self) -> str:
        return f"{self.name} {self.number}"

    @property
    def flat_type(self) -> str:
        """Return the type of a field that takes an object as it is, if the server has one: a mapping cannot grow by what is in it."""
        return "flat_object" if self.name == "OpenSearch" else "flattened"

    @property
    def warning(self) -> str:
        """Return a sentence if it was never tried; empty if it was."""
        if _two(self.number) in map(_two, TESTED[self.name]):
            return ""
        tried = " and ".join(f"{name} {number}" for name, numbers in TESTED.items() for number in numbers)
        return f"{self} was not tried by us; {tried} were. See that documents arrive, and that it refuses none"


def product_of(url: str, reply: Reply) -> Product:
    """Return what has answered to `GET /`. Raises IndexUnavailable if it is none of the two, or too old."""
    if reply.status in (401, 403):
        raise IndexUnavailable(
            f"{url} refuses access (HTTP status {reply.status}): check user and password, or the API key, of the sink"
        )
    if reply.status in (429, 503):
        raise IndexUnavailable(f"{url} is not ready (HTTP status {reply.status})")
    version = table(table(reply.body).get("version"))
    number = str(version.get("number", ""))
    if not reply.is_ok or not re.match(r"\d+\.\d+[\w.-]{0,40}$", number):
        raise IndexUnavailable(f"{url} is no OpenSearch or Elasticsearch: it answers {reply.status} {shown(reply.body)}")
    product = Product("OpenSearch" if version.get("distribution") == "opensearch" else "Elasticsearch", number)
    if _two(number) < _OLDEST[product.name]:
        oldest = ".".join(map(str, _OLDEST[product.name]))
        raise IndexUnavailable(f"{url} is {product}; {oldest} is the oldest that is supported")
    return product


def _two(number: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(map(int, re.findall(r"\d+", number)[:2]))
