"""What must come of every page of the intranet, worked out by hand from the pages and the rules.

A table a question. URLs are written with the default ports; `Ports.rewrite` moves them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

HOME = "http://127.0.0.1:8941"
PRODUCTS = "http://127.0.0.2:8942"
SUPPORT = "http://localhost:8943"


@dataclass(frozen=True, slots=True)
class Expected:
    """What a crawl of one collection must lead to."""

    indexed: frozenset[str]
    """Documents in the index."""
    duplicates: dict[str, str] = field(default_factory=dict)
    """URL to the one that stands for it in the index."""
    known: dict[str, frozenset[int | None]] = field(default_factory=dict)
    """Fetched or tried, and not a document: the status codes it may have ended with; None where it was never asked for."""
    refused: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """Never let in: the reason, and what `scrapy explain` must be told to see it as the crawl did."""
    unseen: frozenset[str] = frozenset()
    """Linked, and yet never to be heard of."""


def _below(site: str, *paths: str) -> frozenset[str]:
    return frozenset(site + path for path in paths)


def _status(site: str, rows: dict[str, int]) -> dict[str, frozenset[int | None]]:
    return {site + path: frozenset({status}) for path, status in rows.items()}


DEMO = Expected(
    indexed=_below(
        HOME,
        "/",
        "/handbook/",
        "/handbook/welcome.html",
        "/handbook/hours.html",
        "/handbook/arbeitszeit.html",
        "/handbook/conges.html",
        "/handbook/expenses.html",
        "/handbook/security.html",
        "/handbook/holidays.html",
        "/handbook/parental-leave.html",
        "/handbook/print/overview.html",
        "/handbook/travel.html",  # through base href, and two redirects
        "/people/",
        "/people/anna-lindqvist.html",
        "/people/marek-dvorak.html",
        "/people/chart.html",
        "/people/board.html",  # through an image map
        "/people/alumni.html",  # through a page that is noindex
        "/news/",
        "/news/page-2.html",  # through link rel=next
        "/news/page-3.html",
        "/news/anniversary.html",
        "/news/press-clippings.html",  # nofollow forbids its links, not itself
        "/news/spring-cleaning.html",  # through a 200 with a Location
        "/drafts/published/vision.html",  # allowed before its folder is forbidden
        "/old-home.html",
        "/page-of-the-month.html",  # through a meta refresh
        "/legacy/",
        "/legacy/menu.html",  # frames
        "/legacy/main.html",
        "/legacy/catalogue.html",
        "/archive/1998/q1/january/week2/memo.html",
    )
    | _below(
        PRODUCTS,
        "/",
        "/pumps/",
        "/pumps/p100.html",
        "/pumps/p200.html",
        "/pumps/p300.html",
        "/valves/",
        "/valves/v7-ball-valve.html",
        "/release-notes",
        "/catalogue",  # has no Content-Type; its bytes say HTML
        "/quotes",  # 429 first
    )
    | _below(
        SUPPORT,
        "/",
        "/faq.html",
        "/status.html",
        "/widget.html",  # an iframe
        "/tickets/42",
        "/wiki/",
        "/wiki/Pump_maintenance",
        "/wiki/%C3%9Cberdruck",
        "/wiki/tips%20and%20tricks",
        "/wiki/~anna",
        "/wiki/more/",
        "/wiki/more/more/",
        "/wiki/more/more/more/",
        "/wiki/history/1",
        "/wiki/history/2",
        "/wiki/history/3",
        "/wiki/history/4",
        "/wiki/history/5",
    ),
    duplicates={
        f"{HOME}/handbook/security.html?print=1": f"{HOME}/handbook/security.html",  # equally long; linked later
        f"{PRODUCTS}/pumps/p100-print.html": f"{PRODUCTS}/pumps/p100.html",  # the shorter path stands for both
        f"{PRODUCTS}/v7": f"{PRODUCTS}/valves/v7-ball-valve.html",  # the canonical one does, though it is longer
    },
    known=_status(
        HOME,
        {
            "/go/travel": 302,
            "/go/business-travel": 301,
            "/go/minutes": 302,
            "/go/broken": 690,
            "/go/cleaning": 3020,
            "/go/floor/1": 302,
            "/go/floor/2": 302,
            "/go/floor/3": 302,
            "/go/floor/4": 302,
            "/loop/a": 302,
            "/loop/b": 691,  # it leads back to /loop/a, which leads here
            "/payroll/june.html": 740,
            "/people/directory-old.html": 2004,
            "/news/embargo.html": 2004,
        },
    )
    | _status(
        PRODUCTS,
        {
            "/pumps/P300": 308,
            "/pumps/p60.html": 404,
            "/pumps/p50.html": 410,
            "/configurator": 500,
            "/stock": 503,
            "/orders": 503,
            "/photo": 780,
            "/price-list": 780,
            "/firmware": 780,
        },
    )
    | {
        "http://127.0.0.9:8942/": frozenset({760}),
        f"{PRODUCTS}/fax": frozenset({611, 612}),  # the connection is reset
        "http://127.0.0.2:8944/": frozenset({612}),  # the site cannot be reached, and waits for the next start
        "http://time-clock.invalid/": frozenset({680, 681}),  # as sure as the machine's name service is
    },
    refused={
        f"{HOME}/drafts/strategy.html": ("prefix", ()),
        f"{HOME}/people/anna-lindqvist/private/notes.html": ("prefix", ()),
        f"{HOME}/board-minutes/may.html": ("prefix", ()),
        "http://www.partner.example/offers.html": ("domain", ()),
        "https://www.example.org/": ("domain", ()),
        "http://127.0.0.1:8942/": ("domain", ()),
        "http://LOCALHOST:8943/wiki/shouting": ("domain", ()),
        "http://127.0.0.9:8942/": ("address", ("--address", "127.0.0.9")),
        "ftp://127.0.0.1/pub/drawings/": ("scheme", ()),
        "http://guest:guest@127.0.0.1:8941/guestbook.html": ("credentials", ()),
        "http://[fe80::bad/": ("malformed", ()),
        f"{HOME}/images/site-plan.png": ("extension", ()),
        f"{HOME}/downloads/vpn-client.exe": ("extension", ()),
        f"{HOME}/archive/1998/q1/january/week2/monday/memo.html": ("path_depth", ()),
        f"{SUPPORT}/wiki/more/more/more/more/": ("repeated_segments", ()),
        f"{SUPPORT}/wiki/history/6": ("link_depth", ("--depth", "7")),
        (
            f"{HOME}/search?q=pump&in=everything&sort=newest&explain=please-show-me-every-document-that-mentions-a-pump-"
            "or-a-valve-or-a-seal-or-a-gasket-or-a-bearing-or-an-impeller-or-a-coupling-or-a-motor"
        ): ("url_length", ()),
        f"{PRODUCTS}/price-list": ("mime_type", ("--mime", "application/zip")),
    },
    unseen=frozenset(
        {
            f"{HOME}/news/sponsor-offer.html",  # rel=nofollow
            f"{HOME}/news/clipping-2019.html",  # on a page that is nofollow
            f"{HOME}/go/floor/5",  # one redirect too many
            f"{HOME}/links.html",  # nobody links it
            f"{SUPPORT}/wiki/shouting",
        }
    ),
)

HANDBOOK = Expected(
    indexed=_below(
        HOME,
        "/handbook/",
        "/handbook/welcome.html",
        "/handbook/hours.html",
        "/handbook/expenses.html",
        "/handbook/security.html",
        "/handbook/holidays.html",
    ),
    refused={
        f"{HOME}/": ("folder", ()),
        f"{PRODUCTS}/": ("offsite", ()),
        f"{HOME}/handbook/security.html?print=1": ("query_string", ()),
        f"{HOME}/handbook/parental-leave.html": ("urls_per_host", ()),
    },
)

OPEN = Expected(
    indexed=_below(HOME, "/links.html", "/", "/handbook/", "/people/", "/news/"),
    known={
        f"{PRODUCTS}/": frozenset({760}),
        f"{PRODUCTS}/pumps/": frozenset({760}),
        f"{SUPPORT}/": frozenset({760}),
        f"{SUPPORT}/faq.html": frozenset({760}),
        "http://169.254.169.254/latest/meta-data/": frozenset({760}),
    },
    refused={
        f"{PRODUCTS}/": ("private_address", ("--address", "127.0.0.2")),
        "http://169.254.169.254/latest/meta-data/": ("private_address", ("--address", "169.254.169.254")),
    },
)

COLLECTIONS = {"demo": DEMO, "handbook": HANDBOOK, "open": OPEN}
