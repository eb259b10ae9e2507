"""A collection of FAST's web crawler as a collection of ours: all options translated or reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from crawlspace.importers.access import form_login, proxies
from crawlspace.importers.fast import options as fast_options
from crawlspace.importers.fast.options import (
    ADAPTIVE,
    ADAPTIVE_LOST,
    CRAWLMODE,
    LOGIN_OPTIONS,
    OPTIONS,
    READERS,
    RSS,
    SECTIONS,
    form_of_login,
    refresh,
    refresh_mode,
    site_login,
)
from crawlspace.importers.fast.rules import LISTS, FastLists, ListedValue, space_files
from crawlspace.importers.fast.xml import FastOption, FastSection
from crawlspace.importers.files import (
    ImportedCollection,
    ImportedStart,
    SettingsFile,
    any_of,
    heading,
    imported_collection,
    start_url,
    xml_document,
    xml_rule,
)
from crawlspace.importers.reading import ListFiles, WrittenValue
from crawlspace.importers.translation import (
    Defaults,
    Fate,
    ImportReport,
    Translate,
    Translation,
    WrongValue,
    extensions,
    lost,
    number,
    one_value,
    setting,
    sitemaps,
    translated,
    unknown,
    whole,
    yes_or_no,
)
from crawlspace.text import printable, quoted

_TranslateOfSite: TypeAlias = "Callable[[_FastImport, Sequence[str], str], Translation]"
DELAY_S = 60
"""FAST's default delay: the only default that public documentation confirms."""
_FIRST_OPTIONS = ("robots", "truncate")
"""Options that others depend on."""


def translate_fast(
    section: FastSection, *, file: str, folder: Path, name: str, defaults: Mapping[str, object]
) -> ImportedCollection:
    """Translate a collection; `folder` is that of the file, `name` the new one, `defaults` the settings of the project."""
    return _FastImport(section, ImportReport(file), ListFiles(folder), name=name, defaults=defaults).collection()


