"""Proxies and log-ins of an imported configuration.

Passwords become references to the environment; they are neither written nor printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from crawlspace.importers.translation import Fate, Translation, WrongValue
from crawlspace.rules.domain import names_no_site
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


# --- Log-ins by a form ---------------------------------------------------------------------------------------------

_PLAIN_NAME = re.compile(r"user|login|log-in|name|mail|account|submit|realm|domain|lang|remember", re.IGNORECASE)
"""In the name of a field whose value may be shown; the values of all others become references, for they may be secrets."""
_PLAIN_VALUE = re.compile(r"[\w.@\\ +-]*")
_SECRET_NAME = re.compile(r"pass|pwd|pw|secret|token|otp|pin|code|key|cred", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FormLogIn:
    """A log-in by a form of another crawler."""

    url: str
    """The page that the form is on."""
    fields: Mapping[str, str]
    sites: Sequence[str] = ()
    """Hosts, with a port or without, or beginnings of URLs, that get the session; none: that of `url`."""
    form: str = ""
    """The name of the form; empty: the first that has the fields."""


def form_login(login: FormLogIn, *, collection: str) -> tuple[Mapping[str, Mapping[str, object]], str]:
    """Return the entries of CRAWLSPACE_SITES for a log-in by a form, and what it is for the report. Raises WrongValue.

    No value of a field is written or shown that may be a secret.
    """
    try:
        url = parse(login.url)
    except MalformedUrl as error:
        raise WrongValue(f"the page of its form is no URL: {error}") from None
    if url.scheme not in DEFAULT_PORTS:
        raise WrongValue("the page of its form has neither http nor https")
    if not login.fields:
        raise WrongValue("it names no field of the form with its value")
    given, variables = {}, []
    for name, value in login.fields.items():
        is_plain = _PLAIN_NAME.search(name) and not _SECRET_NAME.search(name) and _PLAIN_VALUE.fullmatch(value)
        if is_plain:
            given[name] = value
            continue
        secret = variable(collection, url.host, name)
        given[name] = f"env:{secret}"
        variables.append(secret)
    own: dict[str, object] = {"type": "form", "url": url.text, "fields": given}
    if login.form:
        own["form"] = f"form[name={_css_text(login.form)}]"
    patterns = [_pattern_of(site) for site in login.sites] or [_pattern_of(url.text)]
    entry: dict[str, object] = {"login": own}
    text = (
        f"a log-in by the form at {printable(url.text)} for {printable(', '.join(dict.fromkeys(patterns)))} in CRAWLSPACE_SITES"
    )
    if variables:
        text += f", with values of its fields in the environment: set {', '.join(variables)}"
    if url.scheme == "http":
        entry["allow_plain_http"] = True
        text += "; as before, it goes over http, where it can be read on the way: write https if the site has it"
    return dict.fromkeys(patterns, entry), f"{text}; try it with `scrapy login`"


def _pattern_of(site: str) -> str:
    """Return the pattern of the host of a site, or of the beginning of a URL. Raises WrongValue."""
    scheme, separator, rest = site.strip().rpartition("://")
    authority = rest.partition("/")[0].lower()
    port = DEFAULT_PORTS.get(scheme.lower()) if separator else None
    host = authority.removesuffix(f":{port}") if port is not None else authority
    pattern = f"*{host}" if host.startswith(".") else host
    try:
        domain_target(pattern)
    except BadTarget as error:
        raise WrongValue(f"it is for {quoted(site)}: {error}") from None
    if names_no_site(pattern) or not pattern.strip("*."):
        raise WrongValue(f"it is for {quoted(site)}, which hosts of anybody match: write the entry of CRAWLSPACE_SITES for yours")
    return pattern


def _css_text(text: str) -> str:
    escaped = text.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped}"'
