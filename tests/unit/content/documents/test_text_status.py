"""Why a file has no text: each reason is documented, in the words of the code."""

from __future__ import annotations

from crawlspace.content.documents.contents import TextStatus
from tests.conftest import assert_same
from tests.unit.test_docs import plain, rows


def test_every_text_status_is_documented_with_its_sentence() -> None:
    documented = [(plain(name), sentence) for name, sentence in rows("docs/files.md", "Files without text")]
    assert_same(documented, [(status.value, status.sentence) for status in TextStatus])
