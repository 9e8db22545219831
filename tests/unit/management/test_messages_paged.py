"""Messages that are not in memory: they are loaded if an operator lists or changes them."""

import pytest

from tests.support.broker import Broker
from tests.support.frames import Transfer, attach_sender, message
from tests.support.management import Manager
from tests.support.routing import page_out

COUNT = 200


@pytest.fixture
def broker() -> Broker:
    """Return a broker whose queue `q` has COUNT durable messages, all of them only in the store."""
    broker = Broker(credit=1000)
    sender = broker.session("filler")
    sender.attach(attach_sender("q"))
    for number in range(COUNT):
        payload = message(b"%d" % number, durable=True, subject="even" if number % 2 == 0 else None)
        sender.send(Transfer(delivery_id=number, settled=True, payload=payload))
    sender.hang_up()
    page_out(broker.queue())
    assert loaded(broker) == 0
    return broker


@pytest.fixture
def manager(broker: Broker) -> Manager:
    return Manager(broker)


def loaded(broker: Broker) -> int:
    return sum(len(each.loaded(-1, 10**6)) for each in broker.queue().backlogs.existing())


def identities(manager: Manager, **arguments: object) -> list[str]:
    """Return the identities that a list has on all its pages."""
    found: list[str] = []
    following: object = None
    while True:
        after = {} if following is None else {"after": following}
        reply = manager.look("message", {"queue": "q", **after, **arguments})
        found += [str(row["identity"]) for row in reply.rows]
        following = reply.map["next"]
        if following is None:
            return found


def expected(step: int = 1) -> list[str]:
    return [str(number * 10 + 4) for number in range(0, COUNT, step)]


def test_a_list_goes_through_all_of_it(broker: Broker, manager: Manager) -> None:
    assert identities(manager) == expected()
    assert broker.queue().backlogs.waiting == COUNT


def test_a_selector_looks_at_all_of_it(manager: Manager) -> None:
    assert identities(manager, selector="JMSType = 'even'") == expected(2)


def test_a_message_is_read_by_its_identity(broker: Broker, manager: Manager) -> None:
    reply = manager.ask("READ", "message", "1994", queue="q")
    assert (reply.status, reply.map["identity"]) == (200, "1994")
    assert 0 < loaded(broker) <= 64, "no more than its page"


def test_messages_are_deleted_by_their_identities_wherever_they_are(
    broker: Broker, manager: Manager
) -> None:
    chosen = ["4", "1004", "1994", "99994"]
    reply = manager.ask("DELETE", "message", queue="q", identities=chosen)
    assert (reply.map["deleted"], reply.map["missing"]) == (3, ["99994"])
    assert broker.queue().backlogs.waiting == COUNT - 3


def test_a_purge_loads_nothing(broker: Broker, manager: Manager) -> None:
    reply = manager.ask("PURGE", "queue", "q")
    assert (reply.status, broker.queue().backlogs.waiting, broker.queue().state.bytes) == (
        200,
        0,
        0,
    )
