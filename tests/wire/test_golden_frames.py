"""Golden frames: complete, cut at every position, among other data, and encoded again."""

import pytest

from broker.amqp.decode import descriptor_at
from broker.amqp.descriptors import (
    ATTACH,
    BEGIN,
    CLOSE,
    DETACH,
    DISPOSITION,
    END,
    FLOW,
    OPEN,
    SASL_CHALLENGE,
    SASL_INIT,
    SASL_MECHANISMS,
    SASL_OUTCOME,
    SASL_RESPONSE,
    TRANSFER,
)
from broker.amqp.encode import BytesWriter
from broker.amqp.errors import Fault
from broker.amqp.frames import SASL_FRAME, body_at, frame_size, put_frame, put_sasl_frame
from broker.amqp.outcomes import read_state
from broker.amqp.performatives import (
    Performative,
    read_attach,
    read_begin,
    read_close,
    read_detach,
    read_end,
    read_flow,
    read_open,
)
from broker.amqp.sasl_frames import (
    read_sasl_challenge,
    read_sasl_init,
    read_sasl_mechanisms,
    read_sasl_outcome,
    read_sasl_response,
)
from broker.amqp.transfer import Disposition, Transfer, put_disposition
from tests.wire.golden import SPECIFICATION, Golden
from tests.wire.golden_attaches import ATTACHES
from tests.wire.golden_client_attaches import CLIENT_ATTACHES
from tests.wire.golden_client_deliveries import CLIENT_DELIVERIES
from tests.wire.golden_client_frames import CLIENT_FRAMES
from tests.wire.golden_forms import FORMS
from tests.wire.golden_frames import FRAMES

READERS = {
    OPEN: read_open,
    BEGIN: read_begin,
    ATTACH: read_attach,
    FLOW: read_flow,
    DETACH: read_detach,
    END: read_end,
    CLOSE: read_close,
    SASL_MECHANISMS: read_sasl_mechanisms,
    SASL_INIT: read_sasl_init,
    SASL_CHALLENGE: read_sasl_challenge,
    SASL_RESPONSE: read_sasl_response,
    SASL_OUTCOME: read_sasl_outcome,
}

NEIGHBOUR = bytes.fromhex("0000001002000001005315c004024143")
FRAME_MAX = 1 << 20

GOLDEN = [
    *FRAMES,
    *ATTACHES,
    *CLIENT_FRAMES,
    *CLIENT_DELIVERIES,
    *CLIENT_ATTACHES,
    *FORMS,
]
CASES = [pytest.param(golden, id=f"{golden.who}: {golden.name}") for golden in GOLDEN]


def read_body(data: bytes, at: int, end: int) -> object:
    """Return the decoded frame body at `data[at:end]`, of the control or of the data path."""
    code, behind = descriptor_at(data, at, end)
    if code == TRANSFER:
        transfer = Transfer()
        transfer.read(data, behind, end)
        return transfer
    if code == DISPOSITION:
        disposition = Disposition()
        disposition.read(data, behind, end)
        return disposition
    return READERS[code](data, behind, end)


def check(data: bytes, read: object, meaning: dict[str, object]) -> None:
    """Assert that `read` has the attributes that `meaning` names."""
    for name, expected in meaning.items():
        if name == "tag" and isinstance(read, Transfer):
            actual: object = read.tag(data)
        elif name == "state" and isinstance(read, Transfer | Disposition):
            actual = read_state(data, read.state_at, len(data))
        else:
            actual = getattr(read, name)
        compare(data, actual, expected, name)


def compare(data: bytes, actual: object, expected: object, name: str) -> None:
    """Assert that `actual` is `expected`, which may name nested attributes."""
    if isinstance(expected, dict) and not isinstance(actual, dict):
        check(data, actual, expected)
    elif isinstance(expected, list) and isinstance(actual, list):
        assert len(actual) == len(expected), name
        for one, other in zip(actual, expected, strict=True):
            compare(data, one, other, name)
    else:
        assert actual == expected, name


