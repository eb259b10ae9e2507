"""How a value is read as its type declares it, what a sentence says of a wrong one, and where that stands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pytest
from msgspec import Meta, Struct

from crawlspace.config.sentences import converted, placed, read, where_set
from crawlspace.errors import SettingError
from crawlspace.setting_types import Count, Listed, Section, Words, seconds


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("DOWNLOAD_DELAY = 0\n", (1, 1)),
        ('DOWNLOAD_DELAY = 0\n# a comment\nDOWNLOAD_DELAY = "abc"\n', (3, 1)),
        ("if True:\n    DOWNLOAD_DELAY = 1\n", (2, 5)),
        ("DOWNLOAD_DELAYS = 1\n", (0, 0)),
        ("", (0, 0)),
    ],
)
def test_the_last_line_that_sets_it(tmp_path: Path, text: str, place: tuple[int, int]) -> None:
    (tmp_path / "settings.py").write_text(text)
    assert where_set(tmp_path, "DOWNLOAD_DELAY") == place
    error = placed(SettingError("DOWNLOAD_DELAY is 'abc'"), tmp_path)
    assert str(error) == (f"{tmp_path / 'settings.py'}:{place[0]}: " if place[0] else "") + "DOWNLOAD_DELAY is 'abc'"


class Kinds(Section, frozen=True):
    A_NUMBER: Count | None = 3
    A_SPAN: Annotated[float, seconds(1)] = 60.0
    A_CHOICE: Literal["keep", "add"] = "keep"
    A_SWITCH: bool = False
    A_LIST: Words = ("a",)
    A_TEXT: str = ""
    SOME_PATHS: Listed = ()


READ: list[tuple[str, object, object]] = [
    # setting, as it is written, as it is read
    ("A_NUMBER", "5", 5),
    ("A_NUMBER", "None", None),
    ("A_NUMBER", "", None),
    ("A_SPAN", "2m", 120.0),
    ("A_SPAN", 5, 5.0),
    ("A_CHOICE", " Add ", "add"),
    ("A_SWITCH", "yes", True),
    ("A_SWITCH", "0", False),
    ("A_LIST", "a, b|c d", ("a", "b", "c", "d")),
    ("A_LIST", ["a b", " c "], ("a b", "c")),
    ("A_LIST", None, ()),
    ("A_TEXT", None, ""),
    ("A_TEXT", Path("a/b"), "a/b"),
    ("SOME_PATHS", "a b.txt, c|d.txt", ("a b.txt", "c|d.txt")),
]


@pytest.mark.parametrize(("name", "written", "value"), READ)
def test_text_is_converted_as_the_type_of_the_setting_wants_it(name: str, written: object, value: object) -> None:
    assert getattr(read(Kinds, {name: written, "ANOTHER": 1}), name) == value


def test_a_setting_that_is_not_there_has_its_default_or_that_of_the_others() -> None:
    assert read(Kinds, {}) == Kinds()
    assert read(Kinds, {"A_NUMBER": 4}, default=Kinds(A_TEXT="x")) == Kinds(A_TEXT="x", A_NUMBER=4)


WRONG: list[tuple[str, object, str]] = [
    ("A_NUMBER", 0, "SITES['x'] is 0; it must be at least 1"),
    ("A_NUMBER", True, "SITES['x'] is True; it must be a whole number at least 1"),
    ("A_SPAN", "0.5", "SITES['x'] is '0.5'; it must be at least 1 s"),
    ("A_CHOICE", "remove", "SITES['x'] is 'remove'; it must be one of add, keep"),
    ("A_SWITCH", "perhaps", "SITES['x'] is 'perhaps'; it must be True or False"),
    ("A_LIST", 3, "SITES['x'] is 3; it must be a list of words"),
    ("A_TEXT", 3, "SITES['x'] is 3; it must be a text"),
]


@pytest.mark.parametrize(("name", "written", "sentence"), WRONG)
def test_a_wrong_value_is_named_with_its_place(name: str, written: object, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        read(Kinds, {name: written}, places={name: "SITES['x']"})
    assert str(caught.value) == sentence


class Step(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="step"):
    example: ClassVar[str] = '{"type": "step", "fields": {"a": "b"}}'
    fields: Annotated[dict[str, str], Meta(min_length=1)]
    codes: frozenset[Annotated[int, Meta(ge=400, le=499)]] = frozenset()
    where: Literal["body", "header"] = "body"
    then: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        if "bad" in self.fields:
            raise ValueError("has a field that it cannot have")


class Rest(Struct, frozen=True, forbid_unknown_fields=True, tag="rest"):
    pass


class Entry(Struct, frozen=True):
    example: ClassVar[str] = '{"login": {"type": "rest"}}'
    login: Step | Rest | None = None


GOOD: dict[str, object] = {"type": "step", "fields": {"a": "b"}}
MISTAKES: list[tuple[object, str]] = [
    # a log-in, what is said of it
    ("s3cret", """S['login'] must be a dict, as in {"type": "step", "fields": {"a": "b"}}"""),
    ({}, """S['login'] has no type; it must be like {"type": "step", "fields": {"a": "b"}}"""),
    ({"type": "stop"}, "S['login'] has the unknown type 'stop': did you mean 'step'?"),
    ({"type": "zzz"}, "S['login'] has the unknown type 'zzz': it may be 'step', 'rest'"),
    ({"type": 3}, "S['login']['type'] must be a text"),
    ({"type": "step"}, """S['login'] has no 'fields'; it must be like {"type": "step", "fields": {"a": "b"}}"""),
    ({**GOOD, "feilds": "s3cret"}, "S['login'] has an unknown key 'feilds': did you mean 'fields'?"),
    ({**GOOD, "xyz": "s3cret"}, "S['login'] has an unknown key 'xyz': it may have fields, codes, where, then"),
    ({**GOOD, "fields": {}}, """S['login']['fields'] is empty; it must be like {"type": "step", "fields": {"a": "b"}}"""),
    ({**GOOD, "fields": "s3cret"}, """S['login']['fields'] must be a dict, as in {"type": "step", "fields": {"a": "b"}}"""),
    ({**GOOD, "fields": {"a": "s3cret", "b": 5}}, "S['login']['fields']['b'] must be a text"),
    ({**GOOD, "fields": {"bad": "s3cret"}}, "S['login'] has a field that it cannot have"),
    ({**GOOD, "codes": [404, 200]}, "S['login']['codes'][1] is 200; it must be a whole number from 400 to 499"),
    ({**GOOD, "codes": 404}, "S['login']['codes'] must be a list of numbers"),
    ({**GOOD, "where": "query"}, "S['login']['where'] is 'query'; it may be 'body' or 'header'"),
    ({**GOOD, "then": [GOOD, {"type": "step", "fields": {"a": 5}}]}, "S['login']['then'][1]['fields']['a'] must be a text"),
    ({**GOOD, "then": {"a": "s3cret"}}, "S['login']['then'] must be a list of dicts"),
]


@pytest.mark.parametrize(("login", "sentence"), MISTAKES)
def test_what_is_wrong_in_a_dict_is_named_with_its_place_and_without_secrets(login: object, sentence: str) -> None:
    with pytest.raises(SettingError) as caught:
        converted("S", {"login": login}, Entry)
    assert str(caught.value) == sentence
    assert "s3cret" not in str(caught.value)
