"""What becomes of each attribute and element of an Exalead configuration."""

from __future__ import annotations

import re

import pytest

from crawlspace.importers.files import ImportedCollection
from crawlspace.importers.translation import Fate
from crawlspace.rules.xml.model import RegexSyntax
from tests.unit.importers.exalead_imports import imported_from
from tests.unit.importers.imports import settings_of

TRANSLATED, DEFAULT, LOST = Fate.TRANSLATED, Fate.DEFAULT, Fate.NO_COUNTERPART
# what public documentation names, and what is known by experience
DOCUMENTED = [
    *("name", "documentsType", "fetcher", "crawlerServer", "connectorServer", "buildGroup", "dataModel", "storeTextOnly"),
    *("nthreads", "aggressive", "throttleTimeMS", "ignoreRobotsTxt", "enableConvertProcessor", "nearDuplicateDetector"),
    *("patternsDetector", "crawlSitemaps", "disableConditionalGet", "defaultAccept"),
    *("Root/site", "Root/priority", "Root/group", "Root/kvs", "CustomCrawlConfig"),
]
RECALLED = [
    *(
        "defaultIndex",
        "defaultFollow",
        "smartRefresh",
        "smartRefreshMinAgeS",
        "smartRefreshMaxAgeS",
        "mimeTypesMode",
        "mimeTypes",
    ),
    *("siteCollapsing", "dataModelClass", "verbose", "defaultFollowRoots", "enableSimpleSiteCollapsing"),
    *("simpleSiteCollapsingDepth", "indexRedirectSources", "userAgent", "CrawlSchedulerConfig user"),
]
ONE_OF_EACH = """<CrawlConfig version="1" verbose="true">
<Crawler name="demo" documentsType="file" fetcher="f" crawlerServer="s" connectorServer="s" buildGroup="bg0" dataModel="d"
  storeTextOnly="true" nthreads="1" aggressive="true" throttleTimeMS="2500" ignoreRobotsTxt="true" enableConvertProcessor="true"
  nearDuplicateDetector="true" patternsDetector="true" crawlSitemaps="true" disableConditionalGet="true" defaultAccept="true"
  defaultIndex="true" defaultFollow="true" smartRefresh="true" smartRefreshMinAgeS="60" smartRefreshMaxAgeS="600"
  mimeTypesMode="include" mimeTypes="text/html" siteCollapsing="true" dataModelClass="c" verbose="true" defaultFollowRoots="true"
  enableSimpleSiteCollapsing="true" simpleSiteCollapsingDepth="1" indexRedirectSources="true" userAgent="bot" nthread="3">
  <Root url="http://foo.com/" site="true" priority="1" group="g" kvs="a=b"/>
  <CrawlSchedulerConfig user="5"/><CustomCrawlConfig class="x"/><Roots/>
</Crawler></CrawlConfig>"""
# an attribute of the Crawler with its value, perhaps with others -> its fate, and the settings written
ATTRIBUTES = [
    ('nthreads="32"', DEFAULT, {}),
    ('nthreads="4"', TRANSLATED, {"CONCURRENT_REQUESTS": 4}),
    ('nthreads="0"', LOST, {}),
    ('throttleTimeMS="0"', TRANSLATED, {"DOWNLOAD_DELAY": 0}),
    ('throttleTimeMS="1500"', TRANSLATED, {"DOWNLOAD_DELAY": 1.5}),
    ('throttleTimeMS="soon"', LOST, {}),
    ('aggressive="true"', TRANSLATED, {"DOWNLOAD_DELAY": 0}),
    ('aggressive="false"', DEFAULT, {"DOWNLOAD_DELAY": 2.5}),
    ('throttleTimeMS="2500" aggressive="true"', DEFAULT, {"DOWNLOAD_DELAY": 0}),
    ('ignoreRobotsTxt="false"', DEFAULT, {}),
    ('ignoreRobotsTxt="true"', TRANSLATED, {"ROBOTSTXT_OBEY": False, "CRAWLSPACE_META_ROBOTS": True}),
    ('enableConvertProcessor="true"', TRANSLATED, {"CRAWLSPACE_FOLLOW_FILE_LINKS": True}),
    ('storeTextOnly="true"', DEFAULT, {}),
    ('nearDuplicateDetector="true"', TRANSLATED, {"CRAWLSPACE_NEAR_DUPLICATES": 6}),
    ('nearDuplicateDetector="false"', DEFAULT, {}),
    ('crawlSitemaps="true"', DEFAULT, {}),
    ('crawlSitemaps="false"', TRANSLATED, {"CRAWLSPACE_FOLLOW": "links"}),
    ('crawlSitemaps="maybe"', LOST, {}),
    ('patternsDetector="true"', LOST, {}),
    ('disableConditionalGet="true"', TRANSLATED, {"CRAWLSPACE_CONDITIONAL_GET": False}),
    ('disableConditionalGet="false"', DEFAULT, {}),
    ('defaultAccept="false"', TRANSLATED, {"CRAWLSPACE_DEFAULT_ACCEPT": False}),
    ('defaultIndex="false"', TRANSLATED, {"CRAWLSPACE_DEFAULT_INDEX": False}),
    ('defaultFollow="false"', TRANSLATED, {"CRAWLSPACE_DEFAULT_FOLLOW": False}),
    ('defaultFollowRoots="true"', DEFAULT, {}),
    ('defaultFollowRoots="false"', LOST, {}),
    ('defaultFollowRoots="true" defaultFollow="false"', TRANSLATED, {"CRAWLSPACE_DEFAULT_FOLLOW": False}),
    ('smartRefreshMinAgeS="86400"', DEFAULT, {}),
    ('smartRefreshMinAgeS="3600"', TRANSLATED, {"CRAWLSPACE_REFRESH_MIN": 3600}),
    ('smartRefreshMaxAgeS="600" smartRefreshMinAgeS="60"', TRANSLATED, {"CRAWLSPACE_REFRESH_MIN": 60, "CRAWLSPACE_REFRESH_MAX": 600}),
    ('smartRefreshMaxAgeS="600"', LOST, {}),
    ('smartRefreshMinAgeS="9" smartRefreshMaxAgeS="8"', LOST, {}),
    ('mimeTypesMode="exclude"', DEFAULT, {}),
    ('mimeTypesMode="include"', LOST, {}),
    ('mimeTypes="text/html, text/plain" mimeTypesMode="include"', TRANSLATED, {"CRAWLSPACE_MIME_TYPES": ["text/html", "text/plain"]}),
    ('mimeTypes="html" mimeTypesMode="include"', LOST, {}),
    ('mimeTypes="image/*" mimeTypesMode="exclude"', DEFAULT, {}),
    ('mimeTypes="*/*" mimeTypesMode="exclude"', LOST, {}),
    ('mimeTypes="text/html"', LOST, {}),
    ('verbose="true"', TRANSLATED, {"LOG_LEVEL": "DEBUG"}),
    ('verbose="false"', DEFAULT, {}),
    ('userAgent="bot/1"', TRANSLATED, {"USER_AGENT": "bot/1"}),
    ('buildGroup="bg0"', LOST, {}),
    ('defaultAcept="false"', LOST, {}),
    ('x:defaultIndex="false" xmlns:x="exa:a"', TRANSLATED, {"CRAWLSPACE_DEFAULT_INDEX": False}),
]  # fmt: skip
# an element of the Crawler -> its name in the report, its fate, and the settings written
ELEMENTS = [
    ('<CrawlSchedulerConfig user="10000" index_follow="200"/>', "CrawlSchedulerConfig/index_follow", TRANSLATED, {"CRAWLSPACE_SOURCE_WEIGHTS": {"index_follow": 200}}),
    ('<CrawlSchedulerConfig><Fifo name="redir" weight="7"/></CrawlSchedulerConfig>', "CrawlSchedulerConfig/Fifo redir", TRANSLATED, {"CRAWLSPACE_SOURCE_WEIGHTS": {"redir": 7}}),
    ('<CrawlSchedulerConfig><f number="3" priority="7"/></CrawlSchedulerConfig>', "CrawlSchedulerConfig/f index_follow", TRANSLATED, {"CRAWLSPACE_SOURCE_WEIGHTS": {"index_follow": 7}}),
    ('<CrawlSchedulerConfig smartRefreshWeight="1"/>', "CrawlSchedulerConfig/smartRefreshWeight", DEFAULT, {}),
    ('<CrawlSchedulerConfig follow="-1"/>', "CrawlSchedulerConfig/follow", LOST, {}),
    ('<CrawlSchedulerConfig depth="9"/>', "CrawlSchedulerConfig/depth", LOST, {}),
    ("<CrawlSchedulerConfig/>", "CrawlSchedulerConfig", DEFAULT, {}),
    ("<CustomCrawlConfig><a/></CustomCrawlConfig>", "CustomCrawlConfig", LOST, {}),
    ('<Fetcher userAgent="bot/2"/>', "Fetcher/userAgent", TRANSLATED, {"USER_AGENT": "bot/2"}),
    ("<Fetcher><UserAgent>bot/3</UserAgent></Fetcher>", "Fetcher/UserAgent", TRANSLATED, {"USER_AGENT": "bot/3"}),
    ('<FetcherConfig><Param key="timeoutMS" value="5000"/></FetcherConfig>', "FetcherConfig/Param/timeoutMS", TRANSLATED, {"DOWNLOAD_TIMEOUT": 5}),
    ('<Fetcher timeout="5"/>', "Fetcher/timeout", LOST, {}),
    ('<Fetcher proxyHost="proxy.foo.com" proxyPort="3128"/>', "Fetcher/proxyPort", TRANSLATED, {"CRAWLSPACE_PROXY": "http://proxy.foo.com:3128"}),
    ('<Fetcher maxRedirects="3"/>', "Fetcher/maxRedirects", TRANSLATED, {"REDIRECT_MAX_TIMES": 3}),
    ('<Fetcher name="other" userAgent="x"/>', "Fetcher/userAgent", TRANSLATED, {"USER_AGENT": "x"}),
    ('<Fetcher usrAgent="x"/>', "Fetcher/usrAgent", LOST, {}),
    ("<Group><Fetcher userAgent='x'/><Rules/></Group>", "Group/Fetcher/userAgent", TRANSLATED, {"USER_AGENT": "x"}),
    ('<o:Root xmlns:o="urn:x" url="http://a/"/>', "Root", LOST, {}),
]  # fmt: skip
# a Root -> of which option something is reported, its fate, a part of the sentence
ROOTS = [
    ('<Root url="http://foo.com/" priority="-2"/>', "Root/priority", TRANSLATED, "shift=-2 in start_urls.txt"),
    ('<Root url="http://foo.com/" priority="0"/>', "Root/priority", DEFAULT, "shift 0"),
    ('<Root url="http://foo.com/" priority="9"/>', "Root/priority", LOST, "shift=2 is written into start_urls.txt"),
    ('<Root url="http://foo.com/" priority="high"/>', "Root/priority", LOST, "it is a whole number, not 'high'"),
    ('<Root url="http://foo.com/" site="perhaps"/>', "Root/site", LOST, "so that it is true, the default"),
    ('<Root url="http://foo.com/" site="false"/>', "Root/site", DEFAULT, "URLs outside of it are decided by the rules"),
    ('<Root url="http://foo.com/"/>', "Root/site", TRANSLATED, "only what begins with http://foo.com/ and http://www.foo.com/; if its home page"),
    ('<Root url="http://www.foo.com/"/>', "Root/site", TRANSLATED, "only what begins with http://www.foo.com/; if"),
    ('<Root url="http://10.0.0.1/"/>', "Root/site", TRANSLATED, "only what begins with http://10.0.0.1/; if"),
    ('<Root url="http://foo.com/a*b"/>', "Root/site", LOST, "matches any text, so that more than the site is crawled"),
    ('<Root url="http://foo.com/"/><Root url="http://a/" site="false"/>', "Root/site", LOST, "another root is not in site mode"),
    ('<Root url="http://foo.com/"/><Root url="http://FOO.com"/>', "Root/url", DEFAULT, "is the same URL"),
    ('<Root url="http://foo.com/" kvs="title=x"/>', "Root/kvs", LOST, "'title' is a field that every document has"),
    ('<Root url="http://foo.com/" kvs="a=b;c"/>', "Root/kvs", LOST, "'c' is not key=value"),
    ('<Root url="ftp://foo.com/"/>', "Root/url", LOST, "begins with http:// or https://"),
    ('<Root url="http://anna:Geheim1@foo.com/"/>', "Root/url", LOST, "it has a user name or password"),
    ("<Root/>", "Root/url", LOST, 'this Root has no URL; write it, as in <Root url="…"/>'),
    ('<Root url="http://foo.com/" sites="true"/>', "Root/sites", LOST, "did you mean 'site'?"),
    ('<Root url="http://foo.com/"><a/></Root>', "Root/a", LOST, "a Root holds no elements"),
    ("<Root>http://foo.com/</Root>", "Root", LOST, "holds no text"),
    ("", "Root", LOST, "write the start URLs into start_urls.txt"),
]  # fmt: skip


