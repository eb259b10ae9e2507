"""A simulated web: the present answer of each address.

Made so that what an index must hold follows from the present alone. Every page that answers is linked by the home page of its
site, which answers whenever its site does. Two structures are linked in one place only, and are made and removed whole: chains of
redirects (`/r/`), and paths that lead deeper and deeper (`/deep/`). The home page of the first site links those of all others.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.histories.sitemaps import Sitemaps

HTML, PLAIN, IMAGE, FILE = "text/html", "text/plain", "image/png", "application/pdf"
OUTAGES = (
    "500",
    "502",
    "503",
    "busy",
    "refused",
    "timeout",
    "no host",
    "flaky",
    "mostly",
    "mostly",
    "to itself",
    "to one",
    "to home",
)
"""What a whole site may do for a while: answer with that status, be busy (503 with Retry-After), give no answer, do so now and then,
answer 500 for everything but its home page, or redirect each URL to itself, to one page that is there meanwhile, or to its home page."""
REDIRECTS = ("to one", "to home")


@dataclass(slots=True)
class Page:
    """What is at an address. `status` 200 is a document, 3xx leads to `location`, 4xx and 5xx are errors."""

    url: str
    title: str = ""
    text: str = ""
    links: list[str] = field(default_factory=list)
    status: int = 200
    location: str = ""
    type: str = HTML
    locked: str = ""
    """The bytes of a file that cannot be read: its name is its title, and it has no text."""
    is_forbidden: bool = False
    """It leads to the log-in, whoever is logged in."""
    is_public: bool = False
    """It is shown to everybody."""
    noindex: bool = False
    canonical: str = ""
    header_noindex: bool = False
    """By a header, `X-Robots-Tag`."""
    link_canonical: str = ""
    """A canonical page named by a header, `Link`."""
    validator: str = "etag"
    """How a request can be conditional: "etag", "modified" or "none"."""
    failure: str = ""
    """No answer for this page, though its site answers: "refused" or "timeout"."""
    redirects: int = 0
    linked: bool = True
    """Whether the home page of its site links it; else it is part of a structure."""
    stamp: int = 0
    """Another one is another representation of the same content."""


@dataclass(slots=True)
class Site:
    """A host with its port, if that isn't 80, and what its robots.txt forbids."""

    host: str
    scheme: str = "http"
    start: bool = True
    """Its home page is a start URL; the home page of the others is linked by that of the first site."""
    barred: list[str] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    """What its home page links although there is nothing."""
    outage: str = ""
    bare_304: bool = True
    """Its 304 has no headers, and comes only where the headers of the page would be as before, too; else the validators are of the body."""
    is_dead: bool = False
    """The outage is permanent."""
    is_folded: bool = False
    """Its addresses are folded into those of another host, so that nothing is there."""
    robots_answers: bool = False
    """Its robots.txt does also while the site fails."""
    moved: str = ""
    """Where its home page leads to, since the site has moved."""
    wall: CookieWall | None = None
    door: str | None = None
    """The one of its walls, once it has had any: the second URLs stay where they are."""
    login: Login | None = None
    """What its pages are behind."""
    is_walled: bool = False
    """As a crawler sees it that does not get past its wall."""
    stamp: int = 0
    number: int = 0
    """The next new page's."""

    @property
    def home(self) -> str:
        return f"{self.scheme}://{self.host}/"


@dataclass(slots=True)
class Login:
    """A site that shows its pages to who is logged in."""

    kind: str
    """What others get: "redirect", to the page of the log-in; "401"; "403"; "form", the form at every URL."""
    landing: str = ""
    """The path of the page that is shown after a log-in; one that is not there is forbidden."""
    token: int = 1
    """Of the session that is alive."""


