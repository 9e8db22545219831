"""Decide why a consumer gets no message, from facts about its queue and itself.

The first reason that applies is the one that an operator has to remove first.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

FLOWS: Final = "flows"
DIFFERENT: Final = "different"
NO_CONSUMER: Final = "no-consumer"
EMPTY: Final = "empty"
SCHEDULED: Final = "scheduled"
PAUSED: Final = "paused"
UNSETTLED: Final = "unsettled"
HELD: Final = "held"
DRAINING: Final = "draining"
NO_CREDIT: Final = "no-credit"
OUTPUT_FULL: Final = "output-full"
STANDS_BY: Final = "stands-by"
NOT_SELECTED: Final = "not-selected"
GROUP_HELD: Final = "group-held"
REFUSED: Final = "refused"
NOT_LOADED: Final = "not-loaded"

TEXTS: Final = {
    FLOWS: "messages flow, at least to one consumer",
    DIFFERENT: "no consumer gets a message, each for a reason of its own",
    NO_CONSUMER: "no consumer is attached: start one; `jms-broker explain attach` says whether its"
    " address and kind lead here",
    EMPTY: "there is no message, or consumers take each at once: `jms-broker explain route` says"
    " where messages of a producer go",
    SCHEDULED: "all messages wait for their delivery time",
    PAUSED: "all messages have failed, and wait for `redelivery_delay_ms` of their address until"
    " they are delivered again",
    UNSETTLED: "consumers hold all messages and have not settled them: they must acknowledge them,"
    " or close",
    HELD: "the queue holds back messages that cannot be moved to their dead-letter or expiry node:"
    " look at their reason, and make room there",
    DRAINING: "the broker drains, and delivers nothing any more",
    NO_CREDIT: "the client grants no credit: it does not ask for messages, or has as many as it"
    " wants and settles none",
    OUTPUT_FULL: "the client has credit, and reads nothing, or its session window or its memory"
    " for unsettled messages is used up",
    STANDS_BY: "another consumer (`served`) has the queue for itself, and this one stands by until"
    " it ends",
    NOT_SELECTED: "the selector of the consumer, or no-local, selects none of the messages",
    GROUP_HELD: "the messages belong to groups that other consumers (`served`) have, until these"
    " end",
    REFUSED: "the consumer has released or refused the messages, and does not get them again, or"
    " only after a pause",
    NOT_LOADED: "the messages are being loaded from the store: ask again",
}
"""The text for each reason: what is so, and what to do."""


@dataclass(frozen=True, kw_only=True)
class QueueFacts:
    """The messages of a queue by their state. `is_draining`: the broker delivers nothing.

    `is_blocked`: so many messages could not be moved that none is delivered.
    """

    ready: int
    scheduled: int
    paused: int
    acquired: int
    held: int
    consumers: int
    is_draining: bool = False
    is_blocked: bool = False


@dataclass(frozen=True, kw_only=True)
class ConsumerFacts:
    """The state of a consumer, and what of the `examined` ready messages may go to it.

    `selected` pass its filter, `free` of them are in no group that another consumer has, and
    `offered` of these are neither refused by it nor paused.
    """

    has_credit: bool
    has_room: bool
    stands_by: bool
    examined: int
    selected: int
    free: int
    offered: int


def reason_of_queue(facts: QueueFacts) -> str:
    """Return why no consumer of a queue gets a message; FLOWS if that depends on the consumer."""
    if facts.is_draining:
        return DRAINING
    if facts.is_blocked:
        return HELD
    if facts.ready == 0:
        for count, reason in (
            (facts.acquired, UNSETTLED),
            (facts.scheduled, SCHEDULED),
            (facts.paused, PAUSED),
            (facts.held, HELD),
        ):
            if count > 0:
                return reason
        return EMPTY
    return NO_CONSUMER if facts.consumers == 0 else FLOWS


def reason_of_all(reasons: Collection[str], served: str = FLOWS) -> str:
    """Return the reason of a node whose links have these `reasons`: `served` if one of them has it.

    The node is a queue with ready messages, whose links are consumers, or has producers.
    """
    if served in reasons:
        return served
    return next(iter(reasons)) if len(set(reasons)) == 1 else DIFFERENT


def reason_of_consumer(facts: ConsumerFacts) -> str:
    """Return why a consumer gets none of the messages that are ready; FLOWS if it gets some."""
    if facts.stands_by:
        return STANDS_BY
    if not facts.has_credit:
        return NO_CREDIT
    if facts.examined == 0:
        return NOT_LOADED
    if facts.selected == 0:
        return NOT_SELECTED
    if facts.free == 0:
        return GROUP_HELD
    if facts.offered == 0:
        return REFUSED
    return FLOWS if facts.has_room else OUTPUT_FULL