class _FastImport:
    def __init__(
        self, section: FastSection, report: ImportReport, lists: ListFiles, *, name: str, defaults: Mapping[str, object]
    ) -> None:
        self._section = section
        self._report = report
        self._list_files = lists
        self._name = name
        self._defaults = defaults
        self._heading = heading(f"The collection {printable(section.name)} of FAST's web crawler", "import-fast", report.file)
        self._settings = SettingsFile(self._heading)
        self._starts: list[tuple[str, WrittenValue]] = []
        self._options = {option.name: option for option in section.options}
        self._feeds_named: list[str] = []
        self._of_parts: list[str] = []
        """Rules of rules.xml for single hosts, after all others."""

    def collection(self) -> ImportedCollection:
        for option in self._section.options:
            self._option(option)
        if not self._names_delay():
            self._settings.set(
                {"DOWNLOAD_DELAY": DELAY_S},
                f"{self._report.file}: names no delay that can be used; FAST's default is {DELAY_S} s",
            )
            if "delay" not in self._options:
                self._report.add(self._section.line, "delay", Fate.TRANSLATED, f"DOWNLOAD_DELAY = {DELAY_S}, the default of FAST")
        for section in self._section.sections:
            self._part(section)
        for element in self._section.unknown:
            self._add(element.line, element.text, lost("it is no element of such a file"))
        lists = FastLists(self._section.sections, self._report, self._list_files)
        space = space_files(lists, self._report)
        if space.accepts_named_only:
            self._settings.set({"CRAWLSPACE_DEFAULT_ACCEPT": False}, "only what a rule of rules.xml accepts is crawled")
        if space.names_or_addresses:
            why = "a host is crawled that a domain rule names, or whose address an address rule allows"
            self._settings.set({"CRAWLSPACE_NAMED_HOSTS_ANY_ADDRESS": True}, why)
        self._settings.set({"CRAWLSPACE_HOST_CASE_SENSITIVE": False}, "FAST compares hosts without regard to capitals")
        self._settings.set(setting(self._defaults, "CRAWLSPACE_RULES_XML_REGEX", "escaped").settings, "rules.xml is written so")
        return imported_collection(
            self._settings,
            space.crawl_rules,
            xml_document(
                f"From {self._report.file}, by scrapy import-fast: what crawl.rules cannot say.",
                [*space.rules_xml, *self._of_parts],
            ),
            list(self._imported_starts()),
            self._report,
            heading=self._heading,
            effective={**self._defaults, **self._settings.values},
            refused="refused, as by FAST",
        )

    # --- options -----------------------------------------------------------------------------------------------------

    def _option(self, option: FastOption) -> None:
        if self._options[option.name] is not option:
            self._add(option.line, option.name, lost(f"it comes again in line {self._options[option.name].line}, which counts"))
        elif option.name == "start_uris":
            self._starts += [(option.name, value) for value in option.values]
        elif option.name == "start_uri_files":
            lines = self._list_files.read_all(option.values, self._report, option.name)
            self._starts += [(option.name, WrittenValue(value.text, option.line)) for value in lines]
        elif option.name in OWN_OPTIONS:
            self._translate(option, option.name, lambda values, _: OWN_OPTIONS[option.name](self, values))
        elif option.name in OPTIONS:
            self._translate(option, option.name, OPTIONS[option.name])
            if option.name == "info":
                self._settings.heading += f"# {printable(option.text)}\n"
        else:
            self._add(option.line, option.name, unknown(option.name, [*OPTIONS, *OWN_OPTIONS, "start_uris", "start_uri_files"]))

    def _translate(self, option: FastOption, name: str, translate: Translate) -> None:
        """Translate an option by a function, set what it sets, and report it under a name."""
        translation = translated(translate, [value.text for value in option.values], self._defaults)
        self._settings.set(translation.settings, f"{self._report.file}:{option.line}: {printable(name)}")
        self._add(option.line, name, translation)

    def _meta_robots(self, values: Sequence[str]) -> Translation:
        obeys = yes_or_no(values)
        if obeys and self._yes("robots", usual=True):
            return Translation(Fate.DEFAULT, "meta robots are obeyed where robots.txt is")
        return setting(self._defaults, "CRAWLSPACE_META_ROBOTS", obeys)

    def _robots(self, values: Sequence[str]) -> Translation:
        found = setting(self._defaults, "ROBOTSTXT_OBEY", yes_or_no(values))
        if not found.settings or "check_meta_robots" in self._options:
            return found
        settings = {**found.settings, "CRAWLSPACE_META_ROBOTS": True}
        return Translation(
            Fate.TRANSLATED, f"{found.text}, and CRAWLSPACE_META_ROBOTS = True, which FAST obeys independently", settings
        )

    def _cut_off(self, values: Sequence[str]) -> Translation:
        most = whole(values, low=1)
        settings: dict[str, object] = dict.fromkeys(("DOWNLOAD_MAXSIZE", "CRAWLSPACE_FILE_MAXSIZE"), most)
        text = f"{' and '.join(settings)} = {most}"
        if not self._yes("truncate", usual=True):
            return Translation(Fate.TRANSLATED, text, settings)
        text += ", and CRAWLSPACE_TRUNCATE_PAGES = True: a longer page is cut there, and a larger file is found by its name only"
        return Translation(Fate.TRANSLATED, text, {**settings, _TRUNCATE: True})

    def _truncate(self, values: Sequence[str]) -> Translation:
        return setting(self._defaults, _TRUNCATE, yes_or_no(values))

    def _max_pending(self, values: Sequence[str]) -> Translation:
        most = whole(values, low=1)
        if most == 1 and self._delays():
            return Translation(Fate.DEFAULT, "one request at a time to a site with a delay")
        self._settings.of_all_sites["concurrency"] = most
        return Translation(Fate.TRANSLATED, f'CRAWLSPACE_SITES = {{"*": {{"concurrency": {most}}}}}')

    def _delays(self) -> bool:
        """Return whether sites have a delay."""
        return not self._names_delay() or number([value.text for value in self._options["delay"].values]) > 0

    def _names_delay(self) -> bool:
        option = self._options.get("delay")
        try:
            return option is not None and number([value.text for value in option.values]) >= 0
        except WrongValue:
            return False

    def _proxy(self, values: Sequence[str]) -> Translation:
        return proxies(values, collection=self._name)

    def _yes(self, name: str, *, usual: bool) -> bool:
        option = self._options.get(name)
        try:
            return usual if option is None else yes_or_no([value.text for value in option.values])
        except WrongValue:
            return usual

    # --- sections ----------------------------------------------------------------------------------------------------

    def _part(self, section: FastSection) -> None:
        name = section.name if section.kind == "section" else f"{section.kind} {section.name}"
        if section.kind == "SubDomain":
            self._sub_domain(section)
        elif section.kind == "Login":
            self._form_login(section, name)
        elif section.kind == "Node":
            self._add(section.line, name, lost("each worker crawls with the settings of the collection (docs/machines.md)"))
        elif name in OWN_SECTIONS:
            OWN_SECTIONS[name](self, section)
        elif name in READERS:
            self._rows(section)
        elif name in SECTIONS:
            self._add(section.line, name, SECTIONS[name]([], self._defaults))
        elif name not in LISTS:
            self._add(section.line, name, unknown(name, [*LISTS, *READERS, *SECTIONS, *OWN_SECTIONS]))
        for nested in section.sections if section.kind == "section" and name not in {*LISTS, *SECTIONS, "adaptive"} else ():
            self._add(nested.line, f"{name}/{nested.name}", lost("it is no section that belongs here"))
        for element in section.unknown:
            self._add(element.line, f"{name}/{element.text}", lost("it is no element of such a file"))

    def _crawl_mode(self, section: FastSection) -> None:
        for option in section.options:
            if option.name in CRAWLMODE:
                self._translate(option, f"{section.name}/{option.name}", CRAWLMODE[option.name])
            else:
                self._add(option.line, f"{section.name}/{option.name}", unknown(option.name, CRAWLMODE))

    def _rows(self, section: FastSection) -> None:
        """Translate a section whose options together are one setting."""
        translations, settings = READERS[section.name](section, self._defaults)
        for option, translation in translations:
            self._add(option.line, f"{section.name}/{option.name}", translation)
        for option, translation in translations:
            if translation.fate is Fate.TRANSLATED:
                self._settings.set(settings, f"{self._report.file}:{option.line}: {section.name}/{printable(option.name)}")

    def _passwords(self, section: FastSection) -> None:
        for option in section.options:
            name = f"passwd/{option.name}"
            if len(option.values) != 1:
                self._add(option.line, name, lost("it has one value, user:password"))
                continue
            login = site_login(option.name, option.text, collection=self._name)
            if login.pattern:
                self._settings.set_site(login.pattern, login.own, f"{self._report.file}:{option.line}: {printable(name)}")
                self._add(option.line, name, Translation(Fate.TRANSLATED, login.text))
            else:
                self._add(option.line, name, lost(login.text))

    def _form_login(self, section: FastSection, name: str, hosts: Sequence[str] = ()) -> None:
        """Translate a log-in by a form, for its own sites, else for `hosts`, and report its options without their values."""
        try:
            login = form_of_login(section)
            entries, text = form_login(login if login.sites or not hosts else replace(login, sites=hosts), collection=self._name)
        except WrongValue as error:
            self._add(section.line, name, lost(f"it cannot be used: {error}"))
            return
        for pattern, entry in entries.items():
            self._settings.set_site(pattern, entry, f"{self._report.file}:{section.line}: {printable(name)}")
        self._add(section.line, name, Translation(Fate.TRANSLATED, text))
        for option in section.options:
            why = LOGIN_OPTIONS.get(option.name)
            if why is None:
                self._add(option.line, f"{name}/{option.name}", unknown(option.name, LOGIN_OPTIONS))
            else:
                fate = Fate.DEFAULT if why else Fate.TRANSLATED
                self._add(option.line, f"{name}/{option.name}", Translation(fate, why or "a part of the log-in"))
        for nested in section.sections:
            known = nested.name == "parameters"
            found = Translation(Fate.TRANSLATED, "the fields of the form") if known else unknown(nested.name, ["parameters"])
            self._add(nested.line, f"{name}/{nested.name}", found)

    # --- feeds and cycles --------------------------------------------------------------------------------------------

    def _feeds(self, section: FastSection) -> None:
        """Translate the feeds of a collection; where it has no other start URLs, they are the start URLs."""
        for option in section.options:
            name = f"rss/{option.name}"
            if option.name == "start_uris":
                self._add_feeds(name, option.line, option.values)
            elif option.name == "start_uri_files":
                lines = self._list_files.read_all(option.values, self._report, name)
                self._add_feeds(name, option.line, [WrittenValue(value.text, option.line) for value in lines])
            elif option.name in RSS:
                self._translate(option, name, RSS[option.name])
            else:
                self._add(option.line, name, unknown(option.name, [*RSS, "start_uris", "start_uri_files"]))

    def _add_feeds(self, name: str, line: int, values: Sequence[WrittenValue]) -> None:
        if not self._names_starts():
            self._starts += [(name, value) for value in values]
            return
        urls = self._feeds_named
        for value in values:
            url = start_url(value)
            if isinstance(url, Translation):
                self._add(value.line, name, url)
            elif url.text not in urls:
                urls.append(url.text)
                self._add(value.line, name, Translation(Fate.TRANSLATED, f"{printable(url.text)} in {_SITEMAPS}"))
        if urls:
            self._settings.set({_SITEMAPS: urls}, f"{self._report.file}:{line}: {printable(name)}")

    def _names_starts(self) -> bool:
        return any(name in self._options and self._options[name].values for name in ("start_uris", "start_uri_files"))

    def _sitemaps(self, values: Sequence[str]) -> Translation:
        if not yes_or_no(values) and any(section.name == "rss" for section in self._section.sections):
            return lost("sitemaps are read where feeds are, and the section rss has feeds read")
        return sitemaps(values, self._defaults)

    def _refresh(self, values: Sequence[str]) -> Translation:
        if self._mode() == "adaptive":
            number(values)
            return Translation(Fate.TRANSLATED, "the intervals of refresh_mode adaptive")
        return refresh(values, self._defaults)

    def _refresh_mode(self, values: Sequence[str]) -> Translation:
        """Translate the mode of cycles. Adaptive: each page between once in every part of a cycle, and as seldom as its share allows."""
        if self._mode() != "adaptive":
            return refresh_mode(values, self._defaults)
        minutes = self._number_of("refresh", REFRESH_MIN) or REFRESH_MIN
        adaptive = next((one for one in self._section.sections if one.name == "adaptive"), None)
        given = {option.name: option for option in (adaptive.options if adaptive is not None else ())}
        found: dict[str, float] = {}
        for name, usual in ADAPTIVE.items():
            try:
                found[name] = number([value.text for value in given[name].values]) if name in given else usual
            except WrongValue:
                found[name] = usual
        least = minutes / max(1.0, found["refresh_count"])
        most = least * 100 / min(100.0, max(1.0, found["coverage_max_pct"]))
        settings = {name: f"{max(1, round(value))}m" for name, value in zip(_BOUNDS, (least, most), strict=True)}
        text = " and ".join(f"{name} = {value!r}" for name, value in settings.items())
        why = "each page is fetched as often as it changes, between once in a part of a cycle and once in all of its site"
        return Translation(Fate.TRANSLATED, f"{text}: {why}", settings)

    def _mode(self) -> str:
        option = self._options.get("refresh_mode")
        return "" if option is None else option.text.lower()

    def _number_of(self, name: str, usual: float) -> float:
        option = self._options.get(name)
        try:
            return usual if option is None else number([value.text for value in option.values])
        except WrongValue:
            return usual

    def _adaptive(self, section: FastSection) -> None:
        is_used = self._mode() == "adaptive"
        for option in section.options:
            name = f"adaptive/{option.name}"
            if not is_used and option.name in {*ADAPTIVE, *ADAPTIVE_LOST}:
                self._add(option.line, name, Translation(Fate.DEFAULT, "it is for refresh_mode adaptive only"))
            elif option.name in ADAPTIVE:
                self._translate(option, name, _adaptive_number)
            elif option.name in ADAPTIVE_LOST:
                self._add(option.line, name, lost(ADAPTIVE_LOST[option.name]))
            else:
                self._add(option.line, name, unknown(option.name, [*ADAPTIVE, *ADAPTIVE_LOST]))
        for nested in section.sections:
            known = nested.name == "weights"
            found = lost(ADAPTIVE_LOST["weights"]) if known else unknown(nested.name, ["weights"])
            if known and not is_used:
                found = Translation(Fate.DEFAULT, "it is for refresh_mode adaptive only")
            self._add(nested.line, f"adaptive/{nested.name}", found)

    # --- sub-domains -------------------------------------------------------------------------------------------------

    def _sub_domain(self, section: FastSection) -> None:
        """Translate the settings of a part of the collection, as far as it is a part by host."""
        within = f"SubDomain {section.name}/"
        lists = FastLists(section.sections, self._report, self._list_files, within=within)
        named: list[ListedValue] = []
        for value in lists.values["include_domains"]:
            if value.rule.startswith("domain "):
                named.append(value)
            else:
                reason = "settings differ between sites, which are named by their hosts, and not by expressions or addresses"
                self._add(value.line, f"{within}{value.option}", lost(reason))
        hosts = [value.named for value in named]
        self._rules_of_part(lists, within, [value.condition for value in named])
        own: dict[str, object] = {}
        for option in section.options:
            own.update(self._site_option(option, within, hosts))
        for nested in section.sections:
            if nested.name == "variable_delay":
                own.update(self._delays_of_part(nested, within, hosts))
        for value in named:
            entry = f"the entry {quoted(value.named)} of CRAWLSPACE_SITES"
            nothing = lost("the sub-domain has no option that can differ between sites")
            self._add(value.line, f"{within}{value.option}", Translation(Fate.TRANSLATED, entry) if own else nothing)
        for nested in section.sections:
            if nested.kind == "Login":
                self._form_login(nested, f"{within}Login {nested.name}", hosts)
            elif nested.name == "passwd":
                self._passwords(nested)
            elif nested.name not in {*LISTS, "variable_delay"}:
                self._add(nested.line, f"{within}{nested.name}", lost(_ONE_FOR_ALL))
        for host in hosts if own else ():
            self._settings.set_site(host, own, f"{self._report.file}:{section.line}: {printable(within[:-1])}")

    def _rules_of_part(self, lists: FastLists, within: str, hosts: Sequence[str]) -> None:
        """Translate the lists of a sub-domain, other than its hosts, into rules of rules.xml for these hosts."""
        included = lists.values["include_uris"]
        for value in (*included, *lists.values["exclude_domains"], *lists.values["exclude_uris"]):
            name = f"{within}{value.option}"
            if not hosts:
                self._add(value.line, name, lost("the sub-domain names no host that a rule of rules.xml could be for"))
            elif not value.condition:
                self._add(value.line, name, lost("addresses are for all hosts: write an address rule"))
            else:
                self._add(
                    value.line, name, Translation(Fate.TRANSLATED, f"a rule of rules.xml (Ignore) for the hosts of {within[:-1]}")
                )
        if not hosts:
            return
        origin = f"{self._report.file}: {printable(within[:-1])}"
        if conditions := [value.condition for value in included if value.condition]:
            only = f"<And> {any_of(hosts)} <Not> {any_of(conditions)} </Not> </And>"
            self._of_parts += xml_rule([f"{origin}: only its include_uris"], only, ["<Ignore/>"])
        for value in (*lists.values["exclude_domains"], *lists.values["exclude_uris"]):
            if value.condition:
                condition = f"<And> {any_of(hosts)} {value.condition} </And>"
                self._of_parts += xml_rule([f"{origin}:{value.line}: {value.option}"], condition, ["<Ignore/>"])

    def _site_option(self, option: FastOption, within: str, hosts: Sequence[str]) -> Mapping[str, object]:
        name, values = f"{within}{option.name}", [value.text for value in option.values]
        if option.name == "start_uris":
            self._starts += [(name, value) for value in option.values]
            return {}
        if option.name == "start_uri_files":
            lines = self._list_files.read_all(option.values, self._report, name)
            self._starts += [(name, WrittenValue(value.text, option.line)) for value in lines]
            return {}
        translate = _OF_SITES.get(option.name)
        if translate is None:
            self._add(option.line, name, lost(_ONE_FOR_ALL))
            return {}
        found = translated(lambda values, _: translate(self, values, within[:-1]), values, self._defaults)
        if found.settings and not hosts:
            found = lost(_NO_HOST)
        if option.name == "cut_off" and found.settings and self._yes("truncate", usual=True):
            self._settings.set({_TRUNCATE: True}, f"{self._report.file}:{option.line}: {printable(name)}")
        self._add(option.line, name, found)
        return found.settings

    def _delays_of_part(self, section: FastSection, within: str, hosts: Sequence[str]) -> Mapping[str, object]:
        """Translate the delays of a sub-domain by the time of the week."""
        rows, settings = READERS[section.name](section, self._defaults)
        for option, found in rows:
            moved = _as_key(found, "CRAWLSPACE_VARIABLE_DELAY", "variable_delay")
            name = f"{within}{section.name}/{option.name}"
            self._add(option.line, name, moved if hosts or found.fate.is_lost else lost(_NO_HOST))
        return {"variable_delay": settings["CRAWLSPACE_VARIABLE_DELAY"]} if hosts and settings else {}

    def _refresh_of_part(self, values: Sequence[str], _: str) -> Translation:
        """Translate the interval of a sub-domain, which is one of its pages here, and not that of a cycle."""
        minutes = number(values)
        if not minutes:
            raise WrongValue("it is a number of minutes above 0")
        of_all = self._number_of("refresh", 0)
        if of_all and minutes > of_all and self._mode() != "adaptive":
            return lost(f"the cycle of the collection ({of_all:g} minutes) has all that is known fetched, and is shorter")
        return _of_site({"refresh_min": f"{minutes}m", "refresh_max": f"{minutes}m"})

    def _proxy_of_part(self, values: Sequence[str], part: str) -> Translation:
        return _as_key(proxies(values, collection=f"{self._name}_{part}"), "CRAWLSPACE_PROXY", "proxy")

    # --- start URLs --------------------------------------------------------------------------------------------------

    def _imported_starts(self) -> Iterator[ImportedStart]:
        """Yield the start URLs that can be used, and report the others."""
        for name, value in self._starts:
            url = start_url(value)
            if isinstance(url, Translation):
                self._add(value.line, name, url)
            else:
                recalled = name not in fast_options.CONFIRMED
                is_of_file = name == "start_uri_files"  # these are reported together
                yield ImportedStart(name, value.line, url, is_recalled=recalled, is_reported=not is_of_file)

    def _add(self, line: int, name: str, translation: Translation) -> None:
        self._report.add_translation(line, name, translation, is_recalled=name not in fast_options.CONFIRMED)


