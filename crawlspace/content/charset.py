"""Bytes to text, as browsers decide it: byte order mark, header, what the page declares, then what fits.

Names of encodings are the labels of the WHATWG Encoding standard and nothing else: Python would also know `utf-7`, `hex` and
`unicode_escape`, which let a page smuggle markup past whoever looked at its bytes. A label that is none is passed over.
"""

from __future__ import annotations

import re

from w3lib.encoding import to_unicode

from crawlspace.content.markup import attributes_of, tokens

PRESCAN_BYTES = 1024
"""How far into the page a declaration is looked for (HTML standard, 13.2.3.2)."""

_LABELS = {  # Python's codec that comes nearest: the standard's labels of the encoding
    "utf-8": "utf-8 utf8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8",
    "cp866": "866 cp866 csibm866 ibm866",
    "iso8859-2": "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
    "iso8859-3": "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
    "iso8859-4": "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
    "iso8859-5": "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
    "iso8859-6": "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e iso-8859-6-i iso-ir-127"
    " iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987",
    "iso8859-7": "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7 iso_8859-7:1987"
    " sun_eu_greek",
    "iso8859-8": "csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8 iso_8859-8:1988"
    " visual csiso88598i iso-8859-8-i logical",
    "iso8859-10": "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "iso8859-13": "iso-8859-13 iso8859-13 iso885913",
    "iso8859-14": "iso-8859-14 iso8859-14 iso885914",
    "iso8859-15": "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9",
    "iso8859-16": "iso-8859-16",
    "koi8-r": "cskoi8r koi koi8 koi8-r koi8_r",
    "koi8-u": "koi8-ru koi8-u",
    "mac-roman": "csmacintosh mac macintosh x-mac-roman",
    "cp874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874",
    "cp1250": "cp1250 windows-1250 x-cp1250",
    "cp1251": "cp1251 windows-1251 x-cp1251",
    "cp1252": "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1"
    " latin1 us-ascii windows-1252 x-cp1252",
    "cp1253": "cp1253 windows-1253 x-cp1253",
    "cp1254": "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 windows-1254 x-cp1254",
    "cp1255": "cp1255 windows-1255 x-cp1255",
    "cp1256": "cp1256 windows-1256 x-cp1256",
    "cp1257": "cp1257 windows-1257 x-cp1257",
    "cp1258": "cp1258 windows-1258 x-cp1258",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "gb18030": "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk gb18030",
    "big5hkscs": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc_jp": "cseucpkdfmtjapanese euc-jp x-euc-jp",
    "iso2022_jp": "csiso2022jp iso-2022-jp",
    "cp932": "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis",
    "cp949": "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949",
    "utf-16-be": "unicodefffe utf-16be",
    "utf-16-le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
}
_CODECS = {label: codec for codec, labels in _LABELS.items() for label in labels.split()}
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))
_CHARSET = re.compile(r"""charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|([^\t\n\f\r ;"']+))""", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._:-]+)["']""")


def codec_of(label: str | None) -> str | None:
    """Return Python's codec for a label of the Encoding standard, or None for anything else."""
    return _CODECS.get(label.strip("\t\n\f\r \"'").lower()) if label else None


def charset_parameter(content_type: str | None) -> str | None:
    """Return the charset that a Content-Type header names, as written, or None."""
    match = _CHARSET.search(content_type or "")
    return (match[1] or match[2] or match[3]) if match else None


def decode(body: bytes, header_charset: str | None) -> tuple[str, str]:
    """Return the text and the name of the codec it was read with. Never raises: what does not fit becomes U+FFFD."""
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace"), codec
    declared = codec_of(header_charset) or _declared(body)
    if declared is not None:
        return _decoded(body, declared), declared
    try:
        return body.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        # Cut inside its last character; one lone byte after plain ASCII is rather an é of windows-1252.
        if error.reason == "unexpected end of data" and not body[: error.start].isascii():
            return body.decode("utf-8", "replace"), "utf-8"
    return body.decode("cp1252", "replace"), "cp1252"


def _decoded(body: bytes, codec: str) -> str:
    try:
        return body.decode(codec)
    except UnicodeDecodeError:
        return to_unicode(body, codec)  # with the standard's reading of 0x80 in gb18030


def _declared(body: bytes) -> str | None:
    """The encoding the page declares in its first bytes: a meta element, else an XML declaration."""
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
    return None


def _meta_charset(start: str) -> str | None:
    for _, name, written in tokens(start):
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
    """A declaration that could be read as ASCII cannot be in UTF-16, whatever it says."""
    return "utf-8" if codec in ("utf-16-le", "utf-16-be") else codec
