"""What CRAWLSPACE_PROXY and the "proxy" of a site may be: which proxy with which log-in that is, and what is refused with which sentence."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from crawlspace.config.proxies import read_proxy
from crawlspace.errors import SettingError

WHERE = "CRAWLSPACE_PROXY"
URL = "http://proxy.example.com:3128"
PASSWORD = "s3cret of the proxy"
LOG_IN = {"url": URL, "user": "crawler", "password": "env:PROXY_PASSWORD"}


def basic(user: str, password: str, encoding: str = "latin-1") -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode(encoding)).decode()


READ = [
    # value, where the proxy is, Proxy-Authorization, as it is shown
    (URL,                                               URL,                                 "",  f"{URL} ({WHERE})"),
    (f" {URL}/ ",                                       URL,                                 "",  f"{URL} ({WHERE})"),
    ("HTTPS://Proxy.Example.com",                       "https://proxy.example.com:443",     "",  f"https://proxy.example.com:443 ({WHERE})"),
    ("http://proxy.example.com",                        "http://proxy.example.com:80",       "",  f"http://proxy.example.com:80 ({WHERE})"),
    ("socks5://proxy.example.com",                      "socks5://proxy.example.com:1080",   "",  f"socks5://proxy.example.com:1080 ({WHERE})"),
    ("SOCKS5H://a:b%40c@[::1]:9050",                    "socks5h://[::1]:9050",              basic("a", "b@c"), f"socks5h://[::1]:9050 ({WHERE})"),
    ("socks4a://proxy.example.com:80",                  "socks4a://proxy.example.com:80",    "",  f"socks4a://proxy.example.com:80 ({WHERE})"),
    ("http://[::1]:3128",                               "http://[::1]:3128",                 "",  f"http://[::1]:3128 ({WHERE})"),
    ("http://a:b%40c@proxy.example.com:3128",           URL,                                 basic("a", "b@c"), f"{URL} ({WHERE})"),
    ("http://a@proxy.example.com:3128",                 URL,                                 basic("a", ""), f"{URL} ({WHERE})"),
    ("env:PROXY_URL",                                   URL,                                 basic("a", "pw"), f"env:PROXY_URL ({WHERE})"),
    (LOG_IN,                                            URL,                                 basic("crawler", PASSWORD), f"{URL} ({WHERE})"),
    ({"url": URL},                                      URL,                                 "",  f"{URL} ({WHERE})"),
    (LOG_IN | {"user": "env:PROXY_USER"},               URL,                                 basic("ü", PASSWORD), f"{URL} ({WHERE})"),
    ('{"url": "http://proxy.example.com:3128"}',        URL,                                 "",  f"{URL} ({WHERE})"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("PASSWORD", PASSWORD), ("USER", "ü"), ("URL", "http://a:pw@proxy.example.com:3128"), ("EMPTY", " ")):
        monkeypatch.setenv(f"PROXY_{name}", value)
    monkeypatch.setenv("PROXY_WRONG", f"{PASSWORD}@proxy.example.com:3128")
    monkeypatch.setenv("PROXY_SOCKS", f"socks6://a:{PASSWORD}@proxy.example.com:3128")


@pytest.mark.parametrize(("value", "url", "authorization", "sentence"), READ)
def test_what_is_read(value: object, url: str, authorization: str, sentence: str) -> None:
    proxy = read_proxy(WHERE, value)
    assert proxy is not None
    address = proxy.address()
    assert (address.url, address.authorization, proxy.sentence) == (url, authorization, sentence)
    for shown in (repr(proxy), repr(address)):
        assert not any(secret in shown for secret in (PASSWORD, "b%40c", "b@c", "pw", "Basic"))


@pytest.mark.parametrize(
    ("value", "is_direct"), [(None, None), ("", None), (" ", None), ("direct", True), ("DIRECT ", True), (URL, False)]
)
def test_direct_and_not_set(value: object, *, is_direct: bool | None) -> None:
    proxy = read_proxy(WHERE, value)
    assert (None if proxy is None else proxy.is_direct) is is_direct


WRONG: list[tuple[object, str]] = [
    ("socks6://proxy:1080",                   "is 'socks6://proxy:1080', which has the scheme 'socks6': did you mean"),
    ("htp://proxy:3128",                      "is 'htp://proxy:3128', which has the scheme 'htp': did you mean 'http'?"),
    ("ftp://proxy:3128",                      "is 'ftp://proxy:3128', which has the scheme 'ftp': "),
    ("proxy.example.com:3128",                "is 'proxy.example.com:3128', which is no URL; it must be like 'http://proxy.example.com:3128': write 'http://proxy.example.com:3128'"),
    ("none",                                  "is 'none'; it must be the URL of a proxy, as in 'http://proxy.example.com:3128', or 'direct' for none"),
    (False,                                   "is False; it must be the URL of a proxy"),
    (3128,                                    "is 3128; it must be the URL of a proxy"),
    ("http://proxy:3128/pac",                 "is 'http://proxy:3128/pac', which has something after the host; a proxy has only host and port"),
    ("http://proxy:port",                     "is 'http://proxy:port', which has no valid host and port"),
    ("http://:3128",                          "is 'http://:3128', which has no valid host and port"),
    (f"http://a:x/{PASSWORD}@proxy:3128",     "is 'http://…@proxy:3128', which has no valid host and port"),
    (f"a:{PASSWORD}@proxy:3128",              "is '…@proxy:3128', which is no URL; it must be like 'http://proxy.example.com:3128'"),
    (f"http//a:{PASSWORD}@proxy:3128",        "is '…@proxy:3128', which is no URL; it must be like 'http://proxy.example.com:3128'"),
    ({"url": URL, "pasword": "env:X"},        "has an unknown key 'pasword': did you mean 'password'?"),
    ({"user": "a", "password": "env:X"},      "has no 'url'; it must be like"),
    ({"url": URL, "user": "a"},               "has no 'password'; it must be like"),
    ({"url": URL, "password": "env:X"},       "has no 'user'; it must be like"),
    ({"url": "direct"},                       "['url'] is 'direct', which is no URL; it must be like"),
    ({"url": URL, "user": 5, "password": ""}, "['user'] must be a text"),
    (LOG_IN | {"url": "http://b:c@proxy:1"},  "['url'] has a user of its own, beside CRAWLSPACE_PROXY['user']: leave one"),
    ("{url}",                                 "is no JSON; it must be like"),
    ("env:",                                  "is 'env:', which names nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "sentence"), WRONG)
def test_wrong_values(value: object, sentence: str) -> None:
    with pytest.raises(SettingError) as raised:
        read_proxy(WHERE, value)
    assert PASSWORD not in str(raised.value)
    assert str(raised.value).startswith(WHERE + ("" if sentence.startswith("[") else " ") + sentence)


UNREADABLE: list[tuple[object, str]] = [
    ("env:PROXY_NOWHERE",                        f"{WHERE} is env:PROXY_NOWHERE, and the environment has no variable PROXY_NOWHERE; set it"),
    ("env:PROXY_EMPTY",                          f"{WHERE} is env:PROXY_EMPTY, and that variable is empty"),
    ("env:PROXY_WRONG",                          f"{WHERE} names what is no URL; it must be like"),
    ("env:PROXY_SOCKS",                          f"{WHERE} names what has the scheme 'socks6': did you mean"),
    ("file:nowhere",                             f"{WHERE} is file:nowhere, which cannot be read"),
    (LOG_IN | {"password": "env:PROXY_NOWHERE"}, f"{WHERE}['password'] is env:PROXY_NOWHERE, and the environment has no variable"),
    (LOG_IN | {"url": "env:PROXY_URL"},          f"{WHERE}['url'] has a user of its own"),
    (LOG_IN | {"user": "a:b"},                   f"the user of {WHERE} has a colon"),
    (LOG_IN | {"user": "ж"},                     f"the log-in of {WHERE} has a character that 'latin-1' has not: set HTTPPROXY_AUTH_ENCODING to 'utf-8'"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "sentence"), UNREADABLE)
def test_secrets_that_cannot_be_used(value: object, sentence: str) -> None:
    proxy = read_proxy(WHERE, value)
    assert proxy is not None
    with pytest.raises(SettingError) as raised:
        proxy.address()
    assert str(raised.value).startswith(sentence)
    assert PASSWORD not in str(raised.value)


def test_a_reference_to_a_file_and_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "proxy").write_text("http://%D0%B6:x@proxy.example.com:3128\n")
    proxy = read_proxy(WHERE, f"file:{tmp_path / 'proxy'}")
    assert proxy is not None
    assert proxy.address(encoding="utf-8").authorization == basic("ж", "x", "utf-8")


LITERALS: list[tuple[object, list[str]]] = [
    (URL,                                       []),
    ("env:PROXY_URL",                           []),
    ("direct",                                  []),
    (LOG_IN,                                    []),
    (LOG_IN | {"password": "x"},                [f"{WHERE}['password']"]),
    ("http://a:x@proxy.example.com:3128",       [WHERE]),
    ("http://a@proxy.example.com:3128",         []),
    ({"url": "http://a:x@proxy.example.com:1"}, [f"{WHERE}['url']"]),
]  # fmt: skip


@pytest.mark.parametrize(("value", "places"), LITERALS)
def test_secrets_in_the_settings_themselves(value: object, places: list[str]) -> None:
    proxy = read_proxy(WHERE, value)
    assert proxy is not None
    assert list(proxy.literals()) == places
