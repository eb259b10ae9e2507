"""A site behind a log-in, as a web application has it: a token in the form, a session in a cookie, and sessions that end."""

from __future__ import annotations

import json
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
        """`lasts`: how many requests a session may make, drawn again for each session; `how`: drawn for each request without one."""
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
        return status(302, headers={"Location": "/", "Set-Cookie": self._new_session()})

    def _new_session(self) -> str:
        self.logins += 1
        session = f"s{self.logins}-{self._chance.randrange(1 << 40)}"
        self.left[session] = self._chance.choice(self._lasts)
        return f"sid={session}; Path=/; HttpOnly"

    def _logout(self, request: Request) -> Reply:
        self.left.pop(_cookie(request, "sid"), None)
        return redirect("/login")


_SCRIPT = """
const app = document.getElementById('app');
const send = async (given) => {
  const answer = await fetch('/login', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(given)});
  const found = await answer.json();
  if (found.next) location.href = found.next; else if (found.away) app.textContent = document.title = found.message;
  else document.getElementById('message').textContent = found.message;
};
setTimeout(() => {
  app.innerHTML = '<p id=message></p>' + FIELDS.map((name) => `<input id=${name} type=${name == 'password' ? name : 'text'}>`).join('')
    + '<button id=go>Log in</button>';
  document.getElementById('go').onclick = () =>
    send(Object.fromEntries([['csrf', TOKEN], ...FIELDS.map((name) => [name, document.getElementById(name).value])]));
}, 50);
"""


class ScriptedDoor(Door):
    """A form that a script makes, and that is sent as JSON. `asks` may be "twice": on a second page for the password; `away`: what is wrong
    is shown in place of the form.
    """

    def __init__(self, pages: Mapping[str, Reply], *, asks: str = "once", away: bool = False, **values: object) -> None:
        super().__init__(pages, **values)  # type: ignore[arg-type]
        self._asks_twice, self._away = asks == "twice", away
        self.leads_to = "/"
        self.site["/password"] = self._second

    def _form(self, message: str = "") -> Answer:
        return self._scripted(["user"] if self._asks_twice else ["user", "password"], message)

    def _second(self, request: Request) -> Reply:
        return self._scripted(["password"]) if _cookie(request, "who") else redirect("/login")

    def _scripted(self, fields: list[str], message: str = "") -> Answer:
        token = f"t{self._chance.randrange(1 << 40)}"
        return html(
            f"<title>{message or 'Please log in to the wiki'}</title><div id=app></div>"
            f"<script>const FIELDS = {json.dumps(fields)}, TOKEN = '{token}';{_SCRIPT}</script>",
            headers={"Set-Cookie": f"csrf={token}; Path=/; HttpOnly"},
        )

    def _login(self, request: Request) -> Reply:
        if request.method != "POST":
            return self._form()
        given = json.loads(request.body)
        if given["csrf"] != _cookie(request, "csrf"):
            return status(400, body='{"message": "forged"}')
        if "password" not in given:
            return _found({"next": "/password"}, cookie=f"who={given['user']}; Path=/")
        self.attempts += 1
        if (given.get("user") or _cookie(request, "who"), given["password"]) != (USER, self.password):
            return _found({"message": "Wrong user or password", "away": self._away}, code=401)
        return _found({"next": self.leads_to}, cookie=self._new_session())


def _found(found: Mapping[str, object], *, code: int = 200, cookie: str = "") -> Answer:
    return status(
        code, headers={"Content-Type": "application/json", **({"Set-Cookie": cookie} if cookie else {})}, body=json.dumps(found)
    )


def _cookie(request: Request, name: str) -> str:
    found = SimpleCookie(request.headers.get("cookie", "")).get(name)
    return "" if found is None else found.value


def wiki(pages: int, **values: object) -> Door:
    """A wiki of so many pages, each with a text of its own and links to six more."""
    return Door(_wiki_pages(pages), **values)  # type: ignore[arg-type]


def scripted_wiki(pages: int, **values: object) -> ScriptedDoor:
    """The same behind a form that a script makes."""
    return ScriptedDoor(_wiki_pages(pages), **values)  # type: ignore[arg-type]


def _wiki_pages(pages: int) -> Mapping[str, Reply]:
    found = {
        f"/{n}": page(
            f"Page {n}", text=f"the text of page {n}", links=[f"/{6 * n + c}" for c in range(1, 7) if 6 * n + c < pages]
        )
        for n in range(pages)
    }
    return {"/": page("Home", text="the home page", links=["/0", "/login"]), **found}
