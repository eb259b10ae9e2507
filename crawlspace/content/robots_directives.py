"""Robots directives of a page, in its markup (`meta name=robots`) and its headers (`X-Robots-Tag`).

The most restrictive directives apply. `unavailable_after` and the directives about previews don't affect fetching or indexing now, and are
ignored: an expired page returns 404 or 410.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_WORDS = re.compile(r"[^\s,;]+")
_PRODUCT = re.compile(r"[A-Za-z_-]+")


@dataclass(frozen=True, slots=True)
class RobotsDirectives:
    """Whether the document may be indexed, and whether its links may be followed."""

    index: bool = True
    follow: bool = True

    def __and__(self, other: RobotsDirectives) -> RobotsDirectives:
        return RobotsDirectives(self.index and other.index, self.follow and other.follow)


NO_LIMITS = RobotsDirectives()


def parse_robots(content: str) -> RobotsDirectives:
    """Return the directives of a robots meta element: `noindex`, `nofollow`, `none`; anything else is ignored."""
    index = follow = True
    for word in _WORDS.findall(content.lower()):
        if word == "none":
            index = follow = False
        elif word == "noindex":
            index = False
        elif word == "nofollow":
            follow = False
    return RobotsDirectives(index, follow)


def names_of(user_agent: str) -> tuple[str, ...]:
    """Return the names that directives may have for a user agent: that of its product."""
    return tuple(_PRODUCT.findall(user_agent)[:1])


def parse_robots_headers(
    values: Iterable[str], agent_names: Collection[str] = (), *, of_all_agents: bool = False
) -> RobotsDirectives:
    """Return the directives of `X-Robots-Tag` headers.

    `googlebot: noindex, nofollow` is for that agent only, up to the next agent or the end of the header; it applies if the agent
    is `*` or among `agent_names` (compared without case), or if directives `of_all_agents` are wanted.
    """
    ours = {name.lower() for name in agent_names} | {"*"}
    directives = NO_LIMITS
    for value in values:
        applies = True
        for part in value.lower().split(","):
            head, colon, directive = part.rpartition(":")
            if colon:
                agent = head.split(":")[0].strip()
                if agent in _VALUED or " " in agent:  # the rest of a date, after its comma
                    continue
                applies = of_all_agents or agent in ours
            if applies:
                directives &= parse_robots(directive)
    return directives
