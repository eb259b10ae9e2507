"""Values with secrets, and references to them: the URL of a shared store, headers with credentials, content of other files."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.config.access import CredentialHosts, is_credential
from crawlspace.config.content import ReferenceSettings, read_references
from crawlspace.config.secrets import credential_name, plain_text_secrets, read_secret, read_store_url, secret_references
from crawlspace.distributed.connection import connected
from crawlspace.errors import ConfigError, SettingError, UsageError
from crawlspace.runtime.session.move import read_place
from crawlspace.urls import document_id, parse

URL = "redis://:SECRET@h:6379/0"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STORE", URL)
    monkeypatch.setenv("EMPTY", " ")
    monkeypatch.setenv("WRONG", "redi://:SECRET@h/")
    for name, content in (
        ("store", f"{URL}\n".encode()),
        ("empty", b"\n"),
        ("wrong", b"http:user:SECRET@h/"),
        ("lines", b"SECRET\nSECRET"),
        ("latin", b"SECRET\xe4"),
        ("large", b"SECRET" * 100_000),
    ):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize("value", [URL, f" {URL}\n", "env:STORE", "file:store"])
def test_the_url_of_a_store(folder: Path, value: str) -> None:
    assert read_store_url(value) == URL


WRONG = [
    ("redi://:SECRET@h/", "CRAWLSPACE_STORE_URL is 'redi://…@h/'; leave it empty"),
    ("redi://h/?password=SECRET", "CRAWLSPACE_STORE_URL is 'redi://h/'; leave it empty"),
    ("env:", "names nothing"),
    ("env:MISSING", "the environment has no variable MISSING; set it"),
    ("env:EMPTY", "that variable is empty"),
    ("env:WRONG", "is env:WRONG, which is 'redi://…@h/'; leave"),
    ("file:missing", "is file:missing, which cannot be read: No such file or directory"),
    ("file:folder", "which is not a file"),
    ("file:empty", "which is empty"),
    ("file:wrong", "is file:wrong, which is 'http:…@h/'; leave"),
    ("file:lines", "which has several lines"),
    ("file:latin", "which is not UTF-8"),
    ("file:large", "which has more than 65,536 bytes"),
]


@pytest.mark.parametrize(("value", "sentence"), WRONG)
def test_a_url_that_cannot_be_used(folder: Path, value: str, sentence: str) -> None:
    with pytest.raises(SettingError) as received:
        read_store_url(value)
    assert sentence in str(received.value)
    assert "SECRET" not in str(received.value)


@pytest.mark.parametrize("url", ["redis://:SEC/RET@h:6379/0", "redis://u:SEC?RET@h", 'redis://:SEC"/RET@h', "redis://h:SECRET/0"])
def test_the_error_of_a_client_for_a_url_has_no_password(url: str) -> None:
    settings = {"CRAWLSPACE_STORE_URL": url}
    with pytest.raises(ConfigError, match="Redis cannot be") as received:
        connected(settings)
    assert "SEC" not in str(received.value)
    assert "RET" not in str(received.value)


def test_a_store_that_is_moved_to() -> None:
    assert read_place("env:STORE") == "env:STORE"
    with pytest.raises(UsageError, match="'redi://…@h' is no store"):
        read_place("redi://:SECRET@h")


# --- headers with credentials ---------------------------------------------------------------------------------------


HEADERS = [
    # name, whether it is taken for one that carries credentials
    ("Authorization", True),
    ("proxy-authorization", True),
    ("Cookie", True),
    ("X-Api-Key", True),
    ("apikey", True),
    ("X-Auth-Token", True),
    ("PRIVATE-TOKEN", True),
    ("X-Session-Id", True),
    ("X-Amz-Signature", True),
    ("Accept", False),
    ("Accept-Language", False),
    ("User-Agent", False),
    ("From", False),
    ("X-Crawler", False),
]


@pytest.mark.parametrize(("name", "carries"), HEADERS)
def test_headers_that_carry_credentials(name: str, *, carries: bool) -> None:
    assert is_credential(name) is carries


STARTS = ["https://wiki.example.com/", "http://plain.example.com:8080/x", "https://both.example.com/", "http://both.example.com/"]
HOSTS = [
    # patterns,                    URL,                                     whether credentials are sent with it
    ([],                          "https://wiki.example.com/a",            True),
    ([],                          "https://WIKI.example.com:8443/",        True),
    ([],                          "https://wiki.example.com/robots.txt",   True),
    ([],                          "http://wiki.example.com/a",             False),
    ([],                          "http://plain.example.com/",             True),
    ([],                          "https://plain.example.com/",            True),
    ([],                          "http://both.example.com/",              True),
    ([],                          "https://evil.example/",                 False),
    ([],                          "https://example.com/",                  False),
    ([],                          "https://www.wiki.example.com/",         False),
    ([],                          "https://[",                             False),
    (["*.wiki.example.com"],      "https://www.wiki.example.com/",         True),
    (["*.wiki.example.com"],      "https://wiki.example.com/",             False),
    (["wiki.example.com:443"],    "https://wiki.example.com/",             True),
    (["wiki.example.com:443"],    "http://wiki.example.com/",              False),
    (["*"],                       "http://evil.example/",                  True),
]  # fmt: skip


@pytest.mark.parametrize(("patterns", "url", "sent"), HOSTS)
def test_hosts_that_get_them(patterns: list[str], url: str, *, sent: bool) -> None:
    assert CredentialHosts(patterns, [parse(start) for start in STARTS]).allow(url) is sent


WARNINGS = [
    # patterns, headers, what the warning says
    ([], ["Accept"], None),
    ([], ["Authorization", "X-Api-Key"], "has Authorization and X-Api-Key: sent to the hosts of the start URLs only (both.example.com, plain.example.com, wiki.example.com), "),
    (["wiki.example.com"], ["Authorization"], None),
    (["*"], ["Authorization"], "lets every host have it"),
    (["*"], ["Accept"], None),
    (["*.com"], ["Authorization"], "lets hosts that anybody can register have it ('*.com')"),
    (["wiki.example.com", "*example.com:443"], ["Authorization"], "can register have it ('*example.com:443')"),
    (["*.example.com:443"], ["Authorization"], None),
]  # fmt: skip


@pytest.mark.parametrize(("patterns", "headers", "words"), WARNINGS)
def test_the_findings_of_lint(patterns: list[str], headers: list[str], words: str | None) -> None:
    warning = CredentialHosts(patterns, [parse(start) for start in STARTS]).warning(headers)
    assert (warning is None) is (words is None)
    assert words is None or words in str(warning)


# --- references -----------------------------------------------------------------------------------------------------


PAGE = "http://a.example/x y?q=1&z=ü"


def read(url: object = "", most: object = None) -> ReferenceSettings:
    settings = {"CRAWLSPACE_ARCHIVE": True, "CRAWLSPACE_INLINE_MAX_BYTES": most, "CRAWLSPACE_CONTENT_URL": url}
    return read_references(settings, "hand book")


TEMPLATES = [
    ("", ""),
    (None, ""),
    ("https://c.example/content/{id}", f"https://c.example/content/{document_id(PAGE)}"),
    (
        "http://c.example/{collection}/?u={url}&x=1",
        "http://c.example/hand%20book/?u=http%3A%2F%2Fa.example%2Fx%20y%3Fq%3D1%26z%3D%C3%BC&x=1",
    ),
]


@pytest.mark.parametrize(("template", "url"), TEMPLATES)
def test_the_url_of_a_document(template: object, url: str) -> None:
    assert read(template).url_of(PAGE) == url


WRONG_REFERENCES = [
    ("c.example/{id}", "write a URL with {id} or {url}, as in https://console.example.com/content/{id}"),
    ("ftp://c.example/{id}", "write a URL with {id} or {url}"),
    ("https://c.example/{id} x", "write a URL with {id} or {url}"),
    (7, "CRAWLSPACE_CONTENT_URL is 7; it must be a text"),
    ("https://c.example/content", "is one URL for all documents; write {id} or {url} into it"),
    ("https://c.example/{collection}", "is one URL for all documents"),
    ("https://c.example/{ID}", "holds {ID}; there are {id}, {url} and {collection}"),
    ("https://c.example/{}/{id}", "holds {}; there are {id}"),
    ("https://c.example/{id", "has a brace of its own; there are {id}"),
    ("https://c.example/{a-b}/{id}", "has a brace of its own"),
]


@pytest.mark.parametrize(("template", "sentence"), WRONG_REFERENCES)
def test_a_wrong_template_is_explained(template: object, sentence: str) -> None:
    with pytest.raises(SettingError) as raised:
        read(template)
    assert str(raised.value).startswith("CRAWLSPACE_CONTENT_URL is ")
    assert sentence in str(raised.value)


# a text, most bytes; whether it is too large
SIZES = [
    ("a" * 1_000, 1_000, False),
    ("a" * 1_001, 1_000, True),
    ("ü" * 500, 1_000, False),
    ("ü" * 501, 1_000, True),
    ("🙂" * 250, 1_000, False),
    ("🙂" * 251, 1_000, True),
    ("\ud800" * 334, 1_000, True),
    ("a" * 100_000, None, False),
    ("a" * 100_000, "none", False),
]


@pytest.mark.parametrize(("text", "most", "is_too_large"), SIZES)
def test_sizes_are_bytes(text: str, most: object, *, is_too_large: bool) -> None:
    assert read(most=most).is_too_large(text) == is_too_large


def test_a_limit_that_is_too_small_is_refused() -> None:
    with pytest.raises(SettingError, match="CRAWLSPACE_INLINE_MAX_BYTES is 999"):
        read(most=999)


def test_a_file_that_systemd_passes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service cannot read the file itself."""
    passed = folder / "credentials"
    passed.mkdir()
    (passed / credential_name("/etc/crawl/wiki password")).write_text("passed\n")
    with pytest.raises(SettingError, match="cannot be read"):
        read_secret("X", "file:/etc/crawl/wiki password")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(passed))
    assert credential_name("/etc/crawl/wiki password") == "etc-crawl-wiki-password"
    assert read_secret("X", "file:/etc/crawl/wiki password") == "passed"
    assert read_secret("X", "file:store") == URL, "one that is not passed is read where it is"


