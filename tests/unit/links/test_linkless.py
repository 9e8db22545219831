"""Clients without links: they have the rights of their user, and their refusals are recorded."""

from __future__ import annotations

import pytest

from broker.routing.errors import NotPermitted
from broker.security.identity import ADMIN
from broker.security.resources import QUEUE, Resource
from tests.support.access import ADA, RuledUsers, guarded
from tests.support.broker import Broker
from tests.support.linkless import linkless


@pytest.mark.requirement("MAP-09")
def test_a_client_has_the_rights_of_its_user() -> None:
    broker = guarded("send queue:a")
    client, refusals = linkless(broker)
    client.demand("send", Resource(QUEUE, "a"))
    with pytest.raises(NotPermitted, match="not allowed to send queue:b"):
        client.demand("send", Resource(QUEUE, "b"))
    assert len(refusals) == 1
    assert broker.stats.access_denied == 1


@pytest.mark.attack("Z7")
def test_a_client_takes_the_roles_that_its_user_has_by_now() -> None:
    users = RuledUsers({ADA: {ADMIN}})
    client, _ = linkless(Broker(authenticator=users))
    queue = Resource(QUEUE, "a")
    assert client.renew()
    assert client.may("send", queue).allowed
    users.roles[ADA] = frozenset()
    assert client.renew()
    assert not client.may("send", queue).allowed
    users.ended.add(ADA)
    assert not client.renew()


def test_each_client_has_a_number_that_no_connection_has() -> None:
    broker = guarded()
    first, _ = linkless(broker)
    assert broker.dial().peer.id != first.id
    second, _ = linkless(broker)
    assert second.id != first.id


def test_a_node_belongs_to_the_user_that_caused_it() -> None:
    broker = guarded("send,create queue:a")
    client, _ = linkless(broker)
    node = client.resolve(broker.router.parse("a", "queue"))
    assert (node.creator, node.owner) == ("ada", -1)
