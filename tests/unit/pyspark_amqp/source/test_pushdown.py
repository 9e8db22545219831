"""Spark's conditions as selectors, all of which the broker's own parser accepts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    In,
    IsNull,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from broker.routing.selector import parse_selector
from pyspark_amqp.source.pushdown import condition_of, selector_of

MOMENT = datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.requirement("PIP-45")
@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (EqualTo(("JMSType",), "it's"), "JMSType = 'it''s'"),
        (EqualTo(("JMSPriority",), 4), "JMSPriority = 4"),
        (GreaterThan(("JMSPriority",), 4), "JMSPriority > 4"),
        (LessThanOrEqual(("JMSTimestamp",), MOMENT), "JMSTimestamp <= 1704067200000"),
        (In(("JMSXGroupID",), ("a", "b", None)), "JMSXGroupID IN ('a', 'b')"),
        (StringStartsWith(("JMSType",), "a_b%!"), "JMSType LIKE 'a!_b!%!!%' ESCAPE '!'"),
        # conditions that a selector lacks, or evaluates differently, are left to Spark
        (GreaterThan(("JMSType",), "a"), None),
        (LessThanOrEqual(("JMSTimestamp",), MOMENT.replace(microsecond=1)), None),
        (EqualTo(("JMSDeliveryMode",), 2), None),
        (EqualTo(("bodyText",), "x"), None),
        (EqualTo(("messageId", "string"), "x"), None),
        (EqualTo(("JMSPriority",), "4"), None),
        (In(("JMSPriority",), (1, 2)), None),
        (IsNull(("JMSType",)), None),
        (Not(EqualTo(("JMSType",), "x")), None),
    ],
)
def test_a_condition_is_a_selector_where_it_means_the_same(
    condition: Filter, text: str | None
) -> None:
    assert condition_of(condition) == text
    if text is not None:
        parse_selector(text)


@pytest.mark.requirement("PIP-45")
def test_conditions_are_added_to_the_selector_that_is_there() -> None:
    filters = [EqualTo(("JMSType",), "a"), IsNull(("JMSType",)), EqualTo(("JMSPriority",), 1)]
    assert selector_of("x = 1 OR y = 2", filters) == (
        "(x = 1 OR y = 2) AND JMSType = 'a' AND JMSPriority = 1"
    )
    assert selector_of(None, [IsNull(("JMSType",))]) is None
