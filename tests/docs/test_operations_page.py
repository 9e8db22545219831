"""The page of seven operations has the calls and files that the trace counts."""

from __future__ import annotations

import re

import pytest

from tests.support import traced

# compiled functions are not seen by sys.setprofile
pytestmark = pytest.mark.incompatible_with_mypyc


def test_the_page_has_the_numbers_of_today() -> None:
    text = traced.PAGE.read_text()
    assert text == traced.page(text), "run `python -m tests.support.traced --write`"


def test_the_page_says_by_how_much_the_attach_exceeds_its_aim() -> None:
    trace = traced.traced("attach")
    calls, files = len(trace.calls), len(trace.files())
    assert f"{calls} calls in {files} files, {calls - 150} calls and {files - 35} files more" in (
        " ".join(traced.PAGE.read_text().split())
    )


def test_the_parts_of_the_attach_are_all_its_calls() -> None:
    parts = [int(number) for number in re.findall(r"` \| (\d+) \|$", traced.PAGE.read_text(), re.M)]
    assert sum(parts) == len(traced.traced("attach").calls)


def test_a_page_without_the_row_of_an_operation_is_refused() -> None:
    row = re.compile(r"^\| Accept a delivery .*\n", re.MULTILINE)
    with pytest.raises(ValueError, match="0 rows of 'Accept a delivery'"):
        traced.page(row.sub("", traced.PAGE.read_text()))


@pytest.mark.parametrize("firsts", [["a", "c", "b"], ["b"], ["a", "d"]], ids=" ".join)
def test_parts_that_do_not_begin_in_this_order_are_refused(firsts: list[str]) -> None:
    with pytest.raises(ValueError, match=r"another order|not in list"):
        traced.parts_of(["a", "b", "c"], firsts)
