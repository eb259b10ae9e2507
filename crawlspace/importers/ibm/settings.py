"""Soft error pages, log-ins, cookies and properties as settings. Passwords and cookies become references to the environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crawlspace.config.sites import NAME as SITES
from crawlspace.content.soft_errors import NAME as SOFT_ERRORS
from crawlspace.errors import UsageError
from crawlspace.importers.access import FormLogIn, basic_login, form_login, proxies, variable
from crawlspace.importers.files import SettingsFile
from crawlspace.importers.ibm.folder import (
    BasicLogin,
    FileKind,
    FolderFile,
    FormRow,
    Property,
    PropertyFile,
    SiteCookie,
    basic_logins,
    cookies,
    form_logins,
    rows,
    soft_error,
)
from crawlspace.importers.ibm.options import BY_NAME, PROXY, IbmOption, known, not_known, values_of
from crawlspace.importers.translation import Fate, ImportReport, Translation, WrongValue, lost, translated
from crawlspace.parsing import duration
from crawlspace.text import counted, printable, quoted
from crawlspace.urls import MalformedUrl, join

_INTERVALS = {"CRAWLSPACE_REFRESH_MIN": "Minimum recrawl interval", "CRAWLSPACE_REFRESH_MAX": "Maximum recrawl interval"}
_MOST_UNKNOWN = 100
"""Properties that are not known, reported one by one for each file."""


class _PropertyOrigin(NamedTuple):
    file: str
    line: int
    is_used: bool


_NOT_USED = _PropertyOrigin("", 0, is_used=False)


class IbmSettings:
    """Adds the files of a folder to the settings of a collection, and reports them."""

    def __init__(
        self,
        settings: SettingsFile,
        report: ImportReport,
        *,
        name: str,
        defaults: Mapping[str, object],
        logged_out: Mapping[str, str],
    ) -> None:
        """`name` is that of the collection; `logged_out` has the sign of a page that asks to log in, by site."""
        self._settings = settings
        self._report = report
        self._name = name
        self._defaults = defaults
        self._logged_out = logged_out
        self._soft_errors: list[tuple[str, str, str, int]] = []
        self._cookies: dict[str, list[tuple[str, SiteCookie]]] = {}
        self._logins: dict[str, str] = {}
        """The origin of each log-in, by the pattern of its hosts."""
        self._options: dict[str, _PropertyOrigin] = {}
        """The origin of each property, by its option."""
        self._proxy: dict[str, tuple[str, Property]] = {}

    def add_rows(self, file: FolderFile, text: str) -> None:
        """Add soft error pages, log-ins or cookies."""
        if file.part is FileKind.SOFT_ERRORS:
            self._add_soft_errors(file.name, text)
        elif file.part is FileKind.BASIC_LOGINS:
            self._add_logins(file.name, list(basic_logins(text)))
        elif file.part is FileKind.FORM_LOGINS:
            self._add_form_logins(file.name, list(form_logins(text)))
        elif file.part is FileKind.COOKIES:
            self._add_cookies(file.name, list(cookies(text)))

    def add_properties(self, file: FolderFile, found: PropertyFile) -> None:
        """Add the properties of a file; one in which none is known is reported as a whole."""
        meant = [(one, *known(one.name)) for one in found.properties]
        if not any(name for _, name, _ in meant):
            reason = f"none of its {counted(len(meant), 'property', 'properties')} is known of IBM's Web crawler"
            self._report.add(0, "file", Fate.NO_COUNTERPART, reason, file=file.name)
            return
        unknown = [one for one, name, _ in meant if not name]
        for one, name, unit in meant:
            if name in PROXY and name in self._proxy:
                self._add_again(file.name, one, self._proxy[name][0], self._proxy[name][1].line)
            elif name in PROXY:
                self._proxy[name] = (file.name, one)
            elif name:
                self._add_property(file.name, one, BY_NAME[name], unit)
        for one in unknown[:_MOST_UNKNOWN]:
            self._add(file.name, one.line, one.name, not_known(one.name))
        if beyond := unknown[_MOST_UNKNOWN:]:
            translation = lost(f"{counted(len(beyond), 'further property is', 'further properties are')} not known")
            self._add(file.name, beyond[0].line, "properties", translation, is_recalled=False)
        self._not_understood(file.name, found.not_understood, "it is no 'name = value'")

    def finish(self) -> None:
        """Add settings that several entries make together. Raises UsageError for a sign of a site that has no cookies."""
        self._add_proxy()
        self._check_intervals()
        self._finish_cookies()

    # --- rows --------------------------------------------------------------------------------------------------------

    def _add_soft_errors(self, file: str, text: str) -> None:
        for row in rows(text):
            try:
                found = soft_error(row.text)
            except WrongValue as error:
                self._add(file, row.line, "soft error page", lost(str(error)), is_recalled=False)
                continue
            self._soft_errors.append(found)
            self._settings.set({SOFT_ERRORS: self._soft_errors}, f"{file}:{row.line}: soft error page")
            translation = Translation(Fate.TRANSLATED, f"{printable(list(found))} in {SOFT_ERRORS}")
            self._add(file, row.line, "soft error page", translation, is_recalled=False)

    def _add_logins(self, file: str, found: Sequence[BasicLogin | int]) -> None:
        for one in found:
            if isinstance(one, int):
                continue
            option = f"log-in {one.url}"
            if not one.user or ":" in one.user:
                self._add(
                    file,
                    one.line,
                    option,
                    lost("it has no user, or one with a colon, which no such log-in has"),
                    is_recalled=False,
                )
                continue
            login = basic_login(one.url, one.user, collection=self._name)
            if not login.pattern:
                self._add(file, one.line, option, lost(login.text), is_recalled=False)
            elif login.pattern in self._logins:
                reason = f"{login.pattern} has a log-in already ({self._logins[login.pattern]}), which is sent to the whole site"
                self._add(file, one.line, option, lost(reason), is_recalled=False)
            else:
                origin = f"{file}:{one.line}"
                self._logins[login.pattern] = origin
                self._settings.set_site(login.pattern, login.own, f"{origin}: {printable(option)}")
                self._add(file, one.line, option, Translation(Fate.TRANSLATED, login.text), is_recalled=False)
        wrong = [one for one in found if isinstance(one, int)]
        self._not_understood(file, wrong, "a row is a URL, a user and a password, divided by tabs, | or commas")

    def _add_form_logins(self, file: str, found: Sequence[FormRow | int]) -> None:
        for one in found:
            if isinstance(one, int):
                continue
            option = f"log-in by a form {one.pattern}"
            # A page of the site that asks to log in would be taken for that of the log-in, and not be indexed.
            page = one.page or one.action or one.pattern.partition("*")[0]
            try:
                url = page if "://" in page else join(one.pattern.partition("*")[0], page)
                entries, text = form_login(FormLogIn(url, one.fields, [one.pattern], one.form), collection=self._name)
            except (WrongValue, MalformedUrl) as error:
                self._add(file, one.line, option, lost(f"it cannot be used: {error}"))
                continue
            origin = f"{file}:{one.line}"
            for pattern, entry in entries.items():
                if pattern in self._logins:
                    reason = f"{pattern} has a log-in already ({self._logins[pattern]}), which is for the whole site"
                    self._add(file, one.line, option, lost(reason), is_recalled=False)
                    continue
                self._logins[pattern] = origin
                self._settings.set_site(pattern, entry, f"{origin}: {printable(option)}")
                note = "" if one.page else "; where the form is on another page than its action, write that page as its 'url'"
                self._add(file, one.line, option, Translation(Fate.TRANSLATED, text + note))
        wrong = [one for one in found if isinstance(one, int)]
        form = "a row is a URL pattern, the name of a form, its action, a method and parameters, divided by tabs, | or commas"
        self._not_understood(file, wrong, form)

    def _add_cookies(self, file: str, found: Sequence[SiteCookie | int]) -> None:
        for one in found:
            if isinstance(one, SiteCookie):
                self._cookies.setdefault(one.site, []).append((file, one))
        wrong = [one for one in found if isinstance(one, int)]
        self._not_understood(file, wrong, "a cookie is in Netscape's format, or name=value in a section with its host")

    def _finish_cookies(self) -> None:
        without = [site for site in self._logged_out if site not in self._cookies]
        if without:
            sites = ", ".join(map(quoted, list(self._cookies)[:10]))
            there = f"there are cookies of {sites}" if sites else "the folder has none"
            raise UsageError(f"--logged-out names {quoted(without[0])}, of which there are no cookies; {there}")
        for site, found in sorted(self._cookies.items(), key=lambda one: "*" in one[0]):
            file, first = found[0]
            names = list(dict.fromkeys(cookie.name for _, cookie in found))
            option = f"cookies of {site}"
            if site in self._logged_out and site not in self._logins:
                own = _cookie_login(self._name, site, names, self._logged_out[site])
                self._settings.set_site(site, {"login": own}, f"{file}:{first.line}: {printable(option)}")
                variables = ", ".join(variable(self._name, site, name) for name in names)
                text = f"a log-in of {site} in {SITES}, with its cookies in the environment: set {variables}"
                self._add(file, first.line, option, Translation(Fate.TRANSLATED, text), is_recalled=False)
            elif site in self._logins:
                reason = f"{site} has a log-in already ({self._logins[site]})"
                self._add(file, first.line, option, lost(reason), is_recalled=False)
            else:
                reason = (
                    f"a file does not say which cookies are a log-in ({printable(', '.join(names))}). Those that a site sets by itself need "
                    f"nothing; for a log-in, import again with --logged-out '{site}=TEXT', a text that only a page shows that asks to log in"
                )
                self._add(file, first.line, option, lost(reason), is_recalled=False)

    def _not_understood(self, file: str, lines: Sequence[int], form: str) -> None:
        """Report lines without showing them: they may have secrets."""
        if lines:
            shown = ", ".join(map(str, lines[:10])) + (", …" if len(lines) > 10 else "")
            translation = lost(f"{counted(len(lines), 'line')} cannot be read ({shown}): {form}")
            self._add(file, lines[0], "lines", translation, is_recalled=False)

    # --- properties --------------------------------------------------------------------------------------------------

    def _add_property(self, file: str, one: Property, option: IbmOption, unit: str) -> None:
        if option.name in self._options:
            first = self._options[option.name]
            return self._add_again(file, one, first.file, first.line)
        values = values_of(option, one.value, unit)
        if not values and not option.is_none_set:
            translation = Translation(Fate.DEFAULT, "it is empty")
        else:
            translation = translated(option.translate, values, self._defaults)
        self._options[option.name] = _PropertyOrigin(file, one.line, is_used=bool(values) and not translation.fate.is_lost)
        self._settings.set(translation.settings, f"{file}:{one.line}: {printable(one.name)}")
        self._add(file, one.line, one.name, translation, is_recalled=not option.is_documented)

    def _add_again(self, file: str, one: Property, first_file: str, first_line: int) -> None:
        self._add(file, one.line, one.name, lost(f"it is in {first_file}:{first_line} already, which counts"), is_recalled=False)

    def _add_proxy(self) -> None:
        if not any(one.value for _, one in self._proxy.values()):
            for file, one in self._proxy.values():
                self._add(file, one.line, one.name, Translation(Fate.DEFAULT, "it is empty"))
            return
        given = {name: one.value for name, (_, one) in self._proxy.items()}
        translation = self._proxy_of(*(given.get(name, "") for name in PROXY[:3]))
        for name, (file, one) in self._proxy.items():
            if name == PROXY[0]:
                self._settings.set(translation.settings, f"{file}:{one.line}: {printable(one.name)}")
                self._add(file, one.line, one.name, translation)
            elif translation.fate.is_lost:
                self._add(file, one.line, one.name, lost("there is no proxy that it could be for"))
            else:
                self._add(file, one.line, one.name, Translation(Fate.TRANSLATED, "a part of CRAWLSPACE_PROXY"))

    def _proxy_of(self, host: str, port: str, user: str) -> Translation:
        scheme, separator, netloc = host.rpartition("://")
        netloc = netloc.rstrip("/")
        if port and not netloc.rpartition(":")[2].isdigit():
            netloc += f":{port}"
        try:
            return proxies([f"{scheme}{separator}{f'{user}@' if user else ''}{netloc}"] if host else [], collection=self._name)
        except WrongValue as error:
            return lost(f"its value cannot be used: {error}")

    def _check_intervals(self) -> None:
        """Ensure that the smallest interval is not above the largest: if one is our default, the other replaces it."""
        values = {name: self._settings.values.get(name, self._defaults[name]) for name in _INTERVALS}
        low, high = (duration(name, value) for name, value in values.items())
        if low <= high:
            return
        named = {
            name: self._options[option] for name, option in _INTERVALS.items() if self._options.get(option, _NOT_USED).is_used
        }
        for name, origin in named.items():
            if len(named) == 1:
                other = next(one for one in _INTERVALS if one != name)
                self._settings.set(
                    {other: values[name]},
                    f"{origin.file}:{origin.line}: the same, because the default would be on the other side",
                )
                translation = Translation(
                    Fate.TRANSLATED, f"{other} = {quoted(values[name])} too: the default would be on the other side"
                )
            else:
                self._settings.values.pop(name, None)
                translation = lost("the minimum is above the maximum, so neither is used")
            self._add(origin.file, origin.line, _INTERVALS[name], translation, is_recalled=False)

    def _add(self, file: str, line: int, name: str, translation: Translation, *, is_recalled: bool = True) -> None:
        self._report.add_translation(line, name, translation, is_recalled=is_recalled, file=file)


def _cookie_login(collection: str, site: str, names: Sequence[str], sign: str) -> Mapping[str, object]:
    kind = "redirect" if sign.lower().startswith(("http://", "https://")) else "text"
    given = {name: f"env:{variable(collection, site, name)}" for name in names}
    return {"type": "cookies", "cookies": given, "logged_out": {kind: sign}}
