"""Unsettled maps of attaches, as clients write and read them (core 2.7.3)."""

from __future__ import annotations

from typing import Final

from broker.amqp.outcomes import ACCEPTED, DeliveryState, Modified, Rejected, Released
from broker.amqp.performatives import Attach
from broker.amqp.unsettled_map import read_unsettled_map

EMPTY: Final = b"\xc1\x01\x00"


def told(attach: Attach) -> dict[bytes, str | None] | None:
    """Return the states in the map of `attach` by their tags, each as its name, if it has one."""
    states = read_unsettled_map(attach.unsettled)
    return None if states is None else {tag: name_of(state) for tag, state in states.items()}


def name_of(state: DeliveryState | None) -> str | None:
    """Return the name of a state, None for null."""
    if state is ACCEPTED:
        return "accepted"
    if isinstance(state, Rejected | Released | Modified):
        return type(state).__name__.lower()
    return None if state is None else type(state).__name__.lower()
