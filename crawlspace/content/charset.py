"""Text of bytes, as browsers decode it: by byte order mark, header, declaration of the page, then detection; and bytes of text, for links.

Names of encodings are the labels of the WHATWG Encoding standard and nothing else: Python would also know `utf-7`, `hex` and
`unicode_escape`, which let a page hide markup from a check of its bytes. An unknown label is ignored.

The encoding of a page that declares nothing, and is no UTF-8, is detected by chardet 7, among the encodings that Firefox detects. It was
chosen by pages in 22 languages and legacy encodings (Django's translations; 20 pages each; the share decoded without a mistake):

    characters of text   40     200    2,000   ms a page
    chardet 7            99 %   100 %  100 %   0.3 - 0.5
    chardetng (Firefox)  95 %    97 %   99 %   0.02 - 0.3     no wheels for Python 3.14 outside of Linux on x86
    cchardet             93 %    99 %   99 %   0.03 - 0.5
    charset-normalizer   81 %    84 %          0.3
"""

from __future__ import annotations

import codecs
import re
from functools import cache
from urllib.parse import quote_from_bytes

import webencodings
from w3lib.encoding import to_unicode
from webencodings.labels import LABELS

from crawlspace.content.markup import attributes_of, tokens

PRESCAN_BYTES = 1024
"""First bytes of a page that are searched for a declaration (HTML standard, 13.2.3.2)."""

_NOT_DECODED = frozenset({"replacement", "x-user-defined"})
"""Encodings of the standard that decode no page."""
_UNICODE = frozenset({"utf-8", "utf-16-le", "utf-16-be"})
"""Codecs whose pages have their links in UTF-8."""
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))
_CHARSET = re.compile(r"""charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|([^\t\n\f\r ;"']+))""", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._:-]+)["']""")
_LATE_META = re.compile(rb"<meta[^<>]{1,1000}?charset", re.IGNORECASE)

_DETECTED = frozenset(
    "utf-8 cp866 big5 cp874 cp932 cp949 euc-jp gb18030 iso-2022-jp iso-8859-2 iso-8859-4 iso-8859-5 iso-8859-6 iso-8859-7 iso-8859-8"
    " koi8-r koi8-u windows-1250 windows-1251 windows-1252 windows-1253 windows-1254 windows-1255 windows-1256 windows-1257"
    " windows-1258".split()
)
_FAMILIES = (
    ("euc_j", "euc_jp"),
    ("shift", "cp932"),
    ("cp932", "cp932"),
    ("iso2022_jp", "iso2022_jp"),
    ("gb", "gbk"),
    ("big5", "big5hkscs"),
    ("cp949", "cp949"),
    ("cp874", "cp874"),
)
"""The beginnings of chardet's names for larger and smaller sets of these characters, and the codecs of browsers for all of them."""
_EXAMINED_BYTES = 65_536
_BEFORE = 1_024
"""Bytes of ASCII before the first letter of another kind that are examined with it."""
_CLAIM = re.compile(rb"charset|coding", re.IGNORECASE)
"""Text that chardet would read as a declaration; valid declarations have been found before."""
_FOREIGN = re.compile(rb"[\x80-\xff]")
_SHIFTS_TO_JAPANESE = (b"\x1b$B", b"\x1b$@")
_MISTAKES_OF_UTF8 = 0.1
"""The largest share of broken characters in a text that counts as UTF-8."""


def codec_of(label: str | None) -> str | None:
    """Return Python's codec for a label of the Encoding standard, or None for anything else."""
    encoding = webencodings.lookup(label.strip("\t\n\f\r \"'")) if label and label.isascii() else None
    return None if encoding is None or encoding.name in _NOT_DECODED else str(encoding.codec_info.name)


def label_of(codec: str) -> str:
    """Return the name of a codec of `codec_of` in the Encoding standard."""
    if codec in _UNICODE:
        return "UTF-8"
    return next((name for name in dict.fromkeys(LABELS.values()) if codec_of(name) == codec), codec)


