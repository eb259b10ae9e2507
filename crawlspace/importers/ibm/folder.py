"""The files of a crawler's master_config folder, recognised by their names.

IBM documents the names crawl.rules, global.rules, followindex.rules and cookies.ini, and no others. The other files are
recognised by a word in their names: `start_urls.txt`, `seeds`, `SoftErrors.csv`, `httpauth.ini`, `crawler.properties`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from crawlspace.config.files import is_there
from crawlspace.content.soft_errors import read_soft_errors
from crawlspace.errors import SettingError, UsageError
from crawlspace.importers.reading import XmlReading
from crawlspace.importers.translation import WrongValue
from crawlspace.rules.targets import BadTarget, domain_target
from crawlspace.text import quoted


class FileKind(StrEnum):
    """The kind of a file in the folder."""

    CRAWL_RULES = "crawl.rules"
    GLOBAL_RULES = "global.rules"
    FOLLOW_INDEX = "followindex.rules"
    START_URLS = "start URLs"
    SOFT_ERRORS = "soft error pages"
    COOKIES = "cookies"
    BASIC_LOGINS = "HTTP basic authentication"
    FORM_LOGINS = "form-based authentication"
    PROPERTIES = "properties"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class FolderFile:
    path: Path
    part: FileKind

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def is_xml(self) -> bool:
        return self.path.suffix.lower() == ".xml"


_NAMED = {part.value: part for part in (FileKind.CRAWL_RULES, FileKind.GLOBAL_RULES, FileKind.FOLLOW_INDEX)}
_TEXT = frozenset({"", ".txt", ".ini", ".cfg", ".conf", ".csv", ".tsv", ".list", ".lst", ".properties", ".rules", ".urls"})
_WORDS = (
    (re.compile(r"seed|start.*ur[li]"), FileKind.START_URLS),
    (re.compile(r"soft"), FileKind.SOFT_ERRORS),
    (re.compile(r"cookie"), FileKind.COOKIES),
    (re.compile(r"form.*auth|auth.*form|form.*login"), FileKind.FORM_LOGINS),
    (re.compile(r"auth|basic|credential|password"), FileKind.BASIC_LOGINS),
)
"""Words in the name of a file; the first match counts."""
_OF_PROPERTIES = re.compile(r"propert|crawler|config|setting|option")
_PROPERTIES = frozenset({".properties", ".xml", ".ini", ".cfg", ".conf"})


def part_of(name: str) -> FileKind:
    """Return the kind of a file, by its name."""
    lower = name.lower()
    if lower in _NAMED:
        return _NAMED[lower]
    stem, dot, ending = lower.rpartition(".")
    stem, ending = (stem, dot + ending) if stem else (lower, "")
    if ending in _TEXT:
        for word, part in _WORDS:
            if word.search(lower):
                return part
    if ending in _PROPERTIES or (ending in _TEXT and _OF_PROPERTIES.search(stem)):
        return FileKind.PROPERTIES
    return FileKind.UNKNOWN


def name_of(folder: str) -> str:
    """Return the name of a collection for a folder such as `col1.WEB1`, with _ for each other character than letters, digits, - and _."""
    return re.sub(r"[^\w-]", "_", folder, flags=re.ASCII).lstrip("_-")


def list_folder(folder: Path, start_urls: Path | None = None) -> list[FolderFile]:
    """Return the files and folders in a folder, in the order in which they are reported.

    `start_urls` is a file with start URLs of any name, in the folder or elsewhere. Raises UsageError if there are no files of
    a crawler.
    """
    if not is_there(folder):
        raise UsageError(f"there is no folder {quoted(str(folder))}: name the master_config folder of IBM's Web crawler")
    if not folder.is_dir():
        raise UsageError(
            f"{quoted(str(folder))} is a file: name the folder that it is in, the master_config of IBM's Web crawler"
        )
    if start_urls is not None and not is_there(start_urls):
        raise UsageError(f"there is no file {quoted(str(start_urls))}: name the file with the start URLs")
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(f"{quoted(str(folder))} cannot be read: {error.strerror}") from error
    named = [] if start_urls is None else [FolderFile(start_urls, FileKind.START_URLS)]
    others = [path for path in entries if start_urls is None or path.absolute() != start_urls.absolute()]
    found = [*named, *(FolderFile(path, FileKind.UNKNOWN if path.is_dir() else part_of(path.name)) for path in others)]
    known = [file for file in found if file.part is not FileKind.UNKNOWN]
    if not known:
        raise UsageError(_nothing_in(folder, entries))
    return sorted(found, key=lambda file: list(FileKind).index(file.part))


def _nothing_in(folder: Path, entries: Sequence[Path]) -> str:
    """Return the sentence about a folder without a configuration; it names the folders in it that have one."""
    inside = [path.name for path in entries if path.is_dir() and is_there(path / FileKind.CRAWL_RULES)]
    if inside:
        return f"{quoted(str(folder))} has folders of crawlers in it ({', '.join(map(quoted, inside[:10]))}): import each of them"
    return f"{quoted(str(folder))} has no file of IBM's Web crawler, such as crawl.rules: name its master_config folder"


# --- Files of properties: names and values, as text or XML. IBM documents the properties as its console shows them, and no file ---
# Maximum URL path depth = 8            <property name="maxPathDepth" value="8"/>
# maxPathDepth: 8                       <entry key="max_path_depth">8</entry>
#                                       <MaxPathDepth>8</MaxPathDepth>

MAX_DEPTH = 50
"""Maximal depth of nested elements."""
_COMMENTS = "#!;["
"""Beginnings of lines that are no properties; sections in brackets are ignored."""
_DIVIDING = re.compile(r"[=:\t]")


@dataclass(frozen=True, slots=True)
class Property:
    """A property. `value` may be empty; the parts of a list are on separate lines."""

    name: str
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class PropertyFile:
    properties: list[Property]
    not_understood: list[int] = field(default_factory=list)
    """Numbers of lines that are no property."""


def read_properties(text: str) -> PropertyFile:
    """Return the properties of a text. A backslash at the end of a line continues it, as in Java's files."""
    found = PropertyFile([])
    begun, start = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if not begun and (not line.strip() or line.lstrip()[0] in _COMMENTS):
            continue
        start = start if begun else number
        if line.endswith("\\"):
            begun += line[:-1].strip() + "\n"
            continue
        name, value = divided(begun + line)
        if name and value is not None:
            found.properties.append(Property(name, value, start))
        else:
            found.not_understood.append(start)
        begun = ""
    return found


