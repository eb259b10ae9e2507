"""The files of collections: the global crawl space, links and folders that cannot be read, mistakes and encodings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crawlspace.config.collection import collection_names, load_collection, read_settings_file
from crawlspace.errors import ConfigError, RuleFileError, UnknownCollection
from tests.unit.config.collection_files import forbid, settings, write

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
