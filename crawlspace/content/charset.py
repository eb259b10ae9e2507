"""Bytes to text, as browsers decide it: byte order mark, header, what the page declares, then what fits.

Names of encodings are the labels of the WHATWG Encoding standard and nothing else: Python would also know `utf-7`, `hex` and
`unicode_escape`, which let a page smuggle markup past whoever looked at its bytes. A label that is none is ignored.
"""

from __future__ import annotations

import re

import webencodings
from w3lib.encoding import to_unicode

from crawlspace.content.markup import attributes_of, tokens

PRESCAN_BYTES = 1024
"""How far into the page a declaration is looked for (HTML standard, 13.2.3.2)."""

_NOT_DECODED = frozenset({"replacement", "x-user-defined"})
"""Encodings of the standard that no page is read with."""
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16-be"), (b"\xff\xfe", "utf-16-le"))
_CHARSET = re.compile(r"""charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|([^\t\n\f\r ;"']+))""", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._:-]+)["']""")


def codec_of(label: str | None) -> str | None:
    """Return Python's codec for a label of the Encoding standard, or None for anything else."""
    encoding = webencodings.lookup(label.strip("\t\n\f\r \"'")) if label and label.isascii() else None
    if encoding is None or encoding.name in _NOT_DECODED:
        return None
    return "gb18030" if encoding.name == "gbk" else str(encoding.codec_info.name)  # the standard's decoder of both is one


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
    """Return UTF-8 for UTF-16: a declaration that could be read as ASCII is not in UTF-16."""
    return "utf-8" if codec in ("utf-16-le", "utf-16-be") else codec