@pytest.mark.parametrize("golden", CASES)
def test_a_frame_means_what_its_writer_meant(golden: Golden) -> None:
    frame = golden.frame
    assert frame_size(frame, 0, FRAME_MAX) == len(frame)
    check(frame, read_body(frame, body_at(frame, 0), len(frame)), golden.meaning)


@pytest.mark.parametrize("golden", CASES)
def test_neighbours_change_nothing(golden: Golden) -> None:
    data = NEIGHBOUR + golden.frame + NEIGHBOUR
    at = len(NEIGHBOUR)
    end = at + frame_size(data, at, FRAME_MAX)
    assert data[end:] == NEIGHBOUR
    meaning = {name: value for name, value in golden.meaning.items() if not name.endswith("_at")}
    check(data, read_body(data, body_at(data, at), end), meaning)


@pytest.mark.parametrize("golden", CASES)
def test_a_frame_that_is_cut_is_a_fault(golden: Golden) -> None:
    """A frame cut anywhere is a fault, whether the data ends there or other data follows."""
    frame = golden.frame
    at = body_at(frame, 0)
    for end in range(at, len(frame) - golden.payload):
        with pytest.raises(Fault):
            read_body(frame[:end], at, end)
        with pytest.raises(Fault):
            read_body(frame, at, end)


@pytest.mark.parametrize(
    "golden", [pytest.param(g, id=f"{g.who}: {g.name}") for g in GOLDEN if g.payload]
)
def test_a_payload_starts_behind_the_transfer(golden: Golden) -> None:
    data = golden.frame + NEIGHBOUR
    end = len(golden.frame)
    _, behind = descriptor_at(data, body_at(data, 0), end)
    assert Transfer().read(data, behind, end) == end - golden.payload


def write(data: bytes, read: object) -> bytes:
    """Return the frame that our encoder writes for `read`, which was decoded from `data`."""
    out = BytesWriter()
    channel = int.from_bytes(data[6:8], "big")
    if isinstance(read, Performative):
        if data[5] == SASL_FRAME or data[8:11] > b"\x00\x53\x3f":
            put_sasl_frame(out, read)
        else:
            put_frame(out, channel, read)
        return out.getvalue()
    assert isinstance(read, Disposition)
    put_disposition(
        out,
        role=read.role,
        first=read.first,
        last=read.last,
        settled=read.settled,
        state=None if read.state_at < 0 else read_state(data, read.state_at, len(data)),
    )
    body = out.getvalue()
    return (len(body) + 8).to_bytes(4, "big") + data[4:8] + body


def is_transfer(golden: Golden) -> bool:
    return golden.frame[8:11] == b"\x00\x53\x14"


def written_forms() -> list[Golden]:
    """Return the forms that our encoder writes; transfers are left out: the session writes them."""
    return [g for g in FORMS if g.ours and not is_transfer(g)]


@pytest.mark.parametrize("golden", [pytest.param(g, id=g.name) for g in written_forms()])
def test_we_write_the_very_bytes(golden: Golden) -> None:
    frame = golden.frame
    written = write(frame, read_body(frame, body_at(frame, 0), len(frame)))
    assert written[8:].hex() == frame[8:].hex()
    assert int.from_bytes(written[:4], "big") == len(written)


@pytest.mark.parametrize("golden", CASES)
def test_what_we_write_means_the_same(golden: Golden) -> None:
    if is_transfer(golden) or golden.meaning.get("fault") is not None:
        return
    frame = golden.frame
    read = read_body(frame, body_at(frame, 0), len(frame))
    if isinstance(read, Disposition) and read.state_code < 0 <= read.state_at:
        return
    meaning = {n: v for n, v in golden.meaning.items() if n not in ("batchable", "state_at")}
    written = write(frame, read)
    check(written, read_body(written, body_at(written, 0), len(written)), meaning)
    if golden.who != SPECIFICATION:
        assert len(written) <= len(frame), "and is no longer than what others write"
