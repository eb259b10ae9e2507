"""Text from servers, pages and files, made fit for one line of a message."""

from __future__ import annotations

MOST = 200
"""Characters of an excerpt."""


def excerpt(text: str) -> str:
    """Return a text cut to 200 characters, with what cannot be printed escaped."""
    shown = text if len(text) <= MOST else f"{text[:MOST]}…"
    if shown.isprintable():
        return shown
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in shown)
