"""What a request of the browser tells: which document it is for, whether it may be sent, and whether it shows anything."""

from __future__ import annotations

import pytest

from crawlspace.runtime.browser.resources import BrowserRequest, Initiator

A = "http://a.example.com/page"
OWN, SAME_SITE, OTHER = Initiator.OWN, Initiator.SAME_SITE, Initiator.OTHER

INITIATORS = [
    # URL, headers, the document that asks
    ("https://a.example.com/x", {"sec-fetch-site": "same-origin"}, OWN),
    ("https://a.example.com/x", {"sec-fetch-site": "same-site"}, SAME_SITE),
    ("https://a.example.com/x", {"sec-fetch-site": "cross-site"}, OTHER),
    ("https://a.example.com/x", {"sec-fetch-site": "none"}, OTHER),
    ("https://a.example.com/x", {"sec-fetch-site": "cross-site", "referer": "https://a.example.com/"}, OTHER),
    ("http://a.example.com/x", {"referer": A}, OWN),
    ("http://a.example.com:80/x", {"referer": A}, OWN),
    ("http://a.example.com:8080/x", {"referer": A}, SAME_SITE),
    ("https://a.example.com/x", {"referer": A}, OTHER),
    ("http://b.example.com/x", {"referer": A}, SAME_SITE),
    ("http://a.example.org/x", {"referer": A}, OTHER),
    ("http://b.co.uk/x", {"referer": "http://a.co.uk/"}, OTHER),
    ("http://b.github.io/x", {"referer": "http://a.github.io/"}, OTHER),
    ("http://127.0.0.1/x", {"referer": "http://127.0.0.2/"}, OTHER),
    ("http://[::1]/x", {"referer": "http://[::1]/"}, OWN),
    ("http://intranet/x", {"referer": "http://intranet/"}, OWN),
    ("http://a.example.com/x", {"origin": "http://a.example.com"}, OWN),
    ("http://a.example.com/x", {"origin": "http://evil.example", "referer": A}, OTHER),
    ("http://a.example.com/x", {"origin": "null", "referer": A}, OTHER),
    ("http://a.example.com/x", {"referer": "http://a.example.com:x/"}, OTHER),
    ("http://a.example.com/x", {}, OTHER),
]


@pytest.mark.parametrize(("url", "headers", "expected"), INITIATORS)
def test_which_document_a_request_is_for(url: str, headers: dict[str, str], expected: Initiator) -> None:
    assert BrowserRequest("GET", url, headers).initiator is expected


FORM, JSON = {"content-type": "application/x-www-form-urlencoded"}, {"content-type": "application/json"}
SENT = [
    # method, headers, to: the own host, the own site, another site
    ("GET", {}, True, True, True),
    ("HEAD", {}, True, True, True),
    ("POST", {}, True, True, True),
    ("POST", FORM, True, True, True),
    ("POST", {"content-type": "multipart/form-data; boundary=x"}, True, True, True),
    ("POST", {"content-type": "Text/Plain;charset=UTF-8"}, True, True, True),
    ("POST", JSON, True, True, False),
    ("PUT", {}, True, True, False),
    ("PATCH", JSON, True, True, False),
    ("DELETE", {}, True, True, False),
    ("OPTIONS", {}, True, True, False),
    ("OPTIONS", {"access-control-request-method": "GET"}, True, True, True),
    ("OPTIONS", {"access-control-request-method": "POST"}, True, True, False),
    ("OPTIONS", {"access-control-request-method": "DELETE"}, True, True, False),
]


@pytest.mark.parametrize(("method", "headers", "own", "same_site", "other"), SENT)
def test_what_is_sent_across_sites(method: str, headers: dict[str, str], own: bool, same_site: bool, other: bool) -> None:
    sent = [
        not BrowserRequest(method, "https://a.example.com/", headers | {"sec-fetch-site": one.value}).is_refused_across_sites
        for one in (OWN, SAME_SITE, OTHER)
    ]
    assert sent == [own, same_site, other]


SUPERFLUOUS = [
    ({"sec-fetch-site": "none", "sec-fetch-dest": "empty"}, True),
    ({"sec-fetch-dest": "image"}, True),
    ({"sec-fetch-dest": "font"}, True),
    ({"sec-fetch-dest": "document"}, True),
    ({"sec-fetch-dest": "iframe"}, False),
    ({"sec-fetch-dest": "script"}, False),
    ({"sec-fetch-dest": "empty"}, False),
    ({"accept": "image/avif,image/webp,*/*;q=0.8"}, True),
    ({"accept": "text/event-stream"}, True),
    ({"accept": "text/html,*/*"}, False),
    ({"sec-purpose": "prefetch;prerender"}, True),
    ({"service-worker": "script"}, True),
    ({"content-type": "application/csp-report"}, True),
]


@pytest.mark.parametrize(("headers", "expected"), SUPERFLUOUS)
def test_what_shows_nothing(headers: dict[str, str], expected: bool) -> None:
    assert BrowserRequest("GET", "http://a.example.com/", headers).is_superfluous is expected
