"""Compute what the index must hold, and what must be stored of each address, from the present web and configuration alone.

Where the past decides (who of two equal pages was found first; whether a dead link is remembered or forgotten), every answer
every answer that some past leads to is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from tests.histories import groups
from tests.histories.configuration import ELSEWHERE, OUTSIDE, Configuration
from tests.histories.documents import (
    EARLIER_VERSION,
    IN_NO_GROUP,
    LONGEST_CHAIN,
    UNREADABLE,
    Document,
    HeldDocument,
    Indexed,
    Past,
    done_state,
    fields_of,
)
from tests.histories.families import shown
from tests.histories.sites import target_of
from tests.histories.web import Page, Web, distances, fails, host_of, name_of

Remembered = tuple[str, int | None]
"""State and status of an address."""
ABSENT: Remembered = ("absent", None)
WALLED = "walled"
"""Reason of a held document: its whole site requires a cookie that the crawler does not send."""
FORBIDDEN = "forbidden"
"""Reason of a held document: its URL leads to the log-in though the session is alive."""
_DOCUMENT_STATES = {("done", 200), ("done", UNREADABLE)}
_LOOPS: set[Remembered] = {("redirected", 302), ("failed", 691), ("gone", 691)}
_OK, _ERRORS = 200, 400
_REFUSALS = (401, 403, 407, 451)
_MISSING = (404, 410)
_MANY_FAIL = 0.35
"""Share of broken pages from which a site may count as down."""
_REDIRECTS_OF_A_WALL = 2
"""To its door, and back."""


class Oracle:
    """Finds in what the crawler's store and index differ from what they must be."""

    def __init__(self, web: Web, configuration: Configuration) -> None:
        self._web = web
        self._configuration = configuration

    def verdicts(self, url: str) -> set[int | None]:
        """Return `Configuration.verdict` for the distance that the address has from a start URL, and for the least that it ever had.

        What has become more distant need not be known as that; what nothing leads to any more may be known as it was at any time.
        """
        nearest, farthest = self._web.nearest.get(url), self._web.farthest.get(url)
        depths: set[int | None] = {depth for depth in (nearest, self.reached.get(url, farthest)) if depth is not None}
        return {self._configuration.verdict(url, web=self._web, depth=depth) for depth in depths or {None}}

    @cached_property
    def reached(self) -> dict[str, int]:
        """Return the addresses that the present web and configuration lead to, with their distance in links."""
        return distances(dict.fromkeys(self._web.start_urls(), 0), self._leads)

    def _leads(self, url: str, distance: int, redirects: int) -> tuple[str, Iterable[str]]:
        page, most = self._web.page(url), self._configuration.max_redirects
        if page is None or page.failure or page.status >= _ERRORS or redirects > most or self._web.site_of(url).is_dead:
            return "", ()
        if self._configuration.verdict(url, web=self._web, depth=distance) is not None or self._configuration.bars(
            url, self._web
        ):
            return "", ()
        if self._stops_at_door(url) or self._is_hidden(url):
            return "", ()
        if page.status != _OK:
            # one that was first found behind a redirect has that one counted, and may be followed no further (as in `fields_of`)
            is_followed = redirects < most and (url not in self._web.led_to or most > LONGEST_CHAIN)
            return page.location if is_followed else "", ()
        if not self._configuration.takes(page) or self._configuration.is_soft_error(page):
            return "", ()
        return "", (*page.links, page.canonical)

    def moved(
        self, before: Mapping[str, Indexed], index: Mapping[str, Indexed], memory: Mapping[str, Remembered]
    ) -> Iterator[str]:
        """Yield documents that left because their page has moved, and are neither at its new address nor at that of an equal page."""
        seen = self._configuration.content_key
        there = {seen(one.title, one.text) for one in index.values()}
        noted = {url for one in index.values() for url in one.duplicates}
        files = {page.locked for page in self._web.pages.values() if page.locked and page.url in index}
        for url in before.keys() - index.keys():
            to = self.document_at(self._followed(url)) if host_of(url) in self._web.sites else None
            key = seen(before[url].title, before[url].text)
            if (
                to is None
                or self.names_canonical(to)
                or self.verdicts(url) != {None}
                or memory.get(to.url) not in _DOCUMENT_STATES
            ):
                continue
            is_there = (
                key in there or to.url in noted or to.locked in files
            )  # as an equal page, a near one, or one with the same bytes
            if key == seen(to.title, to.text) and not is_there:
                yield f"LOST    {url}: it has moved to {to.url}, which is not in the index"

    def _followed(self, url: str) -> str:
        """Return where the redirects of a page end; empty if they may exceed REDIRECT_MAX_TIMES."""
        to, page = target_of(url, self._web), self._web.page(url)
        is_single = page is not None and page.location == to and not page.redirects and url not in self._web.led_to
        return to if is_single or self._configuration.max_redirects > LONGEST_CHAIN else ""

    def document_at(self, url: str) -> Page | None:
        """Return the page at an address, if it is surely a document; None for an empty one."""
        page = self._web.page(url) if url else None
        is_sure = page is not None and not self._web.site_of(url).is_dead and self._remembered(page) == {done_state(page)}
        return page if is_sure else None

    def outage(self, url: str) -> str:
        """Return how the whole site of an address fails."""
        return self._web.site_of(url).outage

    def leads_outside(self, url: str) -> bool:
        """Whether the redirect of a page of a walled site is not followed: its target is outside, barred, or one redirect too many."""
        page, configuration = self._web.page(url), self._configuration
        if page is None or not page.location:
            return False
        is_inside = self.verdicts(page.location) == {None} and not configuration.bars(page.location, self._web)
        is_near = page.redirects < configuration.max_redirects and url not in self._web.led_to
        return not (is_inside and is_near)

    def names_canonical(self, page: Page) -> bool:
        """Whether a page names another one as its canonical page."""
        return bool(self._canonical(page))

    def differences(self, index: Mapping[str, Indexed], memory: Mapping[str, Remembered], past: Past) -> Iterator[str]:
        """Yield all differences in a settled state."""
        yield from self._index_differences(index, memory, past)
        yield from self._memory_differences(memory, past)
        for kept in past.kept:
            yield from self._wrongly_held(kept, past, memory)

    def prompt_differences(self, index: Mapping[str, Indexed], memory: Mapping[str, Remembered], past: Past) -> Iterator[str]:
        """Yield documents of gone pages, and outdated ones, just after everything known has been fetched."""
        documents = self._documents(memory, past)
        for url, has in index.items():
            if url in documents:
                yield from self._content_differences(documents[url], has, past)
            elif self._configuration.verdict(url, web=self._web, depth=None) is None and {*self.verdicts(url)} == {OUTSIDE}:
                continue  # link depths are settled at the end of a run: what turns out to be too far is excluded by the next
            elif ELSEWHERE not in self.verdicts(url) and not self._may_be_its_host(url) and url not in past.left:
                yield f"EXTRA   {url}: {has.title!r}, though {self._shown(url)}"

    def displaced(
        self,
        before: Mapping[str, Indexed],
        index: Mapping[str, Indexed],
        memory: Mapping[str, Remembered],
        past: Past,
        *,
        named: Mapping[str, str],
    ) -> Iterator[str]:
        """Yield documents that left the index in one crawl for those of another host, though they are as they were.

        `named` are the canonical pages that documents named before the crawl: such a page may have been fetched first.
        """
        documents, seen = self._documents(memory, past), self._configuration.key_at
        canonical = {one.canonical for one in documents.values() if one.canonical not in ("", "?")}
        for url in before.keys() - index.keys():
            document = documents.get(url)
            if document is None or document.is_duplicate or seen(url, before[url].title, before[url].text) != document.own_key:
                continue
            if document.canonical in before:  # it was a duplicate of that page itself, until that was found to be gone
                continue
            equal = [one for one in canonical if one in documents and documents[one].own_key == document.own_key]
            if any(name_of(one) == name_of(url) for one in canonical.difference(equal)):
                continue  # it may have been a duplicate of such a page first, which was equal to it then
            for other in documents.values():
                is_new = other.url in index and other.url not in before
                if (
                    is_new
                    and other.own_key == document.own_key
                    and name_of(other.url) != name_of(url)
                    and named.get(url) != other.url
                    and memory.get(url) in _DOCUMENT_STATES
                ):
                    yield f"LOST    {url}: to {other.url}, of another host"

    # --- the index ------------------------------------------------------------------------------------------------

    def _index_differences(self, index: Mapping[str, Indexed], memory: Mapping[str, Remembered], past: Past) -> Iterator[str]:
        documents = self._documents(memory, past)
        yield from groups.near_differences(documents, index, self._configuration)
        for group in groups.groups_of(documents, index, self._configuration):
            may = [one for one in group if not any(groups.is_always_preferred(other, one, group) for other in group)]
            there = [one for one in group if one.url in index]
            if not there:
                yield f"MISSING {' or '.join(one.url for one in may)}: {group[0].title!r} {shown(group[0].text)!r}"
            for one in there:
                if len(there) > 1 or one not in may:
                    yield f"EXTRA   {one.url}: {one.title!r}, of {[other.url for other in there]}; best is {[other.url for other in may]}"
                yield from self._content_differences(one, index[one.url], past)
                if one.url not in past.of_other:
                    yield from groups.duplicate_differences(one, index[one.url], group)
                    yield from self._field_differences(one, index[one.url], memory, past)
        for url, has in index.items():
            if url not in documents:
                yield from self._other_differences(url, has, past)
        for url, was in past.elsewhere.items():
            if was is not None and self.verdicts(url) == {ELSEWHERE} and url not in index:
                yield f"MISSING {url}: {was.title!r}, which another crawler has taken over"

    def _content_differences(self, document: Document, has: Indexed, past: Past) -> Iterator[str]:
        """Yield an outdated document: of the text, only what the checksum covers counts; the title always, unless the document is held."""
        if document.url in past.held_by_other:
            return
        seen, is_held = self._configuration.content_key, document.url in past.held
        there, wanted = ((seen(one.title, one.text), is_held or one.title) for one in (has, document))
        if document.is_content_known and there != wanted:
            yield f"OLD     {document.url}: {has.title!r} {shown(has.text)!r}, now {document.title!r} {shown(document.text)!r}"

    def _field_differences(self, document: Document, has: Indexed, memory: Mapping[str, Remembered], past: Past) -> Iterator[str]:
        if document.url in (kept := past.held) or document.url in past.due_tomorrow:
            return

        def is_crawled(page: Page) -> bool | None:
            is_dead = page.failure or page.status >= _ERRORS or self._web.site_of(page.url).is_dead
            if page.url in kept or is_dead or self._is_hidden(page.url):
                return None if page.url in memory else False
            if self.verdicts(page.url) != {None} or page.url not in self.reached or self._configuration.bars(page.url, self._web):
                return None if None in self.verdicts(page.url) and not self._configuration.bars(page.url, self._web) else False
            return bool(page.location) or (self._configuration.takes(page) and not self._configuration.is_soft_error(page))

        may = fields_of(
            document.url, web=self._web, configuration=self._configuration, pages=self._all_pages(), is_crawled=is_crawled
        )
        # what is held stays as it was (spec 10), and so does what its links inherited; how often it was read before that is not known
        inherited = [*(one.inherited for one in past.kept), *past.forbidden]
        may |= {value for one in inherited for value in one.get(document.url, ())}
        # after a change of the rules, links of archived pages are judged again without a fetch
        may |= {self._configuration.field_of(one.url) for one in past.kept if document.url in one.inherited}
        if has.field not in may:
            yield f"FIELD   {document.url}: {has.field!r}, must be {' or '.join(map(repr, sorted(may)))}"

    def _other_differences(self, url: str, has: Indexed, past: Past) -> Iterator[str]:
        if url in past.left:
            return
        if ELSEWHERE not in self.verdicts(url):
            yield f"EXTRA   {url}: {has.title!r}, though {self._shown(url)}"
        elif url not in past.elsewhere:
            if url not in past.of_other:  # the other collection answers for what it has pushed since
                yield f"EXTRA   {url}: {has.title!r}, which was not indexed when another crawler took it over"
        else:
            was = past.elsewhere[url]
            if was is not None and (was.title, was.text) != (has.title, has.text):
                yield f"CHANGED {url}: {has.title!r}, was {was.title!r} when another crawler took it over"

    def _documents(self, memory: Mapping[str, Remembered], past: Past) -> dict[str, Document]:
        """Return all documents by address; duplicates of a canonical page are marked, and have the key of that page.

        Where either may be, with the present as it is, what is remembered says whether an address is a document.
        """
        documents: dict[str, Document] = {}
        for kept in past.kept:
            key = kept.key or self._configuration.key_at(kept.url, kept.title, kept.text)
            if kept.reason == "rules":  # what the rules exclude is equal to nothing; it only stays where it is
                key = (IN_NO_GROUP, kept.url)
            # what is held isn't sent, so where the other collection has pushed the page since, the index has what that one read
            sure = kept.key is None and kept.url not in past.of_other
            documents[kept.url] = Document(
                kept.url, kept.title, kept.text, kept.canonical, key, key, is_content_known=sure, is_held=True
            )
        for page in self._all_pages():
            may = self._remembered(page)
            if (
                page.url not in documents
                and not self._web.site_of(page.url).is_dead
                and (may == {done_state(page)} or (done_state(page) in may and memory.get(page.url) == done_state(page)))
            ):
                key = self._configuration.key_of(page)
                canonical = self._canonical(page)
                documents[page.url] = Document(page.url, page.title, page.text, canonical, key, key)
        for document in documents.values():
            found = self._web.page(document.url)
            document.least = document.most = found.redirects if found is not None else 0
            if (
                self._web.site_of(document.url).door is not None
            ):  # it may have been found behind the redirects of a wall, and keeps their number
                document.most += _REDIRECTS_OF_A_WALL
            if document.url in self._web.led_to or found is None or (found.redirects and document.url in self._web.linked):
                document.least, document.most = 0, 99
        keys = {document.url: document.key for document in documents.values() if not document.canonical}
        for document in documents.values():
            if document.canonical in keys:
                document.key, document.is_duplicate = keys[document.canonical], True
        return documents

    def _canonical(self, page: Page) -> str:
        """Return the canonical page that a page names, if that is another one and in the crawl space."""
        named = page.canonical or page.link_canonical
        if not named or named == page.url:
            return ""
        return "" if self._configuration.verdict(named, web=self._web, depth=None) is not None else named

    # --- stored states --------------------------------------------------------------------------------------------

    def _memory_differences(self, memory: Mapping[str, Remembered], past: Past) -> Iterator[str]:
        kept = {one.url for one in past.kept}
        linked_dead = {url for site in self._web.sites.values() for url in site.dead} | set(self._web.starts)
        linked_dead |= {
            link
            for page in self._web.pages.values()
            for link in (*page.links, page.canonical, page.link_canonical, page.location)
            if link
        }
        linked_dead |= self._web.waited_for
        linked_dead |= {self._behind_door(url) for url in memory}
        pages = {page.url: page for page in self._all_pages()}
        dead = {site.host for site in self._web.sites.values() if site.is_dead}
        for url in sorted({*pages, *memory}):
            # What is held stays as it is until that is decided, whoever has put its document into the index.
            if self._is_hidden(url):  # it keeps what is known of it, as which it is no document
                continue
            if url in kept or url in past.left or (host_of(url) in dead and None in self.verdicts(url)):
                continue
            has = memory.get(url, ABSENT)
            if self._web.is_sitemap(url):
                if has[0] == "done":
                    yield f"STATE   {url}: {_state(has)}, a sitemap"
                continue
            may = (
                self._remembered(pages[url])
                if url in pages
                else self._of_nothing(url, linked=url in linked_dead or url in past.returned)
            )
            if has not in may:
                yield f"STATE   {url}: {_state(has)}, must be {' or '.join(sorted(map(_state, may)))}: {self._shown(url)}"

    def _is_hidden(self, url: str) -> bool:
        """Whether nothing is shown at a URL but the log-in, though the session is alive."""
        site, page = self._web.sites.get(host_of(url)), self._web.page(url)
        return (
            site is not None
            and site.login is not None
            and (url == f"{site.home}login" or (page is not None and page.is_forbidden))
        )

    def _remembered(self, page: Page) -> set[Remembered]:
        """Return the states that may be stored of a page that is there."""
        may: set[Remembered] = set() if page.url in self.reached else {ABSENT}
        for verdict in self.verdicts(page.url):
            if verdict is None:
                may |= self._of_page_inside(page)
            else:
                may |= {ABSENT, ("excluded", ELSEWHERE)} | ({("excluded", OUTSIDE)} if verdict == OUTSIDE else set())
        if self._configuration.max_depth and (page.url not in self._web.nearest or page.url not in self.reached):
            may |= {("excluded", OUTSIDE)}  # the second URL of a page that is too far, or one that nothing leads to any more
        return may

    def _of_page_inside(self, page: Page) -> set[Remembered]:
        if self._stops_at_door(page.url):
            return {("redirected", 302), *self._behind_wall(page)}
        return self._behind_wall(page)

    def _stops_at_door(self, url: str) -> bool:
        """Whether the second URL to which a site sends who has no cookie is outside, barred, or one redirect too many: who comes first stays there.

        It is as far from a start URL as the page. Where nobody gets past the wall, pages are redirects themselves.
        """
        site, page = self._web.site_of(url), self._web.page(url)
        if site.wall is None or site.is_walled or not site.wall.door or site.wall.is_door(url, site):
            return False
        door, redirects = site.wall.leads(url, site), 0 if page is None else page.redirects
        redirects += 2  # once forgotten, it may be found again over its second URL first
        verdict = self._configuration.verdict(door, web=self._web, depth=None)
        is_inside = verdict is None and not self._configuration.bars(door, self._web)
        return not is_inside or redirects >= self._configuration.max_redirects or url in self._web.led_to

    def _behind_door(self, url: str) -> str:
        """Return where the second URL of a page leads, which is fetched for as long as it is known; empty for any other URL."""
        site = self._web.sites.get(host_of(url))
        if site is None or site.wall is None or not site.wall.is_door(url, site):
            return ""
        return site.wall.leads(url, site)

    def _behind_wall(self, page: Page) -> set[Remembered]:
        configuration, web = self._configuration, self._web
        if page.is_forbidden and web.site_of(page.url).login is not None:
            return {ABSENT, ("failed", 616)}
        if page.redirects > max(web.most_redirects, configuration.max_redirects) and page.url not in web.linked:
            return {ABSENT}
        if configuration.bars(page.url, web):
            return {("excluded", 740)}
        if page.failure:
            return {ABSENT, *((state, status) for state in ("failed", "gone") for status in (612, 613))}
        if page.status >= _ERRORS:
            return {ABSENT, ("gone", page.status), ("failed", page.status)}
        if page.status != 200:
            looping = {ABSENT, ("failed", 691), ("gone", 691)} if self._leads_back(page) else set()
            return {("redirected", page.status), *looping}
        if not configuration.takes(page):
            return {("excluded", 780)}
        if configuration.is_soft_error(page):
            return {ABSENT, ("gone", 404)}
        if (page.noindex or page.header_noindex) and configuration.meta_robots:
            return {("excluded", 2004)}
        return {done_state(page)}

    def _of_nothing(self, url: str, *, linked: bool) -> set[Remembered]:
        """Return the states that may be stored of an address where nothing is."""
        if (into := self._configuration.folded(url)) != url:
            return {ABSENT} | ({("excluded", OUTSIDE)} if OUTSIDE in self.verdicts(into) else set())
        if host_of(url) not in self._web.sites:
            return {ABSENT, ("failed", 680), ("gone", 680), ("excluded", OUTSIDE), ("excluded", ELSEWHERE)}
        verdicts, may = self.verdicts(url), {ABSENT}
        if verdicts != {None}:
            may |= {("excluded", OUTSIDE), ("excluded", ELSEWHERE)}
        if None in verdicts and self._configuration.bars(url, self._web):
            may |= {("excluded", 740)}
        elif None in verdicts and linked:
            may |= {("gone", 404)}
            if self._configuration.continuous:  # found again by a link or a redirect in the second in which the crawl was stopped
                may |= {("pending", None)}
        site = self._web.site_of(url)
        if None in verdicts and (site.is_walled or (site.wall is not None and site.wall.is_door(url, site))):
            may |= _LOOPS  # it leads to itself, as all of its site; a door does always
        elif site.wall is not None and site.wall.door:  # it may be found behind as many redirects as are followed
            may |= {("redirected", 302)}
        return may | {("excluded", OUTSIDE)} if self._configuration.max_depth else may  # how far it was found is not known

    def _wrongly_held(self, kept: HeldDocument, past: Past, memory: Mapping[str, Remembered]) -> Iterator[str]:
        """Yield a deletion that may not be held."""
        if self._web.site_of(kept.url).is_dead:
            return
        page = self._web.page(kept.url)
        if self._is_hidden(kept.url):  # nothing is known of its page (spec 20), so that a hold neither ends nor is confirmed
            return
        if kept.reason == "folded":
            yield from self._still_folded(kept)
            return
        is_walled = self._web.site_of(kept.url).is_walled or self._stops_at_door(
            kept.url
        )  # a redirect of the whole site (spec 10)
        if kept.reason == WALLED or (kept.reason == "host" and is_walled):
            return  # the page behind the wall does not matter
        if kept.reason == EARLIER_VERSION:
            if page is None or not page.locked:
                yield f"OLD     {kept.url}: an earlier version, which could be read, and {self._shown(kept.url)}"
            return
        is_requested_later = kept.url in past.returned  # the next fetch shows what becomes of it
        if not is_requested_later:
            yield from self._moved_and_held(kept, memory)
        remembered = self._remembered(page) if page is not None else {ABSENT}
        if kept.reason == "rules":
            # of what is gone, stored links may still lead to it, from other start URLs than any web had that led to it; those of a walled
            # site are from before the wall; and what is reached no more may have been found farther away, while robots.txt barred a nearer way
            is_depth_unknown = self._configuration.max_depth and (page is None or is_walled or kept.url not in self.reached)
            if OUTSIDE not in self.verdicts(self._configuration.folded(kept.url)) and not is_depth_unknown:
                yield f"HELD    {kept.url}: for the rules, which don't exclude it"
        elif (
            page is not None
            and remembered == {done_state(page)}
            and not (is_requested_later or self._may_be_earlier_version(kept, page, past))
        ):
            yield f"HELD    {kept.url}: for {kept.reason}, and it is there"
        may_fail = page is not None and self._fails(page)
        is_well = not (is_requested_later or (may_fail and self._may_seem_down(kept.url, memory)))
        is_well = is_well and not (page is not None and page.location and self._may_be_site_failure(page, memory))
        if kept.reason == "host" and is_well:
            yield f"HELD    {kept.url}: for its host, which is well; {self._shown(kept.url)} to {page.location if page else ''}"
        if kept.reason in ("rules", "many") and self._configuration.max_deletions > len(self._web.pages):
            yield f"HELD    {kept.url}: for {kept.reason}, and {self._configuration.max_deletions} deletions may be made"

    def _moved_and_held(self, kept: HeldDocument, memory: Mapping[str, Remembered]) -> Iterator[str]:
        """Whether a document is held though it has moved: it is in the index at another address, and is not counted by any limit (spec 10)."""
        to = self.document_at(self._followed(kept.url))
        if (
            kept.reason not in ("host", "many")
            or to is None
            or self.names_canonical(to)
            or memory.get(to.url) not in _DOCUMENT_STATES
        ):
            return
        is_asked = self.verdicts(kept.url) == {None} and not self._configuration.bars(kept.url, self._web)
        page = self._web.page(kept.url)
        is_followed = page is not None and self.verdicts(page.location) == {None}  # else only a chain outside leads there
        if (
            is_asked
            and is_followed
            and kept.key is None
            and self._configuration.key_of(to) == self._configuration.key_at(kept.url, kept.title, kept.text)
        ):
            yield f"HELD    {kept.url}: for {kept.reason}, and it has moved to {to.url}"

    def _still_folded(self, kept: HeldDocument) -> Iterator[str]:
        """Whether a document may still wait for the address that its own is folded into: if that fails, or leads to itself.

        A page that is missing together with much of its site may be the host's failure, too.
        """
        into = self._configuration.folded(kept.url)
        if self._web.site_of(into).is_dead:
            return
        page = self._web.page(into)
        waits = page is not None and (fails(page) or page.location == into or page.status in _REFUSALS)
        missing = [
            *self._web.site_of(into).dead,
            *(one for one in self._web.pages_of(self._web.site_of(into)) if one.status in _MISSING),
        ]
        waits = waits or 2 * len(missing) >= self._configuration.host_fetches
        if into == kept.url or (not waits and self._configuration.max_deletions > len(self._web.pages)):
            yield f"HELD    {kept.url}: for {into}, where {self._shown(into)}"
        elif self.document_at(into) is not None:
            yield f"HELD    {kept.url}: for {into}, which is a document"

    def _may_be_earlier_version(self, kept: HeldDocument, page: Page, past: Past) -> bool:
        """Whether the deletion of a page that is there may still be held: another one has its text, or its directives applied before."""
        return kept.reason == "many" and (self._may_be_lost(page, past) or page.noindex or page.header_noindex)

    def _may_be_lost(self, page: Page, past: Past) -> bool:
        """Whether a page that is there may lose its document to another one, which is held where there are too many such."""
        keys = [(other.url, self._configuration.key_of(other)) for other in self._all_pages()]
        keys += [(other.url, self._configuration.key_at(other.url, other.title, other.text)) for other in past.kept]
        equal = any(url != page.url and key == self._configuration.key_of(page) for url, key in keys)
        near = groups.has_near(page, [*self._all_pages(), *past.kept], self._configuration)
        return equal or near or bool(self._canonical(page))

    def _may_be_its_host(self, url: str) -> bool:
        page = self._web.page(url)
        return page is not None and (fails(page) or bool(page.location))

    def _may_seem_down(self, url: str, memory: Mapping[str, Remembered]) -> bool:
        """Whether half of the last fetches of its site may have failed: what the rules or robots.txt keep out tells nothing of it.

        Pages that fail have intervals of their own, so that the last fetches may be of all those and few others. Those that were forgotten
        because they failed may be found again in each run.
        """
        site = self._web.site_of(url)
        asked = [
            page
            for page in (self._web.home(site), *self._web.pages_of(site))
            if (page.url in memory or self._fails(page))
            and self.verdicts(page.url) == {None}
            and not self._configuration.bars(page.url, self._web)
        ]
        failing = sum(map(self._fails, asked))
        configuration = self._configuration
        times = 1 + configuration.retry_times
        if configuration.continuous:  # a page that fails is fetched at its shortest interval
            times *= configuration.refresh_max // configuration.refresh_min
        return failing >= _MANY_FAIL * len(asked) or 2 * failing * times >= configuration.host_fetches

    def _fails(self, page: Page) -> bool:
        return fails(page) or page.status in _REFUSALS or self._leads_back(page)

    def _leads_back(self, page: Page) -> bool:
        """Whether the redirect of a page leads back to it, directly or over others."""
        seen, url = {page.url}, page.location
        while url:
            url = self._configuration.folded(url)
            if url in seen:
                return True
            seen.add(url)
            following = self._web.page(url)
            url = "" if following is None else following.location
        return False

    def _may_be_site_failure(self, page: Page, memory: Mapping[str, Remembered]) -> bool:
        """Whether the redirect of a page may count as a site failure: nothing else on its site may have answered, or its target is unsettled."""
        site = self._web.site_of(page.url)
        pages = [one for one in (self._web.home(site), *self._web.pages_of(site)) if one.url in memory and one.url != page.url]
        leading = sum(bool(one.location) for one in pages)
        well = [one for one in pages if not one.location and not fails(one) and one.url != page.location]
        target = self._web.page(page.location)
        is_unsettled = target is not None and (
            fails(target) or self._leads_back(target) or bool(self._web.site_of(target.url).outage)
        )
        may_lead = leading >= _MANY_FAIL * len(pages) or 2 * leading >= self._configuration.host_fetches
        return not well or may_lead or is_unsettled or self._may_seem_down(page.url, memory)

    def _all_pages(self) -> list[Page]:
        return [*map(self._web.home, self._web.homed()), *self._web.pages.values()]

    def _shown(self, url: str) -> str:
        page, verdicts = self._web.page(url), self.verdicts(url)
        if None not in verdicts:
            return f"the rules exclude it ({verdicts})"
        if page is None:
            return "there is nothing"
        barred = ", barred" if self._configuration.bars(url, self._web) else ""
        noindex = ", noindex" if page.noindex or page.header_noindex else ""
        return f"there is {page.failure or page.status} {page.title!r} {page.type}{barred}{noindex}"


def _state(remembered: Remembered) -> str:
    state, status = remembered
    return state if status is None else f"{state} {status}"