def crawler(attributes: str = "", inside: str = '<Root url="http://foo.com/" site="false"/>') -> ImportedCollection:
    return imported_from(f'<CrawlConfig><Crawler name="demo" {attributes}>{inside}</Crawler></CrawlConfig>'.encode())


@pytest.mark.parametrize("option", [*DOCUMENTED, *RECALLED])
def test_each_known_option_is_translated_or_reported(option: str) -> None:
    reported = [
        one for one in imported_from(ONE_OF_EACH.encode()).report.options if one.option in {option, option.replace(" ", "/")}
    ]
    assert reported
    assert not [one.sentence for one in reported if "is not known" in one.text]
    assert any(one.is_recalled for one in reported) == (option in {*RECALLED, "Root/kvs", "patternsDetector"})


def test_what_is_not_known_is_reported_with_what_may_be_meant() -> None:
    report = {one.option: one for one in imported_from(ONE_OF_EACH.encode()).report.options}
    assert [(report[name].line, report[name].sentence) for name in ("nthread", "Roots")] == [
        (7, "no counterpart, because 'nthread' is not known: did you mean 'nthreads'?"),
        (9, "no counterpart, because 'Roots' is not known: did you mean 'Root'?"),
    ]


def test_each_attribute_is_reported_with_its_own_line() -> None:
    lines = ONE_OF_EACH.splitlines()
    for one in imported_from(ONE_OF_EACH.encode()).report.options:
        assert re.search(rf"\b{one.option.rpartition('/')[2].rpartition(' ')[2]}\b", lines[one.line - 1]), one


