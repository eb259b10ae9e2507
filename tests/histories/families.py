"""Families of long texts: which texts are nearly the same, by the words in which they differ.

What the setting calls near is decided by signatures. The members of a family are chosen so that it never is a close decision: the words that
differ say the same (`test_families.py`). In some families all members are near each other, in a chain each only to its neighbours.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from functools import cache

FEWEST_WORDS = 100
"""A shorter text is near no other."""
MOST_APART = {0: 0.0, 3: 1 / 500, 6: 1 / 100}
"""By distance of the setting: the share of the words that differ at most."""
_SAME_WORDS = 5
"""Words at the beginning, which all members have."""


@dataclass(frozen=True, slots=True)
class Family:
    """Texts of so many words. The members of a `chain` differ in the more words, the further they are apart in it."""

    name: str
    words: int
    versions: tuple[tuple[int, ...], ...]
    """By member, how often each of the parts that change has changed."""
    places: tuple[int, ...] = (1,)
    """The words of each part that changes."""
    chain: tuple[int, ...] = ()
    """Distances of the setting at which not all members that are connected by near ones are near each other."""

    @property
    def title(self) -> str:
        return f"about {self.name}"

    def members(self) -> list[str]:
        """Return the texts of all members."""
        return [self._text(versions) for versions in self.versions]

    def _text(self, versions: tuple[int, ...]) -> str:
        words = [f"{self.name}{number}" for number in range(self.words)]
        changing, done = sum(self.places), 0
        for part, (version, places) in enumerate(zip(versions, self.places, strict=True)):
            for number in range(places):
                place = _SAME_WORDS + done * (self.words - _SAME_WORDS) // changing
                words[place] = f"{self.name}-{part}-{number}-{version}" if version else words[place]
                done += 1
        return " ".join(words)


def _chained(length: int) -> tuple[tuple[int, ...], ...]:
    return tuple((1,) * number + (0,) * (length - 1 - number) for number in range(length))


FAMILIES = (
    Family("twins", 1600, ((0,), (1,), (2,), (3,), (4,))),
    Family("brothers", 1600, ((0,), (1,), (2,), (3,))),
    Family("cousins", 1000, tuple((one, other) for one in range(3) for other in range(3)), (3, 1)),
    Family("row", 1000, _chained(5), (1,) * 4, chain=(3,)),
    Family("path", 2000, _chained(4), (14,) * 3, chain=(6,)),
    Family("hundred", 100, ((0,), (1,), (2,))),
    Family("few", 97, ((0,), (1,), (2,))),
    Family("apart", 600, ((0,), (1,), (2,)), (60,)),
)


@cache
def _named() -> dict[str, tuple[Family, int]]:
    return {text: (family, number) for family in FAMILIES for number, text in enumerate(family.members())}


def shown(text: str) -> str:
    """Return the name of a text in words; short ones as they are."""
    found = _named().get(text)
    return text if found is None else f"{found[0].name} {found[1]}"


def family_of(text: str) -> Family | None:
    found = _named().get(text)
    return None if found is None else found[0]


@cache
def are_near(one: str, other: str, within: int) -> bool:
    """Whether two texts, each with the title if that counts, are near each other at a distance of the setting."""
    counts = [Counter(text.split()) for text in (one, other)]
    sizes = [count.total() for count in counts]
    if not within or min(sizes) < FEWEST_WORDS:
        return False
    differing = max((counts[0] - counts[1]).total(), (counts[1] - counts[0]).total())
    return differing <= MOST_APART[within] * max(sizes)


class Texts:
    """Draws texts for the pages of a history."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._families = chance.sample(FAMILIES, chance.randint(2, 4))
        """Few, so that their members meet."""

    def any(self) -> tuple[str, str] | None:
        """Return title and text of a new page; None for a text of no family."""
        return self._of(self._chance.choice(self._families)) if self._chance.random() < 0.7 else None

    def after(self, text: str) -> tuple[str, str] | None:
        """Return title and text of a page that had that text: mostly another one of its family."""
        family = family_of(text)
        return self.any() if family is None or self._chance.random() < 0.3 else self._of(family)

    def _of(self, family: Family) -> tuple[str, str]:
        return family.title, self._chance.choice(family.members())
