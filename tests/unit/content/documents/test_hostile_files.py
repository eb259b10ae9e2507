"""Files that mean harm: each is read in proportion to its size, or is named for what it is."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from crawlspace.content.documents.contents import TextStatus
from crawlspace.content.documents.kinds import CSV, EPUB, PDF, RTF
from crawlspace.content.mime import DOCX, XLSX
from tests.growth import is_linear
from tests.quick import some
from tests.unit.content.documents.made_files import (
    OFFICE,
    P,
    docx,
    epub,
    open_document,
    para,
    pdf,
    pptx,
    rels,
    shape,
    w,
    xlsx,
    zipped,
)
from tests.unit.content.documents.test_readers import SPREADSHEET, STYLES, read, sheets

PLACES = re.compile(rb"PK\x01\x02.{42}", re.DOTALL)
"""The entries of the directory of a zip file up to the places of its members."""


def one_slide(times: int, body: str) -> bytes:
    """A presentation that shows its only slide several times."""
    ids = '<p:sldId id="1" r:id="rId1"/>' * times
    return pptx([body], {"ppt/presentation.xml": f'<p:presentation xmlns:p="{P}" xmlns:r="{OFFICE}">{ids}</p:presentation>'})


def one_page(times: int, body: str) -> bytes:
    spine = '<itemref idref="p0"/>' * times
    return epub(
        [body],
        {"OPS/book.opf": f'<package><manifest><item id="p0" href="text/p 0.xhtml"/></manifest><spine>{spine}</spine></package>'},
    )


def one_sheet(times: int, rows: str) -> bytes:
    names = '<sheet name="s" r:id="rId1"/>' * times
    return xlsx(
        [],
        sheets(
            rows, {"xl/workbook.xml": f'<workbook xmlns="{SPREADSHEET}" xmlns:r="{OFFICE}"><sheets>{names}</sheets></workbook>'}
        ),
    )


HOSTILE: list[tuple[str, Callable[[int], bytes], int, str, TextStatus | None]] = [
    # what there is much of, a file with so much of it, a size, how its text begins, and its status
    ("one attribute", lambda n: docx(f"<w:p a='{'b' * n}'>{para('x')}</w:p>"), 2_000_000, "x", None),
    ("an attribute of 40 MB", lambda n: docx(f"<w:p a='{'b' * n}'>{para('x')}</w:p>"), 40_000_000, "", TextStatus.OVER_LIMITS),
    ("attributes", lambda n: docx(f"<w:p {' '.join(f'a{one}=_b_' for one in range(n)).replace('_', chr(34))}>{para('x')}</w:p>"), 20_000, "x", None),
    ("an instruction", lambda n: docx(f"<?x {'y' * n}?>{para('x')}"), 2_000_000, "x", None),
    ("namespaces", lambda n: docx("".join(f"<x{one}:p xmlns:x{one}='u{one}'/>" for one in range(n)) + para("x")), 5_000, "x", None),
    ("sections of text", lambda n: docx(f"<w:p><w:t>{'<![CDATA[x]]>' * n}</w:t></w:p>"), 20_000, "xxx", None),
    ("text boxes", lambda n: docx(f"<w:p>{para('x').join(['<w:txbxContent>', '</w:txbxContent>']) * n}</w:p>"), 2_000, "x x", None),
    ("the same footnotes", lambda n: docx(para("a"), {"word/f.xml": w("<w:p/>" * n)}, [("footnotes", "f.xml")] * n), 500, "a", None),
    ("the same slide", lambda n: one_slide(n, shape("a") + "<p:x/>" * n), 1_000, "a", None),
    ("the same page", lambda n: one_page(n, "<p>a" + "<b></b>" * n), 500, "a", None),
    ("the same sheet", lambda n: one_sheet(n, "<row/>" * n + "<row><c><v>1</v></c></row>"), 500, "s 1 s", None),
    ("shared strings", lambda n: xlsx([], sheets("<row><c t='s'><v>1</v></c></row>", {"xl/sharedStrings.xml": f"<sst>{'<si><t>a</t></si>' * n}</sst>"})), 5_000, "Prices a", None),
    ("a format", lambda n: xlsx([], sheets("<row><c s='0'><v>1</v></c></row>", {"xl/styles.xml": STYLES.replace("[$-409]", "&quot;[" * n)})), 5_000, "Prices 1", None),
    ("repeated cells", lambda n: open_document("spreadsheet", f"<table:table-cell table:number-columns-repeated='{10**n}'><text:p>x</text:p></table:table-cell>"), 9, "x", None),
    ("one line", lambda n: b"a," * n, 50_000, "a a", None),
    ("quotation marks", lambda n: b'"' + b"a,\n" * n, 50_000, "a,a", None),
    ("NUL characters", lambda n: b"\0" * n, 100_000, "", TextStatus.NO_TEXT),
    ("RTF groups", lambda n: rb"{\rtf1 " + b"{" * n + b"x" + b"}" * n, 10_000, "x", None),
    ("RTF characters", lambda n: rb"{\rtf1 x" + rb"\'" * n + b"}", 20_000, "x", None),
    ("arrays", lambda n: pdf(["x"], info="/Title " + "[" * n), 20_000, "x", None),
    ("page trees", lambda n: pdf(["x"], kids="2 0 R " * n + "5 0 R"), 100, "x", None),
    ("saved states", lambda n: pdf(["x) Tj " + "q " * n + " ("]), 20_000, "x", None),
]  # fmt: skip


@pytest.mark.parametrize(("what", "made", "size", "text", "status"), some(HOSTILE, 6), ids=[row[0] for row in HOSTILE])
def test_a_hostile_file_is_read_in_proportion_to_its_size(
    what: str, made: Callable[[int], bytes], size: int, text: str, status: TextStatus | None
) -> None:
    contents = read(made(size), CSV if made(1)[:1] in b'a"\0' else None)
    assert (contents.status, contents.text[: len(text)]) == (status, text)
    if status is not TextStatus.OVER_LIMITS and size >= 1_000:
        bodies = {n: made(n) for n in (size, 4 * size)}
        assert is_linear(lambda n: read(bodies[n], CSV if bodies[n][:1] in b'a"\0' else None), size)


STRANGE: list[tuple[str, bytes, str | None, TextStatus | None, str]] = [
    ("an entity of another file", zipped({"word/document.xml": '<!DOCTYPE x SYSTEM "file:///etc/passwd" [<!ENTITY % p SYSTEM "http://127.0.0.1:1/"> %p;]>' + w("a")}), DOCX, TextStatus.OVER_LIMITS, ""),
    ("parts that lead to each other", docx(
        para("a"), {"word/f.xml": w(para("b")), "word/_rels/f.xml.rels": rels(("footnotes", "f.xml"), ("header", "document.xml"))}, [("footnotes", "f.xml")]
    ), DOCX, None, "a b"),
    ("UTF-16", zipped({"word/document.xml": ("<?xml version='1.0' encoding='utf-16'?>" + w(para("a"))).encode("utf-16")}), DOCX, None, "a"),
    ("UTF-7", zipped({"word/document.xml": "<?xml version='1.0' encoding='utf-7'?>" + w(para("a"))}), DOCX, TextStatus.DAMAGED, ""),
    ("an encoding that is none", zipped({"word/document.xml": "<?xml version='1.0' encoding='zlib_codec'?>" + w(para("a"))}), DOCX, TextStatus.DAMAGED, ""),
    ("metadata in an encoding that is none", docx(para("a"), {"docProps/core.xml": "<?xml version='1.0' encoding='zlib_codec'?><a/>"}), DOCX, None, "a"),
    ("a method of compression that is none", docx(para("a")).replace(b"\x14\0\0\0\x08\0", b"\x14\0\0\0\x63\0"), DOCX, TextStatus.DAMAGED, ""),
    ("members at the same place", PLACES.sub(lambda entry: entry[0][:-4] + bytes(4), docx(para("a"))), DOCX, TextStatus.DAMAGED, ""),
    ("a book somewhere else", epub(["a"], {"META-INF/container.xml": '<c><rootfile full-path="../../../etc/passwd"/></c>'}), EPUB, TextStatus.DAMAGED, ""),
    ("strings beyond those that there are", xlsx([["a"]], sheets("<row><c t='s'><v>4294967295</v></c><c><v>nan</v></c></row>")), XLSX, None, "Prices nan"),
    ("a font that is its own", pdf(["a"], font="/Subtype /Type0 /DescendantFonts [3 0 R] /Encoding 3 0 R /ToUnicode 3 0 R"), PDF, TextStatus.NO_TEXT, ""),
    ("an outline that is the catalogue", pdf(["a"], catalog="/Outlines 1 0 R /Names 1 0 R /Lang 1 0 R"), PDF, None, "a"),
    ("more pages than there are", pdf(["a"]).replace(b"/Count 1", b"/Count 2147483647"), PDF, None, "a"),
    ("fewer pages than none", pdf(["a"]).replace(b"/Count 1", b"/Count -1"), PDF, None, "a"),
    ("a form within itself", pdf(["a) Tj /F0 Do ("]).replace(b"/Font <<", b"/XObject << /F0 6 0 R >> /Font <<"), PDF, None, "a"),
    ("an RTF number beyond all", b"{\\rtf1 a\\bin99999999999 x\\uc99999999 x}", RTF, None, "a9 xx"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "body", "declared", "status", "text"), STRANGE, ids=[row[0] for row in STRANGE])
def test_a_strange_file_does_no_harm(what: str, body: bytes, declared: str | None, status: TextStatus | None, text: str) -> None:
    contents = read(body, declared)
    assert (contents.status, contents.text) == (status, text)


@pytest.mark.parametrize(
    "part", [rb"{\field{\*\fldinst{", rb"{\pict ", rb"{\footnote ", rb"{\info{\title ", rb"{\field{\*\fldinst HYPERLINK "]
)
def test_rtf_with_many_open_groups_is_read_in_proportion_to_its_size(part: bytes) -> None:
    assert is_linear(lambda size: read(rb"{\rtf1 " + part * size), 2_000)
