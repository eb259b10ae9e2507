"""Whether texts of the families are near is no close decision: their signatures say the same as the words that differ."""

from __future__ import annotations

from itertools import combinations

import pytest

from crawlspace.simhash import is_near, signature_of
from tests.histories.families import FAMILIES, are_near, shown
from tests.histories.reading import EDITIONS, parts_of
from tests.quick import some

TEXTS = [(family, text) for family in FAMILIES for text in family.members()]


@pytest.mark.parametrize("edition", some(range(EDITIONS), 1))
@pytest.mark.parametrize("with_title", [False, True])
def test_signatures_say_what_the_words_do(edition: int, *, with_title: bool) -> None:
    seen = []
    for family, text in TEXTS:
        title = f"{family.title} " if with_title else ""
        words = " ".join((text, *(part.text for part in parts_of(text, edition))))
        seen.append((shown(text), title + text, signature_of(title + words)))
    wrong, near = [], 0
    for (name, text, signature), (other_name, other, other_signature) in combinations(seen, 2):
        for within in (3, 6):
            is_so = signature is not None and other_signature is not None and is_near(signature, other_signature, within)
            near += is_so
            if is_so != are_near(text, other, within):
                wrong.append((name, other_name, within, is_so))
    assert not wrong
    assert near


def test_in_all_families_but_chains_who_is_near_another_is_near_all_that_are() -> None:
    for family in FAMILIES:
        texts = family.members()
        for within in (3, 6):
            groups = [[other for other in texts if are_near(one, other, within) or one == other] for one in texts]
            is_chain = any(one != other and set(one) & set(other) for one, other in combinations(groups, 2))
            assert is_chain == (within in family.chain), (family.name, within)
