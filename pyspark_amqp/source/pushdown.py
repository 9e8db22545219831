"""Spark's conditions as a JMS selector."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

TEXTS: Final = frozenset({"JMSMessageID", "JMSCorrelationID", "JMSType", "JMSXGroupID"})
NUMBERS: Final = frozenset({"JMSPriority", "JMSXGroupSeq"})
TIMES: Final = frozenset({"JMSTimestamp"})

OPERATORS: Final[dict[type[Filter], str]] = {
    EqualTo: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}


def selector_of(selector: str | None, filters: Iterable[Filter]) -> str | None:
    """Return `selector` and all conditions that a selector can express, None if there are none."""
    conditions = [text for text in map(condition_of, filters) if text is not None]
    if selector is not None:
        conditions.insert(0, f"({selector})")
    return " AND ".join(conditions) or None


def condition_of(condition: Filter) -> str | None:
    """Return the condition in the words of a selector, None if a selector cannot express it."""
    path: tuple[str, ...] = getattr(condition, "attribute", ())
    if len(path) != 1:
        return None
    name = path[0]
    if isinstance(condition, In):
        values = [_literal(name, value) for value in condition.value if value is not None]
        if name not in TEXTS or not values or None in values:
            return None
        return f"{name} IN ({', '.join(str(each) for each in values)})"
    if isinstance(condition, StringStartsWith):
        if name not in TEXTS:
            return None
        return f"{name} LIKE {_quoted(_escaped(condition.value) + '%')} ESCAPE '!'"
    operator = OPERATORS.get(type(condition))
    if operator is None or (operator != "=" and name in TEXTS):
        return None
    literal = _literal(name, getattr(condition, "value", None))
    return None if literal is None else f"{name} {operator} {literal}"


def _literal(name: str, value: object) -> str | None:
    if name in TEXTS and isinstance(value, str):
        return _quoted(value)
    if name in NUMBERS and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if name in TIMES and isinstance(value, datetime) and value.microsecond % 1000 == 0:
        # a message's time has no microseconds: with them, `<` would mean another moment
        return str(round(value.timestamp() * 1000))
    return None


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _escaped(text: str) -> str:
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
