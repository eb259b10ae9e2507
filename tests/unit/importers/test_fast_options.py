"""Every option of a crawl configuration of FAST's is translated or reported, and no password gets out."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.importers.fast.collection import translate_fast
from crawlspace.importers.fast.xml import read_fast_xml
from crawlspace.importers.files import ImportedCollection
from crawlspace.importers.translation import Fate
from crawlspace.rules.limits import DEFAULT_EXCLUDED_EXTENSIONS as BUILT_IN
from crawlspace.rules.xml.matcher import CompiledActions
from crawlspace.rules.xml.parser import parse_rules_xml
from crawlspace.urls import parse
from tests.unit.importers.fast_imports import CORPUS, imported
from tests.unit.importers.imports import DEFAULTS, findings, settings_of

# what the specification names
SPECIFIED = [
    *("start_uris", "start_uri_files", "delay", "refresh", "refresh_mode", "max_sites", "max_doc", "max_pages", "allowed_types"),
    *("exclude_exts", "allowed_schemes", "robots", "check_meta_robots", "cut_off", "max_redirects", "max_uri_recursion"),
    *("sort_query_params", "user_agent", "proxy", "use_javascript", "near_duplicate_detection", "storage", "log"),
    *(f"include_domains/{kind}" for kind in ("exact", "prefix", "suffix", "contains", "regexp", "ipmask", "file")),
    *("exclude_domains/exact", "include_uris/prefix", "exclude_uris/contains"),
    *("variable_delay/Wed:09-Wed:17", "http_errors/404", "passwd/http://www.contoso.com/hr/", "crawlmode/mode"),
    *("link_extraction/a", "SubDomain slow/delay", "Login portal", "Node n2"),
]
SECRETS = ("Pr0xyS3cret", "S3cret-Word", "An0therS3cret", "FormS3cret")

TRANSLATED, DEFAULT, LOST = Fate.TRANSLATED, Fate.DEFAULT, Fate.NO_COUNTERPART
# an attrib or what stands in a section -> its fate, and the settings written for it
OPTIONS = [
    ("delay", "0.5", TRANSLATED, {"DOWNLOAD_DELAY": 0.5}),
    ("delay", "1", DEFAULT, {}),
    ("delay", "soon", LOST, {}),
    ("delay", "-1", LOST, {}),
    ("max_pending", "1", DEFAULT, {}),
    ("max_pending", "3", TRANSLATED, {"CRAWLSPACE_SITES": {"*": {"concurrency": 3}}}),
    ("max_sites", "0", LOST, {}),
    ("allowed_schemes", "ftp", LOST, {}),
    ("allowed_schemes", "HTTPS", TRANSLATED, {"CRAWLSPACE_SCHEMES": ["https"]}),
    ("allowed_types", "Text/HTML", TRANSLATED, {"CRAWLSPACE_MIME_TYPES": ["text/html"]}),
    ("exclude_exts", "", TRANSLATED, {"CRAWLSPACE_EXCLUDE_EXTENSIONS": "none"}),
    ("exclude_exts", ".PDF", TRANSLATED, {"CRAWLSPACE_EXCLUDE_EXTENSIONS": ["pdf"]}),
    ("force_mimetype_detection", "yes", LOST, {}),
    ("uri_search_mime", "text/html", DEFAULT, {}),
    ("enforce_delay_per_ip", "yes", TRANSLATED, {"CRAWLSPACE_SHARE_ADDRESS_DELAY": True}),
    ("enforce_delay_per_ip", "maybe", LOST, {}),
    ("refresh", "1500", TRANSLATED, {"CRAWLSPACE_REFRESH_CYCLE": 1500}),
    ("refresh", "0", LOST, {}),
    ("refresh_mode", "soft", TRANSLATED, {"CRAWLSPACE_REFRESH_MODE": "soft"}),
    ("refresh_mode", "append", DEFAULT, {}),
    ("refresh_mode", "adaptive", TRANSLATED, {"CRAWLSPACE_REFRESH_MIN": "375m", "CRAWLSPACE_REFRESH_MAX": "3750m"}),
    ("adaptive/refresh_count", "3", DEFAULT, {}),
    ("adaptive/other", "3", LOST, {}),
    ("max_pages", "5000", TRANSLATED, {"CLOSESPIDER_PAGECOUNT": 5000}),
    ("max_pages", "0", LOST, {}),
    ("rss/follow", "no", TRANSLATED, {"CRAWLSPACE_FOLLOW": "sitemaps"}),
    ("rss/follow", "yes", DEFAULT, {}),
    ("rss/auto_discover", "no", LOST, {}),
    ("rss/ignore_rules", "no", DEFAULT, {}),
    ("rss/index_feed", "yes", LOST, {}),
    ("rss/del_expired_links", "yes", LOST, {}),
    ("rss/del_expired_links", "no", DEFAULT, {}),
    ("rss/max_link_age", "60", LOST, {}),
    ("rss/other", "60", LOST, {}),
    ("refresh_when_idle", "yes", TRANSLATED, {"CRAWLSPACE_REFRESH_WHEN_IDLE": True}),
    ("refresh_when_idle", "no", DEFAULT, {}),
    ("max_inter_docs", "20", TRANSLATED, {"CRAWLSPACE_MAX_PAGES_IN_TURN": 20}),
    ("max_inter_docs", "0", LOST, {}),
    ("robots", "yes", DEFAULT, {}),
    ("robots", "no", TRANSLATED, {"ROBOTSTXT_OBEY": False, "CRAWLSPACE_META_ROBOTS": True}),
    ("check_meta_robots", "yes", DEFAULT, {}),
    ("check_meta_robots", "no", TRANSLATED, {"CRAWLSPACE_META_ROBOTS": False}),
    ("robots_ttl", "86400", DEFAULT, {}),
    ("robots_ttl", "3600", TRANSLATED, {"CRAWLSPACE_ROBOTS_TTL": 3600}),
    ("robots_auth_ignore", "yes", DEFAULT, {}),
    ("robots_auth_ignore", "no", LOST, {}),
    ("obey_robots_delay", "yes", DEFAULT, {}),
    ("obey_robots_delay", "no", TRANSLATED, {"CRAWLSPACE_ROBOTS_DELAY_MAX": 0}),
    ("fetch_timeout", "300", TRANSLATED, {"DOWNLOAD_TIMEOUT": 300}),
    ("max_uri_recursion", "0", TRANSLATED, {"CRAWLSPACE_MAX_REPEATED_SEGMENTS": 1000}),
    ("cut_off", "5000", TRANSLATED, {"DOWNLOAD_MAXSIZE": 5000, "CRAWLSPACE_FILE_MAXSIZE": 5000, "CRAWLSPACE_TRUNCATE_PAGES": True}),
    ("cut_off", "0", LOST, {}),
    ("truncate", "yes", TRANSLATED, {"CRAWLSPACE_TRUNCATE_PAGES": True}),
    ("truncate", "no", DEFAULT, {}),
    ("csum_cut_off", "0", DEFAULT, {}),
    ("near_duplicate_detection", "no", DEFAULT, {}),
    ("near_duplicate_detection", "yes", TRANSLATED, {"CRAWLSPACE_NEAR_DUPLICATES": 6}),
    ("max_backoff_counter", "1", TRANSLATED, {"CRAWLSPACE_MAX_SITE_FAILURES": 3}),
    ("max_backoff_delay", "600", TRANSLATED, {"CRAWLSPACE_BACKOFF_MAX": 600}),
    ("proxy", "proxy.contoso.com:3128", TRANSLATED, {"CRAWLSPACE_PROXY": "http://proxy.contoso.com:3128"}),
    ("use_sitemaps", "yes", DEFAULT, {}),
    ("use_sitemaps", "no", TRANSLATED, {"CRAWLSPACE_FOLLOW": "links"}),
    ("use_javascript", "no", DEFAULT, {}),
    ("wqfilter", "yes", LOST, {}),
    ("info", "Sites\nCRAWLSPACE_MAX_SITES = 1", TRANSLATED, {}),
    ("crawlmode/mode", "FULL", DEFAULT, {}),
    ("crawlmode/mode", "DEPTH:2", TRANSLATED, {"DEPTH_LIMIT": 2}),
    ("crawlmode/mode", "DEPTH:0", TRANSLATED, {"CRAWLSPACE_DEFAULT_FOLLOW": False}),
    ("crawlmode/mode", "SOME", LOST, {}),
    ("crawlmode/fwdredirects", "no", TRANSLATED, {"CRAWLSPACE_FOLLOW_OFFSITE_REDIRECTS": False}),
    ("crawlmode/fwdredirects", "yes", DEFAULT, {}),
    ("crawlmode/other", "no", LOST, {}),
    ("variable_delay/Mon:08.00-Fri:18.00", "suspend", TRANSLATED, {"CRAWLSPACE_VARIABLE_DELAY": {"Mon:08.00-Fri:18.00": "suspend"}}),
    ("variable_delay/Mom:08-Fri:18", "5", LOST, {}),
    ("variable_delay/Mon:08-Fri:18", "fast", LOST, {}),
    ("http_errors/404", "KEEP", TRANSLATED, {"CRAWLSPACE_HTTP_ERRORS": {"404": "KEEP"}}),
    ("http_errors/404", "FORGET", LOST, {}),
    ("link_extraction/a", "yes", DEFAULT, {}),
    ("link_extraction/area", "no", TRANSLATED, {"CRAWLSPACE_LINK_TAGS": ["a", "frame", "iframe", "link", "meta"]}),
    ("link_extraction/object", "yes", LOST, {}),
    ("link_extraction/object", "no", DEFAULT, {}),
    ("passwd/http://a.contoso.com/", "CONTOSO\\anna:x", LOST, {}),
    ("passwd/http://a.contoso.com/", "anna:x:realm:ntlm", LOST, {}),
    ("passwd/http://a.contoso.com/", "anna", LOST, {}),
    (
        "passwd/https://a.contoso.com:8443/",
        "anna:x:y",
        TRANSLATED,
        {"CRAWLSPACE_SITES": {"a.contoso.com:8443": {"login": {"type": "auto", "user": "anna", "password": "env:DEMO_A_CONTOSO_COM_PASSWORD"}}}},
    ),
]  # fmt: skip


EXTENSIONS: list[tuple[set[str], Fate, dict[str, object]]] = [
    # extensions of the list, its fate, the setting
    ({*BUILT_IN}, DEFAULT, {}),
    ({*BUILT_IN, "log", "pdf"} - {"css"}, TRANSLATED, {"CRAWLSPACE_EXCLUDE_EXTENSIONS": ["+log", "+pdf", "-css"]}),
]


@pytest.mark.parametrize(("extensions", "fate", "own"), EXTENSIONS)
def test_a_list_near_the_built_in_one_is_written_as_its_changes(extensions: set[str], fate: Fate, own: dict[str, object]) -> None:
    found = imported_with("exclude_exts", *sorted(extensions))
    assert settings_of(found, delay=60) == own
    assert [one.fate for one in found.report.options if one.option == "exclude_exts"] == [fate]


@pytest.mark.parametrize("values", [["soon"], ["60"], []])
def test_what_names_no_other_delay_has_that_of_fast(values: list[str]) -> None:
    assert "DOWNLOAD_DELAY = 60\n" in imported_with("delay", *values).files["settings.py"]


def test_what_is_no_extension_is_named_beside_the_others() -> None:
    found = imported_with("exclude_exts", ".tar.gz", "*.log", ".php?")
    [reported] = [one for one in found.report.options if one.option == "exclude_exts"]
    assert (reported.fate, settings_of(found, delay=60)) == (LOST, {"CRAWLSPACE_EXCLUDE_EXTENSIONS": ["log"]})
    assert "'.tar.gz', '.php?': an extension follows the last dot" in reported.sentence


def imported_with(name: str, *values: str) -> ImportedCollection:
    """A collection with one option; `section/name` is in a section."""
    section, _, option = name.rpartition("/") if not name.startswith("passwd/") else ("passwd", "/", name.removeprefix("passwd/"))
    members = "".join(f"<member> {value} </member>" for value in values if value)
    attrib = f'<attrib name="{option}" type="list-string">{members}</attrib>'
    return of_content(f'<section name="{section}">{attrib}</section>' if section else attrib)


@pytest.mark.parametrize("option", SPECIFIED)
def test_each_option_of_the_specification_is_known(option: str) -> None:
    sentences = [one.sentence for one in imported("every_option").report.options if one.option == option]
    assert sentences
    assert not [sentence for sentence in sentences if "is not known" in sentence]


@pytest.mark.parametrize(("name", "value", "fate", "settings"), OPTIONS, ids=[f"{row[0]} {row[1]}" for row in OPTIONS])
def test_what_becomes_of_an_option(name: str, value: str, fate: Fate, settings: dict[str, object]) -> None:
    found = imported_with(name, value)
    [reported] = [one for one in found.report.options if one.option == name]
    assert reported.fate is fate, reported.sentence
    assert settings_of(found, delay=60) == settings
    assert found.report.lost == fate.is_lost


def test_every_line_of_the_file_is_in_the_report() -> None:
    """Each attrib and member of the corpus, but for those in sections that are reported as a whole."""
    found = {one.line for one in imported("every_option").report.options}
    lines = (CORPUS / "every_option.xml").read_text(encoding="utf-8").splitlines()
    options = {number for number, line in enumerate(lines, 1) if "<attrib" in line}
    within = {
        number
        for number in options
        if lines[number - 2].strip().startswith(('<section name="storage', '<section name="log', '<section name="parameters'))
    }
    assert options - found - within == set()


LOGIN = [
    # options of a Login (`section/name` for those of `parameters`) -> the log-in by site, or why there is none
    (
        {"scheme": "https", "site": "sso.contoso.com", "form": "/in", "parameters/user": "anna", "parameters/pwd": "S3cret"},
        {"sso.contoso.com": ("https://sso.contoso.com/in", {"user": "anna", "pwd": "env:DEMO_SSO_CONTOSO_COM_PWD"})},
    ),
    (
        {
            "html_form": "https://sso.contoso.com/",
            "form": "/in",
            "sites": "a.contoso.com:8443",
            "parameters": "who=S3cret&login=anna",
        },
        {"a.contoso.com:8443": ("https://sso.contoso.com/", {"who": "env:DEMO_SSO_CONTOSO_COM_WHO", "login": "anna"})},
    ),
    ({"parameters/user": "anna"}, "it names neither the page of its form (html_form) nor the host of it (site)"),
    ({"site": "a.contoso.com"}, "it names no field of the form with its value"),
    ({"site": "a b", "parameters/user": "anna"}, "the page of its form is no URL"),
    ({"site": "a.contoso.com", "sites": "*.com", "parameters/user": "anna"}, "it is for '*.com', which hosts of anybody match"),
    ({"site": "a.contoso.com", "sites": "a b", "parameters/user": "anna"}, "it is for 'a b': "),
]


@pytest.mark.parametrize(("options", "expected"), LOGIN)
def test_a_login_is_a_log_in_by_a_form(options: dict[str, str], expected: dict[str, tuple[str, dict[str, str]]] | str) -> None:
    own = {name: value.replace("&", "&amp;") for name, value in options.items()}
    written = "".join(f'<attrib name="{name}"> {value} </attrib>' for name, value in own.items() if "/" not in name)
    fields = "".join(f'<attrib name="{name[11:]}"> {value} </attrib>' for name, value in own.items() if "/" in name)
    login = f'<Login name="x">{written}<section name="parameters">{fields}</section></Login>'
    found = of_content(login)
    text = "".join([*found.files.values(), *found.report.lines()])
    assert "S3cret" not in text
    if isinstance(expected, str):
        assert f"Login x: no counterpart, because it cannot be used: {expected}" in text
        assert "CRAWLSPACE_SITES" not in settings_of(found)
        return
    sites = {site: {"login": {"type": "form", "url": url, "fields": given}} for site, (url, given) in expected.items()}
    assert settings_of(found, delay=60) == {"CRAWLSPACE_SITES": sites}


FEEDS = '<section name="rss"><attrib name="start_uris"> http://a.contoso.com/feed </attrib></section>'
STARTS = '<attrib name="start_uris"> http://a.contoso.com/ </attrib>'


def test_feeds_are_sitemaps_beside_start_urls_and_else_start_urls() -> None:
    beside, alone = of_content(STARTS + FEEDS), of_content(FEEDS)
    assert settings_of(beside, delay=60) == {"CRAWLSPACE_SITEMAPS": ["http://a.contoso.com/feed"]}
    assert settings_of(alone, delay=60) == {}
    assert alone.files["start_urls.txt"].endswith("# demo.xml:1: rss/start_uris\nhttp://a.contoso.com/feed\n")


def test_sitemaps_are_read_where_feeds_are() -> None:
    found = of_content(f'{STARTS}<attrib name="use_sitemaps"> no </attrib>{FEEDS}')
    assert "use_sitemaps: no counterpart, because sitemaps are read where feeds are" in "\n".join(found.report.lines())
    assert "CRAWLSPACE_FOLLOW" not in settings_of(found)


def test_the_intervals_of_adaptive_cycles() -> None:
    section = '<section name="adaptive"><attrib name="refresh_count"> 6 </attrib><attrib name="coverage_max_pct"> 20 </attrib></section>'
    found = of_content(f'<attrib name="refresh"> 1440 </attrib><attrib name="refresh_mode"> adaptive </attrib>{section}')
    assert settings_of(found, delay=60) == {"CRAWLSPACE_REFRESH_MIN": "240m", "CRAWLSPACE_REFRESH_MAX": "1200m"}
    assert found.report.lost == 0


def test_a_sub_domain_has_rules_and_log_ins_of_its_own() -> None:
    part = """<SubDomain name="p">
      <attrib name="delay"> 9 </attrib> <attrib name="if_modified_since"> no </attrib> <attrib name="use_sitemaps"> no </attrib>
      <section name="include_domains"> <attrib name="exact"> a.contoso.com </attrib> </section>
      <section name="include_uris"> <attrib name="prefix"> http://a.contoso.com/docs/ </attrib> </section>
      <section name="exclude_uris"> <attrib name="contains"> /drafts/ </attrib> </section>
      <Login name="x"> <attrib name="html_form"> https://a.contoso.com/in </attrib>
        <section name="parameters"> <attrib name="user"> anna </attrib> </section> </Login>
    </SubDomain>"""
    found = of_content(STARTS + part)
    login = {"type": "form", "url": "https://a.contoso.com/in", "fields": {"user": "anna"}}
    own = {"delay": 9, "conditional_get": False, "follow": "links", "login": login}
    assert settings_of(found, delay=60) == {"CRAWLSPACE_SITES": {"a.contoso.com": own}}
    rules = parse_rules_xml(found.files["rules.xml"].encode(), file="rules.xml")
    compiled = CompiledActions(rules, accept=True, index=True, follow=True)
    urls = [
        "http://a.contoso.com/docs/a",
        "http://a.contoso.com/b",
        "http://a.contoso.com/docs/drafts/a",
        "http://b.contoso.com/drafts/",
    ]
    assert [compiled.evaluate(parse(url)).accept for url in urls] == [True, False, False, True]
    assert found.report.lost == 0


PART = '<section name="include_domains"> <attrib name="exact"> a.contoso.com </attrib> </section>'
# what a SubDomain has beside its host -> its fate, its entry in CRAWLSPACE_SITES
OF_PARTS: list[tuple[str, str, Fate, dict[str, object]]] = [
    ("delay", "9", TRANSLATED, {"delay": 9}),
    ("refresh", "60", TRANSLATED, {"refresh_min": "60m", "refresh_max": "60m"}),
    ("refresh", "1440", TRANSLATED, {"refresh_min": "1440m", "refresh_max": "1440m"}),
    ("refresh", "1441", LOST, {}),
    ("refresh", "0", LOST, {}),
    ("variable_delay/Wed:09-Wed:17", "20", TRANSLATED, {"variable_delay": {"Wed:09-Wed:17": 20}}),
    ("variable_delay/Wen:09-Wed:17", "20", LOST, {}),
    ("proxy", "proxy.contoso.com:3128", TRANSLATED, {"proxy": "http://proxy.contoso.com:3128"}),
    (
        "proxy",
        "anna:Geheim1@proxy.contoso.com:3128",
        TRANSLATED,
        {"proxy": {"url": "http://proxy.contoso.com:3128", "user": "anna", "password": "env:DEMO_SUBDOMAIN_P_PROXY_PASSWORD"}},
    ),
    ("proxy", "a b", LOST, {}),
    ("user_agent", "FAST Enterprise Crawler 6", TRANSLATED, {"user_agent": "FAST Enterprise Crawler 6"}),
    ("allowed_types", "Text/HTML", TRANSLATED, {"mime_types": ["text/html"]}),
    ("exclude_exts", ".PDF", TRANSLATED, {"exclude_extensions": ["pdf"]}),
    ("exclude_exts", "", TRANSLATED, {"exclude_extensions": "none"}),
    ("exclude_exts", ".tar.gz", LOST, {"exclude_extensions": "none"}),
    ("cut_off", "5000", TRANSLATED, {"download_maxsize": 5000, "file_maxsize": 5000}),
    ("cut_off", "0", LOST, {}),
    ("robots", "no", LOST, {}),
]


@pytest.mark.parametrize(("name", "value", "fate", "own"), OF_PARTS, ids=[f"{row[0]} {row[1]}" for row in OF_PARTS])
def test_what_becomes_of_an_option_of_a_sub_domain(
    name: str, value: str, fate: Fate, own: dict[str, object], tmp_path: Path
) -> None:
    refresh = '<attrib name="refresh"> 1440 </attrib>'
    found = of_content(f'{STARTS}{refresh}{PART}<SubDomain name="p">{PART}{attribute(name, value)}</SubDomain>')
    [reported] = [one for one in found.report.options if one.option == f"SubDomain p/{name}"]
    assert reported.fate is fate, reported.sentence
    written = settings_of(found, delay=60)
    assert written.get("CRAWLSPACE_SITES", {}) == ({"a.contoso.com": own} if own else {})
    assert ("CRAWLSPACE_TRUNCATE_PAGES" in written) is ("download_maxsize" in own)
    assert "Geheim1" not in "".join([*found.files.values(), *found.report.lines()])
    assert findings("demo", tmp_path, found) == []


@pytest.mark.parametrize("name", ["delay", "variable_delay/Wed:09-Wed:17"])
def test_a_sub_domain_without_a_host_has_no_entry(name: str) -> None:
    found = of_content(f'<SubDomain name="p">{attribute(name, "9")}</SubDomain>')
    [reported] = [one for one in found.report.options if one.option == f"SubDomain p/{name}"]
    assert "the sub-domain names no host" in reported.sentence
    assert settings_of(found, delay=60) == {}


def attribute(name: str, value: str) -> str:
    """An attrib with a value; `section/name` is in a section."""
    section, _, option = name.rpartition("/")
    member = f"<member> {value} </member>" if value else ""
    attrib = f'<attrib name="{option}" type="list-string">{member}</attrib>'
    return f'<section name="{section}">{attrib}</section>' if section else attrib


def of_content(content: str) -> ImportedCollection:
    """A collection with this in it."""
    data = f'<CrawlerConfig><DomainSpecification name="demo">{content}</DomainSpecification></CrawlerConfig>'
    [found] = read_fast_xml(data.encode(), file="demo.xml")
    return translate_fast(found, file="demo.xml", folder=CORPUS, name="demo", defaults=DEFAULTS)


def test_unknown_names_are_reported_with_what_may_be_meant() -> None:
    sentences = {one.option: one.sentence for one in imported("every_option").report.options}
    assert sentences["dealy"] == "no counterpart, because 'dealy' is not known: did you mean 'delay'?"
    assert sentences["exlude_uris"] == "no counterpart, because 'exlude_uris' is not known: did you mean 'exclude_uris'?"


def test_no_password_is_printed_or_written() -> None:
    source = (CORPUS / "every_option.xml").read_text(encoding="utf-8")
    found = imported("every_option")
    texts = [*found.files.values(), *found.report.lines(), *map(repr, (one.as_json() for one in found.report.options))]
    assert all(secret in source for secret in SECRETS)
    assert not [secret for secret in SECRETS for text in texts if secret in text]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("start_uris", "http://anna:Geheim1@www.contoso.com/"),
        ("include_uris/prefix", "http://anna:Geheim1@www.contoso.com/"),
        ("exclude_uris/exact", "http://anna:Geheim1@www.contoso.com/"),
        ("exclude_domains/exact", "anna:Geheim1@www.contoso.com"),
        ("password", "Geheim1"),
        ("delay", "http://anna:Geheim1@www.contoso.com/"),
        ("start_uri_files", "http://anna:Geheim1@www.contoso.com/list"),
        ("passwd/http://www.contoso.com/", "Geheim1"),
        ("proxy", "anna:Geheim1@proxy.contoso.com:80"),
        ("proxy", "ftp://anna:Geheim1@proxy.contoso.com:80/x y"),
    ],
)
def test_a_password_that_is_elsewhere_gets_nowhere(name: str, value: str) -> None:
    found = imported_with(name, value)
    assert "Geheim1" not in "".join([*found.files.values(), *found.report.lines()])


def test_an_option_that_comes_twice_is_reported() -> None:
    data = b"<CrawlerConfig><DomainSpecification name='demo'>\n<attrib name='delay'> 5 </attrib>\n<attrib name='delay'> 6 </attrib></DomainSpecification></CrawlerConfig>"
    [section] = read_fast_xml(data, file="demo.xml")
    found = translate_fast(section, file="demo.xml", folder=Path(), name="demo", defaults=DEFAULTS)
    assert [*found.report.lines()][:2] == [
        "demo.xml:2: delay: no counterpart, because it comes again in line 3, which counts",
        "demo.xml:3: delay: translated to DOWNLOAD_DELAY = 6",
    ]
    assert settings_of(found, delay=60) == {"DOWNLOAD_DELAY": 6}


def test_fasts_delay_holds_where_none_is_named() -> None:
    found = imported_with("max_sites", "5")
    assert "\nDOWNLOAD_DELAY = 60\n" in found.files["settings.py"]
    assert "delay: translated to DOWNLOAD_DELAY = 60, the default of FAST" in "\n".join(found.report.lines())


@pytest.mark.parametrize(
    "name",
    [
        "exclude_uris/prefix",
        "exclude_uris/exact",
        "exclude_uris/contains",
        "exclude_domains/exact",
        "exclude_domains/ipmask",
        "info",
    ],
)
def test_a_value_of_two_lines_writes_no_line_of_its_own(name: str) -> None:
    value = "http://a.contoso.com/x&#10;allow domain *" if "uris" in name else "10.0.0.1&#10;allow domain *"
    files = imported_with(name, value).files
    assert not [line for text in files.values() for line in text.splitlines() if line.startswith("allow domain *")]


def test_the_lines_of_a_file_are_reported_together() -> None:
    reported = [one.sentence for one in imported("open").report.options if one.option == "exclude_domains/file"]
    assert reported == [r"translated to the 2 lines of 'C:\\fast\\lists\\hosts.txt', each as a value of its own"]
