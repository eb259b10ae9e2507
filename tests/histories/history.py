"""One random history: a web that changes, a configuration that changes, and crawls that end, are stopped or are killed.

Everything follows from the seed, so that a difference can be looked at again: `python -m benchmarks.histories --seed N --steps M`
(with PYTHONHASHSEED=0, for a set of texts has no order of its own). After each crawl that ended by itself, what holds at all times is
checked; after each settled state, what the oracle says.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from crawlspace.model import Held, State, UrlState
from tests.histories import focus, neighbour
from tests.histories.changes import Changes
from tests.histories.configuration import DAY, ELSEWHERE, HOUR, OUTSIDE, Configuration, Rule
from tests.histories.documents import Indexed
from tests.histories.drawn import DRAWN, Drawn
from tests.histories.driver import AddressGroup, OnServer
from tests.histories.fate import Fate, Run
from tests.histories.oracle import Oracle, Past, Remembered, fails
from tests.histories.reconfigured import reconfigured
from tests.histories.team import TeamMachine
from tests.histories.web import REFUSALS, Site, Web, host_of

_SETTLE_EVERY = 7
_LONGEST_CRAWL_S = HOUR / 2
"""Of a small web, where no site asks for a rest; less than the clock is set back by."""
_MISSING = ("404", "410")
_NO_DOCUMENT = (State.REDIRECTED, State.GONE, State.EXCLUDED)
_LARGE_SITE = 20
"""Pages; a smaller site may lose all at once."""
_MOST_ROUNDS = 10
"""After failures a page needs so many fetches till all is well: its site's last ones have to be good, and what is broken is to be sure of."""


@dataclass(slots=True)
class HistoryReport:
    """What a history did and what was wrong."""

    seed: int
    steps: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    crawls: int = 0
    kills: int = 0
    checks: int = 0
    fetches: int = 0
    met: Counter[str] = field(default_factory=Counter)
    """In how many settled states there was something that seldom is."""

    def __str__(self) -> str:
        lines = [f"seed {self.seed}", *(f"{number:4} {step}" for number, step in enumerate(self.steps, 1)), *self.differences]
        return "\n".join(lines)


def run_history(
    seed: int, folder: Path, *, steps: int = 20, on_server: OnServer | None = None, team: bool = False, drawn: Drawn = DRAWN
) -> HistoryReport:
    """Live through a history of so many steps, and the settled states between them; it ends with the first difference.

    `on_server` opens the store where that is on a server, and with `team` several workers crawl.
    """
    return _History(seed, folder, on_server, team=team, drawn=drawn).run(steps)


@dataclass(slots=True)
class _Trouble:
    """What was wrong of late with the web or the clock, and may still show."""

    unsettled: bool = False
    """A site or a page has failed since the last settled state."""
    clock_off: int = 0
    """After the clock was set back: rounds until everything is due after its usual time again."""


