"""WebSocket without sockets: handshakes, frames and ends, with the library's own client."""

from __future__ import annotations

import struct
from typing import Final

import pytest
from websockets.frames import Close, CloseCode, Frame, Opcode
from websockets.http11 import Response

from broker.websocket.connection import ANSWERS, HTTP, HTTPS, WebSocketConnection
from broker.websocket.limits import (
    FRAME_BEFORE_OPEN_MAX,
    FRAME_FACTOR,
    FRAMES_AT_ONCE,
    HEAD_BYTES_MAX,
    MESSAGE_FACTOR,
)
from tests.support.websocket_frames import (
    MASK,
    REQUEST,
    client_of,
    close_code,
    frame,
    request,
    response_of,
)

pytestmark = pytest.mark.requirement("SEC-06")

SIZE: Final = 64 * 1024
"""The largest AMQP frame in bytes of these tests: enough for FRAME_BEFORE_OPEN_MAX to be less."""


def fresh(path: str = "/", origins: tuple[str, ...] = ()) -> WebSocketConnection:
    return WebSocketConnection(path=path, origins=origins, max_frame_size=SIZE)


def opened() -> WebSocketConnection:
    made = fresh()
    assert made.receive(REQUEST) == b""
    assert made.to_send().startswith(b"HTTP/1.1 101 ")
    return made


# -- the handshake


def test_a_handshake_chooses_the_subprotocol_and_no_extension() -> None:
    made = fresh()
    client = client_of(subprotocols=["other", "amqp"], compressing=True)
    made.receive(b"".join(client.data_to_send()))
    client.receive_data(made.to_send())
    (response,) = client.events_received()
    assert isinstance(response, Response)
    assert response.status_code == 101
    assert response.headers["Sec-WebSocket-Protocol"] == "amqp"
    assert "Sec-WebSocket-Extensions" not in response.headers
    assert made.is_open
    assert not made.failure


def test_a_request_may_come_byte_by_byte_with_frames_behind_it() -> None:
    made = fresh()
    ping = frame(Opcode.PING, b"x")
    payloads = [made.receive(bytes([each])) for each in REQUEST + ping + frame(data=b"AMQP")]
    assert b"".join(payloads) == b"AMQP"
    assert made.to_send().startswith(b"HTTP/1.1 101 ")


def test_frames_in_the_packet_of_the_request_are_answered_behind_the_handshake() -> None:
    made = fresh()
    assert made.receive(REQUEST + frame(Opcode.PING, b"x") + frame(data=b"AMQP")) == b"AMQP"
    sent = made.to_send()
    assert sent.startswith(b"HTTP/1.1 101 ")
    assert sent.endswith(b"\r\n\r\n" + frame(Opcode.PONG, b"x", masked=False))


UPGRADE: Final = {"Upgrade": "websocket"}
VERSION: Final = {"Sec-WebSocket-Version": "13"}
MANY: Final = {f"X-{number}": "" for number in range(200)}
LARGE: Final = {f"X-{number}": "x" * 8000 for number in range(3)}


def asking(header: str, value: str | None) -> bytes:
    return request(changed={header: value})


