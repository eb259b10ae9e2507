"""Kinds of changes that histories draw; each can be switched off. Changes of web and settings, outages and kills are always drawn."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Drawn:
    """Kinds of changes that are drawn."""

    starts: bool = True
    """Start URLs that come and go."""
    clock: bool = True
    """A clock that is set forward as well as back, and crawls that must not wait for that."""

    decisions: bool = True
    """Deletions that are held for the rules again and again, and what a person decides about them."""

    refusals: bool = True
    """Sites that answer 401, 403 or 404 to everything."""
    dead: bool = True
    """Hosts that are dead for good."""
    copies: bool = True
    """Copies of pages on another host, which must not displace them."""

    headers: bool = True
    """Headers that decide about a page, on answers with a body and without."""

    fields: bool = True
    """Fields that rules add and that are inherited along links."""

    orphans: bool = True
    """Pages that nothing leads to any more, links that come and go, and limits that depend on them."""

    loosened: bool = True
    """Checks that admit more, after which the very next crawl must find what comes into reach."""

    two: bool = True
    """A second collection with the same index, hosts and pages that go from one to the other, and global rules that change."""

    folding: bool = True
    """URL options that fold several spellings of an address into one, and pages that are there under several."""

    archive: bool = True
    """An archive of what is fetched, which is compacted, and from which a lost index is rebuilt."""

    extracted: bool = True
    """Documents that are extracted again from the archive, after headers of pages have changed."""

    files: bool = True
    """Files that cannot be read, and those that cannot be any more."""

    schedule: bool = True
    """Smart refresh that is turned off and on, and schedules that have everything fetched again."""

    walls: bool = True
    """Sites that want a cookie, which is kept or not."""

    moves: bool = True
    """Sites that move page by page."""

    logins: bool = True
    """Sites behind a form, of which some pages are forbidden."""

    sitemaps: bool = True
    """Sitemaps that come, go, move, name each other, and lie about when pages were changed."""

    near: bool = True
    """Long texts that are nearly the same, and a setting that makes such pages duplicates, or not."""

    backups: bool = False
    """Backups, also during a crawl, that are restored after state, archive and perhaps the index were lost."""

    @staticmethod
    def named(names: str) -> Drawn:
        """Return those named, separated by commas; "all" and "none" are names too."""
        known = [field.name for field in fields(Drawn)]
        wanted = known if names == "all" else [] if names == "none" else names.split(",")
        if unknown := set(wanted) - set(known):
            raise ValueError(f"{', '.join(sorted(unknown))}: there are {', '.join(known)}")
        return Drawn(**{name: name in wanted for name in known})


DRAWN = Drawn()
