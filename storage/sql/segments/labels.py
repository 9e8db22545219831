"""Labels: properties that few messages have besides their records, stored once per segment.

A label is the message-format of a transfer and the container-id of its publisher. Most messages
of a segment share one, or have the default, which is not stored at all. The labels of a segment
lie end to end, with one checksum (CRC-32C) behind the last.
"""

from __future__ import annotations

from typing import Final

from google_crc32c import extend
from librt.strings import BytesWriter, read_i32_le, write_i32_le
from mypy_extensions import i32, i64

Label = tuple[int, str]
"""message-format, publisher"""

NO_LABEL: Final = (0, "")

_SUM: Final[i64] = 4
_LENGTHS: Final[i64] = 8
"""Bytes of the message-format and of the length of the publisher that follows."""


def pack_labels(labels: list[Label]) -> bytes:
    """Return the labels in their order, with the checksum; nothing if there are none."""
    if not labels:
        return b""
    out = BytesWriter()
    for message_format, publisher in labels:
        encoded = publisher.encode(errors="surrogatepass")
        write_i32_le(out, _signed(message_format))
        write_i32_le(out, i32(len(encoded)))
        out.write(encoded)
    packed = out.getvalue()
    return packed + _checksum(packed)


def unpack_labels(data: bytes) -> list[Label]:
    """Return the packed labels in their order; [] if they are not as they were written."""
    end = i64(len(data)) - _SUM
    if end < 0 or data[end:] != _checksum(data[:end]):
        return []
    labels: list[Label] = []
    at: i64 = 0
    while at < end:
        message_format = i64(read_i32_le(data, at)) & 0xFFFF_FFFF
        first = at + _LENGTHS
        at = first + i64(read_i32_le(data, at + 4))
        labels.append((int(message_format), data[first:at].decode(errors="surrogatepass")))
    return labels


def _signed(number: i64) -> i32:
    """Return a uint as a number with a sign, of the same 32 bits."""
    return i32(number - ((number >> 31) << 32))


def _checksum(data: bytes) -> bytes:
    return int(extend(0, data)).to_bytes(4, "little")
