"""Limits on the work of a commit, which is done in one turn of the event loop.

A client can send 100,000 small messages in a transaction, to a topic with any number of
subscriptions. Without a limit, their commit would stop the broker for minutes and take all memory.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from broker.message import Message
from broker.routing.errors import LimitReached
from broker.routing.queues.node import Node
from broker.routing.topics.topic import Topic

COPIES_MAX: Final[i64] = 500_000
"""Maximum entries of subscriptions for all messages of a commit: 0.3 s of work and 60 MB."""

EVALUATIONS_MAX: Final[i64] = 100_000
"""Maximum evaluations of selectors and other filters for them: 0.1 s, at worst 1 s."""


def check_work(posted: list[tuple[Node, Message]]) -> None:
    """Raise LimitReached if it takes too long to publish `posted`, all at one moment."""
    copies: i64 = 0
    evaluations: i64 = 0
    for node, _ in posted:
        if isinstance(node, Topic):
            copies += i64(len(node.subscriptions))
            evaluations += node.bindings.price_max()
    if copies > COPIES_MAX or evaluations > EVALUATIONS_MAX:
        _count(posted)


def _count(posted: list[tuple[Node, Message]]) -> None:
    """Raise LimitReached if the queues that topics select, or their evaluations, are too many."""
    copies: i64 = 0
    evaluations: i64 = 0
    for node, message in posted:
        if isinstance(node, Topic):
            copies += i64(len(node.destinations(message)))
            if node.bindings.are_selective:
                evaluations += node.bindings.price
            if copies > COPIES_MAX:
                raise LimitReached(
                    f"a commit has at most {COPIES_MAX} messages for subscriptions, each message"
                    " counted for each of them: commit fewer messages at a time"
                )
            if evaluations > EVALUATIONS_MAX:
                raise LimitReached(
                    f"the messages of a commit are compared with at most {EVALUATIONS_MAX}"
                    " selectors: commit fewer messages at a time"
                )
