"""The statements of every commit, and the order of their parameters."""

import pytest
from sqlalchemy import Dialect
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import asyncpg
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import ClauseElement

from storage.sql.statements import (
    BETWEEN,
    CHANGE_BODY,
    CHANGE_SEGMENT,
    DELETE_NODE,
    FOLLOWING,
    INSERT_NODE,
    INSERT_SUBSCRIPTION,
    SET_MARK,
    Texts,
)

SQLITE = sqlite.dialect(paramstyle="qmark")
POSTGRESQL: Dialect = asyncpg.dialect()  # type: ignore[no-untyped-call]

ORDERS = [
    pytest.param(CHANGE_SEGMENT, ["bytes", "records", "which"], id="size, facts, number"),
    pytest.param(CHANGE_BODY, ["bytes", "which"], id="encoded, number"),
    pytest.param(FOLLOWING, ["behind", "part", "skipped"], id="number, how many, 0"),
    pytest.param(BETWEEN, ["first", "last"], id="first, last"),
    pytest.param(SET_MARK, ["number", "which"], id="value, name"),
    pytest.param(DELETE_NODE, ["of_kind", "at"], id="kind, address"),
    pytest.param(
        INSERT_NODE,
        ["kind", "address", "creator", "auto_created", "of_kind", "at"],
        id="kind, address, creator, whether auto-created, kind, address",
    ),
]


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRESQL], ids=["sqlite", "postgresql"])
@pytest.mark.parametrize(("statement", "names"), ORDERS)
def test_parameters_come_in_this_order(
    dialect: Dialect, statement: ClauseElement, names: list[str]
) -> None:
    compiled = statement.compile(dialect=dialect)
    assert isinstance(compiled, SQLCompiler)
    assert compiled.positiontup == names


def test_a_text_is_compiled_once() -> None:
    texts = Texts(SQLITE)
    assert texts.of(CHANGE_BODY) == "UPDATE body SET encoded=? WHERE body.number = ?"
    assert texts.of(CHANGE_BODY) is texts.of(CHANGE_BODY)
    assert "RETURNING" not in Texts(POSTGRESQL).of(INSERT_SUBSCRIPTION)
