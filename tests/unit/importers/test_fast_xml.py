"""Reading a crawl configuration of FAST's: its shape, and what is wrong with a file, in one sentence with its line."""

from __future__ import annotations

import re

import pytest

from crawlspace.errors import RuleFileError
from crawlspace.importers.fast.xml import read_fast_xml
from crawlspace.importers.reading import MAX_SIZE

WRONG = [
    (b"", "a.xml:1:1: the file is not well-formed XML: no element found"),
    (b"<CrawlerConfig>\n<DomainSpecification name='a'>\n</CrawlerConfig>", "a.xml:3:3: the file is not well-formed XML: mismatched tag"),
    (b"<CrawlConfig/>", "a.xml:1:1: the outermost element of a crawl configuration of FAST's is CrawlerConfig, not 'CrawlConfig'"),
    (b"<CrawlerConfig/>", "a.xml:1:1: the file has no DomainSpecification, so there is no collection in it"),
    (b"<CrawlerConfig><DomainSpecfication/></CrawlerConfig>", "CrawlerConfig holds DomainSpecification, not 'DomainSpecfication': did you mean 'DomainSpecification'?"),
    (b"<CrawlerConfig>\n<DomainSpecification/></CrawlerConfig>", 'a.xml:2:1: this DomainSpecification has no name; write it, as in <DomainSpecification name="…">'),
    (b"<CrawlerConfig>text</CrawlerConfig>", "text is not allowed here; values are in attrib or member"),
    (b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>\n<CrawlerConfig/>", "a crawl configuration has no DOCTYPE, and so no entities of its own; remove it"),
    (b"<CrawlerConfig>\n<DomainSpecification name='a'><attrib name='info'>\xe4</attrib></DomainSpecification></CrawlerConfig>", "a.xml:2:51: the text here is not UTF-8; save the file as UTF-8, or name its encoding in the first line"),
    (b"<?xml version='1.0' encoding='klingon'?><CrawlerConfig/>", "the file cannot be read as 'klingon', the encoding that it names"),
    (b" " * (50 * 1024 * 1024), "a.xml:1:1: the file has more than 20 MiB, the most that is read; put long lists into files that it names"),
    (b"<CrawlerConfig><DomainSpecification name='a'>" + b"<section name='s'>" * 30, "more than 20 elements are inside each other here"),
]  # fmt: skip


@pytest.mark.parametrize(("data", "sentence"), WRONG, ids=[row[1][:50] for row in WRONG])
def test_what_is_wrong_with_a_file(data: bytes, sentence: str) -> None:
    with pytest.raises(RuleFileError, match=re.escape(sentence)) as raised:
        read_fast_xml(data, file="a.xml")
    assert len(raised.value.mistakes) == 1
    assert len(str(raised.value)) < 1000


def test_a_file_of_the_largest_size_is_read() -> None:
    data = b"<CrawlerConfig><DomainSpecification name='a'/></CrawlerConfig>"
    [section] = read_fast_xml(data.ljust(MAX_SIZE), file="a.xml")
    assert section.name == "a"


def test_the_shape_of_a_file() -> None:
    data = """<?xml version="1.0" encoding="windows-1252"?>
<CrawlerConfig>
  <GlobalConfig><attrib name="slaves">1</attrib></GlobalConfig>
  <DomainSpecification name=" news ">
    <attrib name="info" type="string">
      Größe &amp; mehr
    </attrib>
    <section name="a"><section name="b"><attrib name="c"><member>1</member><!-- no -->
      <member> 2 </member><member/></attrib></section></section>
    <Unknown><attrib name="d">x</attrib></Unknown>
  </DomainSpecification>
  <DomainSpecification name="more"/>
</CrawlerConfig>
""".encode("cp1252")
    news, more = read_fast_xml(data, file="a.xml")
    assert (news.name, news.line, more.name, more.line) == ("news", 4, "more", 12)
    assert [(option.name, option.line, option.values) for option in news.options] == [("info", 5, [("Größe & mehr", 5)])]
    [inner] = news.sections[0].sections
    assert [option.values for option in inner.options] == [[("1", 8), ("2", 9)]]
    assert news.unknown == [("Unknown", 10)]
