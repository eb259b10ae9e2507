"""A site behind a log-in by a form, as a web application has it: a token in the form, a session in a cookie, and sessions that end."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from http.cookies import SimpleCookie
from urllib.parse import parse_qs, quote

from tests.http import Reply, Request
from tests.sites import Answer, Route, Site, html, page, redirect, status, text

USER, PASSWORD = "crawler", "secret of the wiki"
HOW = ("redirect", "form", "401")
"""How a session that has ended is shown."""


class Door:
    """The log-in in front of some pages."""

    def __init__(
        self, pages: Mapping[str, Reply], *, lasts: Sequence[int] = (1 << 60,), how: Sequence[str] = HOW, seed: int = 0
    ) -> None:
        """`lasts`: how many requests a session may make, drawn anew for each session; `how`: drawn for each request without one."""
        self.password = PASSWORD
        self.logins = 0
        self.attempts = 0
        """With those that are refused."""
        self.lost = 0
        """Sessions that have ended by themselves."""
        self.left: dict[str, int] = {}
        """The requests that each session may still make."""
        self.anonymous: Counter[str] = Counter()
        """What was asked for without a session, by path."""
        self._chance = random.Random(seed)
        self._lasts = lasts
        self._how = how
        routes = {path: self._behind(path, reply) for path, reply in pages.items()}
        self.site = Site({"/robots.txt": text(""), **routes, "/login": self._login, "/logout": self._logout})

    def end_all(self) -> None:
        """End all sessions, as a restart of the application does."""
        self.left.clear()

    def _behind(self, path: str, reply: Reply) -> Route:
        def answer(request: Request) -> Reply:
            session = _cookie(request, "sid")
            left = self.left.get(session, 0)
            if left > 0:
                self.left[session] = left - 1
                return reply
            if session in self.left:
                del self.left[session]
                self.lost += 1
            self.anonymous[path] += 1
            how = self._chance.choice(self._how)
            if how == "redirect":
                return redirect(f"/login?next={quote(path)}")
            return self._form() if how == "form" else status(401)

        return answer

    def _form(self, message: str = "") -> Answer:
        token = f"t{self._chance.randrange(1 << 40)}"
        return html(
            f"<title>Log in</title><p>{message or 'Please log in to the wiki'}</p><form action='/search'><input name='q'></form>"
            f"<form action='/login' method='post'><input type='hidden' name='csrf' value='{token}'>"
            "<input name='user' id='who'><input type='password' name='password'><button name='go' value='in'>Log in</button></form>",
            headers={"Set-Cookie": f"csrf={token}; Path=/; HttpOnly"},
        )

    def _login(self, request: Request) -> Reply:
        if request.method != "POST":
            return self._form()
        self.attempts += 1
        given = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        if given.get("csrf") != _cookie(request, "csrf") or given.get("go") != "in":
            return status(400)
        if (given.get("user"), given.get("password")) != (USER, self.password):
            return self._form("Wrong user or password")
        self.logins += 1
        session = f"s{self.logins}-{self._chance.randrange(1 << 40)}"
        self.left[session] = self._chance.choice(self._lasts)
        return status(302, headers={"Location": "/", "Set-Cookie": f"sid={session}; Path=/; HttpOnly"})

    def _logout(self, request: Request) -> Reply:
        self.left.pop(_cookie(request, "sid"), None)
        return redirect("/login")


def _cookie(request: Request, name: str) -> str:
    found = SimpleCookie(request.headers.get("cookie", "")).get(name)
    return "" if found is None else found.value


def wiki(pages: int, **values: object) -> Door:
    """A wiki of so many pages, each with a text of its own and links to six more."""
    found = {
        f"/{n}": page(
            f"Page {n}", text=f"the text of page {n}", links=[f"/{6 * n + c}" for c in range(1, 7) if 6 * n + c < pages]
        )
        for n in range(pages)
    }
    return Door({"/": page("Home", text="the home page", links=["/0", "/login"]), **found}, **values)  # type: ignore[arg-type]
