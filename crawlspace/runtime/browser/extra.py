"""Whether what renders pages is installed: it is an extra."""

from __future__ import annotations

from importlib.util import find_spec

from crawlspace.errors import ConfigError

_PACKAGES = ("playwright", "psutil")


def check_extra() -> None:
    """Raise ConfigError where the packages of the extra `browser` are not installed."""
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        raise ConfigError(
            f'pages are to be rendered in a browser (CRAWLSPACE_RENDER, "render" in CRAWLSPACE_SITES, or <Render/> in rules.xml), and'
            f" {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed: run `make browser`, or install crawlspace[browser]"
        )
