"""Which rules the add-on takes, and what it says of those with mistakes and of settings without effect."""

from __future__ import annotations

import subprocess
import sys

import pytest

from crawlspace.addon import CrawlSpaceRules
from crawlspace.runtime.components.addon_rules import NOFOLLOW, NOINDEX_ITEMS
from crawlspace.runtime.components.addon_settings import RULES_DIR, START_URLS
from crawlspace.runtime.components.addon_settings import SETTINGS as SETTINGS_THAT_HOLD
from crawlspace.runtime.components.rule_middleware import RULES
from tests.command_line import ROOT
from tests.conftest import assert_same
from tests.integration.plain_project import SETTINGS, PlainProject, fetched
from tests.integration.test_addon import NO_RULE_MATCHES
from tests.sites import Site, page, serve

# --- which rules ----------------------------------------------------------------------------------------------------

FOLDERS = [
    # files; settings; the paths fetched of /, /a and /b
    ({"rules/crawl.rules": "forbid prefix http://*/a\n"}, "", ["/", "/b"]),
    ({"rules/shop/crawl.rules": "forbid prefix http://*/b\n", "rules/crawl.rules": "forbid domain *\n"}, "", ["/", "/a"]),
    ({"rules/other/crawl.rules": "forbid domain *\n", "rules/crawl.rules": ""}, "", ["/", "/a", "/b"]),
    ({"conf/crawl.rules": "forbid prefix http://*/a\n"}, "CRAWLSPACE_RULES_DIR = 'conf'\n", ["/", "/b"]),
    ({"rules/rules.xml": "<Rules><Rule><Path val='/a'/><Ignore/></Rule></Rules>"}, "", ["/", "/b"]),
]


@pytest.mark.parametrize(("files", "settings", "paths"), FOLDERS)
def test_where_the_rules_lie(plain: PlainProject, files: dict[str, str], settings: str, paths: list[str]) -> None:
    plain.write({**files, "settings.py": SETTINGS + settings})
    with serve(Site({"/": page("Home", links=["/a", "/b"])}, otherwise=page("Any"))) as server:
        plain.crawl(server.url("/")).succeeded()
        assert_same(fetched(server), paths)


BAD_RULES = "alow domain a.example\nforbid domian b.example\n"
BAD_XML = "<Rules>\n  <Rule><Domian val='a.example'/><Ignore/></Rule>\n</Rules>\n"


MISTAKES = [
    # files, beside a settings.py with these lines; what is said
    ({}, "", ["there is no crawl.rules and no rules.xml in ", "rules", "CRAWLSPACE_RULES_DIR"]),
    ({"rules/shop/note": "", "rules/crawl.rules": ""}, "", ["there is no crawl.rules", "rules/shop"]),
    ({"rules": "a file\n"}, "", ["there is no crawl.rules"]),
    (
        {"rules/crawl.rules": BAD_RULES, "rules/rules.xml": BAD_XML},
        "",
        ["rules/crawl.rules:1:1: ", "    alow domain a.example\n    ^\n", "crawl.rules:2:8: ", "rules/rules.xml:2:"],
    ),
    ({"rules/crawl.rules": ""}, "CRAWLSPACE_MAX_PATH_DEEPTH = 3\n", ["did you mean CRAWLSPACE_MAX_PATH_DEPTH?"]),
    ({"rules/crawl.rules": ""}, "CRAWLSPACE_MAX_PATH_DEPTH = -3\n", ["CRAWLSPACE_MAX_PATH_DEPTH is -3; it must be at least 0"]),
    ({"conf/crawl.rules": ""}, "CRAWLSPACE_RULE_DIR = 'conf'\n", ["did you mean CRAWLSPACE_RULES_DIR?"]),
    ({"rules/crawl.rules": "alow domain a\n"}, "LOG_ENABLED = False\n", ["crawl.rules:1:1: "]),
    ({"rules/crawl.rules": ""}, "CRAWLSPACE_FOLLOW_OFFSITE_LINKS = False\n", ["name them in CRAWLSPACE_START_URLS"]),
]


PROCESSES = [(), ("-s", "FORCE_CRAWLER_PROCESS=1"), ("-s", "TWISTED_REACTOR_ENABLED=0")]


@pytest.mark.parametrize(("files", "settings", "reported"), MISTAKES)
def test_a_mistake_ends_the_crawl_before_it_begins(
    plain: PlainProject, files: dict[str, str], settings: str, reported: list[str]
) -> None:
    plain.write({**files, "settings.py": SETTINGS + settings})
    run = plain.crawl()
    assert [words for words in reported if words not in run.stderr] == []
    assert (run.returncode, "shop is not crawled:" in run.stderr, "Traceback" in run.stderr) == (1, True, False)


@pytest.mark.parametrize("options", PROCESSES, ids=["usual", "crawler_process", "no_reactor"])
def test_a_mistake_leaves_the_last_export_and_sends_no_request(plain: PlainProject, options: tuple[str, ...]) -> None:
    plain.write({"rules/crawl.rules": BAD_RULES, "items.jsonl": "the last crawl's\n"})
    with serve(Site({}, otherwise=page("Any"))) as server:
        run = plain.crawl(server.url("/"), options=(*options, "-O", "items.jsonl"))
        assert server.paths() == []
    assert (run.returncode, run.stderr.count("alow domain a.example"), "Traceback" in run.stderr) == (1, 1, False)
    assert (plain.folder / "items.jsonl").read_text(encoding="utf-8") == "the last crawl's\n"


def test_settings_without_effect_are_named(plain: PlainProject) -> None:
    settings = "CRAWLSPACE_LEASE_S = 60\nURLLENGTH_LIMIT = 0\nCRAWLSPACE_SITES = {'*': {'delay': 1}}\n"
    plain.write({"rules/crawl.rules": "", "settings.py": SETTINGS + settings})
    with serve(Site({}, otherwise=page("Any"))) as server:
        run = plain.crawl(server.url("/")).succeeded()
        assert fetched(server) == ["/"]
    assert "without effect in the add-on: CRAWLSPACE_LEASE_S\n" in run.stderr
    assert "without effect in the add-on: delay of CRAWLSPACE_SITES" in run.stderr


def test_scrapy_fetch_is_exempt_from_the_rules(plain: PlainProject) -> None:
    plain.write({"rules/crawl.rules": BAD_RULES})
    with serve(Site({}, otherwise=page("Asked for"))) as server:
        run = plain.scrapy("fetch", "--nolog", server.url("/a.zip")).succeeded()
    assert "Asked for" in run.stdout


def test_nothing_of_this_project_is_imported_but_the_package() -> None:
    """The other folders have names that a project is likely to have, too."""
    code = "import sys, crawlspace.addon; print(sorted({'spiders', 'middlewares', 'pipelines'} & {n.split('.')[0] for n in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_the_page_of_the_documentation_names_settings_stats_and_what_a_spider_gets() -> None:
    documented = (ROOT / "docs" / "addon.md").read_text(encoding="utf-8")
    names = [*SETTINGS_THAT_HOLD, RULES_DIR, START_URLS, RULES, NOFOLLOW, NOINDEX_ITEMS]
    assert [name for name in names if name not in documented] == []
    assert f'ADDONS = {{"{CrawlSpaceRules.__module__}.{CrawlSpaceRules.__qualname__}": 500}}' in documented
    assert (
        f'["crawlspace_rules"]` holds the rule actions that apply to the page:\n\n```python\n{NO_RULE_MATCHES}'.replace("'", '"')
        in documented
    )
