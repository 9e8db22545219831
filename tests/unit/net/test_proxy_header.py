"""Headers of the PROXY protocol, right and wrong, in one piece and byte by byte."""

from __future__ import annotations

import struct

import pytest

from broker.net.proxy_header import (
    COUNTED_BYTES_MAX,
    LINE_BYTES_MAX,
    SIGNATURE,
    ClientAddress,
    ProxyError,
    ProxyHeaderReader,
)
from tests.support.proxy_headers import version_1, version_2

pytestmark = [pytest.mark.requirement("SEC-06"), pytest.mark.attack("A9")]

WIDEST = "2fff:" + "ffff:" * 6 + "ffff"
LONGEST = f"PROXY TCP6 {WIDEST} {WIDEST} 65535 65535\r\n".encode()
FULL = bytes(COUNTED_BYTES_MAX - 12)

RIGHT = [
    pytest.param(version_1("192.0.2.7", 40000), ("192.0.2.7", 40000), id="1, IPv4"),
    pytest.param(version_1("2001:db8::7", 1), ("2001:db8::7", 1), id="1, IPv6"),
    pytest.param(version_1("192.0.2.7", 0), ("192.0.2.7", 0), id="1, no port"),
    pytest.param(LONGEST, (WIDEST, 65535), id="1, longest"),
    pytest.param(b"PROXY UNKNOWN\r\n", None, id="1, unknown"),
    pytest.param(b"PROXY UNKNOWN x y z\r\n", None, id="1, unknown with words"),
    pytest.param(version_1("::ffff:192.0.2.7", 5), ("192.0.2.7", 5), id="1, IPv4 as IPv6"),
    pytest.param(version_2("192.0.2.7", 40000), ("192.0.2.7", 40000), id="2, IPv4"),
    pytest.param(version_2("2001:db8::7", 1), ("2001:db8::7", 1), id="2, IPv6"),
    pytest.param(version_2("::ffff:192.0.2.7", 1), ("192.0.2.7", 1), id="2, IPv4 as IPv6"),
    pytest.param(version_2("192.0.2.7", 1, extra=bytes(500)), ("192.0.2.7", 1), id="2, with more"),
    pytest.param(
        version_2("192.0.2.7", 1, extra=bytes(COUNTED_BYTES_MAX - 12)),
        ("192.0.2.7", 1),
        id="2, full",
    ),
    pytest.param(SIGNATURE + b"\x20\x00\x00\x00", None, id="2, local"),
    pytest.param(version_2("192.0.2.7", 1, command=0x20), None, id="2, local with an address"),
    pytest.param(SIGNATURE + b"\x21\x00\x00\x00", None, id="2, no address"),
    pytest.param(SIGNATURE + b"\x21\x31\x00\xd8" + b"/run".ljust(216, b"\0"), None, id="2, UNIX"),
]


@pytest.mark.parametrize("behind", [b"", b"\x16\x03\x01", b"AMQP\x00\x01\x00\x00", b"PROXY \r\n\n"])
@pytest.mark.parametrize(("header", "client"), RIGHT)
def test_a_header_is_read_and_no_byte_more(
    header: bytes, client: tuple[str, int] | None, behind: bytes
) -> None:
    whole = ProxyHeaderReader()
    assert whole.feed(header + behind) == len(header)
    assert whole.is_complete
    assert whole.client == (None if client is None else ClientAddress(*client))
    assert whole.feed(behind) == 0
    pieces = ProxyHeaderReader()
    taken = 0
    for each in header + behind:
        taken += pieces.feed(bytes([each]))
    assert taken == len(header)
    assert pieces.client == whole.client


TOO_MUCH = struct.pack("!H", COUNTED_BYTES_MAX + 1)

