"""Which character set a body is read with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content.charset import charset_parameter, codec_of, decode

DECODED = (
    ("é".encode(), None, "utf-8", "é"),
    (b"\xe9", None, "cp1252", "é"),
    (b"\x80", "ISO-8859-1", "cp1252", "€"),
    (b"\xe9", "utf-8", "utf-8", "\ufffd"),
    ("é€".encode()[:-1], None, "utf-8", "é\ufffd"),
    # a byte order mark is above all
    (b"\xef\xbb\xbf\xc3\xa9", "latin1", "utf-8", "é"),
    (b"\xff\xfe\xe9\x00", "utf-8", "utf-16-le", "é"),
    (b"\xfe\xff\x00\xe9", None, "utf-16-be", "é"),
    # then the header, unless its label is none of the standard's
    (b"<meta charset=utf-8>\xc0", "koi8-r", "koi8-r", "<meta charset=utf-8>ю"),
    (b"<meta charset=koi8-r>\xc0", "no-such", "koi8-r", "<meta charset=koi8-r>ю"),
    (b"+ADw-", "utf-7", "utf-8", "+ADw-"),
    (b"abc", "rot13", "utf-8", "abc"),
    (b"\x82\xa0", " Shift_JIS ", "cp932", "あ"),
    (b"\x80", "gbk", "gb18030", "€"),
    # then the page's first 1024 bytes
    (b'<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=windows-1251">\xe9', None, "cp1251", None),
    (b'<meta name="x" content="text/html; charset=windows-1251">\xc3\xa9', None, "utf-8", None),
    (b"<!-- <meta charset=koi8-r> -->\xe9", None, "cp1252", None),
    (b"<meta charset=utf-16>\xc3\xa9", None, "utf-8", None),
    (b"<meta charset='x-user-defined'>", None, "cp1252", None),
    (b"<meta charset=bad><meta charset=koi8-r>", None, "koi8-r", None),
    (b" " * 1024 + b"<meta charset=koi8-r>\xe9", None, "cp1252", None),
    (b"<?xml version='1.0' encoding='iso-8859-5'?>\xd0", None, "iso8859-5", None),
    (b"<?xml version='1.0' encoding='iso-8859-5'?><meta charset=koi8-r>", None, "koi8-r", None),
    ("<?xml version='1.0'?>".encode("utf-16-le"), None, "utf-16-le", "<?xml version='1.0'?>"),
    (b"", None, "utf-8", ""),
)


@pytest.mark.parametrize(("body", "header", "codec", "text"), DECODED)
def test_decode(body: bytes, header: str | None, codec: str, text: str | None) -> None:
    found, used = decode(body, header)
    assert used == codec
    assert text is None or found == text


PARAMETERS = (
    ("text/html; charset=utf-8", "utf-8"),
    ('text/html;CHARSET="ISO-8859-1"; x=y', "ISO-8859-1"),
    ("text/html; charset = x ;", "x"),
    ("text/html", None),
    (None, None),
)


@pytest.mark.parametrize(("content_type", "expected"), PARAMETERS)
def test_charset_parameter(content_type: str | None, expected: str | None) -> None:
    assert charset_parameter(content_type) == expected


@pytest.mark.parametrize("label", ["utf8", "latin1", "GB2312", "big5", "euc-kr", "iso-2022-jp", "x-mac-cyrillic", "windows-874"])
def test_labels_of_the_standard_are_known(label: str) -> None:
    codec = codec_of(label)
    assert codec is not None
    assert "x".encode(codec) == b"x"


@given(
    st.binary(max_size=100),
    st.sampled_from([None, "utf-8", "iso-2022-jp", "big5", "euc-jp", "gbk", "utf-16", "\0", "é", "\ud800"]),
)
def test_no_body_and_no_label_raises(body: bytes, header: str | None) -> None:
    decode(body, header)
