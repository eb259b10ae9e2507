"""What is read from a file of each format, in which order, and the result for files that cannot be read, or that mean harm."""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Callable, Mapping

import pytest

from crawlspace.content.documents.contents import FileContents, FileLimits, TextStatus
from crawlspace.content.documents.kinds import CSV, EPUB, ODP, ODS, ODT, PDF, RTF, XLS
from crawlspace.content.documents.readers import READERS, read_file
from crawlspace.content.mime import DOCX, PPTX, XLSX
from tests.growth import is_linear
from tests.quick import some
from tests.unit.content.documents.made_files import (
    OFFICE,
    A,
    P,
    broken,
    compound,
    docx,
    epub,
    old_cells,
    old_code_page,
    old_excel,
    old_text,
    old_time,
    open_document,
    para,
    pdf,
    pptx,
    rels,
    shape,
    slide,
    w,
    xlsx,
    zipped,
)

LIMITS = FileLimits()
MAY = 1_714_564_800
BOX = f"<w:r><mc:AlternateContent><mc:Choice><w:txbxContent>{para('in the box')}</w:txbxContent></mc:Choice>"
BOX += f"<mc:Fallback><w:txbxContent>{para('in the box')}</w:txbxContent></mc:Fallback></mc:AlternateContent></w:r>"
TABLE = f"<w:tbl><w:tr><w:tc>{para('one')}</w:tc><w:tc>{para('two')}</w:tc></w:tr></w:tbl>"
COMMENTS = "<comments xmlns='c'><commentList><comment ref='A1'><text><r><t>a</t></r><r><t> remark</t></r></text></comment></commentList></comments>"
MARGINS = '<headerFooter><oddHeader>&amp;C&amp;"Arial,Bold"&amp;12Top &amp;&amp; bottom</oddHeader><oddFooter>&amp;P of &amp;N</oddFooter></headerFooter>'
DRAWING = f'<d:wsDr xmlns:d="d" xmlns:a="{A}"><d:sp><a:p><a:r><a:t>a box</a:t></a:r></a:p></d:sp></d:wsDr>'
CHART = '<c:chartSpace xmlns:c="c"><c:multiLvlStrCache><c:lvl><c:pt><c:v>Sales</c:v></c:pt></c:lvl></c:multiLvlStrCache><c:numCache><c:pt><c:v>17</c:v></c:pt></c:numCache></c:chartSpace>'


def read(body: bytes, declared: str | None = None, limits: FileLimits = LIMITS) -> FileContents:
    return read_file(io.BytesIO(body), declared, limits)


SPREADSHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
STYLES = (
    f'<styleSheet xmlns="{SPREADSHEET}"><numFmts><numFmt numFmtId="200" formatCode="[$-409]d.m.yyyy;@"/><numFmt numFmtId="201"'
    ' formatCode="[h]:mm"/><numFmt numFmtId="202" formatCode="&quot;day&quot; 0.0"/></numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="200"/><xf numFmtId="201"/><xf numFmtId="202"/></cellXfs></styleSheet>'
)
STRINGS = f'<sst xmlns="{SPREADSHEET}"><si><t>plain</t></si><si><r><t>ri</t></r><r><t>ch</t></r><rPh><t>kana</t></rPh></si></sst>'
TYPES = (
    '<row><c t="s"><v>0</v></c><c t="s"><v>1</v></c><c t="s"><v>2</v></c><c t="s"><v>x</v></c><c s="9"><f>1+6</f><v> 7 </v></c>'
    '<c s="1"><v>-3</v></c><c><v>1.50</v></c><c s="1"><v>1e20</v></c><c t="b"><v>1</v></c><c t="b"><v>0</v></c><c t="e"><v>#N/A</v></c>'
    '<c t="str"><v>a b</v></c><c t="d"><v>2024-05-01T12:00:00</v></c><c s="1"><v>45413</v></c><c s="2"><v>45413.5</v></c>'
    '<c s="1"><v>0.25</v></c><c s="1"><v>59</v></c><c s="3"><v>1.5</v></c><c s="4"><v>0.5</v></c><c/></row>'
)
WORKBOOK_OF_1904 = f'<workbook xmlns="{SPREADSHEET}" xmlns:r="{OFFICE}"><workbookPr date1904="1"/><sheets><sheet name="Prices" sheetId="1" r:id="rId1"/></sheets></workbook>'


