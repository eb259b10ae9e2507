"""Text from outside and mistakes in files, as they are shown."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlspace.errors import MOST_SHOWN, ConfigError, Mistake, RuleFileError, did_you_mean
from crawlspace.text import (
    EXCERPT,
    MESSAGE,
    compile_glob,
    escaped,
    excerpt,
    printable,
    printable_message,
    quoted,
    without_credentials,
)

ESC, BIDI, C1 = "\x1b", "\u202e", "\x9b"

# text -> what is shown of it
CREDENTIALS = [
    ("http://user:SECRET@h/", "http://…@h/"),
    ("http://SECRET@h/", "http://…@h/"),
    ("http://user:SEC@RET@h/", "http://…@h/"),
    ("http://user:SEC/RET@h/p", "http://…@h/p"),
    ("http://user:SEC?RET@h", "http://…@h"),
    ("http://user:SEC#RET@h", "http://…@h"),
    ("http://user:SEC RET@h/x", "http://…@h/x"),
    ("http:user:SECRET@h/", "http:…@h/"),
    ("http:/user:SECRET@h/", "http:/…@h/"),
    (r"http:\\user:SECRET@h", r"http:\\…@h"),
    ("//user:SECRET@h", "//…@h"),
    ("user:SECRET@h", "…@h"),
    ("redi://:SECRET@h/", "redi://…@h/"),
    ("redi//:SECRET@h/0", "redi//…@h/0"),
    ("redis:SECRET@h", "redis:…@h"),
    ("redis://h/0?password=SECRET&db=1", "redis://h/0?password=…&db=1"),
    ("unix://user:SECRET@/run/redis.sock", "unix://…@/run/redis.sock"),
    ("'http://user:SECRET@h/' and 'http://you:SECRET@i/' are wrong", "'http://…@h/' and 'http://…@i/' are wrong"),
    ("allow prefix http://user:SECRET@h/ 255.0.0.0", "allow prefix http://…@h/ 255.0.0.0"),
    ('<Domain val="user:SECRET@h"/>', '<Domain val="…@h"/>'),
    # nothing to hide
    ("http://h/a@b", "http://h/a@b"),
    ("http://h:80/@user", "http://h:80/@user"),
    ("see 'http://h.example:8080', or write to me@example.com", "see 'http://h.example:8080', or write to me@example.com"),
    ("http://[::1]:80/x@y", "http://[::1]:80/x@y"),
    ("h:8080/x@y", "h:8080/x@y"),
    ("mailto:me@example.com", "mailto:me@example.com"),
    ("crawl.rules:7:3: expected x@y", "crawl.rules:7:3: expected x@y"),
    ("http://h/?token=abc&page=1", "http://h/?token=abc&page=1"),
]


@pytest.mark.parametrize(("text", "shown"), CREDENTIALS)
def test_credentials_are_hidden(text: str, shown: str) -> None:
    assert without_credentials(text) == shown
    assert printable(text) == shown
    assert printable_message(f"a sentence with {text}") == f"a sentence with {shown}"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"password": "SECRET", "host": "h"}, "{'password': '…', 'host': 'h'}"),
        ({"sites": [{"api_key": "SECRET"}]}, "{'sites': [{'api_key': '…'}]}"),
        ({"url": "redis://:SECRET@h"}, "{'url': 'redis://…@h'}"),
        (5, "5"),
        (None, "None"),
    ],
)
def test_secrets_in_settings_are_hidden(value: object, shown: str) -> None:
    assert printable(value) == quoted(value) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"a{ESC}[31m", r"a\x1b[31m"),
        ("a\0b\x7f", r"a\x00b\u007f"),
        (f"a{C1}31m", r"a\u009b31m"),
        ("\u202a\u202b\u202c\u202d\u202e", r"\u202a\u202b\u202c\u202d\u202e"),
        ("\u2066\u2067\u2068\u2069\u200e\u200f\u061c", r"\u2066\u2067\u2068\u2069\u200e\u200f\u061c"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\udc80", r"\udc80"),
        ("a\x85\ufeffb\U000e0001", r"a\u0085\ufeffb\udb40\udc01"),
        ("a" * 3_000_000, "a" * 199 + "…"),
        ("zwölf 東京 \u200d", "zwölf 東京 \u200d"),
    ],
)
def test_what_steers_a_terminal_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert escaped(text[:200]) == shown.replace("…", "a")
    assert json.loads(f'"{escaped(json.dumps(text, ensure_ascii=False)[1:-1])}"') == text


def test_a_sentence_keeps_its_lines() -> None:
    assert str(ConfigError(f"one\n    {ESC}two\r")) == "one\n    \\x1btwo\\r"


def test_what_is_shown_is_bounded() -> None:
    long = "x" * 1_000_000
    assert printable(long) == "x" * (EXCERPT - 1) + "…"
    assert quoted(long) == "'" + "x" * (EXCERPT - 1) + "…'"
    assert len(quoted(ESC * 1000)) == EXCERPT + 2
    assert len(str(ConfigError(long))) == MESSAGE
    assert printable(f"http://user:{'SECRET' * 1000}@h/") == "http://…@h/"


@pytest.mark.parametrize(
    ("line", "place", "under"),
    [
        ("allow domain http://user:SECRET@h/ extra", 35, "extra"),
        ("allow http://user:SECRET@h/", 18, "…@h/"),
        (f"allow domain {ESC}[31mred extra", 22, "extra"),
        (f"{BIDI}\tallow", 2, "allow"),
        ("y" * 500 + "http://user:SECRET@h/ extra" + "y" * 500, 522, "extra"),
        (ESC * 500 + "extra" + ESC * 500, 500, "extra"),
        ("allow", 5, ""),
    ],
)
def test_the_caret_stays_under_its_place(line: str, place: int, under: str) -> None:
    shown, caret = excerpt(line, place)
    assert shown[caret:].startswith(under)
    assert "SECRET" not in shown
    assert len(shown) <= EXCERPT


def test_a_file_with_many_mistakes_shows_the_first_hundred() -> None:
    many = [Mistake("crawl.rules", line, 1, "wrong", "x") for line in range(1, 31_305)]
    lines = str(RuleFileError([*many, Mistake("rules.xml", 1, 1, "wrong", "")])).split("\n")
    assert len(lines) == 3 * MOST_SHOWN + 2
    assert lines[-2:] == ["crawl.rules: and 31,204 more", "rules.xml:1:1: wrong"]


@pytest.mark.parametrize(
    "text",
    ["@" * 10**6, "//a:b" * 200_000 + " @", "a:" * 500_000 + "@", "://" * 300_000 + "@x", "x@ " * 300_000, ":/" * 500_000 + "@"],
)
def test_no_text_takes_long(text: str) -> None:
    begin = time.process_time()
    printable(text)
    printable_message(text)
    excerpt(text, 500_000)
    assert time.process_time() - begin < 1


# --- test globs ----------------------------------------------------------------------------------------------------


MATCHES = [
    ("a", "a", True),
    ("a", "ab", False),
    ("", "", True),
    ("", "a", False),
    ("*", "", True),
    ("a*", "abc", True),
    ("*c", "abc", True),
    ("a*c", "ac", True),
    ("ab*bc", "abc", False),  # no character counts twice
    ("a*b*c", "a-b-c", True),
    ("a*b*c", "a-c-b", False),
    ("a**c", "abc", True),
]


@pytest.mark.parametrize("pattern,text,expected", MATCHES)
def test_a_pattern_matches_the_whole_text(pattern: str, text: str, expected: bool) -> None:
    assert compile_glob(pattern).matches(text) is expected


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
def test_a_star_is_any_run_of_characters(pattern: str, text: str) -> None:
    assert compile_glob(pattern).matches(text) is bool(re.fullmatch(pattern.replace("*", ".*"), text))


X = "x"

# line, column -> what is shown of it, and the character that the caret points to
SHOWN = [
    ("forbid domian x", 8, "forbid domian x", "d"),
    ("forbid\tdomian x", 8, "forbid domian x", "d"),
    (X * 120, 120, X * 120, "x"),
    ("y" + X * 500, 1, "y" + X * 119 + "…", "y"),
    (X * 500 + "y", 501, "…" + X * 119 + "y", "y"),
    (X * 500 + "y" + X * 500, 501, "…" + X * 60 + "y" + X * 59 + "…", "y"),
]


def test_a_mistake_without_a_line_is_one_line() -> None:
    assert str(Mistake("rules.xml", 1, 1, "the file is empty", "")) == "rules.xml:1:1: the file is empty"


@pytest.mark.parametrize(("text", "column", "shown", "at"), SHOWN)
def test_a_mistake_is_shown_at_its_place(text: str, column: int, shown: str, at: str) -> None:
    first, second, third = str(Mistake("crawl.rules", 7, column, "wrong", text)).split("\n")
    assert first == f"crawl.rules:7:{column}: wrong"
    assert second == f"    {shown}"
    assert third.strip() == "^"
    assert second[third.index("^") :][:1] == at


MEANT = [
    # unknown word, question
    ("paht", "did you mean 'path'?"),
    ("PATH", "did you mean 'path'?"),
    ("query", "did you mean 'Query'?"),
    ("zzz", "it is path or Query"),
]


@pytest.mark.parametrize(("word", "question"), MEANT)
def test_the_known_name_that_was_meant(word: str, question: str) -> None:
    assert did_you_mean(word, ["path", "Query"], "it is path or Query") == question


def test_a_question_without_quotation_marks() -> None:
    assert did_you_mean("paht", ["path"], is_quoted=False) == "did you mean path?"
    assert not did_you_mean("paht", ["path"], cutoff=0.99)
