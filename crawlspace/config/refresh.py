"""Read when known pages are fetched again: by age, in cycles, by a schedule; and how failed pages and orphans are treated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crawlspace.config.sentences import read
from crawlspace.config.sites import SiteTable
from crawlspace.content_settings import SitemapSection
from crawlspace.cron import Cron, is_cron, read_cron
from crawlspace.errors import SettingError
from crawlspace.frontier.delay_schedule import read_zone
from crawlspace.parsing import duration
from crawlspace.settings import BoundsSection, DeletionsSection, LifecycleSection, OfScrapySection
from crawlspace.state.error_policy import read_error_rules, read_retry_codes
from crawlspace.state.recrawl import RecrawlPolicy
from crawlspace.text import quoted

CYCLE, SCHEDULE, SMART = "CRAWLSPACE_REFRESH_CYCLE", "CRAWLSPACE_REFRESH_SCHEDULE", "CRAWLSPACE_SMART_REFRESH"
_ZONE = "CRAWLSPACE_TIMEZONE"
_NEVER = 1 << 40


@dataclass(frozen=True, slots=True)
class CycleTimes:
    """Times at which cycles begin: so many seconds after each other, or by a cron expression."""

    every_s: int
    cron: Cron | None = None

    def next_after(self, began: float) -> int:
        """Return when the cycle begins that follows one that began then."""
        if self.cron is None:
            return int(began) + self.every_s
        return self.cron.next_after(began) or _NEVER

    @property
    def longest_s(self) -> int:
        """The maximum length of a cycle."""
        return self.every_s if self.cron is None else self.cron.longest_s


@dataclass(frozen=True, slots=True)
class RefreshTimes:
    """Times at which known pages are fetched again. `due_by_age`: smart refresh, each after its own interval."""

    due_by_age: bool
    cycle: CycleTimes | None
    schedule: Cron | None

    @property
    def has_due_times(self) -> bool:
        """Whether pages have due times. In cycles they do, in case a cycle does not begin."""
        return self.due_by_age or self.cycle is not None

    @property
    def is_ever(self) -> bool:
        """Whether fetched pages are ever fetched again automatically."""
        return self.has_due_times or self.schedule is not None


def read_refresh(settings: Mapping[str, object]) -> RefreshTimes:
    """Return when known pages are fetched again. Raises SettingError."""
    zone = read_zone(_ZONE, settings[_ZONE])
    given = read(LifecycleSection, settings)
    value, schedule = given.CRAWLSPACE_REFRESH_CYCLE, given.CRAWLSPACE_REFRESH_SCHEDULE
    cycle = None
    if is_cron(value):
        cycle = CycleTimes(0, read_cron(CYCLE, value, zone=zone))
    elif every_s := round(duration(CYCLE, value, low=0, bare="m")):
        cycle = CycleTimes(every_s)
    cron = None if schedule in (None, "") else read_cron(SCHEDULE, schedule, zone=zone)
    if cron is not None and cycle is not None:
        raise SettingError(
            f"{SCHEDULE} is {quoted(schedule)}, and {CYCLE} is {quoted(value)}: both have all known pages fetched again; keep one of them"
            f' (a cycle may begin at a time of day, too: {CYCLE} = "0 2 * * *")'
        )
    return RefreshTimes(due_by_age=given.CRAWLSPACE_SMART_REFRESH, cycle=cycle, schedule=cron)


def read_policy(settings: Mapping[str, object], refresh: RefreshTimes, sites: SiteTable) -> RecrawlPolicy:
    """Return when pages are fetched again, and when one that fails is tried again or given up. Raises SettingError."""
    given, bounds, deletions = read(LifecycleSection, settings), read(BoundsSection, settings), read(DeletionsSection, settings)
    low, high = round(given.CRAWLSPACE_REFRESH_MIN), round(given.CRAWLSPACE_REFRESH_MAX)
    start = low if given.CRAWLSPACE_START_REFRESH is None else round(given.CRAWLSPACE_START_REFRESH)
    written = read(SitemapSection, settings).CRAWLSPACE_SITEMAP_REFRESH
    of_sitemaps = low if written is None else round(written)
    for name, value in (
        ("CRAWLSPACE_REFRESH_MIN", low),
        ("CRAWLSPACE_START_REFRESH", start),
        ("CRAWLSPACE_SITEMAP_REFRESH", of_sitemaps),
    ):
        if value > high:
            raise SettingError(f"{name} ({value} s) is above CRAWLSPACE_REFRESH_MAX ({high} s); make it smaller")
    return RecrawlPolicy(
        refresh_min_s=low,
        refresh_max_s=high,
        start_refresh_s=start,
        sitemap_refresh_s=of_sitemaps,
        due_by_age=refresh.has_due_times,
        retry_times=bounds.RETRY_TIMES if read(OfScrapySection, settings).RETRY_ENABLED else 0,
        retry_wait_s=given.CRAWLSPACE_RETRY_WAIT,
        max_temporary_errors=given.CRAWLSPACE_MAX_TEMPORARY_ERRORS,
        error_rules=read_error_rules(given.CRAWLSPACE_HTTP_ERRORS),
        retry_codes=read_retry_codes(bounds.RETRY_HTTP_CODES),
        host_fetches=deletions.CRAWLSPACE_HOST_FETCHES,
        host_failed_percent=deletions.CRAWLSPACE_HOST_FAILURES_PERCENT,
        bounds_of=(lambda site: sites.at(site).refresh) if sites.longest_refresh_s else None,
    )


def read_orphans(value: object) -> int | None:
    """Return after how many runs orphans are deleted; None for "keep". Raises SettingError."""
    if value == "keep":
        return None
    what, _, number = value.partition(":") if isinstance(value, str) else ("", "", "")
    if what == "delete" and number.isascii() and number.isdigit() and int(number) >= 1:
        return int(number)
    shown = quoted(value) if isinstance(value, str) else repr(value)
    raise SettingError(f'CRAWLSPACE_ORPHANS is {shown}: write "keep", or "delete:3" to delete them after three runs')
