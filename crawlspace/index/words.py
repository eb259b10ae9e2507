"""Convert a search text to a query for FTS5.

All plain words must occur; `"quoted words"` must be adjacent; `word*` matches prefixes; `-word` must not occur.
Everything else is read as words: search texts never contain FTS5 syntax.
"""

from __future__ import annotations

import re

from crawlspace.errors import UsageError
from crawlspace.printable import quoted

_TERM = re.compile(r'(-?)(?:"([^"]*)"?|([^\s"]+))(\*?)')


def fts_query(words: str) -> str:
    """Return the FTS5 query for a search text. Raises UsageError if it has no words."""
    wanted: list[str] = []
    unwanted: list[str] = []
    for minus, phrase, word, star in _TERM.findall(words.replace("\0", " ").encode("utf-8", "replace").decode()):
        text = phrase or word
        if not any(letter.isalnum() for letter in text):
            continue  # FTS5 finds no word in it
        prefix = " *" if star or text.endswith("*") else ""
        term = '"' + text.replace('"', '""') + '"' + prefix
        (unwanted if minus else wanted).append(term)
    if not wanted:
        shown = words.strip()
        raise UsageError(
            f"there is nothing to search for in {quoted(shown)}: give at least one word that is not excluded with -"
            if shown
            else "there is nothing to search for: give at least one word"
        )
    query = " AND ".join(wanted)
    return f"({query})" + "".join(f" NOT {term}" for term in unwanted) if unwanted else query
