"""What has become of a URL, in one sentence: the first thing that a person wants to know who looks one up."""

from __future__ import annotations

from crawlspace.admin.explain import Explanation
from crawlspace.admin.report import UrlReport, status_sentence
from crawlspace.model import State


def verdict(answer: Explanation) -> str:
    """Return the sentence."""
    decision, known = answer.decision, answer.known
    if known is None:
        if decision.admitted:
            return "It belongs to the collection, and is not known yet: no link to it has been found."
        return f"It does not belong to the collection: {decision.reason.sentence}."
    there = _there(known)
    if decision.admitted:
        return there
    return f"The present rules refuse it: {decision.reason.sentence}. {there}"


def _there(known: UrlReport) -> str:
    state = known.state
    if known.lost:
        return "It is not in the index at present: another collection deleted it there, and the next start sends it again."
    if state.indexed and known.held is not None:
        return f"It is in the index, and its deletion is held: {known.held.sentence}."
    if state.indexed:
        return "It is in the index."
    if known.left_to_others:
        return "It is in the index, left there for another collection."
    if known.distance is not None:
        return f"It is not in the index: its text is nearly the same as that of {known.duplicate_of}."
    if known.duplicate_of is not None:
        return f"It is not in the index: it is a duplicate of {known.duplicate_of}."
    return f"It is not in the index: {_why_not(known)}."


def _why_not(known: UrlReport) -> str:
    state = known.state
    status = "" if known.status is None else f"{known.status} {status_sentence(known.status)}".strip()
    match state.state:
        case State.PENDING if state.lease_until is not None:
            return "it is being fetched for the first time"
        case State.PENDING if known.site is not None:
            return f"it waits to be fetched for the first time, and its site is unreachable ({status})"
        case State.PENDING:
            return "it waits to be fetched for the first time"
        case State.REDIRECTED:
            return f"it leads to another URL ({status})"
        case State.GONE | State.FAILED:
            return f"its last fetch ended with {status}" if status else "its last fetch failed"
        case State.EXCLUDED if known.status == 200:
            return "an item pipeline dropped its document"
        case State.EXCLUDED:
            return f"it is excluded ({status})"
        case _:
            return "it has no document"
