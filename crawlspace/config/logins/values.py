"""The values of a log-in in the settings, read and checked. No message shows one that may be a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cssselect import HTMLTranslator, SelectorError
from lxml import etree

from crawlspace.errors import SettingError, did_you_mean
from crawlspace.text import quoted
from crawlspace.urls import MalformedUrl, Url, parse

SECRET_NAME = re.compile(r"pass|pwd|secret|token|otp|pin\b|kennwort|key", re.IGNORECASE)
"""In the name of a field, or a selector of it, whose value is a secret."""


def check_keys(where: str, values: Mapping[str, object], keys: Sequence[str], *, of: str) -> None:
    """Raise SettingError for a key that is not among `keys`."""
    if unknown := sorted(str(key) for key in values if key not in keys):
        meant = did_you_mean(unknown[0], tuple(keys), f"{of} may have {', '.join(keys)}")
        raise SettingError(f"{where} has an unknown key {quoted(unknown[0])}: {meant}")


def needed_text(where: str, values: Mapping[str, object], key: str, example: str) -> str:
    """Return a text; `example` is what the message says of one that is missing. Raises SettingError."""
    if values.get(key) in (None, ""):
        raise SettingError(f"{where} has no {quoted(key)}; {example}")
    return text(where, values, key)


def text(where: str, values: Mapping[str, object], key: str) -> str:
    """Return a text; empty where it is missing. Raises SettingError."""
    value = values.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or not value.strip():
        raise SettingError(f"{where}[{quoted(key)}] must be a text")
    return value


def selector(where: str, values: Mapping[str, object], key: str) -> str:
    """Return a CSS selector; empty where it is missing. Raises SettingError."""
    found = text(where, values, key)
    if found:
        check_selector(f"{where}[{quoted(key)}] is", found)
    return found


def check_selector(is_value: str, found: str) -> None:
    """Raise SettingError, beginning with `is_value`, for what is no CSS selector."""
    try:
        etree.XPath(HTMLTranslator().css_to_xpath(found))(etree.Element("html"))
    except (SelectorError, etree.XPathError) as error:
        raise SettingError(f"{is_value} {quoted(found)}, which is no CSS selector: {error}") from error


def texts(where: str, value: object, example: str = "{'user': 'crawler', 'password': 'env:WIKI_PASSWORD'}") -> dict[str, str]:
    """Return texts by key. Raises SettingError."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise SettingError(f"{where} must be a dict, as in {example}")
    for key, given in value.items():
        if not isinstance(key, str) or not isinstance(given, str):
            raise SettingError(f"{where}[{quoted(key)}] must be a text")
    return dict(value)


def several(where: str, value: object, what: str) -> Sequence[object]:
    """Return the members of a list; `what` names them. Raises SettingError."""
    if value is None:
        return ()
    if not isinstance(value, (list, tuple, set, frozenset)):
        raise SettingError(f"{where} must be a list of {what}")
    return list(value)


def hosts(where: str, values: Mapping[str, object]) -> frozenset[str]:
    """Return the hosts that a log-in may lead to besides those of its own. Raises SettingError."""
    found = several(f"{where}['hosts']", values.get("hosts"), "names of hosts")
    for host in found:
        if not isinstance(host, str) or not host.strip() or "/" in host:
            raise SettingError(f"{where}['hosts'] has {quoted(host)}; it must be a host, as in 'sso.example.com'")
    return frozenset(str(host).lower() for host in found)


def web_url(where: str, written: str, *, key: str = "url") -> Url:
    """Return a URL of the web. Raises SettingError."""
    try:
        url = parse(written)
    except MalformedUrl as error:
        raise SettingError(f"{where}[{quoted(key)}] is {quoted(written)}, which is no URL: {error}") from error
    if url.scheme not in {"http", "https"}:
        raise SettingError(f"{where}[{quoted(key)}] is {quoted(written)}; it must begin with https:// or http://")
    return url
