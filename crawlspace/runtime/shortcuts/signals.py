"""Signals that nobody listens to, and those that only an export listens to. Scrapy sends ten for each page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydispatch import dispatcher
from scrapy import signals
from scrapy.extensions.feedexport import FeedExporter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy.signalmanager import SignalManager


def send_if_heard(manager: SignalManager) -> None:
    """Have no receivers looked for where a signal has none, and have the exports called without a task for each item."""
    send, send_async = manager.send_catch_log, manager.send_catch_log_async
    sender, anyone = id(manager.sender), id(dispatcher.Any)
    nobody: Mapping[object, list[object]] = {}

    def is_heard(signal: object) -> bool:
        for key in (sender, anyone):
            receivers = dispatcher.connections.get(key, nobody)
            if signal in receivers or dispatcher.Any in receivers:
                return True
        return False

    def send_heard(signal: object, **named: Any) -> list[tuple[Any, Any]]:
        return send(signal, **named) if is_heard(signal) else []

    async def send_heard_async(signal: object, **named: Any) -> list[tuple[Any, Any]]:
        if not is_heard(signal):
            return []
        if signal is signals.item_scraped and all(map(_is_export, _receivers(manager, signal))):
            return send(signal, **named)
        return await send_async(signal, **named)

    manager.send_catch_log = send_heard  # type: ignore[method-assign]
    manager.send_catch_log_async = send_heard_async  # type: ignore[method-assign]


def _receivers(manager: SignalManager, signal: object) -> list[Any]:
    return list(dispatcher.liveReceivers(dispatcher.getAllReceivers(manager.sender, signal)))


def _is_export(receiver: Any) -> bool:
    """Whether a receiver writes an item to its feed, and returns nothing to wait for."""
    return isinstance(getattr(receiver, "__self__", None), FeedExporter) and receiver.__name__ == "item_scraped"
