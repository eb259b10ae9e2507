"""`crawl.rules`: values and parser.

    rule    = action [type] target [netmask]
    action  = allow | forbid            type = domain | prefix | address

One rule a line, keywords in any case; lines that begin with `#` are comments. The type may be omitted before an http:// or
https:// target, which is then a prefix. A file with mistakes gives no rules; all its mistakes are reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from crawlspace.decision import RuleRef
from crawlspace.errors import Mistake, RuleFileError, did_you_mean
from crawlspace.rules.targets import BadTarget, address_target, domain_target, netmask, prefix_target
from crawlspace.text import quoted, without_credentials

_AFTER_HOST = re.compile("[/?]")


class RuleAction(StrEnum):
    ALLOW = "allow"
    FORBID = "forbid"


class RuleType(StrEnum):
    DOMAIN = "domain"
    PREFIX = "prefix"
    ADDRESS = "address"


@dataclass(frozen=True, slots=True)
class DomainRule:
    """`host` is a pattern with its case; `port` None means every port. `column` is the start of the target."""

    action: RuleAction
    host: str
    port: int | None
    ref: RuleRef
    column: int = 1

    @property
    def target(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"

    @property
    def catch_all(self) -> bool:
        return self.host == "*" and self.port is None


@dataclass(frozen=True, slots=True)
class PrefixRule:
    """`pattern` is compared with the beginning of URLs in normal form."""

    action: RuleAction
    pattern: str
    ref: RuleRef
    column: int = 1

    @property
    def target(self) -> str:
        return f"{self.pattern}*"

    @property
    def host(self) -> str:
        """The host part of the pattern, without port; it ends in `*` if the pattern ends before the path."""
        written = self.pattern.partition("://")[2]
        end = _AFTER_HOST.search(written)
        authority = f"{written}*" if end is None else written[: end.start()]
        return authority[: authority.find("]") + 1] if authority.startswith("[") else authority.partition(":")[0]


@dataclass(frozen=True, slots=True)
class AddressRule:
    """`network` and `mask` are integers of 32 or 128 bits; a zero bit of `mask` is a wildcard, and zero in `network`."""

    action: RuleAction
    version: int
    network: int
    mask: int
    ref: RuleRef
    column: int = 1

    @property
    def target(self) -> str:
        return f"IPv{self.version} {self.network:x} {self.mask:x}"

    @property
    def catch_all(self) -> bool:
        return self.mask == 0


Rule = DomainRule | PrefixRule | AddressRule


@dataclass(frozen=True, slots=True)
class CrawlRules:
    """Three independent lists in file order."""

    domain: tuple[DomainRule, ...] = ()
    prefix: tuple[PrefixRule, ...] = ()
    address: tuple[AddressRule, ...] = ()


MAX_RULES = 1_000_000
"""Maximal rules of a file."""
MAX_MASKS = 1_000
"""Maximal different netmasks of a file: each takes one look-up for an address."""
MAX_LINE = 100_000
"""Maximal characters of a line, comments excepted."""
MAX_MISTAKES = 10_000
"""Number of mistakes after which parsing stops."""


def parse_crawl_rules(text: str, *, file: str) -> CrawlRules:
    """Return the rules of a file. Raises RuleFileError with all mistakes; `file` is the name in messages."""
    domain: list[DomainRule] = []
    prefix: list[PrefixRule] = []
    address: list[AddressRule] = []
    masks: set[tuple[int, int]] = set()
    mistakes: list[Mistake] = []
    for line in _lines(text, file, mistakes):
        rule = _rule(line, mistakes)
        if isinstance(rule, DomainRule):
            domain.append(rule)
        elif isinstance(rule, PrefixRule):
            prefix.append(rule)
        elif rule is not None:
            address.append(rule)
            masks.add((rule.version, rule.mask))
            if len(masks) > MAX_MASKS:
                message = (
                    f"the address rules have more than {MAX_MASKS:,} different netmasks up to here; {MAX_MASKS:,} is the most"
                )
                mistakes.append(line.mistake(line.words[-1], message))
                break
    if mistakes:
        raise RuleFileError(mistakes)
    return CrawlRules(tuple(domain), tuple(prefix), tuple(address))


def parse_global_rules(text: str, *, file: str) -> tuple[DomainRule, ...]:
    """Return the rules of a global.rules file, which has domain rules only. Raises RuleFileError with all mistakes."""
    rules: list[DomainRule] = []
    mistakes: list[Mistake] = []
    for line in _lines(text, file, mistakes):
        rule = _rule(line, mistakes)
        if isinstance(rule, DomainRule):
            rules.append(rule)
        elif rule is not None:
            kind = "a prefix" if isinstance(rule, PrefixRule) else "an address"
            message = f"{kind} rule is not allowed in {file}, which divides the crawl by host name; use a domain rule"
            mistakes.append(line.mistake(line.words[1], message))
    if mistakes:
        raise RuleFileError(mistakes)
    return tuple(rules)


class _Word(NamedTuple):
    text: str
    column: int


class _Line(NamedTuple):
    file: str
    number: int
    text: str
    words: list[_Word]

    def mistake(self, word: _Word, message: str) -> Mistake:
        return Mistake(self.file, self.number, word.column, message, self.text)

    @property
    def end(self) -> _Word:
        """The position of a missing word."""
        last = self.words[-1]
        return _Word("", last.column + len(last.text))


_WORD = re.compile(r"\S+")
_FIRST = re.compile(r"\s*(\S)")
_LINE_OF_RULE = re.compile(r"(?:^|\n)\s*+([^\s#])[^\n]*+")
_WORDS = 6
"""Words parsed in a line: a rule has at most four, and the first unexpected one is reported."""
_ACTIONS = {action.value: action for action in RuleAction}
_KINDS = {kind.value: kind for kind in RuleType}
_OTHER_WORDS = {
    "accept": "allow",
    "block": "forbid",
    "deny": "forbid",
    "disallow": "forbid",
    "exclude": "forbid",
    "include": "allow",
    "permit": "allow",
    "reject": "forbid",
    "host": "domain",
    "hostname": "domain",
    "ip": "address",
    "site": "domain",
    "uri": "prefix",
    "url": "prefix",
}


def _lines(text: str, file: str, mistakes: list[Mistake]) -> Iterator[_Line]:
    """Yield the lines that are neither blank nor comments, without BOM and carriage returns. Record too many or too long ones."""
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.count("\n") >= MAX_RULES and (too_many := next(islice(_LINE_OF_RULE.finditer(text), MAX_RULES, None), None)):
        message = f"this is the {MAX_RULES + 1:,}st rule, and {MAX_RULES:,} is the most of a file; a * in a rule can take the place of many"
        mistakes.append(Mistake(file, text.count("\n", 0, too_many.start(1)) + 1, 1, message, ""))
        return
    for number, line in written_lines(text):
        if len(line) > MAX_LINE:
            message = f"the line has {len(line):,} characters, and {MAX_LINE:,} is the most"
            mistakes.append(Mistake(file, number, 1, message, line[:MAX_LINE]))
        else:
            yield _Line(
                file, number, line, [_Word(found[0], found.start() + 1) for found in islice(_WORD.finditer(line), _WORDS)]
            )
        if len(mistakes) >= MAX_MISTAKES:
            mistakes.append(Mistake(file, number, 1, f"reading ends here, after {len(mistakes):,} mistakes", ""))
            return


def written_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and text of the lines that are neither blank nor comments."""
    number = start = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        number += 1
        first = _FIRST.match(text, start, end)
        if first is not None and first[1] != "#":
            yield number, text[start:end]
        start = end + 1


