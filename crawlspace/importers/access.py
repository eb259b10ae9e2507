"""Proxies and log-ins of an imported configuration.

Passwords become references to the environment; they are neither written nor printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from crawlspace.importers.translation import Fate, Translation, WrongValue
from crawlspace.rules.targets import BadTarget, domain_target
from crawlspace.text import printable, quoted
from crawlspace.urls import DEFAULT_PORTS, MalformedUrl, parse

_PROXY = re.compile(r"(?:(?P<scheme>https?)://)?(?:(?P<user>[^:@/\s]*)(?::(?P<password>[^@\s]*))?@)?(?P<netloc>[^@/\s]+)/?")


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
    url = f"{found['scheme'] or 'http'}://{found['netloc']}"
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


# --- Log-ins -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SiteLogin:
    """A log-in as an entry of CRAWLSPACE_SITES; an empty pattern if it has no counterpart."""

    pattern: str
    own: Mapping[str, object] = field(default_factory=dict)
    text: str = ""


def basic_login(name: str, user: str, *, collection: str, kind: str = "basic") -> SiteLogin:
    """Return the basic log-in of a user at the site of a URL prefix."""
    if not name.lower().startswith(("http://", "https://")):
        return SiteLogin(
            "", text=f"a log-in is for a site, and {quoted(name)} is no beginning of URLs: write the entry of CRAWLSPACE_SITES"
        )
    try:
        url = parse(name)
        domain_target(url.host)
    except (MalformedUrl, BadTarget) as error:
        return SiteLogin("", text=str(error))
    if "\\" in user:
        return ntlm()
    secret = variable(collection, url.host, "PASSWORD")
    pattern = url.host if url.port == DEFAULT_PORTS[url.scheme] else url.site
    text = f"a log-in of {pattern} in CRAWLSPACE_SITES, with its password in the environment variable {secret}: set it"
    if url.path != "/":
        text += "; it is sent to the whole site"
    if url.scheme == "http":
        text += "; it goes over https only, unless allow_plain_http is set there"
    return SiteLogin(pattern, {"login": {"type": kind, "user": user, "password": f"env:{secret}"}}, text)


def ntlm() -> SiteLogin:
    why = "NTLM is not supported; where the site offers it, a log-in of type negotiate (Kerberos) takes its place: see docs/logins.md"
    return SiteLogin("", text=why)


def form_login() -> Translation:
    """Return the translation of a log-in by a form, whose parameters may be secrets."""
    return Translation(
        Fate.NOT_YET, "log-ins by a form are not translated; write one of type form into CRAWLSPACE_SITES (docs/logins.md)"
    )
