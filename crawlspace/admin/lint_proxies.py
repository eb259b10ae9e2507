"""What is wrong with the proxies of a collection and its sites, or looks so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from crawlspace.config.proxies import Proxies
from crawlspace.printable import quoted


def lint_proxies(
    proxies: Proxies, sites: Iterable[tuple[str, int]]
) -> Iterator[tuple[Literal["error", "warning"], str, str, str]]:
    """Yield level, code, setting and message of each finding. `sites`: host and port of those that are crawled, as far as known."""
    for proxy in proxies.configured():
        for where in proxy.literals():
            yield (
                "error",
                "literal-secret",
                where,
                f"{where} has a password itself; write env:NAME for a variable of the environment, or file:PATH for a file that has it",
            )
    configured = [proxy.where for proxy in proxies.configured()]
    if configured and not proxies.is_on:
        yield (
            "warning",
            "proxies-off",
            configured[0],
            f"HTTPPROXY_ENABLED is False, which switches off all proxies: {', '.join(configured)} and those of the environment",
        )
    known = list(sites)
    for no_proxy, has_proxy in proxies.exceptions():
        if not has_proxy:
            yield (
                "warning",
                "unused-no-proxy",
                no_proxy.where,
                f"{no_proxy.where} has no effect, because there is no proxy that its hosts could be exempt from",
            )
            continue
        for entry in no_proxy.unused(known):
            yield (
                "warning",
                "unused-no-proxy",
                no_proxy.where,
                f"{no_proxy.where} has {quoted(entry)}, which matches no start URL, no host that a rule allows, and no known site",
            )
