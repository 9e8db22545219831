"""Selectors over rows select the same messages as the broker's own."""

from __future__ import annotations

import uuid
from typing import Final

import pytest

from broker.amqp.sections import split
from broker.amqp.types import (
    Byte,
    Char,
    Decimal,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from broker.jms import NON_PERSISTENT, JmsMessage, TextBody
from broker.jms import encode as encode_jms
from broker.message import read_message
from broker.routing.errors import InvalidSelector
from broker.routing.selector import parse_selector
from pyspark_amqp.engines.engine import Engine
from pyspark_amqp.errors import SelectorError
from pyspark_amqp.jobs.selector import condition
from pyspark_amqp.jobs.statements import query
from pyspark_amqp.rows.columns import MESSAGE_COLUMNS
from pyspark_amqp.rows.decoding import RowMaker, told_of
from tests.support.clock import SimulatedClock
from tests.support.jms import VALUE, encoded


def message(properties: dict[str, object] | None = None, **fields: object) -> bytes:
    made = JmsMessage(TextBody("x"))
    for name, value in (properties or {}).items():
        made.set_any_property(name, value)
    for name, value in fields.items():
        setattr(made, name, value)
    return encode_jms(made)


MESSAGES: Final = [
    message(),
    message({"n": 1, "d": 1.0, "s": "one", "b": True}),
    message({"n": Int(2), "d": Float(2.5), "s": "two", "b": False}),
    message({"n": Byte(-3), "d": float("nan"), "s": "a_b%c\nd", "b": None}),
    message({"n": Short(7), "d": float("inf"), "s": "", "w": 2**63 - 1}),
    message({"n": "1", "d": "1.0", "s": 1, "b": "true"}),
    message({"c": Char(120), "n": None, "ä": "umlaut"}),
    message({"n": 0, "d": -0.0, "w": -(2**63)}, priority=9, delivery_mode=NON_PERSISTENT),
    message(message_id="ID:1", correlation_id="c", type="order", timestamp=1_700_000_000_123),
    message({"JMSXAppID": "app"}, group_id="g", group_sequence=5, user_id="alice"),
    message(reply_to_group_id="replies"),
    message({"u": ULong(7), "y": Symbol("q"), "t": Timestamp(-5), "i": uuid.UUID(int=7)}),
    message({"u": ULong(2**63 - 1), "y": "q", "t": -5, "i": str(uuid.UUID(int=7))}),
    message({"u": UInt(6), "y": Symbol("r"), "t": Timestamp(5), "i": b"7"}),
    message({"u": UByte(5), "t": UShort(5), "i": Decimal(b"1234")}),
    encoded((VALUE, "x"), annotations={"x-opt-jms-type": "order"}),
]

SELECTORS: Final = [
    *(
        "n = 1",
        "n <> 1",
        "n = 1.0",
        "n > 0",
        "n >= 2",
        "n < 0",
        "n <= 1",
        "n = d",
        "n <> d",
        "d > n",
    ),
    *("d = 1", "d <> 2.5", "d > 1e300", "d = d", "d <> d", "d = 0", "s = n", "s = s", "b = b"),
    *(
        "s = 'one'",
        "s <> 'one'",
        "s IN ('one', 'two')",
        "s NOT IN ('one')",
        "s IN ('')",
        "n IN ('1')",
    ),
    *(
        "s LIKE 'o%'",
        "s LIKE '_n_'",
        "s NOT LIKE '%o%'",
        r"s LIKE 'a\_b\%%' ESCAPE '\'",
        "s LIKE ''",
    ),
    *("s LIKE '%d'", "s LIKE 'a.b%'", "n LIKE '1'", "n NOT LIKE '2'", "ä LIKE 'um%'"),
    *("n IS NULL", "n IS NOT NULL", "b IS NULL", "missing IS NULL", "c IS NULL", "c = 'x'"),
    *(
        "b",
        "NOT b",
        "b = TRUE",
        "b <> true",
        "b = 'true'",
        "b OR n = 2",
        "b AND n = 1",
        "n",
        "NOT n",
    ),
    *("TRUE", "FALSE", "NOT FALSE", "missing = 1", "NOT missing = 1", "missing = 1 OR TRUE"),
    *(
        "missing = 1 AND FALSE",
        "NOT (missing = 1 AND FALSE)",
        "(n = 1 OR s = 'two') AND NOT b = FALSE",
    ),
    *("n BETWEEN 1 AND 2", "n NOT BETWEEN 1 AND 2", "d BETWEEN 0 AND n", "missing BETWEEN 1 AND 2"),
    *("n NOT BETWEEN missing AND -5", "n NOT BETWEEN 5 AND missing"),
    *(
        "n + 1 = 2",
        "n * 2 > 3",
        "n - 1 < 0",
        "n / 2 = 1",
        "-7 / 2 = -3",
        "n / 0 = 1",
        "1 / d > 1e9",
    ),
    *(
        "d * 2 = 5",
        "d / 2 = 0.5",
        "-n = 3",
        "+n = 1",
        "- - n = 1",
        "-d < 0",
        "s + 1 = 2",
        "n + s = 2",
    ),
    *(
        "w = 9223372036854775807",
        "w + 0 > 9e18",
        "w > 9.3e18",
        "n = 0x7",
        "n = 07",
        "n = 1L",
        "d = 2.5f",
    ),
    *("1 = 1", "1 = '1'", "TRUE = 1", "n = TRUE", "n + 1 BETWEEN d AND 10", "2.5 = d"),
    *("JMSPriority = 9", "JMSPriority BETWEEN 0 AND 4", "JMSDeliveryMode = 'PERSISTENT'"),
    *("JMSDeliveryMode <> 'PERSISTENT'", "JMSMessageID = 'ID:1'", "JMSMessageID IS NULL"),
    *("JMSCorrelationID LIKE 'c%'", "JMSType = 'order'", "JMSTimestamp = 1700000000123"),
    *("JMSTimestamp > 0", "JMSXGroupID = 'g'", "JMSXGroupSeq = 5", "JMSXUserID = 'alice'"),
    *("JMSTimestamp = 0", "JMSTimestamp IS NULL", "JMS_AMQP_REPLY_TO_GROUP_ID = 'replies'"),
    *(
        "u > 5",
        "u = 7",
        "u > 1e19",
        "u + 1 = 8",
        "u BETWEEN 5 AND 6",
        "u < t",
        "u = '7'",
        "-u = -7",
    ),
    *("y = 'q'", "y LIKE '_'", "y IN ('q', 'r')", "y > 1", "t = -5", "t < 0", "t * 2 = 10"),
    *(f"i = '{uuid.UUID(int=7)}'", "i IS NULL", "i IS NOT NULL", "i = 7", "NOT i = '7'"),
    *("JMSXAppID = 'app'", "JMSXDeliveryCount = 1", "JMSXGroupID IS NOT NULL"),
]


SELECTORS_A_QUERY: Final = {"duckdb": 5, "spark": len(SELECTORS)}
"""DuckDB plans a query in a time that grows with the square of the number of its expressions."""


@pytest.mark.requirement("PIP-67")
def test_rows_are_selected_like_messages(engine: Engine) -> None:
    """A query evaluates many selectors for all messages."""
    clock = SimulatedClock()
    columns = RowMaker(list(MESSAGE_COLUMNS), address="q")
    places = range(len(MESSAGES))
    batch = columns.batch(told_of(MESSAGES, positions=places, enqueued_us=[None] * len(MESSAGES)))
    rows = batch.to_pylist(maps_as_pydicts="strict")
    given = engine.table(MESSAGE_COLUMNS, [tuple(row.values()) for row in rows])
    read = [read_message(split(data, 0, len(data)), data, clock) for data in MESSAGES]
    wrong = []
    at_most = SELECTORS_A_QUERY[engine.name]
    for start in range(0, len(SELECTORS), at_most):
        some = SELECTORS[start : start + at_most]
        asked = ", ".join(f"{condition(text)} AS c{index}" for index, text in enumerate(some))
        found = query(f"SELECT {asked} FROM {{messages}} ORDER BY position", messages=given).rows()
        for row, data, each in zip(found, MESSAGES, read, strict=True):
            for text, is_selected in zip(some, row.values(), strict=True):
                if bool(is_selected) is not parse_selector(text).matches(each):
                    wrong.append((text, is_selected, data))
    assert not wrong


REFUSED: Final = [
    *("", "n = ", "n = 'a", "n ; 1", "n IN (1)", "1 IN ('a')", "n LIKE 'a' ESCAPE 'ab'", "n < 'a'"),
    *(
        "n LIKE 'a!' ESCAPE '!'",
        "count(*)",
        "a::int",
        "JMSDestination = 'q'",
        "n = 1 AND 2",
        "NOT 'a'",
    ),
    *(
        "n = 99999999999999999999",
        "1e999 = n",
        "'a' IS NULL",
        "TRUE + 1 = 2",
        "a\N{SNOWMAN} = 1",
        "n = 1 n",
    ),
]


@pytest.mark.requirement("PIP-69")
@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_selector_to_the_broker_is_none_here(text: str) -> None:
    with pytest.raises(InvalidSelector):
        parse_selector(text)
    with pytest.raises(SelectorError, match="at character"):
        condition(text)


@pytest.mark.requirement("PIP-69")
def test_a_calculation_that_sql_cannot_take_is_refused() -> None:
    assert condition(f"n{' / 2' * 3} = 1")
    assert condition(f"n{' + 1' * 20} = 1")
    with pytest.raises(SelectorError, match="too many steps for SQL, at character 6"):
        condition(f"b OR n{' / 2' * 100} = 1")
