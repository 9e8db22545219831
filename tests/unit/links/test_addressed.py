"""Messages to the anonymous relay: the kind of destination that their annotations name."""

import pytest

from broker.amqp.errors import NOT_FOUND
from broker.amqp.sections import Sections
from broker.amqp.types import Byte, Symbol
from broker.links.addressed import kind_of_destination, unaddressed
from broker.routing.queues.node import QUEUE, TOPIC
from tests.support.frames import message


@pytest.mark.parametrize(
    ("annotations", "kind"),
    [
        (None, ""),
        ({"x-opt-jms-dest": Byte(0)}, QUEUE),
        ({"x-opt-jms-dest": Byte(1)}, TOPIC),
        ({"x-opt-jms-dest": Byte(2)}, QUEUE),
        ({"x-opt-jms-dest": Byte(3)}, TOPIC),
        ({"x-opt-to-type": "topic"}, TOPIC),
        ({"x-opt-to-type": "queue,temporary"}, QUEUE),
        ({"x-opt-other": Symbol("topic")}, ""),
    ],
)
def test_annotations_name_the_kind(annotations: dict[str, object] | None, kind: str) -> None:
    data = message(annotations=annotations)
    sections = Sections()
    sections.read(data, 0, len(data))
    assert kind_of_destination(sections, data) == kind


def test_an_opaque_message_has_no_address() -> None:
    fault = unaddressed(0x80013700)
    assert fault.condition == NOT_FOUND
    assert "0x80013700" in fault.description
