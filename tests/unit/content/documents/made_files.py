"""Small files of each format, made of what a test names."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence

PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
P = "http://schemas.openxmlformats.org/presentationml/2006/main"
CORE = (
    '<cp:coreProperties xmlns:cp="c" xmlns:dc="d" xmlns:dcterms="t"><dc:title>The title</dc:title><dc:creator>Ann Author</dc:creator>'
    "<dcterms:created>2024-05-01T12:00:00Z</dcterms:created><dcterms:modified>2024-05-02T12:00:00+02:00</dcterms:modified>"
    "<dc:language>en-GB</dc:language></cp:coreProperties>"
)


def zipped(parts: Mapping[str, str | bytes], *, encrypted: bool = False) -> bytes:
    """A zip file; `encrypted` only says so."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    body = made.getvalue()
    return (
        body.replace(b"PK\3\4\x14\0\0", b"PK\3\4\x14\0\1").replace(b"PK\1\2\x14\3\x14\0\0", b"PK\1\2\x14\3\x14\0\1")
        if encrypted
        else body
    )


def broken(body: bytes, part: str) -> bytes:
    """A zip file one of whose parts does not inflate any more: its last bytes are others."""
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        member = archive.getinfo(part)
    name, extra = struct.unpack_from("<HH", body, member.header_offset + 26)
    end = member.header_offset + 30 + name + extra + member.compress_size
    size = min(member.compress_size, 12)
    return body[: end - size] + b"\xff" * size + body[end:]


def rels(*targets: tuple[str, str]) -> str:
    """The relationships rId1, rId2 … of a part: kind and target; one that is a URL is external."""
    lines = "".join(
        f'<Relationship Id="rId{number}" Type="{OFFICE}/{kind}" Target="{target}"'
        + (' TargetMode="External"/>' if "://" in target or ":x" in target else "/>")
        for number, (kind, target) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="{PACKAGE}">{lines}</Relationships>'


def w(body: str, element: str = "document") -> str:
    """A part of a Word file."""
    return f'<w:{element} xmlns:w="{W}" xmlns:a="{A}" xmlns:r="{OFFICE}" xmlns:mc="mc">{body}</w:{element}>'


def para(*runs: str, style: str = "") -> str:
    named = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{named}{''.join(run if run.startswith('<') else f'<w:r><w:t>{run}</w:t></w:r>' for run in runs)}</w:p>"


def docx(body: str, parts: Mapping[str, str] | None = None, related: Sequence[tuple[str, str]] = ()) -> bytes:
    """A Word file with a body, other parts and the relationships of its body."""
    return zipped(
        {
            "_rels/.rels": rels(("officeDocument", "word/document.xml"), ("metadata/core-properties", "docProps/core.xml")),
            "docProps/core.xml": CORE,
            "word/document.xml": w(f"<w:body>{body}</w:body>"),
            "word/_rels/document.xml.rels": rels(*related),
            **(parts or {}),
        }
    )


def shape(*paragraphs: str, placeholder: str = "") -> str:
    named = f'<p:nvSpPr><p:nvPr><p:ph type="{placeholder}"/></p:nvPr></p:nvSpPr>' if placeholder else ""
    text = "".join(f"<a:p><a:r><a:t>{one}</a:t></a:r></a:p>" for one in paragraphs)
    return f"<p:sp>{named}<p:txBody>{text}</p:txBody></p:sp>"


def slide(shapes: str, element: str = "sld") -> str:
    return f'<p:{element} xmlns:p="{P}" xmlns:a="{A}" xmlns:r="{OFFICE}"><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:{element}>'


def pptx(slides: Sequence[str], parts: Mapping[str, str] | None = None) -> bytes:
    """A presentation. Slide n is ppt/slides/slide{n}.xml; they are shown in reverse order of their ids."""
    ids = "".join(f'<p:sldId id="{256 - number}" r:id="rId{number}"/>' for number in range(1, len(slides) + 1))
    return zipped(
        {
            "_rels/.rels": rels(("officeDocument", "ppt/presentation.xml")),
            "ppt/presentation.xml": f'<p:presentation xmlns:p="{P}" xmlns:r="{OFFICE}"><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": rels(*(("slide", f"slides/slide{n}.xml") for n in range(1, len(slides) + 1))),
            **{f"ppt/slides/slide{number}.xml": slide(shapes) for number, shapes in enumerate(slides, 1)},
            **(parts or {}),
        }
    )


def xlsx(rows: Sequence[Sequence[str | float]], parts: Mapping[str, str] | None = None, *, after: str = "") -> bytes:
    """A workbook with one sheet. `after`: what stands behind its cells."""
    cells = "".join(
        "<row>"
        + "".join(f'<c t="inlineStr"><is><t>{c}</t></is></c>' if isinstance(c, str) else f"<c><v>{c}</v></c>" for c in row)
        + "</row>"
        for row in rows
    )
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return zipped(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
            "_rels/.rels": rels(("officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{OFFICE}"><sheets><sheet name="Prices" sheetId="1" r:id="rId1"/>'
            "</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": rels(("worksheet", "worksheets/sheet1.xml")),
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData>{after}</worksheet>',
            **(parts or {}),
        }
    )


def open_document(kind: str, body: str, parts: Mapping[str, str] | None = None) -> bytes:
    """An OpenDocument file of a kind, such as `text`."""
    names = 'xmlns:office="o" xmlns:text="t" xmlns:table="tb" xmlns:draw="d" xmlns:xlink="x" xmlns:dc="dc" xmlns:presentation="p" xmlns:style="s"'
    return zipped(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "meta.xml": '<office:document-meta xmlns:office="o" xmlns:dc="dc" xmlns:meta="m"><office:meta><dc:title>The title</dc:title>'
            "<meta:initial-creator>Ann Author</meta:initial-creator><meta:creation-date>2024-05-01T12:00:00</meta:creation-date>"
            '<meta:document-statistic meta:page-count="3"/></office:meta></office:document-meta>',
            "content.xml": f"<office:document-content {names}><office:body>{body}</office:body></office:document-content>",
            "styles.xml": f"<office:document-styles {names}><office:master-styles><style:master-page><style:footer><text:p>Footer text"
            "</text:p></style:footer></style:master-page></office:master-styles></office:document-styles>",
            **(parts or {}),
        }
    )


def epub(pages: Sequence[str], parts: Mapping[str, str] | None = None) -> bytes:
    """A book of pages."""
    items = "".join(f'<item id="p{n}" href="text/p%20{n}.xhtml"/>' for n in range(len(pages)))
    spine = "".join(f'<itemref idref="p{n}"/>' for n in range(len(pages)))
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>',
            "OPS/book.opf": '<package xmlns:dc="dc"><metadata><dc:title>The title</dc:title><dc:creator>Ann Author</dc:creator>'
            f"<dc:language>en</dc:language></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>",
            **{f"OPS/text/p {n}.xhtml": f"<html><body>{page}</body></html>" for n, page in enumerate(pages)},
            **(parts or {}),
        }
    )


