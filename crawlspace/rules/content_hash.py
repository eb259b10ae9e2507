"""The hash of rules and limits: a change of the hash means that decisions may change."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import blake2b
from typing import NamedTuple

from crawlspace.rules.crawl_rules import CrawlRules, Rule
from crawlspace.rules.limits import Limits


def content_hash(rules: CrawlRules, limits: Limits, *, beside: Mapping[str, object]) -> str:
    """Return the hash. Comments, blanks, spelling and line numbers have no effect; the order of rules of one type has."""
    content = {
        "format": 1,
        "domain": _Texts(rules.domain),
        "prefix": _Texts(rules.prefix),
        "address": _Texts(rules.address),
        "limits": {name: sorted(value) if isinstance(value, frozenset) else value for name, value in asdict(limits).items()},
        **beside,
    }
    hashed = blake2b(digest_size=16)
    for text in _as_json(content):
        hashed.update(text.encode())
    return hashed.hexdigest()


class _Texts(NamedTuple):
    """The rules of one list as a list of texts, generated one at a time."""

    rules: Sequence[Rule]


def _as_json(content: Mapping[str, object]) -> Iterator[str]:
    """Yield the parts of `json.dumps` of a mapping, keys sorted."""
    before = "{"
    for key in sorted(content):
        value = content[key]
        yield f"{before}{json.dumps(key)}: "
        before = ", "
        if isinstance(value, _Texts):
            yield "["
            for number, rule in enumerate(value.rules):
                yield f"{', ' if number else ''}{json.dumps(f'{rule.action} {rule.target}')}"
            yield "]"
        else:
            yield json.dumps(value, sort_keys=True)
    yield "}"
