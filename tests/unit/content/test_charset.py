"""With which character set a body is read, and whether its header or its bytes decide its type."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.content.charset import PRESCAN_BYTES, charset_parameter, codec_of, decode, encoded, in_encoding
from crawlspace.content.mime import sniff
from tests.growth import is_linear
from tests.quick import some

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
    (b"\x80", "gbk", "gbk", "€"),
    (b"\x81\x30\x81\x30", "gb2312", "gbk", "\x80"),
    # then the page's first 1024 bytes
    (b'<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=windows-1251">\xe9', None, "cp1251", None),
    (b'<meta name="x" content="text/html; charset=windows-1251">\xc3\xa9', None, "utf-8", None),
    (b"<!-- <meta charset=koi8-r> -->\xe9", None, "cp1252", None),
    (b"<meta charset=utf-16>\xc3\xa9", None, "utf-8", None),
    (b"<meta charset='x-user-defined'>", None, "cp1252", None),
    (b"<meta charset=bad><meta charset=koi8-r>", None, "koi8-r", None),
    (b" " * 1024 + b"<meta charset=koi8-r>\xe9", None, "cp1252", None),  # as plain text
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


LATE = b"<!--" + b"-" * PRESCAN_BYTES + b"-->"
DECLARED_LATE = (
    (LATE + b"<meta charset=koi8-r>\xc0", None, "koi8-r"),
    (LATE + b"<META HTTP-EQUIV=content-type CONTENT='text/html; charset=windows-1251'>\xc0", None, "cp1251"),
    (LATE + b"<meta charset=bad><meta charset=koi8-r>\xc0", None, "koi8-r"),
    (LATE + b"<title>x</title><body><p><meta charset=koi8-r>" + "ж".encode(), None, "koi8-r"),
    (LATE + b"<meta charset=utf-16>" + "ж".encode(), None, "utf-8"),
    (LATE + b"<meta charset=koi8-r>\xc0", "windows-1251", "cp1251"),
    (b"<meta charset=windows-1251>" + LATE + b"<meta charset=koi8-r>\xc0", None, "cp1251"),
    (b"<?xml version='1.0' encoding='iso-8859-5'?>" + LATE + b"<meta charset=koi8-r>\xc0", None, "iso8859-5"),
    (LATE + b"<!-- <meta charset=koi8-r> --><script>'<meta charset=koi8-r>'</script>" + "ж".encode(), None, "utf-8"),
    (LATE + b"<script charset=koi8-r src=x></script>" + "ж".encode(), None, "utf-8"),
)


@pytest.mark.parametrize(("body", "header", "codec"), DECLARED_LATE)
def test_a_declaration_counts_wherever_it_is(body: bytes, header: str | None, codec: str) -> None:
    assert decode(body, header, markup=True)[1] == codec


UNDECLARED = (
    ("cp1251", "Компания основана в 1998 году и занимается поставками оборудования для заводов"),
    ("koi8-r", "Компания основана в 1998 году и занимается поставками оборудования для заводов"),
    ("cp866", "Компания основана в 1998 году и занимается поставками оборудования для заводов"),
    ("cp932", "会社案内と採用情報はこちらのページをご覧ください。ｶﾀｶﾅも①も読めます"),
    ("euc_jp", "会社案内と採用情報はこちらのページをご覧ください"),
    ("iso2022_jp", "会社案内と採用情報はこちらのページをご覧ください"),
    ("gbk", "公司简介和招聘信息请查看此页面，欢迎来电咨询"),
    ("big5hkscs", "公司簡介與徵才資訊請參閱此頁面，歡迎來電洽詢"),
    ("cp949", "회사 소개와 채용 정보는 이 페이지에서 확인하실 수 있습니다"),
    ("cp1250", "Společnost byla založena v roce 1998 a dodává zařízení pro továrny, přihlášky přijímáme průběžně"),
    ("cp1252", "Die Geschäftsstelle ist während der Öffnungszeiten geöffnet – schöne Grüße aus München"),
    ("cp1252", "La société a été créée en 1998 – l’équipe répond à vos questions"),
    ("cp1253", "Η εταιρεία ιδρύθηκε το 1998 και προμηθεύει εξοπλισμό για εργοστάσια"),
    ("cp1254", "Şirket 1998 yılında kurulmuştur ve fabrikalar için ekipman sağlamaktadır, başvurular için tıklayınız"),
    ("cp1255", "החברה נוסדה בשנת 1998 ומספקת ציוד למפעלים ברחבי הארץ"),
    ("cp1256", "تأسست الشركة في عام 1998 وهي توفر المعدات للمصانع في جميع أنحاء البلاد"),
    ("cp874", "บริษัทก่อตั้งขึ้นในปี 1998 และจัดหาอุปกรณ์สำหรับโรงงาน"),
    ("utf-8", "Die Geschäftsstelle ist während der Öffnungszeiten geöffnet"),
    ("utf-8", "Компания основана в 1998 году"),
    ("utf-8", "会社案内と採用情報"),
)
SHELL = "<html><head><title>{}</title><script src=/x.js></script></head><body><a href=/>Home</a><p class=x>{}</p></body></html>"


@pytest.mark.parametrize("before", ["", " " * 300_000])
@pytest.mark.parametrize(("codec", "text"), UNDECLARED)
def test_a_page_that_declares_nothing(codec: str, text: str, before: str) -> None:
    page = before + SHELL.format(text[:20], text)
    assert decode(encoded(page, codec), None, markup=True)[0] == page


WESTERN = ("caf\xe9", "\xa9 2026", "it\x92s", "\x80 100 for all", "20\xb0C", "\xa7 5", "Home \xbb News", "\xa0\xa0x")


@pytest.mark.parametrize("piece", WESTERN)
def test_a_lone_letter_is_one_of_windows_1252(piece: str) -> None:
    assert decode(SHELL.format("Welcome", piece).encode("latin-1"), None, markup=True)[1] == "cp1252"


BROKEN = (
    ("Жизнь прожить — не поле перейти".encode() * 9 + b"\xff", "utf-8"),
    ("Жизнь прожить ".encode() * 9 + b"<p>caf\xe9</p>" + "не поле".encode(), "utf-8"),
    (
        "é".encode() + "La société a été créée en 1998 par des ingénieurs, et les bénéfices ont été réinvestis".encode("cp1252"),
        "cp1252",
    ),
)


@pytest.mark.parametrize(("body", "codec"), BROKEN)
def test_utf8_with_a_mistake(body: bytes, codec: str) -> None:
    assert decode(body, None, markup=True)[1] == codec


OF_THE_STANDARD = (
    ("euc-jp", b"\xad\xa1\xad\xea\xad\xe2\xad\xb7", "①㈱№Ⅲ"),
    ("euc-jp", b"\xa1\xc1\xa1\xdd\xa1\xf1\xfc\xf1\x8e\xb1\x8f\xb0\xa1\xa4\xa2", "～－￠ⅰｱ丂あ"),
    ("euc-jp", b"\xad\xff\xa4\xa2\xad", "\ufffd\ufffdあ\ufffd"),
    ("iso-2022-jp", b'a\x1b$B-!-j\x1b(B b\x1b$@$"\x1b(Jc\\~\x1b(I1\x1b(B\n', "a①㈱ bあc¥‾ｱ\n"),
    ("iso-2022-jp", b"\x1b$B$", "\ufffd"),
    ("shift_jis", b"\x87\x40\x87\x8a\x87\x82\xfb\xfc\xed\xe2\xb1", "①㈱№髙涬ｱ"),
    ("windows-31j", b"\x87\x40", "①"),
    ("gb2312", b"\xa2\xd9\x80\x81\x40", "①€丂"),
    ("big5", b"\xa3\xe1\xa4\xa4\x87\x40", "€中䏰"),
    ("euc-kr", b"\x8c\x63\xb0\xa1", "똠가"),
    ("ks_c_5601-1987", b"\x8c\x63", "똠"),
    ("iso-8859-1", b"\x80", "€"),
    ("us-ascii", b"\x93", "“"),
    ("iso-8859-9", b"\x80\xfe", "€ş"),
    ("tis-620", b"\x80\xa1", "€ก"),
    ("koi8-u", b"\xae\xa4", "ўє"),
    ("iso-8859-8-i", b"\xe0", "א"),
)


@pytest.mark.parametrize(("label", "body", "text"), OF_THE_STANDARD)
def test_decoders_of_the_standard(label: str, body: bytes, text: str) -> None:
    assert decode(body, label)[0] == text


QUERIES = (
    ("/s?q=é&r=ж#é", "windows-1252", "/s?q=%E9&r=%26%231078%3B#é"),
    ("/é/?q=é", "windows-1252", "/é/?q=%E9"),
    ("/é#?é", "windows-1252", "/é#?é"),
    ("?q=%E9é+ \"<>'[]{}|\\", "windows-1252", "?q=%E9%E9+ \"<>'[]{}|\\"),
    ("?q=поиск", "windows-1251", "?q=%EF%EE%E8%F1%EA"),
    ("?q=поиск", "koi8-r", "?q=%D0%CF%C9%D3%CB"),
    ("?q=日本語&é", "shift_jis", "?q=%93%FA%96{%8C%EA&%26%23233%3B"),
    ("?q=①髙ｱ", "shift_jis", "?q=%87@%FB%FC%B1"),
    ("?q=①髙ｱ\u2212", "euc-jp", "?q=%AD%A1%FC%E2%8E%B1%A1%DD"),
    ("?q=日①aｱ", "iso-2022-jp", "?q=%1B$BF|-!%1B(Ba%1B$B%%22%1B(B"),
    ("?q=中文€", "gb2312", "?q=%D6%D0%CE%C4%80"),
    ("?q=€𠀀", "gb18030", "?q=%A2%E3%952%826"),
    ("?q=中文あ", "big5", "?q=%A4%A4%A4%E5%C6%E8"),
    ("?q=똠", "euc-kr", "?q=%8Cc"),
    ("?q=ў", "koi8-u", "?q=%AE"),
    ("?q=é", "utf-8", "?q=é"),
    ("?q=é", "utf-16le", "?q=é"),
)


@pytest.mark.parametrize(("written", "label", "sent"), QUERIES)
def test_the_letters_of_a_query_are_sent_in_the_encoding_of_the_page(written: str, label: str, sent: str) -> None:
    assert in_encoding(written, str(codec_of(label))) == sent


@pytest.mark.parametrize(
    "piece",
    some([b"<meta", b"<meta charset", b"<meta charset=x>", b"\xa4", b"\x1b$B", b"\xad\xa1", b"\xe9<", b"\x1b$B\x1b(B"], 2),
)
@pytest.mark.parametrize("label", [None, "euc-jp", "iso-2022-jp"])
def test_any_piece_takes_no_more_than_its_length(piece: bytes, label: str | None) -> None:
    assert is_linear(lambda size: decode(piece * (size // len(piece)), label, markup=True), 250_000)


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
    decode(body, header, markup=True)


@pytest.mark.full
@given(
    st.text(max_size=20),
    st.sampled_from(
        ["windows-1252", "shift_jis", "iso-2022-jp", "big5", "euc-jp", "gbk", "gb18030", "euc-kr", "koi8-u", "utf-8"]
    ),
)
def test_any_text_is_encoded(text: str, label: str) -> None:
    assert in_encoding(f"?{text.partition('#')[0]}", str(codec_of(label))).isascii() or label == "utf-8"
    encoded(text, str(codec_of(label)))


# --- the type of a body ---------------------------------------------------------------------------------------------


HTML = b"<!DOCTYPE html><title>x</title>"
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"


def entry(name: bytes, content: bytes) -> bytes:
    size = len(content).to_bytes(4, "little")
    header = b"PK\x03\x04\x14\0\0\0\0\0" + b"\0" * 8 + size + size + len(name).to_bytes(2, "little") + b"\0\0"
    return header + name + content + b"PK\x03\x04"


TYPES = (
    # the header decides
    ("text/html; charset=utf-8", HTML, "text/html"),
    ("Text/HTML", b"plain words", "text/html"),
    ("application/pdf", HTML, "application/pdf"),
    ("application/xhtml+xml", HTML, "application/xhtml+xml"),
    ("image/png", HTML, "image/png"),
    ("text/plain", HTML, "text/plain"),
    ("text/plain", b"", "text/plain"),
    # it is missing or generic
    (None, HTML, "text/html"),
    ("", b"words", "text/plain"),
    ("nonsense", PDF, "application/pdf"),
    ("application/octet-stream", PDF, "application/pdf"),
    ("unknown/unknown", PNG, "image/png"),
    *((kind, PDF, "application/pdf") for kind in ("text/pdf", "application/force-download", "application/x-download")),
    *((kind, HTML, "text/html") for kind in ("text/pdf", "application/download", "application/x-octet-stream")),
    ("application/force-download", b"\0\1\2", "application/octet-stream"),
    ("*/*", b"\0\1\2", "application/octet-stream"),
    ("application/octet-stream", b"", "text/plain"),
    (None, b" ", "text/plain"),
    (None, b"\n" * 2_000, "text/plain"),
    (None, b"\n \t\r\f" * 3 + b"words", "text/plain"),
    (None, b"  \n<br>", "text/html"),
    (None, b"  \n<br", "text/plain"),
    (None, b"  \n" + HTML, "text/html"),
    (None, b"\n<?xml", "text/xml"),
    (None, b" " * 20 + b"\0", "application/octet-stream"),
    (None, b"\n" + PNG, "application/octet-stream"),
    # it says text and the bytes say binary
    ("text/plain", PDF, "application/pdf"),
    ("text/plain; charset=ISO-8859-1", PNG, "image/png"),
    ("text/html", PNG, "image/png"),
    ("text/plain", b"\0\1\2", "application/octet-stream"),
    ("text/html", b"<p>\x01 stray</p>", "text/html"),
    ("text/html", HTML + b"\0", "text/html"),
    ("text/plain; charset=utf-16", "words".encode("utf-16-le"), "text/plain"),
    ("text/plain", b"\xff\xfew\0", "text/plain"),
    # zip files of the office
    (None, entry(b"mimetype", b"application/epub+zip"), "application/epub+zip"),
    (None, entry(b"mimetype", b"application/vnd.oasis.opendocument.text"), "application/vnd.oasis.opendocument.text"),
    (
        None,
        entry(b"[Content_Types].xml", b"") + b"word/document.xml",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    (None, entry(b"x.txt", b"x"), "application/zip"),
)


@pytest.mark.parametrize(("declared", "start", "expected"), TYPES)
def test_sniff(declared: str | None, start: bytes, expected: str) -> None:
    assert sniff(declared, start) == expected
