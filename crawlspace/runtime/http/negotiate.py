"""Log-ins by Kerberos (Negotiate, RFC 4559): libcurl speaks it by way of GSS-API, with the ticket or the keytab that the process has.

GSS-API takes both from variables of the environment, so all log-ins of a process have the same keytab.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

import pycurl

from crawlspace.errors import SettingError
from crawlspace.text import printable, quoted

if TYPE_CHECKING:
    from crawlspace.config.access import SiteAccess

KEYTAB, TICKETS, CONFIGURATION = "KRB5_CLIENT_KTNAME", "KRB5CCNAME", "KRB5_CONFIG"
USUAL_CONFIGURATION = Path("/etc/krb5.conf")
IN_MEMORY = "MEMORY:crawlspace"
_FAILED = re.compile(
    r"gss_\w+\(\) failed: (?:No credentials were supplied, or the credentials were unavailable or inaccessible\. +)?(.+)",
    re.DOTALL,
)
"""A text that libcurl traces; the first sentence says less than the second one."""
_PASSING = re.compile(r"No Kerberos credentials available|Ticket expired|Clock skew too great|Cannot (?:contact any|find) KDC")
_UNKNOWN_SERVICE = re.compile(r"\bServer \S+ not found in Kerberos database")


def prepare_negotiate(
    accesses: Iterable[SiteAccess],
    *,
    environment: MutableMapping[str, str] = os.environ,
    features: int | None = None,
) -> None:
    """Set the environment for the log-ins of type "negotiate". Raises SettingError where libcurl cannot log in, or not by all of them."""
    entries = [access for access in accesses if access.kind == "negotiate"]
    if not entries:
        return
    features = pycurl.version_info()[4] if features is None else features
    if not features & (pycurl.VERSION_GSSAPI | pycurl.VERSION_SSPI):
        raise SettingError(
            f"{entries[0].where} logs in by Kerberos, and the libcurl of this pycurl has no GSS-API: install pycurl from its wheel, as in"
            " `pip install --force-reinstall --only-binary pycurl pycurl`"
        )
    if CONFIGURATION not in environment and USUAL_CONFIGURATION.is_file():
        environment[CONFIGURATION] = str(USUAL_CONFIGURATION)  # a wheel looks for it where it was built
    for entry in entries:
        if entry.keytab is not None:
            _use_keytab(entry, entry.keytab, environment)


def failure_in(text: bytes) -> str:
    """Return why GSS-API failed, from a text that libcurl has traced; empty for other texts."""
    found = _FAILED.match(text.decode("utf-8", "replace"))
    return "" if found is None else printable(found[1].strip().rstrip("."))


def is_unknown_service(failure: str) -> bool:
    """Return whether a failure is that the key server does not know the site, which may have no log-in and be shown to everybody."""
    return _UNKNOWN_SERVICE.search(failure) is not None


def is_passing(failure: str) -> bool:
    """Return whether a failure is one of tickets, clocks or the key server, and not one of a key, which could lock an account."""
    return _PASSING.match(failure) is not None


def _use_keytab(entry: SiteAccess, keytab: Path, environment: MutableMapping[str, str]) -> None:
    where = f"{entry.where}['login']['keytab']"
    try:
        with keytab.open("rb") as file:
            is_keytab = file.read(1) == b"\x05"
    except OSError as error:
        raise SettingError(f"{where} is {quoted(str(keytab))}, which cannot be read: {error.strerror}") from error
    if not is_keytab:
        raise SettingError(f"{where} is {quoted(str(keytab))}, which is no keytab")
    name = f"FILE:{keytab.resolve()}"
    if environment.get(KEYTAB, name) != name and environment.get(TICKETS) == IN_MEMORY:
        raise SettingError(
            f"{where} is {quoted(str(keytab))}, and this process logs in with another keytab: all have to have the same"
        )
    environment[KEYTAB], environment[TICKETS] = name, IN_MEMORY  # not the tickets of the person who starts the crawl
