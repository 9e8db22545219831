"""Sending, receiving and browsing with python-qpid-proton, at any AMQP 1.0 broker.

Each operation drives one connection with one link, step by step. Nothing runs in the background
except the thread that reads the bodies to send, so that a slow standard input stops neither
heartbeats nor the confirmation of sent messages.
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
from typing import Any, Final

from proton import (
    Data,
    Delivery,
    Link,
    Message,
    ProtonException,
    Sender,
    SSLDomain,
    Timeout,
    symbol,
)
from proton.reactor import ApplicationEvent, Copy, EventInjector, LinkOption
from proton.utils import BlockingConnection, BlockingReceiver, LinkDetached

from broker.amqp.sasl import EXTERNAL, PLAIN
from broker.cli.broker_url import split_url, without_password
from broker.cli.client_tls import AMQPS, ClientTls
from broker.cli.ending import (
    EXIT_FAILURE,
    EXIT_FORBIDDEN,
    EXIT_NOT_FOUND,
    EXIT_UNREACHABLE,
    ClientError,
)
from broker.cli.refused_connection import why_refused

CONNECT_TIMEOUT_S: Final = 10.0

UNCONFIRMED_MAX: Final = 1000
"""Maximum messages sent and not yet confirmed; more would only fill the broker's buffers."""

READ_AHEAD: Final = 1000
PREFETCH: Final = 100
"""Maximum messages that the broker may send ahead. It takes back those left at the end."""

BROWSED_AT_ONCE: Final = 1000

NOT_FOUND: Final = "amqp:not-found"
UNAUTHORIZED: Final = "amqp:unauthorized-access"

EXISTING_NODE: Final = "jms-broker:existing-node"
"""The source capability that makes this project's broker refuse to create a node. Other brokers
ignore unknown capabilities and follow their settings."""

OUTCOMES: Final[dict[int, str]] = {
    Delivery.REJECTED: "rejected",
    Delivery.RELEASED: "released",
    Delivery.MODIFIED: "modified",
}


class Capabilities(LinkOption):
    """A link option that requests capabilities of the broker's end, such as a kind of node."""

    def __init__(self, *names: str | None) -> None:
        """Take the names of the capabilities; None is left out."""
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


class BodyReader:
    """Bodies that a background thread reads ahead; it wakes a connection that waits for one."""

    def __init__(self, bodies: Iterable[str | bytes], connection: BlockingConnection) -> None:
        self.exhausted = False
        self.failure = ""
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
        # The connection can be waiting for a body only if the queue was empty.
        if self._read.qsize() == 1:
            self._driver.trigger(ApplicationEvent("body_read"))

    @property
    def ready(self) -> bool:
        """Return whether `next` can be called."""
        return not self._read.empty()

    def next(self) -> str | bytes | None:
        """Return the next body, None at the end. Call it only if `ready`.

        A body that could not be read is the end, too; `failure` says why.
        """
        item = self._read.get_nowait()
        if isinstance(item, Exception):
            self.failure = _readable(item)
            item = None
        self.exhausted = item is None
        return item

    def close(self) -> None:
        """Stop waking the connection, so that its event loop can end."""
        self._driver.close()


class Outgoing:
    """Messages sent and not yet settled, oldest first. `count` is the number of accepted ones."""

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
        """Return whether `settle` has something to do."""
        return bool(self._unsettled) and self._unsettled[0].settled

    def send(self, body: str | bytes) -> None:
        delivery = self._sender.send(message_of(body))
        assert isinstance(delivery, Delivery)  # an int for raw bytes only
        self._unsettled.append(delivery)

    def settle(self) -> None:
        """Settle each delivery that the broker has settled; call `confirmed` for each accepted one.

        Raise ClientError if the broker did not accept a message.
        """
        while self.has_news:
            delivery = self._unsettled.popleft()
            delivery.settle()
            if delivery.remote_state != Delivery.ACCEPTED:
                raise ClientError(f"after {self.count} accepted: {_refusal(delivery)}")
            self.count += 1
            self._confirmed()


