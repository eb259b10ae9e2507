"""What fields a document must have: those that a rule adds to its own address, and those that it inherits from pages that link to it."""

from __future__ import annotations

from collections.abc import Callable

from tests.histories.configuration import Configuration
from tests.histories.web import Answer, Page, Web, path_of

LONGEST_CHAIN = 3
"""Redirects in a row, in a web that changes a little."""

Certain = Callable[[Page], bool | None]
"""Whether a page is crawled, so that its links inherit; None where that is not known."""


def fields_of(url: str, *, web: Web, configuration: Configuration, pages: list[Page], is_crawled: Certain) -> set[str]:
    """The values that the field may have; "" for none."""
    own = configuration.field_of(url)
    if own:
        return {own}
    return _inherited(url, web, configuration, pages, is_crawled, set())


def _inherited(
    url: str, web: Web, configuration: Configuration, pages: list[Page], is_crawled: Certain, seen: set[str]
) -> set[str]:
    """A link inherits the fields that the rules add to its page; a redirect passes on those and its own inherited ones."""
    may, for_sure = set(), False
    for page in pages:
        leads = page.location == url if page.location else url in (*page.links, page.canonical, page.link_canonical)
        if not leads or page.url == url or page.url in seen:
            continue
        values = {configuration.field_of(page.url)}
        if page.location and values == {""}:
            values = _inherited(page.url, web, configuration, pages, is_crawled, {*seen, url})
        crawled = is_crawled(page)
        if crawled is False or values == {""}:
            continue
        may |= values
        # one that was first found behind a redirect has that one counted, and may be followed no further
        followed = not (page.location and page.url in web.led_to) or configuration.max_redirects > LONGEST_CHAIN
        for_sure = for_sure or (crawled is True and followed and "" not in values and url != page.link_canonical)
    return may - {""} if for_sure else may | {""}


class Inherited:
    """What pages handed along their links when they were read, and where those lead by redirects."""

    def __init__(self) -> None:
        self._values: dict[str, set[tuple[str, str]]] = {}
        """By page: where it linked to, and the value that was inherited there."""
        self._redirects: dict[str, set[str]] = {}

    def note(self, url: str, answer: Answer, value: str) -> None:
        """Note an answer; `value` is what rules.xml adds below /p/ at that time."""
        if answer.location:
            self._redirects.setdefault(url, set()).add(answer.location)
        if value and path_of(url).startswith("/p/"):
            leads = (*answer.links, answer.canonical, answer.link_canonical, answer.location)
            self._values.setdefault(url, set()).update((to, value) for to in leads if to)

    def along_links_of(self, url: str) -> dict[str, set[str]]:
        """Return the values by the addresses that inherited them."""
        found: dict[str, set[str]] = {}
        for to, value in self._values.get(url, ()):
            waiting, seen = [to], {url}
            while waiting:
                led = waiting.pop()
                if led not in seen:
                    seen.add(led)
                    found.setdefault(led, set()).add(value)
                    waiting += self._redirects.get(led, ())
        return found
