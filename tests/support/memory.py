"""What is left in memory: a measure that holds for compiled code, and one for Python's classes."""

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
from broker.message import Message
from broker.routing.entries.entry import DeliveryHistory
from tests.support.broker import RecordingWatcher

WARM_UP: Final = 3
REPETITIONS: Final = 8

ACYCLIC: Final = (Delivery, DeliveryHistory, Message)
"""With QueueEntry, which is a Delivery. Compiled, the collector does not know of them."""


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
    """Remembers errors, and nothing else: its notes would count as left behind."""

    def opened(self, peer: Peer) -> None:
        """Not noted."""

    def refused(self, peer: Peer, reason: str) -> None:
        """Not noted."""

    def closed(self, peer: Peer, reason: str) -> None:
        """Not noted."""

    def noticed(self, notice: str) -> None:
        """Not noted."""


def growth(act: Callable[[], None]) -> float:
    """The memory blocks that one `act` leaves, on the average; a leak of one object is one."""
    for _ in range(WARM_UP):
        act()
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(REPETITIONS):
        act()
    gc.collect()
    return (sys.getallocatedblocks() - before) / REPETITIONS


def objects_per_message() -> int:
    """How many there are of acyclic classes, apart from those that were frozen. Not compiled."""
    return sum(isinstance(each, ACYCLIC) for each in gc.get_objects())


def engine_objects() -> int:
    """How many there are of the objects that a connection consists of. Compiled or not."""
    return sum(isinstance(each, ENGINE) for each in gc.get_objects())
