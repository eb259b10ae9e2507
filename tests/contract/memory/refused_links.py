"""The sample of refused links in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain

from crawlspace.decision import Reason
from crawlspace.state.refused_links import HOSTS_OF_REASON, LETTERS, LINKS_OF_HOST, RefusedLink

_OfHost = dict[str, RefusedLink]
"""Entries by URL, the oldest first."""


class MemoryRefusedLinks:
    """The part of the store that is the sample of refused links."""

    def __init__(self) -> None:
        super().__init__()
        self._sample: defaultdict[Reason, dict[str, _OfHost]] = defaultdict(dict)
        """Hosts in the order in which an entry was added last; one may have no entries any more."""

    def refused_links(
        self, *, reason: Reason | None = None, host: str | None = None, page: int | None = None
    ) -> list[RefusedLink]:
        return [
            link
            for one in sorted(self._sample, key=LETTERS.__getitem__)
            for name, links in sorted(self._sample[one].items())
            for link in links.values()
            if reason in (None, one) and host in (None, name) and page in (None, link.page)
        ]

    def _replace_refused_links(self, by_page: Mapping[int, Sequence[RefusedLink]]) -> None:
        """Drop the entries of pages, add their new ones, and drop what is beyond the bounds."""
        if not by_page:
            return
        for hosts in self._sample.values():
            for host, links in hosts.items():
                hosts[host] = {url: link for url, link in links.items() if link.page not in by_page}
        for link in chain.from_iterable(by_page.values()):
            hosts = self._sample[link.reason]
            links = hosts[link.host] = hosts.pop(link.host, {})
            links.pop(link.url, None)
            links[link.url] = link
        for hosts in self._sample.values():
            for host in list(hosts)[:-HOSTS_OF_REASON]:
                del hosts[host]
            for links in hosts.values():
                for url in list(links)[:-LINKS_OF_HOST]:
                    del links[url]
