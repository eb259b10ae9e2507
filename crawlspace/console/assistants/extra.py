"""Whether the SDK of the Model Context Protocol is installed: it is an extra."""

from __future__ import annotations

from importlib.util import find_spec

from crawlspace.errors import ConfigError


def check_extra_of(what: str) -> None:
    """Raise ConfigError where the package of the extra `mcp` is not installed; `what` needs it."""
    if find_spec("mcp") is None:
        raise ConfigError(f"{what} needs the package mcp, which is not installed: install crawlspace[mcp]")
