"""The broker by AMQP, from a driver or an executor: requests to `$management`, and messages as
the bytes that they are. Written on python-qpid-proton, which decodes none of them.
"""

from __future__ import annotations

import ssl
import time
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, cast, final
from urllib.parse import unquote, urlsplit, urlunsplit

from proton import (
    Described,
    Event,
    Handler,
    Link,
    Message,
    ProtonException,
    SSLDomain,
    int32,
    symbol,
)
from proton.reactor import AtMostOnce, Copy, Filter, LinkOption
from proton.utils import BlockingConnection, LinkDetached

from broker.amqp.decode import descriptor_at, open_compound, skip, take_value
from broker.amqp.descriptors import HEADER
from broker.amqp.errors import Fault
from broker.amqp.types import Symbol, Timestamp
from pipeline.errors import (
    BrokerError,
    FencedError,
    GoneError,
    UnreachableError,
    error_of,
)
from pipeline.options import Options

MANAGEMENT: Final = "$management"
DELIVERY_ANNOTATIONS: Final = 0x71
POSITION: Final = "x-opt-position"
ENQUEUED: Final = "x-opt-enqueued-time"

CREDIT: Final = 2000
"""Messages that a reader has the broker send ahead."""

DIAL_S: Final = 10.0
"""So long one of several brokers may take to let us in, before the next one is asked."""

FAREWELL_S: Final = 1.0
"""So long a broker may take to answer our close; one that is gone never does."""

REDIAL_S: Final = 0.25
"""So long after a failure the brokers are asked again."""

FAILURES_FROM: Final = 400


@final
class _TargetAddress(LinkOption):
    """Names our end of a link to receive on: where requests say that responses go."""

    def __init__(self, address: str) -> None:
        self._address: Final = address

    def apply(self, link: Link) -> None:
        link.target.address = self._address


def connect(options: Options) -> BlockingConnection:
    """A connection to the first broker that lets us in; UnreachableError where none does."""
    failures = []
    for url in options.urls:
        try:
            return _dial(url, options)
        except (ProtonException, OSError, ValueError) as error:
            failures.append(f"{_shown(url)}: {_readable(error)}")
    raise UnreachableError("no broker: " + "; ".join(failures))


def _dial(url: str, options: Options) -> BlockingConnection:
    parts = urlsplit(url)
    user = options.text("username")
    password = options.text("password")
    if user is None and parts.username is not None:
        user, password = unquote(parts.username), unquote(parts.password or "")
    place = urlunsplit((parts.scheme, _place(url), "", "", ""))
    named: dict[str, object] = {"user": user, "password": password}
    named["allowed_mechs"] = options.text("saslMechanism")
    named["virtual_host"] = options.text("amqp.virtualHost")
    given: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    timeout_s = options.number("amqp.timeout") / 1000
    connection = BlockingConnection(
        place,
        timeout=min(timeout_s, DIAL_S),
        heartbeat=options.number("amqp.heartbeat") / 1000 or None,
        ssl_domain=_tls(options) if parts.scheme == "amqps" else None,
        # a password goes where the user said it should, as with every client
        allow_insecure_mechs=True,
        **given,
    )
    connection.timeout = timeout_s
    return connection


