"""Files in a simulated web: those that cannot be read are found by their names, and equal to another one if their bytes are."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from crawlspace.content.fingerprint import checksum, checksum_of_bytes
from crawlspace.model import State, UrlState
from crawlspace.status import Status
from tests.histories.web import FILE, Page, Web

OF_BEFORE = "of before"
"""Why a document is kept: it is of a version of the file that could be read."""
UNREADABLE = int(Status.UNREADABLE_FILE)
_BYTES = [f"bytes {number}" for number in range(100)]
_KEYS: Mapping[bytes, tuple[str, ...]] = {checksum_of_bytes(one.encode()): ("locked", one) for one in _BYTES}


def changed(web: Web, page: Page, chance: random.Random, words: Callable[[Page], tuple[str, str]]) -> str:
    """Have a page be a file, or one that cannot be read be another one, or readable; `words` returns title and text for it."""
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


def done(page: Page) -> tuple[str, int]:
    """State and status of a page that is a document."""
    return "done", UNREADABLE if page.locked else 200


def checksum_of(title: str, text: str, *, with_title: bool, cut_off: int, locked: str = "") -> bytes:
    """The checksum of a document; `locked` are the bytes of a file that cannot be read."""
    if locked:
        return checksum_of_bytes(locked.encode())
    return checksum(text, title=title if with_title else None, cut_off=cut_off)


def key_of(checksum: bytes) -> tuple[str, ...] | None:
    """What a file is equal to others by that has this checksum and cannot be read, as `Configuration.key_of`; None for what has text."""
    return _KEYS.get(checksum)


def is_of_before(state: UrlState) -> bool:
    """Whether what is indexed is a version with text of a file that cannot be read any more: it stays for a while."""
    return state.state is State.FAILED and state.status == UNREADABLE and state.checksum is not None
