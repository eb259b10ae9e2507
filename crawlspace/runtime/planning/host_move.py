"""Move a host from one collection to another: what changes in the files of both, and the proof that nothing else does.

The edited files are tried in temporary folders before any is written: all known URLs of the host must be admitted by the other collection
as they are by this one, and `scrapy plan` must find no other host affected in either.
"""

from __future__ import annotations

from collections.abc import Collection as AnyOf
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

from crawlspace.admin.rule_files import (
    CRAWL_RULES,
    START_URLS,
    RuleFile,
    RuleText,
    load_edited,
    read_rule_file,
    rule_files,
    with_files,
)
from crawlspace.admin.rule_history import save_rule_file
from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.config.files import GLOBAL_RULES
from crawlspace.crawl.rule_changes.survey import DUE, JUDGED
from crawlspace.crawl.startup import build_global_space, build_space
from crawlspace.errors import ConfigError, UsageError
from crawlspace.rules.crawl_rules import DomainRule, RuleAction
from crawlspace.runtime.planning.rule_plan import RulePlan, rule_plan
from crawlspace.runtime.session.paths import CollectionPaths
from crawlspace.text import counted, quoted
from crawlspace.urls import parse

_MOST_SHOWN = 5
_AGAIN = (DUE, JUDGED)
_USER = "scrapy move-host"
"""Who has replaced the old versions of the files."""


@dataclass(frozen=True, slots=True)
class EditedFile:
    """A file that is to be replaced. `shown` is its name with its collection."""

    shown: str
    file: RuleFile
    disk: RuleText
    text: str

    @property
    def data(self) -> bytes:
        return self.disk.encoded(self.text)


@dataclass(slots=True)
class HostMove:
    """A move that can be made: the files in the order in which they are written, and what the next starts will do."""

    files: list[EditedFile]
    source_plan: RulePlan
    target_plan: RulePlan
    known: int
    """URLs of the host that the source knows, and has in its crawl space."""
    has_global_rules: bool
    remarks: list[str] = field(default_factory=list)
    """What has to be moved by hand."""


def plan_move(host: str, source: tuple[CollectionPaths, Collection], target: tuple[CollectionPaths, Collection]) -> HostMove:
    """Return the move of a host, tried and not made. Raises UsageError where there is nothing to be moved, ConfigError where it cannot be."""
    (from_paths, before), (to_paths, after) = source, target
    if before.folder == after.folder:
        raise UsageError("the two collections are one and the same: name the one that has the host, and the one that gets it")
    starts = [start for start in before.start_urls if start.url.host == host]
    is_known = _known(from_paths, host)
    if not (starts or is_known or any(rule.host.lower() == host for rule in before.rules.domain)):
        raise UsageError(
            f"{before.name} has nothing of {quoted(host)}: no start URL, no domain rule with this name, and no known URL"
        )
    if len(starts) == len(before.start_urls):
        raise ConfigError(
            f"all start URLs of {before.name} are of {host}, so that nothing would be left of it: rename the collection instead"
        )
    files = list(_edited(host, before, from_paths, after, to_paths))
    of_source = {one.file.name: one.data for one in files if one.shown.startswith(f"{before.name}/")}
    of_target = {one.file.name: one.data for one in files if one.shown.startswith(f"{after.name}/")}
    for of_global in (one for one in files if one.file.name == GLOBAL_RULES):
        of_source[GLOBAL_RULES] = of_target[GLOBAL_RULES] = of_global.data
    with (
        with_files(before.folder, from_paths.settings, of_source) as source_files,
        with_files(after.folder, to_paths.settings, of_target) as target_files,
    ):
        moved_from, moved_to = load_edited(source_files), load_edited(target_files)
        admitted = _refuse_lost(host, before, moved_from, moved_to, is_known)
        source_plan, target_plan = rule_plan(from_paths, moved_from), rule_plan(to_paths, moved_to)
    for name, found in ((before.name, source_plan), (after.name, target_plan)):
        _refuse_others(host, name, found)
    return HostMove(
        files,
        source_plan,
        target_plan,
        admitted,
        before.global_rules is not None,
        list(_by_hand(host, before, from_paths)),
    )


