"""Sites with the same address: those with a delay share it and are requested one after the other."""

from __future__ import annotations

from math import inf

from crawlspace.cache import Recent
from crawlspace.frontier.site_queue import AddressGroup, SiteQueue

_LEFT = 10_000


class AddressGroups:
    """The groups of sites with the same address. Sites without a delay are not affected."""

    def __init__(self) -> None:
        self._by_address: dict[str, AddressGroup] = {}
        self._left: Recent[str, AddressGroup] = Recent(_LEFT)
        """Groups without sites, kept because their last delay may be longer than that of a later site."""

    def join(self, site_queue: SiteQueue, address: str) -> None:
        """Let a site share the delay of all others at that address."""
        address_group = self._by_address.get(address)
        if address_group is None:
            address_group = self._by_address[address] = self._left.get(address) or AddressGroup(address)
        address_group.sites += 1
        site_queue.address_group = address_group

    def leave(self, site_queue: SiteQueue) -> None:
        """Remove a site from its group after its last delay."""
        address_group = site_queue.address_group
        if address_group is not None:
            address_group.sites -= 1
            if not address_group.sites:
                del self._by_address[address_group.address]
                self._left.put(address_group.address, address_group)

    def next_request_at(self, site_queue: SiteQueue) -> float | None:
        """Return when a site that is ready by itself may be requested; None if it must wait in line for its group's turn."""
        address_group = site_queue.address_group
        if address_group is None or not site_queue.pace.delay_s:
            return -inf
        if address_group.turn is None:
            address_group.turn = site_queue
        elif address_group.turn is not site_queue:
            if not site_queue.waits_for_group:
                site_queue.waits_for_group = True
                address_group.line.append(site_queue)
            return None
        return address_group.next_turn(site_queue)

    def has_turn(self, site_queue: SiteQueue) -> bool:
        """Return whether its group allows a request to the site now."""
        address_group = site_queue.address_group
        if address_group is None or not site_queue.pace.delay_s:
            return True
        return address_group.turn is site_queue and not (site_queue.in_flight and address_group.line)

    def pass_on(self, site_queue: SiteQueue) -> SiteQueue | None:
        """End the turn of a site, if it has it and no request is in flight; return the next site."""
        address_group = site_queue.address_group
        if address_group is None or address_group.turn is not site_queue or site_queue.in_flight:
            return None
        if site_queue.last_request_at > address_group.last_request_at:
            address_group.last_request_at, address_group.delay_s = site_queue.last_request_at, site_queue.pace.delay_s
        address_group.turn = address_group.line.popleft() if address_group.line else None
        if address_group.turn is not None:
            address_group.turn.waits_for_group = False
        return address_group.turn
