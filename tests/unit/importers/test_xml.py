"""Reading crawl configurations of FAST's and Exalead's: their shape, and mistakes, in one sentence with its line."""

from __future__ import annotations

import re

import pytest

from crawlspace.errors import RuleFileError
from crawlspace.importers.exalead.xml import read_crawl_config
from crawlspace.importers.fast.xml import read_fast_xml
from crawlspace.importers.reading import MAX_SIZE
from tests.unit.importers.exalead_imports import imported_from

WRONG_FAST = [
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


@pytest.mark.parametrize(("data", "sentence"), WRONG_FAST, ids=[row[1][:50] for row in WRONG_FAST])
def test_what_is_wrong_with_a_file_of_fast(data: bytes, sentence: str) -> None:
    with pytest.raises(RuleFileError, match=re.escape(sentence)) as raised:
        read_fast_xml(data, file="a.xml")
    assert len(raised.value.mistakes) == 1
    assert len(str(raised.value)) < 1000


def test_a_file_of_fast_of_the_largest_size_is_read() -> None:
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


V21 = "exa:com.exalead.mercury.mami.crawl.v21"
RULE = '<Rule><Path val="/a"/><Index/></Rule>'
WRONG = [
    (b"", "a.xml:1:1: the file is not well-formed XML: no element found"),
    (b"<CrawlConfig>\n<Crawler name='a'>\n</CrawlConfig>", "a.xml:3:3: the file is not well-formed XML: mismatched tag"),
    (b"<CrawlerConfig><DomainSpecification name='a'/></CrawlerConfig>", "the outermost element of a crawl configuration of Exalead's is CrawlConfig, not 'CrawlerConfig': did you mean 'CrawlConfig'?"),
    (b"<html/>", "not 'html': is it a file of another product?"),
    (b"<c xmlns='urn:x'/>", "the outermost element of a crawl configuration of Exalead's is CrawlConfig, not 'c'"),
    (b"<CrawlConfig/>", "a.xml:1:1: the file has neither a Crawler nor Rules, so there is nothing to import"),
    (b"<CrawlConfig>\n<crawler name='a'/></CrawlConfig>", "so there is nothing to import: did you mean 'Crawler'?"),
    (b"<CrawlConfig>\n<Crawler/></CrawlConfig>", 'a.xml:2:1: this Crawler has no name; write it, as in <Crawler name="\xe2\x80\xa6">'.encode("latin-1").decode()),
    (b"<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]>\n<CrawlConfig/>", "a crawl configuration has no DOCTYPE, and so no entities of its own; remove it"),
    (b"<CrawlConfig>\n<Crawler name='\xe4'/></CrawlConfig>", "a.xml:2:16: the text here is not UTF-8; save the file as UTF-8, or name its encoding in the first line"),
    (b"<?xml version='1.0' encoding='klingon'?><CrawlConfig/>", "the file cannot be read as 'klingon', the encoding that it names"),
    (b"<CrawlConfig>\0</CrawlConfig>", "a.xml:1:14: the file is not well-formed XML: not well-formed (invalid token); no file of XML has this character"),
    (b" " * (50 * 1024 * 1024), "a.xml:1:1: the file has more than 20 MiB, the most that is read; leave crawlers out of it"),
    (b"<CrawlConfig>" + b"<a>" * 100, "more than 100 elements are inside each other here"),
    # misprints of the documentation, pasted as they are
    (b'<Rules>\n<Rule>\n<Url val="http://en.wikipedia.org/wiki>\n<Index/></Rule></Rules>', 'a.xml:3:1: the value of val has no " at its end; write <Url val="http://en.wikipedia.org/wiki"/>'),
    (b'<Rules group="example" key="auto">\n<Rule>\n<ar:Atom litteral="true" value="http://www.example.com/"\nnorm="none" kind="prefix" field="url"/>\n<Index/>\n<Follow/>\n<Accept/>\n</Rule>\n</Rules>', 'a.xml:3:1: the prefix ar: is not declared; write xmlns:ar="exa:com.exalead.actionrules.v21" into the outermost element'),
]  # fmt: skip


@pytest.mark.parametrize(("data", "sentence"), WRONG, ids=[row[1][:60] for row in WRONG])
def test_what_is_wrong_with_a_file(data: bytes, sentence: str) -> None:
    with pytest.raises(RuleFileError, match=re.escape(sentence)) as raised:
        read_crawl_config(data, file="a.xml")
    assert len(raised.value.mistakes) == 1
    assert len(str(raised.value)) < 1000


def test_a_file_of_the_largest_size_is_read() -> None:
    [crawler] = read_crawl_config(b"<CrawlConfig><Crawler name='a'/></CrawlConfig>".ljust(MAX_SIZE), file="a.xml")
    assert crawler.name == "a"


NAMES = [
    (f'<CrawlConfig xmlns="{V21}"><Crawler name=" a "/><Crawler name="b"/></CrawlConfig>', ["a", "b"]),
    (f'<m:CrawlConfig xmlns:m="{V21}"><m:Crawler name="a"/></m:CrawlConfig>', ["a"]),
    ('<Config xmlns="exa:x"><Group><CrawlConfig><Crawler name="a"/></CrawlConfig></Group></Config>', ["a"]),
    ('<Crawler name="a"/>', ["a"]),
    (f"<Rules>{RULE}</Rules>", [""]),
    (f'<r:Rules xmlns:r="exa:com.exalead.actionrules.v21"><r:Rules>{RULE}</r:Rules></r:Rules>', [""]),
    (f"<CrawlConfig><a><Rules>{RULE}</Rules></a></CrawlConfig>", [""]),
]


@pytest.mark.parametrize(("text", "names"), NAMES, ids=[row[0][:60] for row in NAMES])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "crlf"])
def test_the_crawlers_of_a_file(text: str, names: list[str], encoding: str) -> None:
    data = text.replace(">", ">\r\n").encode() if encoding == "crlf" else text.encode(encoding)
    assert [crawler.name for crawler in read_crawl_config(data, file="a.xml")] == names


