"""The explanation of a URL as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from http import HTTPStatus

from crawlspace.admin.explain import Explanation
from crawlspace.admin.refresh import Refreshing
from crawlspace.admin.report import UrlReport, label_of, status_sentence
from crawlspace.clock import local_time
from crawlspace.decision import Decision, Reason, Step
from crawlspace.model import State, UrlState, priority
from crawlspace.rules.limits import changes_of_built_in
from crawlspace.runtime.components.command import WIDTH, hanging, shortened
from crawlspace.state.fetch_history import DocumentChange, fetches
from crawlspace.state.lifecycle import is_imported_error
from crawlspace.text import MESSAGE, counted, printable


def decision_lines(answer: Explanation, *, collection: str = "") -> Iterator[str]:
    """Yield the decision, its reason, and every check."""
    decision = answer.decision
    yield answer.url_text if answer.url is None else printable(answer.url.text, most=MESSAGE)
    if answer.folded_from is not None:
        by = "by the URL options"
        if answer.url is not None and "#" in answer.folded_from and not answer.url.fragment:
            by = "its route is left off: CRAWLSPACE_HASH_ROUTES has it followed, where its page is rendered"
        yield _row("folded from", f"{printable(answer.folded_from, most=MESSAGE)} ({by})")
    yield _row("admitted" if decision.admitted else "refused", _reason(decision))
    yield from _beside_reason(answer)
    if decision.admitted:
        yield _row("then", _follows(answer))
    yield from _rows("actions", _actions(answer))
    for number, (name, value) in enumerate(answer.fields.items()):
        yield _row("" if number else "fields", shortened(printable(f"{name} = {value}"), WIDTH - 13))
    yield ""
    for number, step in enumerate(decision.trace):
        yield f"{'' if number else 'checks':<12} {_step(step)}"
    if answer.looked_up is not None:
        yield _row("addresses", f"{', '.join(answer.looked_up.addresses)} (looked up {local_time(answer.looked_up.at)})")
    if answer.unreachable is not None:
        yield _row("unreachable", f"{answer.unreachable.row.site}: {answer.unreachable.sentence}")
    if answer.paused is not None:
        of = "" if answer.url is not None and answer.paused.pattern == answer.url.site else f" ({answer.paused.pattern})"
        resume = f"`scrapy sites {collection} --resume {answer.paused.pattern}`"
        yield _row("waits", f"{answer.paused.pause.sentence}{of}; {resume}")
    yield from _rendering(answer)
    yield from _rows("sitemap", answer.named_by)
    if answer.access:
        yield _row("sent with it", answer.access)
    if answer.waits:
        yield _row("waits", answer.waits)
    if answer.proxy:
        yield _row("proxy", answer.proxy)
    yield from _rows("not checked", answer.unchecked)
    for number, page in enumerate(answer.seen_on):
        yield f"{'' if number else 'seen on':<12} {page}"


def known_lines(answer: Explanation) -> Iterator[str]:
    """Yield what is stored of the URL."""
    yield ""
    if answer.known is None:
        yield _row("known", "no: this URL is not among those found so far")
        return
    yield from _rows("known", _known(answer.known, answer.refreshing))
    yield from _rows("fetches", _fetches(answer.known.state))


def _reason(decision: Decision) -> str:
    sentence = decision.reason.sentence
    return sentence if decision.admitted else f"{sentence} ({decision.reason})"


def _beside_reason(answer: Explanation) -> Iterator[str]:
    """Yield the deciding rule or list, what may be meant by a malformed URL, and where a start URL is written."""
    decision = answer.decision
    if decision.rule is not None:
        yield f"{'by':<12} {decision.rule}: {printable(decision.rule.text)}"
    if decision.reason is Reason.MALFORMED and "//" not in answer.url_text:
        yield _row("hint", "write it with http:// or https://, or give the page with the link with --from")
    if answer.excluded_extensions:
        yield _row("extensions", _extensions(answer.excluded_extensions))
    if answer.start_url:
        yield _row("start URL", printable(answer.start_url))


def _extensions(excluded: Sequence[str]) -> str:
    """Return the list in force, and what makes it of the built-in one, where that is shorter."""
    changes = changes_of_built_in(frozenset(excluded))
    from_built_in = (
        "" if len(changes) >= len(excluded) else f"the built-in list{' with ' if changes else ''}{' '.join(changes)}: "
    )
    return f"{from_built_in}{' '.join(excluded)}"


def _follows(answer: Explanation) -> str:
    decision = answer.decision
    index = "indexed" if decision.index else "not indexed"
    links = "its links followed" if decision.follow else "its links not followed"
    shift = f", shift {answer.shift:+d}" if answer.shift else ""
    depth = "" if answer.depth is None else f", {counted(answer.depth, 'link')} from a start URL"
    return f"{index}, {links}{depth}; source {answer.source.label}, priority {priority(answer.source, answer.shift)}{shift}"


def _step(step: Step) -> str:
    head = f"{step.check:<18} {step.verdict:<7}"
    if step.rule is None:
        return head.rstrip()
    return f"{head} {shortened(f'{step.rule}: {printable(step.rule.text)}', WIDTH - 15 - len(head))}"


def _actions(answer: Explanation) -> Iterator[str]:
    """Yield a line for each action rule that matched: what it changed, and what it set without changing it."""
    for one in answer.decision.actions.applied:
        effects = [*one.changed, *(f"{words} (as before)" for words in one.without_effect)]
        yield shortened(f"{one.rule}: {', '.join(effects) or 'nothing'}", WIDTH - 13)


def _rendering(answer: Explanation) -> Iterator[str]:
    """Yield whether the page is rendered and why, and what its site's pages must not load."""
    rendering = answer.rendering
    if rendering is None:
        return
    yield _row("rendered", rendering.sentence)
    if rendering.learned_sentence:
        yield _row("", rendering.learned_sentence)
    for number, one in enumerate(rendering.refused):
        yield _row("" if number else "not loaded", f"{printable(one.host)}: {printable(one.why)}")
    if rendering.refused:
        yield _row("", "by pages of this site; 'render_hosts' in CRAWLSPACE_SITES admits hosts that the domain rules keep out")


