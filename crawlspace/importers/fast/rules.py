"""FAST's include and exclude lists as crawl.rules and rules.xml, with equal decisions.

A URL is crawled if no exclude list has it, and the existing include lists, of hosts and of URLs, both have it. crawl.rules and rules.xml must
both admit a URL, so an exclude may be in either. An include list is in crawl.rules if all of its values can be; else all of it is in
rules.xml, which then accepts only what a rule accepts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from xml.sax.saxutils import quoteattr

from crawlspace.errors import RuleFileError
from crawlspace.importers.expressions import Untranslatable, atom, expression_atom, translated
from crawlspace.importers.fast.xml import FastOption, FastSection
from crawlspace.importers.files import any_of, rules_without_effect, xml_rule
from crawlspace.importers.reading import ListFiles
from crawlspace.importers.translation import Fate, ImportReport
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.domain import names_no_site
from crawlspace.rules.xml.model import Field, Kind, Norm
from crawlspace.text import quoted, without_credentials
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, parse

CONFIRMED = frozenset({"exact", "prefix", "suffix", "regexp", "file"})
"""Kinds of values that public documentation names."""


@dataclass(slots=True)
class SpaceFiles:
    """The rules of a collection: lines of crawl.rules, and the rules of rules.xml."""

    crawl_rules: list[str] = field(default_factory=list)
    rules_xml: list[str] = field(default_factory=list)
    accepts_named_only: bool = False
    """Whether only URLs accepted by a rule of rules.xml are crawled (CRAWLSPACE_DEFAULT_ACCEPT = False)."""
    names_or_addresses: bool = False
    """Whether hosts are crawled that are named, or whose addresses are (CRAWLSPACE_NAMED_HOSTS_ANY_ADDRESS)."""


class FastLists:
    """The include and exclude lists of a collection or sub-domain, as far as they can be translated."""

    def __init__(self, sections: Sequence[FastSection], report: ImportReport, files: ListFiles, *, within: str = "") -> None:
        """`within` is put before names in the report."""
        self.values: dict[str, list[ListedValue]] = {name: [] for name in LISTS}
        self.has_lost: set[str] = set()
        """Lists of which a value has no counterpart."""
        self._report = report
        self._files = files
        self._within = within
        for section in sections:
            if section.name in LISTS:
                self._read(section)

    def _read(self, section: FastSection) -> None:
        for option in section.options:
            if option.name not in KINDS[section.name]:
                reason = f"{quoted(option.name)} is not known; {section.name} holds {', '.join(KINDS[section.name])}"
                self._lose(section, option, option.line, reason)
                continue
            values = option.values
            if option.name == "file":
                values = self._files.read_all(option.values, self._report, f"{self._within}{section.name}/file")
                if len(values) == 0 and option.values:
                    self.has_lost.add(section.name)
            for value in values:
                try:
                    listed = LISTS[section.name](
                        f"{section.name}/{option.name}", option.line if option.name == "file" else value.line, value.text
                    )
                except Untranslatable as error:
                    self._lose(section, option, value.line if option.name != "file" else option.line, str(error))
                    continue
                self.values[section.name].append(listed)
        for nested in section.sections:
            self._report.add(
                nested.line,
                f"{self._within}{section.name}/{nested.name}",
                Fate.NO_COUNTERPART,
                "it is no section that belongs here",
            )

    def _lose(self, section: FastSection, option: FastOption, line: int, reason: str) -> None:
        self.has_lost.add(section.name)
        if not self._within:
            is_include = section.name.startswith("include")
            reason += "; what only it includes is not crawled" if is_include else "; what only it excludes is crawled"
        known = option.name in CONFIRMED
        self._report.add(line, f"{self._within}{section.name}/{option.name}", Fate.NO_COUNTERPART, reason, is_recalled=not known)

    def hosts(self) -> list[str]:
        """Return the hosts that the include lists name, as targets of domain rules."""
        found = [value.named for name in ("include_domains", "include_uris") for value in self.values[name] if value.named]
        return list(dict.fromkeys(found))


def space_files(lists: FastLists, report: ImportReport) -> SpaceFiles:
    """Return the rules for the lists of a collection, and report the fate of each value."""
    return _SpaceFromLists(lists, report).files


class _SpaceFromLists:
    def __init__(self, lists: FastLists, report: ImportReport) -> None:
        self.files = SpaceFiles()
        self._lists = lists
        self._report = report
        self._rules: list[tuple[str, ListedValue | None]] = []
        self._xml: list[tuple[ListedValue, str]] = []
        self._excludes()
        self._includes()
        self._write_crawl_rules()

    # --- excludes ----------------------------------------------------------------------------------------------------

    def _excludes(self) -> None:
        for name in ("exclude_domains", "exclude_uris"):
            for value in self._lists.values[name]:
                if rule := forbidding(value):
                    self._rule(f"forbid {rule}", value)
                else:
                    self._report_in_xml(value)
                    self._xml.append((value, value.condition))

    # --- includes ----------------------------------------------------------------------------------------------------

    def _includes(self) -> None:
        hosts, uris = self._lists.values["include_domains"], self._lists.values["include_uris"]
        hosts = self._of_addresses(hosts)
        missing = [name for name in ("include_domains", "include_uris") if name in self._lists.has_lost]
        accepted: list[list[ListedValue]] = []
        for name, values in (("include_domains", hosts), ("include_uris", uris)):
            if not values and name not in missing:
                continue
            if all(value.rule for value in values):
                self._allow("domain" if values is hosts else "prefix", values)
            else:
                accepted.append(values)
                for value in values:
                    self._report_in_xml(value)
        if uris and not hosts and "include_domains" not in missing and not accepted:
            self._only(_hosts_of(uris))
        if accepted:
            self.files.accepts_named_only = True
            there = {rule for rule, _ in self._rules}
            named = [f"allow domain {host}" for host in self._lists.hosts()]  # they may have private addresses
            self._rules += [(rule, None) for rule in named if rule not in there]
        self._write_rules_xml(accepted)

    def _of_addresses(self, hosts: list[ListedValue]) -> list[ListedValue]:
        """Return the values that are hosts, after writing the rules for addresses, which hosts without a domain rule must have."""
        of_addresses = [value for value in hosts if value.rule.startswith("address ")]
        others = [value for value in hosts if not value.rule.startswith("address ")]
        if of_addresses:
            others = [
                value if value.rule or not value.pattern else replace(value, rule=f"domain {value.pattern}") for value in others
            ]
        is_lost = any(not value.rule for value in others) or "include_domains" in self._lists.has_lost
        for value in of_addresses:
            if is_lost:
                reason = (
                    "a host is crawled by its name or by its address where a domain rule can have each other value, and a regular expression"
                    " only if it is made of letters, digits, hyphens, \\. and .*: write the rules if all hosts have such addresses"
                )
                self._report.add(value.line, value.option, Fate.NO_COUNTERPART, reason, is_recalled=True)
            else:
                self._rule(f"allow {value.rule}", value)
        if of_addresses and not is_lost:
            self.files.names_or_addresses = bool(others)
            self._rules += [(rule, None) for rule in ("forbid address 0.0.0.0 0.0.0.0", "forbid address :: ::")]
        return others

    def _allow(self, kind: str, values: Sequence[ListedValue]) -> None:
        for value in values:
            self._rule(f"allow {value.rule}", value)
        if kind == "domain" and self.files.names_or_addresses:
            return
        if kind == "domain":
            self._rules.append(("forbid domain *", None))
        else:
            self._rules += [("forbid prefix http://*", None), ("forbid prefix https://*", None)]

    def _only(self, hosts: Sequence[str]) -> None:
        self._rules += [(f"allow domain {host}", None) for host in hosts]
        self._rules.append(("forbid domain *", None))

    # --- writing -----------------------------------------------------------------------------------------------------

    def _rule(self, rule: str, value: ListedValue) -> None:
        self._rules.append((rule, value))

    def _report_in_xml(self, value: ListedValue) -> None:
        if value.option.endswith("/file"):  # its lines are reported together
            return
        action = "Ignore" if value.option.startswith("exclude") else "Accept"
        recalled = value.option.rpartition("/")[2] not in CONFIRMED or value.option.endswith("/regexp")
        text = f"a rule of rules.xml ({action}) with {value.condition}"
        self._report.add(value.line, value.option, Fate.TRANSLATED, text, is_recalled=recalled)

    def _write_rules_xml(self, accepted: Sequence[Sequence[ListedValue]]) -> None:
        lines = self.files.rules_xml
        if len(accepted) == 1:
            for value in _different(accepted[0]):
                lines += xml_rule([_origin(self._report, value)], value.condition, ["<Accept/>"])
        elif accepted:
            origins = [_origin(self._report, value) for values in accepted for value in values]
            parts = "\n      ".join(any_of([value.condition for value in _different(values)]) for values in accepted)
            lines += xml_rule(origins, f"<And>\n      {parts}\n    </And>", ["<Accept/>"])
        for value in _different([value for value, _ in self._xml]):
            lines += xml_rule([_origin(self._report, value)], value.condition, ["<Ignore/>"])

    def _write_crawl_rules(self) -> None:
        without = rules_without_effect([rule for rule, _ in self._rules])
        kept = [one for index, one in enumerate(self._rules) if index not in without]
        dropped = {self._rules[index]: why for index, why in without.items()}
        for rule, value in self._rules:
            if value is not None and (rule, value) not in dropped and not value.option.endswith("/file"):
                recalled = value.option.rpartition("/")[2] not in CONFIRMED
                self._report.add(value.line, value.option, Fate.TRANSLATED, f"`{rule}` in crawl.rules", is_recalled=recalled)
        for (rule, value), why in dropped.items():
            if value is not None and not value.option.endswith("/file"):
                text = f"nothing: `{rule}` would change no decision ({why})"
                self._report.add(value.line, value.option, Fate.TRANSLATED, text)
        origin = ""
        for rule, value in kept:
            if value is not None:
                origin = _origin(self._report, value)
                self.files.crawl_rules.append(f"# {origin}")
            elif rule.startswith("allow domain ") and origin != _NAMED_HOSTS:
                origin = _NAMED_HOSTS
                self.files.crawl_rules.append(f"# {origin}")
            self.files.crawl_rules.append(rule)


_NAMED_HOSTS = "the hosts that include_domains and include_uris name"


def _hosts_of(values: Sequence[ListedValue]) -> list[str]:
    return list(dict.fromkeys(value.named for value in values if value.named))


def _different(values: Sequence[ListedValue]) -> Iterator[ListedValue]:
    """Yield the first value of each condition."""
    seen: set[str] = set()
    for value in values:
        if value.condition not in seen:
            seen.add(value.condition)
            yield value


def _origin(report: ImportReport, value: ListedValue) -> str:
    return f"{report.file}:{value.line}: {value.option}"


# --- One value of FAST's include and exclude lists, as a rule of crawl.rules or as a condition of rules.xml --------


@dataclass(frozen=True, slots=True)
class ListedValue:
    """A value of a list, with its line; empty texts for forms that it does not have."""

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
    pattern: str = ""
    """The target of a domain rule for the hosts that it matches, also if these may be anybody's."""


