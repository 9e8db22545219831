"""Transfers without a message: a delivery of an earlier link is settled, or given up."""

from typing import Any

import pytest

from broker.amqp.outcomes import ACCEPTED, Error, Rejected
from broker.amqp.outgoing_link import OutgoingLink
from broker.amqp.resumed import abort_resumed, settle_resumed
from tests.support.broker import Broker, Client
from tests.support.frames import Transfer


def attached(**fields: Any) -> tuple[Client, OutgoingLink]:
    """Return a client, and the broker's end of its link, which has two credits."""
    client = Broker().session(**fields)
    client.attach_receiver(credit=2)
    (link,) = client.broker.container.links()
    assert isinstance(link, OutgoingLink)
    return client, link


def test_a_delivery_is_settled_with_its_outcome() -> None:
    client, link = attached()
    settle_resumed(link, b"tag", ACCEPTED)
    client.broker.container.run_round()
    told = client.expect_last(Transfer)
    assert (told.tag, told.resume, told.settled, told.state) == (b"tag", True, True, ACCEPTED)
    assert (told.payload, told.more, told.aborted) == (b"", False, False)
    assert (link.credit, link.delivery_count) == (1, 1)


@pytest.mark.parametrize(("size", "is_told"), [(300, True), (600, False)])
def test_an_outcome_beyond_the_frame_of_the_peer_is_left_out(size: int, is_told: bool) -> None:
    client, link = attached(max_frame_size=512)
    settle_resumed(
        link, b"tag", Rejected(Error(condition="amqp:internal-error", description="x" * size))
    )
    client.broker.container.run_round()
    told = client.expect_last(Transfer)
    assert (told.tag, told.resume, told.settled) == (b"tag", True, True)
    assert (told.state is not None) == is_told
    assert (link.credit, link.delivery_count) == (1, 1)


def test_a_delivery_is_given_up() -> None:
    client, link = attached()
    abort_resumed(link, b"tag")
    client.broker.container.run_round()
    told = client.expect_last(Transfer)
    assert (told.tag, told.resume, told.aborted, told.payload) == (b"tag", True, True, b"")
    assert (link.credit, link.delivery_count) == (1, 1)
