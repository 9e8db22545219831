"""A client of `$management` that exchanges frames, and the replies it has received."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from librt.strings import BytesWriter

from broker.amqp.composite import FieldWriter
from broker.amqp.decode import take_value
from broker.amqp.descriptors import AMQP_VALUE, APPLICATION_PROPERTIES, PROPERTIES
from broker.amqp.encode import put_descriptor, put_value
from broker.amqp.outcomes import Accepted
from broker.amqp.sections import split
from broker.amqp.terminus import Target
from broker.amqp.types import Described, Int, Map
from tests.support.broker import Broker, Client, log_in
from tests.support.frames import Disposition, Transfer, attach_receiver

MANAGEMENT = "$management"
REPLY_TO = "here"


def request(
    operation: str | None = None,
    kind: str | None = None,
    name: object = None,
    *,
    identity: object = None,
    properties: Mapping[str, object] | None = None,
    body: object = None,
    reply_to: str | None = REPLY_TO,
    correlation_id: object = None,
    message_id: object = None,
    to: str | None = None,
    without_body: bool = False,
) -> bytes:
    """Return an encoded request, without the arguments that are None."""
    out = BytesWriter()
    fields = FieldWriter()
    _put(fields, message_id)
    fields.skip()
    fields.string(to)
    fields.skip()
    fields.string(reply_to)
    _put(fields, correlation_id)
    fields.close(out, PROPERTIES)
    given = {"operation": operation, "type": kind, "name": name, "identity": identity}
    put_descriptor(out, APPLICATION_PROPERTIES)
    said = {key: value for key, value in given.items() if value is not None}
    put_value(out, {**said, **(properties or {})})
    if not without_body:
        put_descriptor(out, AMQP_VALUE)
        put_value(out, {} if body is None else body)
    return out.getvalue()


def _put(fields: FieldWriter, value: object) -> None:
    if value is None:
        fields.skip()
    else:
        put_value(fields.field(), value)


@dataclass(frozen=True)
class Reply:
    """A decoded response."""

    status: int
    description: str
    body: object
    properties: Mapping[str, object]
    correlation_id: object
    to: object

    @property
    def map(self) -> dict[str, object]:
        """The body, which must be a map."""
        assert isinstance(self.body, dict), self.body
        return self.body

    @property
    def rows(self) -> list[dict[str, object]]:
        """The rows that a QUERY found."""
        assert self.status == 200, self.description
        names, rows = self.map["attributeNames"], self.map["results"]
        assert isinstance(names, list)
        assert isinstance(rows, list)
        return [dict(zip(names, row, strict=True)) for row in rows]


def read_reply(payload: bytes) -> Reply:
    """Return the response in the payload of a transfer."""
    sections = split(payload, 0, len(payload))
    told = plain(take_value(payload, sections.application_properties, len(payload))[0])
    fields = plain(take_value(payload, sections.properties, len(payload))[0])
    body, _ = take_value(payload, sections.body, len(payload))
    assert isinstance(told, dict)
    assert isinstance(fields, list)
    assert isinstance(body, Described)
    status = told.pop("statusCode", None) or told.pop("status-code")
    assert isinstance(status, Int)
    fields += [None] * 6
    return Reply(
        status=status.value,
        description=str(told.pop("statusDescription", None) or told.pop("status-description")),
        body=plain(body.value),
        properties=told,
        correlation_id=fields[5],
        to=fields[2],
    )


def plain(value: object) -> object:
    """Return `value` with AMQP maps converted to dicts."""
    if isinstance(value, Map):
        return {key: plain(each) for key, each in value.pairs}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value


class Manager:
    """A client with a link to `$management` in each direction: for requests and for responses."""

    def __init__(
        self,
        broker: Broker,
        container_id: str = "manager",
        user: str = "",
        *,
        client: Client | None = None,
    ) -> None:
        self.broker = broker
        if client is None:
            client = broker.session(container_id)
            log_in(client, user)
        self.client: Client = client
        self.client.attach_sender(MANAGEMENT)
        receiver = attach_receiver(MANAGEMENT, handle=1, target=Target(address=REPLY_TO))
        self.client.attach(receiver)
        self.client.flow(handle=1, credit=1000, delivery_count=0)
        self._sent = 0

    def send(self, payload: bytes, *, settled: bool = False) -> None:
        """Send a request, without waiting for its response."""
        number = self._sent
        self._sent += 1
        self.client.send(
            Transfer(
                delivery_id=number, tag=b"%d" % number, settled=settled or None, payload=payload
            )
        )

    def ask_raw(self, payload: bytes) -> Reply:
        """Return the response to an encoded request, which must be accepted."""
        self.send(payload)
        replies = []
        for body in self.client.bodies():
            if isinstance(body, Disposition):
                assert isinstance(body.state, Accepted), body
            elif isinstance(body, Transfer):
                replies.append(read_reply(body.payload))
        assert len(replies) == 1
        return replies[0]

    def ask(
        self,
        operation: str,
        kind: str,
        name: str | None = None,
        *,
        properties: Mapping[str, object] | None = None,
        **arguments: object,
    ) -> Reply:
        """Return the response to a request with these arguments."""
        return self.ask_raw(request(operation, kind, name, properties=properties, body=arguments))

    def query(self, kind: str, *, offset: int = 0, count: int = 100, **arguments: object) -> Reply:
        """Return the response to a QUERY."""
        return self.look(kind, arguments, offset=offset, count=count)

    def look(
        self, kind: str, arguments: Mapping[str, object], *, offset: int = 0, count: int = 100
    ) -> Reply:
        """Like `query`, with the arguments in a mapping."""
        asked = {"entityType": kind, "offset": offset, "count": count}
        body = dict(arguments)
        return self.ask_raw(
            request("QUERY", "org.amqp.management", "self", properties=asked, body=body)
        )