def charset_parameter(content_type: str | None) -> str | None:
    """Return the charset that a Content-Type header names, as written, or None."""
    match = _CHARSET.search(content_type or "")
    return (match[1] or match[2] or match[3]) if match else None


def decode(body: bytes, header_charset: str | None, *, markup: bool = False) -> tuple[str, str]:
    """Return the text, and the name of the codec that decoded it. Never raises: invalid bytes become U+FFFD.

    `markup`: the body is HTML, which may declare its encoding in any meta element.
    """
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace"), codec
    declared = codec_of(header_charset) or _declared(body, markup=markup)
    if declared is not None:
        return _decoded(body, declared), declared
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        # Cut within its last character; a single byte after plain ASCII is more probably an é of windows-1252.
        if error.reason == "unexpected end of data" and not body[: error.start].isascii():
            return body.decode("utf-8", "replace"), "utf-8"
    else:
        is_japanese = text.isascii() and any(map(body.__contains__, _SHIFTS_TO_JAPANESE))
        return (_decoded(body, "iso2022_jp"), "iso2022_jp") if is_japanese else (text, "utf-8")
    text = body.decode("utf-8", "replace")
    if text.count("\ufffd") <= _MISTAKES_OF_UTF8 * (len(text) - _count_ascii(text)):
        return text, "utf-8"
    codec = _detected(body)
    return _decoded(body, codec), codec


def in_encoding(url: str, codec: str) -> str:
    """Return a link as a browser sends it from a page in this encoding, in which its query is percent-encoded.

    Characters that the encoding lacks become `&#…;`, percent-encoded (URL standard, 1.3 and 4.4). Path and fragment are always in UTF-8.
    """
    if codec in _UNICODE or url.isascii():
        return url
    before, mark, query = url.partition("?")
    if not mark or "#" in before:
        return url
    query, mark, fragment = query.partition("#")
    return f"{before}?{_NOT_ASCII.sub(lambda run: _escaped(run[0], codec), query)}{mark}{fragment}"


def encoded(text: str, codec: str, *, unknown: str = "&#{};") -> bytes:
    """Return text in an encoding of the Encoding standard. `unknown` replaces a character that it lacks, and has its number."""
    if codec in _UNICODE:
        return text.encode("utf-8", "replace")
    parts = (_of_character(one, codec) for one in text)
    raw = b"".join(part if part is not None else unknown.format(ord(one)).encode() for part, one in zip(parts, text, strict=True))
    return _shifted(raw) if codec == "iso2022_jp" else raw


# which encoding
def _declared(body: bytes, *, markup: bool) -> str | None:
    """Return the declared encoding: by a meta element in the first bytes, else an XML declaration, else any meta element."""
    start = body[:PRESCAN_BYTES]
    if b"charset" in start.lower():
        codec = _meta_charset(start.decode("latin-1"))
        if codec is not None:
            return codec
    if start.startswith(b"<?xml"):
        match = _XML_ENCODING.match(start)
        if match:
            return _as_read(codec_of(match[1].decode("ascii")))
    if start.startswith((b"<\0?\0x\0", b"\0<\0?\0x")):
        return "utf-16-le" if start[0] else "utf-16-be"
    if markup and len(body) > PRESCAN_BYTES and _LATE_META.search(body):
        return _meta_charset(body.decode("latin-1"))
    return None


def _meta_charset(html: str) -> str | None:
    for _, name, written in tokens(html):
        if name != "meta" or "charset" not in written.lower():
            continue
        attributes = attributes_of(written)
        label = attributes.get("charset")
        if label is None and attributes.get("http-equiv", "").lower() == "content-type":
            label = charset_parameter(attributes.get("content"))
        codec = "cp1252" if label and label.strip().lower() == "x-user-defined" else codec_of(label)
        if codec is not None:
            return _as_read(codec)
    return None


