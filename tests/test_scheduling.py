"""The order of test files in a run by files, as its processes have it."""

from __future__ import annotations

import pytest

from tests.support.scheduling import DIST, in_order, is_by_file


def test_a_process_has_the_files_in_their_order(request: pytest.FixtureRequest) -> None:
    told = getattr(request.config, "workerinput", None)
    if told is None:
        pytest.skip("this process runs alone: `make test` has several")
    assert told[DIST]
    if not is_by_file(request.config):
        pytest.skip("tests are not distributed by files: `--dist loadfile`, as in `make test`")
    found = [item.nodeid for item in request.session.items]
    assert found == [item.nodeid for item in in_order(request.session.items)]
    assert found != sorted(found)
