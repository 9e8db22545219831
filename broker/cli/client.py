"""Sending, receiving and browsing with python-qpid-proton, at any AMQP 1.0 broker.

One connection, one link, driven step by step: nothing runs in the background
but the thread that reads what to send, so that a slow standard input stops
neither heartbeats nor the confirmation of what was sent.
"""

from __future__ import annotations

import queue
import re
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from proton import (
    Data,
    Delivery,
    Link,
    Message,
    ProtonException,
    Sender,
    Timeout,
    symbol,
)
from proton.reactor import ApplicationEvent, Copy, EventInjector, LinkOption
from proton.utils import BlockingConnection, BlockingReceiver, LinkDetached

from broker.cli.broker_url import split_url, without_password
from broker.cli.ending import EXIT_FAILURE, EXIT_NOT_FOUND

CONNECT_TIMEOUT_S: Final = 10.0

UNCONFIRMED_MAX: Final = 1000
"""Messages on the way to the broker; more would only fill its buffers."""

READ_AHEAD: Final = 1000
PREFETCH: Final = 100
"""Messages the broker may hand us ahead. What is left of them at the end goes back to it."""

BROWSED_AT_ONCE: Final = 1000

NOT_FOUND: Final = "amqp:not-found"

EXISTING_NODE: Final = "jms-broker:existing-node"
"""The capability of a source by which this project's broker refuses to create a node. Others
ignore what they do not know, and do as their settings say."""

OUTCOMES: Final[dict[int, str]] = {
    Delivery.REJECTED: "rejected",
    Delivery.RELEASED: "released",
    Delivery.MODIFIED: "modified",
}


class ClientError(Exception):
    """What went wrong, in words for whoever typed the command."""

    def __init__(self, text: str, exit_status: int = EXIT_FAILURE) -> None:
        super().__init__(text)
        self.exit_status: Final = exit_status


class Capabilities(LinkOption):
    """Names capabilities of the broker's end of a link, such as the kind of node that it is."""

    def __init__(self, *names: str | None) -> None:
        """Those that are None are left out."""
        self._names: Final = [name for name in names if name is not None]

    def apply(self, link: Link) -> None:
        if not self._names:
            return
        array = (link.target if link.is_sender else link.source).capabilities
        array.put_array(False, Data.SYMBOL)
        array.enter()
        for each in self._names:
            array.put_symbol(symbol(each))
        array.exit()


class Feed:
    """Bodies read ahead by a thread of its own; the connection's wait is woken for each."""

    def __init__(self, bodies: Iterable[str | bytes], connection: BlockingConnection) -> None:
        self.exhausted = False
        self._bodies: Final = bodies
        self._read: Final[queue.Queue[str | bytes | Exception | None]] = queue.Queue(READ_AHEAD)
        self._driver: Final = EventInjector()
        connection.container.selectable(self._driver)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            for body in self._bodies:
                self._put(body)
        except (OSError, ValueError) as error:
            self._put(error)
        else:
            self._put(None)

    def _put(self, item: str | bytes | Exception | None) -> None:
        self._read.put(item)
        # Somebody can only be asleep while the queue was empty.
        if self._read.qsize() == 1:
            self._driver.trigger(ApplicationEvent("fed"))

    @property
    def ready(self) -> bool:
        """Whether `next` has an answer."""
        return not self._read.empty()

    def next(self) -> str | bytes | None:
        """The next body; None at the end. To be called when `ready`."""
        item = self._read.get_nowait()
        if isinstance(item, Exception):
            raise ClientError(_readable(item)) from None
        self.exhausted = item is None
        return item

    def close(self) -> None:
        """Let the connection's loop end."""
        self._driver.close()