@pytest.mark.parametrize(("attributes", "fate", "settings"), ATTRIBUTES, ids=[row[0] for row in ATTRIBUTES])
def test_what_becomes_of_an_attribute(attributes: str, fate: Fate, settings: dict[str, object]) -> None:
    name = attributes.partition("=")[0].removeprefix("x:")
    found = crawler(attributes)
    [reported] = [
        one for one in found.report.options if one.option == name and one.line == 1 and "the default of" not in one.text
    ]
    assert reported.fate is fate, reported.sentence
    assert settings_of(found, delay=None if "DOWNLOAD_DELAY" in settings else 2.5) == settings


@pytest.mark.parametrize(("element", "option", "fate", "settings"), ELEMENTS, ids=[row[0][:60] for row in ELEMENTS])
def test_what_becomes_of_an_element(element: str, option: str, fate: Fate, settings: dict[str, object]) -> None:
    found = crawler('throttleTimeMS="1000"', element)
    reported = {one.option: one for one in found.report.options}
    name = option if option in reported else option.removeprefix("Group/")
    assert reported[name].fate is fate, reported[name].sentence
    assert settings_of(found) == settings


@pytest.mark.parametrize(("roots", "option", "fate", "sentence"), ROOTS, ids=[row[0][:60] for row in ROOTS])
def test_what_becomes_of_a_root(roots: str, option: str, fate: Fate, sentence: str) -> None:
    found = crawler("", roots)
    assert [one for one in found.report.options if (one.option, one.fate) == (option, fate) and sentence in one.text], [
        one.sentence for one in found.report.options
    ]
    assert "Geheim1" not in "".join([*found.files.values(), *found.report.lines()])


