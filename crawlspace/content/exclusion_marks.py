"""Marks by which a page leaves parts of itself out of an index, as other products read them.

Sources: Google Search Appliance, "Excluding unwanted text"; Yandex, "noindex"; Google Search Central, `data-nosnippet`; Elastic's crawler,
"Crawler directives"; Pagefind, "Configuring what content is indexed".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from crawlspace.content.markup import VOID, attributes_of

EXCLUSION_MARKS = (
    *("googleoff", "noindex", "data-nosnippet"),
    *("data-elastic-exclude", "data-elastic-include", "data-pagefind-ignore", "data-pagefind-body"),
)
_ATTRIBUTES = tuple(name for name in EXCLUSION_MARKS if name.startswith("data-"))

_IN_COMMENTS = ("googleoff", "noindex")

_COMMENT = re.compile(r"<!--\s*+(?:google(off|on)\s*+:\s*+(index|all|snippet)\b[^>-]*+|(/?)noindex\s*+)-->", re.IGNORECASE)
_NOINDEX = re.compile(r"<(?:!--\s*+)?noindex[\s>/-]", re.IGNORECASE)
_FLAGS = ("noindex", "googleoff-index", "googleoff-snippet")
"""Tags that hold until their end tag, whatever is open by then: the marks need not be nested."""
BLOCKS = frozenset(
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr"
    " main menu nav ol p pre search section table ul".split()
)
_CELLS = frozenset({"td", "th"})
_ENDED_BY = {
    **dict.fromkeys(BLOCKS, frozenset({"p"})),
    "li": frozenset({"li", "p"}),
    **dict.fromkeys(("dt", "dd"), frozenset({"dt", "dd", "p"})),
    **dict.fromkeys(_CELLS, _CELLS | {"p"}),
    "tr": _CELLS | {"tr", "p"},
    "option": frozenset({"option"}),
}
"""The open elements that a start tag ends (HTML standard, 13.1.2.4)."""

_EXCLUDED, _IGNORED, _NO_SNIPPET, _BODY = 1, 2, 4, 8
"""Modes of a text. Where any text of a page has the mode _BODY, those without it are left out, too."""
_LEFT_OUT = _EXCLUDED | _IGNORED

Marked = tuple[list[int], list[int]]
"""Indexes of texts that are left out, and of those that no snippet may show; one more than that of the tag before a text."""


def marks_in(html: str, marks: Collection[str]) -> frozenset[str]:
    """Return the marks that a page may have, of those that count. Attributes are found in lower case only."""
    found = {name for name in _ATTRIBUTES if name in html and name in marks}
    if "googleoff" in marks and "google" in html and _COMMENT.search(html):
        found.add("googleoff")
    if "noindex" in marks and ("noindex" in html or "NOINDEX" in html) and _NOINDEX.search(html):
        found.add("noindex")
    return frozenset(found)


def with_tags(html: str, marks: frozenset[str]) -> str:
    """Return a page with tags in the place of comments that are marks."""

    def tag(comment: re.Match[str]) -> str:
        switch, what, end = (group and group.lower() for group in comment.groups())
        if switch is None:
            return f"<{end}noindex>" if "noindex" in marks else comment[0]
        if "googleoff" not in marks:
            return comment[0]
        slash = "/" if switch == "on" else ""
        return "".join(f"<{slash}googleoff-{one}>" for one in ("index", "snippet") if what in (one, "all"))

    return html if marks.isdisjoint(_IN_COMMENTS) else _COMMENT.sub(tag, html)


def marked_texts(names: Sequence[str], attributes: Sequence[str], marks: frozenset[str]) -> Marked:
    """Return the texts of a page that are marked, in time proportional to the number of its tags.

    Of nested elements the innermost mark of Elastic counts. Where an element has `data-pagefind-body`, what is in no such element is left out.
    """
    open_elements: list[tuple[str, int]] = []
    number: Counter[str] = Counter()
    flags = dict.fromkeys(_FLAGS, False)
    modes = [0]  # of the text before the first tag
    for at, name in enumerate(names):
        if name[:1] == "/":
            ended = name[1:]
            if ended in flags:
                flags[ended] = False
            while number[ended]:
                last, _ = open_elements.pop()
                number[last] -= 1
                if last == ended:
                    break
        elif name in flags:
            flags[name] = name != "noindex" or "noindex" in marks
        elif name and name[0] != "!" and name not in VOID:
            while open_elements and open_elements[-1][0] in _ENDED_BY.get(name, ()):
                number[open_elements.pop()[0]] -= 1
            mode = open_elements[-1][1] if open_elements else 0
            open_elements.append(
                (name, _mode_of(marks & attributes_of(attributes[at]).keys(), mode) if "data-" in attributes[at] else mode)
            )
            number[name] += 1
        mode = open_elements[-1][1] if open_elements else 0
        if flags["noindex"] or flags["googleoff-index"]:
            mode |= _IGNORED
        if flags["googleoff-snippet"]:
            mode |= _NO_SNIPPET
        modes.append(mode)
    has_body = any(mode & _BODY for mode in modes)
    left_out = [at for at, mode in enumerate(modes) if mode & _LEFT_OUT or (has_body and not mode & _BODY)]
    return left_out, [at for at, mode in enumerate(modes) if mode & _NO_SNIPPET]


def _mode_of(found: Collection[str], mode: int) -> int:
    """Return the mode of an element with these marks among its attributes, in one with this mode."""
    if "data-elastic-include" in found:
        mode &= ~_EXCLUDED
    elif "data-elastic-exclude" in found:
        mode |= _EXCLUDED
    if "data-pagefind-ignore" in found:
        mode |= _IGNORED
    if "data-pagefind-body" in found:
        mode |= _BODY
    if "data-nosnippet" in found:
        mode |= _NO_SNIPPET
    return mode