def sheets(rows: str, parts: Mapping[str, str] | None = None) -> dict[str, str]:
    """The parts of a workbook with these rows."""
    return {
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{SPREADSHEET}"><sheetData>{rows}</sheetData></worksheet>',
        **(parts or {}),
    }


TEXTS: list[tuple[str, bytes, str, str]] = [
    # what, file, its type, its text
    ("runs of a word are one word", docx(para("wo", "rd") + para("next")), DOCX, "word next"),
    ("tabs and breaks separate words", docx(para("a", "<w:r><w:tab/></w:r>", "b", "<w:r><w:br/></w:r>", "c")), DOCX, "a b c"),
    ("cells of tables", docx(TABLE), DOCX, "one two"),
    ("a text box within a word", docx(para("wo", BOX, "rd")), DOCX, "word in the box"),
    ("what is deleted, or moved away", docx(para("a", "<w:del><w:r><w:delText>b</w:delText></w:r></w:del>", "c")), DOCX, "ac"),
    (
        "notes, comments, headers and footers after the text",
        docx(
            para("Body", "<w:r><w:footnoteReference/></w:r>", "."),
            {f"word/{one}.xml": w(para(f"A {one}"), one) for one in ("footnotes", "endnotes", "comments", "hdr", "ftr")},
            [("footnotes", "footnotes.xml"), ("endnotes", "endnotes.xml"), ("comments", "comments.xml"), ("header", "hdr.xml"), ("footer", "ftr.xml")],
        ),
        DOCX,
        "Body. A footnotes A endnotes A comments A hdr A ftr",
    ),
    ("names of charts, without the numbers", docx(para("See"), {"word/c.xml": CHART}, [("chart", "c.xml")]), DOCX, "See Sales"),
    ("a part that is damaged is left out", docx(para("Body"), {"word/f.xml": "<w:"}, [("footnotes", "f.xml")]), DOCX, "Body"),
    ("slides as they are shown, with their notes", pptx(
        [shape("First", placeholder="title") + shape("text"), shape("Second")],
        {
            "ppt/slides/_rels/slide1.xml.rels": rels(("notesSlide", "../notes/n1.xml"), ("chart", "../c.xml")),
            "ppt/notes/n1.xml": slide(shape("a note"), "notes"),
            "ppt/c.xml": CHART,
            "ppt/slideMasters/slideMaster1.xml": slide(shape("Click to edit", placeholder="title") + shape("Our company"), "sldMaster"),
        },
    ), PPTX, "First text a note Sales Second Our company"),
    ("cells far from each other", xlsx([], sheets(
        '<row r="1"><c r="A1" t="inlineStr"><is><t>near</t></is></c></row>'
        '<row r="1048576"><c r="XFD1048576"><v>1.50</v></c></row>'
    )), XLSX, "Prices near 1.5"),
    ("cells of 1997", old_cells((0, 0, 1.5), (1, 1, 2.0)), XLS, "S 1.5 2 7 8"),
    ("cells of 1997 far from each other", old_cells((0, 0, 1.5), (9, 250, 3.0), (65_535, 60_000, 2.0)), XLS, "S 1.5 3 2 7 8"),
    ("cells of all types", xlsx([], sheets(TYPES, {"xl/sharedStrings.xml": STRINGS, "xl/styles.xml": STYLES})), XLSX,
        "Prices plain rich 7 -3 1.5 1e+20 TRUE FALSE a b 2024-05-01 12:00:00 2024-05-01 2024-05-01 12:00:00 06:00:00 1900-02-28 1 day, 12:00:00 0.5"),
    ("cells with dates since 1904", xlsx([], sheets(
        '<row><c s="1"><v>43951</v></c><c s="1"><v>0.25</v></c></row>', {"xl/styles.xml": STYLES, "xl/workbook.xml": WORKBOOK_OF_1904}
    )), XLSX, "Prices 2024-05-01 06:00:00"),
    ("a sheet that is damaged in the middle", xlsx([], sheets("<row><c t='str'><v>one</v></c><c t='str'><v>two")), XLSX, "Prices one"),
    ("a slide that is broken", broken(pptx([shape("First"), shape("Second")]), "ppt/slides/slide1.xml"), PPTX, "Second"),
    ("a page that is broken", broken(epub(["<p>One", "<p>two"]), "OPS/text/p 0.xhtml"), EPUB, "two"),
    ("a comment that is broken", broken(xlsx([["a"]], {"xl/comments1.xml": COMMENTS}), "xl/comments1.xml"), XLSX, "Prices a"),
    ("metadata that is broken", broken(docx(para("Body")), "docProps/core.xml"), DOCX, "Body"),
    ("cells, then comments and boxes", xlsx(
        [["Name", "Price"], ["Bolt", 1.5], ["Nut", 2.0]], {"xl/comments1.xml": COMMENTS, "xl/drawings/drawing1.xml": DRAWING}, after=MARGINS
    ), XLSX, "Prices Name Price Bolt 1.5 Nut 2 Top & bottom of a remark a box"),
    ("paragraphs, notes and comments", open_document(
        "text",
        "<office:text><text:h>Chapter</text:h><text:p>wo<text:span>rd</text:span><text:note><text:note-citation>1</text:note-citation>"
        "<text:note-body><text:p>a note</text:p></text:note-body></text:note>s<text:s/>and<text:tab/>more"
        "<office:annotation><dc:creator>Bob</dc:creator><text:p>a remark</text:p></office:annotation></text:p>"
        "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes></office:text>",
    ), ODT, "Chapter words and more a note a remark Footer text"),
    ("cells", open_document(
        "spreadsheet",
        "<table:table table:name='T'><table:table-row><table:table-cell><text:p>one</text:p></table:table-cell>"
        "<table:table-cell><text:p>two</text:p></table:table-cell></table:table-row></table:table>",
    ), ODS, "one two Footer text"),
    ("slides with notes, and objects", open_document(
        "presentation",
        "<draw:page><draw:frame><draw:text-box><text:p>A slide</text:p></draw:text-box></draw:frame>"
        "<presentation:notes><text:p>a note</text:p></presentation:notes></draw:page>",
        {"Object 1/content.xml": "<o><body><p>a chart</p></body></o>"},
    ), ODP, "A slide a note a chart Footer text"),
    ("pages of the spine", epub(["<h1>One</h1><p>a <b>b</b>c</p>", "<p>two</p>"]), EPUB, "One a bc two"),
    ("pages", pdf(["Hello", "World"]), PDF, "Hello World"),
    ("comments and fields", pdf(
        ["Text"], annotations="<< /Subtype /Text /Contents (a remark) /Rect [0 0 9 9] >> << /Subtype /Widget /V (filled in) /Rect [0 0 9 9] >>"
    ), PDF, "Text a remark filled in"),
    ("a title that is no text", pdf(["Text"], info="/Title <FEFFD800D800>"), PDF, "Text"),
    ("a PDF behind other bytes", b"\r\n" * 100 + pdf(["Hello"]), PDF, "Hello"),
    ("text with notes and a header", rb"{\rtf1\ansi{\header Top}{\fonttbl{\f0 Arial;}}Caf\'e9 {\b bo}ld\par{\footnote Note}\u8364? x}", RTF, "Café bold € x Top Note"),
    ("what separates most", b'Name;Price\nBolt;"1,5"\n', CSV, "Name Price Bolt 1,5"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "body", "kind", "text"), TEXTS, ids=[f"{row[2].rpartition('.')[2]} {row[0]}" for row in TEXTS])
