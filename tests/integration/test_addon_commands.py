"""`scrapy lint` and `scrapy explain` in a plain project that has the add-on installed and no collections."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.command_line import ROOT, CompletedRun, run_scrapy
from tests.integration.plain_project import PlainProject

Scrapy = Callable[..., CompletedRun]

SETTINGS = """\
SPIDER_MODULES = ["shop_spiders"]
ADDONS = {"crawlspace.addon.CrawlSpaceRules": 500}
"""
SPIDERS = """\
import scrapy


class News(scrapy.Spider):
    name = "news"
    start_urls = ["http://news.example/"]


class Products(scrapy.Spider):
    name = "products"
    start_urls = ["http://products.example/"]
    custom_settings = {"CRAWLSPACE_EXCLUDE_EXTENSIONS": "none"}
"""
RULES = "allow  domain news.example\nforbid domain *\n"
OF_PRODUCTS = "allow  domain products.example\nforbid domain *\nforbid prefix http://products.example/old/\n"


@pytest.fixture(scope="session")
def entry_points(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what an installation of the wheel tells about itself."""
    folder = tmp_path_factory.mktemp("installed")
    with ZipFile(wheel) as files:
        files.extractall(folder, [name for name in files.namelist() if ".dist-info/" in name])
    return folder


@pytest.fixture
def shop(plain: PlainProject) -> PlainProject:
    plain.write(
        {
            "settings.py": SETTINGS,
            "shop_spiders.py": SPIDERS,
            "rules/crawl.rules": RULES,
            "rules/products/crawl.rules": OF_PRODUCTS,
        }
    )
    return plain


@pytest.fixture
def scrapy(shop: PlainProject, entry_points: Path) -> Scrapy:
    def run(*args: str) -> CompletedRun:
        path = os.pathsep.join(filter(None, [str(entry_points), str(ROOT), os.environ.get("PYTHONPATH")]))
        return run_scrapy(args, cwd=shop.folder, env={"PYTHONPATH": path})

    return run


def test_rules_without_a_fault(scrapy: Scrapy) -> None:
    assert scrapy("lint").succeeded().stdout == "no findings\n"
    assert scrapy("lint", "--json").succeeded().stdout == "[]\n"


# files -> what is found
FOUND: list[tuple[dict[str, str], list[str]]] = [
    ({"rules/crawl.rules": f"{RULES}alow domain x\n"}, ["rules/crawl.rules:3:1: error: expected 'allow' or 'forbid', not 'alow'"]),
    ({"rules/products/rules.xml": "<Rules><Rule/></Rules>"}, ["rules/products/rules.xml:1:8: error: "]),
    ({"rules/crawl.rules": f"{RULES}allow domain late.example\n"}, ["rules/crawl.rules:3:14: warning: 'allow domain late.example' never applies"]),
    ({"rules/products/crawl.rules": "forbid domain *\n"}, ["spider products: error: the start URL http://products.example/ is refused by crawl.rules:1"]),
    ({"settings.py": f"{SETTINGS}CRAWLSPACE_MAX_PATH_DEPHT = 3\n"}, ["settings: error: unknown setting CRAWLSPACE_MAX_PATH_DEPHT: did you mean CRAWLSPACE_MAX_PATH_DEPTH?"]),
    ({"settings.py": f"{SETTINGS}CRAWLSPACE_MAX_PATH_DEPTH = -3\n"}, ["settings: error: CRAWLSPACE_MAX_PATH_DEPTH is -3; it must be at least 0"]),
    ({"settings.py": f"{SETTINGS}CRAWLSPACE_MAX_BACKLOG = 100\n"}, ["settings: warning: without effect in the add-on: CRAWLSPACE_MAX_BACKLOG"]),
    ({"settings.py": f"{SETTINGS}CRAWLSPACE_RULES_DIR = 'gone'\n"}, ["spider news: error: it has no rules", "spider products: error: it has no rules"]),
    ({"shop_spiders.py": SPIDERS.replace('"none"}', '"none", "CRAWLSPACE_SCHEMES": "ftp"}')}, ["spider products: error: CRAWLSPACE_SCHEMES is 'ftp'"]),
    ({"shop_spiders.py": SPIDERS.replace('    start_urls = ["http://news.example/"]\n', ""), "settings.py": f"{SETTINGS}CRAWLSPACE_INDEX_ENTIRE_SITE = True\n"},
     ["spider news: warning: CRAWLSPACE_INDEX_ENTIRE_SITE is on, which needs start URLs"]),
]  # fmt: skip