def divided(line: str) -> tuple[str, str | None]:
    """Return name and value of `name = value`, `name: value` or `name<tab>value`; the value is None without a separator."""
    found = _DIVIDING.search(line)
    return (line.strip(), None) if found is None else (line[: found.start()].strip(), line[found.end() :].strip())


def read_xml_properties(data: bytes, *, file: str, is_known: Callable[[str], bool]) -> PropertyFile:
    """Return the properties of an XML file. Raises RuleFileError.

    An element with a `name` or `key`, or whose own name is known, alone or behind that of the element around it, has its value in
    `value` or in the text inside; so has every other element without elements inside.
    """
    return _XmlReading(data, file=file, is_known=is_known).result()


@dataclass(slots=True)
class _OpenProperty:
    name: str
    line: int
    is_named: bool
    texts: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    """The `value`, and the values of elements inside."""
    is_leaf: bool = True


class _XmlReading(XmlReading):
    def __init__(self, data: bytes, *, file: str, is_known: Callable[[str], bool]) -> None:
        super().__init__(data, file=file, smaller="take out what are no properties", max_depth=MAX_DEPTH)
        self._is_known = is_known
        self._open: list[_OpenProperty] = []
        self._found: list[Property] = []

    def result(self) -> PropertyFile:
        self.parse()
        return PropertyFile(sorted(self._found, key=lambda one: one.line))

    def _doctype(self, name: str, system: str | None, public: str | None, has_subset: int) -> None:
        """Allow the DOCTYPE of Java's properties, which is not read, and none with entities."""
        if has_subset:
            super()._doctype(name, system, public, has_subset)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        above = self._open[-1] if self._open else None
        if above is not None:
            above.is_leaf = False
        given = {key.lower(): value for key, value in attributes.items()}
        own = name.rpartition(":")[2]
        if above is not None and self._is_known(f"{above.name} {own}"):
            own = f"{above.name} {own}"
        named = given.get("name") or given.get("key") or ""
        opened = _OpenProperty(named or own, self.line, bool(named) or self._is_known(own))
        if "value" in given:
            opened.parts.append(given["value"])
        self._open.append(opened)

    def end(self, name: str) -> None:
        closed = self._open.pop()
        value = "\n".join(part for part in (part.strip() for part in ("".join(closed.texts), *closed.parts)) if part)
        above = self._open[-1] if self._open else None
        if above is not None and above.is_named and not closed.is_named:
            above.parts.append(value)
        elif (closed.is_named and (value or closed.is_leaf)) or (closed.is_leaf and above is not None):
            self._found.append(Property(closed.name, value, closed.line))

    def characters(self, text: str) -> None:
        if self._open:
            self._open[-1].texts.append(text)