def test_the_text_of_a_file(what: str, body: bytes, kind: str, text: str) -> None:
    contents = read(body, CSV if kind == CSV else None)
    assert (contents.kind, contents.status, contents.text) == (kind, None, text)


def test_each_reader_has_a_row() -> None:
    assert READERS.keys() == {row[2] for row in TEXTS}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # title, author, created, modified, language, pages
        (docx(para("x")), ("The title", "Ann Author", "2024-05-01T12:00:00Z", "2024-05-02T10:00:00Z", "en-GB", 0)),
        (pptx([shape("A deck", placeholder="ctrTitle")]), ("A deck", "", "", "", "", 1)),
        (open_document("text", "<text:p>x</text:p>"), ("The title", "Ann Author", "2024-05-01T12:00:00Z", "", "", 3)),
        (epub(["x"]), ("The title", "Ann Author", "", "", "en", 0)),
        (
            pdf(
                ["x"],
                catalog="/Lang (de-DE)",
                info="/Title (The title) /Author (Ann Author) /CreationDate (D:20240501140000+02'00') /ModDate (D:2024)",
            ),
            ("The title", "Ann Author", "2024-05-01T12:00:00Z", "2024-01-01T00:00:00Z", "de-DE", 1),
        ),
        (
            rb"{\rtf1{\info{\title The {\b}title}{\title The title}{\author Ann Author}{\creatim\yr2024\mo5\dy1\hr12\min0}}x}",
            ("The title", "Ann Author", "2024-05-01T12:00:00Z", "", "", 0),
        ),
    ],
    ids=["docx", "pptx", "odt", "epub", "pdf", "rtf"],
)
def test_the_metadata_of_a_file(body: bytes, expected: tuple[str, str, str, str, str, int]) -> None:
    contents = read(body)
    assert (
        contents.title,
        contents.author,
        contents.created,
        contents.modified,
        contents.language,
        contents.pages,
    ) == expected


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (
            {1: old_code_page(1252), 2: old_text("Preise für Köln".encode("cp1252")), 4: old_text("Jürgen".encode("cp1252")), 12: old_time(MAY), 13: old_time(MAY + 60)},
            ("Preise für Köln", "Jürgen", "2024-05-01T12:00:00Z", "2024-05-01T12:01:00Z"),
        ),
        ({1: old_code_page(-535), 2: old_text("価格".encode())}, ("価格", "", "", "")),
        ({1: old_code_page(1251), 8: old_text("Иван".encode("cp1251"))}, ("", "Иван", "", "")),
        ({1: old_code_page(4711), 2: old_text(b"Prices"), 4: old_text(b"")}, ("Prices", "", "", "")),
        ({2: struct.pack("<II", 30, 0x7FFFFFFF)}, ("", "", "", "")),
        ({}, ("", "", "", "")),
    ],
    ids=["Windows", "UTF-8", "who saved it last", "unknown code page", "longer than the file", "none"],
)  # fmt: skip
def test_the_metadata_of_an_excel_file_of_1997(properties: dict[int, bytes], expected: tuple[str, str, str, str]) -> None:
    contents = read(old_excel(properties))  # whose workbook has no sheet
    assert (contents.kind, contents.status) == (XLS, TextStatus.NO_TEXT)
    assert (contents.title, contents.author, contents.created, contents.modified) == expected


