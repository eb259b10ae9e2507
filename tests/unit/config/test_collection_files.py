"""Settings of a collection that name files or are lists: files and their mistakes, extension lists, link tags."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from crawlspace import settings as defaults
from crawlspace.config.collection import collection_names, load_collection, read_settings_file
from crawlspace.config.content import check_converters, read_content, read_converters, read_file_settings
from crawlspace.config.limits import read_extensions, read_limits
from crawlspace.content.exclusion_marks import EXCLUSION_MARKS
from crawlspace.errors import ConfigError, RuleFileError, SettingError, UnknownCollection
from crawlspace.rules.limits import DEFAULT_EXCLUDED_EXTENSIONS as BUILT_IN
from crawlspace.rules.limits import changes_of_built_in
from tests.unit.config.conftest import forbid, settings, write

GLOBAL = [
    # files -> file that is read, its rules
    ({}, None, None),
    ({"global.rules": "allow domain shared\n"}, "global.rules", ["shared"]),
    ({"global.rules": "allow domain shared\n", "demo/global.rules": "allow domain own\n"}, "demo/global.rules", ["own"]),
    ({"demo/global.rules": "# nothing\n"}, "demo/global.rules", []),
    ({"named.rules": "allow domain named:8080\n", "demo/global.rules": ""}, "named.rules", ["named:8080"]),
]


@pytest.mark.parametrize(("files", "file", "targets"), GLOBAL)
def test_the_global_crawl_space(collections: Path, files: dict[str, str], file: str | None, targets: list[str] | None) -> None:
    write(collections, files)
    named = {"CRAWLSPACE_GLOBAL_RULES": str(collections / "named.rules")} if "named.rules" in files else {}
    demo = load_collection("demo", settings(collections, **named))
    assert demo.global_file == (None if file is None else collections / file)
    assert (None if demo.global_rules is None else [rule.target for rule in demo.global_rules.domain]) == targets


def test_the_file_of_the_global_crawl_space_is_no_collection(collections: Path) -> None:
    write(collections, {"global.rules": ""})
    assert collection_names(collections) == ["demo"]


# what stands in the way of a global.rules -> what the sentence says; it is never taken for one that isn't there
NO_GLOBAL = [
    ({"global.rules": "allow prefix http://a/\n"}, ["global.rules:1:7: a prefix rule is not allowed in global.rules"]),
    (
        {"demo/global.rules": "allow domain a\nforbid address 10.0.0.0/8\n"},
        ["global.rules:2:8: an address rule is not allowed in"],
    ),
    (
        {"global.rules": "allow http://a/\nalow domain b\n", "demo/crawl.rules": "forbid domain\n"},
        ["crawl.rules:1:14: ", "global.rules:1:7: ", "global.rules:2:1: expected 'allow' or 'forbid', not 'alow'"],
    ),
    ({"global.rules/x": ""}, ["global.rules is not a regular file but a directory; put a text file in its place, or remove it"]),
]


@pytest.mark.parametrize(("files", "sentences"), NO_GLOBAL)
def test_a_wrong_global_crawl_space(collections: Path, files: dict[str, str], sentences: list[str]) -> None:
    write(collections, files)
    with pytest.raises(ConfigError) as caught:
        load_collection("demo", settings(collections))
    assert [sentence for sentence in sentences if sentence not in str(caught.value)] == []
    if isinstance(caught.value, RuleFileError):
        assert len(caught.value.mistakes) == len(sentences)


OF_A_COLLECTION = ("demo/crawl.rules", "demo/rules.xml", "demo/start_urls.txt", "demo/settings.py")
FILES = ("global.rules", "demo/global.rules", *OF_A_COLLECTION)


@pytest.mark.parametrize("file", FILES)
def test_a_link_that_leads_nowhere_is_no_missing_file(collections: Path, file: str) -> None:
    (collections / file).unlink(missing_ok=True)
    (collections / file).symlink_to(collections / "moved")
    with pytest.raises(ConfigError, match=rf"{file} cannot be read: No such file"):
        _read_all(collections)


@pytest.mark.parametrize("file", FILES)
def test_what_is_no_regular_file_is_not_waited_for(collections: Path, file: str) -> None:
    (collections / file).unlink(missing_ok=True)
    os.mkfifo(collections / file)
    with pytest.raises(
        ConfigError, match=rf"{file} is not a regular file but a pipe; put a text file in its place, or remove it"
    ):
        _read_all(collections)


@pytest.mark.parametrize("file", OF_A_COLLECTION)
def test_a_folder_that_may_not_be_entered(collections: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid(monkeypatch, collections / file)
    with pytest.raises(ConfigError, match=rf"{file} cannot be read: Permission denied"):
        _read_all(collections)


def test_collections_that_may_not_be_listed(collections: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbid(monkeypatch, collections)
    with pytest.raises(ConfigError, match=rf"{collections}, where the collections are, cannot be read: Permission denied"):
        load_collection("demo", settings(collections))
    with pytest.raises(ConfigError, match="cannot be read: Not a directory"):
        collection_names(collections / "demo" / "crawl.rules")
    assert collection_names(collections / "none") == []


WRONG_FILES = [
    # file, content, what the sentence says
    (
        "start_urls.txt",
        "www.ibm.com\n",
        "start_urls.txt:1:1: a start URL begins with http:// or https://, as in http://www.ibm.com",
    ),
    ("start_urls.txt", "http://a/\n http://b:99999/ \n", "start_urls.txt:2:2: 'http://b:99999/' is not an absolute URL"),
    ("start_urls.txt", "http://a/ shift=3\n", "start_urls.txt:1:11: unexpected 'shift=3'"),
    ("start_urls.txt", f"http://a:{'9' * 1000}/\n", "is not an absolute URL"),
    ("start_urls.txt", "# nothing\n", "collection 'demo' has no start URL"),
    ("crawl.rules", "alow domain x\n", "crawl.rules:1:1: "),
    ("settings.py", "A = 1\nB = (\n", "settings.py:2: '(' was never closed"),
    ("settings.py", "A = 1\nB = 1 / 0\n", "settings.py:2: ZeroDivisionError: division by zero"),
]


@pytest.mark.parametrize(("file", "content", "sentence"), WRONG_FILES)
def test_wrong_files(collections: Path, file: str, content: str, sentence: str) -> None:
    (collections / "demo" / file).write_text(content)
    with pytest.raises(ConfigError) as caught:
        _read_all(collections)
    assert sentence in str(caught.value)


def _read_all(collections: Path) -> None:
    read_settings_file(collections / "demo")
    load_collection("demo", settings(collections))


LATIN_1 = "# Bücher\n\tforbid domain *.bücher.example\r\nalow domain b\n".encode("latin-1")


ENCODED = [
    # file, content, what the sentences begin with
    (
        "crawl.rules",
        LATIN_1,
        [
            "crawl.rules:1:4: this is not UTF-8; save the file as UTF-8\n    # B\ufffdcher\n       ^",
            "crawl.rules:3:1: expected",
        ],
    ),
    (
        "global.rules",
        b"allow domain a\r\xff\r",
        ["global.rules:2:1: this is not UTF-8; save the file as UTF-8\n    \ufffd\n    ^"],
    ),
    (
        "start_urls.txt",
        b"http://a/\n# \xc3\xa4\xed\xa0\x80\nwww.a\nhttp://\xe4/\n",
        ["start_urls.txt:2:4: this is not UTF-8", "start_urls.txt:3:1: a start URL begins with"],
    ),
    (
        "start_urls.txt",
        b"http://me:secret@h/\xe4",
        ["start_urls.txt:1:20: this is not UTF-8; save the file as UTF-8\n    http://…@h/\ufffd\n"],
    ),
    ("crawl.rules", b"alow domain a\n\xff", ["crawl.rules:1:1: expected 'allow'", "crawl.rules:2:1: this is not UTF-8"]),
    ("start_urls.txt", "\ufeffhttp://ä/\u2028".encode(), []),
    ("crawl.rules", "forbid domain ä\n".encode("utf-16"), ["crawl.rules:1:1: the file is in UTF-16; save it as UTF-8"]),
    ("crawl.rules", "forbid domain ä\n".encode("utf-16-le"), ["crawl.rules:1:1: the file is in UTF-16; save it as UTF-8"]),
    ("crawl.rules", "forbid domain ä\n".encode("utf-32"), ["crawl.rules:1:1: the file is in UTF-32; save it as UTF-8"]),
]


@pytest.mark.parametrize(("file", "content", "sentences"), ENCODED)
def test_an_encoding_is_a_mistake_beside_the_others(collections: Path, file: str, content: bytes, sentences: list[str]) -> None:
    (collections / "demo" / file).write_bytes(content)
    received: list[str] = []
    try:
        load_collection("demo", settings(collections))
    except RuleFileError as error:
        received = [str(mistake) for mistake in error.mistakes]
    assert [one[: len(begin)] for one, begin in zip(received, sentences, strict=True)] == sentences


def test_all_start_url_mistakes_are_reported_at_once(collections: Path) -> None:
    (collections / "demo" / "start_urls.txt").write_text("a\nb\nhttp://c/\n")
    with pytest.raises(ConfigError) as caught:
        load_collection("demo", settings(collections))
    assert "start_urls.txt:1:1" in str(caught.value)
    assert "start_urls.txt:2:1" in str(caught.value)


UNKNOWN = [
    ("dmo", "no collection 'dmo' in {}: did you mean 'demo'?"),
    ("zzz", "no collection 'zzz' in {}: there are: demo"),
    ("../demo", "no collection '../demo' in {}"),
]


@pytest.mark.parametrize(("name", "sentence"), UNKNOWN)
def test_unknown_collections(collections: Path, name: str, sentence: str) -> None:
    with pytest.raises(UnknownCollection) as caught:
        load_collection(name, settings(collections))
    assert sentence.format(collections) in str(caught.value)


# --- reading files --------------------------------------------------------------------------------------------------


SETTINGS = {name: value for name, value in vars(defaults).items() if name.isupper()}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("CRAWLSPACE_FILE_PROCESSES", 0, "CRAWLSPACE_FILE_PROCESSES"),
        ("CRAWLSPACE_FILE_MAXSIZE", 0, "CRAWLSPACE_FILE_MAXSIZE"),
        ("CRAWLSPACE_FILE_TIMEOUT", "soon", "CRAWLSPACE_FILE_TIMEOUT"),
        ("CRAWLSPACE_FILE_MEMORY", 1_000_000, "CRAWLSPACE_FILE_MEMORY"),
        ("CRAWLSPACE_FOLLOW_FILE_LINKS", "perhaps", "CRAWLSPACE_FOLLOW_FILE_LINKS"),
        ("CRAWLSPACE_CONVERTERS", "antiword", "CRAWLSPACE_CONVERTERS"),
        ("CRAWLSPACE_CONVERTERS", {"doc": "antiword {file}"}, "names 'doc', which is no type"),
        ("CRAWLSPACE_CONVERTERS", {"*/*": "antiword {file}"}, "names '*/*', which is no type"),
        ("CRAWLSPACE_CONVERTERS", {"application/msword": ""}, "has no command for application/msword"),
        ("CRAWLSPACE_CONVERTERS", {"application/msword": "antiword"}, "the command for application/msword does not name {file}"),
        ("CRAWLSPACE_CONVERTERS", {"application/msword": "{file}"}, "the command for application/msword does not name {file}"),
        ("CRAWLSPACE_CONVERTERS", {"application/msword": "anti'word {file}"}, "cannot be split into words"),
        ("CRAWLSPACE_CONVERTERS", {"image/*": "http:///tika"}, "the URL for image/* has no host"),
        ("CRAWLSPACE_CONVERTERS", {"image/*": "http://a:99999/"}, "the URL for image/* has no host"),
    ],
)
def test_a_wrong_value_is_named(name: str, value: object, message: str) -> None:
    with pytest.raises(SettingError) as raised:
        read_file_settings({**SETTINGS, name: value})
    assert message in str(raised.value)


def test_converters() -> None:
    given = {" Image/* ": "http://tika:9998/tika", "application/msword": "antiword {file} "}
    assert read_converters(given) == {"image/*": "http://tika:9998/tika", "application/msword": "antiword {file}"}


def test_what_has_a_converter_is_taken() -> None:
    limits = read_limits({**SETTINGS, "CRAWLSPACE_MIME_TYPES": ["text/html"], "CRAWLSPACE_CONVERTERS": {"image/*": "ocr {file}"}})
    assert limits.mime_types == ("text/html", "image/*")


def test_a_program_that_is_not_there_is_named() -> None:
    given = {"image/*": "http://tika:9998/tika", "application/msword": "/no/such/program {file}"}
    with pytest.raises(SettingError) as raised:
        check_converters(read_file_settings({**SETTINGS, "CRAWLSPACE_CONVERTERS": given}))
    assert "the command for application/msword begins with '/no/such/program', which is no program" in str(raised.value)


# --- lists of extensions that add to the built-in ones --------------------------------------------------------------


NAME = "CRAWLSPACE_EXCLUDE_EXTENSIONS"

LISTS: list[tuple[object, set[str]]] = [
    # value, what is excluded
    ("", {*BUILT_IN}),
    ([], {*BUILT_IN}),
    ("none", set()),
    ("log|old", {"log", "old"}),
    (".LOG, old", {"log", "old"}),
    ("+log", {*BUILT_IN, "log"}),
    ("+log -ps", {*BUILT_IN, "log"} - {"ps"}),
    ("-PS|+.Log", {*BUILT_IN, "log"} - {"ps"}),
    (["-ps", "-css"], {*BUILT_IN} - {"ps", "css"}),
    (["+ log ", "+log"], {*BUILT_IN, "log"}),
    ("+jpg", {*BUILT_IN}),
    ("-pdf", {*BUILT_IN}),
]


@pytest.mark.parametrize(("value", "excluded"), LISTS, ids=[str(row[0]) for row in LISTS])
def test_which_extensions_are_excluded(collections: Path, value: object, excluded: set[str]) -> None:
    assert load_collection("demo", settings(collections, **{NAME: value})).limits.exclude_extensions == excluded


WRONG: list[tuple[object, str]] = [
    ("+log pdf", f"{NAME} has '+log' with a sign and 'pdf' without one; write all with + or -, to add to the built-in list and"),
    (["log", "-ps"], f"{NAME} has '-ps' with a sign and 'log' without one"),
    ("none -ps", f"{NAME} has '-ps' with a sign and 'none' without one"),
    ("+ log", f"{NAME} has '+' with a sign and 'log' without one"),
    ("+log -", f"{NAME} is '+log -', with a sign that no extension follows; write it as in '+log -ps'"),
    ("-.", f"{NAME} is '-.', with a sign that no extension follows"),
    ("+log -LOG", f"{NAME} both adds 'log' and takes it away; write one of '+log' and '-log'"),
    (3, f"{NAME} is 3; it must be a list of words"),
]


@pytest.mark.parametrize(("value", "sentence"), WRONG, ids=[str(row[0]) for row in WRONG])
def test_wrong_lists(collections: Path, value: object, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        load_collection("demo", settings(collections, **{NAME: value}))
    assert sentence in str(caught.value)


WITHOUT_EFFECT: list[tuple[object, list[str]]] = [
    ("", []),
    ("log", []),
    ("+log -ps", []),
    ("-gift", [f"{NAME} takes 'gift' from the built-in list, which does not have it: did you mean 'gif'?"]),
    ("-aspx", [f"{NAME} takes 'aspx' from the built-in list, which does not have it: its URLs are not excluded anyway"]),
    ("+jpg", [f"{NAME} adds 'jpg' to the built-in list, which has it already: leave it out"]),
    ("+tar.log", [f"{NAME} has 'tar.log', and no URL has an extension with a dot in it: write 'log'"]),
    ("tar.gz|old", [f"{NAME} has 'tar.gz', and no URL has an extension with a dot in it: write 'gz'"]),
]


@pytest.mark.parametrize(("value", "warnings"), WITHOUT_EFFECT, ids=[str(row[0]) for row in WITHOUT_EFFECT])
def test_what_lint_says_of_a_list(value: object, warnings: Sequence[str]) -> None:
    assert list(read_extensions({NAME: value}).warnings()) == warnings


CHANGES: list[tuple[frozenset[str], list[str]]] = [
    (BUILT_IN, []),
    (BUILT_IN | {"old", "log"}, ["+log", "+old"]),
    (BUILT_IN - {"zip", "css"} | {"log"}, ["+log", "-css", "-zip"]),
]


@pytest.mark.parametrize(("excluded", "changes"), CHANGES)
def test_the_changes_of_the_built_in_list_make_the_same_list(excluded: frozenset[str], changes: list[str]) -> None:
    assert changes_of_built_in(excluded) == changes
    assert read_extensions({NAME: changes}).excluded == excluded


# --- CRAWLSPACE_LINK_TAGS -------------------------------------------------------------------------------------------


TAG_NAME = "CRAWLSPACE_LINK_TAGS"

FROM: list[tuple[object, list[str]]] = [
    # value, what links are taken from
    (["a", "area"], ["a", "area"]),
    ("A, Area", ["a", "area"]),
    (["a", "div@data-href"], ["a", "div@data-href"]),
    ("a | IMG@Src *@data-url", ["*@data-url", "a", "img@src"]),
    (["my-card@href", "a@xlink:href", "x@ä"], ["a@xlink:href", "my-card@href", "x@ä"]),
    (["img@src", "img@src", "img@data-src"], ["img@data-src", "img@src"]),
    (["a@href", "area@href"], ["a", "area"]),
    (["a", "a@href"], ["a"]),
    (["iframe@src", "link@href"], ["iframe@src", "link@href"]),
]


@pytest.mark.parametrize(("value", "expected"), FROM, ids=[str(row[0]) for row in FROM])
def test_what_links_are_taken_from(collections: Path, value: object, expected: list[str]) -> None:
    assert load_collection("demo", settings(collections, **{TAG_NAME: value})).content.extraction[1] == expected


def test_without_meta_refresh(collections: Path) -> None:
    own = settings(collections, **{TAG_NAME: ["meta", "img@src"], "METAREFRESH_ENABLED": False})
    assert read_content(own, robots_obey=True).extraction[1] == ["img@src"]


MAY_HOLD = "it may hold a, area, frame, iframe, link, meta, and pairs of element and attribute, as in img@src, or *@data-url for any element"
WRONG_TAGS: list[tuple[object, str]] = [
    ([], f"{TAG_NAME} is empty; {MAY_HOLD}"),
    ("img", f"{TAG_NAME} has 'img': name the attribute that has the link, as in img@src; {MAY_HOLD}"),
    (["a", "ara"], f"{TAG_NAME} has 'ara': did you mean 'area'?"),
    ("*", f"{TAG_NAME} has '*': {MAY_HOLD}"),
    ("a[href]", f"{TAG_NAME} has 'a[href]': {MAY_HOLD}"),
    ("img/@src", f"{TAG_NAME} has 'img/@src': did you mean 'img@src'?"),
    ("//img/@src", f"{TAG_NAME} has '//img/@src': {MAY_HOLD}"),
    ("img@", f"{TAG_NAME} has 'img@': {MAY_HOLD}"),
    ("@src", f"{TAG_NAME} has '@src': {MAY_HOLD}"),
    ("*@*", f"{TAG_NAME} has '*@*': {MAY_HOLD}"),
    ("/div@src", f"{TAG_NAME} has '/div@src': {MAY_HOLD}"),
    ("div@a@b", f"{TAG_NAME} has 'div@a@b': {MAY_HOLD}"),
    ("img@SrcSet", f"{TAG_NAME} has 'img@srcset', and links are not taken from srcset, which holds several with their sizes; leave it out"),
    ("*@imagesrcset", f"{TAG_NAME} has '*@imagesrcset', and links are not taken from imagesrcset"),
    (7, f"{TAG_NAME} is 7; it must be a list of words"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "sentence"), WRONG_TAGS, ids=[str(row[0]) for row in WRONG_TAGS])
def test_wrong_values(collections: Path, value: object, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        load_collection("demo", settings(collections, **{TAG_NAME: value}))
    assert sentence in str(caught.value)


# --- CRAWLSPACE_META_FIELDS, CRAWLSPACE_EXCLUSION_MARKS ----------------------------------------------------------------


META, MARKS = "CRAWLSPACE_META_FIELDS", "CRAWLSPACE_EXCLUSION_MARKS"

META_FIELDS: list[tuple[object, dict[str, list[str]]]] = [
    ({}, {}),
    ("", {}),
    ({"audience": "DC.Audience"}, {"audience": ["dc.audience"]}),
    ('{"team": ["Team ", "og:team"]}', {"team": ["team", "og:team"]}),
    ({"author": ("byline",)}, {"author": ["byline"]}),
]


@pytest.mark.parametrize(("value", "expected"), META_FIELDS, ids=[str(row[0]) for row in META_FIELDS])
def test_meta_fields(collections: Path, value: object, expected: dict[str, list[str]]) -> None:
    assert load_collection("demo", settings(collections, **{META: value})).content.meta_fields == expected


WRONG_FIELDS: list[tuple[str, object, str]] = [
    (META, ["audience"], f"{META} is ['audience']; it must be like {{"),
    (META, "audience", f"{META} is 'audience'; it must be like {{"),
    (META, {"my field": "x"}, f"{META} names 'my field': a field has letters, digits, _, - and dots, 100 at most"),
    (META, {7: "x"}, f"{META} names '7': a field has"),
    (META, {"f" * 101: "x"}, f"{META} names '{'f' * 20}"),
    (META, {"title": "x"}, f"{META} names 'title', which a document has of its page; choose another name"),
    (META, {"a": []}, f"{META} has '[]' for a; write names of meta elements, as in {{"),
    (META, {"a": ["b", 7]}, f"{META} has \"['b', 7]\" for a; write names"),
    (META, {"a": " "}, f"{META} has \"' '\" for a; write names"),
    (MARKS, ["noindex", "nosnippet"], f"{MARKS} has 'nosnippet': did you mean 'data-nosnippet'?"),
    (MARKS, "class=x", f"{MARKS} has 'class=x': it may hold {', '.join(EXCLUSION_MARKS)}"),
    (MARKS, 7, f"{MARKS} is 7; it must be a list of words"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), WRONG_FIELDS, ids=[f"{row[0]}-{row[1]}"[:60] for row in WRONG_FIELDS])
def test_wrong_fields_and_marks(collections: Path, name: str, value: object, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        load_collection("demo", settings(collections, **{name: value}))
    assert sentence in str(caught.value)


NONE: tuple[object, ...] = ([], "", None)


@pytest.mark.parametrize("value", NONE)
def test_no_mark_counts(collections: Path, value: object) -> None:
    assert load_collection("demo", settings(collections, **{MARKS: value})).content.exclusion_marks == frozenset()


def test_the_main_content_needs_a_library(collections: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawlspace.config.content.has_trafilatura", lambda: False)
    assert not load_collection("demo", settings(collections)).content.is_main
    with pytest.raises(SettingError, match=r"trafilatura, .* is not installed: install the extra `article`"):
        load_collection("demo", settings(collections, CRAWLSPACE_MAIN_CONTENT="main"))
