"""What the properties of an attach say of a consumer against others of its queue."""

from typing import Final, final

from broker.amqp.errors import INVALID_FIELD, LinkFault
from broker.amqp.types import Integer

PRIORITY: Final = "priority"
EXCLUSIVE: Final = "exclusive"

PRIORITY_MIN: Final = -(2**31)
PRIORITY_MAX: Final = 2**31 - 1


@final
class Precedence:
    """A higher `priority` is served first; `exclusive` has the queue alone. Others have 0, no."""

    def __init__(self, *, priority: int = 0, exclusive: bool = False) -> None:
        self.priority: Final = priority
        self.exclusive: Final = exclusive


def precedence_of(properties: dict[str, object]) -> Precedence:
    """What a receiver's attach asks for; LinkFault where that cannot be understood."""
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
