"""The commands to a coordinator of transactions: declare and discharge (core 4.5.2, 4.5.3)."""

from __future__ import annotations

from typing import Final, TypeAlias, final

from mypy_extensions import i64

from broker.amqp.composite import FieldReader
from broker.amqp.decode import descriptor_at, malformed
from broker.amqp.descriptors import AMQP_VALUE, DECLARE, DISCHARGE

LOCAL_TRANSACTIONS: Final = "amqp:local-transactions"
MULTI_TXNS_PER_SSN: Final = "amqp:multi-txns-per-ssn"
MULTI_SSNS_PER_TXN: Final = "amqp:multi-ssns-per-txn"


@final
class Declare:
    """The command to begin a transaction, 4.5.2.

    A global-id would make it part of a distributed one.
    """

    def __init__(self, *, has_global_id: bool) -> None:
        self.has_global_id: Final = has_global_id


@final
class Discharge:
    """The command to end a transaction, 4.5.3: roll it back if `fail` is set, else commit it."""

    def __init__(self, *, txn_id: bytes, fail: bool) -> None:
        self.txn_id: Final = txn_id
        self.fail: Final = fail


Command: TypeAlias = Declare | Discharge


def read_command(data: bytes, at: i64, end: i64) -> Command:
    """Read the command in a message whose body begins at `at`: one amqp-value section (4.2).

    Raise ConnectionFault for any other body, and for none (-1).
    """
    if at < 0:
        raise malformed("a message to the coordinator has a body")
    code, at = descriptor_at(data, at, end)
    if code != AMQP_VALUE:
        raise malformed("the body of a message to the coordinator is an amqp-value")
    if at >= end or data[at] != 0:
        raise malformed("a message to the coordinator is declare or discharge")
    code, at = descriptor_at(data, at, end)
    if code == DECLARE:
        fields = FieldReader(data, at, end, "declare")
        has_global_id = fields.composite() >= 0
        fields.close()
        return Declare(has_global_id=has_global_id)
    if code == DISCHARGE:
        fields = FieldReader(data, at, end, "discharge")
        txn_id = fields.require_binary("txn-id")
        fail = fields.boolean(False)
        fields.close()
        return Discharge(txn_id=txn_id, fail=fail)
    raise malformed("a message to the coordinator is declare or discharge")
