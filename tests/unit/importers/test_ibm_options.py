"""Every property of IBM's Web crawler is translated or reported, by any of its names."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.importers.ibm.options import BY_NAME, PROXY, known
from crawlspace.importers.translation import Fate
from tests.unit.importers.ibm_imports import CORPUS, imported, made_of
from tests.unit.importers.test_ibm_files import report, settings_of

TRANSLATED, DEFAULT, LOST = Fate.TRANSLATED, Fate.DEFAULT, Fate.NO_COUNTERPART
# what the facts about IBM's crawler name -> whether it is known by experience only; all is in the folder intranet of the corpus
FACTS = [
    ("crawl.rules", "rules", False),
    ("global.rules", "rules", False),
    ("followindex.rules", "forbid index", True),
    ("followindex.rules", "forbid follow", True),
    ("followindex.rules", "allow index", True),
    ("seeds.txt", "start URLs", False),
    ("softerrorpages.csv", "soft error page", False),
    ("cookies.ini", "cookies of wiki.ibm.com", False),
    ("httpauth.ini", "log-in https://sales.example.com/", False),
    ("formauth.ini", "log-in by a form http://lists.ibm.com:8080/", True),
    ("crawler.properties", "User agent", False),
    ("crawler.properties", "E-mail address", True),
    ("crawler.properties", "Comments", True),
    ("crawler.properties", "Minimum recrawl interval", False),
    ("crawler.properties", "Maximum recrawl interval", False),
    ("crawler.properties", "Maximum URL path depth", False),
    ("crawler.properties", "Maximum link depth", False),
    ("crawler.properties", "MIME types", False),
    ("crawler.properties", "Excluded file extensions", False),
    ("crawler.properties", "Time to wait between requests to one host", True),
    ("crawler.properties", "Maximum number of active hosts", False),
    ("crawler.properties", "Maximum number of active threads", True),
    ("crawler.properties", "Request timeout (seconds)", True),
    ("crawler.properties", "Maximum page length", True),
    ("crawler.properties", "Maximum redirects", True),
    ("crawler.properties", "Verify certificates", True),
    ("crawler.properties", "Proxy host", True),
    ("WEB1.log", "file", False),
]
# a property -> its fate, and the settings written for it
OPTIONS: list[tuple[str, str, Fate, dict[str, object]]] = [
    ("User agent", "w3crawler/2", TRANSLATED, {"USER_AGENT": "w3crawler/2"}),
    ("User agent", "", DEFAULT, {}),
    ("E-mail address", "a@example.com", LOST, {}),
    ("Minimum recrawl interval", "1", DEFAULT, {}),
    ("Minimum recrawl interval", "24 hours", DEFAULT, {}),
    ("Minimum recrawl interval", "90 min", TRANSLATED, {"CRAWLSPACE_REFRESH_MIN": "90m"}),
    ("Minimum recrawl interval", "60d", TRANSLATED, {"CRAWLSPACE_REFRESH_MIN": "60d", "CRAWLSPACE_REFRESH_MAX": "60d"}),
    ("minRecrawlIntervalMinutes", "2880", TRANSLATED, {"CRAWLSPACE_REFRESH_MIN": "2d"}),
    ("Minimum recrawl interval", "0", LOST, {}),
    ("Minimum recrawl interval", "often", LOST, {}),
    ("Minimum recrawl interval", "5 KB", LOST, {}),
    ("Maximum recrawl interval", "30", DEFAULT, {}),
    ("Maximum recrawl interval", "60", TRANSLATED, {"CRAWLSPACE_REFRESH_MAX": "60d"}),
    ("Maximum recrawl interval", "12 h", TRANSLATED, {"CRAWLSPACE_REFRESH_MAX": "12h", "CRAWLSPACE_REFRESH_MIN": "12h"}),
    ("Maximum URL path depth", "8", TRANSLATED, {"CRAWLSPACE_MAX_PATH_DEPTH": 8}),
    ("Maximum URL path depth", "0", TRANSLATED, {"CRAWLSPACE_MAX_PATH_DEPTH": 0}),
    ("Maximum URL path depth", "-1", LOST, {}),
    ("Maximum link depth", "3", TRANSLATED, {"DEPTH_LIMIT": 3}),
    ("Maximum link depth", "0", LOST, {}),
    ("MIME types", "Text/HTML|text/plain", TRANSLATED, {"CRAWLSPACE_MIME_TYPES": ["text/html", "text/plain"]}),
    ("MIME types", "", DEFAULT, {}),
    ("Excluded file extensions", "*.GIF; jpg", TRANSLATED, {"CRAWLSPACE_EXCLUDE_EXTENSIONS": ["gif", "jpg"]}),
    ("Excluded file extensions", "", TRANSLATED, {"CRAWLSPACE_EXCLUDE_EXTENSIONS": "none"}),
    ("Wait between requests", "1", DEFAULT, {}),
    ("Wait between requests", "1500 ms", TRANSLATED, {"DOWNLOAD_DELAY": 1.5}),
    ("Wait between requests", "0", TRANSLATED, {"DOWNLOAD_DELAY": 0}),
    ("Maximum number of active hosts", "0", LOST, {}),
    ("Maximum number of active threads", "8", TRANSLATED, {"CONCURRENT_REQUESTS": 8}),
    ("Request timeout", "0", LOST, {}),
    ("Request timeout (ms)", "45000", TRANSLATED, {"DOWNLOAD_TIMEOUT": 45}),
    ("Maximum page length", "2 MB", TRANSLATED, {"DOWNLOAD_MAXSIZE": 2097152, "CRAWLSPACE_FILE_MAXSIZE": 2097152}),
    ("Maximum page length", "-1", LOST, {}),
    ("Maximum redirects", "10", DEFAULT, {}),
    ("Verify certificates", "no", TRANSLATED, {"DOWNLOAD_VERIFY_CERTIFICATES": False}),
    ("Proxy", "proxy.ibm.com:3128", TRANSLATED, {"CRAWLSPACE_PROXY": "http://proxy.ibm.com:3128"}),
    ("Proxy host", "https://proxy.ibm.com/", TRANSLATED, {"CRAWLSPACE_PROXY": "https://proxy.ibm.com"}),
    ("Proxy host", "a b", LOST, {}),
    ("Proxy port", "3128", LOST, {}),
]
SPELLINGS = [
    ("Maximum URL path depth", "max_path_depth"),
    ("Maximum URL path depth", "MAXPATHDEPTH"),
    ("Maximum URL path depth", "crawler.maxUrlPathDepth"),
    ("Maximum link depth", "maximum-link-depth"),
    ("User agent", "USER-AGENT"),
    ("Minimum recrawl interval", "minRecrawlInterval"),
    ("Time to wait between requests to one host", "wait between requests"),
    ("Excluded file extensions", "excludedExtensions"),
    ("MIME types", "acceptedMimeTypes"),
    ("Proxy port", "http.proxyPort"),
]


@pytest.mark.parametrize(("file", "option", "recalled"), FACTS, ids=[f"{row[0]} {row[1]}" for row in FACTS])
def test_each_fact_is_translated_or_reported(file: str, option: str, recalled: bool) -> None:
    found = [one for one in imported(CORPUS / "intranet").report.options if (one.file, one.option) == (file, option)]
    assert [one.is_recalled for one in found] == [recalled] * len(found)
    assert found
    assert not [one.sentence for one in found if "is no property that is known" in one.sentence]


@pytest.mark.parametrize(("name", "value", "fate", "settings"), OPTIONS, ids=[f"{row[0]} {row[1]}" for row in OPTIONS])
def test_what_becomes_of_an_option(name: str, value: str, fate: Fate, settings: dict[str, object], tmp_path: Path) -> None:
    made = made_of(tmp_path, crawler__properties=f"{name} = {value}\n")
    assert [one.fate for one in made.report.options if one.line][:1] == [fate], report(made)
    assert settings_of(made) == {"CRAWLSPACE_MAX_REPEATED_SEGMENTS": 1000, **settings}


@pytest.mark.parametrize(("name", "written"), SPELLINGS)
def test_names_in_any_spelling(name: str, written: str) -> None:
    assert known(written)[0] == name


def test_each_option_is_known_by_its_own_name() -> None:
    assert [known(name)[0] for name in (*BY_NAME, *PROXY)] == [*BY_NAME, *PROXY]


@pytest.mark.parametrize("name", ["foo", "depth", "proxy foo", "", "user", "seconds"])
def test_other_names(name: str) -> None:
    assert known(name) == ("", "")


FORMS = {
    "a.properties": "# a\n! b\n; c\n[section]\n\nmaxPathDepth=8\nmaxLinkDepth:3\nMIME types\ttext/html\\\n  text/plain\nUser agent = a = b: c\n",
    "a.xml": """<!DOCTYPE properties SYSTEM "http://java.sun.com/dtd/properties.dtd">
