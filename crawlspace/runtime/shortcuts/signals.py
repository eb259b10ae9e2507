"""Signals that nobody listens to, and those that only an export listens to. Scrapy sends ten for each page."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydispatch import dispatcher
from scrapy import signals
from scrapy.extensions.feedexport import FeedExporter

if TYPE_CHECKING:
    from scrapy.signalmanager import SignalManager


def send_if_heard(manager: SignalManager) -> None:
    """Have no receivers looked for where a signal has none, and have the exports called without a task for each item."""
    send, send_async = manager.send_catch_log, manager.send_catch_log_async

    def send_heard(signal: object, **named: Any) -> list[tuple[Any, Any]]:
        return send(signal, **named) if is_heard(manager, signal) else []

    async def send_heard_async(signal: object, **named: Any) -> list[tuple[Any, Any]]:
        if not is_heard(manager, signal):
            return []
        if signal is signals.item_scraped and all(map(_is_export, _receivers(manager, signal))):
            return send(signal, **named)
        return await send_async(signal, **named)

    manager.send_catch_log = send_heard  # type: ignore[method-assign]
    manager.send_catch_log_async = send_heard_async  # type: ignore[method-assign]


def is_heard(manager: SignalManager, signal: object) -> bool:
    """Return whether somebody may listen to a signal."""
    for key in (id(manager.sender), _ANYONE):
        receivers = dispatcher.connections.get(key, _NOBODY)
        if signal in receivers or dispatcher.Any in receivers:
            return True
    return False


def only_receiver(manager: SignalManager, signal: object) -> Any:
    """Return the one that listens to a signal, of which `is_heard`; None if others may."""
    own = dispatcher.connections.get(id(manager.sender), _NOBODY)
    listening = own.get(signal, ())
    if len(listening) != 1 or dispatcher.Any in own or _ANYONE in dispatcher.connections:
        return None
    return next(dispatcher.liveReceivers(listening), None)


_ANYONE = id(dispatcher.Any)
_NOBODY: Mapping[object, list[object]] = MappingProxyType({})


def _receivers(manager: SignalManager, signal: object) -> list[Any]:
    return list(dispatcher.liveReceivers(dispatcher.getAllReceivers(manager.sender, signal)))


def _is_export(receiver: Any) -> bool:
    """Whether a receiver writes an item to its feed, and returns nothing to wait for."""
    return isinstance(getattr(receiver, "__self__", None), FeedExporter) and receiver.__name__ == "item_scraped"
