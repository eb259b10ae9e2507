"""Proxies of an imported configuration. A password becomes a reference to the environment; it is neither written nor printed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crawlspace.importers.outcomes import Translation, WrongValue
from crawlspace.importers.report import Fate
from crawlspace.text import printable

_PROXY = re.compile(r"(?:(?P<scheme>https?)://)?(?:(?P<user>[^:@/\s]*)(?::(?P<password>[^@\s]*))?@)?(?P<place>[^@/\s]+)/?")


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
