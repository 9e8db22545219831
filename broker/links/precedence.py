"""Precedence of a consumer over others of its queue, from the properties of its attach."""

from typing import Final, final

from broker.amqp.errors import INVALID_FIELD, LinkFault
from broker.amqp.types import Integer

PRIORITY: Final = "priority"
EXCLUSIVE: Final = "exclusive"

PRIORITY_MIN: Final = -(2**31)
PRIORITY_MAX: Final = 2**31 - 1


@final
class Precedence:
    """Precedence of a consumer: the queue serves a higher `priority` first.

    An `exclusive` consumer has the queue for itself. By default, a consumer has priority 0 and
    is not exclusive.
    """

    def __init__(self, *, priority: int = 0, exclusive: bool = False) -> None:
        self.priority: Final = priority
        self.exclusive: Final = exclusive


USUAL: Final = Precedence()


def precedence_of(properties: dict[str, object]) -> Precedence:
    """Return the precedence that a receiver's attach requests; raise LinkFault if it is invalid."""
    if not properties:
        return USUAL
    return Precedence(
        priority=_priority(properties.get(PRIORITY)),
        exclusive=_exclusive(properties.get(EXCLUSIVE)),
    )


def _priority(value: object) -> int:
    number = value.value if isinstance(value, Integer) else value
    if number is None:
        return 0
    if isinstance(number, bool) or not isinstance(number, int):
        raise LinkFault(INVALID_FIELD, "the property priority of a consumer is an integer")
    if not PRIORITY_MIN <= number <= PRIORITY_MAX:
        raise LinkFault(INVALID_FIELD, "the property priority of a consumer has at most 32 bits")
    return number


def _exclusive(value: object) -> bool:
    if value is None:
        return False
    if not isinstance(value, bool):
        raise LinkFault(INVALID_FIELD, "the property exclusive of a consumer is a boolean")
    return value