def _as_read(codec: str | None) -> str | None:
    """Return UTF-8 for UTF-16, because a declaration that is readable as ASCII is not in UTF-16."""
    return "utf-8" if codec in ("utf-16-le", "utf-16-be") else codec


def _detected(body: bytes) -> str:
    """Return the most probable codec of a text that declares nothing, and is no UTF-8."""
    import chardet  # noqa: PLC0415 - takes 50 ms and 20 MB, and few pages need it

    first = _FOREIGN.search(body)
    start = max(0, first.start() - _BEFORE) if first else 0
    found = chardet.detect(
        _CLAIM.sub(b"", body[start : start + _EXAMINED_BYTES]),
        max_bytes=_EXAMINED_BYTES,
        include_encodings=_DETECTED,
        compat_names=False,
        no_match_encoding="windows-1252",
    )["encoding"]
    name = found or ""
    return next((codec for start, codec in _FAMILIES if name.startswith(start)), None) or codec_of(name) or "cp1252"


def _count_ascii(text: str) -> int:
    return len(text.encode("ascii", "ignore"))


# from bytes
def _decoded(body: bytes, codec: str) -> str:
    if codec == "iso2022_jp":
        return _from_iso_2022_jp(body)
    if codec == "gbk":  # the standard has one decoder for both
        codec = "gb18030"
    try:
        text = body.decode(codec)
    except UnicodeDecodeError:
        text = body.decode(codec, _BEYOND) if codec in _BEYOND_CODECS else to_unicode(body, codec)  # 0x80 is € in gb18030
    read_otherwise = _READ_OTHERWISE.get(codec)
    return text if read_otherwise is None else text.translate(read_otherwise)


def _from_iso_2022_jp(body: bytes) -> str:
    """Return the text of ISO-2022-JP: its double bytes are those of EUC-JP without their first bit."""
    first, *parts = _SHIFTS.split(body)
    texts = [first.decode("ascii", "replace")]
    for shift, part in zip(parts[0::2], parts[1::2], strict=True):
        if shift[:1] == b"$":
            texts.append(_decoded(part.translate(_WITH_FIRST_BIT), "euc_jp"))
        elif shift == b"(I":
            texts.append(part.translate(_WITH_FIRST_BIT).decode("cp932", "replace"))
        else:
            text = part.decode("ascii", "replace")
            texts.append(text.translate(_ROMAN) if shift == b"(J" else text)
    return "".join(texts)


@cache
def _rows_beyond() -> dict[bytes, str]:
    """Return the characters of jis0208 that Python's `euc_jp` lacks, by their bytes in it: row 13, and NEC's selection (89 to 92)."""
    found: dict[bytes, str] = {}
    for row in (13, *range(89, 93)):
        for cell in range(1, 95):
            pair = bytes((row + 0xA0, cell + 0xA0))
            character = _to_shift_jis(pair).decode("cp932", "ignore")
            if character:
                found[pair] = character
    return found


@cache
def _extensions_of_ibm() -> dict[str, bytes]:
    """Return the bytes of IBM's extensions in Shift_JIS, by character; Python encodes them as NEC's selection."""
    pairs = (bytes((lead, trail)) for lead in (0xFA, 0xFB, 0xFC) for trail in range(0x40, 0xFD))
    return {character: pair for pair in pairs if (character := pair.decode("cp932", "ignore")) and len(character) == 1}


