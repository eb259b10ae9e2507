"""Random changes of the web between crawls: one at a time, each described in a line."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.histories.documents import change_file
from tests.histories.drawn import DRAWN, Drawn
from tests.histories.families import Texts, family_of, shown
from tests.histories.sites import Outages
from tests.histories.web import HTML, IMAGE, PLAIN, Page, Site, Web, host_of, path_of

_SECTIONS = ("p", "p", "q", "q/sub", "p/x/x/x", "q/a-rather-long-name-of-a-folder")
_SUFFIXES = ("", "", "", ".html", ".odd", "?v=1")
_TOPICS = ("the canteen", "travel expenses", "the annual report", "parking", "holidays")
_FEWEST = 4
"""Documents that a site keeps, so that a failure of the whole site can be told from that of pages."""


class Changes(Outages):
    """Changes a web at random."""

    def __init__(self, web: Web, chance: random.Random, drawn: Drawn = DRAWN) -> None:
        super().__init__(web, chance, drawn)
        self.by_spider = False
        """The project's spider reads the answers: headers are drawn, but no plain texts, whose titles the oracle does not know."""
        self.texts: Texts | None = None
        """Of families with near duplicates, where they are drawn."""

    def begin(self) -> None:
        """Make some pages on each site."""
        for site in self._web.sites.values():
            for _ in range(self._chance.randint(_FEWEST + 1, _FEWEST + 4)):
                self._web.put(self._new_page(site))
            if self._chance.random() < 0.5:
                self._dig(site)
        self._web.note_nearest()

    def change(self) -> str:
        """Make one change that is possible now, and say which."""
        step = self._changed()
        self._web.note_nearest()
        return step

    def start_urls(self) -> str:
        """Add or remove a start URL."""
        web, chance = self._web, self._chance
        what = chance.random()
        if what < 0.35:
            site = chance.choice(list(web.sites.values())[1:])
            site.start = site.host == web.lasting or not site.start
            step = f"{site.home} is {'a' if site.start else 'no'} start URL"
        elif web.starts and what < 0.65:
            url = web.starts.pop(chance.randrange(len(web.starts)))
            step = f"{url} is no start URL"
        else:
            nothing = [*web.gone, *(url for site in web.sites.values() for url in site.dead)]
            pages = [url for url, page in web.pages.items() if not page.redirects]
            deep = [url for url in pages if path_of(url).startswith("/deep/")]
            url = chance.choice(chance.choice([some for some in (nothing, pages, pages, deep, deep) if some]))
            if url in web.starts:
                return "the start URLs are as before"
            web.starts.append(url)
            step = f"{url} is a start URL"
        web.note_nearest()
        return step

    def new_start(self) -> str:
        """Add the URL of a page as a start URL."""
        pages = [url for url, page in self._web.pages.items() if not page.redirects and url not in self._web.starts]
        url = self._chance.choice(pages)
        self._web.starts.append(url)
        self._web.note_nearest()
        return f"{url} is a start URL"

    def _changed(self) -> str:
        changes: list[Callable[[], str]] = [
            self._appear, self._appear, self._copy, self._copy, self._rewrite, self._rewrite, self._rewrite, self._touch,
            self._equal, self._vanish, self._vanish, self._vanish, self._return, self._return, self._move, self._redirect,
            self._chain, self._noindex, self._noindex, self._type, self._break, self._mend, self._mend, self._bar, self._name,
            self._name, self._name, self._unname, self._relink, self._kill_link, self._apologise, self._new_site, self.file,
        ]  # fmt: skip
        while True:
            step = self._chance.choice(changes)()
            if step:
                return step

    def headers(self) -> str:
        """Change the headers of a page, not its body."""
        page, what = self._any_page(html=True), self._chance.random()
        if what < 0.4:
            page.header_noindex = not page.header_noindex
            return f"{page.url} has {'' if page.header_noindex else 'no '}X-Robots-Tag"
        if what < 0.7:
            page.link_canonical = "" if page.link_canonical or page.canonical else self._any_page().url
            return f"{page.url} has {page.link_canonical or 'no page'} as canonical in its Link header"
        types = [page for page in self._web.pages.values() if page.type == IMAGE]
        page = self._chance.choice([page, *types])
        page.type = HTML if page.type == IMAGE else IMAGE
        return f"{page.url} is {page.type}, and the same"

    def links(self) -> str:
        """Change the links of a page below /p/."""
        page = self._any_page(html=True)
        if not path_of(page.url).startswith("/p/"):
            return self._relink()
        page.links = [self._any_page(deep=True).url for _ in range(self._chance.randint(0, 3))]
        self._web.note_nearest()
        return f"{page.url} links {page.links}"

    def crowd(self) -> str:
        """Make many pages on a site."""
        site = self._any_site()
        for _ in range(20):
            self._web.put(self._new_page(site))
        self._web.note_nearest()
        return f"20 new pages on {site.host}"

    def about_copies(self) -> str:
        """Copy pages of one site to another, at shorter addresses."""
        site, like = self._any_site(), self._any_site()
        if site is like:
            return "all is as before"
        originals = [page for page in self._web.pages_of(like) if page.status == 200 and not page.failure and page.type == HTML]
        for original in originals[: self._chance.randint(1, 5)]:
            page = self._new_page(site, url=f"{site.home}p/{self._number(site)}")
            page.title, page.text = original.title, original.text
            page.canonical = self._chance.choice(("", "", page.url, original.url))
            self._web.put(page)
        self._web.note_nearest()
        return f"{site.host} has copies of pages of {like.host}"

    # --- pages come and go ----------------------------------------------------------------------------------------

    def _appear(self) -> str:
        page = self._new_page(self._any_site())
        self._web.put(page)
        return f"new page {page.url} {page.title!r}"

    def _copy(self) -> str:
        like = self._any_page()
        page = self._new_page(self._any_site())
        page.title, page.text = like.title, like.text
        self._web.put(page)
        return f"new page {page.url}, equal to {like.url}"

    def _vanish(self) -> str:
        page = self._any_page()
        if not self._can_spare(page):
            return ""
        if self._chance.random() < 0.2:
            page.status = self._chance.choice((410, 403))
            return f"{page.url} answers {page.status}"
        leave_link = self._chance.random() < 0.5
        self._web.remove(page.url, leave_link=leave_link)
        return f"{page.url} is gone{', a dead link stays' if leave_link else ''}"

    def _return(self) -> str:
        gone = [url for url in self._web.gone if path_of(url)[1] in "pq"]
        if not gone:
            return ""
        url = self._chance.choice(gone)
        page = self._new_page(self._web.site_of(url), url=url)
        self._web.put(page)
        return f"{url} is there again, as {page.title!r}"

    def _move(self) -> str:
        page = self._any_page()
        new = self._new_page(self._web.site_of(page.url))
        new.title, new.text, new.links = page.title, page.text, list(page.links)
        self._web.put(new)
        self._lead(page, new.url)
        return f"{page.url} has moved to {new.url}"

    def _redirect(self) -> str:
        page, target = self._any_page(), self._any_page()
        if not self._can_spare(page):
            return ""
        what = self._chance.random()
        if what < 0.15:
            to = page.url
        elif what < 0.3:
            to = f"http://{host_of(page.url)}/p/none{self._number(self._web.site_of(page.url))}"
        elif what < 0.4:
            to = "http://elsewhere.example/"
        else:
            to = target.url
        self._lead(page, to)
        return f"{page.url} leads to {to}"

    def _chain(self) -> str:
        """Make or remove a chain of three redirects, of which only the first is linked."""
        site = self._any_site()
        chains = [page for page in self._web.pages_of(site) if path_of(page.url).startswith("/r/")]
        if chains and self._chance.random() < 0.5:
            stem = self._chance.choice(chains).url[:-1]
            for end in "abc":
                self._web.remove(stem + end)
            return f"the chain {stem} is gone"
        if len(chains) >= 9:
            return ""
        stem = f"{site.home}r/{self._number(site)}"
        like = self._any_page() if self._chance.random() < 0.5 else self._new_page(site)
        self._web.put(Page(stem + "a", status=301, location=stem + "b"))
        self._web.put(Page(stem + "b", status=302, location=stem + "c", redirects=1, linked=False))
        self._web.put(Page(stem + "c", like.title, like.text, redirects=2, linked=False))
        return f"a chain of redirects {stem}a to {stem}c {like.title!r}"

    def _dig(self, site: Site) -> None:
        """Make or remove a path of pages, each linked by the one before it."""
        length = self._chance.randint(2, 5)
        for number in range(1, length + 1):
            new = self._new_page(site, url=f"{site.home}deep/{number}")
            new.links = [f"{site.home}deep/{number + 1}"] if number < length else []
            new.linked = number == 1
            self._web.put(new)

    def _new_site(self) -> str:
        if len(self._web.sites) >= 5 or self._chance.random() < 0.7:
            return ""
        site = Site(f"new{len(self._web.sites)}.example", start=False)
        self._web.sites[site.host] = site
        for _ in range(_FEWEST + 1):
            self._web.put(self._new_page(site))
        return f"new site {site.host}"

    # --- pages change ---------------------------------------------------------------------------------------------

    def _rewrite(self) -> str:
        page = self._any_page(deep=True)
        page.title, page.text = self.words(self._web.site_of(page.url))
        return f"{page.url} is now {page.title!r}"

    def _equal(self) -> str:
        page, like = self._any_page(), self._any_page(deep=True)
        page.title, page.text = like.title, like.text
        return f"{page.url} is now equal to {like.url}"

    def about_equal(self) -> str:
        """Make pages equal, different, or gone."""
        step = self._chance.choice((self._equal, self._equal, self._copy, self._vanish, self._rewrite, self._return))()
        self._web.note_nearest()
        return step or "all is as before"

    def about_near(self) -> str:
        """Give pages texts that are nearly the same as those of others, or that are so no more."""
        assert self.texts is not None
        page, found = self._any_page(deep=True), None
        step = self._chance.choice((self._appear, self._copy, self._equal, self._vanish, self._return, self._name))
        if self._chance.random() < 0.6 and (found := self.texts.after(page.text)) is not None:
            page.title, page.text = found
        said = step() if found is None else f"{page.url} is now {shown(page.text)!r}"
        self._web.note_nearest()
        return said or "all is as before"

    def _touch(self) -> str:
        """Change the representation of a page, not its content."""
        if self._chance.random() < 0.5:
            site = self._any_site()
            site.stamp += 1
            return f"{site.home} is touched"
        page = self._any_page(deep=True)
        page.stamp += 1
        return f"{page.url} is touched"

    def _noindex(self) -> str:
        page = self._any_page(deep=True, html=True)
        page.noindex = not page.noindex
        return f"{page.url} {'asks not to be indexed' if page.noindex else 'may be indexed'}"

    def _type(self) -> str:
        page = self._any_page()
        page.type = self._chance.choice((HTML, IMAGE) if self.by_spider else (HTML, PLAIN, PLAIN, IMAGE))
        page.noindex, page.canonical, page.links = False, "", []
        page.header_noindex, page.link_canonical = False, ""
        return f"{page.url} is {page.type}"

    def _apologise(self) -> str:
        page = self._any_page()
        if not self._can_spare(page) or family_of(page.text) is not None:
            return ""
        page.title = f"Sorry, {page.text} has gone"
        return f"{page.url} is now {page.title!r}"

    def _break(self) -> str:
        page = self._any_page()
        mine = self._web.pages_of(self._web.site_of(page.url))
        broken = sum(1 for one in mine if one.failure or one.status >= 500)
        if not self._can_spare(page) or (broken + 1) * 6 > len(mine):
            return ""
        kind = self._chance.choice(("500", "503", "refused", "timeout"))
        if kind.isdigit():
            page.status = int(kind)
        else:
            page.failure = kind
        return f"{page.url} is broken: {kind}"

    def _mend(self) -> str:
        broken = [page for page in self._web.pages.values() if page.failure or page.status >= 400]
        if not broken:
            return ""
        page = self._chance.choice(broken)
        page.failure, page.status = "", 200
        return f"{page.url} is {page.title!r} again"

    def _name(self) -> str:
        """Make a page name a canonical one: another, itself, or one that is missing."""
        page, named = self._any_page(html=True), self._any_page()
        page.link_canonical = ""
        page.canonical = named.url if self._chance.random() < 0.8 else f"{self._web.site_of(page.url).home}p/none"
        if self._chance.random() < 0.3 and page is not named:
            named.title, named.text = page.title, page.text
            return f"{page.url} names {page.canonical} as the canonical page, and they are equal"
        return f"{page.url} names {page.canonical} as the canonical page"

    def _unname(self) -> str:
        naming = [page for page in self._web.pages.values() if page.canonical]
        if not naming:
            return ""
        page = self._chance.choice(naming)
        page.canonical = ""
        return f"{page.url} names no canonical page"

    def _relink(self) -> str:
        page = self._any_page(html=True)
        page.links = [self._any_page().url for _ in range(self._chance.randint(0, 2))]
        return f"{page.url} links {page.links}"

    def _kill_link(self) -> str:
        site = self._any_site()
        if site.dead:
            url = site.dead.pop()
            return f"{site.home} does not link {url} any more"
        site.dead.append(f"{site.home}q/none{self._number(site)}")
        return f"{site.home} links {site.dead[-1]}, which isn't there"

    def _bar(self) -> str:
        site = self._any_site()
        if site.barred and self._chance.random() < 0.6:
            site.barred.clear()
            return f"{site.host} bars nothing"
        choice = ["/p/", "/q/", "/q/sub", "/r/", "/deep/"]
        if site is not self._web.first:
            choice.append("/")
        site.barred.append(self._chance.choice(choice))
        return f"{site.host} bars {site.barred}"

    # --- choosing -------------------------------------------------------------------------------------------------

    def _any_site(self) -> Site:
        return self._chance.choice([site for site in self._web.sites.values() if not site.moved])

    def _any_page(self, *, deep: bool = False, html: bool = False) -> Page:
        """Return a page that answers, is no home page, and belongs to no structure but perhaps `deep`."""
        return self._chance.choice(
            [
                page
                for page in self._web.pages.values()
                if page.status == 200
                and not page.failure
                and not page.locked
                and (path_of(page.url)[1] in "pq" or (deep and path_of(page.url).startswith("/deep/")))
                and (not html or page.type == HTML)
            ]
        )

    def _can_spare(self, page: Page) -> bool:
        mine = self._web.pages_of(self._web.site_of(page.url))
        return sum(1 for one in mine if one.status == 200 and not one.failure and path_of(one.url)[1] in "pq") > _FEWEST

    def _lead(self, page: Page, to: str) -> None:
        page.status, page.location, page.canonical = self._chance.choice((301, 302)), to, ""
        page.link_canonical, page.header_noindex = "", False
        self._web.led_to.add(to)

    def file(self) -> str:
        if self.by_spider or not self._drawn.files:
            return ""
        return change_file(self._web, self._any_page(), self._chance, lambda page: self.words(self._web.site_of(page.url)))

    def _new_page(self, site: Site, *, url: str = "") -> Page:
        title, text = self.words(site)
        if not url:
            section, suffix = self._chance.choice(_SECTIONS), self._chance.choice(_SUFFIXES)
            url = f"{site.home}{section}/{self._number(site)}{suffix}"
        validator = self._chance.choice(("etag", "etag", "modified", "none"))
        return Page(url, title, text, validator=validator)

    def words(self, site: Site) -> tuple[str, str]:
        """Return title and text of a page."""
        number, topic = self._number(site), self._chance.choice(_TOPICS)
        title = topic if self._chance.random() < 0.3 else f"{topic} {number}"
        if self.texts is not None and (found := self.texts.any()) is not None:
            return found
        return title, f"all about {topic}, as it is known at {site.host} in version {number}"

    def _number(self, site: Site) -> int:
        site.number += 1
        return 9 + site.number
