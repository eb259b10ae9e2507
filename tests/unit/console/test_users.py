"""The users of the console: passwords, tokens, roles, and their file."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlspace.console.users import Role, User, Users
from crawlspace.errors import ConfigError, UsageError

PASSWORD = "correct horse battery"


@pytest.fixture
def users(tmp_path: Path) -> Users:
    return Users(tmp_path / "new folder" / "users")


def test_a_password_is_checked_and_not_stored(users: Users) -> None:
    assert users.is_empty
    users.set_password("anna", PASSWORD, Role.OPERATOR)
    users.set_password("ben@example.org", PASSWORD, None)
    assert not users.is_empty
    assert users.check_password("anna", PASSWORD) == User("anna", Role.OPERATOR)
    assert users.check_password("ben@example.org", PASSWORD) == User("ben@example.org", Role.VIEWER)
    for name, password in (("anna", PASSWORD + "x"), ("anna", ""), ("nobody", PASSWORD), ("nobody", "")):
        assert users.check_password(name, password) is None
    text = users.path.read_text()
    assert PASSWORD not in text
    assert len({line.partition("scrypt")[2] for line in text.splitlines()}) == 2, "one password has two hashes"
    assert users.path.stat().st_mode & 0o077 == 0


def test_a_password_changes_and_the_role_stays(users: Users) -> None:
    users.set_password("anna", PASSWORD, Role.OPERATOR)
    users.set_password("anna", "another password", None)
    assert users.check_password("anna", PASSWORD) is None
    assert users.check_password("anna", "another password") == User("anna", Role.OPERATOR)


def test_the_entry_of_a_user_changes_with_password_and_role(users: Users) -> None:
    entries = [users.entry_of("anna")]
    for password, role in (
        (PASSWORD, Role.OPERATOR),
        (PASSWORD, Role.OPERATOR),
        ("another password", None),
        (PASSWORD, Role.VIEWER),
    ):
        users.set_password("anna", password, role)
        entries.append(users.entry_of("anna"))
    users.set_password("ben", PASSWORD, None)
    assert users.entry_of("anna") == entries[-1]
    assert entries[0] == ""
    assert len(set(entries)) == 5


def test_another_process_changes_the_file(users: Users) -> None:
    users.set_password("anna", PASSWORD, None)
    other = Users(users.path)
    assert other.entry_of("anna")
    other.remove("anna")
    assert users.check_password("anna", PASSWORD) is None
    assert not users.entry_of("anna")


def test_tokens(users: Users) -> None:
    token = users.add_token("monitoring", Role.VIEWER)
    assert users.check_token(token) == User("monitoring", Role.VIEWER, is_program=True)
    assert users.check_token(token[:-1]) is None
    assert users.check_token("") is None
    assert token not in users.path.read_text()
    assert users.is_empty, "nobody can log in with a token"
    assert users.check_password("monitoring", token) is None
    assert users.add_token("monitoring", Role.VIEWER) != token
    assert users.check_token(token) is None, "replaced"
    assert users.remove("monitoring")
    assert not users.remove("monitoring")


def test_a_user_of_a_proxy_has_no_password(users: Users) -> None:
    users.set_password("anna", None, Role.OPERATOR)
    assert users.check_password("anna", "") is None
    assert users.check_password("anna", "-") is None
    assert users.named("anna").role is Role.OPERATOR
    assert users.named("somebody").role is Role.VIEWER


@pytest.mark.parametrize("name", ["", "a:b", "anna\n", "-", "x" * 65, "ä"])
def test_names_that_are_refused(users: Users, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a user"):
        users.set_password(name, PASSWORD, None)


def test_short_passwords_are_refused(users: Users) -> None:
    with pytest.raises(UsageError, match="at least 10 characters"):
        users.set_password("anna", "123456789", None)


@pytest.mark.parametrize(
    "line", ["anna", "anna:user:king:scrypt:1:00:00", "anna:robot:viewer:x", "anna:user:viewer:", ":user:viewer:x"]
)
def test_a_damaged_file_is_told_with_its_line(users: Users, line: str) -> None:
    users.set_password("anna", PASSWORD, None)
    with users.path.open("a") as file:
        file.write(f"# a comment\n\n{line}\n")
    with pytest.raises(ConfigError, match=r"users:4: this is no user"):
        Users(users.path).check_password("anna", PASSWORD)


@pytest.mark.parametrize("stored", ["scrypt:x:00:00", "scrypt:2:zz:00", "md5:1:00:00", "scrypt", "scrypt:32768:00"])
def test_a_damaged_hash_lets_nobody_in(users: Users, stored: str) -> None:
    users.path.parent.mkdir()
    users.path.write_text(f"anna:user:viewer:{stored}\n")
    assert users.check_password("anna", "") is None