PLAIN: list[tuple[dict[str, object], list[str]]] = [
    ({"FTP_PASSWORD": "x", "FTP_USER": "x"}, ["FTP_PASSWORD"]),
    ({"CRAWLSPACE_SESSION_KEY": "env:KEY", "AWS_SECRET_ACCESS_KEY": ""}, []),
    ({"CRAWLSPACE_STORE_URL": URL}, ["CRAWLSPACE_STORE_URL"]),
    ({"SITES": {"a.example": {"login": {"password": "x", "user": "y"}}}}, ["SITES['a.example']['login']['password']"]),
    (
        {"SITES": {"a": {"headers": {"Cookie": "x"}, "token_url": "http://a/", "keytab": "/x"}}},
        ["SITES['a']['headers']['Cookie']"],
    ),
    ({"PARAMS": [{"password": "x"}]}, ["PARAMS[0]['password']"]),
    ({"CRAWLSPACE_RULES": "allow", "COOKIES_ENABLED": True}, []),
]


@pytest.mark.parametrize(("settings", "named"), PLAIN)
def test_secrets_in_plain_text(settings: dict[str, object], named: list[str]) -> None:
    assert plain_text_secrets(settings) == named


def test_what_secrets_refer_to() -> None:
    settings: dict[str, object] = {
        "CRAWLSPACE_SITES": {"a": {"login": {"password": "file:/etc/a", "user": "env:USER_A"}}},
        "CRAWLSPACE_SINKS": [{"password": "env:B"}],
        "FEEDS": {"file:///tmp/x.jsonl": {}},
        "OTHER": "file:/etc/other",
    }
    assert secret_references(settings) == (["/etc/a"], ["B", "USER_A"])
