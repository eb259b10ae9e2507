"""Signatures of texts: which texts are near, and that a signature is the same everywhere."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.simhash import DISTANCES, MIN_WORDS, bands, distance, is_near, probes, signature_of

WORDS = [f"word{number}" for number in range(5_000)]


def text(words: int, *, seed: int = 1) -> list[str]:
    return random.Random(seed).choices(WORDS, k=words)


def changed(words: list[str], number: int) -> list[str]:
    """Return a text with so many other words, spread evenly."""
    found = list(words)
    for place in range(number):
        found[(2 * place + 1) * len(words) // (2 * number)] = f"changed{place}"
    return found


def of(words: list[str]) -> bytes:
    signature = signature_of(" ".join(words))
    assert signature is not None
    return signature


# words, what becomes of them -> near by a distance of 3, of 6
PAIRS: list[tuple[str, int, Callable[[list[str]], list[str]], bool, bool]] = [
    ("the same", 500, lambda words: words, True, True),
    ("one word of 500", 500, lambda words: changed(words, 1), True, True),
    ("two words of 1000", 1000, lambda words: changed(words, 2), True, True),
    ("three words of 500", 500, lambda words: changed(words, 3), False, True),
    ("one word of 100", 100, lambda words: changed(words, 1), False, True),
    ("a hundred words of 10000", 10_000, lambda words: changed(words, 100), False, True),
    ("a word left out of 1000", 1000, lambda words: words[:500] + words[501:], True, True),
    ("a word more", 1000, lambda words: [*words[:500], "more", *words[500:]], True, True),
    ("two parts in another order", 1000, lambda words: words[500:] + words[:500], True, True),
    ("3 % of the words", 1000, lambda words: changed(words, 30), False, False),
    ("10 % of the words", 1000, lambda words: changed(words, 100), False, False),
    ("half of it", 1000, lambda words: words[:500], False, False),
    ("twice", 500, lambda words: words * 2, False, False),
    ("another text", 500, lambda words: text(len(words), seed=2), False, False),
    ("the words in another order", 500, sorted, False, False),
    ("a table with other rows", 500, lambda words: ["row", *words[:9]] * 30 + words[:60], False, False),
]


@pytest.mark.parametrize(("title", "words", "change", "near_3", "near_6"), PAIRS, ids=[row[0] for row in PAIRS])
def test_which_texts_are_near(
    title: str, words: int, change: Callable[[list[str]], list[str]], near_3: bool, near_6: bool
) -> None:
    one, other = of(text(words)), of(change(text(words)))
    assert [is_near(one, other, within) for within in DISTANCES] == [False, near_3, near_6]
    assert [is_near(other, one, within) for within in DISTANCES] == [False, near_3, near_6]


# texts -> whether they have a signature
LENGTHS = [
    ("", False),
    ("word " * (MIN_WORDS - 1), False),
    ("word " * MIN_WORDS, True),
    ("漢字" * (MIN_WORDS // 2 - 1), False),
    ("漢字" * (MIN_WORDS // 2), True),
    ("ภาษาไทย" * 20, True),
    ("слово " * (MIN_WORDS - 1), False),
    ("\udcff " * MIN_WORDS, True),
]


@pytest.mark.parametrize(("text", "expected"), LENGTHS)
def test_short_texts_have_no_signature(text: str, expected: bool) -> None:
    assert (signature_of(text) is not None) == expected


def test_of_languages_without_spaces_each_character_is_a_word() -> None:
    characters = "".join(chr(0x4E00 + number % 3000) for number in range(0, 7 * 600, 7))
    one, other = signature_of(characters), signature_of(characters[:300] + "東" + characters[301:])
    far = signature_of("".join(chr(0x5E00 + number) for number in range(600)))
    assert one is not None
    assert other is not None
    assert far is not None
    assert (is_near(one, other, 3), is_near(one, far, 6)) == (True, False)


def test_title_and_cut_off() -> None:
    words = " ".join(text(300))
    assert signature_of(words, title="A title") != signature_of(words)
    assert signature_of(f"{words} {' '.join(text(300, seed=2))}", cut_off=len(words)) == signature_of(words)
    assert signature_of("é" * 300, cut_off=3) is None


STORED = (
    "a2399c779d4ddc86c800000000ff0000010102010100fe00ff00ff00ff000001010001010000010000fffe000000fefe0000"
    "0000020000ff00ff02020003ff000100000200000000fffe020000ff01feffff0002fe0000ff00ff010101fe020100ff0102"
    "0202ff00000100ff020100010100feffff0100000101ffffffff00ff01020100fffc010001000100"
)
"""That of the numbers from 0 to 199."""


def test_a_signature_is_the_same_in_each_process() -> None:
    """It is stored, so it must never change: neither with the seed of hashes, nor with the version of Python."""
    program = "from crawlspace.simhash import signature_of; print(signature_of(' '.join(map(str, range(200)))).hex())"
    found = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {STORED}


signatures = st.binary(min_size=8, max_size=8).map(lambda simhash: simhash + bytes(132))


@given(signature=signatures, flips=st.sets(st.integers(0, 63), max_size=6))
def test_all_within_the_distance_are_looked_up(signature: bytes, flips: set[int]) -> None:
    simhash = int.from_bytes(signature[:8], "little")
    for bit in flips:
        simhash ^= 1 << bit
    other = simhash.to_bytes(8, "little") + bytes(132)
    assert distance(signature, other) == len(flips)
    for within in DISTANCES[1:]:
        if len(flips) <= within:
            assert not set(bands(other)).isdisjoint(probes(signature, within))


def test_the_number_of_look_ups_is_fixed() -> None:
    assert [len(list(probes(bytes(140), within))) for within in DISTANCES[1:]] == [26, 320]