def _to_shift_jis(pair: bytes) -> bytes:
    row, cell = pair[0] - 0xA1, pair[1] - 0xA1
    trail = cell + 0x5E * (row % 2)
    return bytes((row // 2 + (0x81 if row < 62 else 0xC1), trail + (0x40 if trail < 0x3F else 0x41)))


def _from_shift_jis(pair: bytes) -> bytes | None:
    """Return a pair of Shift_JIS in EUC-JP; None if that lacks the row."""
    row = 2 * (pair[0] - (0x81 if pair[0] < 0xA0 else 0xC1))
    trail = pair[1] - (0x40 if pair[1] < 0x7F else 0x41)
    row, cell = (row + 1, trail - 0x5E) if trail >= 0x5E else (row, trail)
    return bytes((row + 0xA1, cell + 0xA1)) if row < 94 else None


def _beyond(error: UnicodeError) -> tuple[str, int]:
    """Decode characters of the Encoding standard that Python's codec of that name lacks."""
    assert isinstance(error, UnicodeDecodeError)
    pair = error.object[error.start : error.start + 2]
    character = _rows_beyond().get(pair, "") if error.encoding == "euc_jp" else "€" if pair == b"\xa3\xe1" else ""
    return (character, error.start + 2) if character else ("\ufffd", error.end)


_BEYOND = "crawlspace_beyond"
codecs.register_error(_BEYOND, _beyond)
_BEYOND_CODECS = frozenset({"euc_jp", "big5hkscs"})
_READ_OTHERWISE = {
    "euc_jp": str.maketrans("〜‖−¢£¬", "～∥－￠￡￢"),
    "koi8-u": str.maketrans("╝╬", "ўЎ"),
}
"""By codec: the characters that it decodes differently from the standard."""
_ROMAN = str.maketrans("\\~", "¥‾")
_SHIFTS = re.compile(rb"\x1b(\([BJI]|\$[@B])")
_WITH_FIRST_BIT = bytes(byte | 0x80 if 0x20 < byte < 0x7F else byte for byte in range(256))
_WITHOUT_FIRST_BIT = bytes(byte & 0x7F for byte in range(256))

# to bytes
_NOT_ASCII = re.compile(r"[^\0-\x7f]+")
_DOUBLE_BYTES = re.compile(rb"(?:[\xa1-\xfe][\xa1-\xfe])+")
_KEPT_IN_QUERIES = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in "\"#<>'")


def _escaped(text: str, codec: str) -> str:
    return quote_from_bytes(encoded(text, codec, unknown="%26%23{}%3B"), safe=_KEPT_IN_QUERIES)


def _of_character(character: str, codec: str) -> bytes | None:
    """Return the bytes of a character, None if the encoding lacks it; for ISO-2022-JP those of EUC-JP."""
    if character.isascii():
        return character.encode()
    if codec in ("euc_jp", "iso2022_jp", "cp932"):
        return _of_japanese(character, codec)
    if codec == "gbk" and character == "€":
        return b"\x80"
    if codec == "koi8-u":
        character = character.translate(_KOI8_U)
    for name in _ENCODED_BY.get(codec, (codec,)):
        with_codec = character.encode(name, "ignore")
        if with_codec and (name != "big5hkscs" or with_codec[0] >= 0xA1):
            return with_codec
    return None


_ENCODED_BY = {"big5hkscs": ("big5hkscs", "cp950")}
_KOI8_U = str.maketrans("ўЎ╝╬", "╝╬\ufffd\ufffd")


def _of_japanese(character: str, codec: str) -> bytes | None:
    raw = _JAPANESE.get(character) or ("\uff0d" if character == "\u2212" else character).encode("cp932", "ignore")
    if codec == "cp932":
        return (_extensions_of_ibm()[character] if raw[:1] in (b"\xed", b"\xee") else raw) or None
    if len(raw) == 2:
        return _from_shift_jis(raw)
    if raw and raw[0] >= 0xA1:
        return b"\x8e" + raw if codec == "euc_jp" else _of_japanese(_WIDE[raw[0] - 0xA1], codec)
    return raw or None


_JAPANESE = {"\xa5": b"\\", "\u203e": b"~"}
_WIDE = "。「」、・ヲァィゥェォャュョッーアイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワン゛゜"


def _shifted(raw: bytes) -> bytes:
    """Return EUC-JP as ISO-2022-JP, beginning and ending in ASCII."""
    return _DOUBLE_BYTES.sub(lambda run: b"\x1b$B" + run[0].translate(_WITHOUT_FIRST_BIT) + b"\x1b(B", raw)
