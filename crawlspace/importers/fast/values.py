"""One value of FAST's include and exclude lists, as a rule of crawl.rules or as a condition of rules.xml."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from crawlspace.errors import RuleFileError
from crawlspace.importers.conditions import atom, expression_atom
from crawlspace.importers.regexps import Untranslatable, translated
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.named_hosts import names_no_site
from crawlspace.rules.xml.model import Field, Kind, Norm
from crawlspace.text import quoted, without_credentials
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, parse


@dataclass(frozen=True, slots=True)
class ListedValue:
    """A value of a list, with its place; empty texts where it has no such form."""

    option: str
    """Such as `include_domains/suffix`."""
    line: int
    text: str
    rule: str = ""
    """Type and target in crawl.rules, such as `domain *.example.com`."""
    condition: str = ""
    """The element of rules.xml."""
    named: str = ""
    """The target of a domain rule for the hosts that it names."""


def of_host(option: str, line: int, text: str) -> ListedValue:
    """Return a value of include_domains or exclude_domains. Raises Untranslatable."""
    kind = option.rpartition("/")[2]
    _refuse_control_characters(text)
    if kind == "regexp":
        return ListedValue(option, line, text, condition=_expression(text, Field.HOST, norm=Norm.NORM))
    if kind == "ipmask":
        address = re.sub(r"\s*[/:\s]\s*(?=\d+\.)", " ", text) if "." in text else text
        _refuse_wrong_rule(f"address {address}")
        return ListedValue(option, line, text, rule=f"address {address}")
    if "*" in text or re.search(r"[\s/@]", text):
        raise Untranslatable(f"{quoted(text)} is no part of a host name")
    host = text.lower()
    target = {"exact": "{}", "file": "{}", "prefix": "{}*", "suffix": "*{}", "contains": "*{}*"}[kind].format(host)
    _refuse_wrong_rule(f"domain {target}")
    rule = "" if names_no_site(target) else f"domain {target}"
    return ListedValue(option, line, text, rule=rule, condition=_host_condition(kind, host), named=target if rule else "")


def forbidding(value: ListedValue) -> str:
    """Return type and target of the rule of crawl.rules that excludes what a value is for; empty if there is none.

    A pattern that is too general to allow, because it names hosts of anybody, may well forbid.
    """
    if value.rule or not value.option.startswith("exclude_domains/") or value.option.endswith("/regexp"):
        return value.rule
    kind, host = value.option.rpartition("/")[2], value.text.lower()
    return "domain " + {"prefix": "{}*", "suffix": "*{}", "contains": "*{}*"}.get(kind, "{}").format(host)


def of_uri(option: str, line: int, text: str) -> ListedValue:
    """Return a value of include_uris or exclude_uris. Raises Untranslatable."""
    kind = option.rpartition("/")[2]
    _refuse_control_characters(text)
    if without_credentials(text) != text:
        raise Untranslatable("it has a user name or password, and no URL with one is crawled")
    if kind == "regexp":
        return ListedValue(option, line, text, condition=_expression(text, Field.URL, norm=Norm.NONE))
    text = text.replace(" ", "%20")
    if kind in {"suffix", "contains"}:
        xml_kind = Kind.SUFFIX if kind == "suffix" else Kind.INSIDE
        return ListedValue(option, line, text, condition=atom(Field.URL, xml_kind, text, Norm.NONE))
    if not text.lower().startswith(("http://", "https://")):
        raise Untranslatable(f"{quoted(text)} does not begin with http:// or https://, so that it matches no URL that is crawled")
    return _exact_uri(option, line, text) if kind in {"exact", "file"} else _prefix_uri(option, line, text)


def _refuse_control_characters(text: str) -> None:
    """Raise Untranslatable for what could end a line of the written files."""
    if not text.isprintable():
        raise Untranslatable(f"{quoted(text)} has line ends or control characters")


def _exact_uri(option: str, line: int, text: str) -> ListedValue:
    try:
        url = parse(text)
    except MalformedUrl as error:
        raise Untranslatable(str(error)) from None
    parts = [f'<Url literal="true" val={quoteattr(url.text)}/>', atom(Field.PATH, Kind.EXACT, url.path, Norm.NONE)]
    if url.query is not None:
        parts.append(atom(Field.QUERY, Kind.EXACT, url.query, Norm.NONE))
    condition = f"<And> {' '.join(parts)} </And>"  # the host without regard to case, the rest with
    named = url.host if url.port == DEFAULT_PORTS[url.scheme] else url.site
    return ListedValue(option, line, text, condition=condition, named=named)


def _prefix_uri(option: str, line: int, text: str) -> ListedValue:
    """A prefix that ends within the host may be of several hosts, and a prefix rule can't say that."""
    authority, slash, _ = text.partition("://")[2].partition("/")
    norm = Norm.NONE if slash else Norm.NORM
    condition = atom(Field.URL, Kind.PREFIX, _with_normal_host(text) if slash else text, norm)
    if not slash or "*" in text or "?" in authority:
        return ListedValue(option, line, text, condition=condition)
    _refuse_wrong_rule(f"prefix {text}")
    return ListedValue(option, line, text, rule=f"prefix {text}", condition=condition, named=_site(text))


