"""Learn for each group of pages whether they need a browser, from the results of rendering some of them.

A group is the pages of a site in one folder, or below it, two folders deep at most. Pages that look like a script shell are rendered until
that proves useless. Of the others a sample is rendered; when those gain too, all are rendered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from msgspec import Struct

from crawlspace.urls import Url

MAX_GROUPS = 2_000
CHECK_EVERY = 50
"""Of pages that are not rendered, every CHECK_EVERY-th is, as a sample."""
SHELLS_IN_VAIN = 5
"""Shells of a group after which no more are rendered, if none of them gained anything."""
SHELLS_IN_VAIN_LATER = 20
"""The same in a row, if some have gained before."""
PAGES_IN_VAIN = 10
"""Pages in a row that gained nothing, after which not all pages of the group are rendered any more."""
GAINED_WORDS = 20
GAINED_SHARE = 1.5
GAINED_LINKS = 3
EMPTY_WORDS = 5
"""A page with fewer words is empty: EMPTY_WORDS more, or one more link, may be all that it has."""
FOLDERS = 2
_LONGEST_GROUP = 200
_DIGITS = re.compile(r"\d+")


class RenderDecision(Enum):
    """Whether a page is rendered now."""

    NO = "no"
    YES = "yes"
    CHECK = "check"
    """As a sample: if rendering fails, the plain page is good enough."""


class Needs(IntEnum):
    """Pages of a group that are rendered. The numbers are stored."""

    SHELLS = 0
    """Those that look like a script shell."""
    ALL = 1
    NONE = 2

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES = {
    Needs.SHELLS: "pages that look like a script shell are rendered",
    Needs.ALL: "every page is rendered, because pages that look complete gained text or links too",
    Needs.NONE: "no page is rendered, because those that look like a script shell gained nothing",
}


@dataclass(frozen=True, slots=True)
class Rendered:
    """The result of rendering a page."""

    words_before: int
    words_after: int
    links_before: int
    links_after: int
    seconds: float
    requests: int
    """Requests of the browser, besides the page itself."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Reasons by host for blocked requests of the page; at most 20."""

    @property
    def gains(self) -> bool:
        """Whether the page gained notably more words or links."""
        more, links = self.words_after - self.words_before, self.links_after - self.links_before
        if self.words_before < EMPTY_WORDS:
            return more >= EMPTY_WORDS or links > 0
        if more >= GAINED_WORDS and self.words_after >= GAINED_SHARE * self.words_before:
            return True
        return links >= GAINED_LINKS


class RenderGroup(Struct, array_like=True):
    """The learned state of one group of pages."""

    needs: Needs = Needs.SHELLS
    rendered: int = 0
    gained: int = 0
    """Of those rendered."""
    shells_in_vain: int = 0
    """Shells in a row that gained nothing."""
    pages_in_vain: int = 0
    """The same of other pages, while all are rendered."""
    shells_passed: int = 0
    """Shells not rendered since the last sample."""
    pages_passed: int = 0
    """The same of other pages."""
    shells_gained: int = 0

    @property
    def needs_browser(self) -> bool:
        """Whether pages of the group have gained by rendering, and are rendered."""
        return self.gained > 0 and self.needs is not Needs.NONE

    def decide(self, *, is_shell: bool) -> RenderDecision:
        """Return whether the next page is rendered, and count it."""
        if self.needs is Needs.ALL or (is_shell and self.needs is Needs.SHELLS):
            return RenderDecision.YES
        if is_shell:
            self.shells_passed += 1
            if self.shells_passed < CHECK_EVERY:
                return RenderDecision.NO
            self.shells_passed = 0
        else:
            self.pages_passed += 1
            if self.pages_passed < CHECK_EVERY:
                return RenderDecision.NO
            self.pages_passed = 0
        return RenderDecision.CHECK

    def learn(self, *, is_shell: bool, gains: bool) -> bool:
        """Learn from the result of a rendered page; return whether this changes which pages are rendered."""
        before = self.needs, self.needs_browser
        self.rendered += 1
        self.gained += gains
        if is_shell:
            self._learn_of_shell(gains=gains)
        else:
            self._learn_of_page(gains=gains)
        return before != (self.needs, self.needs_browser)

    def _learn_of_shell(self, *, gains: bool) -> None:
        if gains:
            self.shells_in_vain = 0
            self.shells_gained += 1
            if self.needs is Needs.NONE:
                self.needs = Needs.SHELLS
            return
        self.shells_in_vain += 1
        most = SHELLS_IN_VAIN_LATER if self.shells_gained else SHELLS_IN_VAIN
        if self.needs is Needs.SHELLS and self.shells_in_vain >= most:
            self.needs = Needs.NONE

    def _learn_of_page(self, *, gains: bool) -> None:
        if gains:
            self.needs, self.pages_in_vain = Needs.ALL, 0
        elif self.needs is Needs.ALL:
            self.pages_in_vain += 1
            if self.pages_in_vain >= PAGES_IN_VAIN:
                self.needs, self.pages_in_vain = Needs.SHELLS, 0


def group_of(url: Url) -> str:
    """Return the group of a page, as `www.example.com:443/shop/item/`.

    The last segment of the path is the page itself, even with a slash after it. All numbers are equal: they count pages.
    """
    folders = [segment for segment in url.path.split("/") if segment][:-1][:FOLDERS]
    text = "/".join([url.site, *(_DIGITS.sub("0", segment) for segment in folders), ""])
    return text if len(text) <= _LONGEST_GROUP else f"{text[: _LONGEST_GROUP - 1]}/"
