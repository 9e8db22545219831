"""The arguments in the query of a URL: which are read, and the errors for all others."""

import pytest

from broker.http.arguments import NUMBER_MAX, Arguments
from broker.management.request import BAD_REQUEST, TEXT_BYTES_MAX, Refused
from broker.routing.batches.lease_batch import SLICES_MAX

KNOWN = ("address", "slices", "kind")


def read(*pairs: tuple[str, str]) -> tuple[str, int, str]:
    """Return the three arguments of a request, read by the rules of this test."""
    asked = Arguments(pairs, *KNOWN)
    return (
        asked.text("address"),
        asked.number("slices", 1, low=1, high=SLICES_MAX),
        asked.one_of("kind", ("accepted", "expired")),
    )


RIGHT = [
    pytest.param([("address", "a")], ("a", 1, ""), id="what is left out"),
    pytest.param([("address", "a"), ("slices", "256")], ("a", 256, ""), id="a number"),
    pytest.param([("address", "a b&c"), ("kind", "expired")], ("a b&c", 1, "expired"), id="a word"),
    pytest.param([("address", "a"), ("slices", "007")], ("a", 7, ""), id="zeros in front"),
    pytest.param([("address", "a"), ("kind", "")], ("a", 1, ""), id="an empty word"),
    pytest.param([("address", "x" * TEXT_BYTES_MAX)], ("x" * TEXT_BYTES_MAX, 1, ""), id="longest"),
]


@pytest.mark.parametrize(("pairs", "expected"), RIGHT)
def test_what_is_right_is_read(
    pairs: list[tuple[str, str]], expected: tuple[str, int, str]
) -> None:
    assert read(*pairs) == expected


A = ("address", "a")
NUMBER = f"slices must be a number from 1 to {SLICES_MAX}"
WRONG = [
    pytest.param([], "address is needed", id="what is needed is not there"),
    pytest.param([("address", "")], "address is needed", id="what is needed is empty"),
    pytest.param([A, A], "address is there twice", id="twice"),
    pytest.param([A, ("slcies", "1")], "no argument slcies; known are address, slices", id="name"),
    pytest.param([A, ("slices", "")], NUMBER, id="no number"),
    pytest.param([A, ("slices", "many")], NUMBER, id="a word for a number"),
    pytest.param([A, ("slices", "1.5")], NUMBER, id="half a number"),
    pytest.param([A, ("slices", "-1")], NUMBER, id="less than nothing"),
    pytest.param([A, ("slices", "0")], NUMBER, id="too little"),
    pytest.param([A, ("slices", str(SLICES_MAX + 1))], NUMBER, id="more than SLICES_MAX"),
    pytest.param([A, ("slices", "9" * 1000)], NUMBER, id="a thousand digits"),
    pytest.param([A, ("slices", "\u0663")], NUMBER, id="digits of another script"),
    pytest.param([A, ("kind", "gone")], "no kind gone; known are accepted, expired", id="a word"),
    pytest.param(
        [("address", "x" * (TEXT_BYTES_MAX + 1))],
        f"address must have at most {TEXT_BYTES_MAX} bytes",
        id="longer than TEXT_BYTES_MAX",
    ),
]


@pytest.mark.parametrize(("pairs", "told"), WRONG)
def test_what_is_wrong_is_named(pairs: list[tuple[str, str]], told: str) -> None:
    with pytest.raises(Refused) as caught:
        read(*pairs)
    assert told in str(caught.value)
    assert caught.value.status == BAD_REQUEST


def test_a_number_without_default_must_be_there() -> None:
    with pytest.raises(Refused, match=f"batch must be a number from 0 to {NUMBER_MAX}"):
        Arguments([], "batch").number("batch")
