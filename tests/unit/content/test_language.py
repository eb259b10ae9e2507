"""The language of a text that declares none."""

from __future__ import annotations

import pytest

from crawlspace.content.language import language_of

GERMAN = "Die Mitarbeiterinnen und Mitarbeiter reichen ihren Urlaub mindestens vier Wochen vor dem ersten Tag ein."


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
        ("Home Products About us Login " + GERMAN * 100 + " Imprint Privacy Terms of use", "de"),
    ],
)
def test_the_language_of_a_text(text: str, language: str) -> None:
    assert language_of(text) == language
