"""What a sink that leaves out documents behind a log-in is sent, and what becomes of the orders for it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from crawlspace.clock import FakeClock
from crawlspace.document import Document, IndexOrder, Op
from crawlspace.index.login_exclusion import LoginExclusion, stand_in
from crawlspace.index.marks import BatchMark
from crawlspace.index.outbox import Drain
from crawlspace.index.sink import Refusal, Sent
from tests.contract.sinks import MemorySink
from tests.unit.index.test_outbox import Outbox

EXCLUSION = LoginExclusion(lambda url: url.startswith("private"), "")
MARKED = {"requires_login": "true"}
ORDERS = (
    (IndexOrder(1, Op.DELETE, "public"), Op.DELETE),
    (IndexOrder(1, Op.PUSH, "public", Document("public")), Op.PUSH),
    (IndexOrder(1, Op.PUSH, "private", Document("private")), Op.DELETE),
    (IndexOrder(1, Op.PUSH, "public", Document("public", fields=MARKED)), Op.DELETE),
    (IndexOrder(1, Op.PUSH, "private", stand_in("private")), Op.DELETE),
)


@pytest.mark.parametrize(("order", "op"), ORDERS)
def test_a_push_of_what_is_left_out_is_a_deletion(order: IndexOrder, op: Op) -> None:
    sent = EXCLUSION.of(order)
    assert (sent.op, sent.url, sent.sequence) == (op, order.url, 1)
    assert (sent.document is None) == (op is Op.DELETE)


def test_a_document_does_not_name_what_is_left_out() -> None:
    document = Document("public", duplicates=["private/1", "public/2"])
    sent = EXCLUSION.of(IndexOrder(1, Op.PUSH, "public", document)).document
    assert sent is not None
    assert sent.duplicates == ["public/2"]
    assert document.duplicates == ["private/1", "public/2"], "for the other sinks"


class RefusingSink(MemorySink):
    """Refuses a deletion, which no server does, to see which order is named."""

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        refused = [Refusal(order, "no") for order in orders if order.url == "private/bad"]
        later = [order for order in orders if order.url == "private/later"]
        super().send([order for order in orders if order.url not in {"private/bad", "private/later"}], mark)
        return Sent(refused=refused, later=later)


def test_orders_are_done_or_parked_as_they_were_taken() -> None:
    outbox, sink = StrictOutbox("+public +private +private/bad +private/later"), RefusingSink()
    Drain(outbox, sink, FakeClock(), exclusion=EXCLUSION).step()
    assert set(sink.documents) == {"public"}
    assert set(outbox.waiting) == {"private/later"}
    assert set(outbox.parked) == {"private/bad"}


class StrictOutbox(Outbox):
    """Knows orders by what they do, as stores may."""

    def acknowledge(self, sink: str, orders: Sequence[IndexOrder]) -> None:
        assert {order.op for order in orders} == {Op.PUSH}
        super().acknowledge(sink, orders)

    def park(self, sink: str, order: IndexOrder, reason: str) -> None:
        assert order.op is Op.PUSH
        super().park(sink, order, reason)
