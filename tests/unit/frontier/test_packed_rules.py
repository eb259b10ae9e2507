"""Rules packed: Protego, given only those that a URL finds, must say what it says of them all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protego import Protego

from crawlspace.frontier.robots.cache import lines_for
from crawlspace.frontier.robots.packed_rules import Judge, is_plain, pack
from crawlspace.urls import MalformedUrl, parse
from tests.quick import examples

# Whatever may make a rule, and a path, begin otherwise than it looks.
PIECES = [
    "/", "//", "a", "b", "ab", "%61", "%C3%A4", "%c3%a4", "ä", "%E4", "%e4", "%2F", "%2f", "%25", "%2A", "%24", "%", "%4", "%zz", "*", "$",
    "?", "=", "%3D", "&", "index.html", "index", "inde%78.html", ".", "~", "+", " ", "%20", "http://", ":", "日", "%E6%97%A5", "%E6%97",
    "\ufffd", "%0A", "%1C", "\x00", "\t", ";", "[", "%E2%80%A8", "@",
]  # fmt: skip
DIRECTIVES = [
    "Disallow: ",
    "Allow: ",
    "disallow:",
    "ALLOW :",
    "Disallow ",
    "Allow  ",
    "Dissallow: ",
    "Disalow:\t",
    "disabcw: ",
    "Allow /x: ",
]
words = st.lists(st.sampled_from(PIECES), max_size=5).map("".join)
paths = st.builds("{}{}".format, st.sampled_from(["/", "/", "/", ""]), words)
rules = st.builds("{}{}".format, st.sampled_from(DIRECTIVES), paths)


@settings(max_examples=examples(400))
@given(st.lists(rules, max_size=12), st.lists(words, min_size=1, max_size=8), st.booleans())
def test_the_rules_that_a_url_finds_decide_as_all_of_them_do(lines: list[str], found: list[str], normal: bool) -> None:
    ours = lines_for("x", "User-agent: *\n" + "\n".join(lines))
    whole = Protego.parse("\n".join(["User-agent: *", *ours]))
    packed, judge = pack(ours), Judge(1 << 20)
    for path in found:
        url = f"http://a.example/{path}"
        if normal:
            try:
                url = parse(url).text
            except MalformedUrl:
                continue
        assert judge.allows(packed, url) is whole.can_fetch(url, "*"), url


FOUND = [
    # rules, a path, the rules that Protego is given for it
    (["Disallow: /a"], "/b", []),
    (["Disallow: /a"], "/", []),
    (["Disallow: /a"], "/a", ["Disallow: /a"]),
    (["Disallow: /a", "Allow: /ab", "Disallow: /abc/", "Disallow: /b"], "/abx", ["Allow: /ab", "Disallow: /a"]),
    (["Disallow: /a/", "Disallow: /a/b/", "Disallow: /a/c/", "Disallow: /a/b/d"], "/a/b/c", ["Disallow: /a/b/", "Disallow: /a/"]),
    (["Disallow: /a", "disallow:/a", "Disallow: /a"], "/a", ["Disallow: /a", "disallow:/a"]),
    (["Disallow: /%C3%A4", "Disallow: /ä", "Disallow: /%61"], "/%C3%A4/x", ["Disallow: /ä", "Disallow: /%C3%A4"]),
    (["Disallow: /a*b", "Disallow: /a$", "Disallow: /a%25"], "/ax", ["Disallow: /a$", "Disallow: /a%25", "Disallow: /a*b"]),
    (["Disallow: /a?b=", "Disallow: /a?c="], "/a?b=1", ["Disallow: /a?b="]),
    (["Allow: /a/index.html"], "/a/", ["Allow: /a/index.html"]),
]


@pytest.mark.parametrize(("lines", "path", "found"), FOUND)
def test_which_rules_a_url_finds(lines: list[str], path: str, found: list[str], read: list[str]) -> None:
    Judge(1 << 20).allows(pack(lines), f"http://a.example{path}")
    assert [line for text in read for line in text.splitlines()[1:] if line] == found


WIDE = [
    # a rule that every URL must be held against
    "Disallow: /",
    "Disallow: /*.pdf$",
    "Disallow: *a",
    "Disallow: /$",
    "Disallow: a",
    "Disallow: http://a.example/a",
    "Allow: /index.html",
]


@pytest.mark.parametrize("line", WIDE)
def test_what_concerns_every_url(line: str) -> None:
    packed = pack([line, "Disallow:", "Disallow: /a"])
    assert packed.wide == line


PLAIN = [
    ("Disallow: /a", True),
    ("allow /a", True),
    ("Disallow: /a%20b c", True),
    ("Disallow: /ä", True),
    ("Allow: /a/index.html", True),
    ("Disallow: /a*", False),
    ("Disallow: /a$", False),
    ("Disallow: /a%", False),
    ("Disallow: /a%25", False),
    ("Disallow: /a%00", False),
    ("Disallow: /", False),
    ("Disallow: a", False),
    ("Disallow:", False),
]


@pytest.mark.parametrize(("line", "plain"), PLAIN)
def test_plain_rules(line: str, plain: bool) -> None:
    assert is_plain(line) is plain


def test_sites_with_the_same_rules_share_what_protego_has_read(read: list[str]) -> None:
    judge = Judge(1 << 20)
    for number in range(100):
        packed = pack(["Disallow: /wp-admin/", "Allow: /wp-admin/admin-ajax.php", f"Disallow: /{number}"])
        assert not judge.allows(packed, f"http://{number}.example/wp-admin/x")
    assert len(read) == 1
