"""Proxies: what CRAWLSPACE_PROXY and the "proxy" of a site may be, and which proxy a URL is requested through."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

import pytest

from crawlspace import settings as defaults
from crawlspace.config.proxies import Proxies, read_no_proxy, read_proxies, read_proxy
from crawlspace.config.sites import read_sites
from crawlspace.errors import SettingError
from crawlspace.urls import parse

ALL, WIKI = "http://proxy.example.com:3128", "http://wiki-proxy.example.com:8080"
DEFAULTS = {name: value for name, value in vars(defaults).items() if name.isupper()}
OF_ENVIRONMENT = {"http_proxy": "env-proxy.example.com:1", "https_proxy": "https://env-proxy.example.com:2"}
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


def proxies(settings: Mapping[str, object]) -> Proxies:
    known = {**DEFAULTS, **settings}
    return read_proxies(known, read_sites(known))


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


COLLECTION: dict[str, object] = {"CRAWLSPACE_PROXY": ALL, "CRAWLSPACE_NO_PROXY": ["intranet.example.com", "*.lan", "10.0.0.0/8"]}
SITES: dict[str, object] = {
    "wiki.example.com": {"proxy": WIKI},
    "direct.example.com": {"proxy": "direct"},
    "*.lan:8443": {"proxy": WIKI},
    "*.own.example": {"no_proxy": "a.own.example"},
    "both.example": {"proxy": WIKI, "no_proxy": "both.example:8080"},
}
EVERYTHING = COLLECTION | {"CRAWLSPACE_SITES": SITES}
ONLY_SITES: dict[str, object] = {"CRAWLSPACE_SITES": SITES}
WHICH: list[tuple[dict[str, object], dict[str, str], str, str | None]] = [
    # settings, environment, URL, the proxy
    ({},                              {},               "http://www.example.com/",           None),
    (COLLECTION,                      {},               "http://www.example.com/",           ALL),
    (COLLECTION,                      {},               "https://www.example.com/",          ALL),
    (COLLECTION,                      {},               "http://intranet.example.com/",      None),
    (COLLECTION,                      {},               "http://INTRANET.example.com:81/",   None),
    (COLLECTION,                      {},               "http://a.intranet.example.com/",    None),
    (COLLECTION,                      {},               "http://anintranet.example.com/",    ALL),
    (COLLECTION,                      {},               "http://host.lan/",                  None),
    (COLLECTION,                      {},               "http://lan/",                       ALL),
    (COLLECTION,                      {},               "http://10.1.2.3/",                  None),
    (COLLECTION,                      {},               "http://0x0a.1/",                    None),
    (COLLECTION,                      {},               "http://11.1.2.3/",                  ALL),
    (COLLECTION,                      {},               "http://[::1]/",                     ALL),
    (COLLECTION,                      OF_ENVIRONMENT,   "http://www.example.com/",           ALL),
    (COLLECTION,                      {"no_proxy": "*"}, "http://www.example.com/",          ALL),
    (EVERYTHING,                      {},               "http://wiki.example.com/",          WIKI),
    (EVERYTHING,                      {},               "http://direct.example.com/",        None),
    (EVERYTHING,                      {},               "https://host.lan:8443/",            WIKI),
    (EVERYTHING,                      {},               "https://host.lan/",                 None),
    (EVERYTHING,                      {},               "https://a.own.example/",            None),
    (EVERYTHING,                      {},               "https://b.own.example/",            ALL),
    (EVERYTHING,                      {},               "http://both.example/",              WIKI),
    (EVERYTHING,                      {},               "http://both.example:8080/",         None),
    (ONLY_SITES,                      {},               "http://wiki.example.com/",          WIKI),
    (ONLY_SITES,                      {},               "http://www.example.com/",           None),
    (ONLY_SITES,                      OF_ENVIRONMENT,   "http://www.example.com/",           "http://env-proxy.example.com:1"),
    (ONLY_SITES,                      OF_ENVIRONMENT,   "http://direct.example.com/",        None),
    (ONLY_SITES,                      OF_ENVIRONMENT,   "http://a.own.example/",             None),
    ({},                              OF_ENVIRONMENT,   "http://www.example.com/",           "http://env-proxy.example.com:1"),
    ({},                              OF_ENVIRONMENT,   "https://www.example.com/",          "https://env-proxy.example.com:2"),
    ({},                              {"all_proxy": ALL}, "https://www.example.com/",        None),
    ({},                              {"http_proxy": "/var/run/docker.sock"}, "http://a.example/", None),
    ({},                              OF_ENVIRONMENT | {"no_proxy": "example.com"}, "http://www.example.com/", None),
    ({"CRAWLSPACE_PROXY": "direct"},  OF_ENVIRONMENT,   "http://www.example.com/",           None),
    ({"CRAWLSPACE_NO_PROXY": "a.example, b.example"}, OF_ENVIRONMENT, "http://b.example/",   None),
    ({"CRAWLSPACE_NO_PROXY": "a.example, b.example"}, OF_ENVIRONMENT, "http://c.example/",   "http://env-proxy.example.com:1"),
    (EVERYTHING | {"HTTPPROXY_ENABLED": False}, OF_ENVIRONMENT, "http://wiki.example.com/",  None),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "environment", "text", "expected"), WHICH)
def test_which_proxy(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, object], environment: dict[str, str], text: str, expected: str | None
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found, url = proxies(settings), parse(text)
    proxy = found.of(url.scheme, url.host, url.port)
    assert (None if proxy is None else found.address(proxy).url) == expected
    assert found.has(url) is (expected is not None)


WITHOUT: list[tuple[object, str, bool]] = [
    # value, URL, whether it is requested without a proxy
    ("a.example",                 "http://a.example/",           True),
    ("a.example",                 "http://b.a.example/",         True),
    (".a.example",                "http://b.a.example/",         True),
    (".a.example",                "http://a.example/",           True),
    ("a.example:8080",            "http://b.a.example:8080/",    True),
    ("a.example:8080",            "http://a.example/",           False),
    ("x a.example,y",             "http://a.example/",           True),
    ("*",                         "http://[::1]/",               True),
    ("*.example",                 "http://b.a.example/",         True),
    ("intra*",                    "http://intranet/",            True),
    ("127.0.0.1",                 "http://127.1/",               True),
    ("127.0.0.1",                 "http://127.0.0.2/",           False),
    ("127.0.0.1:80",              "http://127.0.0.1/",           True),
    ("127.0.0.1:80",              "http://127.0.0.1:81/",        False),
    ("::1",                       "http://[::1]:99/",            True),
    ("[::1]:99",                  "http://[::1]:99/",            True),
    ("fd00::/8",                  "http://[fd00:1::2]/",         True),
    ("[fd00::]/8",                "http://[fd00:1::2]/",         True),
    ("fd00::/8",                  "http://10.0.0.1/",            False),
    ("10.1.2.3/8",                "http://10.9.9.9/",            True),
    ("10.0.0.0/255.0.0.0",        "http://10.9.9.9/",            True),
    (("a.example", "b.example"),  "http://b.example/",           True),
    ([],                          "http://b.example/",           False),
    ("straße.example",            "http://xn--strae-oqa.example/", True),
]  # fmt: skip


@pytest.mark.parametrize(("value", "text", "expected"), WITHOUT)
def test_hosts_without_a_proxy(value: object, text: str, *, expected: bool) -> None:
    no_proxy, url = read_no_proxy("CRAWLSPACE_NO_PROXY", value), parse(text)
    assert no_proxy is not None
    assert no_proxy.matches(url.host, url.port) is expected


WRONG: list[tuple[object, str]] = [
    (5,                      "is 5; it must be a list, or text with commas, of entries like"),
    ([5],                    "is [5]; it must be a list, or text with commas"),
    ("http://a.example/",    "has 'http://a.example/': a domain target is a host name without a scheme"),
    ("10.0.0.0/40",          "has '10.0.0.0/40', which is no range of addresses; an entry is like"),
    ("a.example/x",          "has 'a.example/x', which is no range of addresses"),
    ("a.example:port",       "has 'a.example:port': "),
]  # fmt: skip


@pytest.mark.parametrize(("value", "sentence"), WRONG)
def test_wrong_exceptions(value: object, sentence: str) -> None:
    with pytest.raises(SettingError) as raised:
        read_no_proxy("CRAWLSPACE_NO_PROXY", value)
    assert str(raised.value).startswith(f"CRAWLSPACE_NO_PROXY {sentence}")


@pytest.mark.parametrize(
    ("sites", "sentence"),
    [
        (
            {"a.example": {"proxy": "socks6://x"}},
            "CRAWLSPACE_SITES['a.example']['proxy'] is 'socks6://x', which has the scheme 'socks6'",
        ),
        ({"a.example": {"no_proxy": 1}}, "CRAWLSPACE_SITES['a.example']['no_proxy'] is 1; it must be a list"),
        ({"a.example": {"proxi": ALL}}, "CRAWLSPACE_SITES['a.example'] has an unknown key 'proxi': did you mean 'proxy'?"),
    ],
)
def test_wrong_values_of_a_site(sites: dict[str, object], sentence: str) -> None:
    with pytest.raises(SettingError) as raised:
        proxies({"CRAWLSPACE_SITES": sites})
    assert str(raised.value).startswith(sentence)


UNUSED = [
    # entries, sites, those that match none
    (["a.example", "b.example", "10.0.0.0/8"],  [("x.a.example", 80), ("10.0.0.1", 80)],  ["b.example"]),
    (["a.example"],                             [],                                       ["a.example"]),
]  # fmt: skip


@pytest.mark.parametrize(("entries", "sites", "expected"), UNUSED)
def test_entries_that_match_nothing(entries: list[str], sites: list[tuple[str, int]], expected: list[str]) -> None:
    no_proxy = read_no_proxy("CRAWLSPACE_NO_PROXY", entries)
    assert no_proxy is not None
    assert no_proxy.unused(sites) == expected


SENTENCES: list[tuple[dict[str, object], dict[str, str], str]] = [
    # settings, environment, which sites are requested through a proxy
    ({},                                         {},             ""),
    ({"CRAWLSPACE_PROXY": "direct"},             OF_ENVIRONMENT, ""),
    ({"CRAWLSPACE_NO_PROXY": "a.example"},       {},             ""),
    ({"CRAWLSPACE_PROXY": ALL},                  {},             "all sites"),
    (EVERYTHING,                                 {},             "all sites but direct.example.com, intranet.example.com, *.lan, 10.0.0.0/8"),
    (ONLY_SITES,                                 {},             "wiki.example.com, *.lan:8443, both.example"),
    ({},                                         OF_ENVIRONMENT, "all sites (http_proxy, https_proxy)"),
    (EVERYTHING | {"HTTPPROXY_ENABLED": "0"},    OF_ENVIRONMENT, ""),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "environment", "sentence"), SENTENCES)
def test_what_is_told_of_all(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, object], environment: dict[str, str], sentence: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = proxies(settings)
    assert found.sentence == sentence
    assert bool(found.content_hash) is bool(sentence)


SAME: list[tuple[dict[str, object], dict[str, object], bool]] = [
    # settings before and after, whether the same URLs go through a proxy
    ({"CRAWLSPACE_PROXY": ALL},   {"CRAWLSPACE_PROXY": WIKI},                                   True),
    ({"CRAWLSPACE_PROXY": ALL},   {"CRAWLSPACE_PROXY": "env:A"},                                True),
    ({"CRAWLSPACE_PROXY": ALL},   {"CRAWLSPACE_PROXY": ALL, "CRAWLSPACE_SITES": {"a": {"delay": 1}}}, True),
    (COLLECTION,                  COLLECTION | {"CRAWLSPACE_NO_PROXY": "10.0.0.0/8,*.lan intranet.example.com"}, True),
    ({},                          {"CRAWLSPACE_NO_PROXY": "a.example"},                         True),
    ({},                          {"CRAWLSPACE_PROXY": ALL},                                    False),
    ({"CRAWLSPACE_PROXY": ALL},   COLLECTION,                                                   False),
    (COLLECTION,                  EVERYTHING,                                                   False),
    ({"CRAWLSPACE_PROXY": ALL},   {"CRAWLSPACE_PROXY": ALL, "HTTPPROXY_ENABLED": False},        False),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "same"), SAME)
def test_a_change_of_what_goes_through_a_proxy(before: dict[str, object], after: dict[str, object], *, same: bool) -> None:
    assert (proxies(before).content_hash == proxies(after).content_hash) is same


def test_secrets_are_read_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    found = proxies({"CRAWLSPACE_SITES": {"a.example": {"proxy": "env:NO_SUCH_PROXY"}}})
    with pytest.raises(SettingError, match="no variable NO_SUCH_PROXY"):
        found.check()
    proxies({"CRAWLSPACE_PROXY": "env:NO_SUCH_PROXY", "HTTPPROXY_ENABLED": False}).check()
    monkeypatch.setenv("https_proxy", "socks6://proxy.example.com:1080")
    with pytest.raises(SettingError, match=r"https_proxy is 'socks6://proxy.example.com:1080', which has the scheme 'socks6'"):
        proxies({}).check()
    proxies({"CRAWLSPACE_PROXY": "direct"}).check()


def test_a_log_in_in_the_browser_goes_through_no_proxy() -> None:
    steps = [{"fill": {"#user": "crawler", "#password": "env:WIKI_PASSWORD"}, "click": "button"}]
    login = {"type": "browser", "url": "https://wiki.example.com/login", "steps": steps}
    entry: dict[str, object] = {"login": login}
    with pytest.raises(
        SettingError, match=r"CRAWLSPACE_SITES\['wiki.example.com'\] has a log-in in the browser, which goes through no"
    ):
        proxies(COLLECTION | {"CRAWLSPACE_SITES": {"wiki.example.com": entry}})
    proxies(COLLECTION | {"CRAWLSPACE_SITES": {"wiki.example.com": {**entry, "proxy": "direct"}}})


# --- CRAWLSPACE_PROXY, and "proxy" of a site ------------------------------------------------------------------------


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


WRONG_CHOICES: list[tuple[object, str]] = [
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


@pytest.mark.parametrize(("value", "sentence"), WRONG_CHOICES)
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
