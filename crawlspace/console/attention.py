"""What needs the attention of an administrator, as sentences that lead to the page where something can be done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from crawlspace.runtime.session.collection_status import CollectionStatus
from crawlspace.text import counted, printable


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence, the path of the page behind it, and whether something is wrong; else somebody has to decide."""

    sentence: str
    path: str
    is_fault: bool = False


def notices(status: CollectionStatus) -> Iterator[Notice]:
    """Yield what needs attention in a collection, faults first."""
    numbers = status.numbers
    home = f"/c/{quote(numbers.collection, safe='')}"
    for pattern, refused in status.refused.items():
        yield Notice(f"Log-in to {printable(pattern)} is refused: {printable(refused.why)}", f"{home}/sites", is_fault=True)
    for sink in status.sinks:
        if sink.standstill is not None:
            yield Notice(f"Sink {sink.name} accepts nothing: {printable(sink.standstill.why)}", f"{home}/sinks", is_fault=True)
    if numbers.unreachable:
        many = counted(len(numbers.unreachable), "site does", "sites do")
        yield Notice(f"{many} not answer", f"{home}/sites?only=unreachable", is_fault=True)
    if numbers.parked:
        yield Notice(
            f"{counted(numbers.parked, 'document is', 'documents are')} refused by a sink", f"{home}/sinks", is_fault=True
        )
    if numbers.lost:
        yield Notice(
            f"{counted(numbers.lost, 'document was', 'documents were')} deleted by another collection", f"{home}/", is_fault=True
        )
    held = sum(numbers.held.values())
    if held:
        yield Notice(f"{counted(held, 'deletion waits', 'deletions wait')} for a decision", f"{home}/deletions")
    if status.rules_changed:
        yield Notice("The rules have changed and are not applied yet", f"{home}/rules/plan")
    for site in status.wanted:
        yield Notice(f"{printable(site)} asks for a log-in that the settings do not have", f"{home}/sites")
    for pattern in status.waiting:
        yield Notice(f"Pages wait for the log-in to {printable(pattern)}", f"{home}/sites")
    if numbers.traps:
        yield Notice(f"{counted(len(numbers.traps), 'group')} of URLs may be a trap", f"{home}/")
