"""Signatures of texts that show which of them differ in a few words only: a simhash, and a sketch that counts the words that differ.

The simhash (Charikar, 2002) has 64 bits, each the majority of that bit among the hashes of all pairs of neighbouring words. The more alike two
texts are, the fewer bits differ; but a table of contents and a page of the same template may be as close as two versions of one page. So a
signature has a sketch as well: 128 counters, to each of which words are added or subtracted, by their hash. The differences between the counters of
two texts add up to the number of words that only one of them has, or to less where two such words meet in a counter; their squares add up to
about that number (Alon, Matias, Szegedy, 1996), or to more where a word was repeated.

Hashes are blake2b, so signatures are the same in all processes, on all machines and in all versions of Python. They are stored: with another
way to compute them, stored ones are of no use.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b

from crawlspace.text import COMMON_BYTES, IDEOGRAPHS, SOUTH_EAST_ASIAN

DISTANCES = (0, 3, 6)
"""Values of the setting: bits in which simhashes of near duplicates may differ; 0: there are none."""
MIN_WORDS = 100
"""A shorter text has no signature: in a few words, a small difference may be the whole content."""
_WORDS_OF_ONE_CHANGE = {3: 500, 6: 100}
"""By distance, of how many words one may differ."""
_COUNTERS = 128
_MOST_WORDS = (1 << 24) - 1
EPOCHS = 256
"""A signature has room for so many numbers of an epoch."""
_EPOCH = 11
_CACHED_WORDS = 1 << 16

_BANDS = ((41, 23, 2, 1), (20, 21, 1, 0), (0, 20, 1, 0))
"""Bands of a simhash: lowest bit, number of bits, and how many of them are tried the other way round for distances 6 and 3.