# a file -> lines of the report: line, option, a part of the sentence
AROUND = [
    (f"<CrawlConfig>\n<Other a='1'/>\n<Rules>{RULE}</Rules><Crawler name='a'/></CrawlConfig>", [(2, "Other", "'Other' is not known"), (3, "Rules", "these Rules are in no Crawler")]),
    ("<CrawlConfig schema='9'><Crawler name='a'/></CrawlConfig>", [(1, "CrawlConfig/schema", "'schema' is not known")]),
    (f"<CrawlConfig><Crawler name='a'>\n<Group id='1'>\n<Root url='http://a/'/><Rules>{RULE}</Rules></Group></Crawler></CrawlConfig>", [(2, "Group", "its contents are read as if they were here"), (2, "Group/id", "its purpose is not known"), (3, "Root", "http://a/ in start_urls.txt"), (3, "Rules", "1 rule of rules.xml")]),
    (f"<CrawlConfig a='1'>\n<x/><Rules>{RULE}</Rules></CrawlConfig>", [(1, "CrawlConfig/a", "only the Rules of a file without a Crawler are read"), (2, "x", "'x' is not known"), (2, "Rules", "1 rule")]),
    ("<CrawlConfig><Crawler name='a'>\ntext</Crawler></CrawlConfig>", [(1, "Crawler", "text is not allowed here")]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "lines"), AROUND, ids=[row[0][:60] for row in AROUND])
def test_what_is_outside_of_crawlers_is_reported(text: str, lines: list[tuple[int, str, str]]) -> None:
    reported = imported_from(text.encode()).report.options
    for line, option, part in lines:
        assert [one for one in reported if (one.line, one.option) == (line, option) and part in one.text], (line, option)
