"""Documents as the oracle expects them: groups of equal pages, held documents, inherited fields, and files."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from crawlspace.content.fingerprint import checksum, checksum_of_bytes
from crawlspace.model import State, UrlState
from crawlspace.status import Status
from tests.histories.configuration import Configuration
from tests.histories.web import FILE, Answer, Page, Web, path_of

IN_NO_GROUP = "in no group"
"""What the key of a document begins with that is held for the rules."""


AS_IT_WAS = "as it was"
"""What it begins with where the document is held as it was, and equal to what was equal to it then."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """A document as the index has it."""

    title: str
    text: str
    duplicates: frozenset[str] = frozenset()
    field: str = ""
    """The value that rules have added."""


@dataclass(slots=True)
class Document:
    url: str
    title: str
    text: str
    canonical: str
    key: tuple[str, ...]
    """Key of its group."""
    own_key: tuple[str, ...]
    least: int = 0
    """Redirects on the way to it."""
    most: int = 0
    is_duplicate: bool = False
    is_content_known: bool = True
    """Its content is known for sure."""
    is_held: bool = False
    """It is as it was."""


# --- past ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeldDocument:
    """A document whose deletion is held: it is as it was. `reason` is "host", "many", "rules" or one of the constants."""

    url: str
    title: str
    text: str
    canonical: str
    reason: str
    key: tuple[str, ...] | None = None
    """The key by which it was equal to others, where that differs from its present one."""
    inherited: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Values of the field that its links have inherited since it was first read, by the addresses they may have come to."""


@dataclass(slots=True)
class Past:
    """What the oracle cannot compute from the present web and configuration."""

    kept: Sequence[HeldDocument] = ()
    elsewhere: Mapping[str, Indexed | None] = field(default_factory=dict)
    """Documents of addresses when another crawler took them over; None where that is unknown by now."""
    left: Collection[str] = ()
    """Addresses whose documents were left to another crawler, and whose deletion is held."""
    of_other: Collection[str] = ()
    """Documents that another collection with the same index pushed last: it knows other duplicates of them, and other pages lead there."""
    returned: Collection[str] = ()
    """Addresses that came back into the crawl space just now, and have been fetched once since: what is gone is remembered until the next fetch."""
    held_by_other: Collection[str] = ()
    """Documents of the other collection that are held for its rules: it does not fetch them, and pushes them when their duplicates change."""
    due_tomorrow: Collection[str] = ()
    """Addresses that inherit something else now, and were fetched for that today already: they are fetched again the next day."""

    forbidden: Sequence[Mapping[str, Collection[str]]] = ()
    """What links of pages have inherited that lead to the log-in though somebody is logged in, as `HeldDocument.inherited`: all that is known of them stays."""

    @property
    def held(self) -> set[str]:
        """Return the addresses of `kept`."""
        return {one.url for one in self.kept}


# --- inherited -----------------------------------------------------------------------------------------------------


LONGEST_CHAIN = 3
"""Redirects in a row, in a web that changes a little."""

Certain = Callable[[Page], bool | None]
"""Whether a page is crawled, so that its links inherit; None where that is not known."""


def fields_of(url: str, *, web: Web, configuration: Configuration, pages: list[Page], is_crawled: Certain) -> set[str]:
    """Return the values that the field may have; "" for none."""
    own = configuration.field_of(url)
    if own:
        return {own}
    return _inherited(url, web, configuration, pages, is_crawled, set())


def _inherited(
    url: str, web: Web, configuration: Configuration, pages: list[Page], is_crawled: Certain, seen: set[str]
) -> set[str]:
    """Return the values that an address may inherit: a link inherits what rules add to its page, a redirect passes on inherited ones too."""
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
    """Values that links inherited when their pages were read, and the redirects that pass them on."""

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


# --- files ---------------------------------------------------------------------------------------------------------


EARLIER_VERSION = "earlier version"
"""Reason of a held document: it is of an earlier version of the file, which could be read."""
UNREADABLE = int(Status.UNREADABLE_FILE)
_BYTES = [f"bytes {number}" for number in range(100)]
_KEYS: Mapping[bytes, tuple[str, ...]] = {checksum_of_bytes(one.encode()): ("locked", one) for one in _BYTES}


def change_file(web: Web, page: Page, chance: random.Random, words: Callable[[Page], tuple[str, str]]) -> str:
    """Make a page a file, or change one that cannot be read; `words` returns title and text for it."""
    locked = [one for one in web.pages.values() if one.locked and one.status == 200 and not one.failure]
    if locked and chance.random() < 0.6:
        page = chance.choice(locked)
        if chance.random() < 0.5:
            page.locked = ""
            page.title, page.text = words(page)
            return f"{page.url} is a file with {page.title!r}"
    page.type, page.noindex, page.canonical, page.links = FILE, False, "", []
    if chance.random() < 0.3:
        return f"{page.url} is {page.type}"
    page.title, page.text = page.url.rpartition("/")[2], ""
    page.locked = chance.choice(locked).locked if locked and chance.random() < 0.4 else chance.choice(_BYTES)
    return f"{page.url} is a file that cannot be read, {page.locked}"


def done_state(page: Page) -> tuple[str, int]:
    """Return state and status of a page that is a document."""
    return "done", UNREADABLE if page.locked else 200


def checksum_of(title: str, text: str, *, with_title: bool, cut_off: int, locked: str = "") -> bytes:
    """Return the checksum of a document; `locked` are the bytes of a file that cannot be read."""
    if locked:
        return checksum_of_bytes(locked.encode())
    return checksum(text, title=title if with_title else None, cut_off=cut_off)


def key_of(checksum: bytes) -> tuple[str, ...] | None:
    """Return the key of a file that cannot be read, by its checksum, as `Configuration.key_of`; None for one with text."""
    return _KEYS.get(checksum)


def has_earlier_version(state: UrlState) -> bool:
    """Whether what is indexed is a version with text of a file that cannot be read any more: it stays for a while."""
    return state.state is State.FAILED and state.status == UNREADABLE and state.checksum is not None
