"""Frame headers: which are refused at once, and how they are written."""

import pytest

from broker.amqp.encode import BytesWriter
from broker.amqp.errors import FRAMING_ERROR, ConnectionFault
from broker.amqp.frames import (
    AMQP_FRAME,
    AMQP_HEADER,
    EMPTY_FRAME,
    SASL_HEADER,
    TLS_HEADER,
    begin_frame,
    body_at,
    end_frame,
    frame_size,
    put_frame,
    put_sasl_frame,
)
from broker.amqp.performatives import End
from broker.amqp.sasl_frames import SaslOutcome

SIZE_MAX = 1024


def head(size: int, offset: int = 2) -> bytes:
    return size.to_bytes(4, "big") + bytes([offset, 0, 0, 0])


REFUSED = [
    *[pytest.param(head(size), id=f"a size of {size}") for size in range(8)],
    pytest.param(head(SIZE_MAX + 1), id="one more than allowed"),
    pytest.param(head(2**31), id="negative when signed"),
    pytest.param(head(2**31 - 1), id="the largest signed"),
    pytest.param(head(2**32 - 1), id="the largest"),
    pytest.param(b"AMQP\x00\x01\x00\x00", id="a protocol header"),
    pytest.param(head(16, 0), id="a data offset of 0"),
    pytest.param(head(16, 1), id="a data offset within the header"),
    pytest.param(head(16, 5), id="a data offset behind the frame"),
]


@pytest.mark.parametrize("data", REFUSED)
def test_a_frame_that_cannot_be_is_refused_by_its_header(data: bytes) -> None:
    with pytest.raises(ConnectionFault) as caught:
        frame_size(b"\xff" + data, 1, SIZE_MAX)
    assert caught.value.condition == FRAMING_ERROR


@pytest.mark.parametrize(
    ("data", "size", "body"),
    [
        pytest.param(head(8), 8, 8, id="empty"),
        pytest.param(head(SIZE_MAX), SIZE_MAX, 8, id="as large as allowed"),
        pytest.param(head(20, 3), 20, 12, id="with an extended header"),
        pytest.param(head(1020, 255), 1020, 1020, id="nothing but an extended header"),
    ],
)
def test_a_frame_is_announced_by_its_header(data: bytes, size: int, body: int) -> None:
    assert frame_size(b"\xff" + data, 1, SIZE_MAX) == size
    assert body_at(b"\xff" + data, 1) == 1 + body


def test_frames_are_written_one_behind_the_other() -> None:
    out = BytesWriter()
    put_frame(out, 0xFFFF, End())
    put_sasl_frame(out, SaslOutcome(0))
    start = begin_frame(out, AMQP_FRAME, 1)
    out.write(bytes(300))
    end_frame(out, start)
    data = out.getvalue()
    assert data[:12].hex() == "0000000c0200ffff00531745"
    assert data[12:28].hex() == "0000001002010000005344c003015000"
    assert data[28:36].hex() == "0000013402000001"
    assert len(data) == 12 + 16 + 308


@pytest.mark.parametrize(
    ("header", "protocol"), [(AMQP_HEADER, 0), (TLS_HEADER, 2), (SASL_HEADER, 3)]
)
def test_the_protocol_headers_are_those_of_the_specification(header: bytes, protocol: int) -> None:
    assert header == b"AMQP" + bytes([protocol, 1, 0, 0])


def test_the_empty_frame_is_empty() -> None:
    assert frame_size(EMPTY_FRAME, 0, 8) == len(EMPTY_FRAME)
    assert body_at(EMPTY_FRAME, 0) == len(EMPTY_FRAME)
