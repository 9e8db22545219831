"""This project's broker on its own conformance harness: no case fails."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.conformance import core_3_2_1_durability
from tests.conformance.asked import Asked, options_of
from tests.conformance.conftest import ADDRESSES
from tests.conformance.harness import Case, all_cases, judge
from tests.conformance.report import in_text
from tests.conformance.verdict import Verdict
from tests.interop.broker_process import PASSWORD, USER, BrokerProcess

OPEN_TO_ALL: Final = {"anonymous_is_let_in_where_it_is_offered"}
"""Cases that are run on a broker without logins."""

RESTARTING: Final = {
    case.name for case in all_cases() if case.run.__module__ == core_3_2_1_durability.__name__
}
"""Cases that are run on a broker which may be restarted: test_durability.py."""

NOT_OFFERED: Final = {
    "no source outlives its link by default": {
        "outcomes_of_a_suspended_link_count",
    },
}
"""Cases for features that this broker does not offer yet; the list should become shorter."""

NOT_APPLICABLE: Final[set[str]] = set().union(*NOT_OFFERED.values())


@pytest.mark.parametrize(
    "case",
    [case for case in all_cases() if case.name not in RESTARTING],
    ids=lambda case: f"{case.source}-{case.name}",
)
async def test_case(
    case: Case, broker_with_users: BrokerProcess, request: pytest.FixtureRequest
) -> None:
    asked = Asked(
        broker_with_users.url,
        user=USER,
        password=PASSWORD,
        **ADDRESSES,
    )
    if case.name in OPEN_TO_ALL:
        asked = Asked(request.getfixturevalue("open_broker").url)
    options = options_of(asked)
    result = await judge(case, options)
    expected = Verdict.NOT_APPLICABLE if case.name in NOT_APPLICABLE else Verdict.PASSED
    assert result.verdict is expected, in_text(result, frames=True)


def test_what_is_not_applicable_exists() -> None:
    assert {case.name for case in all_cases()} >= NOT_APPLICABLE | OPEN_TO_ALL | RESTARTING


def test_nothing_was_logged_as_an_error(broker_with_users: BrokerProcess) -> None:
    """None of the hostile cases found a bug that the broker logs."""
    log = Path(broker_with_users.log).read_text()
    assert "Traceback" not in log
