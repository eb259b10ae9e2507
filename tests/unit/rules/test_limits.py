"""The limits on URLs, one by one, and those on the size of rule files."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import pytest

from crawlspace.config import files
from crawlspace.config.files import read_rules, read_start_urls
from crawlspace.errors import ConfigError, RuleFileError
from crawlspace.lint import crawl_rules as lint
from crawlspace.lint.crawl_rules import lint_rules
from crawlspace.lint.rules_xml import lint_action_rules
from crawlspace.rules import crawl_rules
from crawlspace.rules.crawl_rules import parse_crawl_rules
from crawlspace.rules.limits import (
    DEFAULT_EXCLUDED_EXTENSIONS,
    Limits,
    extension,
    folders,
    in_folders,
    mime_allowed,
    path_depth,
    repeats_segments,
)
from crawlspace.rules.space import CrawlSpace, content_hash
from crawlspace.rules.xml import elements
from crawlspace.rules.xml.parser import parse_rules_xml
from crawlspace.urls import parse
from tests.growth import is_linear

EXTENSIONS = [
    ("/", ""),
    ("/a", ""),
    ("/a.b/c", ""),
    ("/a/Photo.JPG", "jpg"),
    ("/a/photo.jpg;size=2", "jpg"),
    ("/a;b.jpg/c", ""),
    ("/a.tar.gz", "gz"),
    ("/a.", ""),
    ("/.htaccess", "htaccess"),
]
DEPTHS = [("/", 0), ("/a", 0), ("/a/", 1), ("/a/b", 1), ("/a/b/c.html", 2), ("//", 1), ("", 0), ("user@example.com", 0)]
REPEATS = [
    # path, refused at 3
    ("/", False),
    ("/x/x/x", False),
    ("/x/x/x/", False),
    ("/x/x/x/x", True),
    ("/x/a/x/b/x/c", False),
    ("/x/a/x/b/x/c/x", True),
    ("/a/b/a/b/a/b", False),
    ("/a/b/a/b/a/b/a/b", True),
    ("/a/b/c/a/b/c/a/b/c/a/b/c.html", True),
    ("/a/b/c/d/e/f/g/h", False),
    ("/x/X/x/X", False),
    ("/a////b", False),
    ("/a/////b", True),
    ("/2024/01/01/01", False),
]
FOLDERS = [
    # start URL, URL, inside
    ("http://h/docs/index.html", "http://h/docs/", True),
    ("http://h/docs/index.html", "http://h/docs/a/b/c.html?x=1", True),
    ("http://h/docs/index.html", "https://h/docs/a", True),
    ("http://h/docs/index.html", "http://h/docs", False),
    ("http://h/docs/index.html", "http://h/docsearch/", False),
    ("http://h/docs/index.html", "http://h/", False),
    ("http://h/docs/index.html", "http://other/docs/", False),
    ("http://h/docs/index.html", "http://h:8080/docs/", False),
    ("http://h:8080/docs/", "http://h:8080/docs/a", True),
    ("http://h/docs", "http://h/anything", True),
    ("http://h", "http://h/anything/at/all", True),
]
TYPES = [
    # types to take, declared, taken
    (("text/html",), "text/html", True),
    (("text/html",), "Text/HTML; charset=utf-8", True),
    (("TEXT/HTML",), "text/html", True),
    (("text/html",), "text/plain", False),
    (("text/*",), "text/plain", True),
    (("text/*",), "application/pdf", False),
    (("*/*",), "application/pdf", True),
    (("application/vnd.oasis.opendocument.*",), "application/vnd.oasis.opendocument.text", True),
    (("text/html",), None, True),
    (("text/html",), " ", True),
    (("text/html",), "application/octet-stream", False),
    ((), "text/html", False),
    (Limits().mime_types, "application/xhtml+xml", True),
    (Limits().mime_types, "application/pdf", True),
    (Limits().mime_types, "application/zip", False),
    (Limits().mime_types, "image/png", False),
]


@pytest.mark.parametrize("path,expected", EXTENSIONS)
def test_extension(path: str, expected: str) -> None:
    assert extension(path) == expected


@pytest.mark.parametrize("name", ["jpg", "mp3", "mp4", "zip", "exe", "woff2", "css", "js"])
def test_what_is_no_document_is_excluded(name: str) -> None:
    assert name in DEFAULT_EXCLUDED_EXTENSIONS


@pytest.mark.parametrize(
    "name", ["html", "htm", "php", "aspx", "txt", "pdf", "doc", "docx", "xls", "ppt", "odt", "epub", "xml", "com"]
)
def test_documents_are_not_excluded(name: str) -> None:
    assert name not in DEFAULT_EXCLUDED_EXTENSIONS


@pytest.mark.parametrize("path,expected", DEPTHS)
def test_path_depth(path: str, expected: int) -> None:
    assert path_depth(path) == expected


@pytest.mark.parametrize("path,expected", REPEATS)
def test_repeated_segments(path: str, expected: bool) -> None:
    assert repeats_segments(path, 3) is expected


@pytest.mark.parametrize("start,url,expected", FOLDERS)
def test_folder_of_a_start_url(start: str, url: str, expected: bool) -> None:
    assert in_folders(parse(url), folders([parse(start)])) is expected


@pytest.mark.parametrize("types,declared,expected", TYPES)
def test_mime_types(types: tuple[str, ...], declared: str | None, expected: bool) -> None:
    assert mime_allowed(types, declared) is expected


# --- large files of rules -------------------------------------------------------------------------------------------


# text, the limits while it is read, place and beginning of each mistake
REFUSED: list[tuple[str, dict[str, int], list[str]]] = [
    ("#\n\nallow domain a\n allow domain b\n# c\nallow domain c\n", {"MAX_RULES": 2}, ["6:1: this is the 3st rule"]),
    ("allow domain a\nallow domain b\n# c\n\n", {"MAX_RULES": 2}, []),
    (
        "allow address 1.0.0.0/8\nallow address 1.0.0.0/8\nallow address 1.0.0.0/9\n",
        {"MAX_MASKS": 1},
        ["3:15: the address rules have"],
    ),
    (f"allow domain {'a' * 30}\nallow domain a\n# {'a' * 90}\n", {"MAX_LINE": 20}, ["1:1: the line has 43 characters"]),
    ("x\n" * 9, {"MAX_MISTAKES": 2}, ["1:1: expected", "2:1: expected", "2:1: reading ends here"]),
    (f"allow domain a {'b ' * 40_000}", {}, ["1:16: unexpected 'b'"]),
]


@pytest.mark.parametrize(("text", "limits", "mistakes"), REFUSED)
def test_limits_of_a_rule_file(text: str, limits: dict[str, int], mistakes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(crawl_rules, name, value)
    found: list[str] = []
    try:
        parse_crawl_rules(text, file="f")
    except RuleFileError as error:
        found = [f"{one.line}:{one.column}: {one.message}" for one in error.mistakes]
    assert len(found) == len(mistakes)
    assert all(one.startswith(begin) for one, begin in zip(found, mistakes, strict=True)), found


# values of a rules.xml, and with what reading it ends
EXPRESSIONS: list[tuple[list[str], str]] = [
    ([r"\[\^a\]\{1000\}"] * 3, r"the large expressions up to here make more than 20,000 instructions in RE2"),
    ([r"/a\.\*b"] * 2_000 + [r"\[\^a\]\{1000\}"] * 2, ""),
    ([r"\.\{1000\}" * 60], r"the large expressions up to here make more than 20,000 instructions in RE2"),
]


@pytest.mark.parametrize("values,message", EXPRESSIONS)
def test_the_expressions_of_a_file_have_a_limit_together(
    values: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elements, "MAX_INSTRUCTIONS", 20_000)
    rules = "".join(f'<Rule><Path val="{value}"/><Index/></Rule>' for value in values)
    found = ""
    try:
        parse_rules_xml(f"<Rules>{rules}</Rules>".encode(), file="rules.xml")
    except RuleFileError as error:
        found = error.mistakes[0].message if len(error.mistakes) == 1 else str(error)
    assert found.startswith(message)
    assert bool(found) is bool(message)


def test_limits_of_a_file_and_of_start_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "start_urls.txt").write_text("http://a/\n# b\nhttp://c/\nhttp://d/\n")
    (tmp_path / "crawl.rules").write_text("# comment\n")
    monkeypatch.setattr(files, "MAX_START_URLS", 2)
    with pytest.raises(RuleFileError, match=r"^start_urls.txt:4:1: this is the 3st start URL, and 2 is the most"):
        read_start_urls(tmp_path, {})
    monkeypatch.setattr(files, "MAX_FILE", 5)
    with pytest.raises(ConfigError, match=r"crawl.rules has .* is the most that is read"):
        read_rules(tmp_path)


def test_the_hash_of_rules_is_that_of_all_their_texts_as_json() -> None:
    rules = parse_crawl_rules('allow domain ä.example\nforbid domain *\nallow prefix http://a/"\nforbid address ::/0', file="f")
    content = {
        "format": 1,
        "domain": [f"{rule.action} {rule.target}" for rule in rules.domain],
        "prefix": [f"{rule.action} {rule.target}" for rule in rules.prefix],
        "address": [f"{rule.action} {rule.target}" for rule in rules.address],
        "hosts": ["a", "b"],
    }
    named = {name: getattr(Limits(), name) for name in Limits.__slots__}
    content["limits"] = {name: sorted(value) if isinstance(value, frozenset) else value for name, value in named.items()}
    expected = blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()
    assert content_hash(rules, Limits(), more={"hosts": ["a", "b"]}) == expected


def nested_prefixes(size: int) -> str:
    return "\n".join(f"allow prefix http://h{n % 50}.example/{'x/' * (n % 9)}{n}/" for n in range(size))


def address_rules(size: int) -> str:
    return "\n".join(f"allow address 10.{n >> 8}.{n & 255}.0 255.{n % 25 * 10}.255.0" for n in range(size))


def prefixes_of_one_literal(size: int) -> str:
    return "\n".join(f"allow prefix http://a.example/*/{'x' * (n % 50 + 1)}/*{'y' * (n // 50 + 1)}.html" for n in range(size))


def comments(size: int) -> str:
    return "# a comment of some words\n" * size


@pytest.mark.parametrize(
    ("text_of", "size"), [(nested_prefixes, 1_000), (address_rules, 500), (prefixes_of_one_literal, 1_000), (comments, 10_000)]
)
def test_load_and_lint_grow_as_the_file_does(text_of: Callable[[int], str], size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint, "COMPARED", 0)  # it lets small files take longer than their size is worth
    texts = {n: text_of(n) for n in (size, 4 * size)}

    def work(size: int) -> None:
        rules = parse_crawl_rules(texts[size], file="crawl.rules")
        CrawlSpace(rules, Limits(), [])
        lint_rules(rules, Limits())

    assert is_linear(work, size)


@pytest.mark.full
def test_lint_of_rules_inside_others_grows_as_the_file_does() -> None:
    def text_of(size: int) -> bytes:
        wide = "".join(f'<Rule><Or><Host val="h"/><Host val="g{n}"/></Or><NoIndex/></Rule>' for n in range(size))
        fields = "".join(f'<Rule><Host val="h"/><AddMeta name="f{n}" value="v"/></Rule>' for n in range(size))
        return f"<Rules>{wide}{fields}</Rules>".encode()

    rules = {size: parse_rules_xml(text_of(size), file="rules.xml") for size in (1_500, 6_000)}
    assert is_linear(lambda size: lint_action_rules(rules[size]), 1_500)
