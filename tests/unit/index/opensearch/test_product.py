"""Which servers are taken, and which of them were tried."""

from __future__ import annotations

import pytest

from crawlspace.errors import IndexUnavailable
from crawlspace.index.json_client import Reply
from crawlspace.index.opensearch.sink import TESTED, product_of
from tests.command_line import ROOT


def body(number: object, distribution: str = "") -> dict[str, object]:
    return {"version": {"number": number} | ({"distribution": distribution} if distribution else {})}


KNOWN = [
    (body("2.19.1", "opensearch"), "OpenSearch 2.19.1", "flat_object", ""),
    (body("2.19.4", "opensearch"), "OpenSearch 2.19.4", "flat_object", ""),
    (body("3.8.0", "opensearch"), "OpenSearch 3.8.0", "flat_object", "OpenSearch 3.8.0 was not tried by us;"),
    (body("1.0.0", "opensearch"), "OpenSearch 1.0.0", "flat_object", "OpenSearch 1.0.0 was not tried by us;"),
    (body("7.10.2"), "Elasticsearch 7.10.2", "flattened", ""),
    (body("7.1.2", "opensearch"), "OpenSearch 7.1.2", "flat_object", "OpenSearch 7.1.2 was not tried by us;"),
    (body("9.1.0"), "Elasticsearch 9.1.0", "flattened", "Elasticsearch 9.1.0 was not tried by us;"),
    (body("10.0.0-SNAPSHOT"), "Elasticsearch 10.0.0-SNAPSHOT", "flattened", "Elasticsearch 10.0.0-SNAPSHOT was not tried"),
]


@pytest.mark.parametrize(("answer", "name", "flat_type", "warning"), KNOWN)
def test_products(answer: object, name: str, flat_type: str, warning: str) -> None:
    product = product_of("http://h", Reply(200, answer))
    assert (str(product), product.flat_type) == (name, flat_type)
    assert product.warning.startswith(warning)
    assert bool(product.warning) == bool(warning)


REFUSED = [
    (body("7.9.3"), "is Elasticsearch 7.9.3; 7.10 is the oldest that is supported"),
    (body("0.9.0", "opensearch"), "is OpenSearch 0.9.0; 1.0 is the oldest that is supported"),
    (body("new"), "is no OpenSearch or Elasticsearch"),
    (body(None), "is no OpenSearch or Elasticsearch"),
    (body("7.10.2\nand a line of its own"), "is no OpenSearch or Elasticsearch"),
]


@pytest.mark.parametrize(("answer", "sentence"), REFUSED)
def test_what_is_none_or_too_old_is_named(answer: object, sentence: str) -> None:
    with pytest.raises(IndexUnavailable, match=sentence):
        product_of("http://h", Reply(200, answer))


def test_the_versions_that_were_tried_are_documented() -> None:
    text = (ROOT / "docs" / "sinks.md").read_text(encoding="utf-8")
    for name, numbers in TESTED.items():
        for number in numbers:
            assert f"| {name} {number} |" in text
