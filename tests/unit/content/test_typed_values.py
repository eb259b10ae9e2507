"""Values of extraction rules by their types: what is a number, a truth value, a time or a URL, and what could mean two things."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content.extraction_rules import TYPES, ValueType
from crawlspace.content.typed_values import typed, written_number

# text -> number; empty: none, or more than one reading
NUMBERS = [
    ("7", "7"),
    ("007", "7"),
    ("-0", "0"),
    ("1234567", "1234567"),
    ("1,234.50", "1234.5"),
    ("1.234,50", "1234.5"),
    ("1 234,5", "1234.5"),
    ("1\u00a0234\u202f567", "1234567"),
    ("1'234.50", "1234.5"),
    ("1\u2019234", "1234"),
    ("1,234,567", "1234567"),
    ("1.234.567", "1234567"),
    ("1.234.567,8", "1234567.8"),
    ("1,23,456.00", "123456"),
    ("1,5", "1.5"),
    ("1.25", "1.25"),
    ("1,2345", "1.2345"),
    ("1234.567", "1234.567"),
    ("0.234", "0.234"),
    (".5", "0.5"),
    ("5.", "5"),
    ("1.234", ""),
    ("1,234", ""),
    ("12,345", ""),
    ("1.23.4", ""),
    ("12,345,67", ""),
    ("1.234,5.6", ""),
    ("12 34", ""),
    ("1.234,50 €", "1234.5"),
    ("€ 1.234,50", "1234.5"),
    ("USD 1,234.50", "1234.5"),
    ("$-5", "-5"),
    ("12,-", "12"),
    ("12kg", "12"),
    ("about 12 kg", "12"),
    ("15 %", "15"),
    ("-5", "-5"),
    ("+5", "5"),
    ("\u22125 °C", "-5"),
    ("(5)", ""),
    ("(5", "5"),
    ("A4", ""),
    ("A-5", ""),
    ("3 for 2", ""),
    ("10-20", ""),
    ("12:30", ""),
    ("2024-05-01", ""),
    ("1e5", "100000"),
    ("1.5e-3", "0.0015"),
    ("1e999", ""),
    ("12 m²", "12"),
    ("", ""),
    ("call us", ""),
    ("9" * 30, "9" * 30),
    ("9" * 31, ""),
]


@pytest.mark.parametrize(("text", "number"), NUMBERS)
def test_numbers_are_read_where_they_have_one_meaning(text: str, number: str) -> None:
    assert written_number(text) == number


@pytest.mark.parametrize(("text", "number"), [("1.234", "1.234"), ("1,234", ""), ("-1.500", "-1.5"), ("1.234,5", "1234.5")])
def test_in_data_a_dot_is_that_of_the_decimals(text: str, number: str) -> None:
    assert written_number(text, is_exact=True) == number


@given(st.text("0123456789.,'- e+()", max_size=30))
def test_a_number_is_one_of_json(text: str) -> None:
    number = written_number(text)
    assert not number or (type(json.loads(number)) in {int, float} and number != "-0")


# type, text, value; empty: it does not fit
VALUES: list[tuple[ValueType, str, str]] = [
    ("text", "any words", "any words"),
    ("date", "2024-05-01", "2024-05-01"),
    ("date", "2024-05-01T12:00:00+02:00", "2024-05-01T10:00:00Z"),
    ("date", "20240501", "2024-05-01"),
    ("date", "2024", "2024"),
    ("date", "Wed, 01 May 2024 12:00:00 GMT", "2024-05-01T12:00:00Z"),
    ("date", "last week", ""),
    ("date", "05/06/2024", ""),
    ("url", "b?c", "http://a.example/dir/b?c"),
    ("url", "https://b.example", "https://b.example/"),
    ("url", "javascript:x()", ""),
    ("url", "mailto:a@b.example", ""),
    ("url", "http://[", ""),
    ("bool", "Yes", "true"),
    ("bool", "TRUE", "true"),
    ("bool", "1", "true"),
    ("bool", "no", "false"),
    ("bool", "false", "false"),
    ("bool", "0", "false"),
    ("bool", "perhaps", ""),
    ("bool", "", ""),
]


@pytest.mark.parametrize(("kind", "text", "value"), VALUES)
def test_values_have_the_form_of_their_type(kind: ValueType, text: str, value: str) -> None:
    assert typed(text, kind, base="http://a.example/dir/a") == value


def test_an_element_that_is_there_is_true() -> None:
    assert typed("", "bool", base="", is_element=True) == typed("sold out", "bool", base="", is_element=True) == "true"
    assert typed("no", "bool", base="", is_element=True) == "false"


@given(st.text(max_size=50), st.sampled_from(TYPES))
def test_no_text_raises(text: str, kind: ValueType) -> None:
    assert isinstance(typed(text, kind, base="http://a.example/"), str)
