"""Delivery states and outcomes (core spec 3.4 and 4.5.5, 4.5.6), and their error.

`Outcome` and `DeliveryState` are unions, so that `match` with `assert_never` reports
a state that was forgotten.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, TypeAlias, final

from mypy_extensions import i64

from broker.amqp import descriptors
from broker.amqp.composite import FieldReader, FieldWriter
from broker.amqp.decode import descriptor_at, malformed
from broker.amqp.encode import BytesWriter
from broker.amqp.errors import NOT_IMPLEMENTED, ConnectionFault, Fault


@final
class Error:
    """The reason of a failure, 2.8.14."""

    def __init__(
        self,
        *,
        condition: str,
        description: str | None = None,
        info: dict[str, object] | None = None,
    ) -> None:
        self.condition: Final = condition
        self.description: Final = description
        self.info: Final[dict[str, object]] = info if info is not None else {}

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.symbol(self.condition)
        fields.string(self.description)
        fields.fields(self.info)
        fields.close(out, descriptors.ERROR)


def error_of(fault: Fault) -> Error:
    """Return the error that reports `fault` to the peer."""
    info: dict[str, object] = {}
    if fault.info is not None:
        for key, value in fault.info.items():
            info[key.text] = value
    return Error(condition=fault.condition, description=fault.description or None, info=info)


def read_error(data: bytes, at: i64, end: i64) -> Error:
    """Read the error after its descriptor."""
    fields = FieldReader(data, at, end, "error")
    error = Error(
        condition=fields.require_symbol("condition"),
        description=fields.string(),
        # the specification allows symbols only, but go-amqp sends strings as keys, and gives its
        # reason for a rejection in `info`
        info=fields.fields(strings=True),
    )
    fields.close()
    return error


def error_at(data: bytes, at: i64, end: i64) -> Error | None:
    """Read the error whose descriptor is at `at`; None if `at` is -1.

    Raise ConnectionFault if it is no error.
    """
    if at < 0:
        return None
    code, at = descriptor_at(data, at, end)
    if code != descriptors.ERROR:
        raise malformed("an error was expected")
    return read_error(data, at, end)


class State:
    """A delivery state."""

    @abstractmethod
    def write(self, out: BytesWriter) -> None:
        """Write the state with its descriptor."""


@final
class Received(State):
    """The state received, 3.4.1: the part of a delivery that has arrived. No outcome."""

    def __init__(self, *, section_number: i64, section_offset: i64) -> None:
        self.section_number: Final[i64] = section_number
        self.section_offset: Final[i64] = section_offset

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.uint(self.section_number)
        fields.ulong(self.section_offset)
        fields.close(out, descriptors.RECEIVED)


@final
class Accepted(State):
    """The outcome accepted, 3.4.2."""

    def write(self, out: BytesWriter) -> None:
        FieldWriter().close(out, descriptors.ACCEPTED)


@final
class Rejected(State):
    """The outcome rejected, 3.4.3."""

    def __init__(self, error: Error | None = None) -> None:
        self.error: Final = error

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        if self.error is not None:
            self.error.write(fields.field())
        fields.close(out, descriptors.REJECTED)


@final
class Released(State):
    """The outcome released, 3.4.4."""

    def write(self, out: BytesWriter) -> None:
        FieldWriter().close(out, descriptors.RELEASED)


@final
class Modified(State):
    """The outcome modified, 3.4.5. The annotations are an encoded map."""

    def __init__(
        self,
        *,
        delivery_failed: bool = False,
        undeliverable_here: bool = False,
        message_annotations: bytes | None = None,
    ) -> None:
        self.delivery_failed: Final = delivery_failed
        self.undeliverable_here: Final = undeliverable_here
        self.message_annotations: Final = message_annotations

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.boolean(self.delivery_failed)
        fields.boolean(self.undeliverable_here)
        fields.raw(self.message_annotations)
        fields.close(out, descriptors.MODIFIED)


Outcome: TypeAlias = Accepted | Rejected | Released | Modified


@final
class Declared(State):
    """The state declared, 4.5.5: a transaction was begun."""

    def __init__(self, txn_id: bytes) -> None:
        self.txn_id: Final = txn_id

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.binary(self.txn_id)
        fields.close(out, descriptors.DECLARED)


@final
class TransactionalState(State):
    """The state transactional-state, 4.5.6.

    The delivery, or its outcome if there is one, belongs to a transaction.
    """

    def __init__(self, *, txn_id: bytes, outcome: Outcome | None = None) -> None:
        self.txn_id: Final = txn_id
        self.outcome: Final = outcome

    def write(self, out: BytesWriter) -> None:
        fields = FieldWriter()
        fields.binary(self.txn_id)
        if self.outcome is not None:
            put_state(fields.field(), self.outcome)
        fields.close(out, descriptors.TRANSACTIONAL_STATE)


DeliveryState: TypeAlias = Outcome | Received | Declared | TransactionalState

ACCEPTED: Final = Accepted()
RELEASED: Final = Released()


def put_state(out: BytesWriter, state: State) -> None:
    state.write(out)


def read_state(data: bytes, at: i64, end: i64) -> DeliveryState:
    """Read the delivery state whose descriptor is at `at`."""
    code, behind = descriptor_at(data, at, end)
    if code == descriptors.TRANSACTIONAL_STATE:
        return _read_transactional_state(data, behind, end)
    if code == descriptors.RECEIVED:
        return _read_received(data, behind, end)
    if code == descriptors.DECLARED:
        return _read_declared(data, behind, end)
    return _read_outcome(data, behind, end, code)


def read_outcome(data: bytes, at: i64, end: i64) -> Outcome:
    """Read the outcome whose descriptor is at `at`. Raise ConnectionFault for other states."""
    code, behind = descriptor_at(data, at, end)
    return _read_outcome(data, behind, end, code)


def _read_outcome(data: bytes, at: i64, end: i64, code: i64) -> Outcome:
    if code == descriptors.ACCEPTED:
        FieldReader(data, at, end, "accepted").close()
        return ACCEPTED
    if code == descriptors.RELEASED:
        FieldReader(data, at, end, "released").close()
        return RELEASED
    if code == descriptors.MODIFIED:
        return _read_modified(data, at, end)
    if code == descriptors.REJECTED:
        fields = FieldReader(data, at, end, "rejected")
        error = error_at(data, fields.composite(), fields.end)
        fields.close()
        return Rejected(error)
    raise ConnectionFault(NOT_IMPLEMENTED, "a delivery state that is not known here")


def _read_modified(data: bytes, at: i64, end: i64) -> Modified:
    fields = FieldReader(data, at, end, "modified")
    modified = Modified(
        delivery_failed=fields.boolean(False),
        undeliverable_here=fields.boolean(False),
        message_annotations=fields.map(),
    )
    fields.close()
    return modified


def _read_received(data: bytes, at: i64, end: i64) -> Received:
    fields = FieldReader(data, at, end, "received")
    received = Received(
        section_number=fields.require_uint("section-number"),
        section_offset=fields.require_ulong("section-offset"),
    )
    fields.close()
    return received


def _read_declared(data: bytes, at: i64, end: i64) -> Declared:
    fields = FieldReader(data, at, end, "declared")
    declared = Declared(fields.require_binary("txn-id"))
    fields.close()
    return declared


def _read_transactional_state(data: bytes, at: i64, end: i64) -> TransactionalState:
    fields = FieldReader(data, at, end, "transactional-state")
    txn_id = fields.require_binary("txn-id")
    outcome_at = fields.composite()
    outcome = None if outcome_at < 0 else read_outcome(data, outcome_at, fields.end)
    fields.close()
    return TransactionalState(txn_id=txn_id, outcome=outcome)
