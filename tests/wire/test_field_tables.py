"""All composites checked by their tables: order, defaults, nulls, missing, wrong fields (1.4)."""

from collections.abc import Callable

import pytest

from broker.amqp.decode import descriptor_at
from broker.amqp.errors import DECODE_ERROR, INVALID_FIELD, ConnectionFault, LinkFault
from broker.amqp.outcomes import ACCEPTED, Error, read_error, read_state
from broker.amqp.performatives import (
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
from broker.amqp.terminus import (
    Source,
    SourceFilter,
    Target,
    read_coordinator,
    read_source,
    read_target,
)
from broker.amqp.transfer import Disposition, Transfer
from tests.wire.golden import composite, mapping, symbol
from tests.wire.specification import COMPOSITES, MUST, Field

NULL = "40"

# for every type in the tables, an encoded value and its decoded form
SAMPLES: dict[str, tuple[str, object]] = {
    "string": ("a10173", "s"),
    "symbol": (symbol("s"), "s"),
    "symbols": ("e004 01 a3 0173", ["s"]),
    "binary": ("a00173", b"s"),
    "tag": ("a00173", b"s"),
    "uint": ("5207", 7),
    "ushort": ("60 0007", 7),
    "ulong": ("5307", 7),
    "settle-mode": ("5001", 1),
    "sasl-code": ("5001", 1),
    "durability": ("5202", 2),
    "boolean": ("41", True),
    "optional boolean": ("42", 0),
    "expiry-policy": (symbol("never"), "never"),
    "distribution-mode": (symbol("copy"), "copy"),
    "fields": (mapping(symbol("k"), NULL), {"k": None}),
    "map": (mapping(symbol("k"), NULL), bytes.fromhex(mapping(symbol("k"), NULL))),
    "filter-set": (mapping(symbol("k"), "a10173"), [SourceFilter]),
    "error": (composite(0x1D, symbol("c")), Error),
    "source": (composite(0x28), Source),
    "target": (composite(0x29), Target),
    "state": (composite(0x24), ACCEPTED),
    "outcome": (composite(0x24), ACCEPTED),
}


def transfer(data: bytes, at: int, end: int) -> object:
    read = Transfer()
    read.read(data, at, end)
    return read


def disposition(data: bytes, at: int, end: int) -> object:
    read = Disposition()
    read.read(data, at, end)
    return read


def state(data: bytes, _: int, end: int) -> object:
    return read_state(data, 0, end)


READERS: dict[str, Callable[[bytes, int, int], object]] = {
    "open": read_open,
    "begin": read_begin,
    "attach": read_attach,
    "flow": read_flow,
    "transfer": transfer,
    "disposition": disposition,
    "detach": read_detach,
    "end": read_end,
    "close": read_close,
    "error": read_error,
    "received": state,
    "accepted": state,
    "rejected": state,
    "released": state,
    "modified": state,
    "source": read_source,
    "target": read_target,
    "coordinator": read_coordinator,
    "declared": state,
    "transactional-state": state,
    "sasl-mechanisms": read_sasl_mechanisms,
    "sasl-init": read_sasl_init,
    "sasl-challenge": read_sasl_challenge,
    "sasl-response": read_sasl_response,
    "sasl-outcome": read_sasl_outcome,
}

FIELDS = [
    pytest.param(name, index, id=f"{name}: {field.name}")
    for name, (_, fields) in COMPOSITES.items()
    for index, field in enumerate(fields)
]
MANDATORY = [
    pytest.param(name, index, id=f"{name}: {field.name}")
    for name, (_, fields) in COMPOSITES.items()
    for index, field in enumerate(fields)
    if field.default is MUST
]
NAMES = list(COMPOSITES)


def read(name: str, fields: list[str]) -> tuple[bytes, object]:
    """Return the composite with these fields, encoded, and decoded with other data behind it."""
    code, _ = COMPOSITES[name]
    data = bytes.fromhex(composite(code, *fields))
    _, at = descriptor_at(data, 0, len(data))
    return data, READERS[name](data + bytes(40), at, len(data))


def least(name: str) -> list[str]:
    """Return the mandatory fields of a composite, with nulls for the others."""
    _, fields = COMPOSITES[name]
    return [SAMPLES[field.type][0] if field.default is MUST else NULL for field in fields]


def held(data: bytes, composite_read: object, field: Field) -> object:
    """Return the value of `field` in a composite that was decoded from `data`."""
    if isinstance(composite_read, Transfer) and field.type == "tag":
        return composite_read.tag(data)
    if isinstance(composite_read, Transfer | Disposition) and field.type == "state":
        at = composite_read.state_at
        return None if at < 0 else read_state(data, at, len(data))
    return getattr(composite_read, field.attribute)


def test_every_type_has_a_sample_and_every_composite_a_reader() -> None:
    assert {f.type for _, fields in COMPOSITES.values() for f in fields} == SAMPLES.keys()
    assert READERS.keys() == COMPOSITES.keys()


@pytest.mark.parametrize(("name", "index"), FIELDS)
def test_a_field_is_at_its_place(name: str, index: int) -> None:
    """Only this field and the mandatory ones are set: this shows that the order is the table's."""
    field = COMPOSITES[name][1][index]
    fields = least(name)
    fields[index], expected = SAMPLES[field.type]
    for shorter in (fields, fields[: index + 1]):
        if any(f.default is MUST for f in COMPOSITES[name][1][len(shorter) :]):
            continue
        data, composite_read = read(name, shorter)
        value = held(data, composite_read, field)
        if isinstance(expected, type):
            assert isinstance(value, expected)
        elif expected == [SourceFilter]:
            assert isinstance(value, list)
            assert isinstance(value[0], SourceFilter)
        else:
            assert value == expected


@pytest.mark.parametrize("name", NAMES)
def test_nulls_and_absent_fields_are_defaults(name: str) -> None:
    _, table = COMPOSITES[name]
    fields = least(name)
    shortest = list(fields)
    while shortest and shortest[-1] == NULL:
        shortest.pop()
    for given in (fields, shortest):
        data, composite_read = read(name, given)
        for field in table:
            if field.default is not MUST:
                assert held(data, composite_read, field) == field.default, field.name


@pytest.mark.parametrize(("name", "index"), MANDATORY)
def test_a_mandatory_field_is_missed(name: str, index: int) -> None:
    fields = least(name)
    fields[index] = NULL
    for given in (fields, fields[:index]):
        with pytest.raises(ConnectionFault) as caught:
            read(name, given)
        assert caught.value.condition == INVALID_FIELD
        assert name in caught.value.description


WRONG = ["a10173", "5401", "41", mapping(NULL, NULL), "98" + "00" * 16, "5f00", "0040"]
# values of WRONG that some type allows
RIGHT = {
    ("string", "a10173"),
    ("boolean", "41"),
    ("optional boolean", "41"),
    ("map", mapping(NULL, NULL)),
}


@pytest.mark.parametrize(("name", "index"), FIELDS)
def test_a_field_of_the_wrong_type_is_a_fault(name: str, index: int) -> None:
    field = COMPOSITES[name][1][index]
    for wrong in WRONG:
        if (field.type, wrong) not in RIGHT:
            fields = least(name)
            fields[index] = wrong
            with pytest.raises((ConnectionFault, LinkFault)):
                read(name, fields)


@pytest.mark.parametrize("name", NAMES)
def test_a_field_too_many_is_a_fault(name: str) -> None:
    fields = least(name)
    with pytest.raises(ConnectionFault) as caught:
        read(name, [*fields, NULL])
    assert caught.value.condition == DECODE_ERROR


@pytest.mark.parametrize("name", NAMES)
def test_a_body_that_is_no_list_is_a_fault(name: str) -> None:
    code, _ = COMPOSITES[name]
    for body in ("40", "41", "a000", mapping(), "e0020040", "00532445", "c000", "d0", ""):
        data = bytes.fromhex(f"0053{code:02x}{body}")
        with pytest.raises(ConnectionFault):
            READERS[name](data + bytes(40), 3, len(data))
