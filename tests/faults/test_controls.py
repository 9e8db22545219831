"""The checks of this folder notice brokers that break promises; these brokers are interpreted."""

from __future__ import annotations

import pytest

from tests.faults import power_trace
from tests.faults.controls import CONTROLS, POWER_CUT, Control, is_caught, verdict
from tests.scenario.mutations import ROOT, mutated

pytestmark = pytest.mark.incompatible_with_mypyc


@pytest.mark.slow
@pytest.mark.parametrize("control", CONTROLS, ids=[each.name for each in CONTROLS])
def test_a_broken_promise_is_noticed(control: Control) -> None:
    reason = power_trace.reason_not_to()
    if control.check is POWER_CUT and reason is not None:
        pytest.skip(reason)
    said = verdict(control)
    print(said)
    assert is_caught(control, said)


@pytest.mark.parametrize("control", CONTROLS, ids=[each.name for each in CONTROLS])
def test_a_control_has_its_place(control: Control) -> None:
    for each in control.changes:
        text = (ROOT / each.path).read_text()
        assert mutated(each, text) != text


SAYINGS = [
    pytest.param(CONTROLS[0], "lost: 1 of q", True, id="red for its reason"),
    pytest.param(CONTROLS[0], "something else: no", False, id="red for another"),
    pytest.param(CONTROLS[0], None, False, id="green"),
    pytest.param(Control("none", (), (), ""), None, True, id="green where nothing is wrong"),
    pytest.param(Control("none", (), (), ""), "lost", False, id="red where nothing is wrong"),
]


@pytest.mark.parametrize(("control", "said", "caught"), SAYINGS)
def test_what_counts_as_caught(control: Control, said: str | None, caught: bool) -> None:
    assert is_caught(control, said) is caught
