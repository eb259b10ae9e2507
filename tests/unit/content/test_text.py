"""Text documents, the language of a text, and which documents have the same fingerprint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content.fingerprint import checksum
from crawlspace.content.language import language_of
from crawlspace.content.text import extract_text_document

DOCUMENTS = (
    ("text/plain", b" a <b>\n c\0", "a <b> c"),
    ("text/csv; charset=utf-8", b"a,b\nc,d", "a,b c,d"),
    ("application/xml", b"<?xml version='1.0'?><r a='b>c'><x>1</x><x>2</x>&lt;3<!-- no --></r>", "1 2 <3"),
    ("text/xml", b"<script>a</script><![CDATA[<b> &amp;]]>", "a <b> &amp;"),
    ("image/svg+xml", b"<!DOCTYPE x [ <!ENTITY a 'b'> ]><svg><text>t</text></svg>", "t"),
    ("application/xml", b"", ""),
)


@pytest.mark.parametrize(("content_type", "body", "expected"), DOCUMENTS)
def test_text(content_type: str, body: bytes, expected: str) -> None:
    page = extract_text_document(body, url="http://example.com/a", content_type=content_type)
    assert page.text == expected
    assert page.links == ()


TITLES = (
    ("http://example.com/a/b%20c.txt?x=/y#z", "b c.txt"),
    ("http://example.com/a/", "a"),
    ("http://example.com/", ""),
    ("http://example.com", ""),
)


@pytest.mark.parametrize(("url", "title"), TITLES)
def test_the_title_is_the_last_segment(url: str, title: str) -> None:
    assert extract_text_document(b"x", url=url, content_type="text/plain").title == title


@given(st.binary(max_size=200))
def test_any_bytes_are_read(body: bytes) -> None:
    extract_text_document(body, url="http://example.com/", content_type="text/xml", max_text=50)


# --- the language of a text that declares none ----------------------------------------------------------------------


GERMAN = "Die Mitarbeiterinnen und Mitarbeiter reichen ihren Urlaub mindestens vier Wochen vor dem ersten Tag ein."
CODE = "get_xyz(int k) p->q[3] = f(x, y); " * 4


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Employees send their holiday requests to the office at least four weeks before the first day.", "en"),
        (GERMAN, "de"),
        ("Les employés envoient leurs demandes de congé au bureau au moins quatre semaines avant le premier jour.", "fr"),
        ("従業員は休暇の申請を初日の少なくとも四週間前に事務所に提出しなければなりません。", "ja"),
        ("员工必须至少在第一天之前四周将休假申请提交给办公室，否则不予批准。", "zh"),
        ("직원은 휴가 첫날로부터 최소 4주 전에 사무실에 휴가 신청서를 제출해야 합니다.", "ko"),
        ("Сотрудники отправляют заявления на отпуск не менее чем за четыре недели до первого дня.", "ru"),
        ("על העובדים לשלוח את בקשות החופשה שלהם למשרד לפחות ארבעה שבועות מראש.", "he"),
        ("", ""),
        ("Contact", ""),
        ("12.50 13.75 14.00 " * 50, ""),
        ("xxxx " * 100, ""),
        ("\ud800 " + GERMAN + "\0", "de"),
        (CODE + GERMAN * 10 + CODE + GERMAN * 10 + CODE, "de"),
        ("Home Products About us Login " + GERMAN * 100 + " Imprint Privacy Terms of use", "de"),
    ],
)
def test_the_language_of_a_text(text: str, language: str) -> None:
    assert language_of(text) == language


# --- fingerprints ---------------------------------------------------------------------------------------------------


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
