"""Logging in where sites answer with what is wrong: each ends in one sentence, in which no field of a form is shown."""

from __future__ import annotations

import asyncio
import socket

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from crawlspace.config.access import SiteAccess, read_site_access
from crawlspace.config.proxies import Proxies
from crawlspace.config.sites import SiteSettings, SiteTable
from crawlspace.decision import Decision, Reason
from crawlspace.rules.limits import Limits
from crawlspace.runtime.access.client import LoginClient, guard_of_logins
from crawlspace.runtime.access.login_kinds import LogIn, LogInFailedError
from crawlspace.runtime.http.resolver import Guard

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
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(LogInFailedError) as raised:
        asyncio.run(login_client().get(Request(f"{nobody}/login?pw=s3cret")))
    assert str(raised.value) == f"{nobody} cannot be reached: connection refused"


GUARDED = [
    # address rules, what a log-in at 127.0.0.1 meets
    (None,                          "connection refused"),
    (Reason.ADMITTED,               "connection refused"),
    (Reason.PRIVATE_ADDRESS,        "connection refused"),
    (Reason.ADDRESS,                "an address rule forbids it"),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "why"), GUARDED)
def test_address_rules_hold_for_log_ins(reason: Reason | None, why: str) -> None:
    """A person has named the host, so that it may be in a private network; not where a rule forbids its address."""
    guard = None if reason is None else guard_of_logins(lambda *_: Decision(reason, None, (), lacks_domain_rule=True))
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(LogInFailedError) as raised:
        asyncio.run(login_client(guard).get(Request(nobody)))
    assert str(raised.value) == f"{nobody} cannot be reached: {why}"


def login_client(guard: Guard | None = None) -> LoginClient:
    sites = SiteTable(SiteSettings(0, 1, Limits()), {})
    return LoginClient("a", sites, Proxies(sites, environment={}), guard=guard)
