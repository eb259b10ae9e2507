"""The hosts that receive the credentials in DEFAULT_REQUEST_HEADERS; links and redirects may lead to any host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from crawlspace.errors import RuleFileError, SettingError
from crawlspace.parsing import table, words
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.domain import DomainMatcher, names_no_site
from crawlspace.text import quoted
from crawlspace.urls import MalformedUrl, Url, parse

NAME = "CRAWLSPACE_CREDENTIAL_HOSTS"
HEADERS = "DEFAULT_REQUEST_HEADERS"
HTTP_PASSWORD = "HTTPAUTH_PASS"
SHOWN = 3
"""Maximal hosts named in a warning."""
_CREDENTIAL = re.compile(r"auth|cookie|token|secret|passw|key|credential|session|jwt|signature", re.IGNORECASE)


def is_credential(header: str) -> bool:
    """Return whether the name of a header looks like credentials, such as Authorization, Cookie or X-Api-Key."""
    return _CREDENTIAL.search(header) is not None


class CredentialHosts:
    """The hosts of the start URLs, or those that match the configured domain patterns."""

    def __init__(self, patterns: Sequence[str], start_urls: Sequence[Url]) -> None:
        """Raises RuleFileError for an invalid host pattern."""
        rules = parse_crawl_rules("".join(f"allow domain {pattern}\n" for pattern in patterns), file=NAME)
        self._patterns = tuple(patterns)
        self._matcher = DomainMatcher(rules.domain, case_sensitive=False) if patterns else None
        self._start_hosts = frozenset(url.host for url in start_urls)
        self._start_hosts_in_plain_text = frozenset(url.host for url in start_urls if url.scheme == "http")

    def allow(self, address: str) -> bool:
        """Return whether credentials may be sent with a request to a URL.

        A host whose start URLs are all https gets none over http.
        """
        try:
            url = parse(address)
        except MalformedUrl:
            return False
        if self._matcher is not None:
            return self._matcher.match(url.host, url.port) is not None
        return url.host in (self._start_hosts if url.scheme == "https" else self._start_hosts_in_plain_text)

    def warning(self, headers: Sequence[str]) -> str | None:
        """Return a warning about the credentials among the headers; None if there is nothing to warn about."""
        names = " and ".join(name for name in headers if is_credential(name))
        if not names:
            return None
        if self._matcher is None:
            hosts = sorted(self._start_hosts)
            listed = ", ".join(hosts[:SHOWN]) + (f" and {len(hosts) - SHOWN:,} more" if len(hosts) > SHOWN else "")
            return (
                f"{HEADERS} has {names}: sent to the hosts of the start URLs only ({listed}), on all their ports,"
                f" and not after redirects to others; {NAME} sets the hosts that receive it"
            )
        if set(self._patterns) & {"*", "*.*"}:
            return f"{HEADERS} has {names}, and {NAME} lets every host have it; name the hosts it is for"
        if anybody := [pattern for pattern in self._patterns if names_no_site(pattern.rpartition(":")[0] or pattern)]:
            return (
                f"{HEADERS} has {names}, and {NAME} lets hosts that anybody can register have it ({quoted(anybody[0])}); name the hosts it"
                " is for, or all of a domain of yours, as in '*.example.com'"
            )
        return None


def read_credential_hosts(settings: Mapping[str, object], start_urls: Sequence[Url]) -> CredentialHosts:
    """Read CRAWLSPACE_CREDENTIAL_HOSTS. Raises SettingError."""
    patterns = words(NAME, settings[NAME])
    try:
        return CredentialHosts(patterns, start_urls)
    except RuleFileError as error:
        first = error.mistakes[0]
        raise SettingError(f"{NAME} has {quoted(first.text.split(maxsplit=2)[-1])}: {first.message}") from error


def default_headers(settings: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield names and values of DEFAULT_REQUEST_HEADERS. Raises SettingError."""
    for name, value in table(HEADERS, settings.get(HEADERS), example='{"Accept-Language": "de"}').items():
        if value is not None:
            yield (name.decode("latin-1") if isinstance(name, bytes) else str(name)), value


def http_auth_warning(settings: Mapping[str, object]) -> str | None:
    """Return a warning about the password of Scrapy's HTTPAUTH_ settings if it is for every host; else None."""
    if not settings.get(HTTP_PASSWORD) or settings.get("HTTPAUTH_DOMAIN"):
        return None
    return (
        f"{HTTP_PASSWORD} is sent to every host that a link leads to, because HTTPAUTH_DOMAIN is None or not set;"
        " name the domain that the password is for"
    )