<properties xmlns="urn:x"><entry key="maxPathDepth">8</entry><property name="maxLinkDepth" value="3"/>
<MimeTypes><type>text/html</type><type>text/plain</type></MimeTypes><c:user_agent xmlns:c="urn:c">a = b: c</c:user_agent></properties>""",
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_files(name: str, tmp_path: Path) -> None:
    made = made_of(tmp_path, **{name.replace(".", "__"): FORMS[name]})
    assert settings_of(made) == {
        "CRAWLSPACE_MAX_REPEATED_SEGMENTS": 1000,
        "CRAWLSPACE_MAX_PATH_DEPTH": 8,
        "DEPTH_LIMIT": 3,
        "CRAWLSPACE_MIME_TYPES": ["text/html", "text/plain"],
        "USER_AGENT": "a = b: c",
    }


def test_what_is_not_understood_is_reported(tmp_path: Path) -> None:
    unknown = "".join(f"unknown{number} = S3cret\n" for number in range(200))
    lines = f"User agents = a\nUser agent = b\nuser_agent = c\nS3cret\n{unknown}"
    found = report(made_of(tmp_path, crawler__properties=lines, web__conf="User agent = d\nProxy host = p\n", a__ini="x = y\n"))
    assert (
        "crawler.properties:1: User agents: no counterpart, because 'User agents' is no property that is known: did you mean 'User agent'?"
        in found
    )
    assert (
        "crawler.properties:3: user_agent: no counterpart, because it is in crawler.properties:2 already, which counts" in found
    )
    assert "crawler.properties:4: lines: no counterpart, because 1 line cannot be read (4): it is no 'name = value'" in found
    assert "crawler.properties:104: properties: no counterpart, because 101 further properties are not known" in found
    assert "web.conf:1: User agent: no counterpart, because it is in crawler.properties:2 already" in found
    assert "a.ini: file: no counterpart, because none of its 1 property is known of IBM's Web crawler" in found
    assert "S3cret" not in found


def test_a_proxy_of_several_properties(tmp_path: Path) -> None:
    lines = "Proxy host = proxy.ibm.com\nProxy port = 3128\nProxy user = anna\nProxy password = S3cret\nproxy = other\n"
    made = made_of(tmp_path, crawler__properties=lines)
    proxy = {"url": "http://proxy.ibm.com:3128", "user": "anna", "password": "env:DEMO_PROXY_PASSWORD"}
    assert settings_of(made)["CRAWLSPACE_PROXY"] == proxy
    assert "proxy: no counterpart, because it is in crawler.properties:1 already" in report(made)
    assert "S3cret" not in report(made) + "".join(made.files.values())


def test_intervals_that_contradict_each_other(tmp_path: Path) -> None:
    made = made_of(tmp_path, crawler__properties="Minimum recrawl interval = 9\nMaximum recrawl interval = 8\n")
    assert settings_of(made) == {"CRAWLSPACE_MAX_REPEATED_SEGMENTS": 1000}
    assert report(made).count("the minimum is above the maximum, so neither is used") == 2


def test_a_largest_interval_that_is_our_default_is_not_replaced(tmp_path: Path) -> None:
    made = made_of(tmp_path, crawler__properties="Minimum recrawl interval = 60\nMaximum recrawl interval = 30\n")
    assert settings_of(made) == {"CRAWLSPACE_MAX_REPEATED_SEGMENTS": 1000}