@dataclass(frozen=True, slots=True)
class CookieWall:
    """A site that redirects whoever does not have its cookie: to the same URL, or over a second one and back. Not for its robots.txt."""

    door: str = ""
    """How the second URL begins, to which the path of the page is added; empty where there is none."""
    is_of_page: bool = False
    """Each page wants a cookie of its own."""
    is_set_at_door: bool = True
    """The second URL sets it, and not the page."""
    is_broken: bool = False
    """It ignores the cookie that it sets."""

    def leads(self, url: str, site: Site) -> str:
        """Return where a URL leads to without the cookie."""
        at = f"{site.home}{self.door}"
        if not self.door:
            return url
        if url.startswith(at):
            return f"{site.home}{url.removeprefix(at)}"
        return f"{at}{url.removeprefix(site.home)}"

    def cookie(self, url: str, site: Site) -> str:
        """Return the cookie that a page wants."""
        door = f"{site.home}{self.door}"
        page = self.leads(url, site) if self.door and url.startswith(door) else url
        return page if self.is_of_page else site.host

    def is_door(self, url: str, site: Site) -> bool:
        """Whether this is the second URL of a page."""
        return bool(self.door) and url.startswith(f"{site.home}{self.door}")


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to a request; without one, `failure` is "refused", "timeout" or "no host"."""

    status: int = 0
    failure: str = ""
    title: str = ""
    text: str = ""
    links: tuple[str, ...] = ()
    type: str = HTML
    locked: str = ""
    noindex: bool = False
    canonical: str = ""
    header_noindex: bool = False
    link_canonical: str = ""
    location: str = ""
    etag: str = ""
    last_modified: str = ""
    sets_cookie: str = ""
    session: str = ""
    """One that begins."""
    has_form: bool = False
    """Of the log-in."""
    retry_after_s: float | None = None
    body: str = ""
    """Of a robots.txt."""


class Web:
    """All sites. `flakiness` decides what a site that is "flaky" answers."""

    def __init__(self, sites: list[Site], *, flakiness: random.Random) -> None:
        self.sites = {site.host: site for site in sites}
        self.pages: dict[str, Page] = {}
        self.gone: list[str] = []
        """Addresses where a page was."""
        self.led_to: set[str] = set()
        """Addresses to which a redirect leads or has led, and which are linked as well: by which way they were found first depends on the past."""
        self.linked: set[str] = set()
        """Addresses that a page links or has linked, as its canonical page or otherwise."""
        self.waited_for: set[str] = set()
        """Addresses where nothing is, into which those of pages are folded: they are requested as long as a document waits for it."""
        self.starts: list[str] = []
        """Start URLs beside the home pages."""
        self.nearest: dict[str, int] = {}
        """Links from the nearest start URL, at the time when they were fewest for it or for what links it; of everything that is or was there."""
        self.farthest: dict[str, int] = {}
        """The same at the time when they were most."""
        self.requests: dict[str, int] = {}
        self.most_redirects = 0
        """How many redirects in a row have been followed at most: where one led, a page stays though fewer are followed now."""
        self.lasting = ""
        """A further host whose home page is always a start URL."""
        self.sitemaps: Sitemaps | None = None
        self._flakiness = flakiness

    @property
    def first(self) -> Site:
        return next(iter(self.sites.values()))

    def homed(self) -> list[Site]:
        """Return the sites that have a home page."""
        return [site for site in self.sites.values() if not site.is_folded]

    def site_of(self, url: str) -> Site:
        return self.sites[host_of(url)]

    def pages_of(self, site: Site) -> list[Page]:
        return [page for page in self.pages.values() if host_of(page.url) == site.host]

    def start_urls(self) -> list[str]:
        """Return the URLs where crawls begin."""
        return [site.home for site in self.sites.values() if site.start] + self.starts

    def put(self, page: Page) -> None:
        """Add a page at its address."""
        self.pages[page.url] = page
        if page.url in self.gone:
            self.gone.remove(page.url)
        site = self.site_of(page.url)
        if page.url in site.dead:
            site.dead.remove(page.url)

    def remove(self, url: str, *, leave_link: bool = False) -> None:
        """Remove a page, with or without the links to it."""
        page = self.pages.pop(url)
        self.gone.append(url)
        if leave_link and page.linked:
            self.site_of(url).dead.append(url)

    def note_nearest(self) -> None:
        """Remember what is linked, how near to a start URL addresses have become, and how far from it; after each change."""
        if self.sitemaps is not None:
            self.sitemaps.note_changes()
        for page in self.pages.values():
            self.linked.update(link for link in (*page.links, page.canonical, page.link_canonical) if link)
        now = distances(dict.fromkeys(self.start_urls(), 0), self._leads)
        for url, distance in now.items():
            self.farthest[url] = max(distance, self.farthest.get(url, distance))
        self.nearest = distances({**self.nearest, **dict.fromkeys(self.start_urls(), 0)}, self._leads)

    def _leads(self, url: str, _: int, __: int) -> tuple[str, Iterable[str]]:
        page = self.page(url)
        return ("", ()) if page is None else (page.location, (*page.links, page.canonical, page.link_canonical))

    def home(self, site: Site) -> Page:
        """Return a site's home page, which links all others."""
        if site.is_walled:
            assert site.wall is not None
            return Page(site.home, status=302, location=site.wall.leads(site.home, site))
        if site.moved:
            return Page(site.home, status=301, location=site.moved)
        links = [page.url for page in self.pages_of(site) if page.linked] + site.dead
        links += [f"{site.home}login"] if site.login is not None else []
        if site is self.first:
            links += [other.home for other in self.homed() if other is not site]
        return Page(site.home, f"Home of {site.host}", f"what there is at {site.host}", links, stamp=site.stamp)

    def is_sitemap(self, url: str) -> bool:
        """Return whether there is a sitemap at an address, or was one."""
        return self.sitemaps is not None and url in self.sitemaps.by_url

    def page(self, url: str) -> Page | None:
        """Return the page at an address, whether or not its site answers; None where there is nothing."""
        site = self.sites.get(host_of(url))
        if site is not None and url == site.home and not site.is_folded:
            return self.home(site)
        return self.pages.get(url)

    def answer(
        self,
        url: str,
        *,
        etag: str | None = None,
        last_modified: str | None = None,
        cookies: Collection[str] = (),
        session: str = "",
        logs_in: bool = False,
        is_of_page: bool = True,
    ) -> Answer:
        """Answer a request; with a validator, 304 when what it names is what there is. It counts where it `is_of_page`, and not of a log-in."""
        self.requests[url] = self.requests.get(url, 0) + is_of_page
        site = self.sites.get(host_of(url))
        if site is None:
            return Answer(failure="no host")
        is_robots = url == f"{site.home}robots.txt"
        failed = self._failed(site, url)
        if failed is not None and not (is_robots and site.robots_answers):
            return failed
        if is_robots:
            sitemaps = "" if self.sitemaps is None else self.sitemaps.robots_lines(site)
            return Answer(200, body="User-agent: *\n" + "".join(f"Disallow: {path}\n" for path in site.barred) + sitemaps)
        if site.wall is not None and (bounced := _bounced(site.wall, url, site, cookies)) is not None:
            return bounced
        if site.login is not None and (hidden := self._hidden(site.login, url, site, session, logs_in=logs_in)) is not None:
            return hidden
        page = self.page(url)
        if page is None and self.is_sitemap(url):
            assert self.sitemaps is not None
            return self.sitemaps.answer(url, etag)
        if page is None:
            return Answer(404)
        if page.failure:
            return Answer(failure=page.failure)
        if page.status != 200:
            return Answer(page.status, location=page.location)
        version = _version_of(page, whole=site.bare_304)
        new = Answer(
            200,
            title=page.title,
            text=page.text,
            links=tuple(page.links) + ((page.canonical,) if page.canonical else ()),
            type=page.type,
            locked=page.locked,
            noindex=page.noindex,
            canonical=page.canonical,
            header_noindex=page.header_noindex,
            link_canonical=page.link_canonical,
            etag=f'"{version}"' if page.validator == "etag" else "",
            last_modified=version if page.validator == "modified" else "",
        )
        same = etag == new.etag if etag else last_modified == new.last_modified if last_modified else False
        if not same:
            return new
        return Answer(304, type="") if site.bare_304 else replace(new, status=304, title="", text="", links=())

    def _hidden(self, login: Login, url: str, site: Site, session: str, *, logs_in: bool) -> Answer | None:
        """Return what is shown instead of a page; None where it is shown."""
        page, at, alive = self.page(url), f"{site.home}login", f"{site.host}.{login.token}"
        form = Answer(200, title="Log in", text=f"Please log in to {site.host}", has_form=True)
        if url == at and logs_in:
            return Answer(302, location=f"{site.home}{login.landing}", session=alive)
        if url == at:
            return form
        is_public = page is not None and page.is_public
        if session == alive:
            if url == f"{site.home}{login.landing}" and login.landing:
                return Answer(403)
            return Answer(302, location=at) if page is not None and page.is_forbidden else None
        if is_public:
            return None
        if login.kind == "form":
            return form
        return Answer(302, location=at) if login.kind == "redirect" else Answer(int(login.kind))

    def _redirected(self, site: Site, url: str) -> Answer | None:
        closed = f"{site.home}closed"
        if url == f"{site.home}robots.txt" or (url == site.home and site.outage == "to home"):
            return None
        if url == closed and site.outage == "to one":
            self.waited_for.add(closed)
            return Answer(200, title="closed", text=f"{site.host} is closed", etag='"closed"')
        return Answer(302, location={"to itself": url, "to one": closed, "to home": site.home}[site.outage])

    def _failed(self, site: Site, url: str) -> Answer | None:
        outage = site.outage
        if outage == "mostly":
            outage = "" if url in (site.home, f"{site.home}robots.txt") else "500"
        if outage == "flaky":
            outage = self._flakiness.choice(("", "500", "timeout"))
        if not outage:
            return None
        if outage.isdigit():
            return Answer(int(outage))
        if outage.startswith("to "):
            return self._redirected(site, url)
        return Answer(503, retry_after_s=30.0) if outage == "busy" else Answer(failure=outage)


