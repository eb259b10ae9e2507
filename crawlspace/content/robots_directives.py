"""What a page asks of robots, in its markup (`meta name=robots`) and in its headers (`X-Robots-Tag`).

Whatever is asked anywhere holds: directives are combined to the most restrictive. `unavailable_after` and the directives
about previews say nothing about fetching or indexing now, and are passed over: a page whose time is over answers 404 or 410.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_WORDS = re.compile(r"[^\s,;]+")


@dataclass(frozen=True, slots=True)
class RobotsDirectives:
    """Whether the document may be indexed, and whether its links may be followed."""

    index: bool = True
    follow: bool = True

    def __and__(self, other: RobotsDirectives) -> RobotsDirectives:
        return RobotsDirectives(self.index and other.index, self.follow and other.follow)


NO_LIMITS = RobotsDirectives()


def parse_robots(content: str) -> RobotsDirectives:
    """Return what the content of a robots meta element asks: `noindex`, `nofollow`, `none`; anything else asks nothing."""
    index = follow = True
    for word in _WORDS.findall(content.lower()):
        if word == "none":
            index = follow = False
        elif word == "noindex":
            index = False
        elif word == "nofollow":
            follow = False
    return RobotsDirectives(index, follow)


def parse_robots_headers(values: Iterable[str], agent_names: Collection[str] = ()) -> RobotsDirectives:
    """Return what the `X-Robots-Tag` headers ask of us.

    `googlebot: noindex, nofollow` speaks to that agent only, up to the next agent or the end of the header; it concerns us when
    the agent is among `agent_names` (compared without case) or `*`.
    """
    ours = {name.lower() for name in agent_names} | {"*"}
    asked = NO_LIMITS
    for value in values:
        concerns_us = True
        for part in value.lower().split(","):
            head, colon, directive = part.rpartition(":")
            if colon:
                agent = head.split(":")[0].strip()
                if agent in _VALUED or " " in agent:  # the rest of a date, behind its comma
                    continue
                concerns_us = agent in ours
            if concerns_us:
                asked &= parse_robots(directive)
    return asked
