"""Commands to a coordinator: declare, discharge, and messages that are neither."""

import pytest

from broker.amqp.errors import Fault
from broker.amqp.transactions import Declare, Discharge, read_command
from tests.support.transactions import declare, discharge


def read(payload: bytes) -> Declare | Discharge:
    return read_command(payload, 0, len(payload))


@pytest.mark.requirement("RCV-06")
def test_a_declaration_is_read() -> None:
    command = read(declare())
    assert isinstance(command, Declare)
    assert not command.has_global_id


def test_a_declaration_may_ask_for_a_distributed_transaction() -> None:
    command = read(declare(global_id=b"elsewhere"))
    assert isinstance(command, Declare)
    assert command.has_global_id


@pytest.mark.requirement("RCV-06")
@pytest.mark.parametrize("fail", [False, True], ids=["commit", "roll back"])
def test_a_discharge_is_read(fail: bool) -> None:
    command = read(discharge(b"t", fail=fail))
    assert isinstance(command, Discharge)
    assert (command.txn_id, command.fail) == (b"t", fail)


def test_a_discharge_commits_unless_it_says_so() -> None:
    command = read(bytes.fromhex("005377 005332 c0 04 01 a0 01 74"))
    assert isinstance(command, Discharge)
    assert not command.fail


NONSENSE = [
    pytest.param(bytes.fromhex("005375 a0 00"), "amqp-value", id="data"),
    pytest.param(bytes.fromhex("005377 40"), "declare or discharge", id="null"),
    pytest.param(bytes.fromhex("005377"), "declare or discharge", id="a value that is not there"),
    pytest.param(bytes.fromhex("005377 005324 45"), "declare or discharge", id="accepted"),
    pytest.param(bytes.fromhex("005377 005332 45"), "txn-id", id="a discharge of nothing"),
    pytest.param(bytes.fromhex("005377 005331 40"), "list", id="a declaration of null"),
    pytest.param(
        bytes.fromhex("005377 005331 c0 03 02 40 40"), "fields", id="a field that is not there"
    ),
]


@pytest.mark.parametrize(("payload", "why"), NONSENSE)
def test_anything_else_is_refused(payload: bytes, why: str) -> None:
    with pytest.raises(Fault, match=why):
        read(payload)


def test_a_message_without_a_body_is_refused() -> None:
    with pytest.raises(Fault, match="body"):
        read_command(b"", -1, 0)