REFUSALS = ("401", "403", "403", "404", "404", "410", "451")
"""What a whole site may answer, its robots.txt too: a firewall, a password that has expired, a document root that is lost."""
DEATHS = ("refused", "timeout", "no host", "503")


def _bounced(wall: CookieWall, url: str, site: Site, cookies: Collection[str]) -> Answer | None:
    """Return the redirect of a site to whoever does not have its cookie; the second URL redirects always. None for who has it."""
    wanted, is_door = wall.cookie(url, site), wall.is_door(url, site)
    if wanted in cookies and not wall.is_broken and not is_door:
        return None
    sets = is_door == wall.is_set_at_door if wall.door else True
    return Answer(302, location=wall.leads(url, site), sets_cookie=wanted if sets else "")


def fails(page: Page) -> bool:
    """Whether a page fails, and not for good."""
    return bool(page.failure) or page.status >= 500


def host_of(url: str) -> str:
    """Return the host of an address, with its port if the address has one."""
    return url.split("/", 3)[2]


def name_of(url: str) -> str:
    """Return the host of an address, without its port."""
    return host_of(url).partition(":")[0]


def path_of(url: str) -> str:
    """Return the path of an address, with its query."""
    return "/" + url.split("/", 3)[3]


def _version_of(page: Page, *, whole: bool) -> str:
    """Return a version that differs whenever the response does, or its body."""
    sent: tuple[object, ...] = (page.title, page.text, page.locked, page.links, page.noindex, page.canonical, page.stamp)
    if whole:
        sent += (page.type, page.header_noindex, page.link_canonical)
    return blake2b(repr(sent).encode(), digest_size=6).hexdigest()


Leads = Callable[[str, int, int], tuple[str, Iterable[str]]]
"""Where an address leads, by a redirect and by links; given how many links, and then redirects, it is away."""


def distances(starts: Mapping[str, int], leads: Leads) -> dict[str, int]:
    """Return the distance of each address in links from the nearest of some, given theirs; a redirect is no link."""
    found: dict[str, int] = {}
    waiting = [(distance, 0, url) for url, distance in starts.items()]
    heapify(waiting)
    while waiting:
        distance, redirects, url = heappop(waiting)
        if url in found:
            continue
        found[url] = distance
        to, links = leads(url, distance, redirects)
        if to and to not in found:
            heappush(waiting, (distance, redirects + 1, to))
        for link in links:
            if link and link not in found:
                heappush(waiting, (distance + 1, 0, link))
    return found