class Incoming:
    """Messages received from the broker and not yet taken."""

    def __init__(self, receiver: BlockingReceiver) -> None:
        assert receiver.fetcher is not None  # set unless a handler is given
        self._receiver: Final = receiver
        self._fetched: Final = receiver.fetcher

    @property
    def ahead(self) -> int:
        """Return how many messages have arrived or may arrive with the credit given so far."""
        return int(self._receiver.link.credit) + len(self._fetched.incoming)

    def has_next(self, timeout_s: float | None) -> bool:
        """Wait up to `timeout_s` seconds (None: for ever); return whether there is a message.

        Return False at once if a drain ends without a message. Raise Timeout if the broker does not
        answer a drain in time.
        """
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
                raise  # the broker still has to answer the drain
        return bool(self._fetched.has_message)

    def take(self) -> Message:
        """Return the next message. Accept it before taking another."""
        return self._fetched.pop()


def message_of(body: str | bytes) -> Message:
    """Return a message as a JMS client would send it: durable, with an id and a creation time."""
    binary = isinstance(body, bytes)
    # `inferred` makes Proton write bytes as a data section: a BytesMessage
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
    tls: ClientTls | None = None,
) -> int:
    """Send one message for each body; return their number when the broker has accepted all.

    Call `confirmed` for each accepted message. Raise ClientError if a message is not accepted, or
    if the broker is silent for `timeout_s` seconds while a message waits for it.
    """
    with connected(url, timeout_s, tls=tls) as connection:
        sender = connection.create_sender(address, options=Capabilities(capability)).link
        assert isinstance(sender, Sender)
        outgoing = Outgoing(sender, confirmed)
        reader = BodyReader(bodies, connection)
        try:
            _send_all(connection, reader, outgoing, timeout_s)
        except Timeout:
            raise ClientError(
                f"after {outgoing.count} accepted: no answer for {timeout_s:g} s"
            ) from None
        finally:
            reader.close()
        return outgoing.count


def _send_all(
    connection: BlockingConnection, reader: BodyReader, outgoing: Outgoing, timeout_s: float
) -> None:
    """Send all bodies of `reader` through `outgoing`; return when all messages are settled.

    Raise ClientError if one could not be read, once those before it are settled.
    """
    while not (reader.exhausted and outgoing.empty):
        while reader.ready and outgoing.has_room and not reader.exhausted:
            body = reader.next()
            if body is not None:
                outgoing.send(body)
        # The source of the bodies, such as a user who types them, may take any time.
        broker_owes = reader.ready or not outgoing.empty
        connection.wait(
            lambda: (
                outgoing.has_news
                or (reader.ready and outgoing.has_room)
                or (reader.exhausted and outgoing.empty)
            ),
            timeout=timeout_s if broker_owes else None,
        )
        outgoing.settle()
    if reader.failure:
        accepted = f"after {outgoing.count} accepted: " if outgoing.count else ""
        raise ClientError(accepted + reader.failure)


