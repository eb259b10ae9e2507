"""What became of a URL over time, and which rules were in force then.

The events of the runs that are kept say when its document came, changed and left; the rule files that were kept at each start say what the
rules decided about it then. Settings were kept as a digest only: where settings.py was another one, those of today are used, and it is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crawlspace.admin.rule_files import load_edited, with_files
from crawlspace.admin.url_changes import find_url, read_url
from crawlspace.clock import iso
from crawlspace.config.collection import Collection
from crawlspace.config.files import GLOBAL_RULES
from crawlspace.crawl.rule_changes.rules_in_force import SETTINGS, RulesInForce, in_force_at, kept_rules, present_rules
from crawlspace.crawl.run_events import EVENTS_FOLDER, RunEvent, events_of, parts_of
from crawlspace.crawl.run_log import file_of, run_records
from crawlspace.crawl.startup import build_space
from crawlspace.decision import Decision
from crawlspace.errors import ConfigError, RunFileError
from crawlspace.model import UrlState
from crawlspace.runtime.session.paths import CollectionPaths
from crawlspace.state.fetch_history import DocumentChange, fetches
from crawlspace.state.store import Store
from crawlspace.text import MESSAGE, printable
from crawlspace.urls import Url, url_key


@dataclass(frozen=True, slots=True)
class PastDecision:
    """What the rules that were in force from a time on decided about the URL. `fault` is a sentence where they cannot be applied any more."""

    since: int
    decision: Decision | None
    other_settings: bool
    """settings.py was another one than today."""
    fault: str = ""

    @property
    def sentence(self) -> str:
        decision = self.decision
        if decision is None:
            return self.fault
        by = "" if decision.rule is None else f" by {decision.rule} ({printable(decision.rule.text, most=MESSAGE)})"
        if not decision.admitted:
            return f"refused: {decision.reason.value}{by}"
        return f"admitted{by}{'' if decision.index else ', not indexed'}"

    def as_json(self) -> dict[str, object]:
        found = self.decision
        return {
            "since": iso(self.since),
            "admitted": None if found is None else found.admitted,
            "reason": None if found is None else found.reason.value,
            "rule": None if found is None or found.rule is None else str(found.rule),
            "text": None if found is None or found.rule is None else found.rule.text,
            "other_settings": self.other_settings,
            "fault": self.fault,
        }


@dataclass(frozen=True, slots=True)
class PastEvent:
    """What became of the URL at a time, and the rules in force then, if they are known."""

    at: int
    what: str
    status: int | None
    in_index: bool | None
    """Whether it has a document of its own in the index from then on; None where that is not known."""
    rules: PastDecision | None

    def as_json(self) -> dict[str, object]:
        rules = None if self.rules is None else self.rules.as_json()
        return {"at": iso(self.at), "what": self.what, "status": self.status, "in_index": self.in_index, "rules": rules}


@dataclass(frozen=True, slots=True)
class UrlHistory:
    url: str
    events: Sequence[PastEvent]
    """The oldest first."""
    state: UrlState | None
    """None for a URL that is not known, or was forgotten."""
    now: PastDecision
    """By the rules on disk."""


def url_history(paths: CollectionPaths, collection: Collection, store: Store | None, text: str) -> UrlHistory:
    """Return the history of a URL. Raises UsageError for an invalid URL, and RunFileError."""
    url = read_url(text)
    state = None if store is None else find_url(store, url, collection.url_folding)
    rules = _Rules(paths, collection, url)
    key = url_key(collection.url_folding.fold(url).text) if state is None else state.key
    events = [] if store is None else sorted(_events(paths, store, key, state), key=lambda one: one[:2])
    found = [PastEvent(at, what, status, in_index, rules.at(at, run)) for at, run, what, status, in_index in events]
    present = PastDecision(0, rules.decide(collection), other_settings=False)
    return UrlHistory(printable(url.text if state is None else state.url, most=MESSAGE), found, state, present)


_Event = tuple[int, int, str, int | None, bool | None]
"""Time, number of the run or 0, what, status, and whether the document is in the index."""


def _events(paths: CollectionPaths, store: Store, key: int, state: UrlState | None) -> Iterator[_Event]:
    """Yield the events of the runs that are kept, and the fetches before them. Raises RunFileError."""
    folder = paths.state_file.parent / EVENTS_FOLDER
    found: list[tuple[int, RunEvent]] = []
    try:
        for record in run_records(store):
            for path in parts_of(folder / file_of(record)):
                found += [(record.run, event) for event in events_of(path, key)]
    except OSError as error:
        raise RunFileError(f"the events of runs cannot be read in {folder}: {error.strerror or error}") from error
    first = min((event.at for _, event in found), default=None)
    for run, event in found:
        yield event.at, run, _sentence(event), event.status_after, event.in_index_after
    for fetch in [] if state is None else fetches(state):
        if first is None or fetch.at < first:
            yield fetch.at, 0, _fetched(fetch.status, fetch.change), fetch.status, None


def _sentence(event: RunEvent) -> str:
    if event.by_rules:
        what = f"moved by a change of the rules ({event.status_after or 'pending again'})"
    elif event.forgotten:
        what = f"forgotten ({event.status_after})" if event.status_after else "forgotten"
    else:
        what = _fetched(event.status_after, event.change)
    if event.in_index_before and not event.in_index_after:
        return f"{what}: its document left the index"
    if event.in_index_after and not event.in_index_before:
        return f"{what}: its document came into the index"
    return what


def _fetched(status: int | None, change: DocumentChange) -> str:
    return f"fetched: {status}" + ("" if change is DocumentChange.NONE else f", {change.label} document")


class _Rules:
    """The decisions about one URL by the kept versions of the rules, each made once."""

    def __init__(self, paths: CollectionPaths, collection: Collection, url: Url) -> None:
        self._paths, self._collection, self._url = paths, collection, url
        self._kept = kept_rules(paths.state_file.parent)
        self._settings = present_rules(collection, since=0).digests.get(SETTINGS)
        self._decisions: dict[tuple[int, int], PastDecision] = {}

    def at(self, time: float, run: int) -> PastDecision | None:
        """Return the decision by the rules in force at a time and in a run; None where these are not known."""
        kept = in_force_at(self._kept, time, run=run)
        if kept is None:
            return None
        version = kept.since, kept.run
        if version not in self._decisions:
            self._decisions[version] = self._decided(kept)
        return self._decisions[version]

    def decide(self, collection: Collection) -> Decision:
        return build_space(collection).decide(self._url.text)[1]

    def _decided(self, kept: RulesInForce) -> PastDecision:
        other = kept.digests.get(SETTINGS) != self._settings
        if kept.incomplete:
            fault = f"{', '.join(kept.incomplete)} was too large to be kept"
            return PastDecision(kept.since, None, other, fault)
        try:
            files = {**dict.fromkeys(_RULE_FILES), **kept.texts}
            with with_files(self._collection.folder, self._paths.settings, files) as were:
                return PastDecision(kept.since, self.decide(load_edited(were)), other)
        except ConfigError as error:
            return PastDecision(
                kept.since, None, other, f"these rules can't be read with the settings of today: {str(error).splitlines()[0]}"
            )


_RULE_FILES = ("crawl.rules", "rules.xml", "start_urls.txt", "extract.toml", "tests.rules", GLOBAL_RULES)
"""Those that were not there then are missing, too."""
