"""Attributes that every kind of entity reports."""

from dataclasses import dataclass

from broker.management.entity import EntityRecord, attributes_of


@dataclass(frozen=True, kw_only=True)
class Sized(EntityRecord):
    size: int


def test_attributes_in_the_order_of_their_declaration() -> None:
    assert attributes_of(Sized) == ["name", "identity", "type", "size"]


def test_a_record_as_a_map() -> None:
    record = Sized(name="a", identity="1", type="x", size=3)
    assert record.as_map() == {"name": "a", "identity": "1", "type": "x", "size": 3}