def receive(
    url: str,
    address: str,
    *,
    capability: str | None,
    count: int | None,
    timeout_s: float | None,
    create: bool = False,
    tls: ClientTls | None = None,
) -> Iterator[Message]:
    """Yield messages, each accepted when the next is requested.

    End after `count` messages (None: never), or if none arrives for `timeout_s` seconds (None:
    never). The receiver never gives credit for more than `count`. Raise ClientError if there is no
    such node and `create` is false.
    """
    with connected(url, CONNECT_TIMEOUT_S, tls=tls) as connection:
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
    url: str,
    address: str,
    *,
    capability: str | None,
    count: int | None,
    timeout_s: float,
    tls: ClientTls | None = None,
) -> Iterator[Message]:
    """Yield the messages of a queue and leave them there; end after the last one, or after `count`.

    Raise ClientError if there is no such node, or no answer for `timeout_s` seconds.
    """
    with connected(url, timeout_s, tls=tls) as connection:
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
def connected(
    url: str, timeout_s: float, *, tls: ClientTls | None = None
) -> Iterator[BlockingConnection]:
    """Connect to `url` for the block; raise ClientError for any failure of the connection in it.

    Each wait is limited to `timeout_s` seconds. `tls` has the files for amqps://; without it the
    authorities of this machine are trusted. Raise URLError if `url` names no broker, ClientTlsError
    if a file cannot be used.
    """
    parts = split_url(url)
    used = (tls or ClientTls()) if parts.scheme == AMQPS else None
    options = {} if used is None else _tls_options(used, has_user=bool(parts.username))
    place = without_password(url)
    connection = None
    try:
        connection = BlockingConnection(url, timeout=timeout_s, **options)
        yield connection
    except Timeout:
        raise ClientError(f"{place}: no answer for {timeout_s:g} s", EXIT_UNREACHABLE) from None
    except (ProtonException, OSError, ValueError) as error:
        if connection is not None and isinstance(error, OSError):
            raise  # of standard output: Proton raises its own errors for an open connection
        told = _readable(error)
        reason = why_refused(url, told, timeout_s, tls=used) if connection is None else None
        text = reason or told
        raise ClientError(
            f"{place}: {text}", exit_status_of(text, connected=connection is not None)
        ) from None
    finally:
        if connection is not None:
            _close(connection)


def exit_status_of(text: str, *, connected: bool) -> int:
    """Return the exit status for an error of a connection, that was open if `connected`."""
    if UNAUTHORIZED in text:
        return EXIT_FORBIDDEN
    if NOT_FOUND in text:
        return EXIT_NOT_FOUND
    return EXIT_FAILURE if connected else EXIT_UNREACHABLE


def _tls_options(tls: ClientTls, *, has_user: bool) -> dict[str, Any]:
    """Return Proton's options for `tls`. Raise ClientTlsError if a file cannot be used."""
    options: dict[str, Any] = {"ssl_domain": domain_of(tls)}
    mechanism = mechanism_of(tls, has_user=has_user)
    if mechanism is not None:
        options["allowed_mechs"] = mechanism
    return options


def domain_of(tls: ClientTls) -> SSLDomain:
    """Return the authorities and certificates of `tls` as Proton takes them.

    Raise ClientTlsError if a file cannot be used.
    """
    tls.context()  # Proton would call each wrong file an SSL failure
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    if tls.ca is not None:
        domain.set_trusted_ca_db(str(tls.ca))
    domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
    if tls.cert is not None:
        domain.set_credentials(str(tls.cert), str(tls.key_file()), None)
    return domain


def mechanism_of(tls: ClientTls, *, has_user: bool) -> str | None:
    """Return the only SASL mechanism to log in with, None if Proton may choose.

    Proton prefers EXTERNAL to the user that the URL names.
    """
    if tls.cert is None:
        return None
    return PLAIN if has_user else EXTERNAL


def _close(connection: BlockingConnection) -> None:
    with suppress(ProtonException):  # it is lost already, and the reason is being reported
        connection.close()


def _refusal(delivery: Delivery) -> str:
    """Return how the broker refused a message, with its reason if it gave one."""
    outcome: str = OUTCOMES.get(int(delivery.remote_state), "not accepted")
    condition = delivery.remote.condition
    if condition is None:
        return outcome
    return f"{outcome}: {condition.name}: {condition.description}"


def _readable(error: Exception) -> str:
    """Return the text of an error without the notation that Python and Proton add."""
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    # Proton writes Condition('name', 'text', {info}); neither the names of its own conditions nor
    # the notation of the info help users.
    shown = r"Condition\('([^']*)'(?:, '([^']*)')?(?:, \{.*\})?[^)]*\)"
    text = re.sub(shown, r"\1: \2", str(error))
    text = re.sub(r"\bproton[.:]\w+: ", "", text)
    return re.sub(r"^Connection \S+ (disconnected: )?", "", text)