def _adaptive_number(values: Sequence[str], _: Defaults) -> Translation:
    number(values)
    return Translation(Fate.TRANSLATED, "the intervals of refresh_mode adaptive")


OWN_OPTIONS = {
    "robots": _FastImport._robots,
    "check_meta_robots": _FastImport._meta_robots,
    "cut_off": _FastImport._cut_off,
    "truncate": _FastImport._truncate,
    "max_pending": _FastImport._max_pending,
    "proxy": _FastImport._proxy,
    "use_sitemaps": _FastImport._sitemaps,
    "refresh": _FastImport._refresh,
    "refresh_mode": _FastImport._refresh_mode,
}
"""Options that depend on others, or on the collection."""
OWN_SECTIONS = {
    "passwd": _FastImport._passwords,
    "crawlmode": _FastImport._crawl_mode,
    "rss": _FastImport._feeds,
    "adaptive": _FastImport._adaptive,
}
"""Sections of which each option is reported."""
_SITEMAPS = "CRAWLSPACE_SITEMAPS"
_TRUNCATE = "CRAWLSPACE_TRUNCATE_PAGES"
_BOUNDS = ("CRAWLSPACE_REFRESH_MIN", "CRAWLSPACE_REFRESH_MAX")
REFRESH_MIN = 1500
"""FAST's default of `refresh`, in minutes."""
_ONE_FOR_ALL = "it cannot differ between sites"
_NO_HOST = "the sub-domain names no host that an entry of CRAWLSPACE_SITES could be for"


