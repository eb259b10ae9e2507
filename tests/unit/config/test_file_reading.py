"""The settings of files, and what is wrong with those that are refused."""

from __future__ import annotations

import pytest

from crawlspace import settings as defaults
from crawlspace.config.content import check_converters, read_converters, read_file_settings
from crawlspace.config.limits import read_limits
from crawlspace.errors import SettingError

SETTINGS = {name: value for name, value in vars(defaults).items() if name.isupper()}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("CRAWLSPACE_FILE_PROCESSES", 0, "CRAWLSPACE_FILE_PROCESSES"),
        ("CRAWLSPACE_FILE_MAXSIZE", 0, "CRAWLSPACE_FILE_MAXSIZE"),
        ("CRAWLSPACE_FILE_TIMEOUT", "soon", "CRAWLSPACE_FILE_TIMEOUT"),
        ("CRAWLSPACE_FILE_MEMORY", 1_000_000, "CRAWLSPACE_FILE_MEMORY"),
        ("CRAWLSPACE_FOLLOW_FILE_LINKS", "perhaps", "CRAWLSPACE_FOLLOW_FILE_LINKS"),
        ("CRAWLSPACE_CONVERTERS", "antiword", "CRAWLSPACE_CONVERTERS"),
        ("CRAWLSPACE_CONVERTERS", {"doc": "antiword {file}"}, "names 'doc', which is no type"),
        ("CRAWLSPACE_CONVERTERS", {"*/*": "antiword {file}"}, "names '*/*', which is no type"),
        ("CRAWLSPACE_CONVERTERS", {"application/msword": ""}, "has no command for application/msword"),
        ("CRAWLSPACE_CONVERTERS", {"application/msword": "antiword"}, "the command for application/msword does not name {file}"),
        ("CRAWLSPACE_CONVERTERS", {"application/msword": "{file}"}, "the command for application/msword does not name {file}"),
        ("CRAWLSPACE_CONVERTERS", {"application/msword": "anti'word {file}"}, "cannot be split into words"),
        ("CRAWLSPACE_CONVERTERS", {"image/*": "http:///tika"}, "the URL for image/* has no host"),
        ("CRAWLSPACE_CONVERTERS", {"image/*": "http://a:99999/"}, "the URL for image/* has no host"),
    ],
)
def test_a_wrong_value_is_named(name: str, value: object, message: str) -> None:
    with pytest.raises(SettingError) as raised:
        read_file_settings({**SETTINGS, name: value})
    assert message in str(raised.value)


def test_converters() -> None:
    given = {" Image/* ": "http://tika:9998/tika", "application/msword": "antiword {file} "}
    assert read_converters(given) == {"image/*": "http://tika:9998/tika", "application/msword": "antiword {file}"}


def test_what_has_a_converter_is_taken() -> None:
    limits = read_limits({**SETTINGS, "CRAWLSPACE_MIME_TYPES": ["text/html"], "CRAWLSPACE_CONVERTERS": {"image/*": "ocr {file}"}})
    assert limits.mime_types == ("text/html", "image/*")


def test_a_program_that_is_not_there_is_named() -> None:
    given = {"image/*": "http://tika:9998/tika", "application/msword": "/no/such/program {file}"}
    with pytest.raises(SettingError) as raised:
        check_converters(read_file_settings({**SETTINGS, "CRAWLSPACE_CONVERTERS": given}))
    assert "the command for application/msword begins with '/no/such/program', which is no program" in str(raised.value)
