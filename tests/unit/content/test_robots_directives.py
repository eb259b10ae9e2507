"""What pages and headers ask of robots."""

from __future__ import annotations

import pytest

from crawlspace.content.robots_directives import RobotsDirectives, parse_robots, parse_robots_headers

META = (
    ("", True, True),
    ("index, follow", True, True),
    ("all", True, True),
    ("NoIndex", False, True),
    ("nofollow;noarchive", True, False),
    ("none", False, False),
    ("index,noindex", False, True),
    ("noindex nofollow", False, False),
    ("max-snippet:0, unavailable_after: 2001-01-01", True, True),
    ("noindexing", True, True),
)


@pytest.mark.parametrize(("content", "index", "follow"), META)
def test_meta(content: str, index: bool, follow: bool) -> None:
    assert parse_robots(content) == RobotsDirectives(index, follow)


HEADERS: tuple[tuple[list[str], bool, bool], ...] = (
    ([], True, True),
    (["noindex"], False, True),
    (["noindex", "nofollow"], False, False),
    (["googlebot: noindex"], True, True),
    (["OurBot: noindex"], False, True),
    (["*: none"], False, False),
    (["otherbot: noindex, nofollow"], True, True),
    (["otherbot: noindex, ourbot: nofollow"], True, False),
    (["ourbot: nofollow, otherbot: noindex"], True, False),
    (["googlebot: noindex", "nofollow"], True, False),
    (["unavailable_after: Wed, 25 Jun 2003 15:00:00 PST, noindex"], False, True),
    (["ourbot: unavailable_after: 25 Jun 2003 15:00:00 PST, nofollow"], True, False),
    (["max-image-preview: none"], True, True),
    ([": noindex"], True, True),
)


@pytest.mark.parametrize(("values", "index", "follow"), HEADERS)
def test_headers(values: list[str], index: bool, follow: bool) -> None:
    assert parse_robots_headers(values, ("OurBot",)) == RobotsDirectives(index, follow)
