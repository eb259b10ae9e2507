"""Error handling by status code: CRAWLSPACE_HTTP_ERRORS in the form of FAST's crawler.

{"404": "DELETE", "4xx": "DELETE", "5xx": "DELETE:10, RETRY:3", "ttl": "DELETE:3", "net": "DELETE:3, RETRY:1", "int": "KEEP"}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from crawlspace.errors import SettingError
from crawlspace.parsing import table
from crawlspace.status import Status
from crawlspace.text import quoted

NAME = "CRAWLSPACE_HTTP_ERRORS"
_NEVER_DELETE = (Status.LOGGED_OUT, Status.NOT_RENDERED, Status.PROXY_FAILED)
OWN_ERRORS = frozenset(int(status) for status in Status if 611 <= status <= 699 and status not in _NEVER_DELETE)
"""Our own codes that are errors of a fetch, not decisions about a URL. A refused log-in, or a failing browser or proxy, never deletes a
document."""
CLASSES = {
    "4xx": frozenset(range(400, 500)),
    "5xx": frozenset(range(500, 600)),
    "ttl": frozenset({Status.TIMEOUT}),
    "net": frozenset(
        {
            Status.READ_ERROR,
            Status.CONNECT_ERROR,
            Status.TLS_FAILED,
            Status.CUT_SHORT,
            Status.NO_SUCH_HOST,
            Status.NO_DNS_ANSWER,
        }
    ),
    "int": frozenset({Status.UNEXPECTED}),
}
"""Names for more than one code; no code has two."""
MOST_RETRIES = 100


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """`keep`: never delete. Otherwise delete after `after` errors in a row, one a run; `retries`: additional tries in a run, None = as usual."""

    keep: bool
    after: int = 1
    retries: int | None = None


@dataclass(frozen=True, slots=True)
class ErrorRules:
    """The rules by name: a code, `4xx`, `5xx`, `ttl`, `net` or `int`."""

    by_name: Mapping[str, ErrorRule] = field(default_factory=dict)

    def of(self, status: int) -> ErrorRule | None:
        """Return the rule for a status: that of its exact code before that of its class."""
        if not self.by_name:
            return None
        exact = self.by_name.get(str(int(status)))
        if exact is not None:
            return exact
        return next((self.by_name[name] for name, codes in CLASSES.items() if name in self.by_name and status in codes), None)


def read_error_rules(value: object) -> ErrorRules:
    """Read the setting; None and {} are no rules. Raises SettingError for the first name or value that is wrong."""
    rules: dict[str, ErrorRule] = {}
    for key, text in table(NAME, value, example='{"404": "DELETE", "5xx": "DELETE:10, RETRY:3"}').items():
        name = _name(key)
        if name in rules:
            raise SettingError(f"{NAME} has {quoted(name)} twice, as {quoted(key)} the second time; leave one")
        rules[name] = _rule(key, text)
    return ErrorRules(rules)


def read_retry_codes(value: object) -> frozenset[int] | None:
    """Read Scrapy's RETRY_HTTP_CODES: a list, or text with commas. None: the default codes. Raises SettingError."""
    if value is None:
        return None
    listed = [code.strip() for code in value.split(",") if code.strip()] if isinstance(value, str) else value
    codes: set[int] = set()
    for code in listed if isinstance(listed, Iterable) else [value]:
        text = str(code).strip()
        if not (re.fullmatch(r"[0-9]{3}", text, re.ASCII) and 400 <= int(text) <= 599):
            raise SettingError(
                f"RETRY_HTTP_CODES has {quoted(code)}; it may hold codes from 400 to 599, because only errors are retried"
            )
        codes.add(int(text))
    return frozenset(codes)


_RULE = re.compile(r"\s*(KEEP|DELETE)\s*(?::\s*([0-9]{1,6})\s*)?(?:,\s*RETRY\s*(?::\s*([0-9]{1,6})\s*)?)?", re.IGNORECASE)


def _name(key: object) -> str:
    name = str(key).strip().lower() if isinstance(key, str | int) and not isinstance(key, bool) else ""
    is_code = re.fullmatch(r"[0-9]{3}", name, re.ASCII) and (400 <= int(name) <= 599 or int(name) in OWN_ERRORS)
    if name in CLASSES or is_code:
        return name
    own = ", ".join(map(str, sorted(OWN_ERRORS)))
    raise SettingError(
        f"{NAME} has {quoted(key)}, which names no error; it may hold codes from 400 to 599, our own {own}, and {', '.join(CLASSES)}"
    )


def _rule(key: object, text: object) -> ErrorRule:
    match = _RULE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise SettingError(
            f'{NAME}[{quoted(key)}] is {quoted(text)}; it must be like "DELETE", "DELETE:10, RETRY:3" or "KEEP, RETRY:1"'
        )
    retries = None
    if "," in match[0]:
        retries = int(match[3] or 0)
        if retries > MOST_RETRIES:
            raise SettingError(f"{NAME}[{quoted(key)}] is {quoted(text)}; the number behind RETRY must be at most {MOST_RETRIES}")
    return ErrorRule(keep=match[1].upper() == "KEEP", after=max(1, int(match[2] or 1)), retries=retries)


@dataclass(frozen=True, slots=True)
class DeletionLimit:
    """Limit of documents that may leave the index at once: an outage or a mistake in a rule file must not empty it.

    Too many deletions are more than `percent` of a hundred indexed documents, and more than `count`.
    """

    percent: int
    count: int

    def most(self, indexed: int) -> int:
        """Return the largest allowed number of deletions for a number of indexed documents."""
        return max(self.count, indexed * self.percent // 100)

    def allows(self, deletions: int, *, indexed: int) -> bool:
        """Return whether a number of deletions is allowed; `indexed` is the number of documents before them."""
        return deletions <= self.most(indexed)