# --- Files with a row a line: soft error pages, log-ins of HTTP basic authentication, cookies. IBM does not document their form ---
# Values of the latter two are secrets: rows that are not understood are never shown.

_USERS = ("user", "username", "userid", "login")
_BESIDE_USERS = ("password", "passwd", "pwd", "realm")
_HTTP_ONLY = "#HttpOnly_"
_ATTRIBUTES = frozenset(
    {"domain", "path", "expires", "max-age", "version", "comment", "port", "secure", "httponly", "discard", "samesite"}
)
"""Parts of a cookie that are not its value."""


@dataclass(frozen=True, slots=True)
class FileRow:
    line: int
    text: str


def rows(text: str, *, comments: str = "#;") -> Iterator[FileRow]:
    """Yield the lines that are neither blank nor comments."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and line.lstrip()[0] not in comments:
            yield FileRow(number, line.strip("\r"))


def fields(line: str) -> list[str]:
    """Return the fields of a row, divided by tabs or `|`, else by commas, with quotes where a field has one."""
    if "\t" in line or "|" in line:
        return [one.strip() for one in line.strip().strip("|").split("\t" if "\t" in line else "|")]
    try:
        return [one.strip() for one in next(csv.reader([line], skipinitialspace=True), [])]
    except csv.Error:  # a field of more than 128 KiB
        return [line]


def soft_error(line: str) -> tuple[str, str, str, int]:
    """Return a row of CRAWLSPACE_SOFT_ERRORS: URL pattern, title pattern, content pattern, status. Raises WrongValue."""
    found = fields(line)
    if len(found) != 4:
        raise WrongValue(
            "it is a URL pattern, a title pattern, a content pattern and a status code, divided by tabs, | or commas; "
            f"this row has {len(found)} of them"
        )
    url, title, content, code = found
    if not (code.isascii() and code.isdigit() and len(code) < 6):
        raise WrongValue(f"its fourth field is a status code, not {code!r}")
    row = (_in_normal_form(url), title or "*", content or "*", int(code))
    try:
        read_soft_errors([row])
    except SettingError as error:
        raise WrongValue(str(error).replace("row 1 of CRAWLSPACE_SOFT_ERRORS", "the row")) from None
    return row


def _in_normal_form(pattern: str) -> str:
    """Return a URL pattern with scheme and host as in URLs: in small letters, and with a slash behind the host."""
    scheme, separator, rest = pattern.partition("://")
    if not separator:
        return pattern or "*"
    host, slash, path = rest.partition("/")
    if not slash and not host.endswith("*"):
        slash = "/"
    return f"{scheme.lower()}://{host.lower()}{slash}{path}"


@dataclass(frozen=True, slots=True)
class BasicLogin:
    """A user of HTTP basic authentication; the password is not kept."""

    line: int
    url: str
    user: str


def basic_logins(text: str) -> Iterator[BasicLogin | int]:
    """Yield log-ins, and the numbers of lines that are not understood.

    A row is a URL, a user and a password, divided by tabs, `|`, commas or blanks; or the URL is a section, `[http://…]`, and
    the user a line `user = …` in it.
    """
    section = ""
    for row in rows(text):
        line = row.text.strip()
        if _is_section(line):
            section = line[1:-1].strip()
            continue
        name, value = divided(line)
        key = re.sub(r"[^a-z]", "", name.lower())
        if section and value is not None and key in {*_USERS, *_BESIDE_USERS}:
            if key in _USERS:
                yield BasicLogin(row.line, _as_url(section), value)
            continue
        found = fields(line) if re.search(r"[\t|,]", line) else line.split()
        if len(found) < 2 or "/" not in found[0]:
            yield row.line
        else:
            yield BasicLogin(row.line, _as_url(found[0]), found[1])


def _is_section(line: str) -> bool:
    return line.startswith("[") and line.endswith("]")


def _as_url(text: str) -> str:
    return text if "://" in text else f"http://{text}"


@dataclass(slots=True)
class FormRow:
    """A log-in by a form. Values of `fields` may be secrets."""

    line: int
    pattern: str
    """The URLs that need it."""
    form: str = ""
    action: str = ""
    page: str = ""
    """The page that the form is on; empty: as `action`."""
    fields: dict[str, str] = field(default_factory=dict)


_OF_FORMS = {
    **dict.fromkeys(("formname", "name"), "form"),
    **dict.fromkeys(("formaction", "action", "actionurl", "formactionurl"), "action"),
    **dict.fromkeys(("loginurl", "loginpage", "formurl", "formpage"), "page"),
    **dict.fromkeys(("httpmethod", "method", "formmethod"), ""),
}
_PARAMETERS = frozenset({"formparameters", "parameters", "parameter", "formparameter"})


def form_logins(text: str) -> Iterator[FormRow | int]:
    """Yield log-ins by forms, and the numbers of lines that are not understood.

    A row is a URL pattern, the name of the form, its action, the method and its parameters, divided by tabs, `|` or commas; or the pattern
    is a section, `[http://…]`, with lines such as `form action = …`, and each other `name = value` in it is a parameter.
    """
    section: FormRow | None = None
    for row in rows(text):
        line = row.text.strip()
        if _is_section(line):
            if section is not None:
                yield section
            section = FormRow(row.line, _as_url(line[1:-1].strip()))
            continue
        found = fields(line) if re.search(r"[\t|,]", line) else []
        is_row = len(found) >= 5 and "/" in found[0] and "=" not in found[0]
        if section is not None and not is_row:
            name, separator, value = line.partition("=") if "=" in line else line.partition(":")
            key = re.sub(r"[^a-z]", "", name.lower())
            if not separator or not re.fullmatch(r"[\w.$:\[\] -]+", name.strip()):
                yield row.line
            elif key in _PARAMETERS:
                section.fields.update(_parameters(re.split(r"[&;,]", value)))
            elif key not in _OF_FORMS:
                section.fields[name.strip()] = value.strip()
            elif _OF_FORMS[key]:
                setattr(section, _OF_FORMS[key], value.strip())
            continue
        if not is_row:
            yield row.line
            continue
        pairs = (pair for one in found[4:] for pair in re.split("[&;]", one))
        yield FormRow(row.line, _as_url(found[0]), found[1], found[2], fields=_parameters(pairs))
    if section is not None:
        yield section


def _parameters(pairs: Iterable[str]) -> dict[str, str]:
    divided = (pair.strip().partition("=") for pair in pairs)
    return {name.strip(): value.strip() for name, separator, value in divided if separator and name.strip()}


@dataclass(frozen=True, slots=True)
class SiteCookie:
    """The name of a cookie, and the hosts that get it as a target of a domain rule."""

    line: int
    site: str
    name: str


def cookies(text: str) -> Iterator[SiteCookie | int]:
    """Yield the cookies of a file, and the numbers of lines that are not understood.

    They are in Netscape's format; or `name=value` in a section, `[host]`; or `name=value; domain=…`, also behind `Set-Cookie:`.
    """
    section = ""
    for number, written in enumerate(text.split("\n"), 1):
        line = written.removeprefix(_HTTP_ONLY).strip(" \r")
        if not line.strip() or line.lstrip()[0] in "#;":
            continue
        if _is_section(line):
            section = line[1:-1].strip()
            continue
        site, name = _of_netscape(line) or _of_pairs(line, section)
        pattern = _pattern(site)
        yield SiteCookie(number, pattern, name) if pattern and name else number


def _of_netscape(line: str) -> tuple[str, str] | None:
    found = line.split("\t")
    if len(found) != 7 or {found[1].upper(), found[3].upper()} - {"TRUE", "FALSE"}:
        return None
    domain = f".{found[0].removeprefix('.')}" if found[1].upper() == "TRUE" else found[0]
    return domain, found[5].strip()


def _of_pairs(line: str, section: str) -> tuple[str, str]:
    line = re.sub(r"\s*set-cookie2?\s*:", "", line, flags=re.IGNORECASE)
    pairs = [part.strip().partition("=") for part in line.split(";")]
    domain = next((value.strip() for name, _, value in pairs if name.strip().lower() == "domain"), "")
    name, separator, _ = pairs[0]
    is_cookie = separator and re.fullmatch(r"[^\s;,=\"]+", name.strip()) and name.strip().lower() not in _ATTRIBUTES
    return domain or section, name.strip() if is_cookie else ""


def _pattern(site: str) -> str:
    """Return the pattern of the hosts that get a cookie; empty if it names none."""
    host = site.rpartition("://")[2].partition("/")[0].lower()
    target = f"*{host}" if host.startswith(".") else host
    try:
        domain_target(target)
    except BadTarget:
        return ""
    return target
