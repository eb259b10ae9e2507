"""What a Content-Type header says, however it is written; values and texts as they are stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.document import (
    Document,
    Part,
    declared,
    essence,
    is_generic,
    packed,
    packed_text,
    unpack_text,
    values_of,
)

TYPES = [
    # Content-Type headers, the type, whether the bytes decide
    (["text/html"], "text/html", False),
    (["Text/HTML; charset=utf-8"], "text/html", False),
    (["  text/html ;x=y"], "text/html", False),
    # several, as browsers read them
    (["text/html, text/html"], "text/html", False),
    (["text/html", "text/html"], "text/html", False),
    (["text/html; charset=utf-8, image/png"], "image/png", False),
    (["text/html, */*"], "text/html", False),
    (["text/html", "nonsense"], "text/html", False),
    (["text/html;x=a, text/plain;y=b, *"], "text/plain", False),
    (["text/" + "a" * 127], "text/" + "a" * 127, False),
    # nothing that helps
    (["text/" + "a" * 128], "", True),
    ([], "", True),
    ([""], "", True),
    (["nonsense"], "", True),
    (["*/*"], "", True),
    (["a/b c"], "", True),
    (["application/octet-stream"], "application/octet-stream", True),
    (["application/x-unknown"], "application/x-unknown", True),
    (["unknown/unknown; charset=utf-8"], "unknown/unknown", True),
    *(
        ([kind], kind, True)
        for kind in (
            "binary/octet-stream",
            "application/x-octet-stream",
            "application/octetstream",
            "application/download",
            "application/x-download",
            "application/force-download",
            "application/x-force-download",
            "text/pdf",
            "text/x-pdf",
        )
    ),
    (["Application/Force-Download; name=x.pdf"], "application/force-download", True),
]


@pytest.mark.parametrize(("headers", "expected", "generic"), TYPES)
def test_the_type_of_a_header(headers: list[str], expected: str, generic: bool) -> None:
    written = declared(headers)
    assert (essence(written), is_generic(written)) == (expected, generic)


# --- test field values ---------------------------------------------------------------------------------------------


# The text that is stored, and the values that it stands for.
VALUES = (
    ("", ""),
    ("hr", "hr"),
    ('["hr"]', ["hr"]),
    ('["hr","board"]', ["hr", "board"]),
    ('["a, \\"b\\"", "é"]', ['a, "b"', "é"]),
    ('["hr", 1, "x"]', '["hr", 1, "x"]'),
    ("[1, 2]", "[1, 2]"),
    ("[]", "[]"),
    ('["hr', '["hr'),
    ('["one"] and ["two"]', '["one"] and ["two"]'),
)


@pytest.mark.parametrize(("stored", "values"), VALUES)
def test_values(stored: str, values: str | list[str]) -> None:
    assert values_of(stored) == values


@pytest.mark.parametrize("values", [["a", "b"], ["]", '"'], ["ü,\n", "\ud800"[:0], "x"]])
def test_packed_values_are_read_again(values: list[str]) -> None:
    assert values_of(packed(values)) == values


TEXTS = st.text(st.sampled_from('ab \0{}"é'), max_size=8)
PARTS = st.builds(Part, TEXTS, TEXTS, st.lists(TEXTS, max_size=2), TEXTS, TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=2))


@given(TEXTS, TEXTS, st.lists(PARTS, max_size=2))
def test_a_text_is_stored_with_markdown_and_parts(text: str, markdown: str, parts: list[Part]) -> None:
    document, found = Document("", text=text, markdown=markdown, parts=parts), Document("")
    unpack_text(found, packed_text(document))
    assert found == document


@pytest.mark.parametrize("text", ["a\0b", "a\0", "\0{", "a\0{b}"])
def test_a_text_of_an_earlier_version_is_read_as_it_is(text: str) -> None:
    found = Document("")
    unpack_text(found, text)
    assert (found.text, found.parts) == (text, [])


@pytest.mark.parametrize("text", ["all of it", "{}", '{"parts": []}', '{"price": 7}', ""])
def test_a_text_alone_is_stored_and_read_as_it_is(text: str) -> None:
    assert packed_text(Document("", text=text)) == text
    found = Document("")
    unpack_text(found, text)
    assert found.text == text
