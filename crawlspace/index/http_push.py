"""A sink that POSTs orders as lines of JSON to a URL of the user's: for any index."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Self

from crawlspace import __version__
from crawlspace.clock import Clock, SystemClock
from crawlspace.document import IndexOrder
from crawlspace.errors import IndexUnavailable
from crawlspace.index.json_client import Client, Connection, Reply, items, shown, table
from crawlspace.index.marks import BatchMark
from crawlspace.index.orders import by_reference, line_of, lines_of, log_by_reference
from crawlspace.index.sink import Options, Refusal, Sent
from crawlspace.urls import document_id

TIME, SIGNATURE = "Crawlspace-Time", "Crawlspace-Signature"
_SLOW = (413, 429, 503)


class HttpPush:
    """POSTs orders to one URL; 2xx acknowledges the batch. A JSON answer may name single orders:
    `{"items": [{"id": …, "status": "refused" | "later", "reason": …}]}`; the others are done.

    With a secret, the header Crawlspace-Signature has the HMAC-SHA256, in hexadecimal, of the value of Crawlspace-Time, a full stop and
    the body.
    """

    def __init__(
        self, name: str, connection: Connection, *, owner: str, max_bytes: int, secret: str = "", clock: Clock | None = None
    ) -> None:
        self.name = name
        self._connection = connection
        self._client = Client(connection)
        self._owner = owner
        self._max_bytes = max_bytes
        self._secret = secret.encode()
        self._clock = clock or SystemClock()

    @classmethod
    def from_options(cls, options: Options) -> Self:
        """Return the sink that the options describe. Raises SettingError."""
        headers = {"User-Agent": f"crawlspace/{__version__}", "Accept": "application/json"}
        for name in options.table("headers"):
            headers[name] = options.secret_of("headers", name)
        connection = Connection.from_options(options, headers)
        max_bytes = options.integer("batch_bytes", 5_000_000, low=10_000, high=100_000_000)
        return cls(options.name, connection, owner=options.collection, max_bytes=max_bytes, secret=options.secret("secret"))

    def mark(self) -> BatchMark | None:
        return None

    def send(self, orders: Sequence[IndexOrder], mark: BatchMark | None = None) -> Sent:
        """POST the orders, in parts of a bounded size, one after the other."""
        lines, refused = lines_of(orders, owner=self._owner)
        later: list[IndexOrder] = []
        parts: list[tuple[list[IndexOrder], list[bytes]]] = []
        size = 0
        for order, line in lines:
            if not parts or size + len(line) > self._max_bytes:
                parts.append(([], []))
                size = 0
            parts[-1][0].append(order)
            parts[-1][1].append(line)
            size += len(line)
        for number, (part, written) in enumerate(parts):
            failure = self._send(part, b"".join(written), refused, later)
            if failure:
                rest = [order for orders_left, _ in parts[number:] for order in orders_left]
                return Sent(refused, [*later, *rest], failure[0], is_slow=failure[1])
        return Sent(refused, later, "it requests some orders later" if later else "")

    def close(self) -> None:
        self._client.close()

    def _send(
        self, part: Sequence[IndexOrder], body: bytes, refused: list[Refusal], later: list[IndexOrder]
    ) -> tuple[str, bool] | None:
        """Send a part; return why it was not accepted, and whether a smaller one may be."""
        reply = self._client.run(self._client.request("POST", "", lines=body, headers=self._signed(body)))
        if reply.is_ok:
            _read_results(part, reply, refused, later)
            return None
        why = f"{self._connection.url} answers {reply.status} {shown(reply.body)}"
        if reply.status == 413 and len(part) == 1:
            if (without_text := by_reference(part[0])) is not None:
                log_by_reference(self.name, without_text)
                return self._send([without_text], line_of(without_text, owner=self._owner), refused, later)
            refused.append(Refusal(part[0], why))
            return None
        if reply.status in _SLOW:
            return why, True
        raise IndexUnavailable(why)

    def _signed(self, body: bytes) -> Mapping[str, str]:
        if not self._secret:
            return {}
        time = str(int(self._clock.now()))
        return {TIME: time, SIGNATURE: hmac.new(self._secret, f"{time}.".encode() + body, sha256).hexdigest()}


def _read_results(part: Sequence[IndexOrder], reply: Reply, refused: list[Refusal], later: list[IndexOrder]) -> None:
    """Add the orders that an answer names as refused or to be sent later."""
    by_id = {document_id(order.url): order for order in part}
    for one in map(table, items(table(reply.body).get("items"))):
        order = by_id.get(str(one.get("id")))
        if order is not None and one.get("status") == "refused":
            refused.append(Refusal(order, shown(one.get("reason") or "no reason given")))
        elif order is not None and one.get("status") == "later":
            later.append(order)
