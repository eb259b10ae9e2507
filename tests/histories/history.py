"""One random history: a web that changes, a configuration that changes, and crawls that end, are stopped or are killed.

Everything follows from the seed, so that a difference can be looked at again: `python -m tests.long.histories --seed N --steps M`
(with PYTHONHASHSEED=0, because the order of a set depends on it). After each crawl that ended by itself, what holds at all times is
checked; after each settled state, the index is compared with the oracle.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from tests.histories import folded, logins, neighbour
from tests.histories.changes import Changes
from tests.histories.collection import HistoryReport
from tests.histories.configuration import DAY, HOUR, Configuration, Rule
from tests.histories.crawled import CrawledCollection, OtherCollection
from tests.histories.drawn import DRAWN, Drawn
from tests.histories.driver import OnServer, SimulatedCrawler
from tests.histories.families import Texts
from tests.histories.fate import Fate
from tests.histories.folded import folded_web
from tests.histories.settings import (
    change_focus,
    choose_focus,
    fit_focus,
    loosened,
    needless,
    reconfigured,
    scheduled,
    with_starts,
)
from tests.histories.sinks import SimulatedSearch
from tests.histories.sitemaps import Sitemaps, few_are_enough
from tests.histories.sites import change_wall, relocate
from tests.histories.team import SimulatedTeam
from tests.histories.web import REFUSALS, Site, Web
from tests.search_server import SearchServer, search_server

_SETTLE_EVERY = 7
_NEAR = 0.2
"""Share of the histories with near duplicates."""
_MOST_ROUNDS = 10
"""Fetches that a page needs after failures: the last ones of its site have to succeed, and errors have to be repeated."""


def run_history(
    seed: int,
    folder: Path,
    *,
    steps: int = 20,
    on_server: OnServer | None = None,
    team: bool = False,
    drawn: Drawn = DRAWN,
    search: bool = False,
    near: bool = False,
) -> HistoryReport:
    """Run a history of so many steps, and the settled states between them; it ends with the first difference.

    `on_server` opens the store where that is on a server, and with `team` several workers crawl. With `search` there is a search server
    that fails beside the embedded index. With `near` there are near duplicates, else in some histories.
    """
    with ExitStack() as stack:
        server = stack.enter_context(search_server()) if search else None
        stack.enter_context(few_are_enough())
        history = History(seed, folder, on_server, team=team, drawn=drawn, server=server, near=near)
        if history._crawler.search is not None:
            stack.callback(history._crawler.search.close)
        return history.run(steps)


class History(CrawledCollection):
    """The steps of a history, all drawn from its seed."""

    def __init__(
        self,
        seed: int,
        folder: Path,
        on_server: OnServer | None,
        *,
        team: bool,
        drawn: Drawn,
        server: SearchServer | None,
        near: bool,
    ) -> None:
        self._nears = random.Random(seed + 5)  # of its own, as those below
        has_near = near or (drawn.near and self._nears.random() < _NEAR)
        self._drawn = drawn = replace(drawn, two=drawn.two and not team and server is None and not has_near)
        chance = self._chance = random.Random(seed)
        sites = [Site("a.example"), Site("b.example"), Site("c.example:8080")][: chance.randint(2, 3)]
        if chance.random() < 0.4:
            sites.append(Site("d.example", start=False))
        self._web = Web(sites, flakiness=random.Random(seed + 1))
        self._changes = Changes(self._web, chance, drawn)
        self._changes.texts = Texts(self._nears) if has_near else None
        self._changes.begin()
        small_brake = chance.random() < 0.3
        self._configuration = Configuration(
            retry_times=chance.choice((0, 1, 2)),
            max_redirects=chance.choice((1, 2, 10)),
            host_fetches=chance.choice((4, 6, 20)),
            max_deletions=chance.choice((1, 2, 4)) if small_brake else 100,
            max_deletions_percent=chance.choice((0, 10)) if small_brake else 10,
            continuous=chance.random() < 0.15,
            near=self._nears.choice((0, 3, 6, 6)) if has_near else 0,
        )
        crawler = SimulatedTeam if team else SimulatedCrawler
        self._crawler = crawler(folder, self._web, chance, in_memory=chance.random() < 0.15, on_server=on_server)
        if chance.random() < 0.5:
            shared = tuple(Rule(True, "domain", site.host.partition(":")[0]) for site in sites if chance.random() < 0.8)
            self._configuration = replace(self._configuration, global_rules=shared)
        self._focus = choose_focus(drawn, chance)
        self._configuration = fit_focus(self._focus, self._configuration, self._web, chance)
        for _ in range(chance.randint(0, 4)):
            self._configuration = reconfigured(self._configuration, self._web, chance)
        if self._focus == "folding":
            self._configuration = folded.fitting(self._configuration)
        if self._focus == "fields" or (drawn.headers and (self._focus == "headers" or chance.random() < 0.2)):
            self._crawler.by_spider = self._changes.by_spider = True
            for site in sites:
                site.bare_304 = chance.random() < 0.3
        likely = {"archive": 1.0, "folding": 0.5}.get(self._focus, 0.15)  # a folded document is moved as it is archived
        if drawn.archive and not team and not self._crawler.in_memory and chance.random() < likely:
            self._crawler.keep_archive()
        self._begin_extracting(seed + 3, is_possible=drawn.extracted and not team and not self._crawler.in_memory)
        if server is not None:
            self._crawler.search = SimulatedSearch(server, seed, self._crawler.name)
            self._crawler.search.is_named = chance.random() < 0.7
        self._times = random.Random(seed + 2)  # of its own: other histories are as they were
        self._is_scheduled = drawn.schedule and self._times.random() < 0.2
        if self._is_scheduled:
            self._configuration = scheduled(self._configuration, self._times)
        self._draw_paths(seed + 4, sites, team=team)
        self._restores = random.Random(seed + 6)  # of its own too
        can_restore = drawn.backups and not team and server is None and not self._crawler.in_memory
        self._backup = self._crawler.backup(self._restores) if can_restore else None
        self._report = HistoryReport(seed)
        self._other: CrawledCollection | None = None
        self._begin()
        if drawn.two and self._focus != "folding" and (self._focus == "two" or chance.random() < 0.08):
            if self._crawler.in_memory:  # nobody could share its index
                self._crawler = SimulatedCrawler(folder / "shared", self._web, chance, in_memory=False)
                self._crawler.by_spider = self._changes.by_spider
            self._other = OtherCollection(self, folder)

    def _draw_paths(self, seed: int, sites: Sequence[Site], *, team: bool) -> None:
        """Draw whether sites move, want cookies, or are behind a log-in."""
        drawn = self._drawn
        self._paths = random.Random(seed)  # of its own too
        is_alone = self._focus not in ("folding", "two")
        self._moves = drawn.moves and self._paths.random() < 0.25 and is_alone
        self._builds_walls = drawn.walls and self._paths.random() < 0.25 and is_alone
        if self._moves and self._paths.random() < 0.5:
            most = self._paths.choice((0, 1, 2))
            self._configuration = replace(self._configuration, max_deletions=most, max_deletions_percent=0)
        self._logs_in = drawn.logins and self._paths.random() < 0.2 and is_alone and not team and not self._crawler.in_memory
        if self._logs_in:
            hosts = [site for site in sites if ":" not in site.host]
            for site in hosts if self._paths.random() < 0.5 else [self._paths.choice(hosts)]:
                logins.put_behind(site, self._paths)
            self._configuration = replace(self._configuration, logins=tuple(one.host for one in sites if one.login is not None))
            self._crawler.by_spider = self._changes.by_spider = True
        if self._builds_walls:
            self._configuration = replace(self._configuration, cookies=self._paths.random() < 0.6)
        if drawn.sitemaps and is_alone and self._paths.random() < 0.4:
            self._web.sitemaps = Sitemaps(self._web, self._paths, lambda: self._crawler.clock.now())

    def run(self, steps: int) -> HistoryReport:
        chance, likely = self._chance, 1.0 if self._focus == "loosened" else 0.2
        for step in range(1, steps + 1):
            if self._backup is not None and self._other is None and self._restores.random() < 0.2:
                self._restore(self._backup, self._restores)
            else:
                self._step()
            if not self._report.differences and (step % _SETTLE_EVERY == 0 or step == steps):
                self._settle()
                self._extract()
                if self._drawn.loosened and not self._report.differences and chance.random() < likely:
                    self._loosen()
            if self._report.differences:
                break
        return self._report

    def _step(self) -> None:
        chance = self._chance
        if self._change_headers() or self._change_near() or self._change_paths():
            return
        if self._crawler.archive is not None and chance.random() < (0.4 if self._focus == "archive" else 0.1):
            self._maintain_archive(self._crawler.archive)
            return
        if self._crawler.search is not None and chance.random() < 0.12:
            self._maintain_search(self._crawler.search)
            return
        if self._focus not in ("", "archive") and chance.random() < 0.5:
            self._dwell()
            return
        what = chance.random()
        if what < 0.38:
            self._say("; ".join(self._changes.change() for _ in range(chance.randint(1, 6))))
        elif what < 0.52:
            self._reconfigure()
            if chance.random() < 0.4:
                self._crawl(Fate(kill_after=chance.randint(2, 80)))
        elif what < 0.62:
            self._say(self._changes.outage())
            self._trouble.unsettled = True
            for _ in range(chance.choice((0, 1, 2))):
                self._crawler.clock.advance(self._configuration.refresh_max + 1)
                self._crawl(Fate())
        elif what < 0.67:
            self._say(self._command())
        elif what < 0.7:
            self._set_clock()
        elif what < 0.72 and self._drawn.dead:
            self._say(self._changes.death())
            self._trouble.unsettled = True
        elif what < 0.76 and self._drawn.starts:
            self._say(self._changes.start_urls())
            self._note_all_elsewhere()
        else:
            due = self._configuration.refresh_max + 1
            self._crawler.clock.advance(chance.choice((1, 600, HOUR, due, due, self._configuration.longest_wait)))
            self._crawl_some()

    def _change_near(self) -> bool:
        """Change texts that are near others, or which of them are, now and then, and crawl; return whether that was done."""
        chance, now = self._nears, self._configuration.near
        if self._changes.texts is None or chance.random() >= 0.35:
            return False
        if chance.random() < 0.25:
            self._reconfigure(replace(self._configuration, near=chance.choice([one for one in (0, 3, 6) if one != now])))
        else:
            self._say("; ".join(self._changes.about_near() for _ in range(chance.randint(1, 4))))
            self._note_all_elsewhere()
        if chance.random() < 0.3:
            self._crawler.clock.advance(self._configuration.refresh_max + 1)
            self._crawl(Fate(kill_after=round(2 ** chance.uniform(3, 10))))
        for _ in range(chance.choice((0, 1, 1, 2))):
            self._crawl_when_due()
        return True

    def _change_paths(self) -> bool:
        """Make a site move, or require a cookie, now and then; return whether that was done."""
        chance = self._paths
        self._crawler.ends_sessions = self._logs_in
        sitemaps = self._web.sitemaps
        if sitemaps is not None and chance.random() < 0.25:
            self._say("; ".join(sitemaps.change() for _ in range(chance.randint(1, 3))))
            for _ in range(chance.choice((0, 1, 1, 2))):
                self._crawl_when_due()
            return True
        if not (self._moves or self._builds_walls or self._logs_in) or chance.random() >= 0.25:
            return False
        if self._logs_in and (not (self._builds_walls or self._moves) or chance.random() < 0.6):
            self._say(logins.change(self._web, chance))
        elif self._moves and (not self._builds_walls or chance.random() < 0.5):
            self._say(relocate(self._web, chance, self._changes.words))
            self._note_all_elsewhere()
        elif chance.random() < 0.3:
            self._reconfigure(replace(self._configuration, cookies=not self._configuration.cookies))
        else:
            self._say(change_wall(self._web, chance))
        self._trouble.unsettled = True
        if chance.random() < 0.3:
            self._crawler.clock.advance(self._configuration.refresh_max + 1)
            self._crawl(Fate(kill_after=round(2 ** chance.uniform(3, 10))))
        for _ in range(chance.choice((0, 1, 1, 2))):
            self._crawl_when_due()
        return True

    def _dwell(self) -> None:
        """Take a step of the history's focus."""
        chance = self._chance
        if self._focus == "clock":
            self._dwell_on_clock()
        elif self._focus in ("refusals", "dead"):
            self._dwell_on_failures()
        elif self._focus == "two":
            self._dwell_on_two()
        else:
            what = chance.random()
            if what < 0.25:
                self._reconfigure(change_focus(self._focus, self._configuration, self._web, chance))
                if self._focus == "folding":
                    self._fold()
            elif what < 0.75:
                self._say("; ".join(self._dwelling() for _ in range(chance.randint(1, 3))))
                self._note_all_elsewhere()
            if chance.random() < 0.7:
                self._crawl_when_due()

    def _fold(self) -> None:
        """Apply changed URL options in crawls that are killed, or while a site fails."""
        if self._chance.random() < 0.3:
            self._say(self._changes.outage())
            self._trouble.unsettled = True
        for _ in range(self._chance.randint(0, 3)):
            self._crawl(Fate(kill_after=round(2 ** self._chance.uniform(3, 10))))

    def _dwelling(self) -> str:
        changes, chance = self._changes, self._chance
        if self._focus == "fields" and chance.random() < 0.3:
            return self._command("approve")
        if self._focus == "decisions":
            return (
                changes.about_equal()
                if chance.random() < 0.4
                else self._command(chance.choice(("approve", "approve", "discard")))
            )
        of_focus = {
            "starts": changes.start_urls,
            "copies": changes.about_copies,
            "headers": changes.headers,
            "fields": changes.links,
            "orphans": changes.links,
            "loosened": changes.links,
            "files": lambda: changes.file() or changes.about_equal(),
            "folding": lambda: folded.spell(self._web, chance),
        }
        return of_focus[self._focus]() if chance.random() < 0.8 else changes.about_equal()

    def _dwell_on_failures(self) -> None:
        what = self._chance.random()
        if what < 0.5:
            self._say(self._changes.outage(REFUSALS) if self._focus == "refusals" else self._changes.death())
            self._trouble.unsettled = True
        elif what < 0.6:
            self._say(self._changes.crowd())
        elif what < 0.7:
            self._say(self._command("approve"))
        for _ in range(self._chance.randint(1, 3)):
            self._crawl_when_due()

    def _dwell_on_two(self) -> None:
        assert self._other is not None
        what, other = self._chance.random(), self._other
        if what < 0.6:
            mine = self._configuration
            rules, rules_beside, shared = neighbour.moved(
                mine.rules, other._configuration.rules, mine.global_rules, self._web, self._chance
            )
            self._reconfigure(replace(mine, rules=rules, global_rules=shared), beside=rules_beside)
        elif what < 0.8:
            self._say(self._changes.about_equal())
        else:
            decided = self._chance.choice((self, other))
            decided._say(decided._command(self._chance.choice(("approve", "approve", "discard"))))
        if self._chance.random() < 0.8:
            self._crawler.clock.advance(self._configuration.refresh_max + 1)
            self._crawl_some(calm=0.7)

    def _crawl_some(self, *, calm: float = 0.0) -> None:
        """Crawl with the collection; where there are two with one or with both, one after the other."""
        which: list[list[CrawledCollection]] = [[self]]
        if self._other is not None:
            which = [[self], [self._other], [self, self._other], [self._other, self]]
        for one in self._chance.choice(which):
            one._crawl(Fate() if calm and self._chance.random() < calm else one._fate())
            if self._report.differences:
                return

    def _dwell_on_clock(self) -> None:
        what = self._chance.random()
        if what < 0.4:
            self._say(self._changes.outage(("busy", "503", "refused", "timeout", "flaky")))
            self._trouble.unsettled = True
        if what < 0.7:
            self._crawler.clock.advance(self._configuration.longest_wait)
            self._crawl(Fate())
            self._set_clock()
        if what > 0.3:
            self._say(self._command("recrawl", most=100))
        self._crawl(Fate())

    def _crawl_when_due(self) -> None:
        self._crawler.clock.advance(self._configuration.refresh_max + 1)
        self._crawl(Fate(stop_after=self._chance.randint(0, 60)) if self._chance.random() < 0.15 else Fate())

    def _set_clock(self) -> None:
        steps = (2 * HOUR, 72 * HOUR, 400 * DAY) if self._drawn.clock else (2 * HOUR, 72 * HOUR)
        by = self._chance.choice(steps)
        if self._drawn.clock and self._chance.random() < 0.5:
            self._crawler.clock.set(self._crawler.clock.now() + by)
            self._say(f"the clock is set forward by {by} s")
            return
        if self._web.sitemaps is not None:
            self._web.sitemaps.note_changes()
        self._crawler.clock.set(self._crawler.clock.now() - by)
        self._trouble.clock_off = 2
        for one in self._all():
            one.note_set_back()
        self._say(f"the clock is set back by {by} s")

    def _reconfigure(self, new: Configuration | None = None, *, beside: tuple[Rule, ...] | None = None) -> None:
        """Change the configuration; `beside` are new rules of the other collection."""
        new = new or reconfigured(self._configuration, self._web, self._chance)
        if self._focus == "folding":
            new = folded.fitting(new)
        if self._is_scheduled and self._times.random() < 0.4:
            new = scheduled(new, self._times)
        self._configure(new)
        if self._other is not None:
            rules = self._other._configuration.rules if beside is None else beside
            self._other._configure(neighbour.configured_beside(new, rules))

    def _settle(self) -> None:
        """End all outages, and crawl until everything has been fetched often enough for the past to be over."""
        for site in self._web.sites.values():
            site.outage = site.outage if site.is_dead else ""
        self._crawler.ends_sessions = False
        if self._web.sitemaps is not None:
            self._web.sitemaps.tell_the_truth()
        if self._crawler.search is not None:
            self._end_faults_if_lacking(self._crawler.search)
        rounds = 3
        if self._trouble.unsettled or any(page.failure or page.status >= 500 or page.locked for page in self._web.pages.values()):
            rounds = _MOST_ROUNDS
        if self._changes.texts is not None:  # nearly the same text on most pages of a site is not trusted at once
            rounds = _MOST_ROUNDS
        self._say(f"all sites are well; {rounds} crawls to settle")
        self._trouble.unsettled = False
        if self._configuration.continuous and self._other is None and self._chance.random() < 0.5:
            rounds = self._settle_in_one(rounds)
        shown: object = None
        for number in range(rounds + self._trouble.clock_off):
            everything_due = not self._trouble.clock_off and (number > 0 or self._other is None)
            self._trouble.clock_off = max(0, self._trouble.clock_off - 1)
            self._crawler.clock.advance(self._configuration.longest_wait)
            if self._chance.random() < 0.15:
                self._crawl(Fate(kill_after=round(2 ** self._chance.uniform(3, 10.5))))
            for one in self._all():
                one._crawl(Fate(), everything_due=everything_due)
                if self._report.differences:
                    return
            before, shown = shown, [one._shows() for one in self._all()]
            if number >= 2 and not self._trouble.clock_off and shown == before and all(one._is_calm() for one in self._all()):
                break  # more of the same would follow
        for one in self._all():
            one._compare()

    def _loosen(self) -> None:
        """Make a check admit more in a settled state: the next crawl must find all that becomes reachable, though nothing else is due."""
        if self._is_unapplied:  # a check is looser than those that the last start has applied
            self._crawl(Fate())
        chance, before, known, starts = self._chance, self._configuration, self._known, list(self._web.starts)
        what = chance.random()
        if what < 0.15:
            for one in self._all():
                one._crawler.spider += 1
            self._say("the spider has changed")
        elif what < 0.35 and self._drawn.starts:
            self._say(self._changes.new_start())
            self._note_all_elsewhere()
        else:
            new = loosened(before, chance)
            if new is None:
                return
            self._reconfigure(new)
        for one in self._all():
            one.note_loosened()
        self._crawler.clock.advance(1)
        requests, lacks_pages = dict(self._web.requests), self._lacks_pages
        if chance.random() < 0.3:
            self._crawl(Fate(kill_after=chance.randint(2, 80)))
        for one in self._all() * (1 if self._other is None else 2):  # what one deletes, the other sends again at its next start
            one._crawl(Fate())
            if self._report.differences:
                return
        asked = {url for url, times in self._web.requests.items() if times > requests.get(url, 0)}
        if not 0.15 <= what < 0.35:
            self._report.differences += [f"LEFT    {url}: a start URL, not requested" for url in self._not_requested(asked)]
        if not (
            lacks_pages
            or self._other
            or before.continuous
            or before.field
            or before.cycle_minutes
            or before.max_depth
            or self._is_scheduled
        ):
            was, now = (folded_web(web, before) for web in (with_starts(self._web, starts), self._web))
            self._report.differences += needless(asked, known, before, was, starts=now.start_urls())
        for one in self._all():
            one._compare()
        self._report.met["loosened check"] += 1

    def _not_requested(self, asked: Collection[str]) -> list[str]:
        """Return the start URLs that a crawl has not requested, though nothing prevented it."""
        oracle = self._oracle()
        starts = [
            url
            for url in folded_web(self._web, self._configuration).start_urls()
            if oracle.verdicts(url) == {None} and url not in asked
        ]
        return [url for url in starts if self._is_well(url) and not self._configuration.bars(url, self._web)]

    def _all(self) -> list[CrawledCollection]:
        return [self] if self._other is None else [self, self._other]

    def _settle_in_one(self, rounds: int) -> int:
        """Run one continuous crawl while the web changes in its first days; return how many crawls are needed after it."""
        if self._trouble.clock_off:
            return rounds
        longest = max(self._configuration.refresh_max, self._configuration.cycle_minutes * 60)
        changes = self._chance.randint(0, 8)
        moments = sorted(self._chance.uniform(0, changes * longest) for _ in range(changes))
        settled_in = self._configuration.robots_ttl + max(rounds, _MOST_ROUNDS if changes else 0) * longest
        self._crawl(Fate(continues_for=changes * longest + settled_in, moments=moments, midway=self._changes.change))
        self._report.met["crawl that went on for days"] += 1
        return 0

    def _note_all_elsewhere(self) -> None:
        for one in self._all():
            one._note_elsewhere()