def of_host(option: str, line: int, text: str) -> ListedValue:
    """Return a value of include_domains or exclude_domains. Raises Untranslatable."""
    kind = option.rpartition("/")[2]
    _refuse_control_characters(text)
    if kind == "regexp":
        return ListedValue(option, line, text, condition=_expression(text, Field.HOST, norm=Norm.NORM), pattern=pattern_of(text))
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
    condition = _host_condition(kind, host)
    return ListedValue(option, line, text, rule=rule, condition=condition, named=target if rule else "", pattern=target)


_OF_PATTERN = re.compile(r"(?:\\[.-]|\.\*|[A-Za-z0-9-])+")
"""Expressions of which each part is a part of a pattern."""


def pattern_of(expression: str) -> str:
    """Return the pattern of a domain rule for the hosts in which an expression is found; empty if there is none."""
    text = expression.removeprefix("(?i)")
    start, end = ("" if text.startswith("^") else "*"), ("" if text.endswith("$") else "*")
    text = text.removeprefix("^").removesuffix("$")
    if not _OF_PATTERN.fullmatch(text):
        return ""
    inner = re.sub(r"\\(.)|\.\*", lambda found: found[1] or "*", text).lower()
    pattern = re.sub(r"\*+", "*", f"{start}{inner}{end}")
    return pattern if pattern.strip("*.") else ""


def forbidding(value: ListedValue) -> str:
    """Return type and target of the rule of crawl.rules that excludes the URLs of a value; empty if there is none.

    A pattern that is too general to allow, because it names arbitrary hosts, can still forbid.
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
    """Raise Untranslatable for characters that could end a line of the written files."""
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
    """A prefix that ends within the host may match several hosts, which a prefix rule can't express."""
    authority, slash, _ = text.partition("://")[2].partition("/")
    norm = Norm.NONE if slash else Norm.NORM
    condition = atom(Field.URL, Kind.PREFIX, _with_normal_host(text) if slash else text, norm)
    if not slash or "*" in text or "?" in authority:
        return ListedValue(option, line, text, condition=condition)
    _refuse_wrong_rule(f"prefix {text}")
    return ListedValue(option, line, text, rule=f"prefix {text}", condition=condition, named=_site(text))


def _with_normal_host(text: str) -> str:
    """Return the beginning of a URL with scheme and host in lower case, without the default port."""
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
