"""Digest log-ins: the examples of the RFCs, and which challenges are answered."""

from __future__ import annotations

import re
from urllib.request import parse_http_list, parse_keqv_list

import pytest

from crawlspace.access import digest
from crawlspace.access.digest import DigestLogin

OF_RFC_7616 = (
    'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm={}, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v",'
    ' opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
)
CLIENT_NONCE = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
EXAMPLES = [
    ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
    ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
]


@pytest.mark.parametrize(("algorithm", "response"), EXAMPLES)
def test_the_example_of_the_rfc(monkeypatch: pytest.MonkeyPatch, algorithm: str, response: str) -> None:
    """RFC 7616, 3.9.1."""
    monkeypatch.setattr(digest, "token_hex", lambda _: CLIENT_NONCE)
    login = DigestLogin("Mufasa", "Circle of Life")
    asked = login.take([OF_RFC_7616.format(algorithm)], answered="")
    assert asked is not None
    sent = login.authorization("GET", "http://www.example.org/dir/index.html", asked)
    given = parse_keqv_list(parse_http_list(sent.removeprefix("Digest ")))
    assert (given["response"], given["uri"], given["nc"], given["qop"]) == (response, "/dir/index.html", "00000001", "auth")
    assert re.search(r"nc=00000002", login.authorization("GET", "http://www.example.org/dir/index.html", asked))


def test_without_qop() -> None:
    """RFC 2069, 2.4, corrected by its erratum."""
    login = DigestLogin("Mufasa", "CircleOfLife")
    asked = login.take(['Digest realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque="x"'], answered="")
    assert asked is not None
    sent = login.authorization("GET", "http://www.nowhere.org/dir/index.html", asked)
    assert 'response="1949323746fe6a43ef61f9606e7febea"' in sent
    assert "cnonce" not in sent


CHALLENGES = [
    (['Basic realm="a"'], "", False),
    (['Basic realm="a"', 'Digest realm="a", nonce="n"'], "", True),
    (['Digest realm="a"'], "", False),
    (['Digest realm="a", nonce="n", qop="auth-int"'], "", False),
    (['Digest realm="a", nonce="n", algorithm=SHA3'], "", False),
    (['Digest realm="a", nonce="n", algorithm=MD5-sess'], "", True),
    (["Digest realm"], "", False),
    (['Digest realm="a", nonce="n"'], "m", False),
    (['Digest realm="a", nonce="n", stale=TRUE'], "m", True),
    ([], "", False),
]


@pytest.mark.parametrize(("challenges", "answered", "expected"), CHALLENGES)
def test_which_challenges_are_answered(challenges: list[str], answered: str, expected: bool) -> None:
    assert (DigestLogin("a", "b").take(challenges, answered=answered) is not None) is expected


def test_one_stale_number_a_request_is_followed() -> None:
    login = DigestLogin("a", "b")
    stale = ['Digest realm="a", nonce="n2", stale=true']
    assert login.take(['Digest realm="a", nonce="n1"'], answered="") == {"realm": "a", "nonce": "n1"}
    assert login.take(stale, answered="n1") == {"realm": "a", "nonce": "n2", "stale": "true"}
    assert login.take(stale, answered="n2", is_last=True) is None


def test_a_number_is_the_requests_own_until_it_was_taken() -> None:
    """A server may take each once only; another request that used it first would make it stale."""
    login = DigestLogin("a", "b")
    assert login.take(['Digest realm="a", nonce="n1"'], answered="")
    assert not login.known
    login.taken("n1")
    assert login.known["nonce"] == "n1"
    login.taken("not given by the server")
    assert login.known["nonce"] == "n1"


def test_the_strongest_is_taken_and_another_request_may_have_a_newer_number() -> None:
    login = DigestLogin("ü", "b")
    asked = login.take([OF_RFC_7616.format("MD5"), OF_RFC_7616.format("SHA-256")], answered="")
    assert asked is not None
    sent = login.authorization("GET", "http://a.example/?q=1", asked)
    assert "algorithm=SHA-256" in sent
    assert "username*=UTF-8''%C3%BC" in sent
    assert 'uri="/?q=1"' in sent
    assert not login.take(['Digest realm="a", nonce="other"'], answered="older")
    login.taken(asked["nonce"])
    assert login.take(['Digest realm="a", nonce="other"'], answered="older")


OFFERS = [
    (["Negotiate", "NTLM", 'Basic realm="a"'], ["Negotiate", "NTLM", "Basic"]),
    (['Negotiate, NTLM, Basic realm="a, b", charset="UTF-8"'], ["Negotiate", "NTLM", "Basic"]),
    (['Digest realm="a", nonce="n, m", qop="auth", Basic realm="b"'], ["Digest", "Basic"]),
    (["Negotiate YII=="], ["Negotiate"]),
    (["NTLM", "NTLM"], ["NTLM"]),
    (["", ",", "=", '"'], []),
    (["x" * 1_000], ["x" * 40]),
    ([", ".join(f"s{n}" for n in range(99))], [f"s{n}" for n in range(8)]),
]


@pytest.mark.parametrize(("values", "offered"), OFFERS)
def test_which_log_ins_a_site_offers(values: list[str], offered: list[str]) -> None:
    assert digest.schemes([value.encode("latin-1") for value in values]) == offered
