"""Parameters of a query: each value is checked, and no unknown one is ignored."""

import pytest

from broker.http.api.parameters import FLAG, NUMBER, TEXTS, Parameter, read_parameters
from broker.management.request import Refused

pytestmark = pytest.mark.requirement("OPS-01")

KNOWN = (
    Parameter(name="q", description=""),
    Parameter(name="limit", type=NUMBER, low=1, high=9, description=""),
    Parameter(name="count", type=FLAG, description=""),
    Parameter(name="fields", type=TEXTS, description=""),
    Parameter(name="role", choices=("a", "b"), description=""),
    Parameter(name="cursor", argument="after", description=""),
)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        pytest.param([], {}, id="none"),
        pytest.param([("q", "x"), ("limit", "9")], {"q": "x", "limit": 9}, id="text and number"),
        pytest.param([("count", "true")], {"count": True}, id="flag"),
        pytest.param([("fields", "a,,b")], {"fields": ["a", "b"]}, id="texts"),
        pytest.param([("role", "b")], {"role": "b"}, id="choice"),
        pytest.param([("cursor", "x" * 5000)], {"after": "x" * 5000}, id="another argument, long"),
        pytest.param([("q", "")], {}, id="an empty one is left out"),
    ],
)
def test_values(pairs: list[tuple[str, str]], expected: dict[str, object]) -> None:
    assert read_parameters(pairs, KNOWN) == expected


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        pytest.param([("x", "1")], "no parameter x; known are q, limit", id="unknown"),
        pytest.param([("q", "1"), ("q", "2")], "q is there twice", id="twice"),
        pytest.param([("limit", "0")], "limit must be a number from 1 to 9", id="low"),
        pytest.param([("limit", "10")], "limit must be a number from 1 to 9", id="high"),
        pytest.param([("limit", "\u0663")], "limit must be", id="a digit of another script"),
        pytest.param([("limit", "1" * 5000)], "limit must be", id="many digits"),
        pytest.param([("count", "yes")], "count must be true or false", id="flag"),
        pytest.param([("role", "c")], "role must be one of a, b", id="choice"),
        pytest.param([("q", "x" * 5000)], "q must have at most", id="long"),
    ],
)
def test_wrong_values(pairs: list[tuple[str, str]], why: str) -> None:
    with pytest.raises(Refused, match=why):
        read_parameters(pairs, KNOWN)


def test_a_parameter_that_is_needed() -> None:
    known = [Parameter(name="q", required=True, description="")]
    with pytest.raises(Refused, match="q is needed"):
        read_parameters([("q", "")], known)


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        (KNOWN[1], {"type": "integer", "minimum": 1, "maximum": 9}),
        (KNOWN[3], {"type": "array", "items": {"type": "string"}}),
        (KNOWN[4], {"type": "string", "enum": ["a", "b"]}),
    ],
)
def test_schemas(parameter: Parameter, expected: dict[str, object]) -> None:
    assert parameter.schema() == expected
