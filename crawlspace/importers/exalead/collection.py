"""A crawler of Exalead CloudView as a collection of ours: all attributes and elements translated or reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from crawlspace.frontier.source_weights import NAME as WEIGHTS
from crawlspace.importers.exalead.options import (
    CONFIRMED,
    OPTIONS,
    THROTTLE_MS,
    fetcher_options,
    is_fetcher,
    mime_types,
    queue_weights,
    throttle,
)
from crawlspace.importers.exalead.roots import Roots
from crawlspace.importers.exalead.rules import accepted_hosts, imported_rules
from crawlspace.importers.exalead.xml import COMMENT, Attribute, ConfigElement, ExaleadCrawler
from crawlspace.importers.files import ImportedCollection, SettingsFile, heading, imported_collection, xml_document
from crawlspace.importers.translation import (
    Fate,
    ImportReport,
    Translate,
    Translation,
    WrongValue,
    lost,
    setting,
    translated,
    unknown,
    whole,
    yes_or_no,
)
from crawlspace.parsing import duration
from crawlspace.rules.xml.model import RegexSyntax
from crawlspace.text import printable, quoted

PARTS = ("Root", "Rules", "CrawlSchedulerConfig", "CustomCrawlConfig")
"""Elements of a Crawler."""
_REGEX = "CRAWLSPACE_RULES_XML_REGEX"
_REFRESH = {"smartRefreshMinAgeS": "CRAWLSPACE_REFRESH_MIN", "smartRefreshMaxAgeS": "CRAWLSPACE_REFRESH_MAX"}


def translate_exalead(
    crawler: ExaleadCrawler, *, file: str, name: str, defaults: Mapping[str, object], syntax: RegexSyntax | None = None
) -> ImportedCollection:
    """Translate a crawler; `name` is the new one, `defaults` the settings of the project, `syntax` the requested one."""
    return _ExaleadImport(crawler, ImportReport(file), name=name, defaults=defaults, syntax=syntax).collection()


class _ExaleadImport:
    def __init__(
        self,
        crawler: ExaleadCrawler,
        report: ImportReport,
        *,
        name: str,
        defaults: Mapping[str, object],
        syntax: RegexSyntax | None,
    ) -> None:
        self._crawler = crawler
        self._report = report
        self._name = name
        self._defaults = defaults
        self._syntax = syntax or RegexSyntax(str(defaults[_REGEX]))
        what = f"The crawler {printable(crawler.name)}" if crawler.name else "Rules"
        self._heading = heading(f"{what} of Exalead CloudView", "import-exalead", report.file)
        self._settings = SettingsFile(self._heading)
        if syntax is not None:
            self._settings.set({_REGEX: syntax.value}, "as set by --regex")
        self._attributes = {} if crawler.has_rules_only else crawler.node.attributes
        self._roots: list[ConfigElement] = []
        self._rules: list[ConfigElement] = []

    def collection(self) -> ImportedCollection:
        for element in self._crawler.holders:
            self._holder(element)
        for element in self._crawler.siblings:
            self._sibling(element)
        if self._crawler.has_rules_only:
            self._of_rules_only(self._crawler.node)
        else:
            for attribute in self._attributes.values():
                self._attribute(attribute)
            self._missing_attributes()
            self._parts(self._crawler.node)
        roots = Roots(self._roots, self._report)
        if not roots.all:
            text = "it names no root that can be used: write the start URLs into start_urls.txt"
            self._report.add(self._crawler.node.line, "Root", Fate.NO_COUNTERPART, text)
        accept = self._settings.values.get("CRAWLSPACE_DEFAULT_ACCEPT", self._defaults["CRAWLSPACE_DEFAULT_ACCEPT"]) is True
        of_roots = roots.rules_xml(accept=accept, follows_roots=self._follows_roots())
        of_file = imported_rules(self._rules, self._report, syntax=self._syntax)
        self._settings.set({"CRAWLSPACE_HOST_CASE_SENSITIVE": False}, "Exalead compares hosts without regard to capitals")
        rules_xml = xml_document(
            f"From {self._report.file}, by scrapy import-exalead: its rules, each with its line.", [*of_roots, *of_file]
        )
        allowed = roots.crawl_rules()
        if not allowed and not accept and (hosts := accepted_hosts(self._rules)):
            allowed = [
                "# Hosts that rules of rules.xml accept: they may have private addresses.",
                *(f"allow domain {host}" for host in hosts),
            ]
        return imported_collection(
            self._settings,
            allowed,
            rules_xml,
            list(roots.starts()),
            self._report,
            heading=self._heading,
            effective={**self._defaults, **self._settings.values, _REGEX: self._syntax.value},
            refused="refused by the rules",
        )

    # --- elements ----------------------------------------------------------------------------------------------------

    def _holder(self, element: ConfigElement) -> None:
        """Report the attributes of an element that holds crawlers."""
        for attribute in element.attributes.values():
            name = f"{element.name}/{attribute.name}"
            if attribute.name == "version":
                self._add(attribute.line, name, Translation(Fate.DEFAULT, "it says when the file was written"))
            elif attribute.name == "verbose":
                self._translate(attribute, name, OPTIONS["verbose"])
            else:
                self._add(attribute.line, name, unknown(attribute.name, ["version", "verbose"]))

    def _sibling(self, element: ConfigElement) -> None:
        """Report an element outside of all crawlers, or read it if it has the settings of this one's fetcher."""
        if is_fetcher(element):
            self._fetcher(element)
        elif element.name == "Rules":
            self._add(element.line, element.name, lost("these Rules are in no Crawler"), is_recalled=False)
        else:
            self._add(element.line, element.name, unknown(element.name, ["Crawler", "Fetcher"]))

    def _of_rules_only(self, node: ConfigElement) -> None:
        """Read a file without a Crawler: the topmost Rules; all else is reported."""
        if node.name == "Rules" and not node.is_foreign:
            self._rules.append(node)
            return
        holds_rules = any(node.named("Rules"))
        if not holds_rules:
            self._add(node.line, node.name, unknown(node.name, ["Rules", "Crawler"]))
            return
        for attribute in node.attributes.values():
            self._add(
                attribute.line, f"{node.name}/{attribute.name}", lost("only the Rules of a file without a Crawler are read")
            )
        for child in node.elements:
            self._of_rules_only(child)

    def _parts(self, node: ConfigElement, within: str = "") -> None:
        if node.text.strip():
            self._add(
                node.line, f"{within}{node.name}", lost("text is not allowed here: values are attributes"), is_recalled=False
            )
        for child in node.children:
            if child.name == COMMENT:
                continue
            name = f"{within}{child.name}"
            if child.is_foreign:
                self._add(child.line, name, lost("it is in a namespace of others"), is_recalled=False)
            elif child.name == "Root":
                self._roots.append(child)
            elif child.name == "Rules":
                self._rules.append(child)
            elif child.name == "CrawlSchedulerConfig":
                self._weights(child)
            elif child.name == "CustomCrawlConfig":
                reason = "its processors are programs of CloudView; a spider's xml_document() and pipelines are the places for yours (docs/collections.md)"
                self._add(child.line, name, lost(reason), is_recalled=False)
            elif is_fetcher(child):
                self._fetcher(child)
            elif any(next(child.named(part), None) for part in PARTS):
                self._add(child.line, name, Translation(Fate.DEFAULT, "its contents are read as if they were here"))
                for attribute in child.attributes.values():
                    self._add(attribute.line, f"{name}/{attribute.name}", lost("its purpose is not known"))
                self._parts(child, f"{name}/")
            else:
                self._add(child.line, name, unknown(child.name, [*PARTS, "Fetcher"]))

    def _weights(self, config: ConfigElement) -> None:
        found, weights = queue_weights(config)
        origin = f"{self._report.file}:{config.line}: {config.name}"
        for line, option, translation in found:
            self._add(line, option, translation)
        if not found:
            self._add(config.line, config.name, Translation(Fate.DEFAULT, "it has no weights"))
        if weights:
            self._settings.set({WEIGHTS: dict(weights)}, origin)

    def _fetcher(self, element: ConfigElement) -> None:
        named, own = element.attributes.get("name"), self._attributes.get("fetcher")
        if named is not None and own is not None and named.value.strip() != own.value.strip():
            text = f"it is the fetcher {quoted(named.value)}, and this crawler has {quoted(own.value)}"
            self._add(element.line, element.name, Translation(Fate.DEFAULT, text), is_recalled=False)
            return
        for line, option, translation in fetcher_options(element, self._defaults, collection=self._name):
            self._settings.set(translation.settings, f"{self._report.file}:{line}: {printable(option)}")
            self._add(line, option, translation)

    # --- attributes --------------------------------------------------------------------------------------------------

    def _attribute(self, attribute: Attribute) -> None:
        name = attribute.name
        if name in OWN_OPTIONS:
            self._translate(attribute, name, lambda values, _: OWN_OPTIONS[name](self, values))
        elif name in OPTIONS:
            self._translate(attribute, name, OPTIONS[name])
        else:
            self._add(attribute.line, name, unknown(name, [*OPTIONS, *OWN_OPTIONS]))

    def _translate(self, attribute: Attribute, name: str, translate: Translate) -> None:
        translation = translated(translate, [attribute.value.strip()], self._defaults)
        self._settings.set(translation.settings, f"{self._report.file}:{attribute.line}: {printable(name)}")
        self._add(attribute.line, name, translation)

    def _missing_attributes(self) -> None:
        """Write the documented default of settings that concern sites, and report ours if undocumented."""
        line = self._crawler.node.line
        if "throttleTimeMS" not in self._attributes and not self._is_on("aggressive"):
            found = throttle([str(THROTTLE_MS)], self._defaults)
            self._settings.set(found.settings, f"{self._report.file}: names no throttleTimeMS; its default is {THROTTLE_MS}")
            self._report.add(line, "throttleTimeMS", found.fate, f"{found.text}, the default of Exalead")
        if "defaultAccept" not in self._attributes:
            value = self._defaults["CRAWLSPACE_DEFAULT_ACCEPT"]
            text = (
                f"CRAWLSPACE_DEFAULT_ACCEPT = {value}; the file does not name it, and what Exalead takes then is not documented"
            )
            self._add(line, "defaultAccept", Translation(Fate.DEFAULT, text), is_recalled=True)

    def _value(self, name: str) -> str | None:
        attribute = self._attributes.get(name)
        return None if attribute is None else attribute.value.strip()

    def _is_on(self, name: str, *, usual: bool = False) -> bool:
        value = self._value(name)
        try:
            return usual if value is None else yes_or_no([value])
        except WrongValue:
            return usual

    def _aggressive(self, values: Sequence[str]) -> Translation:
        if not yes_or_no(values):
            return Translation(Fate.DEFAULT, "there is a delay between requests to a site")
        return setting(self._defaults, "DOWNLOAD_DELAY", 0)

    def _throttle(self, values: Sequence[str]) -> Translation:
        found = throttle(values, self._defaults)
        if self._is_on("aggressive"):
            return Translation(Fate.DEFAULT, "an aggressive crawler has no delay")
        return found

    def _named_fetcher(self, values: Sequence[str]) -> Translation:
        name = values[0]
        there = [*self._crawler.siblings, *self._crawler.node.elements]
        if any(
            is_fetcher(one) and ("name" not in one.attributes or one.attributes["name"].value.strip() == name) for one in there
        ):
            return Translation(Fate.TRANSLATED, "the settings of that fetcher, each as below")
        return lost(
            f"the settings of the fetcher {quoted(name)} are not in this file: set USER_AGENT, DOWNLOAD_TIMEOUT and others"
        )

    def _refresh(self, name: str, values: Sequence[str]) -> Translation:
        seconds = whole(values, low=1)
        other = next(key for key in _REFRESH if key != name)
        low, high = (self._age(one, values=seconds if one == name else None) for one in _REFRESH)
        if low > high:
            raise WrongValue(f"the least age, {low:g} s, would be above the greatest, {high:g} s; see {other}")
        return setting(self._defaults, _REFRESH[name], seconds)

    def _age(self, name: str, *, values: int | None) -> float:
        """Return a bound of the refresh interval: the value, else that of the file, else our default."""
        if values is not None:
            return values
        written = self._value(name)
        if written is not None and written.isascii() and written.isdigit() and int(written) > 0:
            return int(written)
        return duration(_REFRESH[name], self._defaults[_REFRESH[name]], low=0)

    def _mime_types_mode(self, values: Sequence[str]) -> Translation:
        if values[0] not in {"include", "exclude"}:
            raise WrongValue("it is include or exclude")
        if self._value("mimeTypes"):
            return Translation(Fate.TRANSLATED, "how mimeTypes is meant")
        text = "no mimeTypes are named; the types taken are those of CRAWLSPACE_MIME_TYPES"
        return Translation(Fate.DEFAULT, text) if values[0] == "exclude" else lost(text)

    def _mime_types(self, values: Sequence[str]) -> Translation:
        if not values[0]:
            return Translation(Fate.DEFAULT, "no types are named")
        mode = self._value("mimeTypesMode")
        if mode not in {"include", "exclude"}:
            return lost("mimeTypesMode does not say whether these types are taken or left out: set CRAWLSPACE_MIME_TYPES")
        return mime_types(values, self._defaults, is_include=mode == "include")

    def _follow_roots(self, values: Sequence[str]) -> Translation:
        follows = yes_or_no(values)
        if self._is_on("defaultFollow", usual=True):
            text = "links are followed by default, those of roots too"
            return Translation(Fate.DEFAULT, text) if follows else lost(f"{text}; a rule with NoFollow is the way")
        if follows:
            return Translation(Fate.TRANSLATED, "a rule of rules.xml for each root, with Follow")
        return Translation(Fate.DEFAULT, "links are followed only where a rule says so, those of roots too")

    def _follows_roots(self) -> bool:
        """Return whether links of roots are followed, and others not."""
        return self._is_on("defaultFollowRoots") and not self._is_on("defaultFollow", usual=True)

    def _add(self, line: int, name: str, translation: Translation, *, is_recalled: bool | None = None) -> None:
        self._report.add_translation(
            line, name, translation, is_recalled=name not in CONFIRMED if is_recalled is None else is_recalled
        )


OWN_OPTIONS: Mapping[str, Callable[[_ExaleadImport, Sequence[str]], Translation]] = {
    "fetcher": _ExaleadImport._named_fetcher,
    "aggressive": _ExaleadImport._aggressive,
    "throttleTimeMS": _ExaleadImport._throttle,
    "defaultFollowRoots": _ExaleadImport._follow_roots,
    "mimeTypesMode": _ExaleadImport._mime_types_mode,
    "mimeTypes": _ExaleadImport._mime_types,
    "smartRefreshMinAgeS": lambda self, values: self._refresh("smartRefreshMinAgeS", values),
    "smartRefreshMaxAgeS": lambda self, values: self._refresh("smartRefreshMaxAgeS", values),
}
"""Attributes that depend on others."""
