"""What lint finds in one collection, in its proxies, and in the global crawl space."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crawlspace.config.collection import read_settings_file
from crawlspace.errors import ConfigError
from crawlspace.lint.finding import findings_of
from crawlspace.model import NewUrl, Source, State
from crawlspace.state.changes import Change
from crawlspace.urls import parse
from tests.contract.memory.store import MemoryStore
from tests.unit.lint.linted import RULES, START, found_in, place_of, reviewed, store_of

LONG = f"""<Rules><Rule><Path val="/"/>
  <AddMeta name="a" value="{"x" * 4095}"/>
  <Priority shift="1"/>   <AddMeta name="b" value="{"x" * 4096}"/>
</Rule></Rules>"""


IGNORING = '<Rules><Rule><Host val="www.example.com"/><Ignore/></Rule></Rules>'


# files -> place, level and code of each finding
FINDINGS: list[tuple[str, dict[str, str], list[str]]] = [
    ("nothing", {"start_urls.txt": START, "crawl.rules": RULES}, []),
    (
        "mistakes in both files",
        {"start_urls.txt": "www.example.com\n", "crawl.rules": "alow domain a\nforbid domain\n"},
        ["crawl.rules:1:1 error syntax", "crawl.rules:2:14 error syntax", "start_urls.txt:1:1 error syntax"],
    ),
    (
        "extraction rules",
        {
            "start_urls.txt": "www.example.com\n",
            "crawl.rules": RULES,
            "extract.toml": '[[field]]\nname = "title"\ncss = "a >"\n[[texts]]\n',
        },
        [
            "extract.toml:2:8 error syntax",
            "extract.toml:3:7 error syntax",
            "extract.toml:4:1 error syntax",
            "start_urls.txt:1:1 error syntax",
        ],
    ),
    (
        "settings",
        {
            "start_urls.txt": START,
            "settings.py": "A = 1\n\nCRAWLSPACE_MAX_PATH_DEEPTH = 3\nDEPTH_LIMIT = -1\nCRAWLSPACE_QQ = 1\n",
        },
        ["settings.py:3:1 error setting", "settings.py:4:1 error setting", "settings.py:5:1 error setting"],
    ),
    (
        "all faulty settings",
        {
            "start_urls.txt": START,
            "settings.py": "DEPTH_LIMIT = -1\nCRAWLSPACE_MAX_SITES = 0\nCRAWLSPACE_REFRESH_MIN = 'x'\nCRAWLSPACE_SITES = 3\nRETRY_TIMES = 'no'\n"
            "CRAWLSPACE_STORE_URL = 'x:y'\nUSER_AGENT = 1\nITEM_PIPELINES = {}\n",
        },
        [f"settings.py:{line}:1 error setting" for line in range(1, 9)],
    ),
    (
        "intervals of which none fits the default of the other",
        {
            "start_urls.txt": START,
            "crawl.rules": RULES,
            "settings.py": "CRAWLSPACE_REFRESH_MIN = '7d'\nCRAWLSPACE_REFRESH_MAX = '2h'\nDEPTH_LIMIT = -1\n",
        },
        ["settings.py:1:1 error setting", "settings.py:3:1 error setting"],
    ),
    (
        "a largest interval below the default of the smallest",
        {
            "start_urls.txt": START,
            "crawl.rules": RULES,
            "settings.py": "CRAWLSPACE_REFRESH_MAX = '2h'\nRETRY_TIMES = -1\n",
        },
        ["settings:0:0 error setting", "settings.py:2:1 error setting"],
    ),
    (
        "faulty settings and rules",
        {"crawl.rules": "x\n", "settings.py": "DEPTH_LIMIT = -1\n\nRETRY_TIMES = -1\n"},
        [
            "crawl.rules:1:1 error syntax",
            "demo:0:0 error collection",
            "settings.py:1:1 error setting",
            "settings.py:3:1 error setting",
        ],
    ),
    ("no start URL", {"crawl.rules": RULES}, ["demo:0:0 error collection"]),
    (
        "a start URL outside the rules",
        {"start_urls.txt": START + "# here\nhttp://other.example/\n", "crawl.rules": RULES},
        ["start_urls.txt:3:1 warning start-url-refused"],
    ),
    (
        "the one start URL outside rules.xml",
        {"start_urls.txt": START, "crawl.rules": RULES, "rules.xml": IGNORING},
        ["start_urls.txt:1:1 error start-url-refused"],
    ),
    (
        "one of two start URLs outside rules.xml",
        {"start_urls.txt": "http://docs.example.com/\n" + START, "crawl.rules": "", "rules.xml": IGNORING},
        ["crawl.rules:1:1 warning no-domain-rules", "start_urls.txt:2:1 warning start-url-refused"],
    ),
    (
        "a start URL outside the limits of its site",
        {
            "start_urls.txt": START + "http://www.example.com/a/b\n",
            "crawl.rules": RULES,
            "settings.py": "CRAWLSPACE_SITES = {'www.example.com': {'max_path_depth': 0}}\n",
        },
        ["start_urls.txt:2:1 warning start-url-refused"],
    ),
    (
        "a value that no URL has",
        {"start_urls.txt": START, "crawl.rules": RULES, "rules.xml": "<Rules>\n<Rule><Host val='a/b'/><Ignore/></Rule></Rules>"},
        ["rules.xml:2:1 warning xml-never-matches"],
    ),
    (
        "extensions that are added and taken away without effect",
        {
            "start_urls.txt": START,
            "crawl.rules": RULES,
            "settings.py": "A = 1\nCRAWLSPACE_EXCLUDE_EXTENSIONS = '+log -gift'\n",
        },
        ["settings.py:2:1 warning extension-without-effect"],
    ),
    (
        "several files of start URLs",
        {
            "start_urls.txt": START,
            "more.txt": f"{START}\n# one that is refused, and an equal one\nhttp://other.example/\nhttp://other.example/\n",
            "crawl.rules": RULES,
            "settings.py": "CRAWLSPACE_START_URL_FILES = ['more.txt']\n",
        },
        ["more.txt:4:1 warning start-url-refused"],
    ),
    (
        "files of start URLs that are not there, and mistakes beside it",
        {"start_urls.txt": START, "crawl.rules": "alow domain a\n", "settings.py": "\nCRAWLSPACE_START_URL_FILES = ['no.txt']\n"},
        ["crawl.rules:1:1 error syntax", "settings.py:2:1 error setting"],
    ),
    (
        "links from what is no element or pair",
        {"start_urls.txt": START, "crawl.rules": RULES, "settings.py": "CRAWLSPACE_LINK_TAGS = ['a', 'img']\n"},
        ["settings.py:1:1 error setting"],
    ),
    (
        "fields too long to be inherited along links",
        {"start_urls.txt": START, "crawl.rules": RULES, "rules.xml": LONG},
        ["rules.xml:3:27 warning xml-metadata-too-long"],
    ),
    (
        "fields that are not inherited along links",
        {
            "start_urls.txt": START,
            "crawl.rules": RULES,
            "rules.xml": LONG,
            "settings.py": "CRAWLSPACE_METADATA_ALONG_LINKS = False\n",
        },
        [],
    ),
    (
        "settings of pages that are not rendered",
        {
            "start_urls.txt": START,
            "crawl.rules": RULES,
            "settings.py": "CRAWLSPACE_RENDER_HOSTS = ['cdn.example']\nCRAWLSPACE_RENDER_WAIT_FOR = 'main'\n"
            "CRAWLSPACE_SITES = {'a.example': {'render': 'never'}, 'b.example': {'render_hosts': ['cdn.example']}}\n",
            "rules.xml": "<Rules><Rule><Path val='/a'/>\n<Render mode='never'/></Rule></Rules>",
        },
        [
            "rules.xml:2:1 warning xml-render-without-effect",
            *(f"settings.py:{line}:1 warning render-without-effect" for line in (1, 2, 3, 3)),
        ],
    ),
    (
        "routes behind # where nothing is rendered",
        {"start_urls.txt": START, "crawl.rules": RULES, "settings.py": "# own\nCRAWLSPACE_HASH_ROUTES = True\n"},
        ["settings.py:2:1 warning render-without-effect"],
    ),
    (
        "routes behind # of a site that is not rendered",
        {
            "start_urls.txt": START,
            "crawl.rules": RULES,
            "settings.py": "CRAWLSPACE_SITES = {'a.example': {'hash_routes': True}, 'b.example': {'hash_routes': True, 'render': 'auto'}}",
        },
        ["settings.py:1:1 warning render-without-effect"],
    ),
    (
        "settings of pages that some rule has rendered",
        {
            "start_urls.txt": START,
            "crawl.rules": RULES,
            "settings.py": "CRAWLSPACE_RENDER_HOSTS = ['cdn.example']\n"
            "CRAWLSPACE_SITES = {'b.example': {'render_hosts': ['cdn.example'], 'render_wait_for': 'main'}}\n",
            "rules.xml": "<Rules><Rule><Path val='/'/><Render/></Rule><Rule><Path val='/a'/>\n<Render mode='never'/></Rule></Rules>",
        },
        [],
    ),
    (
        "settings of one site that is not rendered",
        {
            "start_urls.txt": START,
            "crawl.rules": RULES,
            "settings.py": "CRAWLSPACE_RENDER = 'auto'\nCRAWLSPACE_RENDER_HOSTS = ['cdn.example']\n"
            "CRAWLSPACE_SITES = {'a.example': {'render': 'auto'}, 'b.example': {'render': 'never', 'render_wait_for': 'main'}}\n",
        },
        ["settings.py:3:1 warning render-without-effect"] * 2,
    ),
    (
        "tests of rules that fail, and one that is met",
        {
            "start_urls.txt": START,
            "crawl.rules": RULES,
            "tests.rules": f"admit {START.split()[0]}\nrefuse {START.split()[0]}\nadmit http://other.example/\n",
        },
        ["tests.rules:2:8 error rule-test", "tests.rules:3:7 error rule-test"],
    ),
    (
        "a test that cannot be read",
        {"start_urls.txt": START, "crawl.rules": RULES, "tests.rules": "admit\n"},
        ["tests.rules:1:1 error syntax"],
    ),
    (
        "rules",
        {"start_urls.txt": START, "crawl.rules": "allow domain *\nallow domain www.example.com\n"},
        ["crawl.rules:2:14 warning never-applies", "crawl.rules:2:14 warning no-final-forbid"],
    ),
]


@pytest.mark.parametrize(("files", "findings"), [row[1:] for row in FINDINGS], ids=[row[0] for row in FINDINGS])
def test_findings(tmp_path: Path, files: dict[str, str], findings: list[str]) -> None:
    assert found_in(tmp_path, files) == findings


def test_address_rules_with_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"start_urls.txt": START, "crawl.rules": RULES + "forbid address 0.0.0.0/0\nforbid address ::/0\n"}
    assert found_in(tmp_path, files) == []
    monkeypatch.setenv("http_proxy", "http://proxy.example.com:3128")
    assert found_in(tmp_path, files) == ["crawl.rules:3:16 warning addresses-with-proxy"]
    assert found_in(tmp_path, files | {"settings.py": "HTTPPROXY_ENABLED = False\n"}) == []
    assert found_in(tmp_path, files | {"settings.py": "CRAWLSPACE_PROXY = 'direct'\n"}) == []


def test_a_settings_file_that_does_not_run(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text("import os\nDEPTH_LIMIT = nothing\n")
    with pytest.raises(ConfigError) as caught:
        read_settings_file(tmp_path)
    (finding,) = findings_of(caught.value, tmp_path)
    assert place_of(finding) == "settings.py:2:1 error setting"
    assert finding.message.startswith("NameError:")


ENCODING = [
    # file, line and column of what is not UTF-8, among other mistakes
    ("crawl.rules", b"alow domain a\n# \xe4\nforbid domain\n", ["crawl.rules:1:1", "crawl.rules:2:3", "crawl.rules:3:14"]),
    ("start_urls.txt", b"www.a\n \xe4\n", ["start_urls.txt:1:1", "start_urls.txt:2:2"]),
]


@pytest.mark.parametrize(("file", "content", "places"), ENCODING)
def test_an_encoding_hides_no_other_mistake(tmp_path: Path, file: str, content: bytes, places: list[str]) -> None:
    files = {"start_urls.txt": START, "crawl.rules": RULES}
    found_in(tmp_path, files)
    (tmp_path / "demo" / file).write_bytes(content)
    assert found_in(tmp_path, {}) == [f"{place} error syntax" for place in places]


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    found_in(tmp_path, {"start_urls.txt": START, "crawl.rules": RULES})
    for file, what in (("rules.xml", "not a regular file but a pipe"), ("start_urls.txt", "cannot be read: No such file")):
        (tmp_path / "demo" / file).unlink(missing_ok=True)
        if file == "rules.xml":
            os.mkfifo(tmp_path / "demo" / file)
        else:
            (tmp_path / "demo" / file).symlink_to("moved")
        findings = reviewed(tmp_path, "demo", {})[0]
        assert [(one.file, one.level, one.code) for one in findings if what in one.message] == [("demo", "error", "collection")]


# what is known: URL and whether it is crawled -> findings
KNOWN: list[tuple[dict[str, bool], list[str]]] = [
    ({"http://www.example.com/": True, "http://docs.example.com/": True}, []),
    ({"http://www.example.com/": True}, ["crawl.rules:2:14 warning no-known-url"]),
    ({"http://www.example.com/": True, "http://www.example.com/a": False}, []),
    ({}, []),
]


@pytest.mark.parametrize(("known", "findings"), KNOWN)
def test_a_rule_without_effect_is_found_once_all_is_crawled(tmp_path: Path, known: dict[str, bool], findings: list[str]) -> None:
    store = MemoryStore()
    for url, done in known.items():
        parsed = parse(url)
        store.discover([NewUrl(parsed.key, url, parsed.site, Source.INDEX_FOLLOW, 0, 1, 0, 1)], now=1)
        state = store.get(url)
        assert state is not None
        if done:
            state.state, state.status = State.DONE, 200
            store.record([Change(state)], now=1)
    rules = "allow domain www.example.com\nallow domain docs.example.com\nforbid domain *\n"
    assert found_in(tmp_path, {"start_urls.txt": START, "crawl.rules": rules}, store=store) == findings


GLOBAL: list[tuple[str, dict[str, str], list[str]]] = [
    ("domain rules", {"global.rules": "allow domain a.example\nallow domain *.b.example\n"}, []),
    ("a rule that can never apply", {"global.rules": "allow domain *.a\nforbid domain b.a\n"}, ["global.rules:2:15 warning never-applies"]),
    ("capitals", {"global.rules": "# hosts\nallow domain Sales.a\n"}, ["global.rules:2:14 warning capitals-in-host"]),
    (
        "capitals that count for nothing",
        {"global.rules": "allow domain Sales.a\n", "settings.py": "CRAWLSPACE_HOST_CASE_SENSITIVE = False\n"},
        [],
    ),
    (
        "other rules",
        {"global.rules": "allow prefix http://a/\nforbid address 10.0.0.1\nallow domian a\n", "crawl.rules": "allow\n"},
        [
            "crawl.rules:1:6 error syntax",
            "global.rules:1:7 error syntax",
            "global.rules:2:8 error syntax",
            "global.rules:3:7 error syntax",
        ],
    ),
    (
        "a file that is not there",
        {"settings.py": "\nCRAWLSPACE_GLOBAL_RULES = 'none.rules'\n", "crawl.rules": "allow\n"},
        ["crawl.rules:1:6 error syntax", "settings.py:2:1 error setting"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("files", "findings"), [row[1:] for row in GLOBAL], ids=[row[0] for row in GLOBAL])
def test_the_global_crawl_space(tmp_path: Path, files: dict[str, str], findings: list[str]) -> None:
    assert found_in(tmp_path, {"start_urls.txt": START, "crawl.rules": RULES, **files}) == findings


URL = "http://proxy.example.com:3128"
SITE = "CRAWLSPACE_SITES = {'www.example.com': {'proxy': %r}}\n"
LITERAL, UNUSED = "settings.py:1:1 error literal-secret", "settings.py:1:1 warning unused-no-proxy"
ADDRESSES = RULES + "forbid address 0.0.0.0/0\nforbid address ::/0\n"
PROXY_FINDINGS: list[tuple[str, str, list[str]]] = [
    # settings, rules, findings
    (f"CRAWLSPACE_PROXY = {URL!r}\n",                                                 RULES,     []),
    ("CRAWLSPACE_PROXY = 'env:NO_SUCH_VARIABLE'\n",                                   RULES,     []),
    ("CRAWLSPACE_PROXY = 'http://a:x@proxy.example.com:3128'\n",                      RULES,     [LITERAL]),
    (f"CRAWLSPACE_PROXY = {{'url': {URL!r}, 'user': 'a', 'password': 'x'}}\n",        RULES,     [LITERAL]),
    (SITE % "http://a:x@proxy.example.com:3128",                                      RULES,     [LITERAL]),
    (SITE % URL,                                                                      ADDRESSES, ["crawl.rules:3:16 warning addresses-with-proxy"]),
    (SITE % "direct",                                                                 ADDRESSES, []),
    (f"CRAWLSPACE_PROXY = {URL!r}\nHTTPPROXY_ENABLED = False\n",                      ADDRESSES, ["settings.py:1:1 warning proxies-off"]),
    ("CRAWLSPACE_NO_PROXY = ['www.example.com']\n",                                   RULES,     [UNUSED]),
    (f"CRAWLSPACE_NO_PROXY = 'wwww.example.com'\nCRAWLSPACE_PROXY = {URL!r}\n",       RULES,     [UNUSED]),
    (f"CRAWLSPACE_NO_PROXY = 'example.com, allowed.net'\nCRAWLSPACE_PROXY = {URL!r}\n", "allow domain allowed.net\n" + RULES, []),
    ("CRAWLSPACE_PROXY = 'socks6://proxy:1080'\n",                                    RULES,     ["settings.py:1:1 error setting"]),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "rules", "findings"), PROXY_FINDINGS)
def test_findings_about_proxies(tmp_path: Path, settings: str, rules: str, findings: list[str]) -> None:
    assert found_in(tmp_path, {"start_urls.txt": START, "crawl.rules": rules, "settings.py": settings}) == findings


def test_the_warning_names_the_sites(tmp_path: Path) -> None:
    files = {"start_urls.txt": START, "crawl.rules": ADDRESSES, "settings.py": SITE % URL}
    [finding] = reviewed(tmp_path, "demo", files)[0]
    assert finding.message.startswith("address rules are not applied to www.example.com: requests go through a proxy")


def test_a_known_site_is_matched(tmp_path: Path) -> None:
    files = {
        "start_urls.txt": START,
        "crawl.rules": RULES,
        "settings.py": f"CRAWLSPACE_PROXY = {URL!r}\nCRAWLSPACE_NO_PROXY = '*.other.net'\n",
    }
    of_a_rule = "crawl.rules:1:14 warning no-known-url"
    assert found_in(tmp_path, files, store=store_of({"http://a.other.net/": 200})) == [of_a_rule]
    assert found_in(tmp_path, files, store=store_of({})) == ["settings.py:2:1 warning unused-no-proxy"]
