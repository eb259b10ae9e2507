"""Other forms of the words of a query, by Snowball's stemmers: `installation` finds `installing`, `Einstellung` finds `Einstellungen`.

The index has the words as they are written, and a query looks for all of its words that have the same stem. So a stemmer has a few
hundred words to read for a query, and none while a page is recorded. The languages are those of the documents.
"""

from __future__ import annotations

from itertools import takewhile

import apsw
from Stemmer import Stemmer

ALGORITHMS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english", "eo": "esperanto",
    "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi",
    "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian", "nb": "norwegian", "ne": "nepali",
    "nl": "dutch", "nn": "norwegian", "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
_DEFAULT = ("english",)
"""For an index of which no document says its language."""
_LAST = "\U0010ffff"
_SHORTEST = 3
_LONGEST_ENDING = 8
_MOST_LANGUAGES = 100
_MOST_WORDS = 3_000
"""Words of the index with the same beginning that are looked at."""
_MOST_FORMS = 25
_LANGUAGES = "SELECT language FROM documents WHERE language > ? ORDER BY language LIMIT 1"
_WITH_BEGINNING = "SELECT term FROM vocabulary WHERE term >= ? AND term < ? LIMIT ?"


class Stems:
    """Finds the forms of words in an open index."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def stemmers(self, languages: tuple[str, ...] = ()) -> list[Stemmer]:
        """Return a stemmer for each of the languages, without any for those of the documents."""
        found = dict.fromkeys(ALGORITHMS.get(one.partition("-")[0].lower(), "") for one in languages or self._languages())
        return [Stemmer(name) for name in [*filter(None, found)] or _DEFAULT]

    def forms(self, word: str, stemmers: list[Stemmer]) -> tuple[str, ...]:
        """Return the other words of the index with the stem of a word in one of the languages."""
        if len(word) < _SHORTEST or not word.isalpha():
            return ()
        stems = [(stemmer, stemmer.stemWord(word)) for stemmer in stemmers]
        beginning = "".join(
            letters[0] for letters in takewhile(_are_equal, zip(word, *(stem for _, stem in stems), strict=False))
        )
        if len(beginning) < _SHORTEST:
            return ()
        rows = self._db.execute(_WITH_BEGINNING, (beginning, beginning + _LAST, _MOST_WORDS))
        longest = len(word) + _LONGEST_ENDING
        found = [str(term) for (term,) in rows if len(str(term)) <= longest and term != word]
        return tuple(form for form in found if any(stemmer.stemWord(form) == stem for stemmer, stem in stems))[:_MOST_FORMS]

    def _languages(self) -> list[str]:
        """Return the languages of the documents, without region, by steps of the index: there are many documents and few languages."""
        found: list[str] = []
        after = ""
        while len(found) < _MOST_LANGUAGES and (row := self._db.execute(_LANGUAGES, (after,)).fetchone()):
            found.append(str(row[0]).partition("-")[0])
            after = f"{found[-1]}-{_LAST}"
        return found


def _are_equal(letters: tuple[str, ...]) -> bool:
    return len(set(letters)) == 1
