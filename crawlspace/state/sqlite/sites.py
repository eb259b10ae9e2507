"""Sites in SQLite: their waits, health, documents, schemes and robots.txt, and unreachable sites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple

import apsw

from crawlspace.state.site_health import NEW_SITE, Health, signatures_of
from crawlspace.state.sqlite.schema import readable
from crawlspace.state.sqlite.transaction import SiteIds
from crawlspace.state.unreachable import ALL_SCHEMES, UnreachableSite
from crawlspace.state.views import KnownSite, RobotsEntry

SCHEME_BITS = {"http": 1, "https": 2}


def scheme_bit(url: str) -> int:
    """Return the bit of the scheme of a URL in normal form."""
    return SCHEME_BITS["https" if url.startswith("https:") else "http"]


def set_wait(db: apsw.Connection, site: int, until: int | None, wait_s: int) -> None:
    db.execute("UPDATE site SET wait_until = ?, wait_s = ? WHERE id = ?", (until, wait_s, site))


def health(db: apsw.Connection, site: str) -> Health:
    row = db.execute("SELECT answers, recent, missing, shown FROM site WHERE site = ?", (site,)).fetchone()
    if row is None:
        return NEW_SITE
    answers, recent, missing, shown = row
    return Health(answers, recent, missing, signatures_of(shown))


def save_health(db: apsw.Connection, ids: SiteIds, by_site: Mapping[str, Health]) -> None:
    rows = [(how.answers, how.recent, how.missing, how.shown_as_text, ids.find_or_add(db, site)) for site, how in by_site.items()]
    db.executemany("UPDATE site SET answers = ?, recent = ?, missing = ?, shown = ? WHERE id = ?", rows)


def known_of_host(db: apsw.Connection, host: str) -> int:
    return int(db.execute("SELECT coalesce(sum(urls), 0) FROM site WHERE host = ?", (host,)).get)


def host_count(db: apsw.Connection, host: str) -> int:
    return int(db.execute("SELECT coalesce(sum(urls - uncounted), 0) FROM site WHERE host = ?", (host,)).get)


def unreachable(db: apsw.Connection) -> list[UnreachableSite]:
    statement = (
        "SELECT site.site, status, since, runs, counted_at, ifnull(unreachable.detail, '') FROM unreachable"
        " JOIN site ON site.id = unreachable.site ORDER BY 1"
    )
    return [UnreachableSite(*row) for row in db.execute(readable(statement, db))]


def set_unreachable(db: apsw.Connection, site: int, row: UnreachableSite | None) -> None:
    if row is None:
        db.execute("DELETE FROM unreachable WHERE site = ?", (site,))
    else:
        values = (site, row.status, row.since, row.runs, row.counted_at, row.detail)
        db.execute(
            "INSERT OR REPLACE INTO unreachable (site, status, since, runs, counted_at, detail) VALUES (?, ?, ?, ?, ?, ?)", values
        )


def end_waits_of_unreachable(db: apsw.Connection) -> None:
    db.execute("UPDATE site SET wait_until = NULL WHERE wait_until IS NOT NULL AND id IN (SELECT site FROM unreachable)")


def documents(db: apsw.Connection, sites: Iterable[str]) -> dict[str, int]:
    return {site: db.execute("SELECT documents FROM site WHERE site = ?", (site,)).get or 0 for site in sites}


def known_sites(db: apsw.Connection) -> list[KnownSite]:
    of_hosts = dict(db.execute("SELECT host, sum(urls) FROM site GROUP BY host"))
    statement = readable("SELECT site, host, documents, answers, recent, missing, site.shown FROM site ORDER BY site", db)
    return [
        KnownSite(site, of_hosts[host], documents, Health(answers, recent, missing, signatures_of(shown or "")))
        for site, host, documents, answers, recent, missing, shown in db.execute(statement)
        if of_hosts[host]
    ]


def schemes(db: apsw.Connection, site: str) -> frozenset[str]:
    bits = db.execute("SELECT schemes FROM site WHERE site = ?", (site,)).get or 0
    return frozenset(scheme for scheme, bit in SCHEME_BITS.items() if bits & bit) or ALL_SCHEMES


def robots(db: apsw.Connection, site: str, scheme: str) -> RobotsEntry | None:
    row = db.execute("SELECT * FROM robots WHERE site = ? AND scheme = ?", (site, scheme)).fetchone()
    return RobotsEntry(*row) if row else None


def save_robots(db: apsw.Connection, entry: RobotsEntry) -> None:
    db.execute("INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?, ?)", astuple(entry))


def forget_robots(db: apsw.Connection, read_after: int) -> None:
    db.execute("DELETE FROM robots WHERE fetched_at > ?", (read_after,))