class _History:
    def __init__(self, seed: int, folder: Path, on_server: OnServer | None, *, team: bool, drawn: Drawn) -> None:
        self._drawn = drawn = replace(drawn, two=drawn.two and not team)
        chance = self._chance = random.Random(seed)
        sites = [Site("a.example"), Site("b.example"), Site("c.example:8080")][: chance.randint(2, 3)]
        if chance.random() < 0.4:
            sites.append(Site("d.example", start=False))
        self._web = Web(sites, flakiness=random.Random(seed + 1))
        self._changes = Changes(self._web, chance, drawn)
        self._changes.begin()
        small_brake = chance.random() < 0.3
        self._configuration = Configuration(
            retry_times=chance.choice((0, 1, 2)),
            max_redirects=chance.choice((1, 2, 10)),
            host_fetches=chance.choice((4, 6, 20)),
            max_deletions=chance.choice((1, 2, 4)) if small_brake else 100,
            max_deletions_percent=chance.choice((0, 10)) if small_brake else 10,
            continuous=chance.random() < 0.15,
        )
        address_group = TeamMachine if team else AddressGroup
        self._machine = address_group(folder, self._web, chance, in_memory=chance.random() < 0.15, on_server=on_server)
        if chance.random() < 0.5:
            shared = tuple(Rule(True, "domain", site.host.partition(":")[0]) for site in sites if chance.random() < 0.8)
            self._configuration = replace(self._configuration, global_rules=shared)
        self._focus = focus.chosen(drawn, chance)
        self._configuration = focus.fitting(self._focus, self._configuration, chance)
        for _ in range(chance.randint(0, 4)):
            self._configuration = reconfigured(self._configuration, self._web, chance)
        if self._focus == "fields" or (drawn.headers and (self._focus == "headers" or chance.random() < 0.2)):
            self._machine.by_spider = self._changes.by_spider = True
            for site in sites:
                site.bare_304 = chance.random() < 0.3
        self._told = HistoryReport(seed)
        self._other: _History | None = None
        self._begin()
        if drawn.two and (self._focus == "two" or chance.random() < 0.08):
            if self._machine.in_memory:  # nobody could share its index
                self._machine = AddressGroup(folder / "shared", self._web, chance, in_memory=False)
                self._machine.by_spider = self._changes.by_spider
            self._other = _Beside(self, folder)

    def _begin(self) -> None:
        """Have nothing behind it."""
        self._lost: dict[str, Indexed] = {}
        """Documents of its own that the other collection, which pushed them last, has deleted; as they were."""
        self._has_had: set[str] = set()
        """All that was ever a document of its own."""
        self._answers_for: set[str] = set()
        """What is in the index as its own document, or left there for another collection."""
        self._look()
        self._trouble: _Trouble = _Trouble() if self._other is None else self._other._trouble
        self._regrouping = False
        """What makes pages equal has changed since the last settled state."""
        self._asked_to_wait = False
        """A site has, in the last crawl: by the rule for that it may take an hour."""
        self._has_waited = self._set_back = False
        """A site has asked for it at any time, and the clock was set back since the last crawl: so it may be that time again."""
        self._elsewhere: dict[str, Indexed | None] = {}
        self._index_before: dict[str, Indexed] | None = {}
        """What was in the index after the last crawl, where that came to its end; None else."""

    def run(self, steps: int) -> HistoryReport:
        for step in range(1, steps + 1):
            self._step()
            if not self._told.differences and (step % _SETTLE_EVERY == 0 or step == steps):
                self._settle()
            if self._told.differences:
                break
        return self._told

    # --- steps ----------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        chance = self._chance
        if self._focus and chance.random() < 0.5:
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
                self._machine.clock.advance(self._configuration.refresh_max + 1)
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
            self._machine.clock.advance(chance.choice((1, 600, HOUR, due, due, self._configuration.longest_wait)))
            self._crawl_some()

    def _dwell(self) -> None:
        """A step of what the history dwells on."""
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
                self._reconfigure(focus.changed(self._focus, self._configuration, self._web, chance))
            elif what < 0.75:
                self._say("; ".join(self._dwelling() for _ in range(chance.randint(1, 3))))
                self._note_all_elsewhere()
            if chance.random() < 0.7:
                self._crawl_when_due()

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
            self._machine.clock.advance(self._configuration.refresh_max + 1)
            self._crawl_some(calm=0.7)

    def _crawl_some(self, *, calm: float = 0.0) -> None:
        """Crawl with the collection; where there are two with one or with both, one after the other."""
        which = [[self], [self._other], [self, self._other], [self._other, self]] if self._other is not None else [[self]]
        for one in self._chance.choice(which):
            one._crawl(Fate() if calm and self._chance.random() < calm else one._fate())
            if self._told.differences:
                return

    def _dwell_on_clock(self) -> None:
        what = self._chance.random()
        if what < 0.4:
            self._say(self._changes.outage(("busy", "503", "refused", "timeout", "flaky")))
            self._trouble.unsettled = True
        if what < 0.7:
            self._machine.clock.advance(self._configuration.longest_wait)
            self._crawl(Fate())
            self._set_clock()
        if what > 0.3:
            self._say(self._command("recrawl", most=100))
        self._crawl(Fate())

    def _crawl_when_due(self) -> None:
        self._machine.clock.advance(self._configuration.refresh_max + 1)
        self._crawl(Fate(stop_after=self._chance.randint(0, 60)) if self._chance.random() < 0.15 else Fate())

    def _set_clock(self) -> None:
        steps = (2 * HOUR, 72 * HOUR, 400 * DAY) if self._drawn.clock else (2 * HOUR, 72 * HOUR)
        by = self._chance.choice(steps)
        if self._drawn.clock and self._chance.random() < 0.5:
            self._machine.clock.set(self._machine.clock.now() + by)
            self._say(f"the clock is set forward by {by} s")
            return
        self._machine.clock.set(self._machine.clock.now() - by)
        self._trouble.clock_off = 2
        for one in self._all():
            one.note_set_back()
        self._say(f"the clock is set back by {by} s")

    def note_set_back(self) -> None:
        """The clock was set back: what waits may wait for longer."""
        self._set_back = True

    def _command(self, name: str = "", *, crawled: bool = False, most: int = 4) -> str:
        """A person decides about held deletions, or about some URLs; not about those that another crawler has."""
        name = name or self._chance.choice(("approve", "approve", "discard", "clear-errors", "recrawl", "forget", "forget"))
        if crawled:
            self._look()
        here = [url for url in sorted(self._known) if url not in self._elsewhere]
        chosen = self._chance.sample(here, min(len(here), self._chance.randint(1, most)))
        self._index_before = None  # orders may wait now
        if name == "approve":
            held = {url for url, state in self._known.items() if state.held is not None}
            self._elsewhere.update(dict.fromkeys(held & self._elsewhere.keys()))
        indexed = {url for url in self._elsewhere if url in self._known and self._known[url].indexed}
        said = self._machine.command(name, chosen, crawled=crawled)
        self._look()
        # an equal page may stand for it from now on, before the next start gives both up to another crawler
        self._elsewhere.update({url: None for url in indexed if url in self._known and not self._known[url].indexed})
        if name in ("approve", "discard") and not crawled:
            undecided = [url for url, state in self._known.items() if _is_undecided(state)]
            self._told.differences += [f"HELD    {url}: after all was decided, {_row(self._known[url])}" for url in undecided]
        self._note_unknown()
        return said

    def _reconfigure(self, new: Configuration | None = None, *, beside: tuple[Rule, ...] | None = None) -> None:
        """Have another configuration; `beside` are new rules of the other collection."""
        new = new or reconfigured(self._configuration, self._web, self._chance)
        self._configure(new)
        if self._other is not None:
            rules = self._other._configuration.rules if beside is None else beside
            self._other._configure(neighbour.configured_beside(new, rules))

    def _configure(self, new: Configuration) -> None:
        before, self._configuration = self._configuration, new
        self._note_elsewhere()
        content = before.checksum_title, before.cut_off
        self._regrouping = self._regrouping or content != (self._configuration.checksum_title, self._configuration.cut_off)
        if self._configuration.refresh_max < before.refresh_max:
            self._trouble.clock_off = max(
                1, self._trouble.clock_off
            )  # what was due later is due after the new interval, from the next start on
        changed = [
            f"{name} = {_shown(getattr(self._configuration, name))}"
            for name in Configuration.__slots__
            if getattr(before, name) != getattr(self._configuration, name)
        ]
        self._say(f"settings: {'; '.join(changed) or 'as before'}")

    def _fate(self) -> Fate:
        chance = self._chance
        fate = Fate(index_fails=chance.choice((0.0, 0.0, 0.0, 0.5)), stalls=chance.random() < 0.1)
        what = chance.random()
        if what < 0.6:
            fate.kill_after = round(2 ** chance.uniform(1, 10.5))
        elif what < 0.7:
            fate.stop_after = chance.randint(0, 60)
        midway = chance.random()
        if midway < 0.15:
            fate.midway = self._changes.change
        elif midway < 0.25 and not self._machine.in_memory:
            fate.midway = lambda: self._command(crawled=True)
        return fate

    def _crawl(self, fate: Fate, *, everything_due: bool = False) -> Run:
        before, shared = self._known, self._shared()
        down = {site.host: site.outage for site in self._web.sites.values() if site.outage not in ("", "flaky")}
        run = self._machine.crawl(self._configuration, fate)
        told = self._told
        told.crawls += 1
        told.fetches += run.fetched
        told.kills += run.ended == "killed"
        midway = f", meanwhile {'; '.join(run.changes)}" if run.changes else ""
        told.met.update({f"crawl {run.ended}"})
        if run.held_for_rules:
            told.met.update({"crawl that held a change of the rules"})
        self._say(f"crawl {run.ended}, {run.fetched} fetched{midway}")
        self._look()
        after = self._known
        if self._other is not None:
            self._other._note_lost(shared[0], owned=shared[1] | run.pushed)
        index = self._index()
        told.differences += [f"ERROR   {error}" for error in run.errors]
        if not run.changes:
            told.differences += self._always(before, after, run, down)
        if run.ended not in ("killed", "broken") and not self._counts.outbox:
            told.differences += self._at_rest(after, index)
            if self._drawn.copies and self._index_before is not None and not run.changes and not self._regrouping:
                oracle = Oracle(self._web, self._configuration)
                # what the rules excluded, or what is gone and held, was in no group (spec 4, 10), and comes after those that were
                in_group = {
                    url: has
                    for url, has in self._index_before.items()
                    if url in before and before[url].indexed and not _is_in_no_group(before[url])
                }
                urls = {state.key: url for url, state in after.items()}
                named = {url: urls.get(before[url].canonical or 0, "") for url in in_group}
                told.differences += oracle.displaced(in_group, index, _memory(after), self._past(after), named=named)
            if self._index_before is not None and not run.changes:
                told.differences += self._unplanned(self._index_before, index, run)
                told.differences += self._touched(self._index_before, index, before, after)
            self._index_before = index
        else:
            self._index_before = None
        if everything_due and not told.differences:
            memory = _memory(after)
            told.differences += Oracle(self._web, self._configuration).prompt_differences(index, memory, self._past(after))
        return run

    def _settle(self) -> None:
        """End all outages, and crawl until everything has been fetched often enough for the past to be over."""
        for site in self._web.sites.values():
            site.outage = site.outage if site.is_dead else ""
        rounds = 3
        if self._trouble.unsettled or any(page.failure or page.status >= 500 for page in self._web.pages.values()):
            rounds = _MOST_ROUNDS
        self._say(f"all sites are well; {rounds} crawls to settle")
        self._trouble.unsettled = False
        if self._configuration.continuous and self._other is None and self._chance.random() < 0.5:
            rounds = self._settle_in_one(rounds)
        shown: object = None
        for number in range(rounds + self._trouble.clock_off):
            everything_due = not self._trouble.clock_off and (number > 0 or self._other is None)
            self._trouble.clock_off = max(0, self._trouble.clock_off - 1)
            self._machine.clock.advance(self._configuration.longest_wait)
            if self._chance.random() < 0.15:
                self._crawl(Fate(kill_after=round(2 ** self._chance.uniform(3, 10.5))))
            for one in self._all():
                one._crawl(Fate(), everything_due=everything_due)
                if self._told.differences:
                    return
            before, shown = shown, [one._shows() for one in self._all()]
            if number >= 2 and not self._trouble.clock_off and shown == before and all(one._is_calm() for one in self._all()):
                break  # more of the same would follow
        for one in self._all():
            one._compare()

    def _shows(self) -> tuple[object, ...]:
        """What is remembered and what is in the index, but for when."""
        return {url: _row(state) for url, state in self._known.items()}, self._machine.index()

    def _is_calm(self) -> bool:
        """Nothing waits to be confirmed by another answer, of a page or of its site."""
        fine = not any(map(fails, self._web.pages.values())) and not any(site.outage for site in self._web.sites.values())
        return fine and not any(
            state.held is Held.HOST or state.state is State.FAILED or state.retries or state.errors
            for state in self._known.values()
        )

    def _all(self) -> list[_History]:
        return [self] if self._other is None else [self, self._other]

    def _compare(self) -> None:
        """Ask the oracle, all being settled."""
        self._regrouping = False
        self._told.checks += 1
        with self._machine.store() as store:
            store.check()
        states = self._known
        memory = _memory(states)
        oracle, index, past = Oracle(self._web, self._configuration), self._index(), self._past(states)
        self._told.differences += oracle.differences(index, memory, past)
        met = {f"status {status}" for _, status in memory.values() if status is not None}
        met |= {f"held {kept.why}" for kept in past.kept}
        met |= {"duplicates" for has in index.values() if has.duplicates}
        met |= {"elsewhere, indexed" for url in index if oracle.verdicts(url) == {ELSEWHERE}}
        self._told.met.update(met)

    def _settle_in_one(self, rounds: int) -> int:
        """Have one crawl go on for as long as that takes, the web changing in its first days; return how many crawls are needed after it."""
        if self._trouble.clock_off:
            return rounds
        longest = max(self._configuration.refresh_max, self._configuration.cycle_minutes * 60)
        changes = self._chance.randint(0, 8)
        moments = sorted(self._chance.uniform(0, changes * longest) for _ in range(changes))
        settled_in = self._configuration.robots_ttl + max(rounds, _MOST_ROUNDS if changes else 0) * longest
        self._crawl(Fate(goes_on_for=changes * longest + settled_in, moments=moments, midway=self._changes.change))
        self._told.met["crawl that went on for days"] += 1
        return 0

    def _say(self, step: str) -> None:
        self._told.steps.append(step)

    # --- an index that two collections share -------------------------------------------------------------------------

    def _shared(self) -> tuple[dict[str, Indexed], set[str]]:
        """All that is in the index, and which of it this collection pushed last; nothing where it is nobody else's."""
        if self._other is None:
            return {}, set()
        owned = {url for url, owner in self._machine.owners().items() if owner == self._machine.name}
        return self._machine.index(), owned

    def _index(self) -> dict[str, Indexed]:
        """What is in the index, as far as this collection has to answer for it."""
        index = self._machine.index()
        if self._other is None:
            return index
        own = {url for url, state in self._known.items() if state.indexed}
        self._lost = {url: has for url, has in self._lost.items() if url in own and url not in index}
        owners, others = self._machine.owners(), self._other._answers_for
        mine = {
            url: has
            for url, has in index.items()
            if url in self._answers_for or (url not in others and owners[url] == self._machine.name)
        }
        return {**self._lost, **mine}

    def _note_lost(self, before: Mapping[str, Indexed], *, owned: set[str]) -> None:
        """Note which documents the other collection has deleted because it pushed them last, before this crawl or in it."""
        gone = neighbour.lost_to(before=before, after=self._machine.index(), owned=owned)
        self._lost.update({url: before[url] for url in gone if url in self._known and self._known[url].indexed})
        if self._index_before is not None:  # what the other one has deleted is no deletion of this one's next crawl
            kept = {url: has for url, has in self._index_before.items() if url not in gone or url in self._lost}
            self._index_before = kept

    # --- what must hold -------------------------------------------------------------------------------------------

    def _at_rest(self, states: Mapping[str, UrlState], index: Mapping[str, Indexed]) -> Iterator[str]:
        """After a crawl that came to its end: the index is as the store says, and the store agrees with itself."""
        rows = {url for url, state in states.items() if state.indexed}
        left = self._machine.left_to_others(states.values())
        for url in sorted(rows - index.keys()):
            yield f"MISSING {url}: indexed by the store, not in the index"
        for url in sorted(index.keys() - rows):
            if url not in left:
                yield f"EXTRA   {url}: in the index, not indexed by the store ({_row(states.get(url))})"
        counts = self._counts
        held = sum(1 for url, one in states.items() if one.held is not None and (one.indexed or url in left))
        found = {
            "by state": dict(Counter("leased" if one.lease_until is not None else one.state.label for one in states.values())),
            "by status": dict(Counter(one.status for one in states.values() if one.status is not None)),
            "indexed": len(rows),
            "held": held,
            "left to others": len(left),
            "retrying": sum(1 for one in states.values() if one.retries),
            "outbox": 0,
            "parked": 0,
        }
        told = {
            "by state": dict(counts.by_state),
            "by status": dict(counts.by_status),
            "indexed": counts.indexed,
            "held": counts.held,
            "left to others": counts.left_to_others,
            "retrying": counts.retrying,
            "outbox": counts.outbox,
            "parked": counts.parked,
        }
        for name, number in found.items():
            if told[name] != number:
                yield f"COUNTS  {name}: {told[name]}, must be {number}"
        for url, state in states.items():
            if state.lease_until is not None:
                yield f"LEASED  {url} after the end of the crawl"

    def _unplanned(self, before: Mapping[str, Indexed], index: Mapping[str, Indexed], run: Run) -> Iterator[str]:
        """What a change of the rules takes out of the index was planned, and is no more than a change may."""
        oracle = Oracle(self._web, self._configuration)
        gone = sorted(url for url in before.keys() - index.keys() if oracle.verdicts(url) == {OUTSIDE})
        if len(gone) > run.deletions:
            yield f"PLAN    {len(gone)} documents left the index by a change of the rules, {run.deletions} were planned: {gone}"
        if len(gone) > run.most_by_rules:
            yield f"BRAKE   {len(gone)} deletions by a change of the rules, {run.most_by_rules} may be made: {gone}"

    def _touched(
        self,
        had: Mapping[str, Indexed],
        has: Mapping[str, Indexed],
        before: Mapping[str, UrlState],
        after: Mapping[str, UrlState],
    ) -> Iterator[str]:
        """A document that is held for the rules stays in the index as it is, with the duplicates that are noted on it."""
        held = [url for url, was in before.items() if was.held is Held.RULES and url in after and after[url].held is Held.RULES]
        others = self._other._has_had if self._other is not None else ()
        for url in held:
            if url in had and url not in others and had[url] != has.get(url):
                yield f"TOUCHED {url}, held for the rules: {has.get(url)}, was {had[url]}"

    def _always(
        self, before: Mapping[str, UrlState], after: Mapping[str, UrlState], run: Run, down: Mapping[str, str]
    ) -> Iterator[str]:
        """After any crawl: a site that is down loses nothing for that, and no run deletes more than it may."""
        oracle = Oracle(self._web, self._configuration)
        lost: list[str] = []
        failing: Counter[str] = Counter()
        missing: Counter[str] = Counter()
        there = {state.checksum for state in after.values() if state.indexed}
        for url, was in before.items():
            now = after.get(url)
            if was.checksum is None or (now is not None and now.checksum is not None) or oracle.verdicts(url) != {None}:
                continue
            host = self._web.site_of(url).host
            if host in down and was.held is None and not self._configuration.bars(url, self._web):
                failing[host] += 1
                if down[host] in _MISSING:
                    missing[host] += 1
                elif down[host] != "mostly":
                    yield f"LOST    {url}, though its site was down: {_row(was)}, now {_row(now)}"
            if was.indexed and not (now is not None and now.state in _NO_DOCUMENT and was.checksum in there):
                lost.append(url)  # a better address took its place before its own deletion could be held: that is no deletion
        for host, number in missing.items():
            documents = sum(1 for url, was in before.items() if host_of(url) == host and was.checksum is not None)
            if documents > _LARGE_SITE and number > self._configuration.host_fetches // 2:
                yield f"LOST    {number} documents of {host}, which has none of its {documents} pages any more"
        for host, number in failing.items():
            if down[host] in _MISSING:
                continue
            if number > self._configuration.host_fetches // 2 + 1:
                yield f"LOST    {number} documents of {host}, which mostly fails"
        if run.ended == "finished" and not self._configuration.continuous:
            yield from self._left_behind(after, run, oracle)
        if run.lasted < DAY and run.ended != "killed" and len(lost) > run.most_deletions:
            yield f"BRAKE   {len(lost)} deletions, {run.most_deletions} may be made: {lost}"

    def _left_behind(self, after: Mapping[str, UrlState], run: Run, oracle: Oracle) -> Iterator[str]:
        """After a crawl that ended by itself: nothing was left that could be fetched, and nothing waited for that could not come."""
        if self._drawn.starts:
            for url, state in after.items():
                if state.state is State.PENDING and oracle.verdicts(url) == {None} and self._is_well(url):
                    yield f"LEFT    {url}: pending after the end of the crawl"
        longest_s = _LONGEST_CRAWL_S + (2 * HOUR if self._asked_to_wait or (self._has_waited and self._set_back) else 0)
        self._has_waited, self._set_back = self._has_waited or self._asked_to_wait, False
        self._asked_to_wait = any(site.outage == "busy" for site in self._web.sites.values())
        if self._drawn.clock and run.lasted - run.stalled > longest_s:
            yield f"WAITED  {run.lasted} s, though there was nothing to wait for so long"

    def _is_well(self, url: str) -> bool:
        site = self._web.sites.get(host_of(url))
        return site is not None and not site.outage and not any(map(fails, self._web.pages_of(site)))

    # --- what the present doesn't tell ----------------------------------------------------------------------------

    def _past(self, states: Mapping[str, UrlState]) -> Past:
        kept = [
            self._machine.kept(state, self._configuration)
            for state in states.values()
            if state.held is not None and state.checksum is not None
        ]
        dead = {site.host for site in self._web.sites.values() if site.is_dead}
        if dead:
            there = {one.url for one in kept}
            kept += [
                replace(self._machine.kept(state, self._configuration), why="dead")
                for url, state in states.items()
                if state.checksum is not None and url not in there and host_of(url) in dead
            ]
        left = {url for url, state in states.items() if _is_left(state) or (host_of(url) in dead and _is_awaited(state))}
        if self._other is None:
            return Past(kept, self._elsewhere, left)
        changed = self._other._has_had  # by the other collection, whose document it was after this one's, or deleted by it
        elsewhere = {url: None if url in changed else was for url, was in self._elsewhere.items()}
        of_other = {url for url, owner in self._machine.owners().items() if owner != self._machine.name} | self._lost.keys()
        held_by_other = {url for url in of_other if url in self._other._known and self._other._known[url].held is Held.RULES}
        return Past(kept, elsewhere, left, of_other, held_by_other)

    def _note_elsewhere(self) -> None:
        """Remember what is indexed of addresses that another crawler is to take over from now on."""
        oracle = Oracle(self._web, self._configuration)
        index = self._index_before
        known = {*(index or {}), *self._known}
        there = {url for url in {*known, *self._elsewhere} if self._is_of_web(url) and ELSEWHERE in oracle.verdicts(url)}
        for url in [url for url in self._elsewhere if url not in there]:
            del self._elsewhere[url]
        for url in sorted(there - self._elsewhere.keys()):
            if index is None or oracle.verdicts(url) != {ELSEWHERE}:
                self._elsewhere[url] = None
            elif url in index:
                self._elsewhere[url] = index[url]

    def _note_all_elsewhere(self) -> None:
        for one in self._all():
            one._note_elsewhere()

    def _note_unknown(self) -> None:
        """A command may have had another of equal pages pushed, before the next start gives it up to another crawler."""
        oracle = Oracle(self._web, self._configuration)
        for url in self._known:
            if url not in self._elsewhere and self._is_of_web(url) and ELSEWHERE in oracle.verdicts(url):
                self._elsewhere[url] = None

    def _is_of_web(self, url: str) -> bool:
        return any(url.startswith(site.home) for site in self._web.sites.values())

    def _look(self) -> None:
        """See what is remembered now."""
        with self._machine.store() as store:
            self._known = {state.url: state for state in store.urls()}
            self._counts = store.counts()
        if self._other is not None:
            left = self._machine.left_to_others(self._known.values())
            self._answers_for = left | {url for url, state in self._known.items() if state.indexed}
            self._has_had |= self._answers_for


