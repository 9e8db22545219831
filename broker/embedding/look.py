"""Messages in a queue, read without a link: by a browser that needs no credit."""

from typing import Final, final

from broker.embedding.message import MessageView, view
from broker.links.container import Container
from broker.message import Message
from broker.routing.entries.entry import QueueEntry
from broker.routing.entries.participants import Consumer
from broker.routing.queues.node import QUEUE, TOPIC
from broker.routing.queues.queue import Queue
from broker.routing.topics.topic import Topic


@final
class Look(Consumer):
    """A browser that records every message it is given, with its delivery-count, in `seen`."""

    def __init__(self) -> None:
        self.seen: Final[list[tuple[Message, int]]] = []

    def has_room(self) -> bool:
        return True

    def has_credit(self) -> bool:
        return True

    def deliver(self, entry: QueueEntry) -> None:  # noqa: ARG002 - required of consumers
        raise AssertionError("a browser acquires nothing")

    def browsed(self, entry: QueueEntry) -> None:
        self.seen.append((entry.message, int(entry.delivery_count)))

    def nothing_waits(self) -> None:
        pass

    def node_deleted(self) -> None:
        pass


def waiting_at(address: str, container: Container) -> list[MessageView]:
    """Return the ready messages at `address`: of the queue, then of the topic's subscriptions."""
    return [
        view(message, delivery_count)
        for queue in _queues_of(address, container)
        for message, delivery_count in browsed(queue, container)
    ]


def browsed(queue: Queue, container: Container) -> list[tuple[Message, int]]:
    """Return the ready messages of a queue as the broker has them, with their delivery-counts."""
    look = Look()
    queue.attach_browser(look)
    queue.consumer_ready(look, drain=False)
    container.run_round()
    queue.detach_consumer(look, queue, container.journal.batch)
    return look.seen


def scheduled_at(address: str, container: Container) -> list[MessageView]:
    """Return the messages at `address` that wait for their delivery time.

    Of each queue the earliest is first.
    """
    return [
        view(entry.message, entry.delivery_count)
        for queue in _queues_of(address, container)
        for entry in queue.state.scheduled()
    ]


def _queues_of(address: str, container: Container) -> list[Queue]:
    queue = container.router.find_named(address, QUEUE)
    topic = container.router.find_named(address, TOPIC)
    queues = [queue] if isinstance(queue, Queue) else []
    return [*queues, *topic.subscriptions] if isinstance(topic, Topic) else queues
