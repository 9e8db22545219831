"""Measures of leaked memory: one that holds for compiled code, and one for Python's classes."""

import gc
import sys
from collections.abc import Callable
from typing import Final

from broker.amqp.connection import Connection
from broker.amqp.delivery import Delivery
from broker.amqp.link import Link
from broker.amqp.output import Output
from broker.amqp.session import Session
from broker.amqp.unsettled import UnsettledDeliveries
from broker.links.incoming import ProducerEndpoint
from broker.links.outgoing import ConsumerEndpoint
from broker.links.peer import Peer
from broker.log_events import Notice
from broker.message import Message
from broker.routing.entries.entry import DeliveryHistory
from tests.support.broker import RecordingWatcher

WARM_UP: Final = 3
REPETITIONS: Final = 8
ATTEMPTS: Final = 2

ACYCLIC: Final = (Delivery, DeliveryHistory, Message)
"""Acyclic classes, with QueueEntry, which is a Delivery; compiled, the collector ignores them."""


ENGINE: Final = (
    Peer,
    Connection,
    Session,
    Link,
    ConsumerEndpoint,
    ProducerEndpoint,
    UnsettledDeliveries,
    Output,
)


class Quiet(RecordingWatcher):
    """A watcher that records errors only: other records would count as leaked memory."""

    def opened(self, peer: Peer) -> None:
        """Record nothing."""

    def refused(self, peer: Peer, reason: str) -> None:
        """Record nothing."""

    def closed(self, peer: Peer, reason: str) -> None:
        """Record nothing."""

    def noticed(self, notice: Notice) -> None:
        """Record nothing."""


def growth(act: Callable[[], None]) -> float:
    """Return the average number of memory blocks that one `act` leaves; a leaked object is one.

    It is the least of ATTEMPTS measurements: a leak is in each of them, what another thread of the
    process allocates meanwhile is not.
    """
    for _ in range(WARM_UP):
        act()
    return min(_measured(act) for _ in range(ATTEMPTS))


def _measured(act: Callable[[], None]) -> float:
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(REPETITIONS):
        act()
    gc.collect()
    return (sys.getallocatedblocks() - before) / REPETITIONS


def objects_per_message() -> int:
    """Return the number of unfrozen objects of acyclic classes; meaningless in compiled code."""
    return sum(isinstance(each, ACYCLIC) for each in gc.get_objects())


def engine_objects() -> int:
    """Return the number of objects of which connections consist, compiled or not."""
    return sum(isinstance(each, ENGINE) for each in gc.get_objects())
