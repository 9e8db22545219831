"""Hypothesis strategies for values of every AMQP type."""

from hypothesis import strategies as st

from broker.amqp.types import (
    Array,
    Byte,
    Char,
    Decimal,
    Described,
    Float,
    Int,
    Map,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

LONGS = st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(-0x80, 0x7F)
BYTES = st.integers(0, 0xFF)
WORDS = st.integers(0, 2**32 - 1)
# short texts, and some at the size limit of the 8-bit encodings
TEXTS = st.text(max_size=4) | st.sampled_from(["a" * 255, "a" * 256, "é" * 127, "é" * 128])
BINARIES = st.binary(max_size=4) | st.sampled_from([bytes(255), bytes(256)])
NAMES = st.text("ab-", max_size=3) | st.sampled_from(["a" * 255, "a" * 256])
SYMBOLS = NAMES.map(Symbol)
ULONGS = st.integers(0, 2**64 - 1).map(ULong)
DESCRIPTORS = ULONGS | SYMBOLS
FLOATS = st.floats(width=32).map(Float)

# constructor of an array, and a strategy for the elements that it can hold
ELEMENTS: list[tuple[int, st.SearchStrategy[object]]] = [
    (0x50, BYTES.map(UByte)),
    (0x51, SMALL.map(Byte)),
    (0x52, BYTES.map(UInt)),
    (0x53, BYTES.map(ULong)),
    (0x54, SMALL.map(Int)),
    (0x55, SMALL),
    (0x56, st.booleans()),
    (0x60, st.integers(0, 0xFFFF).map(UShort)),
    (0x61, st.integers(-0x8000, 0x7FFF).map(Short)),
    (0x70, WORDS.map(UInt)),
    (0x71, st.integers(-(2**31), 2**31 - 1).map(Int)),
    (0x72, FLOATS),
    (0x73, st.integers(0, 0x10FFFF).map(Char)),
    (0x74, st.binary(min_size=4, max_size=4).map(Decimal)),
    (0x80, ULONGS),
    (0x81, LONGS),
    (0x82, st.floats()),
    (0x83, LONGS.map(Timestamp)),
    (0x84, st.binary(min_size=8, max_size=8).map(Decimal)),
    (0x94, st.binary(min_size=16, max_size=16).map(Decimal)),
    (0x98, st.uuids()),
    (0xB0, BINARIES),
    (0xB1, TEXTS),
    (0xB3, SYMBOLS),
    (0xC0, st.lists(st.booleans(), max_size=9)),
    (0xD1, st.builds(lambda value: Map([("k", value)]), LONGS)),
    (0xE0, st.lists(SMALL, max_size=9).map(lambda values: Array(0x55, list(values)))),
]


@st.composite
def scalars(draw: st.DrawFn) -> object:
    """Draw a value that contains no other values."""
    _, elements = draw(st.sampled_from(ELEMENTS[:24]))
    return draw(elements)


@st.composite
def arrays(draw: st.DrawFn) -> Array:
    """Draw values of one constructor, described or not, or any number of zero-width elements."""
    if draw(st.integers(0, 9)) == 0:
        return Array(draw(st.integers(0x40, 0x45)), [], zero_width_count=draw(WORDS))
    code, elements = draw(st.sampled_from(ELEMENTS))
    descriptor = draw(st.none() | DESCRIPTORS)
    return Array(code, draw(st.lists(elements, max_size=3)), descriptor=descriptor)


@st.composite
def values(draw: st.DrawFn, depth: int = 3) -> object:
    """Draw a value of any type, with up to `depth` levels of nested values."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return None
    if kind == 1:
        return draw(arrays())
    if kind < 5 or depth == 0:
        return draw(scalars())
    if kind < 7:
        return draw(st.lists(values(depth - 1), max_size=4))
    if kind == 7:
        return Described(draw(DESCRIPTORS), draw(values(depth - 1)))
    keys = draw(st.lists(TEXTS | SYMBOLS | LONGS, max_size=4, unique=True))
    return Map([(key, draw(values(depth - 1))) for key in keys])
