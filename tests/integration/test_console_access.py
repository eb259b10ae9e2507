"""Who gets into the console: guesses of passwords and tokens, sessions that end, clients behind proxies, and where it refuses to run."""

from __future__ import annotations

import hashlib
import ipaddress
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock
from typing import Any

import pytest

from crawlspace.clock import FakeClock
from crawlspace.console.guard import Access
from crawlspace.console.sessions import COOKIE, FREE_ATTEMPTS
from crawlspace.console.users import Role, Users
from tests.conftest import MakeProject, Project
from tests.consoles import Browser, served
from tests.integration.stored import collection

PASSWORD = "correct horse battery"


@pytest.fixture
def demo(project: MakeProject) -> Project:
    return project(collection("http://127.0.0.1:9/"))


@pytest.fixture
def users(demo: Project) -> Users:
    users = Users(demo.data / "console-users")
    users.set_password("anna", PASSWORD, Role.OPERATOR)
    return users


def behind(users: Users, proxies: Sequence[str]) -> Access:
    return Access(users, frozenset(), proxies=[ipaddress.ip_network(one) for one in proxies], is_local=False)


# --- guesses -------------------------------------------------------------------------------------------------------


def test_guesses_at_the_same_time_are_limited(demo: Project, users: Users) -> None:
    del users
    many = 4 * FREE_ATTEMPTS
    together = Barrier(many)
    with served(demo, clock=FakeClock()) as browser:

        def guess(number: int) -> int:
            one = Browser(browser.base)
            token = one.csrf()
            together.wait()
            return one.post("/login", {"user": "anna", "password": f"guess {number}"}, csrf=token).status

        with ThreadPoolExecutor(many) as pool:
            answers = Counter(pool.map(guess, range(many)))
    assert answers == {401: FREE_ATTEMPTS, 429: many - FREE_ATTEMPTS}


