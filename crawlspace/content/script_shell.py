"""Which pages may show nothing before a browser has run their scripts."""

from __future__ import annotations

from collections.abc import Collection, Mapping

MAX_TEXT = 25
"""Characters: a shell may say "Loading, please wait …", and an ordinary short page has a sentence."""
MAX_LINKS = 1
"""A shell may have the frame of a tag manager, or a link for those who run no scripts."""
_LINKS = frozenset({"a", "area", "frame", "iframe"})
_HAS_CONTENT = frozenset({"form", "frame"})


def is_script_shell(names: Collection[str], *, text: str, links: Mapping[str, str], refreshes: bool) -> bool:
    """Return whether a page has scripts, and next to no text and links.

    `names` are those of all its tags, `links` has the tag of each link; `refreshes`: it leads to another page by itself. Links to routes
    behind # of the page itself are part of its program.
    """
    if len(text) > MAX_TEXT or refreshes or "/script" not in names:
        return False
    number = sum(tag in _LINKS and href[0] != "#" for href, tag in links.items())
    return number <= MAX_LINKS and _HAS_CONTENT.isdisjoint(names)