REFUSED = [
    pytest.param(request(method="POST"), 405, {"Allow": "GET"}, id="another method"),
    pytest.param(request(path="/console"), 404, {}, id="another path"),
    pytest.param(request(path="http://h/"), 404, {}, id="a whole URL"),
    pytest.param(request(version="HTTP/1.0"), 505, {}, id="HTTP/1.0"),
    pytest.param(request(version="HTTP/2"), 400, {}, id="another version"),
    pytest.param(asking("Upgrade", None), 426, UPGRADE, id="no upgrade"),
    pytest.param(asking("Connection", "close"), 426, UPGRADE, id="no connection"),
    pytest.param(asking("Upgrade", "h2c"), 426, UPGRADE, id="another upgrade"),
    pytest.param(asking("Sec-WebSocket-Protocol", None), 400, {}, id="no subprotocol"),
    pytest.param(asking("Sec-WebSocket-Protocol", "mqtt"), 400, {}, id="another subprotocol"),
    pytest.param(asking("Sec-WebSocket-Protocol", "AMQP"), 400, {}, id="in capitals"),
    pytest.param(asking("Sec-WebSocket-Version", "8"), 400, VERSION, id="a draft"),
    pytest.param(asking("Sec-WebSocket-Key", "short"), 400, {}, id="a short key"),
    pytest.param(asking("Origin", "http://evil.example"), 403, {}, id="a page"),
    pytest.param(asking("Origin", "http://" + "x" * 5000), 403, {}, id="a long origin"),
    pytest.param(asking("Host", None), 400, {}, id="no host"),
    pytest.param(asking("Host", "a\r\nHost: b"), 400, {}, id="two hosts"),
    pytest.param(asking("Origin", "null"), 403, {}, id="a page without an origin"),
    pytest.param(asking("Content-Length", "5"), 400, {}, id="a body"),
    pytest.param(asking("Transfer-Encoding", "chunked"), 400, {}, id="a body in chunks"),
    pytest.param(request(path="/" + "x" * 9000), 414, {}, id="a long request line"),
    pytest.param(asking("X", "x" * 9000), 431, {}, id="a long header"),
    pytest.param(request(changed=MANY), 431, {}, id="many headers"),
    pytest.param(request(changed=LARGE), 431, {}, id="large headers"),
    pytest.param(b"GET / HTTP/1.1\r\nX: " + b"x" * HEAD_BYTES_MAX, 431, {}, id="no end of it"),
    pytest.param(b"GET /\r\n\r\n", 400, {}, id="HTTP 0.9"),
    pytest.param(b"GET / HTTP/1.1\r\nX y\r\n\r\n", 400, {}, id="no header"),
    pytest.param(b"AMQP\x00\x01\x00\x00", 400, {}, id="AMQP"),
    pytest.param(b"\x16\x03\x01\x02\x00", 400, {}, id="TLS"),
    pytest.param(b"\r\n\r\n", 400, {}, id="empty lines"),
    pytest.param(frame(data=b"AMQP"), 400, {}, id="a frame"),
]


@pytest.mark.parametrize(("sent", "status", "headers"), REFUSED)
def test_a_wrong_request_is_refused_in_words_of_our_own(
    sent: bytes, status: int, headers: dict[str, str]
) -> None:
    made = fresh()
    assert made.receive(sent) == b""
    assert made.is_over
    assert made.failure.startswith(f"{status} ")
    assert len(made.failure) <= 200
    answer = response_of(made.to_send())
    assert answer.status == status
    assert answer.body.strip() in set(ANSWERS.values()), "nothing of the request or the broker"
    assert set(headers.items()) <= set(answer.headers.items())
    assert answer.headers["Connection"] == "close"
    assert made.receive(REQUEST) == b""
    assert made.to_send() == b"", "there is no second attempt"


def test_the_operator_is_told_what_a_client_without_websocket_should_do() -> None:
    made = fresh()
    made.receive(b"AMQP\x03\x01\x00\x00")
    assert "its URL should begin with amqpws" in made.failure


@pytest.mark.parametrize(
    ("path", "asked", "status"),
    [
        pytest.param("/", "/?token=1", 101, id="with a query"),
        pytest.param("/amqp", "/amqp", 101, id="the path of the settings"),
        pytest.param("/amqp", "/", 404, id="the root"),
        pytest.param("/amqp", "/amqp/", 404, id="one too long"),
    ],
)
def test_the_path_is_that_of_the_settings(path: str, asked: str, status: int) -> None:
    made = fresh(path)
    made.receive(request(path=asked))
    assert made.to_send().startswith(b"HTTP/1.1 %d " % status)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        pytest.param("https://shop.example", 101, id="of the list"),
        pytest.param(None, 101, id="no page"),
        pytest.param("http://shop.example", 403, id="another scheme"),
        pytest.param("https://shop.example:8443", 403, id="another port"),
        pytest.param("https://shop.example.evil.example", 403, id="a longer name"),
    ],
)
def test_pages_of_listed_origins_may_connect(origin: str | None, status: int) -> None:
    made = fresh(origins=("https://shop.example", "http://localhost:8080"))
    made.receive(asking("Origin", origin))
    assert made.to_send().startswith(b"HTTP/1.1 %d " % status)


PLAIN: Final = (HTTP,)
SECURE: Final = (HTTPS, HTTP)
STRICT: Final = (HTTPS,)

