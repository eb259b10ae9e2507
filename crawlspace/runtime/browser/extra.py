"""Whether the browser is installed: it is an extra."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from crawlspace.config.access import SiteAccess
from crawlspace.errors import ConfigError
from crawlspace.settings import BrowserSettings

_PACKAGES = ("playwright", "psutil")


RENDERING = 'pages are to be rendered in a browser (CRAWLSPACE_RENDER, "render" in CRAWLSPACE_SITES, or <Render/> in rules.xml)'


def check_extra(what: str = RENDERING) -> None:
    """Raise ConfigError where the packages of the extra `browser` are not installed; `what` needs them."""
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        raise ConfigError(
            f"{what}, and {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed: run `make browser`, or install"
            " crawlspace[browser]"
        )


def check_browser(accesses: Iterable[SiteAccess], settings: BrowserSettings) -> None:
    """Raise ConfigError where one of these is a log-in in the browser, and there is no browser."""
    access = next((one for one in accesses if one.session is not None and one.session.kind == "browser"), None)
    if access is None:
        return
    what = f"{access.where} has a log-in in the browser"
    check_extra(what)
    from crawlspace.runtime.browser.process import BrowserError, find_program  # noqa: PLC0415 - it needs the extra

    try:
        find_program(settings.executable)
    except BrowserError as error:
        raise ConfigError(f"{what}, and {error}") from error
