"""The statements of every commit, and the order of their parameters."""

import pytest
from sqlalchemy.dialects import sqlite

from storage.sql.statements import Statements

STATEMENTS = Statements(sqlite.dialect(paramstyle="qmark"))

TEXTS = [
    pytest.param(
        STATEMENTS.delete_messages,
        "DELETE FROM message WHERE message.number BETWEEN ? AND ?",
        id="first, last",
    ),
    pytest.param(
        STATEMENTS.count,
        "UPDATE message SET delivery_count=? WHERE message.number = ?",
        id="count, number",
    ),
    pytest.param(
        STATEMENTS.fall_due,
        "UPDATE message SET position=?, deliver_at_ms=? WHERE message.number = ?",
        id="position, 0, number",
    ),
    pytest.param(
        STATEMENTS.rewrite,
        "UPDATE message SET checksum=?, body=?, encoded=? WHERE message.number = ?",
        id="checksum, None, encoded, number",
    ),
]


@pytest.mark.parametrize(("statement", "text"), TEXTS)
def test_parameters_come_in_this_order(statement: str, text: str) -> None:
    assert statement == text
