"""The numbers and symbols of descriptors, compared with the specification's tables."""

import pytest

from broker.amqp import descriptors
from broker.amqp.constructors import descriptor_at

SPECIFIED = {
    "amqp:open:list": 0x10,
    "amqp:begin:list": 0x11,
    "amqp:attach:list": 0x12,
    "amqp:flow:list": 0x13,
    "amqp:transfer:list": 0x14,
    "amqp:disposition:list": 0x15,
    "amqp:detach:list": 0x16,
    "amqp:end:list": 0x17,
    "amqp:close:list": 0x18,
    "amqp:error:list": 0x1D,
    "amqp:received:list": 0x23,
    "amqp:accepted:list": 0x24,
    "amqp:rejected:list": 0x25,
    "amqp:released:list": 0x26,
    "amqp:modified:list": 0x27,
    "amqp:source:list": 0x28,
    "amqp:target:list": 0x29,
    "amqp:delete-on-close:list": 0x2B,
    "amqp:delete-on-no-links:list": 0x2C,
    "amqp:delete-on-no-messages:list": 0x2D,
    "amqp:delete-on-no-links-or-messages:list": 0x2E,
    "amqp:coordinator:list": 0x30,
    "amqp:declare:list": 0x31,
    "amqp:discharge:list": 0x32,
    "amqp:declared:list": 0x33,
    "amqp:transactional-state:list": 0x34,
    "amqp:sasl-mechanisms:list": 0x40,
    "amqp:sasl-init:list": 0x41,
    "amqp:sasl-challenge:list": 0x42,
    "amqp:sasl-response:list": 0x43,
    "amqp:sasl-outcome:list": 0x44,
    "amqp:header:list": 0x70,
    "amqp:delivery-annotations:map": 0x71,
    "amqp:message-annotations:map": 0x72,
    "amqp:properties:list": 0x73,
    "amqp:application-properties:map": 0x74,
    "amqp:data:binary": 0x75,
    "amqp:amqp-sequence:list": 0x76,
    "amqp:amqp-value:*": 0x77,
    "amqp:footer:map": 0x78,
    "apache.org:no-local-filter:list": 0x468C00000003,
    "apache.org:selector-filter:string": 0x468C00000004,
}


@pytest.mark.parametrize("name", SPECIFIED)
def test_a_symbol_means_the_same_as_its_number(name: str) -> None:
    raw = name.encode()
    data = b"\x00\xa3" + bytes([len(raw)]) + raw
    assert descriptor_at(data, 0, len(data)) == (SPECIFIED[name], len(data))


def test_there_are_no_other_symbols() -> None:
    assert {name.decode(): code for name, code in descriptors.BY_SYMBOL.items()} == SPECIFIED