class Outgoing:
    """Messages under way to the broker, the oldest first."""

    def __init__(self, sender: Sender, confirmed: Callable[[], None]) -> None:
        self.count = 0
        self._sender: Final = sender
        self._confirmed: Final = confirmed
        self._unsettled: Final[deque[Delivery]] = deque()

    @property
    def empty(self) -> bool:
        return not self._unsettled

    @property
    def has_room(self) -> bool:
        return self._sender.credit > 0 and len(self._unsettled) < UNCONFIRMED_MAX

    @property
    def has_news(self) -> bool:
        """Whether `settle` has something to do."""
        return bool(self._unsettled) and self._unsettled[0].settled

    def send(self, body: str | bytes) -> None:
        delivery = self._sender.send(message_of(body))
        assert isinstance(delivery, Delivery)  # an int for raw bytes only
        self._unsettled.append(delivery)

    def settle(self) -> None:
        """Count what the broker has taken; ClientError for what it has not."""
        while self.has_news:
            delivery = self._unsettled.popleft()
            delivery.settle()
            if delivery.remote_state != Delivery.ACCEPTED:
                raise ClientError(f"after {self.count} accepted: {_refusal(delivery)}")
            self.count += 1
            self._confirmed()


class Incoming:
    """Messages that have come from the broker and wait to be taken."""

    def __init__(self, receiver: BlockingReceiver) -> None:
        assert receiver.fetcher is not None  # there is one where no handler was given
        self._receiver: Final = receiver
        self._fetched: Final = receiver.fetcher

    @property
    def ahead(self) -> int:
        """How many have come or may come without our asking for more."""
        return int(self._receiver.link.credit) + len(self._fetched.incoming)

    def has_next(self, timeout_s: float | None) -> bool:
        """Whether one comes within `timeout_s` and before the broker says there are no more."""
        link = self._receiver.link
        try:
            self._receiver.connection.wait(
                lambda: (
                    bool(self._fetched.has_message)
                    or (link.drain_mode and not link.draining() and not link.queued)
                ),
                timeout=timeout_s,
            )
        except Timeout:
            if link.drain_mode:
                raise  # the broker owes an answer
        return bool(self._fetched.has_message)

    def take(self) -> Message:
        """The next. To be accepted before another is taken."""
        return self._fetched.pop()


def message_of(body: str | bytes) -> Message:
    """A message as a JMS client would send it: durable, with an id and the time."""
    binary = isinstance(body, bytes)
    # `inferred` writes bytes as a data section: a BytesMessage
    message = Message(body=body, durable=True, inferred=binary)
    message.id = f"ID:{uuid.uuid4()}"
    message.creation_time = time.time()
    return message


def send(
    url: str,
    address: str,
    bodies: Iterable[str | bytes],
    *,
    capability: str | None,
    timeout_s: float,
    confirmed: Callable[[], None],
) -> int:
    """Send one message for each body; how many the broker has accepted: all.

    Calls `confirmed` for each. ClientError where one is not accepted, or where
    the broker says nothing for `timeout_s` while something waits for it.
    """
    with connected(url, timeout_s) as connection:
        sender = connection.create_sender(address, options=Capabilities(capability)).link
        assert isinstance(sender, Sender)
        outgoing = Outgoing(sender, confirmed)
        feed = Feed(bodies, connection)
        try:
            _pump(connection, feed, outgoing, timeout_s)
        except Timeout:
            raise ClientError(
                f"after {outgoing.count} accepted: no answer for {timeout_s:g} s"
            ) from None
        finally:
            feed.close()
        return outgoing.count


def _pump(connection: BlockingConnection, feed: Feed, outgoing: Outgoing, timeout_s: float) -> None:
    """Move everything from `feed` to `outgoing`, until all of it is settled."""
    while not (feed.exhausted and outgoing.empty):
        while feed.ready and outgoing.has_room and not feed.exhausted:
            body = feed.next()
            if body is not None:
                outgoing.send(body)
        # Whoever types the bodies may take all the time there is.
        broker_owes = feed.ready or not outgoing.empty
        connection.wait(
            lambda: (
                outgoing.has_news
                or (feed.ready and outgoing.has_room)
                or (feed.exhausted and outgoing.empty)
            ),
            timeout=timeout_s if broker_owes else None,
        )
        outgoing.settle()


