"""What a person types into the search box, as a query that FTS5 accepts.

Plain words must all occur; `"quoted words"` must stand together; `word*` matches beginnings; `-word` must not occur.
Everything else is read as words: nothing a user types is FTS5 syntax.
"""

from __future__ import annotations

import re

from crawlspace.errors import UsageError
from crawlspace.printable import quoted

_TERM = re.compile(r'(-?)(?:"([^"]*)"?|([^\s"]+))(\*?)')


def fts_query(words: str) -> str:
    """Return the FTS5 query for the words. Raises UsageError when there is nothing to look for."""
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