def pdf(
    pages: Sequence[str],
    *,
    info: str = "",
    kids: str = "",
    catalog: str = "",
    annotations: str = "",
    font: str = "/BaseFont /Helvetica /Subtype /Type1",
) -> bytes:
    """A PDF with a line of text on each page. `kids`: those of the page tree, in place of the pages; `catalog`: more of its entries."""
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R {catalog} >>",
        f"<< /Type /Pages /Count {len(pages)} /Kids [{kids or ' '.join(f'{5 + 2 * n} 0 R' for n in range(len(pages)))}] >>",
        f"<< /Type /Font {font} >>",
        f"<< {info} >>",
    ]
    for number, text in enumerate(pages):
        content = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources << /Font << /F1 3 0 R >> >> /Contents {6 + 2 * number} 0 R"
            f" /Annots [{annotations}] >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    made, places = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, 1):
        places.append(len(made))
        made += f"{number} 0 obj\n{content}\nendobj\n".encode("latin-1")
    start = len(made)
    made += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    made += b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(made + f"trailer << /Root 1 0 R /Info 4 0 R /Size {len(objects) + 1} >>\nstartxref\n{start}\n%%EOF\n".encode())


_END, _FREE = 0xFFFFFFFE, 0xFFFFFFFF


def compound(*streams: str) -> bytes:
    """The header and directory of a compound file with these streams, which are empty."""
    header = bytearray(512)
    header[:8] = bytes.fromhex("d0cf11e0a1b11ae1")
    struct.pack_into("<HH", header, 28, 0xFFFE, 9)
    struct.pack_into("<I", header, 48, 1)
    struct.pack_into("<109I", header, 76, 0, *[0xFFFFFFFF] * 108)
    table = struct.pack("<128I", 0xFFFFFFFD, *[at + 1 for at in range(1, 64)], *[0xFFFFFFFE] * 64)
    directory = bytearray()
    for name in ("Root Entry", *streams):
        written = name.encode("utf-16-le") + b"\0\0"
        directory += written.ljust(64, b"\0") + struct.pack("<H", len(written)) + bytes(62)
    return bytes(header) + table + bytes(directory).ljust(64 * 512, b"\0")


