"""The sink of a bridge at a broker of this kind: requests to its `$management`, and their answers.

A request gets its answer by its number. A bridge has one COMMIT under way at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from broker.amqp.composite import FieldWriter
from broker.amqp.decode import descriptor_at, take_value
from broker.amqp.descriptors import AMQP_VALUE, APPLICATION_PROPERTIES, PROPERTIES
from broker.amqp.encode import BytesWriter, put_descriptor, put_ulong, put_value
from broker.amqp.errors import Fault
from broker.amqp.limits import FIELD_VALUES_MAX
from broker.amqp.sections import property_at, split
from broker.amqp.types import Integer, Map
from broker.bridge.client_connection import ClientConnection
from broker.bridge.connection import BridgeConnection
from broker.bridge.failure import BridgeError
from broker.management.request import FAILURES_FROM, NOT_FOUND

MANAGEMENT: Final = "$management"
ANSWERS: Final = "bridge-answers"
CORRELATION_ID: Final = 5

NOTHING: Final = -1
"""The last committed batch of a sink that has committed none."""


@dataclass(frozen=True)
class SinkAnswer:
    """The answer to a request: a status as in HTTP, its text, and the body."""

    status: int
    description: str
    body: dict[str, object]

    def number(self, name: str) -> int:
        """Return a number of the body; BridgeError if there is none."""
        value = self.body.get(name)
        found = value.value if isinstance(value, Integer) else value
        if not isinstance(found, int) or isinstance(found, bool):
            raise BridgeError(f"the other broker's answer has no number {name}")
        return found


class RemoteSink:
    """The sink `query` at the other broker; requests are about the one that it is now."""

    def __init__(self, connection: BridgeConnection, query: str) -> None:
        engine = connection.engine
        self.query = query
        self._connection: Final = connection
        self._requests: Final = engine.sender("bridge-requests", MANAGEMENT, {}, settled=True)
        self._replies: Final = engine.receiver("bridge-answers", MANAGEMENT, ANSWERS)
        self._last = 0
        self._asked: Final[set[int]] = set()
        self._answers: Final[dict[int, SinkAnswer]] = {}

    async def attached(self) -> None:
        """Wait until requests can be sent; BridgeError if the other broker refuses them."""
        requests, replies = self._requests, self._replies
        await self._connection.until(
            lambda: (
                (requests.is_attached and requests.credit > 0 and replies.is_attached)
                or requests.is_over
                or replies.is_over
            )
        )
        for link in (requests, replies):
            if link.is_over:
                raise BridgeError(f"{MANAGEMENT} of the other broker: {link.refusal}")

    # -- requests

    def ask(self, operation: str, **arguments: object) -> int:
        """Send a request about the sink; return its number."""
        self._last += 1
        data = request_bytes(operation, self.query, number=self._last, arguments=arguments)
        self._requests.send(b"", data, self._last)
        self._asked.add(self._last)
        return self._last

    def take_answers(self) -> None:
        """Take what has arrived. Raise BridgeError if it is malformed, or a link has ended."""
        for link in (self._requests, self._replies):
            if link.is_over:
                raise BridgeError(f"{MANAGEMENT} of the other broker: {link.refusal}")
        answers = self._replies.answers
        while answers:
            number, answer = read_answer(answers.pop(0))
            if number not in self._asked:
                raise BridgeError("the other broker answers what it was not asked")
            self._asked.remove(number)
            self._answers[number] = answer

    def answer_to(self, number: int) -> SinkAnswer | None:
        """Return the answer to a request, once; None while there is none."""
        return self._answers.pop(number, None)

    async def answered(self, operation: str, **arguments: object) -> SinkAnswer:
        """Send a request, and return its answer."""
        requests = self._requests
        await self._connection.until(lambda: requests.has_room() or requests.is_over)
        self.take_answers()
        number = self.ask(operation, **arguments)

        def is_there() -> bool:
            self.take_answers()
            return number in self._answers

        await self._connection.until(is_there)
        return self._answers.pop(number)

    # -- of the sink

    async def last_committed(self, numbers: Sequence[int]) -> int:
        """Have what is staged for the batches `numbers` dropped; return the last committed batch.

        NOTHING for none. A COMMIT may still be under way on a connection that was lost: behind the
        ABORT of its batch it commits nothing, so none of the others is committed later.
        """
        for number in numbers:
            await self._abort(number)
        answer = await self.answered("READ")
        if answer.status == NOT_FOUND:
            return NOTHING
        _check("READ", answer)
        return answer.number("batch")

    async def _abort(self, batch: int) -> None:
        """Have the messages dropped that earlier attempts have staged for `batch`."""
        answer = await self.answered("ABORT", batch=batch)
        if answer.status != NOT_FOUND:
            _check("ABORT", answer)

    async def forget(self) -> None:
        """Have the sink forgotten: its lease has ended."""
        answer = await self.answered("FORGET")
        if answer.status != NOT_FOUND:
            _check("FORGET", answer)

    def commit(self, batch: int, attempt: int, count: int) -> int:
        """Send the COMMIT of `batch`, which has `count` messages; return its number."""
        return self.ask("COMMIT", batch=batch, partitions=[0], attempts=[attempt], counts=[count])

    def has_committed(self, number: int) -> bool:
        """Return whether the COMMIT of that number is answered; BridgeError if it is refused."""
        self.take_answers()
        answer = self.answer_to(number)
        if answer is None:
            return False
        _check("COMMIT", answer)
        return True

    def can_ask(self) -> bool:
        """Return whether a request can be sent now."""
        return self._requests.has_room()


def _check(operation: str, answer: SinkAnswer) -> None:
    if answer.status >= FAILURES_FROM:
        raise BridgeError(
            f"{operation} at the other broker: {answer.status} {answer.description}"[:500]
        )


def is_of_this_kind(engine: ClientConnection, product: str) -> bool:
    """Return whether the other broker says that it is a `product`."""
    remote = engine.remote
    return remote is not None and remote.properties.get("product") == product


def request_bytes(
    operation: str, query: str, *, number: int, arguments: dict[str, object]
) -> bytes:
    """Return the message of a request about the sink `query`."""
    out = BytesWriter()
    fields = FieldWriter()
    put_ulong(fields.field(), number)  # message-id
    fields.skip()  # user-id
    fields.string(MANAGEMENT)
    fields.skip()  # subject
    fields.string(ANSWERS)
    fields.close(out, PROPERTIES)
    put_descriptor(out, APPLICATION_PROPERTIES)
    put_value(out, {"operation": operation, "type": "sink", "name": query})
    put_descriptor(out, AMQP_VALUE)
    put_value(out, arguments)
    return out.getvalue()


def read_answer(data: bytes) -> tuple[int, SinkAnswer]:
    """Return the number of the request and its answer; BridgeError if it is malformed."""
    try:
        sections = split(data, 0, len(data))
        at = property_at(data, sections.properties, sections.end, CORRELATION_ID)
        correlation = None if at < 0 else take_value(data, at, len(data), 1)[0]
        told = _map_at(data, sections.application_properties)
        code, body_at = descriptor_at(data, sections.body, sections.end)
        body = _map_at(data, body_at) if code == AMQP_VALUE else {}
    except (Fault, IndexError):
        raise BridgeError("an answer of the other broker is malformed") from None
    status = told.get("statusCode")
    number = correlation.value if isinstance(correlation, Integer) else correlation
    code_ = status.value if isinstance(status, Integer) else status
    if not isinstance(number, int) or not isinstance(code_, int):
        raise BridgeError("an answer of the other broker has no number, or no status")
    return number, SinkAnswer(code_, str(told.get("statusDescription")), body)


def _map_at(data: bytes, at: int) -> dict[str, object]:
    if at < 0:
        return {}
    value, _ = take_value(data, at, len(data), FIELD_VALUES_MAX)
    if not isinstance(value, Map):
        return {}
    return {str(key): each for key, each in value.pairs}
