"""`scrapy console`: web pages over all collections, their metrics and a JSON interface."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Sequence
from pathlib import Path

from scrapy.utils.conf import closest_scrapy_cfg

from crawlspace.console.users import ROLES, Role, Users
from crawlspace.errors import UsageError
from crawlspace.runtime.components.command import CollectionCommand
from crawlspace.runtime.session.project import ProjectCollections
from crawlspace.text import quoted

_BIND = "127.0.0.1:8960"


class Command(CollectionCommand):
    usage = "[options]"
    summary = "Serve web pages over all collections"
    explanation = (
        "Serve the console: web pages that show what each collection does, why a page is or is not in it, what a change of rules would do, and what "
        "waits for a decision. On loopback it needs no log-in, until a user has been added; where it can be reached from other machines (--bind, --host, "
        "--trusted-proxy, --https), it does not start without users. Ctrl-C ends "
        "it; crawls that it has started go on. "
        "Exit status: 0 ended; 1 it cannot be served, such as a port that is taken; 2 wrong use."
    )

    def options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--bind", default=_BIND, metavar="ADDRESS:PORT", help=f"where to listen (default: {_BIND})")
        parser.add_argument(
            "--host", action="append", default=[], metavar="NAME", help="a name by which browsers reach it, besides localhost"
        )
        parser.add_argument(
            "--users", metavar="FILE", help="the file with the users (default: console-users in CRAWLSPACE_DATA_DIR)"
        )
        parser.add_argument("--set-password", metavar="USER", help="add a user or change its password, and end")
        parser.add_argument("--remove-user", metavar="USER", help="remove a user or the token of a program, and end")
        parser.add_argument("--token", metavar="NAME", help="print a new token for a program, and end")
        parser.add_argument("--role", choices=ROLES, help="the role of that user or program (default for a new one: viewer)")
        parser.add_argument("--certificate", metavar="FILE", help="serve https with this certificate chain (PEM)")
        parser.add_argument("--key", metavar="FILE", help="its private key (PEM; default: in the file of the certificate)")
        parser.add_argument(
            "--user-header", default="", metavar="NAME", help="the header in which a proxy names who has logged in"
        )
        parser.add_argument(
            "--trusted-proxy",
            action="append",
            default=[],
            metavar="ADDRESS",
            help="an address or network of a proxy in front of it, whose X-Forwarded-For is believed",
        )
        parser.add_argument(
            "--search", action="append", default=[], metavar="NAME", help="let everybody search this collection, at /find"
        )
        parser.add_argument("--search-bind", metavar="ADDRESS:PORT", help="serve that search page alone, there and not at /find")
        parser.add_argument(
            "--mcp",
            action="append",
            default=[],
            metavar="NAME",
            help="let assistants ask this collection at /mcp (needs crawlspace[mcp])",
        )
        parser.add_argument("--https", action="store_true", help="a proxy in front of it serves https")

    def answer(self, args: Sequence[str], opts: argparse.Namespace) -> int:
        if args:
            raise UsageError("scrapy console takes no collection: its pages show all of them")
        collections = ProjectCollections(self.project_settings())
        users = Users(Path(opts.users) if opts.users else collections.data_folder / "console-users")
        role = None if opts.role is None else Role[opts.role.upper()]
        if opts.set_password is not None:
            return _set_password(users, opts.set_password, role, by_proxy=bool(opts.user_header))
        if opts.remove_user is not None:
            return _remove(users, opts.remove_user)
        if opts.token is not None:
            print(users.add_token(opts.token, role or Role.VIEWER))
            print("This is shown once. Send it as: Authorization: Bearer TOKEN", file=sys.stderr)
            return 0
        from crawlspace.console.server import serve  # noqa: PLC0415 - most of a second, which Scrapy would take for each command

        serve(collections, users, opts, project=Path(closest_scrapy_cfg()).absolute().parent)
        return 0


def _set_password(users: Users, name: str, role: Role | None, *, by_proxy: bool) -> int:
    password = None if by_proxy else _read_password(name)
    users.set_password(name, password, role)
    print(f"{name} is in {users.path}")
    return 0


def _read_password(name: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    password = getpass.getpass(f"Password of {name}: ")
    if password != getpass.getpass("The same again: "):
        raise UsageError("the passwords differ; nothing was changed")
    return password


def _remove(users: Users, name: str) -> int:
    if not users.remove(name):
        raise UsageError(f"there is no user or token {quoted(name)} in {users.path}")
    print(f"{name} is removed")
    return 0
