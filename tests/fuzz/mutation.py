"""Mutations of inputs: changed bytes, nested values, frames that are split and joined.

The same seed gives the same inputs. Half of the changes correct the sizes around them, so that they
reach deeper code, too.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tests.fuzz.structure import Value, values_of

SIZE_MAX: Final = 64 * 1024
"""Maximum bytes per input; larger inputs (big frames, full buffers) have tests of their own."""

HEAD_SIZE: Final = 8
NESTING_MAX: Final = SIZE_MAX // 3
"""Maximum depth of values nested at three bytes per level.

Compiled, that is more than the stack of `child.py` admits.
"""

KINDS_OF_NESTING: Final = 5
TEXT_SIZES: Final = [3, 40, 255, 256, 600, 5000]

NUMBERS_IN_HEX: Final = """
    00 01 02 08 1f 20 21 7f 80 fe ff 0000 00ff 0100 7fff 8000 ffff 00000000 00000001 00000008
    000000ff 00000100 00000200 0000ffff 00010000 00100000 00100001 7fffffff 80000000
    fffffffe ffffffff 0000000000000000 7fffffffffffffff 8000000000000000 ffffffffffffffff
"""
NUMBERS: Final = [bytes.fromhex(each) for each in NUMBERS_IN_HEX.split()]

CONSTRUCTORS: Final = bytes.fromhex(
    "00404142434445505152535455566061707172737480818283849498a0a1a3b0b1b3c0c1d0d1e0f0"
)

VALUES_IN_HEX: Final = """
    40 41 42 43 44 45 5600 5602 5001 5100 5205 5307 54ff 55ff 60ffff 618000 7000000001
    70ffffffff 7180000000 727fc00000 730000d800 7300110000 80ffffffffffffffff
    80000000000000ff 817fffffffffffffff 827ff8000000000000 830000019a00000000
    98000102030405060708090a0b0c0d0e0f a000 a001ff a10161 a102c328 a30161 a301ff
    b00000000101 b1000000026869 b30000000161 c00100 c10100 c103015240 c003015252
    c10602a3016b5201 c10a04a3016b41a3016b41 d00000000400000000 e003014043 e00aff41
    f000000005ffffffff41 f000000005ffffffff40 e0050200a301614040 005377a10161 00a3016140
    c103024540 c10502c0010040 c106020053774340 00532445 005325c00100 005326c00641424340404040
    0080000000000000007045 c0020145