def receive(
    url: str,
    address: str,
    *,
    capability: str | None,
    count: int | None,
    timeout_s: float | None,
    create: bool = False,
) -> Iterator[Message]:
    """Messages, each accepted when the next is asked for.

    Ends after `count`, or when none has come for `timeout_s`. The broker is
    never asked for more than `count`. Raises ClientError if there is no such node
    and `create` is false.
    """
    with connected(url, CONNECT_TIMEOUT_S) as connection:
        wanted_node = Capabilities(capability, None if create else EXISTING_NODE)
        receiver = _receiver(connection, address, wanted_node)
        incoming = Incoming(receiver)
        taken = 0
        while count is None or taken < count:
            wanted = PREFETCH if count is None else min(PREFETCH, count - taken)
            if incoming.ahead < (wanted + 1) // 2:
                receiver.link.flow(wanted - incoming.ahead)
            if not incoming.has_next(timeout_s):
                return
            yield incoming.take()
            receiver.accept()
            taken += 1


def browse(
    url: str, address: str, *, capability: str | None, count: int | None, timeout_s: float
) -> Iterator[Message]:
    """The messages in a queue, which stay there. Ends with the last, or after `count`."""
    with connected(url, timeout_s) as connection:
        receiver = _receiver(connection, address, Copy(), Capabilities(capability, EXISTING_NODE))
        incoming = Incoming(receiver)
        taken = 0
        while count is None or taken < count:
            batch = BROWSED_AT_ONCE if count is None else min(BROWSED_AT_ONCE, count - taken)
            before = taken
            receiver.link.drain(batch)
            while taken < before + batch and incoming.has_next(timeout_s):
                yield incoming.take()
                receiver.accept()
                taken += 1
            if taken < before + batch:
                return


def _receiver(
    connection: BlockingConnection, address: str, *options: LinkOption
) -> BlockingReceiver:
    """Return a receiver without credit; raise ClientError if there is no node to receive from."""
    try:
        return connection.create_receiver(address, credit=0, options=list(options))
    except LinkDetached as refusal:
        if refusal.condition != NOT_FOUND:
            raise
        raise ClientError(
            f"there is no queue or topic {address!r}: send to it first, or create it with"
            f" `jms-broker node create` ({_readable(refusal)})",
            EXIT_NOT_FOUND,
        ) from None


@contextmanager
def connected(url: str, timeout_s: float) -> Iterator[BlockingConnection]:
    """A connection to `url`. Whatever goes wrong within becomes ClientError.

    Raises URLError if `url` is none of a broker.
    """
    split_url(url)
    place = without_password(url)
    connection = None
    try:
        connection = BlockingConnection(url, timeout=timeout_s)
        yield connection
    except Timeout:
        raise ClientError(f"{place}: no answer for {timeout_s:g} s") from None
    except (ProtonException, OSError, ValueError) as error:
        raise ClientError(f"{place}: {_readable(error)}") from None
    finally:
        if connection is not None:
            _close(connection)


def _close(connection: BlockingConnection) -> None:
    with suppress(ProtonException):  # it has gone already, and the reason is being told
        connection.close()


def _refusal(delivery: Delivery) -> str:
    """How the broker refused a message, with its reason where it gave one."""
    outcome: str = OUTCOMES.get(int(delivery.remote_state), "not accepted")
    condition = delivery.remote.condition
    if condition is None:
        return outcome
    return f"{outcome}: {condition.name}: {condition.description}"


def _readable(error: Exception) -> str:
    """What happened, without Python's and proton's own ways of writing it."""
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    # Condition('name', 'text'), where the names of proton's own conditions tell nothing
    text = re.sub(r"Condition\('([^']*)'(?:, '([^']*)')?[^)]*\)", r"\1: \2", str(error))
    text = re.sub(r"\bproton[.:]\w+: ", "", text)
    return re.sub(r"^Connection \S+ (disconnected: )?", "", text)
