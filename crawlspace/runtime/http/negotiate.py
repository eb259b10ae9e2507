"""Log-ins by Kerberos (Negotiate, RFC 4559): libcurl speaks it by way of GSS-API, with the ticket or the keytab that the process has.

GSS-API takes both from variables of the environment, so all log-ins of a process have the same keytab.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, MutableMapping
from http import HTTPStatus
from math import inf
from pathlib import Path
from time import monotonic

import pycurl

from crawlspace.cache import Recent
from crawlspace.config.access import SiteAccess
from crawlspace.errors import SettingError
from crawlspace.runtime.http.errors import LoggedOutError
from crawlspace.text import printable, quoted

KEYTAB, TICKETS, CONFIGURATION = "KRB5_CLIENT_KTNAME", "KRB5CCNAME", "KRB5_CONFIG"
USUAL_CONFIGURATION = Path("/etc/krb5.conf")
IN_MEMORY = "MEMORY:crawlspace"
_SITES = 1_000
_IN_FLIGHT_S = 5.0
"""So long after a log-in that has failed there is no other one; the crawl has learned of it by then, and pauses the site."""
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


class FailedLogins:
    """The log-ins by Kerberos that have just failed, by site."""

    def __init__(self) -> None:
        self._failed: Recent[str, tuple[float, str]] = Recent(_SITES)

    def add(self, site: str, why: str) -> None:
        """Note that a log-in has failed."""
        self._failed.put(site, (monotonic(), why))

    def why(self, site: str) -> str:
        """Return why a log-in has just failed, or nothing: those in flight would fail too, and a few wrong keys lock an account."""
        failed_at, why = self._failed.get(site) or (-inf, "")
        return why if monotonic() - failed_at < _IN_FLIGHT_S else ""


class NegotiateLogin:
    """The log-in of one request. libcurl makes it when the site answers 401, by a second request."""

    def __init__(self, site: str, failed: FailedLogins) -> None:
        self._site, self._failed = site, failed
        self._why = ""
        """Why it fails, as far as libcurl has traced that (pycurl.VERBOSE)."""
        self.is_over = False
        """It has failed for good; libcurl would try again when it has read the 401."""

    def traced(self, text: bytes) -> bool:
        """Take a text that libcurl has traced; return whether it is of this log-in."""
        failure = failure_in(text)
        self._why = self._why or failure
        if failure and not is_unknown_service(failure):
            self._failed.add(self._site, failure)
            self.is_over = True
        return bool(failure)

    def check(self) -> None:
        """Raise LoggedOutError where another log-in at the site has just failed."""
        if why := self._failed.why(self._site):
            self._why = why
            raise self.error()

    def take(self, status: int) -> None:
        """Take the status of an answer. Raises LoggedOutError for the 401 of a log-in that has failed."""
        if self._why and status == HTTPStatus.UNAUTHORIZED:
            raise self.error()

    def error(self) -> LoggedOutError:
        """Return the error of a log-in that fails."""
        return LoggedOutError(f"the log-in by Kerberos at {self._site} fails: {self._why}", is_passing=is_passing(self._why))


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
