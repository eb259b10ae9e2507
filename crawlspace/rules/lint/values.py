"""Warnings about values in a rules.xml that match no URL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from crawlspace.printable import quoted
from crawlspace.rules.lint.crawl_rules import Finding
from crawlspace.rules.xml.comparisons import text_of
from crawlspace.rules.xml.conditions import Conditions
from crawlspace.rules.xml.model import ActionRuleSet, Atom, Field, Kind, Norm, Range
from crawlspace.rules.xml.required_texts import required_texts
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, parse

_MADE: Mapping[tuple[Field, Kind], Sequence[tuple[str, str]]] = {
    (Field.HOST, Kind.EXACT): (("http://", "/"),),
    (Field.HOST, Kind.PREFIX): (("http://", "z/"),),
    # The normal form of the end of an IPv4 address depends on what is before it.
    (Field.HOST, Kind.SUFFIX): tuple((f"http://{before}", "/") for before in ("z", "", "1", "1.", "1.1", "1.1.", "1.1.1")),
    (Field.HOST, Kind.INSIDE): (("http://z", "z/"),),
    (Field.PATH, Kind.EXACT): (("http://h", ""),),
    (Field.PATH, Kind.PREFIX): (("http://h", "z"),),
    (Field.PATH, Kind.SUFFIX): (("http://h/z", ""),),
    (Field.PATH, Kind.INSIDE): (("http://h/z", "z"),),
    (Field.QUERY, Kind.EXACT): (("http://h/?", ""),),
    (Field.QUERY, Kind.PREFIX): (("http://h/?", "z"),),
    (Field.QUERY, Kind.SUFFIX): (("http://h/?z", ""),),
    (Field.QUERY, Kind.INSIDE): (("http://h/?z", "z"),),
    (Field.URL, Kind.EXACT): (("", ""),),
    (Field.URL, Kind.PREFIX): (("", ""), ("", "z"), ("", "1/")),
    (Field.URL, Kind.SUFFIX): (("", ""), ("http://z", ""), ("http://h/z", ""), ("http://h/?z", "")),
    (Field.URL, Kind.INSIDE): (("", "z"), ("http://z", "z"), ("http://h/z", "z"), ("http://h/?z", "z")),
}
"""Texts before and after a value that make a URL of it; a `z` next to it keeps it from being parsed as a whole segment."""
_SHORTEST = {Field.URL: len("http://h/"), Field.SCHEME: len("http"), Field.HOST: 1, Field.PATH: 1}
_STARTS = tuple(f"{scheme}://" for scheme in DEFAULT_PORTS)
_OF_IPV6 = frozenset("0123456789abcdef:[]")


def lint_values(rules: ActionRuleSet) -> Iterator[Finding]:
    """Yield the values of a rules.xml that match no URL, because no URL in normal form has such a text there."""
    conditions = Conditions()
    roots = [conditions.add(rule.condition) for rule in rules.rules]
    wrong = {number: reason for number, atom in conditions.atoms.items() if (reason := _never_holding(atom)) is not None}
    for rule, root in zip(rules.rules, roots, strict=True):
        atoms = {number: conditions.atoms[number] for number in sorted(conditions.atoms_of(root))}
        holding = {atom for number, atom in atoms.items() if number not in wrong}
        reasons = (wrong[number] for number, atom in atoms.items() if number in wrong and _below(atom) not in holding)
        for reason in dict.fromkeys(reasons):
            message = f"{reason}, in {quoted(rule.ref.text)}"
            yield Finding(rule.ref.file, rule.ref.line, 1, "warning", "xml-never-matches", message)


def _below(atom: Atom) -> Atom | None:
    """Return the second comparison of a Domain: the hosts below it. These may exist although the name itself is no host."""
    if atom.field is Field.HOST and atom.kind is Kind.EXACT and isinstance(atom.value, str):
        return Atom(Field.HOST, Kind.SUFFIX, f".{atom.value}", atom.norm)
    return None


def _never_holding(atom: Atom) -> str | None:
    """Return why a comparison matches no URL, as far as its text shows; None otherwise, and for fragments."""
    field, value = atom.field, atom.value
    if isinstance(value, Range):
        if value.high is None or value.high >= _SHORTEST.get(field, 0):
            return None
        return f"a length of {value.high} or less never matches: the {field} of a URL is longer"
    if field is Field.HOST and isinstance(value, str) and (reason := _no_host(value, atom.kind)):
        return reason
    kind, choices = (atom.kind, [frozenset({value})]) if isinstance(value, str) else (Kind.INSIDE, required_texts(value.source))
    for texts in choices:
        if texts and not any(_may_match(text, field, kind, norm=atom.norm) for text in texts):
            text = min(texts)
            shown = text.removeprefix(".") if field is Field.HOST else text
            return f"{quoted(shown)} never matches: {_why_not(shown, field, kind)}"
    return None


def _no_host(value: str, kind: Kind) -> str:
    """Return why a value with a star, or with a dot before a whole name, is in no host; empty if it has neither."""
    name = value.lstrip("*.")
    meant = f"; <Domain val={name!r}/> means {name} and every host below it" if name and "*" not in name else ""
    if "*" in value:
        return f"{value.lstrip('.')!r} never matches: a * is a plain character here, and no host has one{meant}"
    if value.startswith("." if kind in {Kind.EXACT, Kind.PREFIX} else ".."):
        return f"{'.' + name!r} never matches: no host begins with a dot{meant}"
    return ""


def _may_match(text: str, field: Field, kind: Kind, *, norm: Norm) -> bool:
    """Return whether a URL may have a text in a part. If one can, so can a URL made of the text."""
    if field is Field.FRAGMENT or (kind is not Kind.EXACT and _may_be_cut_out(text.lower(), field)):
        return True
    as_written = norm is Norm.NONE
    part = text_of(field, as_written=as_written)
    wanted = text if as_written else text.lower()
    for before, after in _MADE.get((field, kind), ()):
        with suppress(MalformedUrl):
            url = parse(f"{before}{text}{after}")
            if url.scheme in DEFAULT_PORTS and _matches_part(wanted, part(url), kind):
                return True
    return field is Field.SCHEME and any(_matches_part(wanted, scheme, kind) for scheme in DEFAULT_PORTS)


def _may_be_cut_out(text: str, field: Field) -> bool:
    """Return whether a text may be part of something parsed as a whole: an IPv6 address, an xn-- label, the start of a URL."""
    if field is Field.HOST:
        return "xn--" in text or (not set(":[]").isdisjoint(text) and set(text) <= _OF_IPV6)
    if field is not Field.URL:
        return False
    authority = text.partition("://")[2]
    unfinished = "/" not in authority and ("xn--" in authority or authority.startswith("["))
    return any(start.startswith(text) or (unfinished and text.startswith(start)) for start in _STARTS)


def _matches_part(text: str, part: str, kind: Kind) -> bool:
    if kind is Kind.EXACT:
        return part == text
    if kind is Kind.PREFIX:
        return part.startswith(text)
    return part.endswith(text) if kind is Kind.SUFFIX else text in part


def _why_not(text: str, field: Field, kind: Kind) -> str:
    anchored = kind in {Kind.EXACT, Kind.PREFIX}
    if field is Field.SCHEME:
        return f"only {' and '.join(DEFAULT_PORTS)} are crawled"
    if "#" in text:
        return "a rule sees a URL without its fragment"
    if field is Field.HOST and not text.startswith("[") and (set(text) & set("/:?@\\") or text.endswith(".")):
        return "a host has no scheme, port, path or final dot"
    if field is Field.PATH and anchored and not text.startswith("/"):
        return "a path begins with /"
    if field is Field.PATH and "?" in text:
        return "the query is no part of the path"
    if field is Field.PATH and "\\" in text:
        return "a backslash in a path is / in URLs"
    if field is Field.URL and anchored and not text.lower().startswith(_STARTS):
        return "a URL begins with http:// or https://"
    with suppress(MalformedUrl):
        before, after = _MADE[field, Kind.EXACT][0]
        if anchored:
            return f"URLs have {quoted(text_of(field, as_written=True)(parse(f'{before}{text}{after}')))} there"
    return "no URL in normal form has this there"