def _rule(line: _Line, mistakes: list[Mistake]) -> Rule | None:
    """Return the rule of a line; None after recording its mistakes."""
    wrong: list[Mistake] = []
    rule = _read_rule(line, wrong)
    if wrong and without_credentials(line.text) != line.text:  # a message that quotes a word could show part of them
        wrong = [line.mistake(line.words[-1], "a rule has no user name or password; URLs with one are never crawled")]
    mistakes += wrong
    return rule


def _read_rule(line: _Line, mistakes: list[Mistake]) -> Rule | None:
    before = len(mistakes)
    first, *rest = line.words
    action = _ACTIONS.get(first.text.lower())
    if action is None:
        mistakes.append(
            line.mistake(first, f"expected 'allow' or 'forbid', not {quoted(first.text)}{_meant(first.text, _ACTIONS)}")
        )
        if not (_meant(first.text, _ACTIONS) or (rest and _kind(rest[0].text))):
            return None  # not meant as a rule: further mistakes would only repeat this one
    if not rest:
        mistakes.append(line.mistake(line.end, "expected domain, prefix or address and a target after the action"))
        return None
    kind = _KINDS.get(rest[0].text.lower())
    if kind is not None:
        rest = rest[1:]
    elif _is_url(rest[0].text):
        kind = RuleType.PREFIX
    else:
        mistakes.append(line.mistake(rest[0], _no_kind(first.text, rest)))
        return None
    if not rest:
        mistakes.append(line.mistake(line.end, f"expected {_EXPECTED[kind]} after '{kind}'"))
        return None
    rule = _targeted(line, action or RuleAction.FORBID, kind, rest, mistakes)
    return rule if len(mistakes) == before else None


