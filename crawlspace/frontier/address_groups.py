"""Sites that share an address: those with a delay ask it one after the other, and keep the delay among them."""

from __future__ import annotations

from math import inf

from crawlspace.cache import Recent
from crawlspace.frontier.site_queue import AddressGroup, SiteQueue

_LEFT = 10_000


class AddressGroups:
    """The machines of all sites that share one. A site without a delay has nothing to share."""

    def __init__(self) -> None:
        self._by_address: dict[str, AddressGroup] = {}
        self._left: Recent[str, AddressGroup] = Recent(_LEFT)
        """Those whose sites have all been dropped: another one may have the longer delay."""

    def join(self, turns: SiteQueue, address: str) -> None:
        """Have the site share the delay of all others that have joined at that address."""
        address_group = self._by_address.get(address)
        if address_group is None:
            address_group = self._by_address[address] = self._left.get(address) or AddressGroup(address)
        address_group.sites += 1
        turns.address_group = address_group

    def leave(self, turns: SiteQueue) -> None:
        """Drop a site whose last delay is over."""
        address_group = turns.address_group
        if address_group is not None:
            address_group.sites -= 1
            if not address_group.sites:
                del self._by_address[address_group.address]
                self._left.put(address_group.address, address_group)

    def may_ask_at(self, turns: SiteQueue) -> float | None:
        """When a site that could be asked by itself may be; None when it must wait for the turns of others, for which it stands in a line."""
        address_group = turns.address_group
        if address_group is None or not turns.pace.delay_s:
            return -inf
        if address_group.turn is None:
            address_group.turn = turns
        elif address_group.turn is not turns:
            if not turns.waits_for_group:
                turns.waits_for_group = True
                address_group.line.append(turns)
            return None
        return address_group.next_turn(turns)

    def has_turn(self, turns: SiteQueue) -> bool:
        """Whether nothing else stands against asking the site now that it is lined up."""
        address_group = turns.address_group
        if address_group is None or not turns.pace.delay_s:
            return True
        return address_group.turn is turns and not (turns.in_flight and address_group.line)

    def pass_on(self, turns: SiteQueue) -> SiteQueue | None:
        """End the turn of a site, if it has it and is not asking; return the site whose turn it is now."""
        address_group = turns.address_group
        if address_group is None or address_group.turn is not turns or turns.in_flight:
            return None
        if turns.asked_at > address_group.asked_at:
            address_group.asked_at, address_group.delay_s = turns.asked_at, turns.pace.delay_s
        address_group.turn = address_group.line.popleft() if address_group.line else None
        if address_group.turn is not None:
            address_group.turn.waits_for_group = False
        return address_group.turn
