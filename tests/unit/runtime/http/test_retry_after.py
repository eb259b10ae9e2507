from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from crawlspace.runtime.http.retry_after import retry_after_s

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
    ("9" * 300_000, 999999999.0),
    ("Wed, " * 100_000, None),
]


@pytest.mark.parametrize(("value", "seconds"), FORMS)
def test_forms(value: str, seconds: float | None) -> None:
    assert retry_after_s(value, now=NOW) == seconds


DATES = [
    # all of RFC 9110 section 5.6.7, and such as are sent although they are none
    "Wed, 21 Oct 2015 07:29:00 GMT",
    "Wednesday, 21-Oct-15 07:29:00 GMT",
    "Wed Oct 21 07:29:00 2015",
    "Wed, 21 Oct 2015 07:29:00",
    "Wed, 21 Oct 2015 07:29:00 -0000",
    "Wed, 21 Oct 2015 07:29:00 +0000",
    "Wed, 21 Oct 2015 09:29:00 +0200",
]


@pytest.fixture(params=["UTC0", "CET-1CEST,M3.5.0,M10.5.0/3", "EST5EDT,M3.2.0,M11.1.0"])
def _local_time(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the local time of Windows is not a process's own")
@pytest.mark.usefixtures("_local_time")
@pytest.mark.parametrize("value", DATES)
def test_the_time_zone_of_the_machine_changes_no_date(value: str) -> None:
    assert retry_after_s(value, now=NOW) == 60.0
