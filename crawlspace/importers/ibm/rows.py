"""Files with a row a line: soft error pages, log-ins of HTTP basic authentication, cookies. IBM does not document their form.

Values of the latter two are secrets: nothing of a row that is not understood is shown.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass

from crawlspace.content.soft_errors import read_soft_errors
from crawlspace.errors import SettingError
from crawlspace.importers.ibm.properties import divided
from crawlspace.importers.outcomes import WrongValue
from crawlspace.rules.targets import BadTarget, domain_target

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
