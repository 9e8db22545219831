"""The records that a store keeps."""

import pytest

from storage.records import StoredMessage, StoredNode


def test_a_message_is_kept_field_by_field() -> None:
    message = StoredMessage(
        number=3,
        queue="q",
        position=7,
        encoded=b"x",
        priority=9,
        ttl_ms=-1,
        arrived_ms=1000,
        expires_at_ms=61_000,
        deliver_at_ms=2000,
        delivery_count=2,
    )
    assert (message.position, message.encoded, message.priority) == (7, b"x", 9)
    assert (message.ttl_ms, message.arrived_ms, message.delivery_count) == (-1, 1000, 2)
    assert (message.expires_at_ms, message.deliver_at_ms) == (61_000, 2000)


@pytest.mark.requirement("DST-02")
def test_a_node_is_kept_by_address_and_kind() -> None:
    node = StoredNode(address="orders", kind="topic")
    assert (node.address, node.kind) == ("orders", "topic")
