"""Which documents are the same."""

from __future__ import annotations

import pytest

from crawlspace.content.fingerprint import checksum

TEXTS = (
    ("one two", "one  two\n", True),
    ("one two", "one\u00a0two", True),
    ("caf\u00e9", "cafe\u0301", True),
    ("one two", "One two", False),
    ("one two", "onetwo", False),
    ("", " \t", True),
)


@pytest.mark.parametrize(("one", "other", "same"), TEXTS)
def test_checksum(one: str, other: str, same: bool) -> None:
    assert (checksum(one, title=None) == checksum(other, title=None)) is same


def test_it_has_sixteen_bytes_and_stays_as_it_was() -> None:
    assert checksum("text", title=None).hex() == "d732c6be860e019351f99173fa6ae613"


def test_a_title_counts_when_given() -> None:
    assert checksum("text", title="a") != checksum("text", title="b") != checksum("text", title=None)
    assert checksum("b text", title="a") != checksum("text", title="a b")
    assert checksum("text", title="") != checksum("text", title=None)


def test_only_the_first_bytes_count_with_a_cut_off() -> None:
    assert checksum("abcdef", title="t", cut_off=3) == checksum("abcxyz", title="t", cut_off=3)
    assert checksum("abcdef", title="t", cut_off=4) != checksum("abcxyz", title="t", cut_off=4)
    assert checksum("éa", title=None, cut_off=1) == checksum("éb", title=None, cut_off=1)


def test_collapsed_text_needs_no_collapsing() -> None:
    assert checksum("a b\u0301", title="t", collapsed=True) == checksum(" a\nb\u0301 ", title="t ")


def test_half_a_surrogate_pair_does_not_raise() -> None:
    assert len(checksum("\ud800", title=None)) == 16
