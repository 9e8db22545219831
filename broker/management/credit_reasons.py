"""Decide why a producer gets no credit, from facts about the broker, its node and itself.

The first reason that applies is the one that an operator has to remove first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from broker.management.flow_reasons import DIFFERENT, DRAINING, reason_of_all

HAS_CREDIT: Final = "has-credit"
NO_PRODUCER: Final = "no-producer"
DISK: Final = "disk"
STORE_BEHIND: Final = "store-behind"
MEMORY: Final = "memory"
USER_LIMIT: Final = "user-limit"
FULL: Final = "full"
PROMISED: Final = "promised"
PACED: Final = "paced"
OUTCOMES: Final = "outcomes"
PASSING: Final = "passing"

TEXTS: Final = {
    HAS_CREDIT: "the client may send, at least on one link: it sends nothing, or waits for the"
    " outcomes of what it has sent",
    NO_PRODUCER: "no producer is attached to this node: start one; `jms-broker explain route` says"
    " whether its address and kind lead here. A link to the anonymous relay belongs to no node",
    DISK: "the disk of the store is nearly full, or the store is away: make room, or start the"
    " database; the log says which",
    DRAINING: "the broker drains, and takes no messages any more",
    STORE_BEHIND: "more messages wait to be written than the disk writes in time: it needs a faster"
    " disk, or fewer messages",
    MEMORY: "more than three quarters of memory_max are in use: consumers must settle, or the"
    " limit must rise; `jms-broker store info` shows what uses it",
    USER_LIMIT: "the user has used up its rate of messages or bytes, or its backlog: `[[limit]]` in"
    " the rules file sets them",
    FULL: "the node is full: consume or purge, or raise max_messages or max_bytes. A topic is as"
    " full as its fullest subscription",
    PROMISED: "other producers have credit for all the room that is left: they must use it, or"
    " close",
    PACED: "the consumers are far behind, so each producer waits for 10 ms at a time: start more"
    " consumers, or raise pacing_backlog",
    OUTCOMES: "the producer has as many messages under way as it may have: it gets credit as their"
    " outcomes are reported",
    PASSING: "nothing holds it back now: it has used its credit a moment ago. Ask again",
    DIFFERENT: "no producer has credit, each for a reason of its own",
}
"""The text for each reason: what is so, and what to do."""


@dataclass(frozen=True, kw_only=True)
class CreditFacts:
    """The state of a producer, and of what it depends on.

    `shortage` is the reason for which no producer of the broker gets credit, None for no such
    reason. `room` is for how many more messages the node has room beside the `promised` ones, those
    for which producers have credit; None for a node without a limit that makes producers wait. The
    producer may have `window` messages under way, 0 for any number, and has `unsettled`.
    """

    credit: int
    shortage: str | None = None
    is_over_quota: bool = False
    room: int | None = None
    promised: int = 0
    is_paced: bool = False
    window: int = 0
    unsettled: int = 0


def reason_of_producer(facts: CreditFacts) -> str:
    """Return why a producer has no credit; HAS_CREDIT if it has some."""
    if facts.credit > 0:
        return HAS_CREDIT
    if facts.shortage is not None:
        return facts.shortage
    if facts.is_over_quota:
        return USER_LIMIT
    if facts.room == 0:
        return PROMISED if facts.promised > 0 else FULL
    if facts.is_paced:
        return PACED
    return OUTCOMES if 0 < facts.window <= 2 * facts.unsettled else PASSING


def reason_of_producers(reasons: list[str]) -> str:
    """Return the reason of a node whose producers have these `reasons`."""
    return reason_of_all(reasons, served=HAS_CREDIT) if reasons else NO_PRODUCER
