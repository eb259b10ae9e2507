"""Report whether a page is rendered in a browser, and why; hosts that its site's pages must not load from; costs of rendering."""

from __future__ import annotations

from dataclasses import dataclass

from crawlspace.config.collection import Collection
from crawlspace.config.sites import HASH_ROUTES, mode_of
from crawlspace.crawl.rendering import LearnedRendering, RenderCounts, learned_rendering
from crawlspace.decision import Actions, Render, RuleRef
from crawlspace.state.render_learning import Needs, RenderGroup, group_of
from crawlspace.state.store import MetaStore
from crawlspace.text import counted, printable
from crawlspace.urls import DEFAULT_PORTS, Url


@dataclass(frozen=True, slots=True)
class RefusedHost:
    """A host that pages of the site wanted to load from, and must not."""

    host: str
    why: str


@dataclass(frozen=True, slots=True)
class PageRendering:
    """Whether a page is rendered. `rule` has decided it, else the setting `where`."""

    mode: Render
    where: str
    rule: RuleRef | None
    group: str
    """The group of pages that it is learned with (auto)."""
    learned: RenderGroup | None
    """What was learned of the group; None: nothing yet."""
    refused: tuple[RefusedHost, ...]
    is_route: bool = False
    """It is a route behind #."""

    @property
    def sentence(self) -> str:
        if self.is_route:
            return f"{_MODES[self.mode]}, as a route behind # ({HASH_ROUTES})"
        by = f"{self.rule}: {printable(self.rule.text)}" if self.rule is not None else f"{self.where} is {self.mode}"
        return f"{_MODES[self.mode]} ({by})"

    @property
    def learned_sentence(self) -> str:
        """A sentence about the pages of its group; empty unless they decide."""
        if self.mode is not Render.AUTO:
            return ""
        group = printable(self.group)
        if self.learned is None or not self.learned.rendered:
            return f"of {group}… no page has been rendered yet: {Needs.SHELLS.sentence}"
        gained = f"{self.learned.gained:,} of {counted(self.learned.rendered, 'page')} rendered so far gained text or links"
        return f"of {group}… {gained}: {self.learned.needs.sentence}"

    def as_json(self) -> dict[str, object]:
        """Return what `auto` has learned about the group, as JSON has it."""
        group = self.learned or RenderGroup()
        auto = {
            "group": printable(self.group),
            "needs": group.needs.name.lower(),
            "rendered": group.rendered,
            "gained": group.gained,
        }
        return {
            "mode": self.mode.value,
            "setting": None if self.rule is not None else self.where,
            "rule": None if self.rule is None else str(self.rule),
            "learned": auto if self.mode is Render.AUTO else None,
            "refused": [{"host": printable(one.host), "why": printable(one.why)} for one in self.refused],
        }


_MODES = {
    Render.NEVER: "no",
    Render.ALWAYS: "each time",
    Render.AUTO: "where it is needed",
}


def rendering_of(url: Url, actions: Actions, collection: Collection, store: MetaStore | None) -> PageRendering | None:
    """Return whether a page is rendered; None where the collection renders nothing."""
    if not collection.renders or url.scheme not in DEFAULT_PORTS:
        return None
    learned = LearnedRendering() if store is None else learned_rendering(store)
    settings = collection.sites.of(url.host, url.port).rendering
    matcher = settings.load_matcher()
    ports = tuple(DEFAULT_PORTS.values())
    refused = tuple(
        RefusedHost(host, why)
        for host, why in learned.refused.get(url.site, {}).items()
        if not any(matcher.match(host, port) for port in ports)  # admitted by now
    )
    rule = actions.render_rule if actions.render is not None else None
    group = group_of(url)
    mode = Render.ALWAYS if url.fragment else mode_of(url, actions, collection.sites)
    return PageRendering(mode, settings.where, rule, group, learned.groups.get(group), refused, is_route=bool(url.fragment))


@dataclass(frozen=True, slots=True)
class RenderingReport:
    """Costs of rendering in all runs, and what was learned."""

    counts: RenderCounts
    needing: int
    """Groups of pages that need the browser."""

    def __bool__(self) -> bool:
        return bool(self.counts.pages or self.counts.failed)

    def as_json(self) -> dict[str, object]:
        return {**counts_as_json(self.counts), "groups_needing_it": self.needing}


def rendering_report(store: MetaStore) -> RenderingReport:
    learned = learned_rendering(store)
    return RenderingReport(learned.counts, learned.needing)


def counts_as_json(counts: RenderCounts) -> dict[str, object]:
    """Return the costs of rendering, for programs."""
    return {
        "pages": counts.pages,
        "samples": counts.checks,
        "gained": counts.gained,
        "failed": counts.failed,
        "requests": counts.requests,
        "seconds": round(counts.seconds, 1),
    }


def counts_sentence(counts: RenderCounts) -> str:
    """Return `120 pages rendered (4 as samples; 95 gained text or links), 3 failed; 310 requests, 96 s`."""
    details = [f"{counts.checks:,} as samples"] if counts.checks else []
    details.append(f"{counts.gained:,} gained text or links")
    failed = f", {counts.failed:,} failed" if counts.failed else ""
    requests = counted(counts.requests, "request")
    return f"{counted(counts.pages, 'page')} rendered ({'; '.join(details)}){failed}; {requests}, {counts.seconds:,.0f} s"