def test_a_heading_is_the_title_where_the_metadata_has_none() -> None:
    body = zipped({"word/document.xml": w(f"<w:body>{para('Report', style='Heading1')}{para('text')}</w:body>")})
    contents = read(body)
    assert (contents.title, contents.headings) == ("Report", ("Report",))


LINK = "http://www.example.com/a"


@pytest.mark.parametrize(
    "body",
    [
        docx(f'<w:hyperlink r:id="rId1">{para("x")}</w:hyperlink>', None, [("hyperlink", LINK)]),
        docx(
            para("x", f'<w:r><w:instrText>HYPERLINK "{LINK}"</w:instrText></w:r>', '<w:r><w:fldChar w:fldCharType="end"/></w:r>')
        ),
        pptx(
            [shape("x") + '<a:hlinkClick r:id="rId1"/>'],
            {"ppt/slides/_rels/slide1.xml.rels": rels(("hyperlink", LINK), ("hyperlink", "mailto:x"))},
        ),
        open_document("text", f'<text:p><text:a xlink:href="{LINK}">x</text:a><text:a xlink:href="#top">y</text:a></text:p>'),
        xlsx([["x"]], {"xl/worksheets/_rels/sheet1.xml.rels": rels(("hyperlink", LINK), ("hyperlink", "mailto:x"))}),
        epub([f'x <a href="{LINK}">y</a> <a href="file.txt">z</a>']),
        pdf(["x"], annotations=f"<< /Subtype /Link /Rect [0 0 99 99] /A << /S /URI /URI ({LINK}) >> >>"),
        (r'{\rtf1 {\field{\*\fldinst HYPERLINK "' + LINK + r'"}{\fldrslt x}}}').encode(),
    ],
    ids=["docx", "docx field", "pptx", "odt", "xlsx", "epub", "pdf", "rtf"],
)
def test_the_links_of_a_file_are_those_of_the_web(body: bytes) -> None:
    links = [href for href in read(body).hrefs if "book.invalid" not in href]
    assert links == [LINK]


