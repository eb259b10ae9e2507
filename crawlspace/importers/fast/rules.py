"""FAST's include and exclude lists as crawl.rules and rules.xml, with equal decisions.

A URL is crawled if no exclude list has it, and the include lists that there are, of hosts and of URLs, both have it. crawl.rules
and rules.xml must both admit a URL, so an exclude may stand in either. An include list stands in crawl.rules if all of its values
can; else all of it is in rules.xml, where nothing is accepted then but what a rule accepts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from crawlspace.importers.crawl_rules import without_effect
from crawlspace.importers.fast.values import KINDS, LISTS, ListedValue, forbidding
from crawlspace.importers.fast.xml import FastOption, FastSection
from crawlspace.importers.lists import ListFiles
from crawlspace.importers.regexps import Untranslatable
from crawlspace.importers.report import Fate, ImportReport
from crawlspace.importers.rules_xml import rule as xml_rule
from crawlspace.text import quoted

CONFIRMED = frozenset({"exact", "prefix", "suffix", "regexp", "file"})
"""Kinds of values that public documentation names."""


@dataclass(slots=True)
class SpaceFiles:
    """The rules of a collection: lines of crawl.rules, and the rules of rules.xml."""

    crawl_rules: list[str] = field(default_factory=list)
    rules_xml: list[str] = field(default_factory=list)
    accepts_named_only: bool = False
    """Only what a rule of rules.xml accepts is crawled (CRAWLSPACE_DEFAULT_ACCEPT = False)."""


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
    """Return the rules for the lists of a collection, and report what became of each value."""
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
        """Return the values that are hosts; those that are addresses must be alone, because crawl.rules judges them beside hosts."""
        of_addresses = [value for value in hosts if value.rule.startswith("address ")]
        others = [value for value in hosts if not value.rule.startswith("address ")]
        for value in of_addresses:
            if others:
                reason = "address rules hold beside domain rules, not in their place: write them if all hosts have such addresses"
                self._report.add(value.line, value.option, Fate.NO_COUNTERPART, reason, is_recalled=True)
            else:
                self._rule(f"allow {value.rule}", value)
        if of_addresses and not others:
            self._rules += [(rule, None) for rule in ("forbid address 0.0.0.0 0.0.0.0", "forbid address :: ::")]
        return others

    def _allow(self, kind: str, values: Sequence[ListedValue]) -> None:
        for value in values:
            self._rule(f"allow {value.rule}", value)
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
                lines += xml_rule([_place(self._report, value)], value.condition, ["<Accept/>"])
        elif accepted:
            places = [_place(self._report, value) for values in accepted for value in values]
            parts = "\n      ".join(_any_of([value.condition for value in _different(values)]) for values in accepted)
            lines += xml_rule(places, f"<And>\n      {parts}\n    </And>", ["<Accept/>"])
        for value in _different([value for value, _ in self._xml]):
            lines += xml_rule([_place(self._report, value)], value.condition, ["<Ignore/>"])

    def _write_crawl_rules(self) -> None:
        without = without_effect([rule for rule, _ in self._rules])
        kept = [one for place, one in enumerate(self._rules) if place not in without]
        dropped = {self._rules[place]: why for place, why in without.items()}
        for rule, value in self._rules:
            if value is not None and (rule, value) not in dropped and not value.option.endswith("/file"):
                recalled = value.option.rpartition("/")[2] not in CONFIRMED
                self._report.add(value.line, value.option, Fate.TRANSLATED, f"`{rule}` in crawl.rules", is_recalled=recalled)
        for (rule, value), why in dropped.items():
            if value is not None and not value.option.endswith("/file"):
                text = f"nothing: `{rule}` would change no decision ({why})"
                self._report.add(value.line, value.option, Fate.TRANSLATED, text)
        place = ""
        for rule, value in kept:
            if value is not None:
                place = _place(self._report, value)
                self.files.crawl_rules.append(f"# {place}")
            elif rule.startswith("allow domain ") and place != _NAMED_HOSTS:
                place = _NAMED_HOSTS
                self.files.crawl_rules.append(f"# {place}")
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


def _any_of(conditions: Sequence[str]) -> str:
    return conditions[0] if len(conditions) == 1 else f"<Or> {' '.join(conditions)} </Or>"


def _place(report: ImportReport, value: ListedValue) -> str:
    return f"{report.file}:{value.line}: {value.option}"
