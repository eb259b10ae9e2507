"""Sites that share an address: those with a delay ask it one after the other, and keep the delay among them."""

from __future__ import annotations

from math import inf

from crawlspace.cache import Recent
from crawlspace.frontier.site_queue import Machine, SiteTurns

_LEFT = 10_000


class Machines:
    """The machines of all sites that share one. A site without a delay has nothing to share."""

    def __init__(self) -> None:
        self._by_address: dict[str, Machine] = {}
        self._left: Recent[str, Machine] = Recent(_LEFT)
        """Those whose sites have all been dropped: another one may have the longer delay."""

    def join(self, turns: SiteTurns, address: str) -> None:
        """Have the site share the delay of all others that have joined at that address."""
        machine = self._by_address.get(address)
        if machine is None:
            machine = self._by_address[address] = self._left.get(address) or Machine(address)
        machine.sites += 1
        turns.machine = machine

    def leave(self, turns: SiteTurns) -> None:
        """Drop a site whose last delay is over."""
        machine = turns.machine
        if machine is not None:
            machine.sites -= 1
            if not machine.sites:
                del self._by_address[machine.address]
                self._left.put(machine.address, machine)

    def may_ask_at(self, turns: SiteTurns) -> float | None:
        """When a site that could be asked by itself may be; None when it must wait for the turns of others, for which it stands in a line."""
        machine = turns.machine
        if machine is None or not turns.pace.delay_s:
            return -inf
        if machine.turn is None:
            machine.turn = turns
        elif machine.turn is not turns:
            if not turns.waits_for_machine:
                turns.waits_for_machine = True
                machine.line.append(turns)
            return None
        return machine.next_turn(turns)

    def has_turn(self, turns: SiteTurns) -> bool:
        """Whether nothing else stands against asking the site now that it is lined up."""
        machine = turns.machine
        if machine is None or not turns.pace.delay_s:
            return True
        return machine.turn is turns and not (turns.under_way and machine.line)

    def pass_on(self, turns: SiteTurns) -> SiteTurns | None:
        """End the turn of a site, if it has it and is not asking; return the site whose turn it is now."""
        machine = turns.machine
        if machine is None or machine.turn is not turns or turns.under_way:
            return None
        if turns.asked_at > machine.asked_at:
            machine.asked_at, machine.delay_s = turns.asked_at, turns.pace.delay_s
        machine.turn = machine.line.popleft() if machine.line else None
        if machine.turn is not None:
            machine.turn.waits_for_machine = False
        return machine.turn