def _known(known: UrlReport, refreshing: Refreshing | None) -> Iterator[str]:
    state = known.state
    status = "" if state.status is None else f", status {state.status} {status_sentence(state.status)}".rstrip()
    if known.text_status:
        status += f": {known.text_status}"
    if state.state is State.EXCLUDED and state.status == HTTPStatus.OK:
        status = f", status {state.status}, {Reason.DROPPED.sentence}"
    depth = (
        f"{counted(state.depth, 'link')} from a start URL"
        if state.orphaned is None
        else "no way leads to it from a start URL (orphaned)"
    )
    yield f"{label_of(state)}{status}; {depth}, source {state.source.label}"
    if known.detail:
        yield known.detail
    fetched = "never fetched" if state.fetched_at is None else f"fetched {local_time(state.fetched_at)}"
    due = f", {next_}" if refreshing is not None and (next_ := refreshing.of_url(state)) else ""
    errors = f", {counted(state.errors, 'error')} in a row" if state.errors else ""
    if is_imported_error(state):
        errors = ", an imported error: it is not fetched until `scrapy clear-errors` or `scrapy add`"
    yield f"found {local_time(state.discovered_at)}, {fetched}{due}{errors}"
    if known.lost:
        yield "not in the index at present: another collection deleted it there, and the next start sends it again"
    elif state.indexed:
        yield f"in the index, its deletion held: {state.held.sentence}" if state.held is not None else "in the index"
    elif known.left_to_others:
        held = f", its deletion held: {state.held.sentence}" if state.held is not None else ""
        yield f"in the index, left there for another collection{held}"
    elif known.distance is not None:
        yield f"not in the index: nearly the same as {known.duplicate_of}, distance {known.distance}"
    elif known.duplicate_of is not None:
        yield f"not in the index: a duplicate of {known.duplicate_of}"
    else:
        yield "not in the index"


def _fetches(state: UrlState) -> Iterator[str]:
    """Yield a line for each of the last fetches, if there were several."""
    found = fetches(state)
    for one in found if len(found) > 1 else ():
        took = "" if one.took_s is None else f", about {one.took_s:.2g} s"
        change = "" if one.change is DocumentChange.NONE else f", {one.change.label}"
        yield f"{local_time(one.at)}: {'unknown' if one.status is None else one.status}{change}{took}"


def _rows(label: str, texts: Iterable[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield _row("" if number else label, text)


def _row(label: str, text: str) -> str:
    return hanging(f"{label:<12} ", text)