def test_two_passwords_are_checked_at_a_time(demo: Project, users: Users, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes 32 MiB."""
    del users
    real, lock, at_once, most = hashlib.scrypt, Lock(), 0, 0

    def scrypt(password: bytes, **options: Any) -> bytes:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        try:
            return real(password, **options)
        finally:
            with lock:
                at_once -= 1

    monkeypatch.setattr("crawlspace.console.users.hashlib.scrypt", scrypt)
    with served(demo, clock=FakeClock()) as browser, ThreadPoolExecutor(FREE_ATTEMPTS) as pool:
        names = [f"user{number}" for number in range(FREE_ATTEMPTS)]
        answers = list(pool.map(lambda name: Browser(browser.base).log_in(name, "a password").status, names))
    assert (answers, most) == ([401] * FREE_ATTEMPTS, 2)


def test_guesses_from_an_address_are_limited_for_all_users(demo: Project, users: Users) -> None:
    del users
    with served(demo, clock=FakeClock()) as browser:
        answers = [browser.log_in(f"user{number}", "a password").status for number in range(FREE_ATTEMPTS + 1)]
        assert answers == [401] * FREE_ATTEMPTS + [429]
        assert browser.log_in("anna", PASSWORD).status == 429


def test_a_log_in_gives_no_further_guesses(demo: Project, users: Users) -> None:
    """Who has a password of its own must not guess those of others between its log-ins."""
    users.set_password("ben", PASSWORD, Role.VIEWER)
    with served(demo, clock=FakeClock()) as browser:
        answers = []
        for number in range(FREE_ATTEMPTS + 1):
            answers.append(browser.log_in(f"user{number}", "a password").status)
            Browser(browser.base).log_in("ben", PASSWORD)
        assert answers == [401] * FREE_ATTEMPTS + [429]


def test_guesses_of_tokens_are_limited(demo: Project, users: Users) -> None:
    right, clock = {"Authorization": f"Bearer {users.add_token('monitoring', Role.VIEWER)}"}, FakeClock()
    other = {"Authorization": f"Bearer {users.add_token('other', Role.VIEWER)}"}
    path = "/api/v1/collections"
    with served(demo, clock=clock) as browser:
        assert browser.get(path, headers=right).status == 200
        guesses = [browser.get(path, headers={"Authorization": f"Bearer {n}"}) for n in range(FREE_ATTEMPTS + 1)]
        assert [one.status for one in guesses] == [401] * FREE_ATTEMPTS + [429]
        assert (guesses[-1].headers["Retry-After"], "try again in 10 seconds" in guesses[-1].text) == ("10", True)
        assert browser.get(path, headers=other).status == 429, "a right guess is none that is told"
        assert browser.get(path, headers=right).status == 200, "a program that was there before goes on"
        users.remove("monitoring")
        assert browser.get(path, headers=right).status == 401
        clock.advance(3600)
        assert browser.get(path, headers=other).status == 200


# --- sessions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["password", "role", "removed", "removed and added"])
def test_what_ends_the_sessions_of_a_user(demo: Project, users: Users, change: str) -> None:
    users.set_password("ben", PASSWORD, Role.VIEWER)
    with served(demo) as browser:
        ben, other = Browser(browser.base), Browser(browser.base)
        for one, name in ((browser, "anna"), (other, "anna"), (ben, "ben")):
            assert f"{name} (" in one.log_in(name, PASSWORD).words
        token = browser.csrf()
        match change:
            case "password":
                users.set_password("anna", "another password", None)
            case "role":
                users.set_password("anna", PASSWORD, Role.VIEWER)
            case _:
                users.remove("anna")
                if change == "removed and added":
                    users.set_password("anna", PASSWORD, Role.OPERATOR)
        assert browser.post("/c/demo/stop", csrf=token).url.endswith("/login")
        assert other.get("/").url.endswith("/login?next=%2F")
        assert "ben (viewer)" in ben.get("/").words


def test_another_user_of_a_proxy_gets_another_session(demo: Project, users: Users) -> None:
    access = Access(users, frozenset(), user_header="X-User", proxies=[ipaddress.ip_network("127.0.0.1")], is_local=False)
    with served(demo, access=access) as browser:
        found = []
        for name in ("anna", "anna", "ben"):
            browser.get("/", headers={"X-User": name})
            found.append({one.value for one in browser.cookies if one.name == COOKIE})
    of_anna, again, of_ben = found
    assert of_anna == again
    assert not of_anna & of_ben


# --- proxies -------------------------------------------------------------------------------------------------------

FORWARDED = [
    ("", [], "127.0.0.1"),
    ("203.0.113.7", [], "127.0.0.1"),
    ("203.0.113.7", ["10.0.0.0/8"], "127.0.0.1"),
    ("", ["127.0.0.1"], "127.0.0.1"),
    ("203.0.113.7", ["127.0.0.1"], "203.0.113.7"),
    ("198.51.100.1, 203.0.113.7", ["127.0.0.1"], "203.0.113.7"),
    ("198.51.100.1, 203.0.113.7, 10.0.0.1", ["127.0.0.1", "10.0.0.0/8"], "203.0.113.7"),
    ("198.51.100.1, 203.0.113.7, 10.0.0.1", ["127.0.0.1"], "10.0.0.1"),
    ("10.0.0.2, 10.0.0.1", ["127.0.0.1", "10.0.0.0/8"], "10.0.0.2"),
    ("::ffff:203.0.113.7", ["127.0.0.1"], "203.0.113.7"),
    ("2001:db8::7", ["127.0.0.1"], "2001:db8::7"),
    ("<script>", ["127.0.0.1"], "127.0.0.1"),
    ("203.0.113.7, ", ["127.0.0.1"], "127.0.0.1"),
    ("203.0.113.7, unknown", ["127.0.0.1"], "127.0.0.1"),
    (",", ["127.0.0.1"], "127.0.0.1"),
]
"""X-Forwarded-For, the proxies that are trusted, and the address of the client."""


@pytest.mark.parametrize(("header", "proxies", "client"), FORWARDED)
def test_the_address_of_a_client(demo: Project, users: Users, header: str, proxies: Sequence[str], client: str) -> None:
    with served(demo, access=behind(users, proxies)) as browser:
        if header:
            browser.headers["X-Forwarded-For"] = header
        browser.log_in("anna", PASSWORD)
        assert browser.console is not None
        (entry,) = browser.console.audit_log.last(1)
        assert (entry["action"], entry["address"]) == ("login", client)


LOCKED_OUT = [
    ("another client", ["127.0.0.1"], "203.0.113.1", "203.0.113.2", 401),
    ("the same client", ["127.0.0.1"], "203.0.113.1", "203.0.113.1", 429),
    ("a client that names another address", ["127.0.0.1"], "203.0.113.1", "203.0.113.2, 203.0.113.1", 429),
    ("another address in the network of an owner", ["127.0.0.1"], "2001:db8::1", "2001:db8::2", 429),
    ("another network", ["127.0.0.1"], "2001:db8::1", "2001:db8:0:1::1", 401),
    ("no proxy is trusted", [], "203.0.113.1", "203.0.113.2", 429),
]


@pytest.mark.parametrize(
    ("proxies", "one", "other", "answer"), [row[1:] for row in LOCKED_OUT], ids=[row[0] for row in LOCKED_OUT]
)
def test_who_has_to_wait_behind_a_proxy(
    demo: Project, users: Users, proxies: Sequence[str], one: str, other: str, answer: int
) -> None:
    with served(demo, access=behind(users, proxies), clock=FakeClock()) as browser:
        browser.headers["X-Forwarded-For"] = one
        for number in range(FREE_ATTEMPTS):
            assert browser.log_in(f"user{number}", "a password").status == 401
        browser.headers["X-Forwarded-For"] = other
        assert browser.log_in("ben", "a password").status == answer


# --- where it refuses to run ---------------------------------------------------------------------------------------

WITHOUT_USERS = [
    (["--bind", "0.0.0.0:8960"], "--bind 0.0.0.0:8960"),
    (["--https"], "--https"),
    (["--host", "crawler.example"], "--host"),
    (["--trusted-proxy", "127.0.0.1"], "--trusted-proxy"),
    (["--https", "--host", "crawler.example"], "--https and --host"),
]


@pytest.mark.parametrize(("options", "named"), WITHOUT_USERS)
def test_what_can_be_reached_from_elsewhere_needs_users(demo: Project, options: Sequence[str], named: str) -> None:
    run = demo.scrapy("console", *options)
    assert run.returncode == 1
    assert f"{named}: the console can be reached from other machines, and is served only with users" in run.stderr


@pytest.mark.parametrize("options", [["--user-header", "X-User"], ["--trusted-proxy", "nowhere"], ["--key", "key.pem"]])
def test_options_that_are_wrong(demo: Project, users: Users, options: Sequence[str]) -> None:
    del users
    assert demo.scrapy("console", *options).returncode == 2


def test_a_console_that_loses_its_users_is_not_open(demo: Project, users: Users) -> None:
    with served(demo, access=Access(users, frozenset(), is_local=False)) as browser:
        users.remove("anna")
        assert users.is_empty
        assert "/login" in browser.get("/").url
