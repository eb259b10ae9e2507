"""Try edited rules on single URLs: what is decided about each with the rules on disk, and with the edited ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crawlspace.admin.explain import Explanation, Question, explain
from crawlspace.clock import Clock
from crawlspace.config.collection import Collection
from crawlspace.crawl.startup import build_space
from crawlspace.decision import RuleRef
from crawlspace.rules.space import CrawlSpace
from crawlspace.state.store import Store
from crawlspace.text import MESSAGE, printable

MOST_TRIED = 200
"""URLs that are tried at once."""


@dataclass(frozen=True, slots=True)
class UrlVerdict:
    """What the rules decide about a URL."""

    admitted: bool
    reason: str
    sentence: str
    rule: RuleRef | None
    effects: Sequence[str]
    """What follows for an admitted URL, besides being crawled."""
    folded_into: str | None = None

    @property
    def decided(self) -> tuple[object, ...]:
        """What counts as a change: not the place of the rule, which moves with the lines above it."""
        return self.admitted, self.reason, None if self.rule is None else self.rule.text, tuple(self.effects), self.folded_into


@dataclass(frozen=True, slots=True)
class TriedUrl:
    """A URL with its decisions. `state` is that of a known URL, empty for another."""

    url: str
    before: UrlVerdict | None
    """None where the rules on disk cannot be read."""
    after: UrlVerdict
    state: str = ""
    is_indexed: bool = False

    @property
    def changes(self) -> bool:
        return self.before is not None and self.before.decided != self.after.decided

    @property
    def turns(self) -> bool:
        """Whether it enters or leaves the crawl space."""
        return self.before is not None and self.before.admitted is not self.after.admitted


def try_urls(
    urls: Sequence[str], before: Collection | None, after: Collection, *, store: Store | None, clock: Clock
) -> list[TriedUrl]:
    """Return the decisions about URLs. Reads only, and requests nothing."""
    collections = [(one, build_space(one)) for one in (before, after) if one is not None]
    found = []
    for url in urls[:MOST_TRIED]:
        explained = [_explained(url, one, space, store=store, clock=clock) for one, space in collections]
        known = explained[-1].known
        found.append(
            TriedUrl(
                printable(url, most=MESSAGE),
                None if before is None else _verdict(explained[0]),
                _verdict(explained[-1]),
                "" if known is None else known.state.state.label,
                known is not None and known.state.indexed,
            )
        )
    return found


def _explained(url: str, collection: Collection, space: CrawlSpace, *, store: Store | None, clock: Clock) -> Explanation:
    return explain(Question(url), collection, space=space, store=store, clock=clock)


def _verdict(found: Explanation) -> UrlVerdict:
    decision = found.decision
    return UrlVerdict(
        decision.admitted,
        decision.reason.value,
        decision.reason.sentence,
        decision.rule,
        list(_effects(found, found.fields)) if decision.admitted else [],
        None if found.folded_from is None or found.url is None else printable(found.url.text, most=MESSAGE),
    )


def _effects(found: Explanation, fields: Mapping[str, str]) -> list[str]:
    decision = found.decision
    said = []
    if not decision.index:
        said.append("not indexed")
    if not decision.follow:
        said.append("links not followed")
    if found.known is None and found.shift:
        said.append(f"priority {found.shift:+d}")
    said += [f"{printable(name)} = {printable(value)}" for name, value in sorted(fields.items())]
    return said