WRONG = [
    pytest.param(b"AMQP\x00\x01\x00\x00", "there is none", id="AMQP"),
    pytest.param(b"\x16\x03\x01\x02\x00", "there is none", id="TLS"),
    pytest.param(b"GET / HTTP/1.1\r\n\r\n", "there is none", id="HTTP"),
    pytest.param(b"proxy tcp4 1.1.1.1 1.1.1.1 1 1\r\n", "there is none", id="lower case"),
    pytest.param(b"\r\n\r\nGET", "there is none", id="half a signature"),
    pytest.param(b"PROXY TCP4 " + b"1" * LINE_BYTES_MAX, "longer than 107", id="no end"),
    pytest.param(b"PROXY UNKNOWN " + b"1" * LINE_BYTES_MAX + b"\r\n", "longer than", id="too long"),
    pytest.param(b"PROXY TCP4 1.1.1.1 1.1.1.1 1 1\n", "CR LF", id="LF alone"),
    pytest.param(b"PROXY TCP4\r\nAMQP\x00\x01\x00\x00", "no text|two addresses|CR LF", id="cut"),
    pytest.param(b"PROXY \xff\xff\xff\xff\xff\xff\xff\r\n", "not text", id="not ASCII"),
    pytest.param(b"PROXY TCP4 1.1.1.1 1.1.1.1 1\r\n", "two addresses", id="a port is missing"),
    pytest.param(b"PROXY TCP4 1.1.1.1 1.1.1.1 1 1 1\r\n", "two addresses", id="a word too many"),
    pytest.param(b"PROXY TCP4  1.1.1.1 1.1.1.1 1 1\r\n", "two addresses", id="two spaces"),
    pytest.param(b"PROXY UDP4 1.1.1.1 1.1.1.1 1 1\r\n", "two addresses", id="UDP"),
    pytest.param(b"PROXY TCP4 1.1.1 1.1.1.1 1 1\r\n", "an address", id="three numbers"),
    pytest.param(b"PROXY TCP4 01.1.1.1 1.1.1.1 1 1\r\n", "an address", id="a leading zero"),
    pytest.param(b"PROXY TCP4 ::1 ::1 1 1\r\n", "an address", id="IPv6 as IPv4"),
    pytest.param(b"PROXY TCP6 1.1.1.1 1.1.1.1 1 1\r\n", "an address", id="IPv4 as IPv6"),
    pytest.param(b"PROXY TCP6 fe80::1%0 ::1 1 1\r\n", "an address", id="a zone"),
    pytest.param(b"PROXY TCP4 1.1.1.1 x 1 1\r\n", "an address", id="the other address"),
    pytest.param(b"PROXY TCP4 1.1.1.1 1.1.1.1 65536 1\r\n", "a port", id="a large port"),
    pytest.param(b"PROXY TCP4 1.1.1.1 1.1.1.1 +1 1\r\n", "a port", id="a sign"),
    pytest.param(b"PROXY TCP4 1.1.1.1 1.1.1.1 1 01\r\n", "a port", id="a port with a zero"),
    pytest.param(version_1("0.0.0.0", 1), "no client", id="1, no address"),
    pytest.param(version_2("224.0.0.1", 1), "no client", id="2, many"),
    pytest.param(version_2("::", 1), "no client", id="2, no address"),
    pytest.param(version_2("1.1.1.1", 1, command=0x22), "command", id="2, a command"),
    pytest.param(version_2("1.1.1.1", 1, command=0x11), "version", id="2, a version"),
    pytest.param(version_2("1.1.1.1", 1, family=0x12), "family", id="2, UDP"),
    pytest.param(version_2("1.1.1.1", 1, family=0x21), "too short", id="2, IPv4 as IPv6"),
    pytest.param(SIGNATURE + b"\x21\x11\x00\x00", "too short", id="2, without addresses"),
    pytest.param(
        SIGNATURE + b"\x21\x11" + struct.pack("!H", COUNTED_BYTES_MAX + 1),
        "longer",
        id="2, too long",
    ),
]


def fed_slowly(sent: bytes) -> None:
    reader = ProxyHeaderReader()
    for each in sent:
        reader.feed(bytes([each]))


@pytest.mark.parametrize(("sent", "told"), WRONG)
def test_a_wrong_header_is_refused(sent: bytes, told: str) -> None:
    with pytest.raises(ProxyError, match=told):
        ProxyHeaderReader().feed(sent)
    with pytest.raises(ProxyError, match=told):
        fed_slowly(sent)


@pytest.mark.parametrize("header", [version_1("192.0.2.7", 1), version_2("192.0.2.7", 1)])
def test_a_header_that_is_cut_is_not_complete(header: bytes) -> None:
    for size in range(len(header)):
        reader = ProxyHeaderReader()
        assert reader.feed(header[:size]) == size
        assert not reader.is_complete


def test_the_longest_line_is_the_longest() -> None:
    assert len(LONGEST) == LINE_BYTES_MAX - 3, "without what may follow UNKNOWN"
