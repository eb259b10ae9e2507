"""Cookies from a browser, as the session of a log-in, and into one, for a page that is rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from crawlspace.access.sessions import KeptCookie
from crawlspace.runtime.components.cookies import jar_domain

if TYPE_CHECKING:
    from crawlspace.config.site_access import SiteAccess


def cookies_of_entry(
    cookies: Iterable[Mapping[str, Any]], access: SiteAccess, is_of_entry: Callable[[str], bool]
) -> list[KeptCookie]:
    """Return these of the cookies that Playwright has of a context; `is_of_entry` returns whether the entry is for a host."""
    return [_kept(cookie) for cookie in cookies if _is_for(cookie["domain"], access, is_of_entry)]


def _is_for(domain: str, access: SiteAccess, is_of_entry: Callable[[str], bool]) -> bool:
    """Return whether a host of the entry would get a cookie of a domain, which begins with a dot where hosts below it get it."""
    host = domain.removeprefix(".")
    if host == domain or is_of_entry(host):
        return is_of_entry(host)
    pattern = access.pattern.lower()
    name, _, port = pattern.rpartition(":")
    own = (name if port.isdigit() and name else pattern).removeprefix("*").removeprefix(".")
    return own == host or own.endswith(domain)


def _kept(cookie: Mapping[str, Any]) -> KeptCookie:
    """Return a cookie as it is kept; one that ends with the browser has no expiry, which is -1 there."""
    domain, expires = str(cookie["domain"]), float(cookie.get("expires", -1))
    return KeptCookie(
        name=str(cookie["name"]),
        value=str(cookie["value"]),
        domain=domain,
        domain_specified=domain.startswith("."),
        path=str(cookie["path"]),
        secure=bool(cookie["secure"]),
        expires=None if expires < 0 else int(expires),
        http_only=bool(cookie.get("httpOnly", True)),
        same_site=str(cookie.get("sameSite", "")),
    )


def cookies_for_page(url: str, header: str, jars: Iterable[KeptCookie]) -> list[dict[str, Any]]:
    """Return the cookies with which a page was requested, as Playwright sets them in the browser.

    Those of `jars` that are for its host, of any path, keep what their server has set. What else the `header` of its request had is for
    that host alone, and seen by no script.
    """
    parts = urlsplit(url)
    host, is_secure = parts.hostname or "", parts.scheme == "https"
    found = {(one.name, one.path): _for_browser(one, host) for one in jars if _is_for_host(one.domain, jar_domain(host))}
    names = {name for name, _ in found}
    for pair in header.split(";"):
        name, _, value = pair.strip().partition("=")
        if name and name not in names:
            kept = KeptCookie(name, value, host, domain_specified=False, path="/", secure=is_secure, expires=None)
            found[name, "/"] = _for_browser(kept, host)
    return list(found.values())


def _is_for_host(domain: str, host: str) -> bool:
    return host == domain.removeprefix(".") or (domain.startswith(".") and host.endswith(domain))


def _for_browser(cookie: KeptCookie, host: str) -> dict[str, Any]:
    """Return a cookie; one without SameSite is Lax, as browsers take it, and so is one with "None" that is not Secure."""
    same_site = cookie.same_site.strip().capitalize()
    if same_site not in {"Strict", "Lax"} and not (same_site == "None" and cookie.secure):
        same_site = "Lax"
    return {
        "name": cookie.name,
        "value": cookie.value or "",
        "domain": host if cookie.domain == jar_domain(host) else cookie.domain,
        "path": cookie.path,
        "secure": cookie.secure,
        "httpOnly": cookie.http_only,
        "sameSite": same_site,
    }
