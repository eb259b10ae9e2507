"""FAST's log-ins. Passwords become references to the environment; they are neither written nor printed."""

from __future__ import annotations

from crawlspace.importers.logins import SiteLogin, basic_login, ntlm

_SCHEMES = ("basic", "digest", "ntlm", "auto")


def site_login(name: str, value: str, *, collection: str) -> SiteLogin:
    """Return the log-in of a `passwd`: `name` is the beginning of URLs, `value` user:password[:realm[:scheme]]."""
    user, colon, rest = value.partition(":")
    if not colon or not user:
        return SiteLogin("", text="its value is not user:password: write the log-in of the site into CRAWLSPACE_SITES")
    last = rest.rpartition(":")[2].lower()
    scheme = last if last in _SCHEMES else "auto"
    if scheme == "ntlm":
        return ntlm()
    return basic_login(name, user, collection=collection, kind="digest" if scheme == "digest" else "basic")
