"""The distinction between the compiled and the interpreted broker."""

import pytest

from broker.compiled import COMPILED, INTERPRETED, build_kind, is_compiled

MODULES = [
    pytest.param("uvloop.loop", True, id="machine code"),
    pytest.param("broker.compiled", False, id="a .py file"),
    pytest.param("broker.amqp", False, id="a package"),
    pytest.param("sys", False, id="built in"),
    pytest.param("broker.none", False, id="no such module"),
]


@pytest.mark.parametrize(("module", "expected"), MODULES)
def test_is_compiled(module: str, expected: bool) -> None:
    assert is_compiled(module) is expected


def test_the_kind_is_that_of_the_build_under_test(pytestconfig: pytest.Config) -> None:
    expected = COMPILED if pytestconfig.getoption("--compiled") else INTERPRETED
    assert build_kind() == expected