def _of_site(own: Mapping[str, object], *, note: str = "") -> Translation:
    text = ", ".join(f"{key!r}: {value!r}" for key, value in own.items())
    return Translation(Fate.TRANSLATED, f"{text} in CRAWLSPACE_SITES{note}", own)


def _as_key(found: Translation, name: str, key: str) -> Translation:
    """Return the translation to a setting as one to a key of CRAWLSPACE_SITES."""
    own = {key: found.settings[name]} if name in found.settings else {}
    return replace(found, text=found.text.replace(name, f"{key!r} of CRAWLSPACE_SITES"), settings=own)


def _key(key: str, read: Callable[[Sequence[str]], object]) -> _TranslateOfSite:
    """Return a translation to one key of an entry."""
    return lambda _, values, __: _of_site({key: read(values)})


def _sizes(importing: _FastImport, values: Sequence[str], _: str) -> Translation:
    cuts = importing._yes("truncate", usual=True)
    note = ", and CRAWLSPACE_TRUNCATE_PAGES = True, for all sites" if cuts else ""
    return _of_site(dict.fromkeys(("download_maxsize", "file_maxsize"), whole(values, low=1)), note=note)


def _extensions(_: _FastImport, values: Sequence[str], __: str) -> Translation:
    return _as_key(extensions(values, {}), "CRAWLSPACE_EXCLUDE_EXTENSIONS", "exclude_extensions")


_OF_SITES: Mapping[str, _TranslateOfSite] = {
    "delay": _key("delay", number),
    "max_pending": _key("concurrency", lambda values: whole(values, low=1)),
    "max_doc": _key("max_urls_per_host", lambda values: whole(values, low=1)),
    "sort_query_params": _key("url_sort_query", yes_or_no),
    "use_javascript": _key("render", lambda values: "always" if yes_or_no(values) else "never"),
    "use_sitemaps": _key("follow", lambda values: "both" if yes_or_no(values) else "links"),
    "if_modified_since": _key("conditional_get", yes_or_no),
    "user_agent": _key("user_agent", one_value),
    "allowed_types": _key("mime_types", lambda values: [value.lower() for value in values]),
    "exclude_exts": _extensions,
    "cut_off": _sizes,
    "refresh": _FastImport._refresh_of_part,
    "proxy": _FastImport._proxy_of_part,
}
"""Options that may differ between sites, as keys of CRAWLSPACE_SITES; the last argument names the part of the collection."""