class _Beside(_History):
    """The second collection of a history: it takes no steps of its own."""

    def __init__(self, first: _History, folder: Path) -> None:
        self._drawn, self._focus, self._chance = first._drawn, first._focus, first._chance
        self._web, self._changes, self._told = first._web, first._changes, first._told
        self._web.lasting = neighbour.own_host(self._web)
        rules = neighbour.first_rules(self._web, self._chance)
        self._configuration = neighbour.configured_beside(first._configuration, rules)
        address_group = first._machine
        self._machine = address_group.beside(neighbour.NAME)
        self._other = first
        self._begin()

    def _say(self, step: str) -> None:
        super()._say(f"[{self._machine.name}] {step}")


def _is_awaited(state: UrlState | None) -> bool:
    """Another crawler had it; it is in the space again, and has given no answer yet that is its own and not its host's."""
    return state is not None and (state.state in (State.PENDING, State.FAILED) or 500 <= (state.status or 0) < 700)


def _is_undecided(state: UrlState) -> bool:
    """Whether a document still waits for a decision: one that is in the index, or whose page is known to be no document any more."""
    if state.held is None:
        return False
    apart = state.held is Held.RULES or (state.held is Held.MANY and state.state in _NO_DOCUMENT)
    return state.indexed or (apart and (state.checksum is not None or _is_left(state)))


def _is_left(state: UrlState | None) -> bool:
    """What was left in the index for another crawler is to be deleted, and that is held."""
    return state is not None and state.checksum is None and state.held in (Held.RULES, Held.MANY)


def _is_in_no_group(state: UrlState) -> bool:
    return state.held is not None and state.checksum is not None and state.checksum.startswith(b"held")


def _memory(states: Mapping[str, UrlState]) -> dict[str, Remembered]:
    return {url: (state.state.label, state.status) for url, state in states.items()}


def _row(state: UrlState | None) -> str:
    if state is None:
        return "forgotten"
    held = f", held {state.held.label}" if state.held is not None else ""
    pending = ", pending" if state.state is State.PENDING else ""
    return f"{state.state.label} {state.status}{held}{pending}, indexed {state.indexed}, checksum {state.checksum is not None}"


def _shown(value: object) -> str:
    return f"({', '.join(map(str, value))})" if isinstance(value, tuple) else str(value)