DOCX_BODY = docx(para("Hello"))
BOMB = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><w:document xmlns:w="w"><w:t>&b;</w:t></w:document>'
CID = "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Odd /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>"
NO_UNICODE = f"/Subtype /Type0 /BaseFont /Odd /Encoding /Identity-H /DescendantFonts [{CID}]"

UNREADABLE: list[tuple[str, bytes, str | None, TextStatus]] = [
    ("an empty file", b"", PDF, TextStatus.DAMAGED),
    ("an empty table", b"", CSV, TextStatus.DAMAGED),
    ("a PDF that is none", b"no pdf", PDF, TextStatus.DAMAGED),
    ("a PDF cut short", pdf(["x"])[:60], PDF, TextStatus.DAMAGED),
    ("a scan", pdf([""]), PDF, TextStatus.NO_TEXT),
    ("a font without a Unicode map", pdf(["ABAB"], font=NO_UNICODE), PDF, TextStatus.NO_TEXT),
    ("a page tree with a cycle", pdf(["x"], kids="2 0 R"), PDF, TextStatus.DAMAGED),
    ("a Word file cut short", DOCX_BODY[: len(DOCX_BODY) // 2], DOCX, TextStatus.DAMAGED),
    ("a Word file without its body", zipped({"word/other.xml": "<x/>"}), DOCX, TextStatus.DAMAGED),
    ("a body that is no XML", docx("<w:p>"), DOCX, TextStatus.DAMAGED),
    ("a body with entities", zipped({"word/document.xml": BOMB}), DOCX, TextStatus.OVER_LIMITS),
    ("elements within each other", docx("<w:p>" * 5000 + "</w:p>" * 5000), DOCX, TextStatus.OVER_LIMITS),
    ("a broken body", broken(DOCX_BODY, "word/document.xml"), DOCX, TextStatus.DAMAGED),
    ("a broken sheet", broken(xlsx([["a"]]), "xl/worksheets/sheet1.xml"), XLSX, TextStatus.DAMAGED),
    ("a broken workbook", broken(xlsx([["a"]]), "xl/workbook.xml"), XLSX, TextStatus.DAMAGED),
    ("broken slides", broken(pptx([shape("First")]), "ppt/slides/slide1.xml"), PPTX, TextStatus.DAMAGED),
    ("broken content", broken(open_document("text", "<text:p>a</text:p>"), "content.xml"), ODT, TextStatus.DAMAGED),
    ("a broken presentation", broken(pptx([shape("First")]), "ppt/presentation.xml"), PPTX, TextStatus.DAMAGED),
    ("a broken book", broken(epub(["<p>One"]), "OPS/book.opf"), EPUB, TextStatus.DAMAGED),
    ("a broken page", broken(epub(["<p>One"]), "OPS/text/p 0.xhtml"), EPUB, TextStatus.DAMAGED),
    ("members that are encrypted", zipped({"word/document.xml": "x"}, encrypted=True), DOCX, TextStatus.ENCRYPTED),
    ("a Word file with a password", compound("EncryptionInfo", "EncryptedPackage"), DOCX, TextStatus.ENCRYPTED),
    ("an OpenDocument file with a password", open_document(
        "text", "", {"META-INF/manifest.xml": '<m:manifest xmlns:m="m"><m:encryption-data m:checksum="x"/></m:manifest>'}
    ), ODT, TextStatus.ENCRYPTED),
    ("a book with rights management", epub(["x"], {
        "META-INF/encryption.xml": '<e><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></e>'
    }), EPUB, TextStatus.ENCRYPTED),
    ("a Word file of 1997", compound("WordDocument"), "application/msword", TextStatus.NO_READER),
    ("an Excel file of 1997 without its sheets", compound("Workbook"), XLS, TextStatus.DAMAGED),
    ("an Excel file of 1997 whose directory is cut", compound("Workbook")[:1200], XLS, TextStatus.DAMAGED),
    ("a table of blanks", b" ; ;\n", CSV, TextStatus.NO_TEXT),
]  # fmt: skip


@pytest.mark.parametrize(("what", "body", "declared", "status"), UNREADABLE, ids=[row[0] for row in UNREADABLE])
def test_a_file_that_cannot_be_read_says_why(what: str, body: bytes, declared: str | None, status: TextStatus) -> None:
    contents = read(body, declared)
    assert (contents.status, contents.text, contents.hrefs) == (status, "", ())


LARGE = docx(para("word " * 100_000))


@pytest.mark.parametrize(
    ("what", "body", "limits", "status", "length", "is_cut"),
    [
        ("text", LARGE, FileLimits(max_text=1000), None, 999, True),
        ("text of a table", b"word\n" * 100_000, FileLimits(max_text=1000), None, 999, True),
        (
            "text boxes that wait",
            docx(para("x", BOX.replace("in the box", "word " * 1000))),
            FileLimits(max_text=1000),
            None,
            1,
            True,
        ),
        ("pages", pdf(["one"] * 20), FileLimits(max_pages=5), None, 19, True),
        ("slides", pptx([shape("one")] * 20), FileLimits(max_pages=5), None, 19, True),
        ("bytes that it inflates to", LARGE, FileLimits(max_inflated_bytes=100_000), TextStatus.OVER_LIMITS, 0, False),
        ("bytes of a sheet", xlsx([["word"] * 9_999]), FileLimits(max_inflated_bytes=100_000), TextStatus.OVER_LIMITS, 0, False),
        (
            "members",
            docx(para("x"), {f"{n}": "" for n in range(50)}),
            FileLimits(max_members=50),
            TextStatus.OVER_LIMITS,
            0,
            False,
        ),
    ],
)
def test_limits(what: str, body: bytes, limits: FileLimits, status: TextStatus | None, length: int, is_cut: bool) -> None:
    contents = read(body, CSV if body.startswith(b"word") else None, limits)
    assert (contents.status, len(contents.text), contents.text_left_out) == (status, length, is_cut)


# --- files that mean harm: read in time and memory proportional to their size, or refused ---------------------------


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
    ("an instruction", lambda n: docx(f"<?x {'y' * n}?>{para('x')}"), 500_000, "x", None),
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
    ("RTF fonts", lambda n: rb"{\rtf1{\fonttbl" + rb"{\f0 " * n + b"}" * n + b"}x}", 5_000, "x", None),
    ("RTF character sets", lambda n: rb"{\rtf1{\fonttbl\f0" + rb"\fcharset0" * n + b"}x}", 1_000, "x", None),
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
