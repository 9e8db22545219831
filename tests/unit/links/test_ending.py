"""The cause of a link's end: the link, its session or its connection, and in which way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.amqp.errors import INTERNAL_ERROR
from broker.amqp.outcomes import Error
from broker.amqp.performatives import Attach, Close, Detach, End
from broker.links.ending import ending_of, ending_of_connection
from broker.routing.topics.lifetime import Ending
from tests.support.engine import Engine, Inbox
from tests.support.frames import Transfer, attach_sender, message


class Obituary(Inbox):
    """A link owner that records the cause of its link's end."""

    ending: Ending | None = None

    def incoming_ended(self, closed: bool) -> None:
        assert self.ending is None
        self.ending = ending_of(self.link, closed=closed)


def faulty(engine: Engine) -> None:
    """Make the broker end the session, by an attach on a handle in use."""
    engine.send(Attach(name="again", handle=0, role=False, initial_delivery_count=0))


ENDINGS = [
    pytest.param(
        lambda engine: engine.send(Detach(handle=0, closed=True)), Ending.LINK_CLOSED, id="closed"
    ),
    pytest.param(lambda engine: engine.send(Detach(handle=0)), Ending.LINK_DETACHED, id="detached"),
    pytest.param(
        lambda engine: engine.send(Transfer(delivery_id=None, payload=message())),
        Ending.LINK_DETACHED,
        id="detached by us",
    ),
    pytest.param(lambda engine: engine.send(End()), Ending.SESSION_ENDED, id="session ended"),
    pytest.param(faulty, Ending.SESSION_ENDED, id="session ended by us"),
    pytest.param(
        lambda engine: engine.send(Close()), Ending.CONNECTION_CLOSED, id="connection closed"
    ),
    pytest.param(
        lambda engine: engine.send(Close(error=Error(condition=INTERNAL_ERROR))),
        Ending.CONNECTION_LOST,
        id="connection closed with an error",
    ),
    pytest.param(
        lambda engine: engine.connection.receive_eof(), Ending.CONNECTION_LOST, id="socket lost"
    ),
    pytest.param(
        lambda engine: engine.send_bytes(b"\x00\x00\x00\x00 rubbish"),
        Ending.CONNECTION_LOST,
        id="connection closed by us",
    ),
]


@pytest.mark.requirement("SUB-25")
@pytest.mark.parametrize(("end", "expected"), ENDINGS)
def test_what_ended_a_link(end: Callable[[Engine], object], expected: Ending) -> None:
    engine = Engine()
    link = engine.attach_sender(attach_sender()).link
    obituary = Obituary(link)
    link.owner = obituary
    end(engine)
    assert obituary.ending is expected
    of_connection = expected in (Ending.CONNECTION_CLOSED, Ending.CONNECTION_LOST)
    assert engine.ended_sessions == ([0] if expected is Ending.SESSION_ENDED else [])
    assert len(engine.drops) == of_connection
    if of_connection:
        assert ending_of_connection(engine.connection) is expected


def test_an_answer_to_our_close_is_no_good_order() -> None:
    """The broker closed the connection, so the client may resume what it had."""
    engine = Engine()
    engine.send_bytes(b"\x00\x00\x00\x00 rubbish")
    engine.send(Close())
    engine.connection.receive_eof()
    assert engine.drops == [False]
    assert ending_of_connection(engine.connection) is Ending.CONNECTION_LOST