def make_move(move: HostMove, *, clock: Clock) -> None:
    """Write the files, those of the target first: if it is interrupted, the same command goes on. Raises ConfigError, RuleFileChanged."""
    for one in move.files:
        save_rule_file(one.file, one.data, seen=one.disk.digest, user=_USER, clock=clock)


def _known(paths: CollectionPaths, host: str) -> list[str]:
    """Return the known URLs of a host."""
    with paths.store.reading() as opened:
        return [] if opened is None else [state.url for state in opened.store.urls(host=host)]


# --- the edited files ------------------------------------------------------------------------------------------------


def _edited(
    host: str, before: Collection, from_paths: CollectionPaths, after: Collection, to_paths: CollectionPaths
) -> Iterator[EditedFile]:
    """Yield the files that change. What is there already, after a move that was interrupted, is not added again."""
    from_files, to_files = rule_files(before.folder, from_paths.settings), rule_files(after.folder, to_paths.settings)
    rules, starts = _Lines.of(from_files[CRAWL_RULES]), _Lines.of(from_files[START_URLS])
    allowed = {rule.ref.line for rule in before.rules.domain if _names(rule, host, RuleAction.ALLOW)}
    of_host = {rule.ref.line for rule in before.rules.prefix if rule.host.lower() == host}
    own = {start.where for start in before.start_urls if start.url.host == host}
    of_starts = {number for number in starts.numbers if f"{START_URLS}:{number}" in own}
    if len(of_starts) < len(own):
        elsewhere = sorted(own - {f"{START_URLS}:{number}" for number in of_starts})
        raise ConfigError(
            f"start URLs of {host} are not in {START_URLS} of {before.name} but at {', '.join(elsewhere)}: move these by hand, then run"
            " the command again"
        )
    new_starts = _Lines.of(to_files[START_URLS])
    new_starts.append(starts.only(of_starts) or [f"http://{host}/"])
    yield from new_starts.edited(after.name)
    new_rules = _Lines.of(to_files[CRAWL_RULES])
    new_rules.drop({rule.ref.line for rule in after.rules.domain if _names(rule, host, RuleAction.FORBID)})
    is_there = any(_names(rule, host, RuleAction.ALLOW) for rule in after.rules.domain)
    new_rules.put_first([*([] if is_there else [f"allow domain {host}"]), *rules.only(of_host)])
    yield from new_rules.edited(after.name)
    of_all = build_global_space(before)
    if of_all is not None and of_all.allows(parse(f"http://{host}/")) is None:
        global_rules = _Lines.of(from_files[GLOBAL_RULES])
        global_rules.put_first([f"allow domain {host}"])
        yield from global_rules.edited("")
    rules.drop(allowed | of_host)
    rules.put_first([f"forbid domain {host}"])
    yield from rules.edited(before.name)
    starts.drop(of_starts)
    yield from starts.edited(before.name)


def _names(rule: DomainRule, host: str, action: RuleAction) -> bool:
    return rule.host.lower() == host and rule.port is None and rule.action is action


