"""The statements of every commit, and the order of their parameters."""

import pytest
from sqlalchemy import Dialect
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import asyncpg
from sqlalchemy.sql.dml import UpdateBase

from storage.sql.statements import (
    COUNT,
    DELETE_MESSAGES,
    DELETE_NODE,
    FALL_DUE,
    INSERT_NODE,
    INSERT_SUBSCRIPTION,
    REWRITE,
    SET_MARK,
    Texts,
)

SQLITE = sqlite.dialect(paramstyle="qmark")
POSTGRESQL: Dialect = asyncpg.dialect()  # type: ignore[no-untyped-call]

ORDERS = [
    pytest.param(DELETE_MESSAGES, ["first", "last"], id="first, last"),
    pytest.param(COUNT, ["count", "which"], id="count, number"),
    pytest.param(FALL_DUE, ["place", "deliver_at_ms", "which"], id="position, 0, number"),
    pytest.param(REWRITE, ["sum", "body", "bytes", "which"], id="checksum, None, encoded, number"),
    pytest.param(SET_MARK, ["number", "which"], id="value, name"),
    pytest.param(DELETE_NODE, ["of_kind", "at"], id="kind, address"),
    pytest.param(INSERT_NODE, ["kind", "address", "of_kind", "at"], id="kind, address, twice"),
]


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRESQL], ids=["sqlite", "postgresql"])
@pytest.mark.parametrize(("statement", "names"), ORDERS)
def test_parameters_come_in_this_order(
    dialect: Dialect, statement: UpdateBase, names: list[str]
) -> None:
    assert statement.compile(dialect=dialect).positiontup == names


def test_a_text_is_compiled_once() -> None:
    texts = Texts(SQLITE)
    assert texts.of(COUNT) == "UPDATE message SET delivery_count=? WHERE message.number = ?"
    assert texts.of(COUNT) is texts.of(COUNT)
    assert "RETURNING" not in Texts(POSTGRESQL).of(INSERT_SUBSCRIPTION)
