"""The settings of a group of brokers: `[ha]`."""

import socket

import pytest

from broker.settings import MEMORY, SettingsError, given_settings

POSTGRESQL = "postgresql://clerk@db/jms"


def test_a_member_has_the_name_of_its_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "büro 7.example" + "x" * 40)
    name = given_settings(store=POSTGRESQL, ha={"enabled": True}).ha.name
    assert name == ("b-ro-7.example" + "x" * 40)[:40]


WRONG = [
    # store, the table, what the error says
    pytest.param(MEMORY, {"enabled": True}, "a store in PostgreSQL", id="in memory"),
    pytest.param("sqlite:///a.db", {"enabled": True}, "a store in PostgreSQL", id="in SQLite"),
    pytest.param(POSTGRESQL, {"name": "a/b"}, "ha.name", id="a name with a slash"),
    pytest.param(POSTGRESQL, {"name": ""}, "ha.name", id="no name"),
    pytest.param(POSTGRESQL, {"name": "x" * 41}, "ha.name", id="a long name"),
    pytest.param(POSTGRESQL, {"silence_ms": 999}, "ha.silence_ms", id="too short a silence"),
    pytest.param(POSTGRESQL, {"silence_ms": 60_001}, "ha.silence_ms", id="too long a silence"),
    pytest.param(POSTGRESQL, {"peers": []}, "ha.peers", id="an unknown key"),
]


@pytest.mark.parametrize(("store", "table", "said"), WRONG)
def test_what_cannot_be_is_refused(store: str, table: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        given_settings(store=store, ha=table)


def test_a_table_that_is_off_needs_no_postgresql() -> None:
    assert not given_settings(store=MEMORY, ha={"silence_ms": 2000}).ha.enabled
