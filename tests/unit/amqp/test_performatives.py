"""Source and target of an attach; tests/wire has every field and golden frames."""

import pytest

from broker.amqp.errors import DECODE_ERROR, INVALID_FIELD, ConnectionFault
from broker.amqp.performatives import Attach, read_attach
from broker.amqp.terminus import Coordinator, Target
from tests.support.encoded import EMPTY, FALSE, NULL, listed, section, string, symbol

SOURCE, TARGET, COORDINATOR = 0x28, 0x29, 0x30


def attach(source: str = NULL, target: str = NULL) -> Attach:
    data = bytes.fromhex(listed(string("link"), "43", FALSE, NULL, NULL, source, target))
    return read_attach(data, 0, len(data))


def test_an_attach_may_have_no_ends() -> None:
    read = attach()
    assert (read.source, read.target, read.fault) == (None, None, None)


def test_a_target_may_be_a_coordinator() -> None:
    assert isinstance(attach(target=section(TARGET, EMPTY)).target, Target)
    assert isinstance(attach(target=section(COORDINATOR, EMPTY)).target, Coordinator)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        pytest.param(section(TARGET, EMPTY), NULL, id="a source that is a target"),
        pytest.param(section(COORDINATOR, EMPTY), NULL, id="a source that is a coordinator"),
        pytest.param(EMPTY, NULL, id="a source that is not described"),
        pytest.param(NULL, section(SOURCE, EMPTY), id="a target that is a source"),
        pytest.param(NULL, string("q"), id="a target that is an address"),
    ],
)
def test_an_end_that_is_something_else(source: str, target: str) -> None:
    with pytest.raises(ConnectionFault) as caught:
        attach(source, target)
    assert caught.value.condition == DECODE_ERROR


UNKNOWN = listed(NULL, NULL, symbol("some-day"))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        pytest.param(section(SOURCE, UNKNOWN), section(TARGET, EMPTY), id="the source"),
        pytest.param(section(SOURCE, EMPTY), section(TARGET, UNKNOWN), id="the target"),
    ],
)
def test_an_end_that_cannot_be_honoured_is_told_and_left_out(source: str, target: str) -> None:
    read = attach(source, target)
    assert read.fault is not None
    assert read.fault.condition == INVALID_FIELD
    assert (read.source is None) != (read.target is None)
    assert read.name == "link"