OWN_ORIGINS = [
    pytest.param("127.0.0.1:5673", "http://127.0.0.1:5673", PLAIN, 101, id="an address"),
    pytest.param("[::1]:5673", "http://[::1]:5673", PLAIN, 101, id="an address of IPv6"),
    pytest.param("localhost:5673", "http://localhost:5673", PLAIN, 101, id="localhost"),
    pytest.param("LocalHost", "http://localhost", PLAIN, 101, id="in capitals, no port"),
    pytest.param("h.example:1", "https://h.example:1", SECURE, 101, id="a name, by TLS"),
    pytest.param("H.example", "http://h.example", SECURE, 101, id="as Qpid JMS, by TLS"),
    pytest.param("H.example", "https://h.example", STRICT, 101, id="a name, by mutual TLS"),
    pytest.param("h.example", "http://h.example", STRICT, 403, id="without TLS, by mutual TLS"),
    pytest.param("h.example:1", "http://h.example:1", PLAIN, 403, id="a name, rebound perhaps"),
    pytest.param("127.0.0.1.h.example", "http://127.0.0.1.h.example", PLAIN, 403, id="a long name"),
    pytest.param("127.0.0.1:5673", "http://127.0.0.1:8080", PLAIN, 403, id="another port"),
    pytest.param("127.0.0.1:5673", "https://127.0.0.1:5673", PLAIN, 403, id="another scheme"),
    pytest.param("h.example", "https://evil.example", SECURE, 403, id="another host"),
]


@pytest.mark.parametrize(("host", "origin", "schemes", "status"), OWN_ORIGINS)
def test_a_program_may_send_the_origin_of_the_broker_itself(
    host: str, origin: str, schemes: tuple[str, ...], status: int
) -> None:
    made = WebSocketConnection(
        path="/", origins=["https://shop.example"], max_frame_size=SIZE, own_schemes=schemes
    )
    made.receive(request(changed={"Host": host, "Origin": origin}))
    assert made.to_send().startswith(b"HTTP/1.1 %d " % status)
    assert ("add it to the setting origins" in made.failure) is (status == 403)


# -- input


def test_messages_and_fragments_are_one_stream_of_bytes() -> None:
    made = opened()
    sent = (
        frame(data=b"AM")
        + frame(data=b"QP", fin=False)
        + frame(Opcode.PING, b"now")
        + frame(Opcode.CONT, b"\x00", fin=False)
        + frame(Opcode.CONT, b"\x01")
        + frame(data=b"")
    )
    assert made.receive(sent) == b"AMQP\x00\x01"
    assert made.to_send() == frame(Opcode.PONG, b"now", masked=False)
    halves = b"".join(made.receive(bytes([each])) for each in sent)
    assert halves == b"AMQP\x00\x01"


ENDED = [
    pytest.param(frame(Opcode.TEXT, b"AMQP"), 1003, id="text"),
    pytest.param(frame(Opcode.TEXT, b"AM", fin=False), 1003, id="the begin of a text"),
    pytest.param(frame(data=b"AMQP", masked=False), 1002, id="not masked"),
    pytest.param(frame(Opcode.CONT, b"AMQP"), 1002, id="a fragment of nothing"),
    pytest.param(frame(data=b"a", fin=False) + frame(data=b"b"), 1002, id="a message in another"),
    pytest.param(frame(Opcode.PING, b"x" * 126), 1002, id="a long ping"),
    pytest.param(frame(Opcode.PING, fin=False), 1002, id="a ping in fragments"),
    pytest.param(b"\xc2\x80" + MASK, 1002, id="compressed"),
    pytest.param(b"\x83\x80" + MASK, 1002, id="an opcode that does not exist"),
    pytest.param(frame(Opcode.CLOSE, b"\x03"), 1002, id="half a close code"),
    pytest.param(frame(Opcode.CLOSE, struct.pack("!H", 1006)), 1002, id="a close code of no frame"),
    pytest.param(frame(Opcode.CLOSE, b"\x03\xe8\xff"), 1007, id="a reason that is no text"),
    pytest.param(b"\x82\xff" + struct.pack("!Q", 2**63) + MASK, 1009, id="an enormous frame"),
]


@pytest.mark.parametrize(("sent", "code"), ENDED)
def test_a_broken_rule_ends_the_connection_with_its_code(sent: bytes, code: int) -> None:
    made = opened()
    assert made.receive(frame(data=b"fine") + sent) in (b"fine", b"finea")
    assert made.is_over
    assert made.failure
    assert close_code(made.to_send()) == code
    assert made.receive(frame(data=b"more") + frame(Opcode.PING)) == b""
    assert made.to_send() == b""


SIZES = [
    pytest.param(False, FRAME_BEFORE_OPEN_MAX, True, id="before open"),
    pytest.param(False, FRAME_BEFORE_OPEN_MAX + 1, False, id="too large before open"),
    pytest.param(True, FRAME_FACTOR * SIZE, True, id="after open"),
    pytest.param(True, FRAME_FACTOR * SIZE + 1, False, id="too large after open"),
]


