"""Log-ins that give sessions: what settings mean, and what is refused with which sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from crawlspace.config.access import BrowserLogin, FormLogin, OAuthLogin, SessionLogin, SiteAccess, read_site_access
from crawlspace.config.secrets import Seal
from crawlspace.config.sites import read_sites
from crawlspace.errors import SettingError

WHERE = "CRAWLSPACE_SITES['wiki.example.com']"
LOGIN = f"{WHERE}['login']"
FORM = {
    "type": "form",
    "url": "https://wiki.example.com/login",
    "fields": {"user": "crawler", "password": "env:WIKI_PASSWORD"},
}
OAUTH = {"type": "oauth2", "url": "https://sso.example.com/token", "client_id": "c", "client_secret": "env:WIKI_PASSWORD"}

BROWSER: dict[str, Any] = {
    "type": "browser",
    "url": "https://wiki.example.com/login",
    "steps": [{"fill": {"#user": "crawler", "#password": "env:WIKI_PASSWORD"}, "click": "button[type=submit]"}],
}


def read(login: object, **more: object) -> SiteAccess:
    values = {"login": login, **more}
    access = read_site_access(WHERE, "wiki.example.com", cast("dict[object, object]", values))
    assert access is not None
    return access


def session(login: object) -> SessionLogin:
    found = read(login).session
    assert found is not None
    return found


def test_what_a_form_means() -> None:
    found = session({**FORM, "form": "#login", "then": [{"fields": {"code": "env:CODE"}}], "hosts": ["SSO.example.com"]})
    assert isinstance(found, FormLogin)
    assert [dict(step.fields) for step in found.steps] == [FORM["fields"], {"code": "env:CODE"}]
    assert found.steps[0].form == "#login"
    assert found.hosts == {"sso.example.com"}
    assert found.statuses == {401, 403}
    assert "WIKI_PASSWORD" not in repr(found)


NO_CHECK = [
    # the page that is to show whether a session is alive, and why it cannot
    ("profile", f"{LOGIN}['check'] is 'profile', which is no URL"),
    ("https://other.example.com/me", f"{LOGIN}['check'] is 'https://other.example.com/me', which is requested without"),
    ("http://wiki.example.com/me", f"{LOGIN}['check'] is 'http://wiki.example.com/me', which is requested without"),
    ("", f"{LOGIN}['check'] must be a text"),
]


@pytest.mark.parametrize("login", [FORM, OAUTH, BROWSER, {"type": "cookies", "file": "a", "logged_out": {"text": "Log in"}}])
def test_a_page_that_shows_whether_a_session_is_alive(login: dict[str, object]) -> None:
    settings = {"DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 4}

    def check(given: str) -> str:
        entries = {"wiki.example.com": {"login": {**login, "check": given}}}
        (access,) = read_sites({**settings, "CRAWLSPACE_SITES": entries}).accesses
        assert access.session is not None
        assert access.session.check is not None
        return access.session.check

    assert check("https://wiki.example.com/me") == "https://wiki.example.com/me"
    for given, sentence in NO_CHECK:
        with pytest.raises(SettingError) as raised:
            check(given)
        assert str(raised.value).startswith(sentence)


def test_what_a_client_means() -> None:
    found = session({**OAUTH, "scope": "read", "client_in": "body", "logged_out": {"status": [401, 419]}})
    assert isinstance(found, OAuthLogin)
    assert (found.scope, found.client_in, found.statuses) == ("read", "body", frozenset({401, 419}))
    assert session(OAUTH).statuses == {401}
    assert session({**OAUTH, "logged_out": {"text": "Log in"}}).statuses == {401}


def test_what_a_log_in_in_the_browser_means() -> None:
    found = session({**BROWSER, "steps": [*BROWSER["steps"], {"wait_for": "#menu"}], "hosts": ["SSO.example.com"]})
    assert isinstance(found, BrowserLogin)
    assert [(dict(step.fill), step.click, step.wait_for) for step in found.steps] == [
        ({"#user": "crawler", "#password": "env:WIKI_PASSWORD"}, "button[type=submit]", ""),
        ({}, "", "#menu"),
    ]
    assert (found.hosts, found.statuses) == (frozenset({"sso.example.com"}), frozenset({401, 403}))
    assert found.sentence == "browser log-in at https://wiki.example.com/login"
    assert "WIKI_PASSWORD" not in repr(found)


WRONG = [
    ({"type": "form"}, f"{LOGIN} has no 'url'; it must be like"),
    ({**FORM, "url": "login"}, f"{LOGIN}['url'] is 'login', which is no URL"),
    ({**FORM, "url": "ftp://wiki.example.com/"}, f"{LOGIN}['url'] is 'ftp://wiki.example.com/'; it must begin with https://"),
    ({**FORM, "url": "http://wiki.example.com/"}, f"{LOGIN}['url'] is 'http://wiki.example.com/': a log-in goes over https only"),
    ({**FORM, "fields": {}}, f"{LOGIN}['fields'] is empty; it must be like"),
    ({**FORM, "fields": {"user": 5}}, f"{LOGIN}['fields']['user'] must be a text"),
    ({**FORM, "feilds": {}}, f"{LOGIN} has an unknown key 'feilds': did you mean 'fields'?"),
    ({**FORM, "form": "a["}, f"{LOGIN}['form'] is 'a[', which is no CSS selector"),
    ({**FORM, "then": {"fields": {"a": "b"}}}, f"{LOGIN}['then'] must be a list of dicts"),
    ({**FORM, "then": ["code"]}, f"{LOGIN}['then'][0] must be a dict"),
    ({**FORM, "then": [{"url": "https://a.example/"}]}, f"{LOGIN}['then'][0] has an unknown key 'url'"),
    ({**FORM, "then": [{}]}, f"{LOGIN}['then'][0] has no 'fields'"),
    ({**FORM, "hosts": "sso.example.com"}, f"{LOGIN}['hosts'] must be a list of texts"),
    ({**FORM, "hosts": ["https://sso.example.com/"]}, f"{LOGIN}['hosts'][0] is 'https://sso.example.com/'; it must be a host"),
    ({**FORM, "logged_out": "Please"}, f"{LOGIN}['logged_out'] must be a dict"),
    (
        {**FORM, "logged_out": {"status": [200]}},
        f"{LOGIN}['logged_out']['status'][0] is 200; it must be a whole number from 400 to 499",
    ),
    ({**FORM, "logged_out": {"status": 401}}, f"{LOGIN}['logged_out']['status'] must be a list of numbers"),
    ({**FORM, "logged_out": {"redirect": "/login"}}, f"{LOGIN}['logged_out']['redirect'] is '/login', which is no URL"),
    ({**FORM, "logged_out": {"selector": "::"}}, f"{LOGIN}['logged_out']['selector'] is '::', which is no CSS selector"),
    ({**FORM, "logged_out": {"texts": "a"}}, f"{LOGIN}['logged_out'] has an unknown key 'texts': did you mean 'text'?"),
    ({**FORM, "form": "svg|a"}, f"{LOGIN}['form'] is 'svg|a', which is no CSS selector: Undefined namespace prefix"),
    ({**FORM, "type": ["form"]}, f"{LOGIN}['type'] must be a text"),
    ({**OAUTH, "client_secret": ""}, f"{LOGIN}['client_secret'] must be a text"),
    ({**OAUTH, "client_in": "query"}, f"{LOGIN}['client_in'] is 'query'; it may be 'body' or 'header'"),
    ({"type": "cookies"}, f"{LOGIN} needs either 'file' or 'cookies'"),
    ({"type": "cookies", "file": "a", "cookies": {"b": "c"}}, f"{LOGIN} needs either 'file' or 'cookies'"),
    ({"type": "cookies", "file": "a"}, f"{LOGIN} has no 'logged_out' with 'redirect', 'text' or 'selector'"),
    ({"type": "browser"}, f"{LOGIN} has no 'url'; it must be like"),
    (
        {**BROWSER, "url": "http://wiki.example.com/"},
        f"{LOGIN}['url'] is 'http://wiki.example.com/': a log-in goes over https only",
    ),
    ({**BROWSER, "steps": []}, f"{LOGIN}['steps'] is empty; it must be like"),
    ({**BROWSER, "steps": {"click": "a"}}, f"{LOGIN}['steps'] must be a list of dicts"),
    ({**BROWSER, "steps": ["click"]}, f"{LOGIN}['steps'][0] must be a dict, as in"),
    ({**BROWSER, "steps": [{}]}, f"{LOGIN}['steps'][0] does nothing; a step has any of 'fill', 'click' and 'wait_for'"),
    ({**BROWSER, "steps": [{"fill": {}}]}, f"{LOGIN}['steps'][0] does nothing"),
    ({**BROWSER, "steps": [{"clikc": "a"}]}, f"{LOGIN}['steps'][0] has an unknown key 'clikc': did you mean 'click'?"),
    ({**BROWSER, "steps": [{"click": 1}]}, f"{LOGIN}['steps'][0]['click'] must be a text"),
    ({**BROWSER, "steps": [{"click": "a["}]}, f"{LOGIN}['steps'][0]['click'] is 'a[', which is no CSS selector"),
    ({**BROWSER, "steps": [{"click": "a"}, {"wait_for": "::"}]}, f"{LOGIN}['steps'][1]['wait_for'] is '::', which is no CSS"),
    ({**BROWSER, "steps": [{"fill": {"a[": "s3cret"}}]}, f"{LOGIN}['steps'][0] fills 'a[', which is no CSS selector"),
    ({**BROWSER, "steps": [{"fill": {"#a": 5}}]}, f"{LOGIN}['steps'][0]['fill']['#a'] must be a text"),
    ({**BROWSER, "steps": [{"fill": "s3cret"}]}, f"{LOGIN}['steps'][0]['fill'] must be a dict, as in"),
    ({**BROWSER, "fields": {}}, f"{LOGIN} has an unknown key 'fields': it may have logged_out, check, url, steps, hosts"),
    ({**BROWSER, "hosts": "sso.example.com"}, f"{LOGIN}['hosts'] must be a list of texts"),
    ({**FORM, "logged_out": {"text": ""}}, f"{LOGIN}['logged_out']['text'] must be a text"),
    ({"type": "froms"}, f"{LOGIN} has the unknown type 'froms': did you mean 'form'?"),
]


@pytest.mark.parametrize(("login", "sentence"), WRONG)
def test_wrong_values(login: dict[str, object], sentence: str) -> None:
    with pytest.raises(SettingError) as raised:
        read(login)
    assert str(raised.value).startswith(sentence)
    assert "s3cret" not in str(raised.value)


LITERALS = [
    (FORM, []),
    ({**FORM, "fields": {"user": "crawler", "password": "p"}}, ["['fields']['password']"]),
    ({**FORM, "then": [{"fields": {"otp": "1"}}]}, ["['then'][0]['fields']['otp']"]),
    (BROWSER, []),
    (
        {**BROWSER, "steps": [{"fill": {"#user": "crawler", "input[type=password]": "p"}}, {"fill": {"#otp": "1"}}]},
        ["['steps'][0]['fill']['input[type=password]']", "['steps'][1]['fill']['#otp']"],
    ),
    ({**OAUTH, "client_secret": "s"}, ["['client_secret']"]),
    ({"type": "cookies", "cookies": {"sid": "s"}, "logged_out": {"text": "Log in"}}, ["['cookies']['sid']"]),
    ({"type": "cookies", "cookies": {"sid": "env:SID"}, "logged_out": {"text": "Log in"}}, []),
]


@pytest.mark.parametrize(("login", "expected"), LITERALS)
def test_secrets_in_the_settings_are_found(login: dict[str, object], expected: list[str]) -> None:
    assert [*read(login).literals()] == [f"{LOGIN}{place}" for place in expected]


UNSET = [
    ({**FORM, "fields": {"user": "crawler", "password": "env:UNSET"}}, "['fields']['password']"),
    ({**FORM, "then": [{"fields": {"otp": "env:UNSET"}}]}, "['then'][0]['fields']['otp']"),
    ({**BROWSER, "steps": [{"click": "a"}, {"fill": {"#otp": "env:UNSET"}}]}, "['steps'][1]['fill']['#otp']"),
    ({**OAUTH, "client_secret": "env:UNSET"}, "['client_secret']"),
    ({"type": "cookies", "cookies": {"sid": "env:UNSET"}, "logged_out": {"text": "Log in"}}, "['cookies']['sid']"),
]


@pytest.mark.parametrize(("login", "place"), UNSET)
def test_a_secret_that_cannot_be_read_is_named_by_its_place(
    monkeypatch: pytest.MonkeyPatch, login: dict[str, object], place: str
) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", "one")
    with pytest.raises(SettingError) as raised:
        read(login).sent()
    assert str(raised.value).startswith(f"{LOGIN}{place} ")


def test_another_log_in_is_sent_otherwise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", "one")
    file = tmp_path / "cookies.txt"
    file.write_text("a")
    cookies = {"type": "cookies", "file": str(file), "logged_out": {"text": "Log in"}}
    before = [read(login).sent() for login in (FORM, {**FORM, "form": "form"}, OAUTH, cookies)]
    monkeypatch.setenv("WIKI_PASSWORD", "two")
    file.write_text("b")
    after = [read(login).sent() for login in (FORM, {**FORM, "form": "form"}, OAUTH, cookies)]
    assert len({repr(sent) for sent in before + after}) == 8
    file.unlink()
    with pytest.raises(SettingError, match="which cannot be read: No such file"):
        read(cookies).sent()


FIELDS = {"user": "crawler", "password": "env:WIKI_PASSWORD"}
OTHERS = [
    (FORM, {**FORM, "fields": {"name": "crawler", "password": "env:WIKI_PASSWORD"}}),
    (
        BROWSER,
        {
            **BROWSER,
            "steps": [{**BROWSER["steps"][0], "fill": {f"#{name}": value for name, value in FIELDS.items()}, "click": "a"}],
        },
    ),
    (BROWSER, {**BROWSER, "steps": [{**BROWSER["steps"][0], "fill": {f".{name}": value for name, value in FIELDS.items()}}]}),
]


@pytest.mark.parametrize(("login", "corrected"), OTHERS)
def test_one_that_was_corrected_is_another_log_in(
    monkeypatch: pytest.MonkeyPatch, login: dict[str, object], corrected: dict[str, object]
) -> None:
    monkeypatch.setenv("WIKI_PASSWORD", "one")
    assert read(login).sent() == read(login).sent()
    assert read(login).sent() != read(corrected).sent()


CERTIFICATES = [
    (
        {"wiki.example.com": {"login": BROWSER, "ca_file": "ca.pem"}},
        "wiki.example.com",
        "ca_file",
        "have system and browser trust",
    ),
    (
        {"wiki.example.com": {"login": BROWSER, "client_certificate": "own.pem"}},
        "wiki.example.com",
        "client_certificate",
        "use a log-in of another type",
    ),
    (
        {"wiki.example.com": {"login": {**BROWSER, "hosts": ["sso.example.com"]}}, "sso.example.com": {"ca_file": "ca.pem"}},
        "sso.example.com",
        "ca_file",
        "have system and browser trust",
    ),
]


@pytest.mark.parametrize(("sites", "host", "key", "way"), CERTIFICATES)
def test_certificates_that_the_browser_cannot_take(sites: dict[str, object], host: str, key: str, way: str) -> None:
    with pytest.raises(SettingError) as raised:
        read_sites({"CRAWLSPACE_SITES": sites, "DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8})
    sentence = (
        f"CRAWLSPACE_SITES['{host}'] has '{key}', which the browser cannot take, and {WHERE} logs in to it in the browser: {way}"
    )
    assert str(raised.value).startswith(sentence)


def test_certificates_of_other_sites_do_not_matter() -> None:
    sites = {"wiki.example.com": {"login": BROWSER}, "other.example.com": {"ca_file": "ca.pem"}}
    assert read_sites({"CRAWLSPACE_SITES": sites, "DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8}).accesses


def test_a_seal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSION_KEY", "one")
    own, keyless, shared = Seal(), Seal(is_shared=True), Seal("env:SESSION_KEY", is_shared=True)
    assert (own.closed("c"), own.opened("c"), own.keeps) == ("c", "c", True)
    assert (keyless.closed("c"), keyless.opened("c"), keyless.keeps) == ("", None, False)
    closed = shared.closed("content")
    assert "content" not in closed
    assert (shared.opened(closed), shared.opened("c"), shared.opened(""), shared.keeps) == ("content", None, None, True)
    monkeypatch.setenv("SESSION_KEY", "two")
    assert shared.opened(closed) is None
    monkeypatch.delenv("SESSION_KEY")
    with pytest.raises(SettingError, match="CRAWLSPACE_SESSION_KEY is env:SESSION_KEY, and the environment has no variable"):
        shared.check()