def _place(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _shown(url: str) -> str:
    return f"{urlsplit(url).scheme}://{_place(url)}"


def _tls(options: Options) -> SSLDomain:
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    trusted = options.text("tls.caFile") or ssl.get_default_verify_paths().cafile
    if trusted is not None:
        domain.set_trusted_ca_db(trusted)
    domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
    certificate, key = options.text("tls.certFile"), options.text("tls.keyFile")
    if certificate is not None and key is not None:
        domain.set_credentials(certificate, key, None)
    return domain


@contextmanager
def connected(options: Options) -> Iterator[BlockingConnection]:
    """A connection for the block. What the broker does to it becomes BrokerError."""
    connection = connect(options)
    try:
        yield connection
    except (ProtonException, OSError) as error:
        raise _told(error) from error
    finally:
        _close(connection)


def _close(connection: BlockingConnection) -> None:
    connection.timeout = FAREWELL_S
    with suppress(ProtonException, OSError):  # it has gone already
        connection.close()


def _told(error: Exception) -> BrokerError:
    condition = error.condition if isinstance(error, LinkDetached) else None
    text = _readable(error)
    if condition == "amqp:not-found":
        return GoneError(text)
    if condition == "amqp:resource-locked":
        return FencedError(text)
    return BrokerError(text)


def _readable(error: Exception) -> str:
    return str(error) or type(error).__name__


@final
class Management:
    """Requests to `$management`. A connection that is lost is made again, and what was asked is
    asked again: so nothing may be asked here that is not the same when it is done twice."""

    def __init__(self, options: Options) -> None:
        self._options: Final = options
        self._timeout_s: Final = options.number("amqp.timeout") / 1000
        self._links: _Links | None = None

    def ask(
        self,
        operation: str,
        entity: str,
        name: str | None,
        /,
        *,
        properties: Mapping[str, object] | None = None,
        patience_ms: int = 0,
        **arguments: object,
    ) -> Mapping[str, object]:
        """The body of the response; BrokerError where the broker refuses, or is not there.

        `patience_ms` is how much longer than others it may take. Arguments that are None are
        left out.
        """
        given = {key: value for key, value in arguments.items() if value is not None}
        asked = {"operation": operation, "type": entity, **(properties or {})}
        if name is not None:
            asked["name"] = name
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                if self._links is None:
                    self._links = _Links(connect(self._options))
                response = self._links.answer(
                    asked, given, timeout_s=self._timeout_s + patience_ms / 1000
                )
                return _checked(operation, entity, response)
            except UnreachableError:
                if time.monotonic() > deadline:
                    raise
            except (ProtonException, OSError) as error:
                self.close()
                if time.monotonic() > deadline:
                    raise _told(error) from error
            time.sleep(REDIAL_S)

    def entities(self, entity: str, count: int = 100) -> Mapping[str, object]:
        """The first of a kind; BrokerError where the broker knows no such kind."""
        return self.ask(
            "QUERY",
            "org.amqp.management",
            "self",
            properties={"entityType": entity, "offset": int32(0), "count": int32(count)},
        )

    def close(self) -> None:
        """Let go of the connection; the next request makes another."""
        links, self._links = self._links, None
        if links is not None:
            _close(links.connection)


@contextmanager
def opened(options: Options) -> Iterator[Management]:
    """Requests for the block."""
    management = Management(options)
    try:
        yield management
    finally:
        management.close()


@final
class _Links:
    """Both links of the requests of one connection."""

    def __init__(self, connection: BlockingConnection) -> None:
        self.connection: Final = connection
        self._reply_to: Final = f"reply-{uuid.uuid4()}"
        self._sender: Final = connection.create_sender(MANAGEMENT)
        self._receiver: Final = connection.create_receiver(
            MANAGEMENT, credit=1, options=_TargetAddress(self._reply_to)
        )

    def answer(
        self, asked: Mapping[str, object], given: Mapping[str, object], *, timeout_s: float
    ) -> Message:
        self._sender.send(
            Message(properties=dict(asked), body=dict(given), reply_to=self._reply_to)
        )
        response = self._receiver.receive(timeout=timeout_s)
        self._receiver.accept()
        return response


def _checked(operation: str, entity: str, response: Message) -> Mapping[str, object]:
    told = cast("Mapping[str, object]", response.properties)
    status = told.get("statusCode")
    if not isinstance(status, int) or status >= FAILURES_FROM:
        text = f"{operation} {entity}: {told.get('statusDescription', 'no status')}"
        raise error_of(status if isinstance(status, int) else 0, text)
    body = response.body
    return body if isinstance(body, dict) else {}


def pages(
    management: Management, entity: str, /, *, count: int, behind: int = 0, **arguments: Any
) -> Iterator[tuple[Sequence[str], Sequence[Sequence[object]], Mapping[str, object]]]:
    """Entities of a kind, page by page, behind one another: names, rows, and the whole answer.

    Ends where the broker says that it is complete.
    """
    while True:
        body = management.ask(
            "QUERY",
            "org.amqp.management",
            "self",
            properties={"entityType": entity, "offset": int32(0), "count": int32(count)},
            behind=behind,
            **arguments,
        )
        names = cast("Sequence[str]", body["attributeNames"])
        yield names, cast("Sequence[Sequence[object]]", body["results"]), body
        if body.get("complete"):
            return
        behind = cast("int", body["next"])


# ---- messages


@final
class Received:
    """A message as a consumer would get it, and what the broker told beside it."""

    def __init__(self, data: bytes, position: int | None, enqueued_ms: int | None) -> None:
        self.data: Final = data
        self.position: Final = position
        self.enqueued_ms: Final = enqueued_ms


class _Arrivals(Handler):
    """What comes on one link, as bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: Final[deque[bytes]] = deque()

    def on_delivery(self, event: Event) -> None:
        delivery = event.delivery
        assert delivery is not None
        if delivery.readable and not delivery.partial:
            link = delivery.link
            data = link.recv(delivery.pending)
            link.advance()
            delivery.settle()
            self.waiting.append(bytes(data or b""))

    def on_link_remote_close(self, event: Event) -> None:
        link = event.link
        assert link is not None
        link.close()
        raise LinkDetached(link)


def copied(
    connection: BlockingConnection,
    address: str,
    filters: Mapping[str, Described],
    *,
    needed: Sequence[str],
) -> Iterator[bytes]:
    """All messages that the broker shows at `address`, encoded, in order; they stay there.

    `filters` are described values by their keys, as those below are. BrokerError where the broker
    does not know one that is `needed`: it would show more than that.
    """
    arrivals = _Arrivals()
    options = [Copy(), AtMostOnce(), Filter({symbol(key): told for key, told in filters.items()})]
    receiver = connection.create_receiver(address, credit=0, handler=arrivals, options=options)
    link = receiver.link
    known = _filters_of(link)
    for key in needed:
        if key not in known:
            raise BrokerError(f"the broker does not know the filter {key}")
    waiting = arrivals.waiting
    while True:
        link.drain(CREDIT)
        came = 0
        while came < CREDIT:
            connection.wait(
                lambda: bool(waiting) or (not link.draining() and not link.queued),
                msg=f"reading {address}",
            )
            if not waiting:
                break
            while waiting:
                came += 1
                yield waiting.popleft()
        if came < CREDIT:
            link.close()
            return


def _filters_of(link: Link) -> frozenset[str]:
    """The filters that the broker says it has applied."""
    told = link.remote_source.filter
    told.rewind()
    if not told.next():
        return frozenset()
    value = told.get_object()
    return frozenset(map(str, value)) if isinstance(value, dict) else frozenset()


def lease_slice(lease: str, generation: int, epoch: int, part: int) -> dict[str, Described]:
    """The filter for one slice of what a lease holds."""
    told: dict[Any, Any] = {
        "lease": lease,
        "generation": generation,
        "epoch": epoch,
        "slice": int32(part),
    }
    return {"lease-slice": Described(symbol("jms-broker:lease-slice:map"), told)}


def browse_slice(
    part: int, parts: int, *, selector: str | None, until_ms: int
) -> dict[str, Described]:
    """The filters for one of the `parts` of a queue that is browsed."""
    told: dict[Any, Any] = {
        "slice": int32(part),
        "slices": int32(parts),
        "arrived_until_ms": until_ms,
    }
    filters = {"browse-slice": Described(symbol("jms-broker:browse-slice:map"), told)}
    if selector is not None:
        filters["selector"] = Described(symbol("apache.org:selector-filter:string"), selector)
    return filters


def unwrapped(data: bytes) -> Received:
    """A message without its delivery annotations, in which the broker tells where it was.

    What is no message is handed on as it is: its reader says so.
    """
    position: int | None = None
    enqueued_ms: int | None = None
    try:
        header_end = 0
        code, at = descriptor_at(data, 0, len(data))
        if code == HEADER:
            header_end = skip(data, at, len(data))
            code, at = descriptor_at(data, header_end, len(data))
        if code != DELIVERY_ANNOTATIONS:
            return Received(data, None, None)
        count, at, end = open_compound(data, at, len(data))
        while count > 0:
            key, at = take_value(data, at, end)
            value, at = take_value(data, at, end)
            if isinstance(key, Symbol) and key.text == POSITION and isinstance(value, int):
                position = value
            elif isinstance(key, Symbol) and key.text == ENQUEUED and isinstance(value, Timestamp):
                enqueued_ms = value.value
            count -= 2
    except (Fault, IndexError):
        return Received(data, position, enqueued_ms)
    return Received(data[:header_end] + data[end:], position, enqueued_ms)
