"""FAST's proxies and log-ins. Passwords become references to the environment; they are neither written nor printed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from crawlspace.importers.outcomes import Translation, WrongValue, lost
from crawlspace.importers.report import Fate
from crawlspace.printable import printable, quoted
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, parse

_PROXY = re.compile(r"(?:(?P<scheme>https?)://)?(?:(?P<user>[^:@/\s]*)(?::(?P<password>[^@\s]*))?@)?(?P<place>[^@/\s]+)/?")
_SCHEMES = ("basic", "digest", "ntlm", "auto")


@dataclass(frozen=True, slots=True)
class SiteLogin:
    """What a `passwd` means for an entry of CRAWLSPACE_SITES; an empty pattern where it has no counterpart."""

    pattern: str
    own: Mapping[str, object] = field(default_factory=dict)
    text: str = ""


def variable(*parts: str) -> str:
    """Return the name of an environment variable for a secret."""
    name = re.sub(r"[^A-Z0-9]+", "_", "_".join(parts).upper()).strip("_")
    return f"_{name}" if name[:1].isdigit() else name


def proxies(values: Sequence[str], *, collection: str) -> Translation:
    """Return CRAWLSPACE_PROXY for the proxies of a collection. Raises WrongValue."""
    if not values:
        raise WrongValue("it is a host and a port")
    found = _PROXY.fullmatch(values[0])
    if found is None:
        raise WrongValue("it is a host and a port, as in proxy.example.com:3128")
    url = f"{found['scheme'] or 'http'}://{found['place']}"
    value: object = url
    note = ""
    if found["user"]:
        name = variable(collection, "PROXY_PASSWORD")
        value = {"url": url, "user": found["user"], "password": f"env:{name}"}
        note = f", with its password in the environment variable {name}: set it"
    settings = {"CRAWLSPACE_PROXY": value}
    if len(values) > 1:
        return Translation(
            Fate.NO_COUNTERPART, f"one proxy is used and {len(values)} are named; CRAWLSPACE_PROXY is the first{note}", settings
        )
    return Translation(Fate.TRANSLATED, f"CRAWLSPACE_PROXY = {printable(value)}{note}", settings)


def site_login(name: str, value: str, *, collection: str) -> SiteLogin:
    """Return the log-in of a `passwd`: `name` is the beginning of URLs, `value` user:password[:realm[:scheme]]."""
    if not name.lower().startswith(("http://", "https://")):
        return SiteLogin(
            "", text=f"a log-in is for a site, and {quoted(name)} is no beginning of URLs: write the entry of CRAWLSPACE_SITES"
        )
    try:
        url = parse(name)
    except MalformedUrl as error:
        return SiteLogin("", text=str(error))
    user, colon, rest = value.partition(":")
    if not colon or not user:
        return SiteLogin("", text="its value is not user:password: write the log-in of the site into CRAWLSPACE_SITES")
    last = rest.rpartition(":")[2].lower()
    scheme = last if last in _SCHEMES else "auto"
    if scheme == "ntlm" or "\\" in user:
        return SiteLogin("", text="NTLM is not spoken; see docs/logins.md for the log-ins that are")
    secret = variable(collection, url.host, "PASSWORD")
    kind = "digest" if scheme == "digest" else "basic"
    login = {"type": kind, "user": user, "password": f"env:{secret}"}
    pattern = url.host if url.port == DEFAULT_PORTS[url.scheme] else url.site
    text = f"a log-in of {pattern} in CRAWLSPACE_SITES, with its password in the environment variable {secret}: set it"
    if url.path != "/":
        text += "; it is sent to the whole site"
    if url.scheme == "http":
        text += "; it goes over https only, unless allow_plain_http is set there"
    return SiteLogin(pattern, {"login": login}, text)


def form_login() -> Translation:
    """Return what becomes of a Login, whose parameters may be secrets."""
    return Translation(
        Fate.NOT_YET, "log-ins by a form are not translated; write one of type form into CRAWLSPACE_SITES (docs/logins.md)"
    )


def user_in_value() -> Translation:
    return lost("it has a user name or password; write a log-in of the site into CRAWLSPACE_SITES (docs/logins.md)")
