"""The expression tree of a selector. A node has a value; a condition's is True, False or None.

None is SQL's unknown: it is the value of an absent property, spreads through comparison and
arithmetic, and `NOT` does not change it (JMS 2.0, 3.8.1.2). Comparing values of different types
gives False; exact and approximate numbers are one type. Comparisons other than `=` and `<>` take
only numbers.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Final, final

from mypy_extensions import i64

from broker.routing.selector.facts import Facts
from broker.routing.selector.like import Pattern


class Expression:
    """A node of the tree, which has a value for each message."""

    @abstractmethod
    def evaluate(self, facts: Facts) -> object:
        """Return the value for the message that `facts` describes."""


# -- values


@final
class Literal(Expression):
    """A constant in the text of the selector."""

    def __init__(self, value: object) -> None:
        self._value: Final = value

    def evaluate(self, facts: Facts) -> object:  # noqa: ARG002 - the same for every message
        return self._value


@final
class ApplicationProperty(Expression):
    """An identifier that is not in HEADERS: the name of an application property."""

    def __init__(self, name: str) -> None:
        self._name: Final = name
        self._key: Final = name.encode()

    def evaluate(self, facts: Facts) -> object:
        return facts.application_property(self._name, self._key)


@final
class DeliveryMode(Expression):
    """JMSDeliveryMode."""

    def evaluate(self, facts: Facts) -> object:
        return facts.delivery_mode()


@final
class Priority(Expression):
    """JMSPriority."""

    def evaluate(self, facts: Facts) -> object:
        return int(facts.message.priority)


@final
class MessageId(Expression):
    """JMSMessageID."""

    def evaluate(self, facts: Facts) -> object:
        return facts.message_id()


@final
class CorrelationId(Expression):
    """JMSCorrelationID."""

    def evaluate(self, facts: Facts) -> object:
        return facts.correlation_id()


@final
class Type(Expression):
    """JMSType."""

    def evaluate(self, facts: Facts) -> object:
        return facts.jms_type()


@final
class CreationTime(Expression):
    """JMSTimestamp."""

    def evaluate(self, facts: Facts) -> object:
        return facts.creation_time()


@final
class GroupId(Expression):
    """JMSXGroupID."""

    def evaluate(self, facts: Facts) -> object:
        return facts.group_id()


@final
class GroupSequence(Expression):
    """JMSXGroupSeq."""

    def evaluate(self, facts: Facts) -> object:
        return facts.group_sequence()


@final
class UserId(Expression):
    """JMSXUserID."""

    def evaluate(self, facts: Facts) -> object:
        return facts.user_id()


@final
class ReplyToGroupId(Expression):
    """JMS_AMQP_REPLY_TO_GROUP_ID, a property of the mapping with a field of its own (MAP-06)."""

    def evaluate(self, facts: Facts) -> object:
        return facts.reply_to_group_id()


@final
class DeliveryCount(Expression):
    """JMSXDeliveryCount: 1 for a first delivery."""

    def evaluate(self, facts: Facts) -> object:
        return int(facts.delivery_count) + 1


HEADERS: Final[dict[str, Expression]] = {
    "JMSDeliveryMode": DeliveryMode(),
    "JMSPriority": Priority(),
    "JMSMessageID": MessageId(),
    "JMSCorrelationID": CorrelationId(),
    "JMSType": Type(),
    "JMSTimestamp": CreationTime(),
    "JMSXGroupID": GroupId(),
    "JMSXGroupSeq": GroupSequence(),
    "JMSXUserID": UserId(),
    "JMSXDeliveryCount": DeliveryCount(),
    "JMS_AMQP_REPLY_TO_GROUP_ID": ReplyToGroupId(),
}
"""The identifiers that are not application properties, and their expressions."""


# -- logic


@final
class Or(Expression):
    """True if one of the conditions is true, else unknown if one is unknown, else False."""

    def __init__(self, conditions: list[Expression]) -> None:
        self._conditions: Final = conditions

    def evaluate(self, facts: Facts) -> object:
        answer: object = False
        for condition in self._conditions:
            value = condition.evaluate(facts)
            if value is True:
                return True
            if value is not False:
                answer = None
        return answer


@final
class And(Expression):
    """False if one of the conditions is false, else unknown if one is unknown, else True."""

    def __init__(self, conditions: list[Expression]) -> None:
        self._conditions: Final = conditions

    def evaluate(self, facts: Facts) -> object:
        answer: object = True
        for condition in self._conditions:
            value = condition.evaluate(facts)
            if value is False:
                return False
            if value is not True:
                answer = None
        return answer


@final
class Not(Expression):
    """The negation of a condition; unknown if its value is no boolean."""

    def __init__(self, condition: Expression) -> None:
        self._condition: Final = condition

    def evaluate(self, facts: Facts) -> object:
        return contrary(self._condition.evaluate(facts))


def contrary(value: object) -> object:
    """Return NOT of `value`: None unless it is True or False."""
    if value is True:
        return False
    if value is False:
        return True
    return None


# -- predicates

EQUAL_PER_STEP: Final[i64] = 1024
"""Characters of two equal strings whose comparison is one step."""


@final
class Equality(Expression):
    """`=`, or `<>` if `differs`."""

    def __init__(self, left: Expression, right: Expression, *, differs: bool) -> None:
        self._left: Final = left
        self._right: Final = right
        self._differs: Final = differs
        # two values of the message may be long; a literal is not
        self._may_be_long: Final = not isinstance(left, Literal) and not isinstance(right, Literal)

    def evaluate(self, facts: Facts) -> object:
        left = self._left.evaluate(facts)
        right = self._right.evaluate(facts)
        if left is None or right is None:
            return None
        if isinstance(left, str):
            if self._may_be_long:
                facts.spend(i64(len(left)) // EQUAL_PER_STEP)
            return isinstance(right, str) and (left == right) is not self._differs
        if isinstance(left, bool):
            return isinstance(right, bool) and (left is right) is not self._differs
        if not _are_numbers(left, right):
            return False
        return (_compare(left, right) == EQUAL) is not self._differs


@final
class Order(Expression):
    """`<`, `<=`, `>` or `>=`: true if the comparison gives one of `accepted`."""

    def __init__(self, left: Expression, right: Expression, accepted: list[int]) -> None:
        self._left: Final = left
        self._right: Final = right
        self._accepted: Final = accepted

    def evaluate(self, facts: Facts) -> object:
        left = self._left.evaluate(facts)
        return in_order(left, self._right.evaluate(facts), self._accepted)


@final
class Between(Expression):
    """BETWEEN, which includes both bounds; NOT BETWEEN if `outside`. Compares numbers."""

    def __init__(
        self, value: Expression, low: Expression, high: Expression, *, outside: bool
    ) -> None:
        self._value: Final = value
        self._low: Final = low
        self._high: Final = high
        self._outside: Final = outside

    def evaluate(self, facts: Facts) -> object:
        value = self._value.evaluate(facts)
        low = self._low.evaluate(facts)
        high = self._high.evaluate(facts)
        if self._outside:
            below = in_order(value, low, BELOW)
            above = in_order(value, high, ABOVE)
            if below is True or above is True:
                return True
            return None if below is None or above is None else False
        from_low = in_order(value, low, NOT_BELOW)
        to_high = in_order(value, high, NOT_ABOVE)
        if from_low is False or to_high is False:
            return False
        return None if from_low is None or to_high is None else True


@final
class In(Expression):
    """IN, or NOT IN if `outside`."""

    def __init__(self, value: Expression, strings: list[str], *, outside: bool) -> None:
        self._value: Final = value
        self._strings: Final = set(strings)
        self._outside: Final = outside

    def evaluate(self, facts: Facts) -> object:
        value = self._value.evaluate(facts)
        if value is None:
            return None
        return (isinstance(value, str) and value in self._strings) is not self._outside


@final
class Like(Expression):
    """LIKE, or NOT LIKE if `differs`."""

    def __init__(self, value: Expression, pattern: Pattern, *, differs: bool) -> None:
        self._value: Final = value
        self._pattern: Final = pattern
        self._differs: Final = differs

    def evaluate(self, facts: Facts) -> object:
        value = self._value.evaluate(facts)
        if value is None:
            return None
        matches = isinstance(value, str) and self._pattern.matches(value, facts)
        return matches is not self._differs


@final
class IsNull(Expression):
    """IS NULL, or IS NOT NULL if `present`."""

    def __init__(self, value: Expression, *, present: bool) -> None:
        self._value: Final = value
        self._present: Final = present

    def evaluate(self, facts: Facts) -> object:
        return (self._value.evaluate(facts) is None) is not self._present


# -- arithmetic


@final
class Arithmetic(Expression):
    """Numbers joined by operators of equal precedence, evaluated from left to right."""

    def __init__(self, first: Expression, operators: list[str], others: list[Expression]) -> None:
        self._first: Final = first
        self._operators: Final = operators
        self._others: Final = others

    def evaluate(self, facts: Facts) -> object:
        value = self._first.evaluate(facts)
        for i in range(len(self._others)):
            value = calculate(value, self._operators[i], self._others[i].evaluate(facts))
            if value is None:
                return None
        return value


@final
class Sign(Expression):
    """`+` or `-` in front of a number."""

    def __init__(self, value: Expression, *, negative: bool) -> None:
        self._value: Final = value
        self._negative: Final = negative

    def evaluate(self, facts: Facts) -> object:
        value = self._value.evaluate(facts)
        if isinstance(value, float):
            return -value if self._negative else value
        if isinstance(value, int) and not isinstance(value, bool):
            return -value if self._negative else value
        return None


def calculate(left: object, operator: str, right: object) -> object:
    """Return `left operator right` as Java computes it, except that exact numbers never overflow.

    None (unknown) if an operand is no number, or an exact number is divided by zero.
    """
    if not _are_numbers(left, right):
        return None
    if isinstance(left, int) and isinstance(right, int):
        if operator == "+":
            return left + right
        if operator == "-":
            return left - right
        if operator == "*":
            return left * right
        return _quotient(left, right)
    x = approximate(left)
    y = approximate(right)
    if operator == "+":
        return x + y
    if operator == "-":
        return x - y
    if operator == "*":
        return x * y
    if y != 0.0:
        return x / y
    # IEEE 754: the quotient is infinite, or NaN
    return x * INFINITY if is_positive_zero(y) else x * -INFINITY


def _quotient(left: int, right: int) -> object:
    """Return the quotient, rounded towards zero; None if `right` is 0."""
    if right == 0:
        return None
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def is_positive_zero(zero: float) -> bool:
    """Return whether `zero` is 0.0, not -0.0; the two compare equal."""
    return not str(zero).startswith("-")


def approximate(number: object) -> float:
    """Return `number` as a Java double; beyond the range of one, it is infinite."""
    if isinstance(number, float):
        return number
    assert isinstance(number, int)
    try:
        return float(number)
    except OverflowError:
        return INFINITY if number > 0 else -INFINITY


INFINITY: Final = float("inf")


# -- comparison

LESS: Final = -1
EQUAL: Final = 0
GREATER: Final = 1
UNORDERED: Final = 2
"""The result of comparing NaN with any number."""

BELOW: Final[list[int]] = [LESS]
ABOVE: Final[list[int]] = [GREATER]
NOT_BELOW: Final[list[int]] = [EQUAL, GREATER]
NOT_ABOVE: Final[list[int]] = [LESS, EQUAL]
ACCEPTED: Final[dict[str, list[int]]] = {
    "<": BELOW,
    ">": ABOVE,
    ">=": NOT_BELOW,
    "<=": NOT_ABOVE,
}


def in_order(left: object, right: object, accepted: list[int]) -> object:
    """Return whether comparing two numbers gives one of `accepted`.

    None if a value is None, else False if one is no number.
    """
    if left is None or right is None:
        return None
    if not _are_numbers(left, right):
        return False
    return _compare(left, right) in accepted


def _are_numbers(left: object, right: object) -> bool:
    return (
        isinstance(left, (int, float))
        and not isinstance(left, bool)
        and isinstance(right, (int, float))
        and not isinstance(right, bool)
    )


def _compare(left: object, right: object) -> int:
    """Return how two numbers compare: exactly if both are exact, else as doubles."""
    if isinstance(left, int) and isinstance(right, int):
        if left == right:
            return EQUAL
        return LESS if left < right else GREATER
    x = approximate(left)
    y = approximate(right)
    if x == y:
        return EQUAL
    if x < y:
        return LESS
    return GREATER if x > y else UNORDERED
