from __future__ import annotations

import pytest

from crawlspace.runtime.retry_after import retry_after_s

NOW = 1_445_412_480.0  # Wed, 21 Oct 2015 07:28:00 GMT

FORMS = [
    ("120", 120.0),
    (" 0 ", 0.0),
    ("Wed, 21 Oct 2015 07:29:00 GMT", 60.0),
    ("Wed, 21 Oct 2015 07:00:00 GMT", 0.0),
    ("soon", None),
    ("", None),
    ("-5", None),
    ("99999999999999999999", 999999999.0),
]


@pytest.mark.parametrize(("value", "seconds"), FORMS)
def test_forms(value: str, seconds: float | None) -> None:
    assert retry_after_s(value, now=NOW) == seconds
