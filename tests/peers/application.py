"""A web application that is not ours: Django's log-in, sessions and CSRF tokens, and an OAuth2 server of Authlib beside it.

`python -m tests.peers.application FOLDER` prints its URL, and serves until its standard input is closed. What happened is asked for at
`/of-the-test/…`, which ends sessions and revokes tokens, too.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from socketserver import ThreadingMixIn
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import django
from authlib.integrations.django_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc6749.models import ClientMixin
from django.conf import settings
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

USER, CLIENT = "crawler", "crawler-client"
PASSWORD, SECRET = os.environ["PEER_PASSWORD"], os.environ["PEER_SECRET"]
PAGES = 12
_LOGIN = (
    "<title>Log in</title>{% if form.errors %}<p>Please enter a correct username and password.</p>{% endif %}"
    "<form method=post>{% csrf_token %}{{ form.as_p }}<button>Log in</button>"
    "<input type=hidden name=next value='{{ next }}'></form>"
)
counts: Counter[str] = Counter()
tokens: dict[str, float] = {}
"""Valid tokens, and until when."""
secrets = [SECRET]
lasts = [3600]
"""Seconds that a token is valid, as the client is told."""

settings.configure(
    SECRET_KEY="of a test",
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(Path(sys.argv[1], "django.sqlite"))}},
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {
                "loaders": [("django.template.loaders.locmem.Loader", {"registration/login.html": _LOGIN})],
                "context_processors": ["django.template.context_processors.request"],
            },
        }
    ],
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    LOGIN_URL="/accounts/login/",
    LOGIN_REDIRECT_URL="/",
    AUTHLIB_OAUTH2_PROVIDER={"token_expires_in": {"client_credentials": 3600}},
)
django.setup()

from django.contrib.auth import views  # noqa: E402 - after the settings
from django.contrib.auth.decorators import login_required  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.contrib.auth.signals import user_logged_in, user_login_failed  # noqa: E402
from django.contrib.sessions.models import Session  # noqa: E402


class Client(ClientMixin):
    """The one client that there is."""

    def get_client_id(self) -> str:
        return CLIENT

    def get_default_redirect_uri(self) -> None:
        return None

    def get_allowed_scope(self, scope: str) -> str:
        return scope if scope in {"", "read"} else ""

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return False

    def check_client_secret(self, client_secret: str) -> bool:
        counts["asked for a token"] += 1
        return client_secret == secrets[0]

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method in {"client_secret_basic", "client_secret_post"}

    def check_response_type(self, response_type: str) -> bool:
        return False

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "client_credentials"


class Tokens(AuthorizationServer):
    """Keeps its tokens in memory."""

    def query_client(self, client_id: str) -> Client | None:
        return Client() if client_id == CLIENT else None

    def save_token(self, token: dict[str, Any], request: Any) -> None:
        token["expires_in"] = lasts[0]
        tokens[token["access_token"]] = time.time() + max(lasts[0], 60)
        counts["tokens"] += 1


class ClientCredentials(grants.ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic", "client_secret_post"]  # noqa: RUF012 - of Authlib


oauth2 = Tokens(None, None)
oauth2.register_grant(ClientCredentials)


def _page(prefix: str, number: int) -> HttpResponse:
    links = "".join(f"<a href='/{prefix}/{each}'>{each}</a> " for each in range(1, PAGES))
    return HttpResponse(f"<title>Page {number}</title><p>the text of page {number} of {prefix}</p>{links}")


@login_required
def behind_form(_: HttpRequest, number: int = 0) -> HttpResponse:
    counts["pages"] += 1
    return _page("pages", number)


def behind_token(request: HttpRequest, number: int = 0) -> HttpResponse:
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind != "Bearer" or tokens.get(token, 0) < time.time():
        counts["refused"] += 1
        return HttpResponse("<title>No</title>", status=401, headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})
    return _page("api", number)


@csrf_exempt
def token(request: HttpRequest) -> HttpResponse:
    answer: HttpResponse = oauth2.create_token_response(request)
    return answer


def of_the_test(request: HttpRequest, what: str) -> JsonResponse:
    """Do what a test wants, and return what happened until now."""
    if what == "end-sessions":
        Session.objects.all().delete()
    elif what == "revoke":
        tokens.clear()
    elif what.startswith("lasts="):
        lasts[0] = int(what.removeprefix("lasts="))
    elif what.startswith("secret="):
        secrets[0] = what.removeprefix("secret=")
    return JsonResponse(counts)


urlpatterns = [
    path("robots.txt", lambda _: HttpResponse("", content_type="text/plain")),
    path("", behind_form),
    path("pages/<int:number>", behind_form),
    path("api/", behind_token),
    path("api/<int:number>", behind_token),
    path("oauth/token", token),
    path("accounts/login/", views.LoginView.as_view()),
    path("accounts/logout/", views.LogoutView.as_view()),
    path("of-the-test/<str:what>", of_the_test),
]


class Threaded(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    call_command("migrate", verbosity=0)
    User.objects.create_user(USER, password=PASSWORD)

    def count(what: str) -> Any:
        def receive(**_: object) -> None:
            counts[what] += 1

        return receive

    receivers = {user_logged_in: count("log-ins"), user_login_failed: count("refused log-ins")}
    for signal, receiver in receivers.items():
        signal.connect(receiver, weak=False)
    server = make_server("127.0.0.1", 0, get_wsgi_application(), server_class=Threaded, handler_class=Quiet)
    Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(json.dumps(f"http://127.0.0.1:{server.server_port}") + "\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