class _Lines:
    """The lines of a file that is edited."""

    def __init__(self, file: RuleFile, disk: RuleText) -> None:
        self._file, self._disk = file, disk
        self._lines: list[str | None] = list(disk.text.splitlines())
        self._first: list[str] = []
        self._last: list[str] = []

    @classmethod
    def of(cls, file: RuleFile) -> Self:
        """Read a file. Raises ConfigError for one that cannot be edited."""
        disk = read_rule_file(file)
        if disk.fault:
            raise ConfigError(disk.fault)
        return cls(file, disk)

    @property
    def numbers(self) -> range:
        return range(1, len(self._lines) + 1)

    def only(self, numbers: AnyOf[int]) -> list[str]:
        return [line for number, line in enumerate(self._lines, 1) if number in numbers and line is not None]

    def drop(self, numbers: AnyOf[int]) -> None:
        self._lines = [None if number in numbers else line for number, line in enumerate(self._lines, 1)]

    def put_first(self, lines: Iterable[str]) -> None:
        """Put lines before all rules, where they decide before others, unless they are there."""
        self._first += [line for line in lines if line not in self._lines]

    def append(self, lines: Iterable[str]) -> None:
        self._last += [line for line in lines if line not in self._lines]

    def edited(self, collection: str) -> Iterator[EditedFile]:
        """Yield the file if it has changed; `collection` is empty for one that several share."""
        kept = [line for line in self._lines if line is not None]
        at = next((n for n, line in enumerate(kept) if line.strip() and not line.lstrip().startswith("#")), len(kept))
        text = "".join(f"{line}\n" for line in [*kept[:at], *self._first, *kept[at:], *self._last])
        if [*kept, *self._first, *self._last] != self._disk.text.splitlines():
            shown = f"{collection}/{self._file.shown}" if collection else self._file.shown
            yield EditedFile(shown, self._file, self._disk, text)


# --- the proof -------------------------------------------------------------------------------------------------------


def _refuse_lost(host: str, before: Collection, moved_from: Collection, moved_to: Collection, known: Sequence[str]) -> int:
    """Return how many known URLs of the host the source had in its crawl space.

    Raises ConfigError if the target would not have one of them, or the source would keep something of the host.
    """
    was, source, target = build_space(before), build_space(moved_from), build_space(moved_to)
    had = [url for url in known if was.decide(url)[1].admitted]
    lost = [(url, decision) for url in had if not (decision := target.decide(url)[1]).admitted]
    if lost:
        shown = "".join(
            f"\n  {url}: {one.reason.value}{'' if one.rule is None else f' by {one.rule}'}" for url, one in lost[:_MOST_SHOWN]
        )
        raise ConfigError(
            f"{moved_to.name} would refuse {counted(len(lost), 'URL')} of the {len(had):,} that {before.name} has of {host}, and nothing was"
            f" changed; correct its rules or limits first:{shown}"
        )
    kept = [url for url in [f"http://{host}/", f"https://{host}/", *had] if source.decide(url)[1].admitted]
    if kept:
        raise ConfigError(
            f"{before.name} would keep {kept[0]}, and nothing was changed: take out the rules for a port of {host}, and then run the command again"
        )
    return len(had)


def _refuse_others(host: str, name: str, found: RulePlan) -> None:
    """Raise ConfigError where URLs of other hosts would be affected, but by being fetched again for links to this one."""
    by_host = {
        one: {kind: number for kind, number in kinds.items() if kind not in _AGAIN} for one, kinds in found.plan.by_host.items()
    }
    others = {one: kinds for one, kinds in by_host.items() if kinds and one != host}
    if others:
        shown = ", ".join(
            f"{one} ({', '.join(f'{number:,} {kind}' for kind, number in sorted(kinds.items()))})"
            for one, kinds in others.items()
        )
        raise ConfigError(
            f"the next start of {name} would change URLs of other hosts, and nothing was changed: {shown}. If that comes from an earlier change"
            f" of its rules, crawl {name} first"
        )


def _by_hand(host: str, before: Collection, paths: CollectionPaths) -> Iterator[str]:
    """Yield what is said of the host elsewhere."""
    if before.sites.of(host, 80) is not before.sites.default:
        yield f"CRAWLSPACE_SITES in settings.py of {before.name} has an entry for {host}"
    for name, file in rule_files(before.folder, paths.settings).items():
        if name not in (CRAWL_RULES, START_URLS, GLOBAL_RULES) and host in read_rule_file(file).text:
            yield f"{name} of {before.name} names {host}"
