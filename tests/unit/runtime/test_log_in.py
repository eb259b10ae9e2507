"""Logging in where sites answer with what is wrong: each ends in one sentence, in which no field of a form is shown."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response
from yarl import URL

from crawlspace.config.proxies.table import Proxies
from crawlspace.config.site_access import SiteAccess, read_site_access
from crawlspace.config.sites import SiteSettings, SiteTable
from crawlspace.rules.limits import Limits
from crawlspace.runtime.access import requests
from crawlspace.runtime.access.log_in import LogIn, LogInFailedError

LOGIN = "https://wiki.example.com/login"
FORM = "<form {}><input name=user><input type=password name=pw></form>"


def access(**more: object) -> SiteAccess:
    return access_of("wiki.example.com", **more)


def access_of(pattern: str, **more: object) -> SiteAccess:
    """The entry of a host with a log-in."""
    login = {"type": "form", "url": LOGIN, "fields": {"user": "me", "pw": "s3cret"}, **more}
    found = read_site_access("X", pattern, {"login": login})
    assert found is not None
    return found


LANDED = [
    # what follows after the form was sent, and the page by which the session can be found alive
    ([(302, "/home", ""), (200, "", "Home")], "https://wiki.example.com/home"),
    ([(302, "/a", ""), (302, "/home", ""), (200, "", "Home")], "https://wiki.example.com/home"),
    ([(302, "/home", ""), (403, "", "Not for you")], ""),
    ([(302, "/home", ""), (404, "", "")], ""),
    ([(200, "", "Welcome")], ""),
    ([(307, "/home", ""), (200, "", "Home")], ""),
    ([(302, "/home?pw=s3cret", ""), (200, "", "Home")], ""),
]


@pytest.mark.parametrize(("answers", "landed"), LANDED)
def test_what_a_log_in_leads_to(answers: list[tuple[int, str, str]], landed: str) -> None:
    left = iter([(200, "", FORM.format("method=post")), *answers])

    async def send(request: Request) -> Response:
        status, location, body = next(left)
        headers = {"Location": location} if location else {}
        return HtmlResponse(request.url, status=status, headers=headers, body=body.encode(), request=request)

    assert asyncio.run(LogIn(access(), send, lambda *_: True).session()).landed == landed


def failure(answers: list[tuple[int, str, str]], **more: object) -> str:
    """Return the sentence that a log-in ends with which gets these answers: status, Location and body."""
    left = iter(answers)
    steps: list[str] = []

    async def send(request: Request) -> Response:
        status, location, body = next(left)
        headers = {"Location": location} if location else {}
        return HtmlResponse(request.url, status=status, headers=headers, body=body.encode(), request=request)

    with pytest.raises(LogInFailedError) as raised:
        asyncio.run(LogIn(access(**more), send, lambda host, _: host == "wiki.example.com", steps.append).session())
    assert "s3cret" not in f"{raised.value} {steps}"
    return str(raised.value)


FAILURES = [
    ([(302, "http://[", "")], f"{LOGIN} redirects to http://[, which is no URL"),
    ([(302, "https://wiki.example.com:99999/", "")], "redirects to https://wiki.example.com:99999/, which is no URL"),
    ([(302, "javascript:go()", "")], "redirects to javascript:go(), which is no URL"),
    ([(200, "", FORM.format("action='http://['"))], f"{LOGIN} has a form that is sent to 'http://[', which is no URL"),
    ([(200, "", FORM.format("action=mailto:a@b.example"))], "has a form that is sent to 'mailto:a@b.example', which is no URL"),
    ([(200, "", FORM.format("")), (200, "", FORM.format("") + "password")], f"{LOGIN}?… shows the form of the log-in after"),
    ([(200, "", FORM.format("")), (302, "/login?pw=s3cret", ""), (403, "", "")], f"{LOGIN}?… shows status 403 after"),
]


@pytest.mark.parametrize(("answers", "sentence"), FAILURES)
def test_what_a_log_in_ends_with(answers: list[tuple[int, str, str]], sentence: str) -> None:
    assert sentence in failure(answers)


def test_a_further_form_that_is_missing_shows_nothing_of_the_one_before() -> None:
    found = failure([(200, "", FORM.format("")), (200, "", "<p>Hello")], then=[{"fields": {"code": "1"}}])
    assert found == f"{LOGIN}?… has no form with 'code': it has no form"


def test_errors_of_the_client_show_no_query() -> None:
    asked = aiohttp.RequestInfo(URL(f"{LOGIN}?pw=s3cret"), "GET", headers={}, real_url=URL(f"{LOGIN}?pw=s3cret"))  # type: ignore[arg-type]
    errors = [aiohttp.ClientResponseError(asked, (), status=400, message="Bad header"), aiohttp.InvalidURL(f"{LOGIN}?pw=s3cret")]

    class Session:
        def request(self, *args: object, **values: object) -> object:
            raise errors.pop()

    sites = SiteTable(SiteSettings(0, 1, Limits()), {})
    sending = requests.LoginRequests("a", sites, Proxies(sites, environment={}))
    for why in ("its address is not valid", "Bad header"):
        with pytest.raises(LogInFailedError) as raised:
            asyncio.run(sending._send(Session(), Request(f"{LOGIN}?pw=s3cret")))  # type: ignore[arg-type]
        assert str(raised.value) == f"https://wiki.example.com cannot be reached: {why}"