_EXPECTED = {
    RuleType.DOMAIN: "a host name such as www.example.com or *.example.com",
    RuleType.PREFIX: "a URL that begins with http:// or https://",
    RuleType.ADDRESS: "an IP address, with a netmask unless one address is meant,",
}


def _targeted(line: _Line, action: RuleAction, kind: RuleType, words: list[_Word], mistakes: list[Mistake]) -> Rule | None:
    ref = RuleRef(line.file, line.number, line.text.strip())
    target, extra = words[0], words[1:]
    rule: Rule | None = None
    try:
        if kind is RuleType.DOMAIN:
            host, port = domain_target(target.text)
            rule = DomainRule(action, host, port, ref, target.column)
        elif kind is RuleType.PREFIX:
            rule = PrefixRule(action, prefix_target(target.text), ref, target.column)
        else:
            version, value, mask = address_target(target.text)
            if mask is None and extra and not extra[0].text.startswith("#"):
                target, extra = extra[0], extra[1:]
                mask = netmask(target.text, version)
            rule = _address_rule(action, version, value, mask, ref=ref, column=words[0].column)
    except BadTarget as error:
        mistakes.append(line.mistake(target, str(error)))
        if kind is RuleType.ADDRESS and target is words[0]:
            extra = extra[1:]  # the netmask of an address that can't be read
    if extra:
        mistakes.append(line.mistake(extra[0], _unexpected(extra[0].text, kind)))
    return rule


def _address_rule(action: RuleAction, version: int, value: int, mask: int | None, *, ref: RuleRef, column: int) -> AddressRule:
    """Return the rule with bits outside the mask cleared, and an IPv4-mapped IPv6 address as IPv4."""
    full = (1 << (32 if version == 4 else 128)) - 1
    mask = full if mask is None else mask
    mapped_bits = full ^ 0xFFFFFFFF
    if version == 6 and value >> 32 == 0xFFFF and mask & mapped_bits == mapped_bits:
        version, value, mask = 4, value & 0xFFFFFFFF, mask & 0xFFFFFFFF
    return AddressRule(action, version, value & mask, mask, ref, column)


def _unexpected(word: str, kind: RuleType) -> str:
    if word.startswith("#"):
        return "a comment needs a line of its own"
    netmasks = ", and only address rules have a netmask" if kind is not RuleType.ADDRESS else ""
    return f"unexpected {quoted(word)}: a rule ends with its target{netmasks}"


def _no_kind(action: str, rest: list[_Word]) -> str:
    word = rest[0].text
    meant = _meant(word, _KINDS)
    if not meant and len(rest) == 1 and action.lower() in _ACTIONS:
        meant = f"; for a host write '{action} domain {word}'"
    return f"expected domain, prefix, address or a URL with http:// or https://, not {quoted(word)}{meant}"


def _kind(word: str) -> bool:
    return word.lower() in _KINDS or _is_url(word)


def _is_url(word: str) -> bool:
    return word[:8].lower().startswith(("http://", "https://"))


def _meant(word: str, known: dict[str, RuleAction] | dict[str, RuleType]) -> str:
    lower = word.lower()
    other = _OTHER_WORDS.get(lower, lower)
    meant = did_you_mean(other if other in known else lower, known, cutoff=0.7)
    return f"; {meant}" if meant else ""
