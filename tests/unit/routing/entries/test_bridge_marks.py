"""The annotation with the bridges that a message has passed."""

from __future__ import annotations

import pytest

from broker.amqp.limits import SECTIONS_BEFORE_BODY_MAX
from broker.amqp.sections import split
from broker.amqp.types import Map, Symbol
from broker.clock import SystemClock
from broker.message import Message, opaque_message, read_message
from broker.routing.entries.bridge_marks import (
    MARK_BYTES_MAX,
    PASSED_MAX,
    BridgeMark,
    may_pass,
    passed_by,
)
from tests.support.frames import message


def _read(data: bytes) -> Message:
    return read_message(split(data, 0, len(data)), data, SystemClock())


def _annotated(value: object, **others: object) -> Message:
    return _read(message(annotations={"x-opt-bridges": value, **others}))


EIGHT: list[object] = [f"b{number}" for number in range(PASSED_MAX)]

PASSING = [
    # the message, the bridges that it has passed, whether it may pass the bridge `b1`
    pytest.param(_read(message()), [], True, id="no annotations"),
    pytest.param(_read(message(annotations={"k": 1})), [], True, id="others"),
    pytest.param(_annotated([]), [], True, id="an empty list"),
    pytest.param(_annotated(["a", "c"]), ["a", "c"], True, id="other bridges"),
    pytest.param(_annotated(["a", "b1"]), ["a", "b1"], False, id="this bridge"),
    pytest.param(_annotated([*EIGHT[2:], "x"]), [*EIGHT[2:], "x"], True, id="seven others"),
    pytest.param(_annotated([*EIGHT[2:], "x", "y"]), [*EIGHT[2:], "x", "y"], False, id="eight"),
    pytest.param(_annotated("a"), None, False, id="a string"),
    pytest.param(_annotated([1]), None, False, id="a list of numbers"),
    pytest.param(opaque_message(b"xyz", message_format=9), [], True, id="opaque"),
]


@pytest.mark.parametrize(("passing", "names", "allowed"), PASSING)
@pytest.mark.requirement("BRG-03")
def test_what_may_pass(passing: Message, names: list[str] | None, allowed: bool) -> None:
    assert passed_by(passing) == names
    assert may_pass(passing, "b1") is allowed


MARKED = [
    # the message, its annotations with the mark of `b` and an id
    pytest.param(message(), {}, id="none"),
    pytest.param(message(annotations={"k": "v"}), {"k": "v"}, id="another"),
    pytest.param(message(annotations={"k": "v" * 300}), {"k": "v" * 300}, id="a large one"),
    pytest.param(message(annotations={"x-opt-bridge-id": "old"}), {}, id="an id"),
]


@pytest.mark.parametrize(("data", "others"), MARKED)
@pytest.mark.requirement("BRG-02")
@pytest.mark.requirement("BRG-08")
def test_a_mark_is_added(data: bytes, others: dict[str, object]) -> None:
    for tells_id, told in ((False, {}), (True, {"x-opt-bridge-id": "id/7"})):
        if not tells_id and b"bridge-id" in data:
            continue
        payload = BridgeMark("b", tells_id=tells_id).marked(_read(data), "id/7")
        assert payload is not None
        found = _read(payload).annotations()
        expected = {**others, "x-opt-bridges": ["b"], **told}
        assert found == Map([(Symbol(key), value) for key, value in expected.items()])
        body = data[split(data, 0, len(data)).body :]
        assert payload.endswith(body)


def test_names_are_in_their_order() -> None:
    payload = BridgeMark("c", tells_id=False).marked(_annotated(["a", "b"], k=1), "")
    assert payload is not None
    assert passed_by(_read(payload)) == ["a", "b", "c"]


def test_an_opaque_message_stays_as_it_is() -> None:
    assert BridgeMark("b", tells_id=True).marked(opaque_message(b"xyz", message_format=9), "") == (
        b"xyz"
    )


@pytest.mark.requirement("BRG-05")
def test_a_message_without_room_gets_no_mark() -> None:
    room = SECTIONS_BEFORE_BODY_MAX - MARK_BYTES_MAX
    full = message(properties={"p": "x" * room})
    assert BridgeMark("b", tells_id=False).marked(_read(full), "") is None
    less = message(b"x" * SECTIONS_BEFORE_BODY_MAX, properties={"p": "x" * (room - 100)})
    assert BridgeMark("b", tells_id=False).marked(_read(less), "") is not None
