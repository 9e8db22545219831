"""Transfer and disposition, which have readers of their own: hostile bytes must raise a fault."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.amqp.encode import BytesWriter
from broker.amqp.errors import DECODE_ERROR, INVALID_FIELD, ConnectionFault
from broker.amqp.outcomes import (
    ACCEPTED,
    RELEASED,
    State,
    TransactionalState,
    read_state,
)
from broker.amqp.transfer import Disposition, Transfer, put_disposition, put_transfer
from tests.support.encoded import EMPTY, FALSE, NULL, TRUE, listed, mapped, section, symbol

TAG = "a00174"
STATE = section(0x24, EMPTY)
PAYLOAD = "005375a00161"


def transfer(performative: str, payload: str = PAYLOAD) -> Transfer:
    """Read a transfer that has other bytes before and after it."""
    data = bytes.fromhex("ff" + performative + payload + "ff" * 40)
    read = Transfer()
    end = len(data) - 40
    assert data[read.read(data, 1, end) : end].hex() == payload
    return read


def disposition(performative: str) -> Disposition:
    data = bytes.fromhex("ff" + performative + "ff" * 40)
    read = Disposition()
    read.read(data, 1, len(data) - 40)
    return read


# -- transfer


def check_defaults(read: Transfer) -> None:
    assert (read.handle, read.delivery_id, read.message_format) == (0, -1, -1)
    assert (read.settled, read.more, read.rcv_settle_mode, read.state_at) == (-1, False, -1, -1)
    assert (read.resume, read.aborted, read.batchable) == (False, False, False)
    assert read.tag(b"") is None


def test_a_transfer_has_defaults_behind_its_handle() -> None:
    check_defaults(transfer(listed("43")))


def test_nothing_is_left_of_the_transfer_before() -> None:
    read = Transfer()
    full = bytes.fromhex(
        listed("5201", "5202", TAG, "43", TRUE, TRUE, "5001", STATE, TRUE, TRUE, TRUE)
    )
    read.read(full, 0, len(full))
    assert (read.rcv_settle_mode, read.resume) == (1, True)
    assert (read.aborted, read.batchable) == (True, True)
    assert full[read.state_at :].startswith(bytes.fromhex(STATE))
    least = bytes.fromhex(listed("43"))
    read.read(least, 0, len(least))
    check_defaults(read)


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        pytest.param(TAG, b"t", id="short"),
        pytest.param("b00000000174", b"t", id="long"),
        pytest.param("a000", b"", id="empty"),
        pytest.param("a020" + "00" * 32, bytes(32), id="as long as may be"),
        pytest.param(NULL, None, id="none"),
    ],
)
def test_a_delivery_tag(tag: str, expected: bytes | None) -> None:
    performative = listed("43", "43", tag)
    data = bytes.fromhex(performative)
    read = Transfer()
    assert read.read(data, 0, len(data)) == len(data)
    assert read.tag(data) == expected


TRANSFERS = [
    pytest.param("", DECODE_ERROR, id="nothing"),
    pytest.param(mapped(), DECODE_ERROR, id="a map"),
    pytest.param(NULL, DECODE_ERROR, id="null"),
    pytest.param(EMPTY, INVALID_FIELD, id="no fields"),
    pytest.param(listed(NULL), INVALID_FIELD, id="a handle that is null"),
    pytest.param(listed(TRUE), DECODE_ERROR, id="a handle that is a boolean"),
    pytest.param(listed(*["43"] * 2, TAG, *[NULL] * 9), DECODE_ERROR, id="twelve fields"),
    pytest.param(listed("43", NULL, symbol("t")), DECODE_ERROR, id="a tag that is a symbol"),
    pytest.param(listed("43", NULL, "a021" + "00" * 33), INVALID_FIELD, id="a tag of 33 bytes"),
    pytest.param(listed("43", NULL, "b0ffffffff"), INVALID_FIELD, id="a tag of 4 GiB"),
    pytest.param(listed("43", NULL, "a01074"), DECODE_ERROR, id="a tag that goes on behind"),
    pytest.param("c00503 43 40 40 40", DECODE_ERROR, id="more bytes than fields"),
    pytest.param("c00303 43 70", DECODE_ERROR, id="a number that goes on behind"),
    pytest.param("c0ff01 43", DECODE_ERROR, id="a list larger than its frame"),
    pytest.param(listed("43", *[NULL] * 3, "43"), DECODE_ERROR, id="settled that is a number"),
    pytest.param(listed("43", *[NULL] * 5, "5002"), INVALID_FIELD, id="a third settle mode"),
    pytest.param(listed("43", *[NULL] * 6, EMPTY), DECODE_ERROR, id="a state that is a list"),
    pytest.param(listed("43", *[NULL] * 6, "0053"), DECODE_ERROR, id="a state that is cut"),
]


@pytest.mark.parametrize(("performative", "condition"), TRANSFERS)
def test_a_transfer_that_is_refused(performative: str, condition: str) -> None:
    with pytest.raises(ConnectionFault) as caught:
        transfer(performative.replace(" ", ""), payload="")
    assert caught.value.condition == condition


@pytest.mark.parametrize(
    ("kind", "performative"),
    [
        pytest.param(Transfer, "c00302 4370", id="a uint of a transfer"),
        pytest.param(Transfer, "c00402 438000", id="a ulong of a transfer"),
        pytest.param(Transfer, "c00403 4343b0", id="the size of a tag"),
        pytest.param(Transfer, "c00605 4340404056", id="a boolean of a transfer"),
        pytest.param(Disposition, "c00302 4170", id="a uint of a disposition"),
        pytest.param(Disposition, "c00504 41434056", id="a boolean of a disposition"),
    ],
)
def test_a_field_that_is_cut_by_the_end_of_the_data(
    kind: type[Transfer | Disposition], performative: str
) -> None:
    """A field may be read past the end of its list, but never past the end of the data."""
    data = bytes.fromhex(performative)
    with pytest.raises(ConnectionFault) as caught:
        kind().read(data, 0, len(data))
    assert caught.value.condition == DECODE_ERROR


@pytest.mark.parametrize("settled", [True, False], ids=["settled", "not settled"])
@pytest.mark.parametrize("more", [True, False], ids=["more", "whole"])
@pytest.mark.parametrize("handle", [0, 255, 256, 2**32 - 1])
def test_a_transfer_with_a_state_is_read_as_it_was_written(
    settled: bool, more: bool, handle: int
) -> None:
    out = BytesWriter()
    put_transfer(
        out,
        handle=handle,
        delivery_id=7,
        settled=settled,
        message_format=3,
        more=more,
        state=TransactionalState(txn_id=b"t"),
    )
    data = out.getvalue()
    read = Transfer()
    assert read.read(data, 3, len(data)) == len(data)
    assert (read.handle, read.delivery_id, read.message_format) == (handle, 7, 3)
    assert (read.tag(data), read.settled, read.more) == (b"\0\0\0\7", int(settled), more)
    state = read_state(data, read.state_at, len(data))
    assert isinstance(state, TransactionalState)
    assert (state.txn_id, state.outcome) == (b"t", None)


# -- disposition


def test_a_disposition_of_one_delivery() -> None:
    read = disposition(listed(TRUE, "5207"))
    assert (read.role, read.first, read.last, read.settled) == (True, 7, 7, False)
    assert (read.state_at, read.state_code, read.batchable) == (-1, -1, False)


def test_a_disposition_with_all_its_fields() -> None:
    read = disposition(listed(FALSE, "5207", "5209", TRUE, STATE, TRUE))
    assert (read.role, read.first, read.last, read.settled) == (False, 7, 9, True)
    assert (read.state_code, read.batchable) == (0x24, True)


def test_a_state_that_nobody_knows_is_told_from_none() -> None:
    read = disposition(listed(TRUE, "43", NULL, NULL, "00" + symbol("acme:x:list") + EMPTY))
    assert read.state_at >= 0
    assert read.state_code == -1


DISPOSITIONS = [
    pytest.param("", DECODE_ERROR, id="nothing"),
    pytest.param(EMPTY, INVALID_FIELD, id="no fields"),
    pytest.param(listed(NULL, "43"), INVALID_FIELD, id="no role"),
    pytest.param(listed(TRUE), INVALID_FIELD, id="no first"),
    pytest.param(listed(TRUE, NULL), INVALID_FIELD, id="first that is null"),
    pytest.param(listed(TRUE, "43", *[NULL] * 5), DECODE_ERROR, id="seven fields"),
    pytest.param("c00402 41 43 40", DECODE_ERROR, id="more bytes than fields"),
    pytest.param("c00302 41 70", DECODE_ERROR, id="a number that goes on behind"),
    pytest.param(listed(TRUE, "43", *[NULL] * 2, TRUE), DECODE_ERROR, id="a state of another type"),
]


@pytest.mark.parametrize(("performative", "condition"), DISPOSITIONS)
def test_a_disposition_that_is_refused(performative: str, condition: str) -> None:
    with pytest.raises(ConnectionFault) as caught:
        disposition(performative.replace(" ", ""))
    assert caught.value.condition == condition


IDS = st.integers(0, 2**32 - 1)
STATES: list[tuple[State | None, int]] = [(ACCEPTED, 0x24), (RELEASED, 0x26), (None, -1)]


@given(st.booleans(), IDS, IDS, st.booleans(), st.sampled_from(STATES))
def test_a_disposition_that_was_written_is_read_as_the_same(
    role: bool, first: int, last: int, settled: bool, said: tuple[State | None, int]
) -> None:
    state, code = said
    out = BytesWriter()
    put_disposition(out, role=role, first=first, last=last, settled=settled, state=state)
    data = out.getvalue()
    read = Disposition()
    read.read(data, 3, len(data))
    assert (read.role, read.first, read.last, read.settled) == (role, first, last, settled)
    assert read.state_code == code


def test_accepting_one_delivery_is_the_shortest_disposition() -> None:
    out = BytesWriter()
    put_disposition(out, role=True, first=1, last=1, settled=True, state=ACCEPTED)
    assert out.getvalue().hex() == section(0x15, listed(TRUE, "5201", NULL, TRUE, STATE))


# -- arbitrary bytes


@given(st.binary(max_size=40))
def test_any_bytes_are_a_performative_or_a_fault(data: bytes) -> None:
    for read in (Transfer(), Disposition()):
        try:
            read.read(data, 0, len(data))
        except ConnectionFault:
            continue
