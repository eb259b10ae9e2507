"""Characters of languages without spaces as words of the index; `|` stands for a separator and `#` for a mark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.index.ideographs import MARK, SEPARATOR, is_ideograph, joined, separated

TEXTS = (
    ("", ""),
    ("annual leave", "annual leave"),
    ("Größe – Überblick", "Größe – Überblick"),
    ("管理者", "|管|理|者|"),
    ("apt命令x", "apt|命|令|x"),
    ("管理 者", "|管|理| |者|"),
    ("ファイル", "|フ|ァ|イ|ル|"),
    ("ファイル・名", "|フ|ァ|イ|ル|・|名|"),
    ("文件、系统", "|文|件|、|#|系|统|"),
    ("文件 (系统)", "|文|件| (|#|系|统|)"),
    ("웹서버 설정", "|#|웹|서|버| |#|설|정|"),
    ("한국 (漢字)", "|#|한|국| (|#|漢|字|)"),
    ("𠀀", "|𠀀|"),
)


@pytest.mark.parametrize(("text", "stored"), TEXTS)
def test_separated(text: str, stored: str) -> None:
    assert separated(text) == stored.replace("|", SEPARATOR).replace("#", MARK)
    assert joined(separated(text)) == text


@given(st.text(alphabet=st.one_of(st.sampled_from("a 、管설"), st.characters(exclude_categories=["Cs"]))))
def test_a_text_is_read_as_it_was(text: str) -> None:
    without = joined(text)
    assert joined(separated(without)) == without


@pytest.mark.parametrize(
    ("word", "expected"), [("管", True), ("ー", True), ("설", True), ("a", False), (MARK, False), ("ä", False)]
)
def test_is_ideograph(word: str, *, expected: bool) -> None:
    assert is_ideograph(word) is expected
