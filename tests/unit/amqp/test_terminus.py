"""Well-formed sources and targets that cannot be honoured refuse only their own link."""

from collections.abc import Callable

import pytest

from broker.amqp.errors import (
    DECODE_ERROR,
    INVALID_FIELD,
    NOT_IMPLEMENTED,
    ConnectionFault,
    LinkFault,
)
from broker.amqp.outcomes import Modified
from broker.amqp.terminus import SESSION_END, Source, Target, read_source, read_target
from tests.support.encoded import EMPTY, NULL, listed, mapped, section, string, symbol

Reader = Callable[[bytes, int, int], Source | Target]

DEFAULT_OUTCOME, FILTER = 8, 7


def at_field(index: int, value: str) -> bytes:
    """Return an encoded terminus in which only the field at `index` is set."""
    return bytes.fromhex(listed(*[NULL] * index, value))


BOTH = pytest.mark.parametrize("reader", [read_source, read_target], ids=["source", "target"])

REFUSED = [
    pytest.param(0, "5201", id="an address that is a number"),
    pytest.param(0, symbol("q"), id="an address that is a symbol"),
    pytest.param(0, section(0x99, EMPTY), id="an address that is described"),
    pytest.param(1, "5203", id="an unknown durability"),
    pytest.param(2, symbol("some-day"), id="an unknown expiry-policy"),
]


@BOTH
@pytest.mark.parametrize(("field", "value"), REFUSED)
def test_a_terminus_that_no_node_can_honour(reader: Reader, field: int, value: str) -> None:
    data = at_field(field, value)
    with pytest.raises(LinkFault) as caught:
        reader(data, 0, len(data))
    assert caught.value.condition == INVALID_FIELD


@BOTH
def test_an_empty_terminus_holds_the_defaults_of_the_specification(reader: Reader) -> None:
    read = reader(bytes.fromhex(EMPTY), 0, 1)
    assert (read.address, read.durable, read.timeout, read.dynamic) == (None, 0, 0, False)
    assert read.expiry_policy == SESSION_END
    assert (read.dynamic_node_properties, read.capabilities) == ({}, [])


def test_an_unknown_distribution_mode() -> None:
    data = at_field(6, symbol("share"))
    with pytest.raises(LinkFault) as caught:
        read_source(data, 0, len(data))
    assert caught.value.condition == INVALID_FIELD


def test_a_long_word_that_is_unknown_is_told_back_in_part() -> None:
    data = at_field(6, symbol("x" * 200))
    with pytest.raises(LinkFault) as caught:
        read_source(data, 0, len(data))
    assert caught.value.description.endswith(" " + "x" * 100)


@pytest.mark.requirement("RCV-08")
def test_a_default_outcome() -> None:
    data = at_field(DEFAULT_OUTCOME, section(0x27, listed("41")))
    outcome = read_source(data, 0, len(data)).default_outcome
    assert isinstance(outcome, Modified)
    assert outcome.delivery_failed


@pytest.mark.requirement("RCV-08")
@pytest.mark.parametrize(
    "state",
    [
        pytest.param(section(0x23, listed("43", "44")), id="received, which is no outcome"),
        pytest.param(section(0x99, EMPTY), id="a number that nobody knows"),
        pytest.param("00" + symbol("acme:lost:list") + EMPTY, id="a symbol that nobody knows"),
    ],
)
def test_a_default_outcome_that_is_not_known_here_refuses_the_link_alone(state: str) -> None:
    data = at_field(DEFAULT_OUTCOME, state)
    with pytest.raises(LinkFault) as caught:
        read_source(data, 0, len(data))
    assert caught.value.condition == NOT_IMPLEMENTED


MALFORMED = [
    pytest.param(DEFAULT_OUTCOME, EMPTY, id="a default-outcome that is not described"),
    pytest.param(DEFAULT_OUTCOME, section(0x24, NULL), id="an outcome that is not a list"),
    pytest.param(FILTER, listed(), id="filters in a list"),
    pytest.param(FILTER, mapped(string("k"), NULL), id="a filter whose key is a string"),
    pytest.param(FILTER, "c10602a3016b4040", id="filters with bytes behind"),
    pytest.param(FILTER, "c10402a3016b", id="a filter that is cut"),
]


@pytest.mark.parametrize(("field", "value"), MALFORMED)
def test_a_malformed_source_ends_the_connection(field: int, value: str) -> None:
    data = at_field(field, value)
    with pytest.raises(ConnectionFault) as caught:
        read_source(data, 0, len(data))
    assert caught.value.condition == DECODE_ERROR


FILTERS = [
    pytest.param(string("x"), None, "x", id="not described"),
    pytest.param("0080" + "0000468c00000004" + string("x"), 0x468C_0000_0004, "x", id="a number"),
    pytest.param("00" + symbol("s") + string("x"), "s", "x", id="a symbol"),
]


@pytest.mark.requirement("RCV-05")
@pytest.mark.parametrize(("encoded", "descriptor", "value"), FILTERS)
def test_a_filter_is_read_and_kept_for_the_echo(
    encoded: str, descriptor: object, value: object
) -> None:
    data = at_field(FILTER, mapped(symbol("k"), encoded))
    (found,) = read_source(data, 0, len(data)).filter
    assert (found.key, found.descriptor, found.value) == ("k", descriptor, value)
    assert found.encoded.hex() == encoded


TOLD = [
    pytest.param(NULL, NULL, True, id="volatile, left out"),
    pytest.param("5202", NULL, False, id="durable, left out"),
    pytest.param("5202", symbol(SESSION_END), True, id="durable, told"),
]


@pytest.mark.requirement("SUB-25")
@pytest.mark.parametrize(("durable", "policy", "told"), TOLD)
def test_a_durable_source_may_leave_its_expiry_policy_out(
    durable: str, policy: str, told: bool
) -> None:
    data = bytes.fromhex(listed(NULL, durable, policy))
    read = read_source(data, 0, len(data))
    assert (read.expiry_policy, read.tells_expiry_policy) == (SESSION_END, told)
