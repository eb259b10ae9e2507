"""The cookies of a browser that the hosts of an entry of CRAWLSPACE_SITES would get."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from crawlspace.runtime.access.jar import KeptCookie

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
    )
