"""Where a crawl serves its metrics, and who may read them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from msgspec import structs

from crawlspace.config.secrets import is_elsewhere, read_secret
from crawlspace.config.sentences import read
from crawlspace.errors import SettingError
from crawlspace.settings import MonitoringSettings
from crawlspace.text import quoted

BIND, TOKEN = "CRAWLSPACE_METRICS_BIND", "CRAWLSPACE_METRICS_TOKEN"
_LEAST = 16
"""Characters of a token: it is checked as often as somebody asks."""


def read_monitoring(settings: Mapping[str, object]) -> MonitoringSettings:
    """Return the settings with the token itself. Raises SettingError, also where everybody in the network could read the metrics."""
    found = read(MonitoringSettings, settings)
    try:
        address = ipaddress.ip_address(found.bind)
    except ValueError:
        raise SettingError(f"{BIND} is {quoted(found.bind)}; give an IP address, such as 127.0.0.1 or 0.0.0.0") from None
    if not found.port:
        return found
    if found.token and not is_elsewhere(found.token):
        raise SettingError(
            f'{TOKEN} is the token itself; write "env:NAME" for a variable that holds it, or "file:PATH" for a file'
        )
    token = read_secret(TOKEN, found.token)
    if token and len(token) < _LEAST:
        raise SettingError(f"{TOKEN} has {len(token)} characters; make it {_LEAST} or more")
    if not token and not address.is_loopback:
        raise SettingError(f"{BIND} is {found.bind}, beyond this machine, and {TOKEN} is not set; set it, or listen on 127.0.0.1")
    return structs.replace(found, token=token)
