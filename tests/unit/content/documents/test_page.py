"""The name of a file without a title, and the documentation of files without text."""

from __future__ import annotations

import pytest

from crawlspace.content.documents.contents import TextStatus
from crawlspace.content.documents.page import file_name
from tests.conftest import assert_same
from tests.unit.test_docs import plain, rows

URL = "http://files.example.com/get/Plan%2010.pdf?id=1"
NAMES = (
    ("", "Plan 10.pdf"),
    ("attachment", "Plan 10.pdf"),
    ("attachment; filename=plan.pdf", "plan.pdf"),
    ('attachment; filename="Plan; \\"9\\".pdf"', 'Plan; "9".pdf'),
    # filename* comes first, wherever it stands
    ("attachment; filename=plan.pdf; filename*=UTF-8''Pl%C3%A4ne%20%E2%82%AC.pdf", "Pläne €.pdf"),
    ("attachment; filename*=utf-8'de'Pl%C3%A4ne.pdf; filename=plan.pdf", "Pläne.pdf"),
    ("attachment;FILENAME*=iso-8859-1'en'%A3.pdf", "£.pdf"),
    ("attachment; filename*=\"UTF-8''Pl%C3%A4ne.pdf\"; filename=no.pdf", "Pläne.pdf"),
    # unless it can't be read
    ("attachment; filename*=UTF-8''%E4.pdf; filename=plan.pdf", "plan.pdf"),
    ("attachment; filename*=utf-7''a.pdf; filename=plan.pdf", "plan.pdf"),
    ("attachment; filename*=plan2.pdf; filename=plan.pdf", "plan.pdf"),
    ("attachment; filename*=UTF-8''; filename=plan.pdf", "plan.pdf"),
    ("attachment; filename=\"a; filename*=UTF-8''b\"", "a; filename*=UTF-8''b"),
    # UTF-8, as it comes
    ('attachment; filename="' + "Pläne.pdf".encode().decode("latin-1") + '"', "Pläne.pdf"),
    ('attachment; filename="Pl\xe4ne.pdf"', "Pläne.pdf"),
    ("attachment; filename*=UTF-8''%0D%0Aa%20%20b", "a b"),
)


@pytest.mark.parametrize(("disposition", "name"), NAMES)
def test_the_name_of_a_file(disposition: str, name: str) -> None:
    assert file_name(URL, disposition) == name


def test_every_text_status_is_documented_with_its_sentence() -> None:
    documented = [(plain(name), sentence) for name, sentence in rows("docs/files.md", "Files without text")]
    assert_same(documented, [(status.value, status.sentence) for status in TextStatus])