def old_excel(properties: Mapping[int, bytes]) -> bytes:
    """A compound file with an empty workbook and these summary properties, each with its type: FAT, directory, and a stream of 4,096 bytes."""
    header = bytearray(512)
    header[:8] = bytes.fromhex("d0cf11e0a1b11ae1")
    struct.pack_into("<HHHHH", header, 24, 0x3E, 3, 0xFFFE, 9, 6)
    struct.pack_into("<IIIIIIIII", header, 44, 1, 1, 0, 4096, _END, 0, _END, 0, 0)
    struct.pack_into("<108I", header, 80, *[_FREE] * 108)
    table = struct.pack("<128I", 0xFFFFFFFD, _END, *range(3, 10), _END, *[_FREE] * 118)
    directory = _entry("Root Entry", 5, child=1) + _entry("Workbook", 2, right=2) + _entry("\5SummaryInformation", 2, 2, 4096)
    offset, offsets, values = 8 + 8 * len(properties), b"", b""
    for number, value in properties.items():
        offsets += struct.pack("<II", number, offset + len(values))
        values += value + bytes(-len(value) % 4)
    section = struct.pack("<II", offset + len(values), len(properties)) + offsets + values
    start = (
        struct.pack("<HHI16xI", 0xFFFE, 0, 0x20006, 1) + bytes.fromhex("e0859ff2f94f6810ab9108002b27b3d9") + struct.pack("<I", 48)
    )
    return bytes(header) + table + directory.ljust(512, b"\0") + (start + section).ljust(4096, b"\0")


def old_cells(*cells: tuple[int, int, float]) -> bytes:
    """An Excel file of 1997 with a sheet S of numbers, each with its row and column; the last two are a record of a row (MS-XLS, 2.4)."""

    def record(kind: int, data: bytes = b"") -> bytes:
        return struct.pack("<HH", kind, len(data)) + data

    def begin(kind: int) -> bytes:
        return record(0x809, struct.pack("<HHHHII", 0x600, kind, 0, 0, 0, 0))

    def workbook(sheet_at: int) -> bytes:
        return (
            begin(5)
            + record(0x42, struct.pack("<H", 1200))
            + record(0x85, struct.pack("<IBBBB", sheet_at, 0, 0, 1, 0) + b"S")
            + record(0x0A)
        )

    stream = workbook(len(workbook(0))) + begin(0x10)
    stream += b"".join(record(0x203, struct.pack("<HHHd", row, column, 0, value)) for row, column, value in cells)
    row, column, _ = cells[-1]
    rks = b"".join(struct.pack("<HI", 0, number << 2 | 2) for number in (7, 8))
    stream += record(0xBD, struct.pack("<HH", row, column + 1) + rks + struct.pack("<H", column + 2)) + record(0x0A)
    header = bytearray(512)
    header[:8] = bytes.fromhex("d0cf11e0a1b11ae1")
    struct.pack_into("<HHHHH", header, 24, 0x3E, 3, 0xFFFE, 9, 6)
    struct.pack_into("<IIIIIIIII", header, 44, 1, 1, 0, 4096, _END, 0, _END, 0, 0)
    struct.pack_into("<108I", header, 80, *[_FREE] * 108)
    table = struct.pack("<128I", 0xFFFFFFFD, _END, *range(3, 10), _END, *[_FREE] * 118)
    directory = _entry("Root Entry", 5, child=1) + _entry("Workbook", 2, 2, 4096)
    return bytes(header) + table + directory.ljust(512, b"\0") + stream.ljust(4096, b"\0")


def _entry(name: str, kind: int, start: int = _END, size: int = 0, *, right: int = _FREE, child: int = _FREE) -> bytes:
    written = name.encode("utf-16-le") + b"\0\0"
    return struct.pack("<64sHBBIII36xIQ", written, len(written), kind, 1, _FREE, right, child, start, size)


def old_text(text: bytes) -> bytes:
    """A property of the type VT_LPSTR."""
    return struct.pack("<II", 30, len(text) + 1) + text + b"\0"


def old_code_page(number: int) -> bytes:
    return struct.pack("<Ih", 2, number)


def old_time(seconds_since_1970: int) -> bytes:
    """A property of the type VT_FILETIME."""
    return struct.pack("<IQ", 64, (seconds_since_1970 + 11_644_473_600) * 10_000_000)
