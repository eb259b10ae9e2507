"""Numbers with their noun: `1 URL`, `2,000 URLs`."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun; `plural` if that is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def verb(number: int, one: str, many: str) -> str:
    """Return the form of a verb for a number: `is` or `are`."""
    return one if number == 1 else many