Of 6 bits, either at most 2 are in the first band, or at most 1 in the second, or at most 1 in the third; of 3 bits, at most 1, none or none. So
all simhashes in a distance have a band with one of the values that are looked up: 320 for distance 6, 26 for 3. Values are those of texts of
about the same length only. With a million texts of one length about 63 and 5 others have one of these values, too; where lengths are as different
as on the web, a tenth of that.
"""
_BAND_BITS, _NUMBER_AT = 25, 23
"""Bits of a value that are the band and its number, and where the number begins; above them is the class of the length."""

_ALONE = f"{IDEOGRAPHS}{SOUTH_EAST_ASIAN}"
_WORD = re.compile(rf"[{_ALONE}]|[^\s{_ALONE}]+")
_ONES = b"\x01"


def signature_of(text: str, *, title: str | None = None, cut_off: int = 0) -> bytes | None:
    """Return the signature of a text with its title, if any; None if it has fewer than 100 words.

    `cut_off` > 0 limits the text to its first bytes in UTF-8.
    """
    if cut_off > 0:
        text = text.encode("utf-8", "replace")[:cut_off].decode("utf-8", "ignore")
    if title:
        text = f"{title} {text}"
    words = words_of(text)
    if len(words) < MIN_WORDS:
        return None
    pairs = len(words) - 2
    joined = b"".join(map(_HASHES.__getitem__, words))
    hashes = int.from_bytes(joined, "little")
    # A word has two hashes of 8 bytes, for its place as first and as second of a pair. A pair has the first of one word, combined with the second of
    # the next.
    combined = (hashes ^ (hashes >> 192)) & ((1 << (128 * pairs)) - 1)
    of_pairs = combined.to_bytes(16 * pairs, "little")
    ones = int.from_bytes(_ONES * pairs, "little")
    simhash = 0
    for place in range(8):
        column = int.from_bytes(of_pairs[place::16], "little")
        for bit in range(8):
            simhash |= (2 * ((column >> bit) & ones).bit_count() > pairs) << (8 * place + bit)
    counted = Counter(joined[15::16])
    sketch = [counted[n] - counted[n + _COUNTERS] & 0xFF for n in range(_COUNTERS)]
    return simhash.to_bytes(8, "little") + min(len(words), _MOST_WORDS).to_bytes(3, "little") + b"\0" + bytes(sketch)


def in_epoch(signature: bytes, epoch: int) -> bytes:
    """Return a signature with the number of an epoch, so that it differs from those of others. Which texts are near does not depend on it."""
    return signature[:_EPOCH] + bytes([epoch]) + signature[_EPOCH + 1 :]


def epoch_of(signature: bytes) -> int:
    """Return the number of the epoch that a signature was made in."""
    return signature[_EPOCH]


def words_of(text: str) -> list[str]:
    """Return what white space separates; of languages without spaces, each letter is a word."""
    if not text.isascii() and text.encode("utf-8", "replace").translate(None, COMMON_BYTES):
        return _WORD.findall(text)
    return text.split()


def distance(one: bytes, other: bytes) -> int:
    """Return the number of bits in which the simhashes of two signatures differ."""
    return (int.from_bytes(one[:8], "little") ^ int.from_bytes(other[:8], "little")).bit_count()


def is_near(one: bytes, other: bytes, within: int) -> bool:
    """Return whether two signatures are those of near duplicates at a distance of the setting."""
    return within > 0 and distance(one, other) <= within and _has_few_changes(one, other, _WORDS_OF_ONE_CHANGE[within])


def _has_few_changes(one: bytes, other: bytes, words_of_one: int) -> bool:
    """Return whether at most one word of that many seems to differ."""
    sizes = int.from_bytes(one[8:_EPOCH], "little"), int.from_bytes(other[8:_EPOCH], "little")
    # twice the number of words that differ: those that only one has, and the difference of the sizes
    most = 2 * max(sizes) // words_of_one
    most_squares = 4 * max(sizes) // words_of_one
    least = squares = abs(sizes[0] - sizes[1])
    if least > most:
        return False
    for mine, others in zip(one[12:], other[12:], strict=True):
        if mine != others:
            apart = (mine - others) & 0xFF
            apart = min(apart, 256 - apart)
            least += apart
            squares += apart * apart
            if least > most or squares > most_squares:
                return False
    return True


def number_of(signature: bytes) -> int:
    """Return the simhash of a signature as SQLite stores it, as a number with a sign."""
    return int.from_bytes(signature[:8], "little", signed=True)


def bands(signature: bytes) -> tuple[int, ...]:
    """Return the three values under which a signature is looked up."""
    return _bands_in(signature, _class_of(int.from_bytes(signature[8:_EPOCH], "little")))


def probes(signature: bytes, within: int) -> Iterator[int]:
    """Yield the values of which the signature of every near duplicate at that distance has one among its `bands`."""
    words = int.from_bytes(signature[8:_EPOCH], "little")
    words_of_one = _WORDS_OF_ONE_CHANGE[within]
    # Sizes differ by two words of so many at most, see `_has_few_changes`.
    least, most = words - 2 * words // words_of_one, words * words_of_one // (words_of_one - 2)
    for of_length in range(_class_of(least), _class_of(most) + 1):
        for band, (_, size, of_six, of_three) in zip(_bands_in(signature, of_length), _BANDS, strict=True):
            flips = of_six if within > 3 else of_three
            yield band
            if flips:
                for first in range(size):
                    yield band ^ 1 << first
                    if flips > 1:
                        for second in range(first):
                            yield band ^ 1 << first ^ 1 << second


def _bands_in(signature: bytes, of_length: int) -> tuple[int, ...]:
    simhash = int.from_bytes(signature[:8], "little")
    return tuple(
        of_length << _BAND_BITS | number << _NUMBER_AT | simhash >> low & (1 << size) - 1
        for number, (low, size, _, _) in enumerate(_BANDS)
    )


def _class_of(words: int) -> int:
    """Return the number of the class of texts of about that length: there are four for each power of two."""
    bits = words.bit_length()
    return bits << 2 | words << 3 >> bits & 3


class _Hashes(dict[str, bytes]):
    """The hashes of the words that were met last."""

    def __missing__(self, word: str) -> bytes:
        if len(self) >= _CACHED_WORDS:
            self.clear()
        found = self[word] = blake2b(word.encode("utf-8", "replace"), digest_size=16).digest()
        return found


_HASHES = _Hashes()
