"""The ids of spans."""

from __future__ import annotations

import pytest

from broker.tracing.spans import new_span_id

pytestmark = pytest.mark.requirement("OPS-09")


def test_an_id_has_sixteen_digits() -> None:
    ids = {new_span_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert {len(each) for each in ids} == {16}