@pytest.mark.parametrize(("lifted", "size", "taken"), SIZES)
def test_a_frame_has_a_largest_size(lifted: bool, size: int, taken: bool) -> None:
    made = opened()
    if lifted:
        made.lift_limits()
    assert made.receive(frame(data=bytes(size))) == (bytes(size) if taken else b"")
    assert close_code(made.to_send()) == (None if taken else CloseCode.MESSAGE_TOO_BIG)


def test_too_large_a_frame_is_refused_by_its_head() -> None:
    """Else the broker would keep it until it is whole."""
    made = opened()
    assert made.receive(frame(data=bytes(FRAME_BEFORE_OPEN_MAX + 1))[:10]) == b""
    assert close_code(made.to_send()) == CloseCode.MESSAGE_TOO_BIG


def test_the_fragments_of_a_message_have_a_largest_size_together() -> None:
    made = opened()
    made.lift_limits()
    part = bytes(SIZE)
    got = made.receive(frame(data=part, fin=False))
    for _ in range(MESSAGE_FACTOR - 1):
        got += made.receive(frame(Opcode.CONT, part, fin=False))
    assert len(got) == MESSAGE_FACTOR * SIZE
    assert not made.failure
    assert made.receive(frame(Opcode.CONT, b"x")) == b""
    assert close_code(made.to_send()) == CloseCode.MESSAGE_TOO_BIG


def test_many_small_frames_wait_for_later_turns() -> None:
    made = opened()
    count = 5 * FRAMES_AT_ONCE
    got, turns = made.receive(frame(data=b"x") * count), 1
    while made.is_behind:
        got += made.go_on()
        turns += 1
    assert got == b"x" * count
    assert count // (2 * FRAMES_AT_ONCE) <= turns <= count // FRAMES_AT_ONCE
    assert made.go_on() == b""


# -- output


def test_the_chunks_of_a_round_are_one_binary_message() -> None:
    made = opened()
    made.send([b"AM", b"", b"QP"], SIZE)
    assert made.to_send() == frame(data=b"AMQP", masked=False)
    made.send([b"x" * 70_000], 2**20)
    assert made.to_send() == frame(data=b"x" * 70_000, masked=False)


def test_output_beyond_what_the_client_takes_is_more_than_one_message() -> None:
    made = opened()
    made.send([b"x" * 600, b"y" * 500], 512)
    parts = [b"x" * 512, b"x" * 88 + b"y" * 424, b"y" * 76]
    assert made.to_send() == b"".join(frame(data=part, masked=False) for part in parts)


# -- ends


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(Close(1000, "bye").serialize(), "1000 (OK) bye", id="a code"),
        pytest.param(b"", "1005 (no status received [internal])", id="none"),
        pytest.param(Close(4000, "x").serialize(), "4000 (private use) x", id="one of its own"),
    ],
)
def test_a_close_of_the_client_is_answered_with_its_code(content: bytes, told: str) -> None:
    made = opened()
    assert made.receive(frame(data=b"last") + frame(Opcode.CLOSE, content)) == b"last"
    assert made.to_send() == frame(Opcode.CLOSE, content, masked=False)
    assert made.is_over
    assert not made.failure
    assert made.closed_by() == told


@pytest.mark.parametrize(("going_away", "code"), [(False, 1000), (True, 1001)])
def test_a_close_of_the_broker_waits_for_that_of_the_client(going_away: bool, code: int) -> None:
    made = opened()
    made.close(going_away=going_away)
    assert close_code(made.to_send()) == code
    assert (made.is_open, made.is_over) == (False, False)
    assert made.receive(frame(data=b"was under way")) == b""
    assert made.receive(frame(Opcode.CLOSE, Close(code, "").serialize())) == b""
    assert (made.is_open, made.is_over) == (False, True)
    assert made.to_send() == b""
    made.close()


def test_a_connection_without_a_handshake_is_closed_at_once() -> None:
    made = fresh()
    made.receive(b"GET / HT")
    assert made.is_half_asked
    made.close(going_away=True)
    assert made.is_over
    assert made.to_send() == b""
    assert not made.failure


def test_a_frame_of_the_library_is_a_frame_of_these_tests() -> None:
    assert frame(data=b"x", masked=False) == Frame(Opcode.BINARY, b"x").serialize(mask=False)