"""
VALUES: Final = [bytes.fromhex(each) for each in VALUES_IN_HEX.split()]

DESCRIBED: Final = b"\x00\x53\x77"


def nested(kind: int, inner: bytes, depth: int) -> bytes:
    """Return `inner` nested in `depth` values of a kind, all of whose sizes are correct."""
    if kind == 0:
        return DESCRIBED * depth + inner
    pieces: list[bytes] = []
    size = len(inner)
    for _ in range(depth):
        if kind == 1:
            piece = b"\xd0" + (size + 4).to_bytes(4) + b"\0\0\0\1"
        elif kind == 2:
            piece = b"\xd1" + (size + 5).to_bytes(4) + b"\0\0\0\2\x40"
        elif kind == 3:
            piece = b"\xf0" + (size + 4).to_bytes(4) + b"\0\0\0\1"
        else:
            piece = DESCRIBED + b"\xd0" + (size + 4).to_bytes(4) + b"\0\0\0\1"
        pieces.append(piece)
        size += len(piece)
    pieces.reverse()
    return b"".join(pieces) + inner


def frames_of(data: bytes) -> list[bytes]:
    """Return `data` cut into protocol headers and frames; a rest that is neither is last."""
    pieces: list[bytes] = []
    at = 0
    while len(data) - at >= HEAD_SIZE:
        size = int.from_bytes(data[at : at + 4])
        if data[at : at + 4] == b"AMQP":
            size = HEAD_SIZE
        if not HEAD_SIZE <= size <= len(data) - at:
            break
        pieces.append(data[at : at + size])
        at += size
    if at < len(data):
        pieces.append(data[at:])
    return pieces


def sized(frame: bytes) -> bytes:
    """Return a frame with its own size in its header."""
    if len(frame) < HEAD_SIZE or frame[:4] == b"AMQP":
        return frame
    return len(frame).to_bytes(4) + frame[4:]


class Mutator:
    """Makes inputs from `seeds`, one after another; `framed` ones are sequences of frames."""

    def __init__(self, seeds: list[bytes], *, seed: int, framed: bool) -> None:
        self._seeds: Final = seeds
        self._rng: Final = Random(seed)
        self._framed: Final = framed

    def next(self) -> bytes:
        return self.changed(self._rng.choice(self._seeds))[:SIZE_MAX]

    def changed(self, data: bytes) -> bytes:
        """Return `data` with one to four changes."""
        rng = self._rng
        for _ in range(1 + int(rng.random() * rng.random() * 4)):
            if self._framed and rng.random() < 0.9:
                data = self._reframed(data)
            elif rng.random() < 0.5:
                data = self._regrown(data)
            else:
                data = self._edited(data)
        return data

    def _regrown(self, data: bytes) -> bytes:
        """Return `data` with a change to one of its values, and correct sizes around it."""
        rng = self._rng
        values, rest = values_of(data)
        families = [values, *(family for value in values for family in value.families())]
        family = rng.choice(families)
        if not family:
            return self._edited(data)
        at = rng.randrange(len(family))
        what = rng.randrange(9)
        if what < 2:
            family[at] = Value(rng.choice(VALUES))
        elif what < 4:
            family[at] = self._number()
        elif what == 4:
            family.insert(at, rng.choice(family))
        elif what == 5:
            del family[at]
        elif what == 6:
            others = values_of(rng.choice(self._seeds))[0] or [Value(b"\x40")]
            family[at] = rng.choice(rng.choice([others, *others[0].families()]))
        elif what == 7:
            code = rng.choice(b"\xb0\xb1\xb3")
            text = b"x" * rng.choice(TEXT_SIZES)
            family[at] = Value(bytes([code]) + len(text).to_bytes(4) + text)
        else:
            family[at] = Value(self._nested(b"", family[at].encoded(), b""))
        return b"".join(value.encoded() for value in values) + rest

    def _number(self) -> Value:
        """Return an unsigned number: a small one (handles, ids, credit) or a boundary value."""
        rng = self._rng
        number = rng.choice([rng.randrange(6), 1 << rng.randrange(32), 0xFFFF_FFFF])
        if rng.random() < 0.5:
            number = max(0, number - rng.randrange(3))
        return Value(b"\x70" + number.to_bytes(4))

    def _reframed(self, data: bytes) -> bytes:
        """Return `data` with one frame edited, doubled, moved, removed, or frames inserted."""
        rng = self._rng
        frames = frames_of(data)
        at = rng.randrange(len(frames) + 1)
        if at == len(frames):
            frames += frames_of(rng.choice(self._seeds))
            return b"".join(frames)
        what = rng.random()
        if what < 0.5:
            frames[at] = sized(frames[at][:HEAD_SIZE] + self._regrown(frames[at][HEAD_SIZE:]))
        elif what < 0.7:
            frame = frames[at][:HEAD_SIZE] + self._edited(frames[at][HEAD_SIZE:])
            frames[at] = sized(frame) if rng.random() < 0.8 else frame
        elif what < 0.75:
            frames[at] = self._edited(frames[at])
        elif what < 0.82:
            frames.insert(at, frames[at])
        elif what < 0.87:
            del frames[at]
        elif what < 0.94:
            frames.insert(at, rng.choice(frames_of(rng.choice(self._seeds)) or [b""]))
        else:
            frames.insert(rng.randrange(len(frames)), frames.pop(at))
        return b"".join(frames)

    def _edited(self, data: bytes) -> bytes:
        rng = self._rng
        start = rng.randrange(len(data) + 1)
        stop = min(len(data), start + int(1 / (rng.random() + 0.02)))
        before, within, behind = data[:start], data[start:stop], data[stop:]
        what = rng.randrange(11)
        if what == 0 and within:
            within = bytes([within[0] ^ 1 << rng.randrange(8)]) + within[1:]
        elif what == 1:
            number = rng.choice(NUMBERS)
            return before + number + data[start + len(number) :]
        elif what == 2:
            return before + bytes([rng.choice(CONSTRUCTORS)]) + data[start + 1 :]
        elif what == 3:
            within = rng.choice(VALUES)
        elif what == 4:
            within += rng.choice(VALUES)
        elif what == 5:
            within = b""
        elif what == 6:
            within *= 1 + int(2 / (rng.random() + 0.01))
        elif what == 7:
            return self._nested(before, within, behind)
        elif what == 8:
            other = rng.choice(self._seeds)
            return before + other[rng.randrange(len(other) + 1) :]
        elif what == 9:
            return before
        else:
            within = rng.randbytes(len(within))
        return before + within + behind

    def _nested(self, before: bytes, within: bytes, behind: bytes) -> bytes:
        rng = self._rng
        depth = int(1 / (rng.random() + 1 / NESTING_MAX))
        kind = rng.randrange(KINDS_OF_NESTING)
        return before + nested(kind, within or b"\x40", depth) + behind
