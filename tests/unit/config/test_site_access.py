"""Log-ins and headers of CRAWLSPACE_SITES: what they mean, and what is refused with which sentence."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from crawlspace.config.access import SiteAccess, read_site_access
from crawlspace.config.sites import SiteSettings, SiteTable, read_sites
from crawlspace.errors import SettingError
from crawlspace.lint.collection import lint_access
from crawlspace.urls import parse

WHERE = "CRAWLSPACE_SITES['wiki.example.com']"
BASIC = {"type": "basic", "user": "crawler", "password": "env:WIKI_PASSWORD"}
DIGEST = BASIC | {"type": "digest"}
BEARER = {"type": "bearer", "token": "env:WIKI_PASSWORD"}


def read(**values: object) -> SiteAccess | None:
    return read_site_access(WHERE, "wiki.example.com", cast("dict[object, object]", values))


HEADERS = [
    ({"login": BASIC}, {"Authorization": "Basic Y3Jhd2xlcjrDpCBi"}),
    ({"login": DIGEST}, {}),
    ({"login": {"type": "negotiate"}}, {}),
    ({"login": BEARER | {"token": "t-1"}}, {"Authorization": "Bearer t-1"}),
    ({"headers": {"X-Key": "env:WIKI_KEY", "Accept-Language": "de"}}, {"X-Key": "k1", "Accept-Language": "de"}),
    ({"login": BASIC, "headers": {"X-Key": "env:WIKI_KEY"}}, {"X-Key": "k1", "Authorization": "Basic Y3Jhd2xlcjrDpCBi"}),
]


@pytest.mark.parametrize(("values", "expected"), HEADERS)
def test_what_is_sent(monkeypatch: pytest.MonkeyPatch, values: dict[str, object], expected: dict[str, str]) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", "ä b")
    monkeypatch.setenv("WIKI_KEY", "k1")
    access = read(**values)
    assert access is not None
    assert access.headers() == expected
    assert "ä b" not in repr(access)
    assert "k1" not in repr(access)


@pytest.mark.parametrize("values", [{}, {"login": None}, {"headers": {}}])
def test_nothing_is_said(values: dict[str, object]) -> None:
    assert read(**values) is None


WRONG = [
    ({"login": "basic"}, f"{WHERE}['login'] must be a dict, as in"),
    ({"login": {"user": "a", "password": "b"}}, f"{WHERE}['login'] has no type; it must be like"),
    ({"login": BASIC | {"type": "basci"}}, f"{WHERE}['login'] has the unknown type 'basci': did you mean 'basic'?"),
    (
        {"login": {"type": "NTLM"}},
        f"{WHERE}['login'] has the type 'NTLM', which is not supported: use {{\"type\": \"negotiate\"}}, which logs in",
    ),
    ({"login": {"type": "negotiate", "user": "a"}}, f"{WHERE}['login'] has an unknown key 'user': it may have keytab"),
    ({"login": {"type": "negotiate", "keytab": " "}}, f"{WHERE}['login']['keytab'] must be a text"),
    ({"login": BASIC | {"passwort": "x"}}, f"{WHERE}['login'] has an unknown key 'passwort': did you mean 'password'?"),
    ({"login": {"type": "basic", "user": "a"}}, f"{WHERE}['login'] has no 'password'; it must be like"),
    ({"login": BASIC | {"user": "a:b"}}, f"{WHERE}['login'] has a 'user' with a colon"),
    ({"login": BASIC | {"password": 5}}, f"{WHERE}['login']['password'] must be a text"),
    ({"login": {"type": "bearer"}}, f"{WHERE}['login'] has no 'token'; it must be like"),
    ({"headers": ["X-Key"]}, f"{WHERE}['headers'] must be a dict, as in"),
    ({"headers": {"X Key": "a"}}, f"{WHERE}['headers'] has 'X Key', which is no name of a header"),
    ({"headers": {"X-Key": 1}}, f"{WHERE}['headers']['X-Key'] must be a text"),
    ({"login": BASIC, "headers": {"authorization": "a"}}, f"{WHERE} has a log-in and a header Authorization"),
    ({"allow_plain_http": True}, f"{WHERE}['allow_plain_http'] is about a log-in or headers, and it has neither"),
    ({"login": BASIC, "allow_plain_http": "perhaps"}, f"{WHERE}['allow_plain_http'] is 'perhaps'"),
]


@pytest.mark.parametrize(("values", "sentence"), WRONG)
def test_wrong_values(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(SettingError) as raised:
        read(**values)
    assert str(raised.value).startswith(sentence)


EVERY, ANYBODY, OURS = "to every host that a link leads to", "to hosts that anybody can register", ""
PATTERNS = [
    ("*", EVERY),
    ("*.*", EVERY),
    ("*:443", EVERY),
    ("*.com", ANYBODY),
    ("*.com:443", ANYBODY),
    ("*.co.uk", ANYBODY),
    ("*.github.io", ANYBODY),
    ("*e*", ANYBODY),
    ("*example.com", ANYBODY),
    ("*EXAMPLE.com:8443", ANYBODY),
    ("www.example.*", ANYBODY),
    ("wiki.example.com", OURS),
    ("wiki.example.com:8443", OURS),
    ("*.example.com", OURS),
    ("*.example.com:8443", OURS),
    ("w*.example.co.uk", OURS),
    ("*.corp", OURS),
    ("wiki", OURS),
    ("192.168.1.*", OURS),
    ("[::1]:8443", OURS),
]
CREDENTIALS: list[dict[str, object]] = [
    {"login": BASIC},
    {"headers": {"X-Api-Key": "env:KEY"}},
    {"client_certificate": "certificate.pem"},
    {"login": {"type": "form", "url": "https://wiki.example.com/login", "fields": {"password": "env:KEY"}}},
]


@pytest.mark.parametrize(("pattern", "why_not"), PATTERNS)
@pytest.mark.parametrize("values", CREDENTIALS)
def test_no_log_in_for_hosts_of_anybody(pattern: str, why_not: str, values: dict[str, object]) -> None:
    if why_not:
        with pytest.raises(SettingError, match=why_not):
            read_site_access(WHERE, pattern, values)  # type: ignore[arg-type]
    else:
        assert read_site_access(WHERE, pattern, values) is not None  # type: ignore[arg-type]
    assert read_site_access(WHERE, pattern, {"headers": {"Accept-Language": "de"}}) is not None


@pytest.mark.parametrize(("host", "gets_it"), [("192.168.1.7", True), ("192.168.1.example.com", False)])
def test_a_log_in_for_addresses_goes_to_no_name(host: str, gets_it: bool) -> None:
    settings = {"DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8, "CRAWLSPACE_SITES": {"192.168.1.*": {"login": BASIC}}}
    assert (read_sites(settings).of(host, 443).access is not None) is gets_it


UNREADABLE = [
    ({"login": BASIC}, f"{WHERE}['login']['password'] is env:WIKI_PASSWORD, and the environment has no variable"),
    ({"login": BEARER | {"token": "file:nowhere"}}, f"{WHERE}['login']['token'] is file:nowhere, which cannot be read"),
    ({"login": BEARER | {"token": "ü"}}, f"{WHERE}['login']['token'] has a character that a header cannot have"),
    ({"headers": {"X-Key": "a\r\nb"}}, f"{WHERE}['headers']['X-Key'] has a character that a header cannot have"),
]


@pytest.mark.parametrize(("values", "sentence"), UNREADABLE)
def test_secrets_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, values: dict[str, object], sentence: str) -> None:
    monkeypatch.delenv("WIKI_PASSWORD", raising=False)
    access = read(**values)
    assert access is not None
    with pytest.raises(SettingError) as raised:
        access.headers()
    assert str(raised.value).startswith(sentence)


def sites(**values: object) -> SiteTable:
    settings = {"DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8, "CRAWLSPACE_SITES": {"wiki.example.com": values}}
    return read_sites(settings)


def of_wiki(**values: object) -> SiteSettings:
    return sites(**values).of("wiki.example.com", 443)


def test_a_password_is_sent_by_two_requests_at_a_time() -> None:
    assert of_wiki(login=BASIC).concurrency == 2
    assert of_wiki(login=BASIC, concurrency=1).concurrency == 1
    assert of_wiki(login=BEARER).concurrency == 8
    assert of_wiki(login=DIGEST).concurrency == 2
    with pytest.raises(SettingError, match="is 3; a basic log-in goes with each request"):
        of_wiki(login=BASIC, concurrency=3)


FINDINGS = [
    ({"login": BASIC}, "https://wiki.example.com/", []),
    ({"headers": {"Accept-Language": "de"}}, "http://wiki.example.com/", []),
    ({"login": BASIC | {"password": "b"}}, "https://wiki.example.com/", ["error literal-secret"]),
    ({"headers": {"X-Api-Key": "b"}}, "https://wiki.example.com/", ["error literal-secret"]),
    ({"login": BASIC}, "https://wikis.example.com/", ["warning unused-login"]),
    ({"login": BASIC}, "http://wiki.example.com/", ["warning plain-login"]),
    ({"login": BASIC, "allow_plain_http": True}, "https://wiki.example.com/", ["warning plain-login"]),
]


@pytest.mark.parametrize(("values", "start", "expected"), FINDINGS)
def test_findings(values: dict[str, object], start: str, expected: list[str], tmp_path: Path) -> None:
    table = sites(**values)
    found = lint_access(tmp_path, table, [parse(start)])
    assert [f"{one.level} {one.code}" for one in found] == expected