def test_the_fetcher_of_another_crawler_is_not_read() -> None:
    data = b"<CrawlConfig><Fetcher name='a' userAgent='A'/><Fetcher name='b' userAgent='B'/><Crawler name='demo' fetcher='b'/></CrawlConfig>"
    found = imported_from(data)
    assert settings_of(found)["USER_AGENT"] == "B"
    assert [one.fate for one in found.report.options if one.option == "Fetcher"] == [DEFAULT]


def test_a_password_of_a_fetcher_gets_nowhere() -> None:
    found = crawler("", '<Fetcher proxy="p:80" proxyUser="anna" proxyPassword="Geheim1" password="Geheim2" secret="Geheim3"/>')
    assert "Geheim" not in "".join([*found.files.values(), *found.report.lines()])
    assert settings_of(found)["CRAWLSPACE_PROXY"] == {"url": "http://p:80", "user": "anna", "password": "env:DEMO_PROXY_PASSWORD"}


def test_the_setting_for_expressions_is_written_only_when_asked_for() -> None:
    data = b"<CrawlConfig><Crawler name='demo'><Root url='http://foo.com/'/></Crawler></CrawlConfig>"
    assert "CRAWLSPACE_RULES_XML_REGEX" not in settings_of(imported_from(data))
    assert settings_of(imported_from(data, syntax=RegexSyntax.STANDARD))["CRAWLSPACE_RULES_XML_REGEX"] == "standard"


@pytest.mark.parametrize(
    ("value", "fate", "sentence"), [("true", DEFAULT, "True"), ("false", TRANSLATED, "CRAWLSPACE_REFRESH_SCHEDULE")]
)
def test_smart_refresh(value: str, fate: Fate, sentence: str) -> None:
    [reported] = [one for one in crawler(f'smartRefresh="{value}"').report.options if one.option == "smartRefresh"]
    assert (reported.fate, sentence in reported.text) == (fate, True)