def _with_normal_host(text: str) -> str:
    """Return the beginning of a URL with scheme and host in small letters, without the default port."""
    scheme, _, rest = text.partition("://")
    authority, slash, tail = rest.partition("/")
    default = f":{DEFAULT_PORTS[scheme.lower()]}"
    return f"{scheme.lower()}://{authority.lower().removesuffix(default)}{slash}{tail}"


def _site(text: str) -> str:
    try:
        url = parse(text)
    except MalformedUrl:
        return ""
    return url.host if url.port == DEFAULT_PORTS[url.scheme] else url.site


def _refuse_wrong_rule(rule: str) -> None:
    try:
        parse_crawl_rules(f"allow {rule}", file="")
    except RuleFileError as error:
        raise Untranslatable(error.mistakes[0].message) from None


def _host_condition(kind: str, host: str) -> str:
    name, _, port = host.rpartition(":") if ":" in host and not host.endswith("]") else (host, "", "")
    if kind in {"exact", "file"}:
        if not port:
            return f"<Host val={quoteattr(host)}/>"
        of_schemes = [f"{scheme}://{name}{'' if int(port) == usual else f':{port}'}/" for scheme, usual in DEFAULT_PORTS.items()]
        return f"<Or> {' '.join(atom(Field.URL, Kind.PREFIX, start, Norm.NORM) for start in of_schemes)} </Or>"
    if port:
        raise Untranslatable(f"{quoted(host)} has a port, which only a whole host can have")
    return atom(Field.HOST, {"prefix": Kind.PREFIX, "suffix": Kind.SUFFIX, "contains": Kind.INSIDE}[kind], host, Norm.NORM)


def _expression(text: str, field: Field, *, norm: Norm) -> str:
    values, norm = translated(text, field, norm=norm)
    atoms = [expression_atom(field, Kind.INSIDE, value, norm) for value in values]
    return atoms[0] if len(atoms) == 1 else f"<Or> {' '.join(atoms)} </Or>"


LISTS: Mapping[str, Callable[[str, int, str], ListedValue]] = {
    "include_domains": of_host,
    "exclude_domains": of_host,
    "include_uris": of_uri,
    "exclude_uris": of_uri,
}
KINDS = {
    "include_domains": ("exact", "prefix", "suffix", "contains", "regexp", "ipmask", "file"),
    "exclude_domains": ("exact", "prefix", "suffix", "contains", "regexp", "ipmask", "file"),
    "include_uris": ("exact", "prefix", "suffix", "contains", "regexp", "file"),
    "exclude_uris": ("exact", "prefix", "suffix", "contains", "regexp", "file"),
}
