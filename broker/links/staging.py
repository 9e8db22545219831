"""Properties of a sender's attach that assign its messages to a stage.

A stage keeps what one attempt of a task of a sink has sent, unseen until the sink commits it.
"""

from typing import Final

from broker.amqp.errors import INVALID_FIELD, LinkFault
from broker.amqp.terminus import Target
from broker.amqp.types import Char, Integer
from broker.links.service import CLAIMS
from broker.routing.addresses.address import MANAGEMENT
from broker.routing.batches.staged_transaction import Task

QUERY: Final = "stage-query"
BATCH: Final = "stage-batch"
PARTITION: Final = "stage-partition"
ATTEMPT: Final = "stage-attempt"

PROPERTIES: Final = (QUERY, BATCH, PARTITION, ATTEMPT)

QUERY_BYTES_MAX: Final = 255
"""Maximum bytes of a query's name in UTF-8, which fits into a key of every store."""

LONG_MAX: Final = 2**63 - 1
INT_MAX: Final = 2**31 - 1

OWN_NODES: Final = (MANAGEMENT, CLAIMS)


def task_of(properties: dict[str, object], target: Target) -> Task | None:
    """Return the task that a sender's attach names, None for none; LinkFault if it is invalid."""
    given = [name for name in PROPERTIES if name in properties]
    if not given:
        return None
    for name in PROPERTIES:
        if name not in properties:
            raise LinkFault(INVALID_FIELD, f"a link with the property {given[0]} has {name}, too")
    if target.dynamic or target.address is None or target.address in OWN_NODES:
        raise LinkFault(
            INVALID_FIELD, f"a link with the property {QUERY} names a queue or topic as its target"
        )
    return Task(
        query=checked_query(properties[QUERY]),
        batch=_number(properties, BATCH, LONG_MAX),
        partition=_number(properties, PARTITION, INT_MAX),
        attempt=_number(properties, ATTEMPT, LONG_MAX),
    )


def stated(properties: dict[str, object]) -> dict[str, object] | None:
    """Return those properties for the answer to the attach; None if it has none of them.

    A broker that does not stage messages answers without them.
    """
    found: dict[str, object] = {name: properties[name] for name in PROPERTIES if name in properties}
    return found or None


def checked_query(value: object) -> str:
    """Return a query's name; raise LinkFault if a store cannot keep it, or a terminal show it."""
    if not isinstance(value, str) or not value:
        raise LinkFault(INVALID_FIELD, f"{QUERY} is a string, and not empty")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise LinkFault(INVALID_FIELD, f"{QUERY} is well-formed Unicode") from None
    if size > QUERY_BYTES_MAX:
        raise LinkFault(
            INVALID_FIELD, f"{QUERY} has at most {QUERY_BYTES_MAX} bytes, this one has {size}"
        )
    if not value.isprintable():
        raise LinkFault(INVALID_FIELD, f"{QUERY} has no control characters")
    return value


def _number(properties: dict[str, object], name: str, most: int) -> int:
    value = properties[name]
    number = value.value if isinstance(value, Integer) else value
    if isinstance(value, (bool, Char)) or not isinstance(number, int):
        raise LinkFault(INVALID_FIELD, f"{name} is an integer")
    if not 0 <= number <= most:
        raise LinkFault(INVALID_FIELD, f"{name} is a number from 0 to {most}")
    return number