@pytest.mark.parametrize(("files", "found"), FOUND, ids=[row[1][0][:60] for row in FOUND])
def test_what_lint_finds(shop: PlainProject, scrapy: Scrapy, files: dict[str, str], found: list[str]) -> None:
    shop.write(files)
    ended = scrapy("lint")
    assert (ended.returncode, ended.stderr) == (1, "")
    lines = [line for line in ended.stdout.splitlines() if not line.startswith(" ")]
    assert [line[: len(start)] for line, start in zip(lines, found, strict=True)] == found


# arguments -> admitted, reason, deciding rule
EXPLAINED: list[tuple[list[str], tuple[bool, str, str | None]]] = [
    (["http://news.example/a"], (True, "admitted", "crawl.rules:1")),
    (["http://products.example/a"], (False, "domain", "crawl.rules:2")),
    (["products", "http://products.example/a.zip"], (True, "admitted", "crawl.rules:1")),
    (["products", "http://products.example/old/a"], (False, "prefix", "crawl.rules:3")),
    (["products", "../old/", "--from", "http://products.example/new/"], (False, "prefix", "crawl.rules:3")),
    (["news", "http://news.example/a.zip"], (False, "extension", None)),
    (["news", "http://news.example/", "--mime", "application/json"], (False, "mime_type", None)),
    (["news", "http://[/"], (False, "malformed", None)),
]


@pytest.mark.parametrize(("arguments", "expected"), EXPLAINED, ids=[" ".join(row[0]) for row in EXPLAINED])
def test_what_explain_answers(scrapy: Scrapy, arguments: list[str], expected: tuple[bool, str, str | None]) -> None:
    answer = json.loads(scrapy("explain", *arguments, "--json").succeeded().stdout)
    assert (answer["admitted"], answer["reason"], answer["rule"]) == expected


def test_explain_prints_the_trace(scrapy: Scrapy) -> None:
    shown = scrapy("explain", "products", "http://products.example/old/a").succeeded().stdout
    assert "refused      a prefix rule forbids the URL (prefix)\n" in shown
    assert "by           crawl.rules:3: forbid prefix http://products.example/old/\n" in shown
    assert "             domain             allow   crawl.rules:1: allow  domain products.example\n" in shown
    assert shown.endswith("rules        rules/products\n")


# arguments, settings -> a part of the sentence
WRONG = [
    (["lint", "news"], SETTINGS, "a project with the add-on has no collections"),
    (["explain"], SETTINGS, "name a URL, or a spider and a URL"),
    (["explain", "new", "http://news.example/"], SETTINGS, "there is no spider 'new': did you mean 'news'?"),
    (["explain", "http://news.example/", "--depth", "3"], SETTINGS, "there is no option --depth"),
    (["lint"], 'SPIDER_MODULES = ["shop_spiders"]\n', "this project has no collections, and not the add-on of crawlspace"),
    (
        ["status", "news"],
        f'{SETTINGS}COMMANDS_MODULE = "crawlspace.commands"\n',
        "this project has no collections, so the commands",
    ),
    (
        ["crawl", "news"],
        f'{SETTINGS}COMMANDS_MODULE = "crawlspace.commands"\n',
        "this project has no collections, so the commands",
    ),
]


@pytest.mark.parametrize(("arguments", "settings", "sentence"), WRONG, ids=[" ".join(row[0]) for row in WRONG])
def test_wrong_use(shop: PlainProject, scrapy: Scrapy, arguments: list[str], settings: str, sentence: str) -> None:
    shop.write({"settings.py": settings})
    ended = scrapy(*arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr


def test_spiders_that_cannot_be_imported(shop: PlainProject, scrapy: Scrapy) -> None:
    shop.write({"shop_spiders.py": "import nowhere\n"})
    ended = scrapy("lint")
    assert (ended.returncode, ended.stderr) == (
        1,
        "the spiders of the project cannot be imported: ModuleNotFoundError: No module named 'nowhere'\n",
    )


def test_in_a_project_with_collections_its_own_commands_take_their_place(entry_points: Path) -> None:
    path = os.pathsep.join([str(entry_points), *filter(None, [os.environ.get("PYTHONPATH")])])
    ended = run_scrapy(["lint", "--help"], env={"PYTHONPATH": path})
    assert "Read a collection's rules" in " ".join(ended.succeeded().stdout.split())
