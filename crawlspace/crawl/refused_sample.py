"""Which refused links of this run are stored as a sample (`state/refused_links.py`).

A link is noted when its target is found for the first time, while there is room for its reason and host. What this process has noted is cached,
so that a page that is read again makes room for its entries, and they are noted anew.
"""

from __future__ import annotations

from collections import defaultdict

from crawlspace.decision import Reason, RuleRef
from crawlspace.model import NewUrl
from crawlspace.printable import cut, printable
from crawlspace.state.refused_links import HOSTS_OF_REASON, LETTERS, LINKS_OF_HOST, RefusedLink
from crawlspace.urls import Url

MAX_URL = 2_083
"""Characters of a URL that are stored; a longer one is cut off with an ellipsis."""


class RefusedSample:
    """The entries that this process has noted, by a hash of their URL."""

    def __init__(self) -> None:
        self.reads_again = False
        """The present page has entries that were noted at its last fetch: all of its refused links are to be noted."""
        self._page = 0
        self._noted: dict[Reason, dict[str, set[int]]] = {reason: {} for reason in LETTERS}
        self._of_page: defaultdict[int, list[tuple[Reason, str, int]]] = defaultdict(list)
        self._new: list[RefusedLink] = []

    def begin(self, page: int) -> None:
        """Begin with the links of a page, whose id this is."""
        self._page, self._new = page, []
        before = self._of_page.pop(page, ())
        self.reads_again = bool(before)
        for reason, host, hashed in before:
            self._noted[reason][host].discard(hashed)

    def note(self, reason: Reason, url: Url | None, href: str, rule: RuleRef | None = None) -> None:
        """Note a refused link of the present page, if there is room. `url` is None where it is malformed."""
        host = "" if url is None else url.host
        if self._has_room(reason, host):
            self._add(reason, host, as_stored(url, href), None if rule is None else str(rule))

    def note_known(self, reason: Reason, url: NewUrl) -> None:
        """Note a link of the present page that the rules admit, and that is refused all the same."""
        host = url.site.rpartition(":")[0]
        if self._has_room(reason, host):
            self._add(reason, host, cut(url.url, MAX_URL), None)

    def take(self) -> list[RefusedLink]:
        """Return what was noted of the present page."""
        new, self._new = self._new, []
        return new

    def _has_room(self, reason: Reason, host: str) -> bool:
        hosts = self._noted[reason]
        of_host = hosts.get(host)
        return len(hosts) < HOSTS_OF_REASON if of_host is None else len(of_host) < LINKS_OF_HOST

    def _add(self, reason: Reason, host: str, text: str, rule: str | None) -> None:
        of_host, hashed = self._noted[reason].setdefault(host, set()), hash(text)
        if hashed not in of_host:
            of_host.add(hashed)
            self._of_page[self._page].append((reason, host, hashed))
            self._new.append(RefusedLink(reason, host, text, self._page, rule))


def as_stored(url: Url | None, href: str) -> str:
    """Return a URL in normal form, but for the host, which is as written, because rules may see a difference. Without credentials."""
    if url is None or not url.host:
        return printable(href.strip() if url is None else url.text, most=MAX_URL)
    head = f"{url.scheme}://{url.host}"
    if url.host_as_written == url.host or not url.text.startswith(head):
        return cut(url.text, MAX_URL)
    return cut(f"{url.scheme}://{url.host_as_written}{url.text[len(head) :]}", MAX_URL)
